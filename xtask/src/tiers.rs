//! The tiers of `cargo xtask test`. A tier is one kind of check (formatting, lints, unit tests, the browser tests …):
//! the programs it needs and the commands it runs, in order.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{bail, Context, Result};

use crate::{
    fuzz,
    install::{chromium, environment, frameworks, lavapipe, Need},
    machines,
    workspace::Workspace,
};

const THUMB: [&str; 2] = ["thumbv6m-none-eabi", "thumbv7em-none-eabihf"];
const WASM: &str = "wasm32-unknown-unknown";
const WASM_TESTS: &str = "wasm/tests";
const PAGE_TESTS: &str = "www/tests";
/// The oldest toolchains the crates promise to build with (`rust-version` in their Cargo.toml).
const OLDEST: &str = "1.81.0";
const OLDEST_GPU: &str = "1.87.0";
/// What miri needs: nightly, and the sources of the standard library, which it interprets.
pub(crate) const MIRI_NEEDS: [Need; 1] = [Need::Toolchain("nightly", &["miri", "rust-src"])];

const COUNTER: &str = "gungraun-runner";
/// What counting instructions needs; the version is that of gungraun in tests/guards/Cargo.toml.
pub(crate) const COUNT_NEEDS: [Need; 3] =
    [Need::Avx2, Need::Program("valgrind", "valgrind"), Need::Tool(COUNTER, "0.20.0")];

/// One kind of test.
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    /// A name for the folder it builds in, empty if it builds nothing. Tiers with the same folder do not run at the
    /// same time, since cargo locks it.
    pub(crate) folder: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) steps: fn(&Workspace) -> Result<Vec<Command>>,
}

/// All tiers, in the order they are started: the browser's early, because they take long and leave a core to the
/// others.
pub(crate) const TIERS: [Tier; 15] = [
    Tier { name: "fmt", about: "formatting", folder: "", needs: &[Need::Component("rustfmt", "fmt")], steps: fmt },
    Tier {
        name: "browser",
        about: "the page in a browser",
        folder: "wasm",
        needs: &[Need::Target(WASM), Need::Npm(PAGE_TESTS), Need::Chromium, Need::ChineseFont, Need::Python],
        steps: browser,
    },
    Tier {
        name: "clippy",
        about: "lints, in every feature set and for wasm32, warnings refused",
        folder: "debug",
        needs: &[Need::Component("clippy", "clippy"), Need::Target(THUMB[1]), Need::Target(WASM)],
        steps: clippy,
    },
    Tier { name: "docs", about: "documentation, warnings refused", folder: "debug", needs: &[], steps: docs },
    Tier {
        name: "tests",
        about: "unit, golden, property and doc tests, in every feature set",
        folder: "debug",
        needs: &[],
        steps: tests,
    },
    Tier {
        name: "burn",
        about: "the adapter for burn, which is outside the workspace: lints and tests",
        folder: "burn",
        needs: &[Need::Component("clippy", "clippy")],
        steps: burn,
    },
    Tier {
        name: "python",
        about: "the Python package: lints, generated functions, types, and every golden call",
        folder: "debug",
        needs: &[Need::Component("clippy", "clippy"), Need::Python],
        steps: python,
    },
    Tier {
        name: "gpu",
        about: "shaders against core, on a Vulkan device in software",
        folder: "debug",
        needs: &[Need::Lavapipe],
        steps: gpu,
    },
    Tier {
        name: "embedded",
        about: "core on Cortex-M without std, and its size",
        folder: "debug",
        needs: &[Need::Target(THUMB[0]), Need::Target(THUMB[1]), Need::Program("qemu-system-arm", "qemu-system-arm")],
        steps: embedded,
    },
    Tier {
        name: "bits",
        about: "the same bits on every machine",
        folder: "bits",
        needs: &[
            Need::Target(THUMB[0]),
            Need::Target(THUMB[1]),
            Need::Target(WASM),
            Need::Target(machines::AARCH64),
            Need::Program("qemu-system-arm", "qemu-system-arm"),
            Need::Program("qemu-aarch64", "qemu-user"),
            Need::Program("node", "nodejs"),
        ],
        steps: bits,
    },
    Tier {
        name: "miri",
        about: "undefined behaviour, in the unit tests of the code that has unsafe or index arithmetic",
        folder: "miri",
        needs: &MIRI_NEEDS,
        steps: |workspace| Ok(vec![miri(workspace, &["simd::", "layout::", "reduce::", "recursion::"])]),
    },
    Tier {
        name: "speed",
        about: "instructions per token of the kernels",
        folder: "release",
        needs: &COUNT_NEEDS,
        steps: |workspace| Ok(vec![count(workspace)]),
    },
    Tier {
        name: "wasm",
        about: "the WebAssembly package under Node, and its types",
        folder: "wasm",
        needs: &[Need::Target(WASM), Need::Npm(WASM_TESTS)],
        steps: wasm,
    },
    Tier {
        name: "msrv",
        about: "the oldest compilers that the crates promise to support",
        folder: "msrv",
        needs: &[Need::Toolchain(OLDEST, &[]), Need::Toolchain(OLDEST_GPU, &[])],
        steps: msrv,
    },
    Tier {
        name: "fuzz",
        about: "a minute of random bytes to formulas, readers and decoders",
        folder: "fuzz",
        needs: &fuzz::NEEDS,
        steps: |workspace| Ok(vec![xtask(workspace, "fuzz --minutes 1")?]),
    },
];

/// Tiers that run only if they are named: they install gigabytes, or compile for long.
pub(crate) const ON_REQUEST: [Tier; 2] = [
    Tier {
        name: "python-frameworks",
        about: "the plug-ins against verl, TRL and OpenRLHF, and everything else that needs torch; installs 6 GB",
        folder: "debug",
        needs: &[Need::Frameworks],
        steps: python_frameworks,
    },
    Tier {
        name: "burn-gpu",
        about: "the adapter for burn over the buffers of its wgpu backend, on a Vulkan device in software",
        folder: "burn",
        needs: &[Need::Component("clippy", "clippy"), Need::Lavapipe],
        steps: burn_gpu,
    },
];

/// Whether this runs unattended: then a check that would be skipped is a failure.
pub(crate) fn in_ci() -> bool {
    env::var("CI").is_ok_and(|value| !matches!(value.as_str(), "" | "0" | "false"))
}

fn words(mut command: Command, arguments: &str) -> Command {
    command.args(arguments.split_whitespace());
    command
}

fn cargo(workspace: &Workspace, arguments: &str) -> Command {
    words(workspace.cargo(), arguments)
}

/// `examples/cortex-m` is outside the workspace.
fn cortex_m(workspace: &Workspace, arguments: &str) -> Command {
    let mut command = cargo(workspace, arguments);
    command.current_dir(workspace.root.join("examples/cortex-m"));
    command.env("CARGO_TARGET_DIR", workspace.target.join("xtask/cortex-m"));
    command
}

/// `adapters/burn` is outside the workspace: burn is large, and its backends would fill the lock file.
fn in_burn(workspace: &Workspace, arguments: &str) -> Command {
    let mut command = cargo(workspace, arguments);
    command.current_dir(workspace.root.join("adapters/burn"));
    command.env("CARGO_TARGET_DIR", workspace.target.join("xtask/burn"));
    command
}

fn burn(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![in_burn(workspace, "test --locked"), in_burn(workspace, "clippy --locked --all-targets -- -D warnings")])
}

/// Its feature `wgpu`: burn's backend for wgpu is as large as the rest of burn.
fn burn_gpu(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![
        on_lavapipe(in_burn(workspace, "test --locked --features wgpu --test suite wgpu"))?,
        in_burn(workspace, "test --locked --features wgpu --doc wgpu"),
        in_burn(workspace, "clippy --locked --features wgpu --all-targets -- -D warnings"),
    ])
}

/// `python` is outside the workspace: pyo3 needs a newer compiler than the core promises.
fn in_python(workspace: &Workspace, arguments: &str) -> Command {
    let mut command = cargo(workspace, arguments);
    command.current_dir(workspace.root.join("python"));
    command.env("CARGO_TARGET_DIR", workspace.target.join("xtask/python-build"));
    command
}

fn python(workspace: &Workspace) -> Result<Vec<Command>> {
    let calls = workspace.target.join("xtask/golden-calls.jsonl");
    let mut golden = cargo(workspace, "run --package tokenwise-tests --bin golden -- tests/golden --calls");
    golden.arg(&calls);
    let mut pytest = workspace.command(environment(workspace));
    pytest.args(["-m", "pytest", "--quiet", "python/tests"]);
    pytest.env("PYTHONPATH", workspace.root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    pytest.env("TOKENWISE_CALLS", calls);
    Ok(vec![
        xtask(workspace, "python")?,
        in_python(workspace, "clippy --locked --all-targets -- -D warnings"),
        xtask(workspace, "python --build")?,
        golden,
        pytest,
    ])
}

/// Tests of the Python package that need torch or a framework; those that exist are run.
const FRAMEWORK_TESTS: [&str; 6] = [
    "python/tests/frameworks",
    "python/tests/conformance_frameworks",
    "python/tests/test_distributed.py",
    "python/tests/test_ray.py",
    "python/tests/test_torch.py",
    "python/tests/test_readme.py",
];

fn python_frameworks(workspace: &Workspace) -> Result<Vec<Command>> {
    let mut pytest = workspace.command(frameworks(workspace));
    pytest.args(["-m", "pytest", "--quiet"]);
    pytest.args(FRAMEWORK_TESTS);
    pytest.env("PYTHONPATH", workspace.root.join("python")).env("PYTHONDONTWRITEBYTECODE", "1");
    pytest.env("TOKENWISE_FRAMEWORKS", "1");
    Ok(vec![xtask(workspace, "python --build")?, pytest])
}

/// Another command of this program.
pub(crate) fn xtask(workspace: &Workspace, arguments: &str) -> Result<Command> {
    Ok(words(workspace.command(env::current_exe().context("the path of xtask itself is unknown")?), arguments))
}

fn fmt(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![
        cargo(workspace, "fmt --all --check"),
        cortex_m(workspace, "fmt --check"),
        cargo(workspace, "fmt --check --manifest-path fuzz/Cargo.toml"),
        in_burn(workspace, "fmt --check"),
        in_python(workspace, "fmt --check"),
    ])
}

fn clippy(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![
        cargo(workspace, "clippy --workspace --all-targets -- -D warnings"),
        cargo(workspace, "clippy --package tokenwise --no-default-features -- -D warnings"),
        cargo(workspace, "clippy --package tokenwise --all-features --all-targets -- -D warnings"),
        // what is compiled for wasm32 only
        cargo(
            workspace,
            &format!("clippy --package tokenwise --package tokenwise-wasm --target {WASM} -- -D warnings"),
        ),
        cargo(
            workspace,
            &format!(
                "clippy --package tokenwise-wasm --features gpu-shim --package tokenwise-gpu-golden --target {WASM} \
                 -- -D warnings"
            ),
        ),
        cortex_m(workspace, "clippy --target thumbv7em-none-eabihf -- -D warnings"),
        cortex_m(
            workspace,
            "clippy --target thumbv7em-none-eabihf --bin fingerprints --features fingerprints -- -D warnings",
        ),
    ])
}

fn msrv(workspace: &Workspace) -> Result<Vec<Command>> {
    let check = |toolchain: &str, arguments: &str| {
        let mut command = words(workspace.with_toolchain(toolchain, "cargo"), arguments);
        command.env("CARGO_TARGET_DIR", workspace.target.join("xtask/msrv"));
        command
    };
    Ok(vec![
        check(OLDEST, "check --locked --package tokenwise --package tokenwise-lint"),
        check(OLDEST, "check --locked --package tokenwise --no-default-features"),
        check(OLDEST, "check --locked --package tokenwise --all-features"),
        check(OLDEST_GPU, "check --locked --package tokenwise-gpu"),
    ])
}

/// Miri over the unit tests of the core whose names contain one of the filters; all of them without any.
pub(crate) fn miri(workspace: &Workspace, filters: &[&str]) -> Command {
    miri_test(workspace, "", "--", filters)
}

/// Miri over the code that runs on threads. The queues of rayon break the rules of stacked borrows, not those of tree
/// borrows, and turn integers into pointers; its threads may outlive the tests.
pub(crate) fn miri_threads(workspace: &Workspace) -> Command {
    let flags = " -Zmiri-tree-borrows -Zmiri-permissive-provenance -Zmiri-ignore-leaks";
    miri_test(workspace, flags, "--features rayon --", &["parallel::"])
}

fn miri_test(workspace: &Workspace, flags: &str, arguments: &str, filters: &[&str]) -> Command {
    let mut command = workspace.with_toolchain("nightly", "cargo");
    command.args(["miri", "test", "--package", "tokenwise", "--lib"]);
    command.args(arguments.split_whitespace()).args(filters);
    command.env("CARGO_TARGET_DIR", workspace.target.join("xtask/miri"));
    // by default miri adds random errors to floating-point functions, but the tests compare bits
    command.env("MIRIFLAGS", format!("-Zmiri-deterministic-floats{flags}"));
    // miri detects no CPU features at run time: the vector code must be enabled for the whole build
    command.env("RUSTFLAGS", if env::consts::ARCH == "x86_64" { "-C target-feature=+avx2" } else { "" });
    command
}

fn docs(workspace: &Workspace) -> Result<Vec<Command>> {
    let mut steps = vec![
        cargo(workspace, "doc --workspace --no-deps"),
        cargo(workspace, "doc --package tokenwise --no-deps --all-features"),
    ];
    steps.iter_mut().for_each(|step| {
        step.env("RUSTDOCFLAGS", "-D warnings");
    });
    Ok(steps)
}

fn tests(workspace: &Workspace) -> Result<Vec<Command>> {
    // the GPU tests have a tier of their own, and xtask its own profile
    let mut all = cargo(workspace, "test --workspace --exclude tokenwise-gpu --exclude xtask");
    // how often the recorder is killed, runs out of room and meets another writer; fewer times in a plain `cargo test`
    all.env("TOKENWISE_ROUNDS", "1000");
    Ok(vec![
        all,
        cargo(workspace, "test --package xtask --profile tool"),
        cargo(workspace, "test --package tokenwise --no-default-features"),
        cargo(workspace, "test --package tokenwise --features half,rayon"),
    ])
}

/// Counts the instructions of the kernels; fails if one exceeds its limit.
pub(crate) fn count(workspace: &Workspace) -> Command {
    let mut command = cargo(workspace, "bench --package tokenwise-guards --bench kernels");
    command.env("GUNGRAUN_RUNNER", workspace.tool(COUNTER));
    command
}

fn embedded(workspace: &Workspace) -> Result<Vec<Command>> {
    let mut steps = Vec::new();
    for target in THUMB {
        steps.push(cargo(workspace, &format!("build --package tokenwise --no-default-features --target {target}")));
        let half = format!("build --package tokenwise --no-default-features --features half --target {target}");
        steps.push(cargo(workspace, &half));
    }
    steps.push(xtask(workspace, "size")?);
    Ok(steps)
}

fn bits(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![xtask(workspace, "bits")?])
}

fn gpu(workspace: &Workspace) -> Result<Vec<Command>> {
    let steps =
        ["test --package tokenwise-gpu", "test --package tokenwise-cli --features gpu-shim --test suite engine"];
    steps.map(|arguments| on_lavapipe(cargo(workspace, arguments))).into_iter().collect()
}

/// The step with Mesa's software device as the only one.
fn on_lavapipe(mut step: Command) -> Result<Command> {
    let driver = lavapipe().context("lavapipe not found")?;
    // current Vulkan loaders read the first variable, older ones the second
    step.env("VK_DRIVER_FILES", &driver).env("VK_ICD_FILENAMES", &driver);
    Ok(step)
}

fn wasm(workspace: &Workspace) -> Result<Vec<Command>> {
    let mut steps = vec![xtask(workspace, "wasm")?];
    for folder in ["wasm/node", "wasm/node-simd"] {
        let mut node = workspace.command("node");
        node.args(["--test", "--test-reporter=spec"]).args(test_files(workspace, WASM_TESTS)?);
        node.env("TOKENWISE_WASM", workspace.target.join(folder));
        node.env("TOKENWISE_PACKAGE", workspace.target.join("wasm/package"));
        steps.push(node);
    }
    Ok(steps)
}

fn browser(workspace: &Workspace) -> Result<Vec<Command>> {
    let mut node = workspace.command("node");
    node.arg(format!("{PAGE_TESTS}/run.js"));
    node.env("PLAYGROUND_DIR", workspace.target.join("playground"));
    node.env("CHROMIUM", chromium().context("Chromium not found")?);
    node.env("NUMPY_PYTHON", environment(workspace));
    node.env("GPU_GOLDEN_DIR", workspace.target.join("gpu-golden"));
    Ok(vec![xtask(workspace, "playground --build-only")?, xtask(workspace, "golden --browser")?, node])
}

/// The test scripts of a folder, in order.
fn test_files(workspace: &Workspace, folder: &str) -> Result<Vec<PathBuf>> {
    let missing = || format!("there are no tests in {folder}");
    let entries = fs::read_dir(workspace.root.join(folder)).with_context(missing)?;
    let is_test = |name: &str| name.ends_with(".test.mjs") || name.ends_with(".test.js");
    let tests = entries.flatten().filter(|entry| is_test(&entry.file_name().to_string_lossy()));
    let mut tests: Vec<PathBuf> = tests.map(|entry| Path::new(folder).join(entry.file_name())).collect();
    tests.sort();
    if tests.is_empty() {
        bail!(missing());
    }
    Ok(tests)
}
