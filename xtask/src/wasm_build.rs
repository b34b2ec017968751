//! Builds `tokenwise-wasm` and the JavaScript around it.

use std::{
    fs,
    path::{Path, PathBuf},
};

use anyhow::{bail, Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::{
    install::Need,
    options::Options,
    workspace::{stdout_of, Workspace},
};

const TARGET: &str = "wasm32-unknown-unknown";

pub(crate) const HELP: &str = "\
cargo xtask wasm

Builds the WebAssembly package for Node: target/wasm/node, and target/wasm/node-simd with simd128. Each folder holds
tokenwise.js (an ES module), its declarations and the module. The page has its own, see cargo xtask playground.
";

/// Which loader the generated JavaScript is for.
#[derive(Clone, Copy)]
pub(crate) enum Host {
    Node,
    Web,
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
    for (simd, name) in [(Simd::Plain, "node"), (Simd::Simd128, "node-simd")] {
        generate(&compile(workspace, simd)?, Host::Node, &folder.join(name))?;
    }
    println!("{}", folder.display());
    Ok(())
}

/// Compiles the crate and returns the module.
pub(crate) fn compile(workspace: &Workspace, simd: Simd) -> Result<PathBuf> {
    if !workspace.root.join("wasm/Cargo.toml").exists() {
        bail!("there is no package tokenwise-wasm (wasm/Cargo.toml)");
    }
    Need::Target(TARGET).ensure(workspace)?;
    let (flags, folder) = match simd {
        Simd::Plain => ("", "wasm"),
        Simd::Simd128 => ("-C target-feature=+simd128", "wasm-simd128"),
    };
    eprintln!("tokenwise-wasm, {} …", if flags.is_empty() { "plain" } else { "simd128" });
    let mut cargo = workspace.cargo_with_flags(flags, folder);
    cargo.args(["build", "--quiet", "--package", "tokenwise-wasm", "--lib", "--profile", "wasm", "--target", TARGET]);
    stdout_of(&mut cargo)?;
    Ok(workspace.target.join("xtask").join(folder).join(TARGET).join("wasm/tokenwise_wasm.wasm"))
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
    };
    bindgen.out_name("tokenwise");
    bindgen.generate(folder).with_context(|| format!("JavaScript for {}", module.display()))?;
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
