//! `cargo xtask bits`: checks that every machine computes the recorded bits.

use std::time::Instant;

use anyhow::{bail, Result};
use serde_json::json;

use crate::{
    fingerprints::{differences, read, table, write, Difference, Fingerprints},
    machines::machines,
    tiers::in_ci,
    workspace::Workspace,
};

/// Compare the bits of every formula across machines and with the record
///
/// Runs every formula on every machine available here (native, WebAssembly, Cortex-M and AArch64 in QEMU), prints one
/// fingerprint per formula and number type, and compares each machine with tests/fingerprint/fingerprints.txt. Fails on
/// any difference, and with CI=true also if a machine is missing.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Rewrite the record, if all machines agree; a changed bit belongs in the changelog
    #[arg(long)]
    bless: bool,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result of one machine.
enum Outcome {
    Found(Fingerprints),
    Missing(String),
    Failed(String),
}

pub(crate) fn bits(workspace: &Workspace, options: &Options) -> Result<()> {
    let Options { bless, json: as_json } = *options;
    let path = workspace.root.join("tests/fingerprint/fingerprints.txt");
    let record = read(&path)?;

    let mut outcomes = Vec::new();
    for machine in machines() {
        let start = Instant::now();
        eprintln!("{} …", machine.name);
        let missing = machine.needs.iter().find_map(|need| need.ensure(workspace).err());
        let outcome = match missing {
            Some(reason) => Outcome::Missing(format!("{reason:#}")),
            None => match machine.fingerprints(workspace) {
                Ok(found) => Outcome::Found(found),
                Err(error) => Outcome::Failed(format!("{error:#}")),
            },
        };
        eprintln!("{} … {:.1} s", machine.name, start.elapsed().as_secs_f64());
        outcomes.push((machine.name, outcome));
    }

    let Some(first) = outcomes.iter().find_map(|(_, outcome)| match outcome {
        Outcome::Found(found) => Some(found.clone()),
        _ => None,
    }) else {
        bail!("no machine could be run: {}", reasons(&outcomes));
    };
    // for a new record the machines are compared with each other
    let expected = if bless { &first } else { &record };
    let compared: Vec<(String, Outcome, Vec<Difference>)> = outcomes
        .into_iter()
        .map(|(name, outcome)| {
            let found = match &outcome {
                Outcome::Found(found) => differences(expected, found),
                _ => Vec::new(),
            };
            (name, outcome, found)
        })
        .collect();

    if as_json {
        println!("{}", to_json(&first, &compared));
    } else {
        println!("{}\n", table(&first));
        print_comparison(&compared, if bless { "first machine" } else { "record" });
    }
    let bad = compared.iter().filter(|(_, outcome, differences)| match outcome {
        Outcome::Found(_) => !differences.is_empty(),
        Outcome::Failed(_) => true,
        Outcome::Missing(_) => in_ci(),
    });
    let bad = bad.count();
    if bad > 0 {
        bail!("{bad} of {} machines without the expected bits", compared.len());
    }
    if bless {
        for change in differences(&record, &first) {
            eprintln!("{}", shown(&change, "before", "now"));
        }
        write(&path, &first)?;
        eprintln!("tests/fingerprint/fingerprints.txt: {} fingerprints", first.len());
    }
    Ok(())
}

fn print_comparison(compared: &[(String, Outcome, Vec<Difference>)], basis: &str) {
    for (name, outcome, differences) in compared {
        match outcome {
            Outcome::Found(found) if differences.is_empty() => println!("{name} … {} equal", found.len()),
            Outcome::Found(found) => {
                let equal = found.len().saturating_sub(differences.iter().filter(|d| d.found.is_some()).count());
                println!("{name} … {equal} equal, {} DIFFERENT", differences.len());
                differences.iter().for_each(|difference| println!("    {}", shown(difference, basis, "here")));
            }
            Outcome::Missing(reason) => println!("{name} … skipped: {reason}"),
            Outcome::Failed(reason) => println!("{name} … FAILED: {reason}"),
        }
    }
}

fn shown(difference: &Difference, expected: &str, found: &str) -> String {
    let text = |side: &Option<String>| side.clone().unwrap_or_else(|| "nothing".into());
    format!("{}: {expected} {}, {found} {}", difference.name, text(&difference.expected), text(&difference.found))
}

fn reasons(outcomes: &[(String, Outcome)]) -> String {
    let reasons = outcomes.iter().filter_map(|(name, outcome)| match outcome {
        Outcome::Found(_) => None,
        Outcome::Missing(reason) | Outcome::Failed(reason) => Some(format!("{name}: {reason}")),
    });
    reasons.collect::<Vec<_>>().join("; ")
}

fn to_json(first: &Fingerprints, compared: &[(String, Outcome, Vec<Difference>)]) -> serde_json::Value {
    let machines = compared.iter().map(|(name, outcome, differences)| {
        let (status, reason) = match outcome {
            Outcome::Found(_) if differences.is_empty() => ("equal", None),
            Outcome::Found(_) => ("different", None),
            Outcome::Missing(reason) => ("skipped", Some(reason)),
            Outcome::Failed(reason) => ("failed", Some(reason)),
        };
        let differences: Vec<_> = differences
            .iter()
            .map(|d| json!({ "formula": d.name, "expected": d.expected, "found": d.found }))
            .collect();
        json!({ "name": name, "status": status, "reason": reason, "differences": differences })
    });
    json!({ "fingerprints": first, "machines": machines.collect::<Vec<_>>() })
}
