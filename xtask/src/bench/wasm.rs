//! WebAssembly under Node and in a browser, beside onnxruntime-web and beside native code.

use std::{fs, path::Path, process::Command};

use anyhow::{Context, Result};

use super::{
    launch::{pools, raised, Progress},
    native::{Build, Native},
    records::Records,
};
use crate::{
    install::{chromium, Need},
    wasm_build::{compile, generate, Host, Simd},
    workspace::{stdout_of, Workspace},
};

const FOLDER: &str = "bench/wasm";
const TARGET: &str = "wasm32-unknown-unknown";
const SIMD: &str = "-C target-feature=+simd128";
pub(super) const ROWS: usize = 64;

pub(super) fn measure(native: &Native<'_>, records: &mut Records, progress: &mut Progress) -> Result<()> {
    let workspace = native.workspace;
    Need::Npm(FOLDER).ensure(workspace)?;
    Need::Target(TARGET).ensure(workspace)?;
    progress.show("wasm: building");
    let modules = progress.folder.join("wasm");
    fs::create_dir_all(&modules).with_context(|| modules.display().to_string())?;
    // the package as it is published, small before fast; the same, fast before small
    generate(&compile(workspace, Simd::Simd128)?, Host::Web, &modules.join("size"))?;
    generate(&speed(workspace)?, Host::Web, &modules.join("speed"))?;
    // the bare formulas, with their data in place
    bare(workspace, SIMD, "bench-wasm-simd128", &modules.join("bare-simd128.wasm"))?;
    bare(workspace, "", "bench-wasm", &modules.join("bare-plain.wasm"))?;

    // twice as wide is what can be expected to be twice as fast; four times as wide would compare machines
    let program = native.program(Build::Avx2)?;
    for item in ["logits-f32", "analysis"] {
        let mut ours = raised(workspace, &program);
        ours.args(["--only", item, "--rows", &ROWS.to_string()]).envs(pools(1));
        progress.run("wasm-native", &mut ours, records)?;
    }
    let mut node = raised(workspace, "node");
    node.arg(format!("{FOLDER}/node.mjs")).arg(&modules);
    progress.run("wasm-node", &mut node, records)?;
    Need::Chromium.ensure(workspace)?;
    let browser = chromium().context("no Chromium")?;
    let mut page = raised(workspace, "node");
    page.arg(format!("{FOLDER}/browser.mjs")).arg(&modules).arg(browser);
    progress.run("wasm-chromium", &mut page, records)
}

/// The package with the optimisation of native code; in a folder of its own, since both modules have one name.
fn speed(workspace: &Workspace) -> Result<std::path::PathBuf> {
    let mut cargo = workspace.cargo_with_flags(SIMD, "wasm-simd128-speed");
    cargo.args(["build", "--quiet", "--package", "tokenwise-wasm", "--lib", "--profile", "wasm", "--target", TARGET]);
    cargo.args(["--config", "profile.wasm.opt-level=3"]);
    stdout_of(&mut cargo)?;
    Ok(workspace.target.join("xtask/wasm-simd128-speed").join(TARGET).join("wasm/tokenwise_wasm.wasm"))
}

fn bare(workspace: &Workspace, flags: &str, folder: &str, module: &Path) -> Result<()> {
    let mut cargo: Command = workspace.cargo_with_flags(flags, folder);
    cargo.args(["build", "--quiet", "--release", "--package", "tokenwise-bench", "--lib", "--target", TARGET]);
    stdout_of(&mut cargo)?;
    let built = workspace.target.join("xtask").join(folder).join(TARGET).join("release/tokenwise_bench.wasm");
    fs::copy(&built, module).with_context(|| built.display().to_string())?;
    Ok(())
}
