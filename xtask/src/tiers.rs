//! The tiers of tests: what each needs and which commands it is.

use std::{
    env, fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{bail, Context, Result};

use crate::{
    install::{chromium, lavapipe, Need},
    workspace::Workspace,
};

const THUMB: [&str; 2] = ["thumbv6m-none-eabi", "thumbv7em-none-eabihf"];
const WASM_TESTS: &str = "wasm/tests";
const PAGE_TESTS: &str = "www/tests";

/// One kind of test.
pub(crate) struct Tier {
    pub(crate) name: &'static str,
    pub(crate) about: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) steps: fn(&Workspace) -> Result<Vec<Command>>,
}

/// All tiers, the quick ones first.
pub(crate) const TIERS: [Tier; 10] = [
    Tier { name: "fmt", about: "formatting", needs: &[Need::Component("rustfmt", "fmt")], steps: fmt },
    Tier {
        name: "clippy",
        about: "lints, in every feature set, warnings refused",
        needs: &[Need::Component("clippy", "clippy"), Need::Target(THUMB[1])],
        steps: clippy,
    },
    Tier { name: "docs", about: "documentation, warnings refused", needs: &[], steps: docs },
    Tier {
        name: "tests",
        about: "unit, golden, property and doc tests, in every feature set",
        needs: &[],
        steps: tests,
    },
    Tier {
        name: "speed",
        about: "instructions per token of the kernels",
        needs: &[Need::Avx2, Need::Program("valgrind", "valgrind")],
        steps: speed,
    },
    Tier {
        name: "embedded",
        about: "core on Cortex-M without std, and its size",
        needs: &[Need::Target(THUMB[0]), Need::Target(THUMB[1]), Need::Program("qemu-system-arm", "qemu-system-arm")],
        steps: embedded,
    },
    Tier {
        name: "bits",
        about: "the same bits on every machine",
        needs: &[
            Need::Program("qemu-system-arm", "qemu-system-arm"),
            Need::Program("qemu-aarch64", "qemu-user"),
            Need::Program("node", "nodejs"),
        ],
        steps: bits,
    },
    Tier {
        name: "wasm",
        about: "the WebAssembly package under Node, and its types",
        needs: &[Need::Npm(WASM_TESTS)],
        steps: wasm,
    },
    Tier {
        name: "gpu",
        about: "shaders against core, on a Vulkan device in software",
        needs: &[Need::Lavapipe],
        steps: gpu,
    },
    Tier {
        name: "browser",
        about: "the page in a browser",
        needs: &[Need::Npm(PAGE_TESTS), Need::Chromium, Need::ChineseFont, Need::NumPy],
        steps: browser,
    },
];

/// Whether nobody is there to read a warning: then what cannot be tested fails.
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

/// Another command of this program, with its output in the log.
fn xtask(workspace: &Workspace, arguments: &str) -> Result<Command> {
    Ok(words(workspace.command(env::current_exe().context("where is xtask?")?), arguments))
}

fn fmt(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![cargo(workspace, "fmt --all --check"), cortex_m(workspace, "fmt --check")])
}

fn clippy(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![
        cargo(workspace, "clippy --workspace --all-targets -- -D warnings"),
        cargo(workspace, "clippy --package tokenwise --no-default-features -- -D warnings"),
        cargo(workspace, "clippy --package tokenwise --all-features --all-targets -- -D warnings"),
        cortex_m(workspace, "clippy --target thumbv7em-none-eabihf -- -D warnings"),
    ])
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
    // the shaders have a tier of their own, with a device; this program has its own profile
    let mut all = cargo(workspace, "test --workspace --exclude tokenwise-gpu --exclude xtask");
    // how often the recorder is killed while it writes; fewer in a plain `cargo test`
    all.env("TOKENWISE_KILLS", "1000");
    Ok(vec![
        all,
        cargo(workspace, "test --package xtask --profile tool"),
        cargo(workspace, "test --package tokenwise --no-default-features"),
        cargo(workspace, "test --package tokenwise --features half,rayon"),
    ])
}

fn speed(workspace: &Workspace) -> Result<Vec<Command>> {
    Ok(vec![cargo(workspace, "run --release --package tokenwise-guards")])
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
    let driver = lavapipe().context("lavapipe is gone")?;
    let mut step = cargo(workspace, "test --package tokenwise-gpu");
    // the first name is for current loaders, the second for older ones
    step.env("VK_DRIVER_FILES", &driver).env("VK_ICD_FILENAMES", &driver);
    Ok(vec![step])
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
    node.args(["--test", "--test-reporter=spec"]).args(test_files(workspace, PAGE_TESTS)?);
    node.env("PLAYGROUND_DIR", workspace.target.join("playground"));
    node.env("CHROMIUM", chromium().context("the browser is gone")?);
    node.env("NUMPY_PYTHON", workspace.target.join("xtask/numpy/bin/python"));
    Ok(vec![xtask(workspace, "playground --build-only")?, node])
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
