//! `cargo xtask golden`: what the formulas give for the recorded inputs, as files.

use anyhow::{bail, Result};

use crate::{
    options::Options,
    workspace::{run, Workspace},
};

pub(crate) const HELP: &str = "\
cargo xtask golden DIR

Computes every golden case with this library and writes the results to DIR.
";

pub(crate) fn golden(workspace: &Workspace, mut options: Options) -> Result<()> {
    let Some(folder) = options.positional() else { bail!("where to? cargo xtask golden DIR") };
    options.finish()?;
    // relative to where the user stands, not to the root
    let folder = std::path::absolute(folder)?;
    let mut cargo = workspace.cargo();
    cargo.args(["run", "--quiet", "--package", "tokenwise-tests", "--bin", "golden", "--"]).arg(folder);
    run(&mut cargo)
}
