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
    wasm::{build, Host, Part, Simd},
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
    // the package as it is published
    build(workspace, Simd::Simd128, Part::Full, Host::Web, &modules.join("package"))?;
    // the formulas without bindings, with their data already in wasm memory
    bare(workspace, SIMD, "bench-wasm-simd128", &modules.join("bare-simd128.wasm"))?;
    bare(workspace, "", "bench-wasm", &modules.join("bare-plain.wasm"))?;

    // AVX2 is twice as wide as simd128, so native code can be expected to be twice as fast
    let program = native.program(Build::Avx2)?;
    for item in ["logits-f32", "analysis", "ppo"] {
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

fn bare(workspace: &Workspace, flags: &str, folder: &str, module: &Path) -> Result<()> {
    let mut cargo: Command = workspace.cargo_with_flags(flags, folder);
    cargo.args(["build", "--quiet", "--release", "--package", "tokenwise-bench", "--lib", "--target", TARGET]);
    stdout_of(&mut cargo)?;
    let built = workspace.target.join("xtask").join(folder).join(TARGET).join("release/tokenwise_bench.wasm");
    fs::copy(&built, module).with_context(|| built.display().to_string())?;
    Ok(())
}
