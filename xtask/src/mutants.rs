//! `cargo xtask mutants`: whether the tests notice changed code.

use std::{
    fs,
    path::Path,
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{bail, Context, Result};

use crate::{
    install::Need,
    terminal::say,
    workspace::{run, shown, stdout_of, Workspace},
};

pub(crate) const NEEDS: [Need; 1] = [Need::Tool("cargo-mutants", "27.1.0")];

/// What is changed: losses, advantages, and the code under every formula.
const MUTATED: [&str; 8] = [
    "core/src/loss/**",
    "core/src/advantage/**",
    "core/src/error.rs",
    "core/src/groups.rs",
    "core/src/layout.rs",
    "core/src/recursion.rs",
    "core/src/reduce.rs",
    "core/src/statistics.rs",
];
/// Survivors that are explained, each as the name that cargo-mutants gives it, without line and column.
const EXPLAINED: &str = "docs/mutants.md";
/// A mutant may take so many times as long as the code without a change, and at least this long.
const SLOWER: u32 = 5;
const SHORTEST: Duration = Duration::from_secs(60);
/// Exit codes of cargo-mutants: all were caught; some were missed; some ran out of time, which counts as caught.
const ENDED: [i32; 3] = [0, 2, 3];

/// Change the core in many small ways and see whether the tests notice
///
/// Takes a sample of the mutants that cargo-mutants makes of the losses, the advantages and the code under every
/// formula, spread evenly over the files. Each is built and tested alone, first with the unit tests of the core, which
/// is quick; what survives them meets the golden cases and properties. Fails if a survivor is not explained in
/// docs/mutants.md. One mutant takes a quarter of a minute, a survivor of the unit tests some minutes.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Mutants in the sample, about; 0 for all
    #[arg(long, value_name = "N", default_value_t = 200)]
    count: usize,
    /// Which of the possible samples
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: usize,
}

pub(crate) fn mutants(workspace: &Workspace, options: &Options) -> Result<()> {
    NEEDS.iter().try_for_each(|need| need.ensure(workspace))?;
    let list = stdout_of(cargo_mutants(workspace, &MUTATED).arg("--list"))?;
    let total = list.lines().count();
    let shards = total.checked_div(options.count).unwrap_or(1).max(1);
    let shard = format!("{}/{shards}", options.seed % shards);
    say(&format!("{total} mutants, of which every {shards}th, beginning with number {}", options.seed % shards));
    let output = workspace.target.join("xtask/mutants");
    if output.exists() {
        // no results of an earlier run
        fs::remove_dir_all(&output).with_context(|| output.display().to_string())?;
    }
    fs::create_dir_all(&output).with_context(|| output.display().to_string())?;
    let tested_by = |package: &str, files: &[&str]| {
        let mut command = cargo_mutants(workspace, files);
        command.args(["--profile", "mutants", "--no-shuffle", "--test-package", package]).arg("--output").arg(&output);
        command
    };
    let mut quick = tested_by("tokenwise", &MUTATED);
    quick.args(["--shard", &shard, "--sharding", "round-robin", "--features", "rayon"]);
    // with threads, which the suite has not; without tests of what is not changed, most of the time of all unit tests
    ended(quick.args(["--", "--lib", "--", "--skip", "math::", "--skip", "exact::"]))?;
    let missed = output.join("mutants.out/missed.txt");
    let survivors = read(&missed)?;
    if !survivors.is_empty() {
        let limit = (SLOWER * suite(workspace)?).max(SHORTEST).as_secs().to_string();
        let files: Vec<&str> = survivors.lines().filter_map(|mutant| mutant.split(':').next()).collect();
        let mut thorough = tested_by("tokenwise-tests", &files);
        // by name: a shard of what is left would be other mutants; deleted fields are tested whatever is named
        survivors.lines().for_each(|mutant| {
            thorough.args(["--re", &exactly(mutant)]);
        });
        ended(thorough.args(["--baseline", "skip", "--timeout", &limit, "--", "--test", "suite"]))?;
    }

    let missed = read(&missed)?;
    let explained = read(&workspace.root.join(EXPLAINED))?;
    let missed = missed.lines().filter(|mutant| survivors.lines().any(|survivor| survivor == *mutant));
    let (known, new): (Vec<&str>, Vec<&str>) =
        missed.partition(|mutant| explained.contains(&format!("`{}`", without_place(mutant))));
    say(&format!("{} survivors that {EXPLAINED} explains, {} others", known.len(), new.len()));
    if new.is_empty() {
        return Ok(());
    }
    bail!("no test notices:\n{}", new.join("\n"));
}

fn read(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| path.display().to_string())
}

/// Runs the suite without a mutant; returns how long it takes. cargo-mutants would run the tests of the changed package
/// instead, whatever `--test-package` says.
fn suite(workspace: &Workspace) -> Result<Duration> {
    let test = |more: &[&str]| {
        let mut command = workspace.cargo();
        command.args(["test", "--profile", "mutants", "--package", "tokenwise-tests", "--test", "suite"]).args(more);
        command.env("CARGO_TARGET_DIR", workspace.target.join("xtask/mutants-suite"));
        run(&mut command)
    };
    test(&["--no-run"])?;
    let start = Instant::now();
    test(&[])?;
    Ok(start.elapsed())
}

fn cargo_mutants(workspace: &Workspace, files: &[&str]) -> Command {
    let mut command = workspace.command(workspace.tool("cargo-mutants"));
    command.args(["mutants", "--package", "tokenwise"]);
    files.iter().for_each(|files| {
        command.args(["--file", files]);
    });
    command
}

/// Runs cargo-mutants; that mutants survive is no failure of the program.
fn ended(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run `{}`", shown(command)))?;
    if status.code().is_some_and(|code| ENDED.contains(&code)) {
        return Ok(());
    }
    bail!("`{}` failed ({status})", shown(command));
}

/// A regular expression for one text.
fn exactly(text: &str) -> String {
    let escaped = text.chars().map(|letter| match letter {
        letter if letter.is_alphanumeric() || letter == ' ' => letter.to_string(),
        letter => format!("\\x{{{:x}}}", u32::from(letter)),
    });
    format!("^{}$", escaped.collect::<String>())
}

/// `FILE:LINE:COLUMN: CHANGE` as `FILE: CHANGE`, which stays the same when other lines change.
fn without_place(mutant: &str) -> String {
    let (place, change) = mutant.split_once(": ").unwrap_or((mutant, ""));
    format!("{}: {change}", place.split(':').next().unwrap_or(place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_escaped() {
        assert_eq!(exactly("a.rs:1: replace * with /"), r"^a\x{2e}rs\x{3a}1\x{3a} replace \x{2a} with \x{2f}$");
    }

    #[test]
    fn a_mutant_is_known_whatever_its_line() {
        let mutant = "core/src/loss/value.rs:87:13: replace Loss::token -> (R, R) with (R::from(1), R::zero())";
        let name = "core/src/loss/value.rs: replace Loss::token -> (R, R) with (R::from(1), R::zero())";
        assert_eq!(without_place(mutant), name);
    }
}
