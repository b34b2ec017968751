//! `cargo xtask golden`: whether the formulas give what the cases of a folder say.

use anyhow::{bail, Result};

use crate::{
    options::Options,
    workspace::{run, Workspace},
};

pub(crate) const HELP: &str = "\
cargo xtask golden DIR

Runs the cases of every *.json below DIR: one line per operation, every failure with its case, the first difference and both
numbers, and at the end how many passed and failed. Fails if any did. The format stands in tests/golden/README.md.
";

pub(crate) fn golden(workspace: &Workspace, mut options: Options) -> Result<()> {
    let Some(folder) = options.positional() else { bail!("which folder? cargo xtask golden DIR") };
    options.finish()?;
    // relative to where the user stands, not to the root
    let folder = std::path::absolute(folder)?;
    let mut cargo = workspace.cargo();
    cargo.args(["run", "--quiet", "--package", "tokenwise-tests", "--bin", "golden", "--"]).arg(folder);
    run(&mut cargo)
}
