//! `cargo xtask deep`: checks that take hours and seldom fail.

use std::{process::Command, time::Duration};

use anyhow::Result;

use crate::{
    fuzz,
    install::Need,
    mutants,
    schedule::{run_tiers, Plan},
    test::{choose, names},
    tiers::{miri, miri_threads, xtask, Tier, MIRI_NEEDS},
    workspace::Workspace,
};

/// Mutation testing takes a minute or more per mutant.
const LIMIT: Duration = Duration::from_secs(24 * 60 * 60);
const PUBLISHED: [&str; 4] = ["tokenwise", "tokenwise-lint", "tokenwise-recorder", "tokenwise-gpu"];

const CHECKS: [Tier; 6] = [
    Tier {
        name: "api",
        about: "lists the public interface of the crates in its log; a report, not a test",
        folder: "api",
        needs: &[Need::Toolchain("nightly", &[]), Need::Tool("cargo-public-api", "0.52.0")],
        steps: api,
    },
    Tier {
        name: "long-fuzz",
        about: "an hour of random bytes to each of the formulas, the readers and the decoders",
        folder: "fuzz",
        needs: &fuzz::NEEDS,
        steps: |workspace| Ok(vec![xtask(workspace, "fuzz --minutes 240")?]),
    },
    Tier {
        name: "soak",
        about: "two hours of random batches on every instruction set, layout, type and number of threads",
        folder: "bits",
        needs: &[],
        steps: |workspace| Ok(vec![xtask(workspace, "soak --minutes 120")?]),
    },
    Tier {
        name: "long-miri",
        about: "undefined behaviour, in all unit tests of core and in the code that runs on threads",
        folder: "miri",
        needs: &MIRI_NEEDS,
        steps: |workspace| Ok(vec![miri(workspace, &[]), miri_threads(workspace)]),
    },
    Tier {
        name: "mutants",
        about: "whether the tests notice changed code, 200 changes of it",
        folder: "mutants",
        needs: &mutants::NEEDS,
        steps: |workspace| Ok(vec![xtask(workspace, "mutants")?]),
    },
    Tier {
        name: "tensorboard",
        about: "event files of the recorder, read by TensorBoard's own reader and imported by trackio",
        folder: "debug",
        needs: &[Need::Program("python3", "python3-venv")],
        steps: |workspace| Ok(vec![tensorboard(workspace)]),
    },
];

/// Run the checks that take hours and seldom fail
///
/// Hours of fuzzing and of random batches, miri over all unit tests of the core, mutation testing of losses, advantages
/// and the code under every formula, event files read by TensorBoard and trackio, and a listing of the public
/// interface. Reports like `cargo xtask test`; logs are in target/xtask/CHECK.log.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these checks, separated by commas
    #[arg(long, value_name = "CHECK", value_delimiter = ',', value_parser = names(&CHECKS))]
    only: Vec<String>,
    /// Checks at the same time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Show everything the checks print
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn deep(workspace: &Workspace, options: &Options) -> Result<()> {
    let plan = Plan { jobs: options.jobs, verbose: options.verbose, limit: LIMIT };
    run_tiers(workspace, &choose(&CHECKS, &options.only), plan)
}

fn api(workspace: &Workspace) -> Result<Vec<Command>> {
    let list = |package: &str| {
        let mut command = workspace.with_toolchain("nightly", workspace.tool("cargo-public-api"));
        // -sss leaves out what the compiler derives or implements for every type
        command.args(["public-api", "-sss", "--all-features", "--package", package]);
        command.env("CARGO_TARGET_DIR", workspace.target.join("xtask/api"));
        command
    };
    Ok(PUBLISHED.iter().map(|package| list(package)).collect())
}

fn tensorboard(workspace: &Workspace) -> Command {
    let mut command = workspace.cargo();
    command.args(["test", "--package", "tokenwise-recorder", "--features", "tensorboard", "--test", "suite"]);
    command.args(["--", "--ignored", "tensorboard_reads", "trackio_imports"]);
    command
}
