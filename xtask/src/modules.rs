//! Builds the reader of rollout files for the page: a module of its own, loaded when own data is opened.

use std::path::Path;

use anyhow::{Context, Result};
use wasm_bindgen_cli_support::Bindgen;

use crate::{
    install::Need,
    workspace::{stdout_of, Workspace},
};

const TARGET: &str = "wasm32-unknown-unknown";

/// Writes the module and its JavaScript into a folder.
pub(crate) fn reader(workspace: &Workspace, folder: &Path) -> Result<()> {
    Need::Target(TARGET).ensure(workspace)?;
    eprintln!("tokenwise-reader-wasm …");
    let mut cargo = workspace.cargo_with_flags("", "reader");
    cargo.args(["build", "--quiet", "--package", "tokenwise-reader-wasm", "--lib", "--profile", "wasm"]);
    stdout_of(cargo.args(["--target", TARGET]))?;
    let module = workspace.target.join("xtask/reader").join(TARGET).join("wasm/tokenwise_reader_wasm.wasm");
    let mut bindgen = Bindgen::new();
    bindgen.input_path(&module).typescript(true).remove_name_section(true).remove_producers_section(true);
    bindgen.web(true)?.omit_default_module_path(false).out_name("reader");
    bindgen.generate(folder).with_context(|| format!("JavaScript for {}", module.display()))
}
