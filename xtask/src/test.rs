//! `cargo xtask test`: all tiers, one line each.

use std::{fs, time::Instant};

use anyhow::{bail, Result};

use crate::{
    options::Options,
    runner::{last_lines, Runner},
    tiers::{in_ci, Tier, TIERS},
    workspace::Workspace,
};

pub(crate) const HELP: &str = "\
cargo xtask test [--only TIER[,TIER]] [--verbose]

Installs what is missing (Rust targets, Debian packages, npm packages under target/), runs every tier and sums up. What a tier
printed is in target/xtask/TIER.log; the end of it is shown if the tier fails. A tier that cannot be had here (no root, no
network) is skipped with the reason; with CI=true that is a failure.

  --only TIER[,TIER]   only these, of: fmt, clippy, docs, tests, speed, embedded, bits, wasm, gpu, browser
  --verbose            shows everything the tiers print
";

/// Lines of a failed tier's log that are shown.
const SHOWN: usize = 60;

enum Outcome {
    Passed,
    Failed,
    Skipped,
}

pub(crate) fn test(workspace: &Workspace, mut options: Options) -> Result<()> {
    let only = options.value::<String>("--only")?;
    let verbose = options.flag("--verbose");
    options.finish()?;
    let chosen = choose(only.as_deref())?;
    fs::create_dir_all(workspace.target.join("xtask"))?;

    let (mut summary, mut passed, mut failed, mut skipped) = (String::new(), 0, 0, 0);
    for tier in chosen {
        eprintln!("{} … {}", tier.name, tier.about);
        let start = Instant::now();
        let (outcome, remark) = run(workspace, tier, verbose);
        let word = match outcome {
            Outcome::Passed => {
                passed += 1;
                "ok"
            }
            Outcome::Failed => {
                failed += 1;
                "FAILED"
            }
            Outcome::Skipped => {
                skipped += 1;
                "skipped"
            }
        };
        let line = format!("{:9} … {word:8} {:4} s  {remark}", tier.name, start.elapsed().as_secs());
        eprintln!("{}", line.trim_end());
        summary.push_str(line.trim_end());
        summary.push('\n');
    }
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    println!("\n{summary}{passed} passed, {failed} failed{skipped}");
    if failed > 0 {
        bail!("not all tiers passed; their logs are in {}", workspace.target.join("xtask").display());
    }
    Ok(())
}

fn choose(only: Option<&str>) -> Result<Vec<&'static Tier>> {
    let Some(only) = only else { return Ok(TIERS.iter().collect()) };
    let known = TIERS.map(|tier| tier.name);
    if let Some(unknown) = only.split(',').find(|name| !known.contains(name)) {
        bail!("there is no tier {unknown:?}; there are {}", known.join(", "));
    }
    Ok(TIERS.iter().filter(|tier| only.split(',').any(|name| name == tier.name)).collect())
}

/// Runs one tier; the remark is for the summary and has one line.
fn run(workspace: &Workspace, tier: &Tier, verbose: bool) -> (Outcome, String) {
    let missing = tier.needs.iter().find_map(|need| need.ensure(workspace).err().map(|error| (need, error)));
    if let Some((need, error)) = missing {
        let reason = format!("{need:?}: {error:#}");
        eprintln!("{reason}");
        let outcome = if in_ci() { Outcome::Failed } else { Outcome::Skipped };
        return (outcome, reason.lines().next().unwrap_or_default().to_owned());
    }
    let log = workspace.target.join("xtask").join(format!("{}.log", tier.name));
    let result = (|| {
        let mut runner = Runner::new(tier.name, &log, verbose)?;
        // made first: a folder without tests fails at once
        let mut steps = (tier.steps)(workspace)?;
        steps.iter_mut().try_for_each(|step| runner.run(step))
    })();
    match result {
        Ok(()) => (Outcome::Passed, String::new()),
        Err(error) => {
            if !verbose {
                eprintln!("{}", last_lines(&log, SHOWN));
            }
            let reason = format!("{error:#}");
            eprintln!("{reason}");
            (Outcome::Failed, reason.lines().next().unwrap_or_default().to_owned())
        }
    }
}
