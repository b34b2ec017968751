//! Compiles `tokenwise-wasm` and generates its JavaScript.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{bail, Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use super::{facade, package::package};
use crate::{
    install::Need,
    workspace::{stdout_of, Workspace},
};

const TARGET: &str = "wasm32-unknown-unknown";
/// Inlining and full unrolling with lower limits than those of `opt-level = 3` (250 and 300). Loops are vectorised as
/// before; `opt-level = "s"` would leave them scalar.
const PLAIN: &str = "-C llvm-args=-inline-threshold=50 -C llvm-args=-unroll-threshold=75";
const SIMD128: &str = "-C target-feature=+simd128 -C llvm-args=-inline-threshold=50 -C llvm-args=-unroll-threshold=75";

/// Build the WebAssembly package
///
/// Writes the npm package to target/wasm/package: the whole library and, as tokenwise/chain, the functions from logits
/// to a clipped loss; each with and without simd128, chosen when it is loaded; and as tokenwise/gpu the whole library with
/// WebGPU. For the tests each build is also written for Node alone: target/wasm/node, node-simd, chain, chain-simd and
/// gpu hold tokenwise.js (an ES module), its declarations and the module. The page has its own build, see `cargo xtask
/// playground`.
#[derive(clap::Args)]
pub(crate) struct Options {}

/// Which loader the generated JavaScript is for.
#[derive(Clone, Copy)]
pub(crate) enum Host {
    Node,
    Web,
    /// The web, where the caller gives the URL of the module.
    Package,
}

/// Which functions.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Full,
    /// From logits to a clipped loss, and the metrics of that.
    Chain,
    /// Everything, and the formulas on WebGPU. Browsers that have WebGPU have 128-bit vectors.
    Gpu,
}

/// Whether the module may use 128-bit vectors.
#[derive(Clone, Copy)]
pub(crate) enum Simd {
    Plain,
    Simd128,
}

impl Simd {
    /// The compiler flags of a module; the bits are checked with the same.
    pub(crate) const fn flags(self) -> &'static str {
        match self {
            Self::Plain => PLAIN,
            Self::Simd128 => SIMD128,
        }
    }
}

pub(crate) fn wasm(workspace: &Workspace, _: &Options) -> Result<()> {
    let folder = workspace.target.join("wasm");
    for (simd, part, name) in [
        (Simd::Plain, Part::Full, "node"),
        (Simd::Simd128, Part::Full, "node-simd"),
        (Simd::Plain, Part::Chain, "chain"),
        (Simd::Simd128, Part::Chain, "chain-simd"),
        (Simd::Simd128, Part::Gpu, "gpu"),
    ] {
        build(workspace, simd, part, Host::Node, &folder.join(name))?;
    }
    package(workspace, &folder.join("package"), &folder.join("node"), &folder.join("chain"), &folder.join("gpu"))?;
    println!("{}", folder.display());
    Ok(())
}

/// Compiles the crate, or a part of it, and writes the module with its JavaScript and declarations into a folder,
/// which is emptied before.
pub(crate) fn build(workspace: &Workspace, simd: Simd, part: Part, host: Host, folder: &Path) -> Result<()> {
    generate(&workspace.root.join("core/src"), &compile(workspace, simd, part)?, part, host, folder)
}

/// Compiles the crate, or a part of it, and returns the module.
fn compile(workspace: &Workspace, simd: Simd, part: Part) -> Result<PathBuf> {
    if !workspace.root.join("wasm/Cargo.toml").exists() {
        bail!("there is no package tokenwise-wasm (wasm/Cargo.toml)");
    }
    Need::Target(TARGET).ensure(workspace)?;
    let folder = match (simd, part) {
        (Simd::Plain, Part::Full) => "wasm",
        (Simd::Plain, Part::Chain) => "wasm-chain",
        (Simd::Simd128, Part::Full) => "wasm-simd128",
        (Simd::Simd128, Part::Chain) => "wasm-chain-simd128",
        (_, Part::Gpu) => "wasm-gpu",
    };
    eprintln!("tokenwise-wasm, {folder} …");
    let mut cargo = workspace.cargo_with_flags(&format!("{} {}", simd.flags(), short_paths()?), folder);
    cargo.args(["build", "--quiet", "--package", "tokenwise-wasm", "--lib", "--profile", "wasm", "--target", TARGET]);
    match part {
        Part::Full => {}
        Part::Chain => drop(cargo.arg("--no-default-features")),
        Part::Gpu => drop(cargo.args(["--features", "gpu-shim"])),
    }
    stdout_of(&mut cargo)?;
    Ok(workspace.target.join("xtask").join(folder).join(TARGET).join("wasm/tokenwise_wasm.wasm"))
}

/// Compiler flags that remove the folders of this machine from panic messages.
fn short_paths() -> Result<String> {
    let sysroot = stdout_of(Command::new("rustc").args(["--print", "sysroot"]))?;
    // RUSTFLAGS is split at spaces
    let own = Some(sysroot.trim()).filter(|path| !path.contains(char::is_whitespace));
    let own = own.map_or_else(String::new, |path| format!(" --remap-path-prefix={path}/lib/rustlib/src/rust/library="));
    Ok(format!("--remap-path-prefix=core/src={own}"))
}

/// Writes the module, its JavaScript and its declarations into a folder, which is emptied first.
fn generate(core: &Path, module: &Path, part: Part, host: Host, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).typescript(false).remove_name_section(true).remove_producers_section(true);
    match host {
        Host::Node => bindgen.nodejs_module(true)?,
        // otherwise `init()` without arguments throws
        Host::Web => bindgen.web(true)?.omit_default_module_path(false),
        Host::Package => bindgen.web(true)?.omit_default_module_path(true),
    };
    bindgen.out_name("bindings");
    bindgen.generate(folder).with_context(|| format!("JavaScript for {}", module.display()))?;
    facade::write(core, part, host, folder).with_context(|| folder.display().to_string())?;
    let package = serde_json::json!({
        "name": "tokenwise",
        "version": env!("CARGO_PKG_VERSION"),
        "license": env!("CARGO_PKG_LICENSE"),
        "type": "module",
        "main": "tokenwise.js",
        "types": "tokenwise.d.ts",
    });
    fs::write(folder.join("package.json"), format!("{package:#}\n"))?;
    Ok(())
}
