//! `cargo xtask test`: every tier of tests.

use std::time::Duration;

use anyhow::Result;
use clap::builder::PossibleValuesParser;

use crate::{
    schedule::{run_tiers, Plan},
    tiers::{Tier, ON_REQUEST, TIERS},
    workspace::Workspace,
};

/// No command of a tier takes this long, even on a busy machine.
const LIMIT: Duration = Duration::from_secs(50 * 60);

/// Install what is missing, then run every tier of tests
///
/// Prints what is missing (Rust toolchains and targets, Debian packages, npm packages, cargo tools under target/),
/// installs it, runs the tiers, and ends with one line per tier and the totals. What a tier printed is in
/// target/xtask/TIER.log; the end of it is shown if the tier fails. A tier whose needs cannot be installed here (no
/// root, no network) is skipped with the reason; with CI=true that is a failure. Two tiers run only
/// if they are named: python-frameworks, which installs torch, verl, TRL and OpenRLHF under target/, and burn-gpu, which
/// compiles burn's wgpu backend.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only these tiers, separated by commas
    #[arg(long, value_name = "TIER", value_delimiter = ',', value_parser = all_names())]
    only: Vec<String>,
    /// Tiers at the same time
    #[arg(long, value_name = "N", default_value_t = 2)]
    jobs: usize,
    /// Show everything the tiers print
    #[arg(long)]
    verbose: bool,
}

pub(crate) fn test(workspace: &Workspace, options: &Options) -> Result<()> {
    let plan = Plan { jobs: options.jobs, verbose: options.verbose, limit: LIMIT };
    let mut tiers = choose(&TIERS, &options.only);
    tiers.extend(ON_REQUEST.iter().filter(|tier| options.only.iter().any(|name| name == tier.name)));
    run_tiers(workspace, &tiers, plan)
}

fn all_names() -> PossibleValuesParser {
    PossibleValuesParser::new(TIERS.iter().chain(&ON_REQUEST).map(|tier| tier.name))
}

/// The names of tiers, for the arguments.
pub(crate) fn names(tiers: &[Tier]) -> PossibleValuesParser {
    PossibleValuesParser::new(tiers.iter().map(|tier| tier.name))
}

/// The named tiers, or all if none is named.
pub(crate) fn choose<'a>(tiers: &'a [Tier], only: &[String]) -> Vec<&'a Tier> {
    tiers.iter().filter(|tier| only.is_empty() || only.iter().any(|name| name == tier.name)).collect()
}
