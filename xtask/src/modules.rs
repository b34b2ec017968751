//! Builds modules that the page or its tests load beside the library: the reader of rollout files, and the golden cases
//! for a browser's GPU.

use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::{
    install::Need,
    workspace::{stdout_of, Workspace},
};

const TARGET: &str = "wasm32-unknown-unknown";

/// Writes the reader of rollout files and its JavaScript into a folder.
pub(crate) fn reader(workspace: &Workspace, folder: &Path) -> Result<()> {
    module(workspace, "tokenwise-reader-wasm", "wasm", "reader", folder)
}

/// Writes the golden cases for a browser's GPU into a folder. Compiling them fast matters more than their speed: the
/// device takes most of the time.
pub(crate) fn gpu_golden(workspace: &Workspace, folder: &Path) -> Result<()> {
    module(workspace, "tokenwise-gpu-golden", "tool", "golden", folder)
}

fn module(workspace: &Workspace, package: &str, profile: &str, name: &str, folder: &Path) -> Result<()> {
    Need::Target(TARGET).ensure(workspace)?;
    eprintln!("{package} …");
    let mut cargo = workspace.cargo_with_flags("", name);
    cargo.args(["build", "--quiet", "--package", package, "--lib", "--profile", profile]);
    stdout_of(cargo.args(["--target", TARGET]))?;
    let file = format!("{}.wasm", package.replace('-', "_"));
    let module = workspace.target.join("xtask").join(name).join(TARGET).join(profile).join(file);
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&module).typescript(true).remove_name_section(true).remove_producers_section(true);
    bindgen.web(true)?.omit_default_module_path(false).out_name(name);
    bindgen.generate(folder).with_context(|| format!("JavaScript for {}", module.display()))
}
