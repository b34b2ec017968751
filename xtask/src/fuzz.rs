//! `cargo xtask fuzz`: every fuzz target for some time.

use std::{fs, process::Command};

use anyhow::{bail, Context, Result};

use crate::{
    install::Need,
    terminal::say,
    workspace::{run, stdout_of, Workspace},
};

/// What fuzzing needs: cargo-fuzz works with nightly only, and libFuzzer is C++.
pub(crate) const NEEDS: [Need; 3] =
    [Need::Toolchain("nightly", &[]), Need::Program("c++", "g++"), Need::Tool("cargo-fuzz", "0.13.2")];
/// A single input that takes this many seconds is a failure.
const TIMEOUT: u32 = 60;

/// Feed random bytes to every formula, reader and decoder
///
/// Builds the fuzz targets of fuzz/ (formulas, readers of rollout files, golden cases), runs them one after the other,
/// then the decoder of the page's links, each for the same share of the time. Inputs that reach new code are kept in
/// target/xtask/fuzz-corpus and are where the next run begins; an input that fails is written to fuzz/artifacts.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Minutes for all of them together
    #[arg(long, value_name = "N", default_value_t = 1)]
    minutes: u32,
}

pub(crate) fn fuzz(workspace: &Workspace, options: &Options) -> Result<()> {
    NEEDS.iter().try_for_each(|need| need.ensure(workspace))?;
    let targets = stdout_of(&mut cargo_fuzz(workspace, "list"))?;
    if targets.trim().is_empty() {
        bail!("there are no fuzz targets in fuzz/");
    }
    let names: Vec<&str> = targets.split_whitespace().collect();
    // the decoder of links is one more
    let seconds = (60 * options.minutes / (names.len() as u32 + 1)).max(1);
    let build = workspace.target.join("xtask/fuzz");
    run(cargo_fuzz(workspace, "build").arg("--target-dir").arg(&build))?;
    for target in names {
        let corpus = workspace.target.join("xtask/fuzz-corpus").join(target);
        fs::create_dir_all(&corpus).with_context(|| corpus.display().to_string())?;
        say(&format!("{target}, {seconds} seconds …"));
        let mut fuzz = cargo_fuzz(workspace, "run");
        fuzz.arg("--target-dir").arg(&build).arg(target).arg(corpus);
        // what is kept in the repository is read, never written
        let kept = workspace.root.join("fuzz/corpus").join(target);
        if kept.is_dir() {
            fuzz.arg(kept);
        }
        fuzz.arg("--");
        fuzz.args([format!("-max_total_time={seconds}"), format!("-timeout={TIMEOUT}")]);
        run(fuzz.arg("-print_final_stats=1"))?;
    }
    say(&format!("links of the page, {seconds} seconds …"));
    run(Command::new("node").arg(workspace.root.join("fuzz/link.mjs")).arg(seconds.to_string()))
}

fn cargo_fuzz(workspace: &Workspace, command: &str) -> Command {
    let mut fuzz = workspace.with_toolchain("nightly", workspace.tool("cargo-fuzz"));
    fuzz.arg(command);
    fuzz
}
