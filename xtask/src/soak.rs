//! `cargo xtask soak`: random batches for as long as there is time.

use std::{
    process::Command,
    time::{Duration, Instant},
};

use anyhow::{bail, Context, Result};

use crate::{
    fingerprints::{differences, parse},
    machines::native_programs,
    terminal::say,
    workspace::{run, stdout_of, Workspace},
};

/// Rounds of fingerprints for each round of the slower properties.
const ROUNDS: u32 = 32;
/// Random batches per property.
const BATCHES: &str = "300";

/// Compare random batches across instruction sets, layouts, types and threads, for hours
///
/// Each round has a seed. Every formula computes batches of other lengths, masks and numbers (also extreme and undefined
/// ones) as the baseline, with the vector instructions found at run time, and with AVX2 compiled in: all bits must be
/// equal. From time to time the properties (padded against packed, batch against its parts, f32 and f64 against the
/// textbook) and the formulas on one and on several threads are tried on batches of the same seed. A failure names the
/// seed; `--seed` repeats it.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Ends after the round that is under way then
    #[arg(long, value_name = "N", default_value_t = 60)]
    minutes: u32,
    /// The first seed
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..))]
    seed: u32,
}

pub(crate) fn soak(workspace: &Workspace, options: &Options) -> Result<()> {
    let end = Instant::now() + Duration::from_secs(60 * u64::from(options.minutes));
    say("building …");
    let programs = native_programs(workspace)?;
    let Some(((_, baseline), others)) = programs.split_first() else { bail!("there is no program to run") };
    let mut seed = options.seed;
    let mut compared = 0;
    loop {
        let seed_text = seed.to_string();
        let fingerprints = |program| parse(&stdout_of(Command::new(program).arg(&seed_text))?);
        let expected = fingerprints(baseline)?;
        for (name, program) in others {
            let found = differences(&expected, &fingerprints(program)?);
            if !found.is_empty() {
                let names: Vec<&str> = found.iter().map(|difference| difference.name.as_str()).collect();
                bail!("seed {seed}: {name} differs from the baseline in {}", names.join(", "));
            }
            compared += expected.len();
        }
        if (seed - options.seed).is_multiple_of(ROUNDS) {
            say(&format!("seed {seed}: {compared} fingerprints compared; properties and threads …"));
            for arguments in [
                "test --release --quiet --package tokenwise-tests --test suite properties::",
                "test --release --quiet --package tokenwise --features rayon --lib the_number_of_threads",
            ] {
                let mut test = workspace.cargo();
                test.args(arguments.split_whitespace());
                test.env("TOKENWISE_SEED", &seed_text).env("QUICKCHECK_TESTS", BATCHES);
                run(&mut test).with_context(|| format!("seed {seed}"))?;
            }
        }
        if Instant::now() >= end {
            say(&format!("seeds {} to {seed}: {compared} fingerprints, no difference", options.seed));
            return Ok(());
        }
        seed = seed.checked_add(1).context("all seeds were tried")?;
    }
}
