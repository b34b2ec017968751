//! `tokenwise metrics`: what a trainer would log for a file of rollouts.

mod found;
mod keys;
mod report;

use serde_json::{json, Map, Value};
use tokenwise::Profile;

use crate::{
    args::Metrics,
    failure::{Failure, Result},
    output::{count, print},
    rollout::{read, Rollouts},
};
use found::{Clip, Found};
use report::{Spread, Tally};

pub(crate) fn run(options: &Metrics) -> Result<()> {
    let clip = clip(options)?;
    let mut mine = Tally::default();
    let mut theirs = Tally::default();
    let mut batches = 0_u64;
    let (mut sequences, mut tokens, mut steps) = (0, 0, 0_u64);
    read(&options.reading, &mut |rollouts| {
        let entries = keys::entries(&found(rollouts, options.profile, clip, &options.reading.file)?, options.profile);
        let others = match options.diff {
            Some(other) => keys::entries(&found(rollouts, other, clip, &options.reading.file)?, other),
            None => Vec::new(),
        };
        batches += 1;
        sequences += rollouts.rows.len() as u64;
        tokens += rollouts.tokens() as u64;
        steps += u64::from(rollouts.rows.first().is_some_and(|row| row.step.is_some()));
        if options.json {
            print(&line(rollouts, options, &entries, &others))?;
        }
        mine.add(&entries);
        theirs.add(&others);
        Ok(())
    })?;
    if options.json {
        return Ok(());
    }
    let spread = if batches > 1 { Spread::Batches } else { Spread::One };
    let what = if steps > 0 { "step" } else { "batch" };
    let mut text = format!(
        "{} · {} · {} · {}\n",
        options.profile.name(),
        count(sequences, "sequence"),
        count(tokens, "token"),
        count(batches, what)
    );
    if batches > 1 && steps == 0 {
        text += "The file names no steps and was cut into batches; see --batch-tokens.\n";
    }
    text += "\n";
    match options.diff {
        None => text += &mine.table(spread),
        Some(other) => text += &report::difference(&mine, &theirs, options.profile, other),
    }
    print(&text)
}

fn clip(options: &Metrics) -> Result<Clip> {
    for (name, x) in [("--clip-low", options.clip_low), ("--clip-high", options.clip_high)] {
        if !(x.is_finite() && x >= 0.0) {
            return Err(Failure::usage(format!("{name}: expected a number of at least 0, got {x}")));
        }
    }
    Ok(Clip { low: options.clip_low, high: options.clip_high })
}

fn found(rollouts: &Rollouts, profile: Profile, clip: Clip, path: &std::path::Path) -> Result<Found> {
    Found::of(rollouts, profile, clip).map_err(|error| Failure::input(path, error))
}

fn line(rollouts: &Rollouts, options: &Metrics, entries: &[keys::Entry], others: &[keys::Entry]) -> String {
    let object = |entries: &[keys::Entry]| -> Map<String, Value> {
        entries.iter().map(|entry| (entry.key.to_string(), Value::from(entry.value))).collect()
    };
    let mut line = json!({
        "step": rollouts.rows.first().and_then(|row| row.step),
        "sequences": rollouts.rows.len(),
        "tokens": rollouts.tokens(),
        "profile": options.profile.name(),
        "metrics": object(entries),
    });
    if let Some(other) = options.diff {
        line["diff"] = json!({ "profile": other.name(), "metrics": object(others) });
    }
    format!("{line}\n")
}
