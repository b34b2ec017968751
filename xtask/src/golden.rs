//! `cargo xtask golden`: compares the formulas with the golden cases of a folder.

use std::path::PathBuf;

use anyhow::Result;

use crate::{
    modules,
    workspace::{run, Workspace},
};

/// Run the golden cases below a folder
///
/// Prints one line per operation, every failure with its case, the first difference and both numbers, and at the end
/// how many passed and failed. Fails if any case does. The format is described in tests/golden/README.md.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Every *.json below this folder is run
    #[arg(value_name = "DIR", required_unless_present = "browser")]
    folder: Option<PathBuf>,
    /// Only build the module that runs them on a browser's GPU, in target/gpu-golden; www/tests starts it
    #[arg(long, conflicts_with = "folder")]
    browser: bool,
}

pub(crate) fn golden(workspace: &Workspace, options: &Options) -> Result<()> {
    let Some(folder) = &options.folder else {
        return modules::gpu_golden(workspace, &workspace.target.join("gpu-golden"));
    };
    // relative to the current directory of the user, not to the root
    let folder = std::path::absolute(folder)?;
    let mut cargo = workspace.cargo();
    cargo.args(["run", "--quiet", "--package", "tokenwise-tests", "--bin", "golden", "--"]).arg(folder);
    run(&mut cargo)
}
