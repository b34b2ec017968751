//! `tokenwise metrics`: what a trainer would log for a file of rollouts.

mod diff;
mod engine;
mod inputs;
mod merge;
mod names;
mod paper;
mod report;
mod sets;
mod steps;

use serde_json::{json, Map, Value};
use tokenwise::Profile;
use tokenwise_reader::Budget;

use crate::{
    args::Metrics,
    failure::{Failure, Result},
    input::check_output,
    output::{count, print, wrapped},
    plot::{save, Format},
    rollout::{Files, Rollouts, Summary},
};
use diff::{AllDiffer, Comparer, Differs};
use engine::Compute;
use inputs::Inputs;
use merge::{explained, Merged};
use names::Compared;
use sets::Entry;
use steps::Steps;

/// Numbers per token that are computed beside a batch: copies, gradients, weights, scores.
const COMPUTED: u64 = 8;
/// The same for a comparison of two profiles.
const COMPARED: u64 = 48;

/// What has been read of the file.
#[derive(Debug, Default)]
struct Seen {
    mine: Merged,
    theirs: Merged,
    differ: AllDiffer,
    batches: u64,
    steps: u64,
    sequences: u64,
    tokens: u64,
}

/// Results under the other framework's conventions.
struct Other {
    profile: Profile,
    entries: Vec<Entry>,
    results: Option<Vec<Differs>>,
}

pub(crate) fn run(options: &Metrics, memory: Budget) -> Result<()> {
    check(options)?;
    let files = Files::new(&options.reading, memory)?;
    if let Some(plot) = &options.plot {
        Format::of(plot)?;
        check_output(plot, &files.paths)?;
    }
    let mut seen = Seen::default();
    let mut steps = Steps::new(options, memory);
    let mut comparer = Comparer::default();
    let compute = Compute::new(options.engine)?;
    let summary = files.read(&mut |rollouts| {
        let failed = |error: tokenwise::Error| files.failure(error);
        let columns = if options.diff.is_some() { COMPARED } else { COMPUTED };
        let size = 8 * rollouts.tokens() as u64 * columns + 256 * rollouts.rows.len() as u64;
        files.check_memory("what is computed from a batch", rollouts, size)?;
        let inputs = Inputs::new(rollouts, &compute).map_err(failed)?;
        let mut entries = sets::entries(&inputs, options.profile, options).map_err(failed)?;
        if !options.keys.is_empty() {
            entries.retain(|(key, _)| options.keys.iter().any(|wanted| wanted == key));
        }
        let other = match options.diff {
            Some(profile) => Some(Other {
                profile,
                entries: sets::entries(&inputs, profile, options).map_err(failed)?,
                results: comparer.run(&inputs, [options.profile, profile], options).map_err(failed)?,
            }),
            None => None,
        };
        seen.add(rollouts, &entries, other.as_ref(), options.profile).map_err(failed)?;
        steps.add(rollouts, &entries)?;
        match () {
            () if options.json => print(&line(rollouts, options.profile, &entries, other.as_ref())),
            // a file that grows is reported as it does
            () if options.reading.follow && !options.csv => print(&steps.follow(rollouts, &entries)),
            () => Ok(()),
        }
    })?;
    compute.report();
    if seen.mine.0.is_empty() {
        return Err(files.failure(nothing(&summary, options)));
    }
    if let Some(plot) = &options.plot {
        save(&steps.figure(), plot, 2.0, memory)?;
    }
    match () {
        () if options.json && seen.batches > 1 => print(&seen.line(options.profile)),
        () if options.json => Ok(()),
        () if options.csv => print(&steps.csv()),
        () if options.steps => print(&steps.table()),
        () => print(&seen.text(options)),
    }
}

/// Why there is no metric.
fn nothing(summary: &Summary, options: &Metrics) -> String {
    let found: Vec<&str> = summary.found.iter().map(|(_, name)| name.as_str()).collect();
    let found = if found.is_empty() { "no known field".into() } else { found.join(", ") };
    match options.keys.is_empty() {
        true => format!("nothing can be computed from {found}; see docs/rollout-files.md for what each metric needs"),
        false => format!("none of --keys {} can be computed from {found}", options.keys.join(",")),
    }
}

fn check(options: &Metrics) -> Result<()> {
    let coefficient = |x: Option<f64>| x.unwrap_or(0.0);
    for (name, x) in [("--clip-low", options.clip_low), ("--clip-high", options.clip_high)] {
        if !(x.is_finite() && x >= 0.0) {
            return Err(Failure::usage(format!("{name}: expected a number of at least 0, got {x}")));
        }
    }
    for (name, x) in [
        ("--kl-coefficient", coefficient(options.kl_coefficient)),
        ("--entropy-coefficient", coefficient(options.entropy_coefficient)),
    ] {
        if !x.is_finite() {
            return Err(Failure::usage(format!("{name}: expected a finite number, got {x}")));
        }
    }
    Ok(())
}

impl Seen {
    fn add(
        &mut self,
        rollouts: &Rollouts,
        entries: &[Entry],
        other: Option<&Other>,
        profile: Profile,
    ) -> tokenwise::Result<()> {
        self.batches += 1;
        self.sequences += rollouts.rows.len() as u64;
        self.tokens += rollouts.tokens() as u64;
        self.steps += u64::from(rollouts.rows.first().is_some_and(|row| row.step.is_some()));
        self.mine.add(entries, profile)?;
        if let Some(other) = other {
            self.theirs.add(&other.entries, other.profile)?;
            other.results.iter().for_each(|results| self.differ.add(results));
        }
        Ok(())
    }

    /// All batches as JSON.
    fn line(&self, profile: Profile) -> String {
        let rules: Map<String, Value> = self.mine.0.iter().map(|line| (line.key.into(), line.rule().into())).collect();
        let line = json!({
            "batches": self.batches, "sequences": self.sequences, "tokens": self.tokens, "profile": profile.name(),
            "metrics": object(&self.mine.entries()), "merged_by": rules,
        });
        format!("{line}\n")
    }

    fn text(self, options: &Metrics) -> String {
        let what = if self.steps > 0 { "step" } else { "batch" };
        let mut text = format!(
            "{} · {} · {} · {}\n",
            options.profile.name(),
            count(self.sequences, "sequence"),
            count(self.tokens, "token"),
            count(self.batches, what)
        );
        if self.batches > 1 && self.steps == 0 {
            text += "The file has no steps and was split into batches; see --batch-tokens.\n";
        }
        if self.batches > 1 {
            text += &wrapped(explained(options.profile), "");
        }
        text += "\n";
        let Some(other) = options.diff else { return text + &report::metrics(&self.mine, self.batches) };
        let profiles = [options.profile, other];
        text += &report::keys([&self.mine, &self.theirs], profiles);
        text + "\n" + &self.differ.table(profiles, self.batches > 1)
    }
}

fn object(entries: &[Entry]) -> Map<String, Value> {
    entries.iter().map(|(key, value)| (key.to_string(), Value::from(*value))).collect()
}

fn line(rollouts: &Rollouts, profile: Profile, entries: &[Entry], other: Option<&Other>) -> String {
    let mut line = json!({
        "step": rollouts.rows.first().and_then(|row| row.step),
        "sequences": rollouts.rows.len(),
        "tokens": rollouts.tokens(),
        "profile": profile.name(),
        "metrics": object(entries),
    });
    if let Some(other) = other {
        let found = Compared::of([entries, &other.entries], [profile, other.profile]);
        let differ: Vec<Value> = found
            .differ
            .iter()
            .map(|[(a, x), (b, y)]| json!({ "keys": [a, b], "values": [x, y], "difference": (x - y).abs() }))
            .collect();
        let results = other.results.as_ref();
        line["diff"] = json!({
            "profile": other.profile.name(),
            "metrics": object(&other.entries),
            "differ": differ,
            "only_here": found.only[0],
            "only_there": found.only[1],
            "results": results.map(|found| found.iter().map(Differs::json).collect::<Vec<_>>()),
        });
    }
    format!("{line}\n")
}
