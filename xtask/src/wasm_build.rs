//! Builds `tokenwise-wasm` and the JavaScript around it.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{bail, Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::{
    install::Need,
    options::Options,
    wasm_glue::complete,
    wasm_package::package,
    workspace::{stdout_of, Workspace},
};

const TARGET: &str = "wasm32-unknown-unknown";
const SIMD128: &str = "-C target-feature=+simd128";

pub(crate) const HELP: &str = "\
cargo xtask wasm

Builds the npm package, target/wasm/package: the whole and, as tokenwise/chain, the functions from logits to a clipped loss;
each with and without simd128, chosen when it is loaded. Beside it, for the tests, each build alone for Node: target/wasm/node,
node-simd, chain and chain-simd hold tokenwise.js (an ES module), its declarations and the module. The page has its own,
see cargo xtask playground.
";

/// Which loader the generated JavaScript is for.
#[derive(Clone, Copy)]
pub(crate) enum Host {
    Node,
    Web,
    /// The web, with the address of the module left to the caller.
    Package,
}

/// How much of the package.
#[derive(Clone, Copy)]
pub(crate) enum Part {
    Full,
    /// From logits to a clipped loss, and the metrics of that.
    Chain,
}

/// Whether the module may use 128-bit vectors.
#[derive(Clone, Copy)]
pub(crate) enum Simd {
    Plain,
    Simd128,
}

pub(crate) fn wasm(workspace: &Workspace, options: Options) -> Result<()> {
    options.finish()?;
    let folder = workspace.target.join("wasm");
    for (simd, part, name) in [
        (Simd::Plain, Part::Full, "node"),
        (Simd::Simd128, Part::Full, "node-simd"),
        (Simd::Plain, Part::Chain, "chain"),
        (Simd::Simd128, Part::Chain, "chain-simd"),
    ] {
        generate(&compile_part(workspace, simd, part)?, Host::Node, &folder.join(name))?;
    }
    package(workspace, &folder.join("package"), &folder.join("node"), &folder.join("chain"))?;
    println!("{}", folder.display());
    Ok(())
}

/// Compiles the whole crate and returns the module.
pub(crate) fn compile(workspace: &Workspace, simd: Simd) -> Result<PathBuf> {
    compile_part(workspace, simd, Part::Full)
}

/// Compiles the crate, or the chain alone, and returns the module.
pub(crate) fn compile_part(workspace: &Workspace, simd: Simd, part: Part) -> Result<PathBuf> {
    if !workspace.root.join("wasm/Cargo.toml").exists() {
        bail!("there is no package tokenwise-wasm (wasm/Cargo.toml)");
    }
    Need::Target(TARGET).ensure(workspace)?;
    let (flags, folder) = match (simd, part) {
        (Simd::Plain, Part::Full) => ("", "wasm"),
        (Simd::Plain, Part::Chain) => ("", "wasm-chain"),
        (Simd::Simd128, Part::Full) => (SIMD128, "wasm-simd128"),
        (Simd::Simd128, Part::Chain) => (SIMD128, "wasm-chain-simd128"),
    };
    eprintln!("tokenwise-wasm, {folder} …");
    let mut cargo = workspace.cargo_with_flags(&format!("{flags} {}", short_paths()?), folder);
    cargo.args(["build", "--quiet", "--package", "tokenwise-wasm", "--lib", "--profile", "wasm", "--target", TARGET]);
    if let Part::Chain = part {
        cargo.arg("--no-default-features");
    }
    stdout_of(&mut cargo)?;
    Ok(workspace.target.join("xtask").join(folder).join(TARGET).join("wasm/tokenwise_wasm.wasm"))
}

/// Panics name their place: without the folders of this machine, and of the core.
fn short_paths() -> Result<String> {
    let sysroot = stdout_of(Command::new("rustc").args(["--print", "sysroot"]))?;
    // flags are separated by blanks
    let own = Some(sysroot.trim()).filter(|path| !path.contains(char::is_whitespace));
    let own = own.map_or_else(String::new, |path| format!(" --remap-path-prefix={path}/lib/rustlib/src/rust/library="));
    Ok(format!("--remap-path-prefix=core/src={own}"))
}

/// Writes the module and its JavaScript and declarations into a folder, which is emptied before.
pub(crate) fn generate(module: &Path, host: Host, folder: &Path) -> Result<()> {
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    let mut bindgen = Bindgen::new();
    bindgen.input_path(module).typescript(true).remove_name_section(true).remove_producers_section(true);
    match host {
        Host::Node => bindgen.nodejs_module(true)?,
        // otherwise `init()` without arguments throws
        Host::Web => bindgen.web(true)?.omit_default_module_path(false),
        Host::Package => bindgen.web(true)?.omit_default_module_path(true),
    };
    bindgen.out_name("tokenwise");
    bindgen.generate(folder).with_context(|| format!("JavaScript for {}", module.display()))?;
    complete(folder).with_context(|| folder.display().to_string())?;
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
