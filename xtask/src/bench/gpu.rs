//! The chain on a GPU in software: fused, one kernel per tensor operation, and burn's wgpu backend.

use std::fs;

use anyhow::{Context, Result};
use serde_json::Value;

use super::{
    launch::{raised, Progress},
    records::Records,
    tables::{head, or_dash, row, short, LARGE, ROWS_NATIVE},
};
use crate::{
    install::{lavapipe, Need},
    workspace::{stdout_of, Workspace},
};

const FOLDER: &str = "bench/gpu";
/// Name in the records, name in the tables.
const WAYS: [(&str, &str); 4] = [
    ("ours", "**tokenwise**, fused"),
    ("operations", "one kernel per tensor operation"),
    ("burn tuned", "burn, gradient by hand, advantages by doubling"),
    ("burn", "burn, autodiff, advantages by a loop"),
];

pub(super) fn measure(workspace: &Workspace, records: &mut Records, progress: &mut Progress) -> Result<()> {
    Need::Lavapipe.ensure(workspace)?;
    let driver = lavapipe().context("lavapipe not found")?;
    progress.show("gpu: building, with burn (several minutes, once)");
    let folder = "bench-gpu";
    let mut cargo = workspace.cargo_with_flags("", folder);
    cargo.args(["build", "--quiet", "--release", "--locked", "--manifest-path"]);
    stdout_of(cargo.arg(format!("{FOLDER}/Cargo.toml")))?;
    let products = workspace.target.join("xtask").join(folder).join("release");
    let program = products.join(format!("tokenwise-bench-gpu{}", std::env::consts::EXE_SUFFIX));
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".into());
    let load = load.split(' ').take(3).collect::<Vec<_>>().join(", ");
    records.add("gpu", serde_json::json!({ "load": load, "burn": burn_version(workspace)? }));
    let trace = progress.folder.join("gpu-trace");
    let runs: [(&str, &[&str]); 3] =
        [("gpu", &["measure"]), ("gpu-count", &["count", &trace.to_string_lossy()]), ("gpu-growth", &["growth"])];
    for (run, arguments) in runs {
        let mut command = raised(workspace, &program);
        command.args(arguments).env("VK_DRIVER_FILES", &driver).env("VK_ICD_FILENAMES", &driver);
        progress.run(run, &mut command, records)?;
    }
    Ok(())
}

fn burn_version(workspace: &Workspace) -> Result<String> {
    let file = workspace.root.join(FOLDER).join("Cargo.lock");
    let lock = fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let after = lock.split("name = \"burn\"\nversion = \"").nth(1).context("burn is not in the lock file")?;
    Ok(after.split('"').next().unwrap_or_default().into())
}

fn number(records: &Records, run: &str, shape: &str, who: &str, key: &str) -> Option<f64> {
    records.find(run, "gpu", shape, who)?[key].as_f64()
}

/// How many times longer the faster of the two ways in burn takes.
pub(super) fn times_faster(records: &Records, shape: &str) -> Option<f64> {
    let of = |who| records.ratio("gpu", "gpu", shape, who);
    Some(of("burn tuned")?.min(of("burn")?))
}

/// Bytes moved, relative to the way in burn that moves less.
pub(super) fn share_of_bytes(records: &Records, shape: &str) -> Option<f64> {
    let of = |who| number(records, "gpu-count", shape, who, "bytes");
    let least = of("burn tuned")?.min(of("burn").unwrap_or(f64::INFINITY));
    Some(of("ours")? / least)
}

/// Nanoseconds per token, by tokens and by tokens of a response.
fn grown<'a>(records: &'a Records, name: &'a str) -> impl Iterator<Item = (u64, u64, f64)> + 'a {
    let of = move |record: &Value| {
        let (tokens, width) = (record["tokens"].as_u64()?, record["width"].as_u64()?);
        Some((tokens, width, record["ms"].as_f64()? * 1e6 / tokens as f64))
    };
    records.of("gpu-growth").filter(move |record| record["growth"] == name).filter_map(of)
}

/// The most that the time per token grows from a batch to a larger one.
pub(super) fn growth(records: &Records) -> Option<f64> {
    let times: Vec<f64> = grown(records, "gpu chain").map(|(.., time)| time).collect();
    let from = |first: usize| times[first + 1..].iter().map(move |later| (first, *later));
    (0..times.len()).flat_map(from).map(|(first, later)| later / times[first]).reduce(f64::max)
}

/// The largest time per token over the smallest, whichever batch has which.
pub(super) fn spread(records: &Records) -> Option<f64> {
    let times = || grown(records, "gpu chain").map(|(.., time)| time);
    Some(times().reduce(f64::max)? / times().reduce(f64::min)?)
}

/// The time per token of one long row, relative to that of many short ones.
pub(super) fn long_row(records: &Records) -> Option<f64> {
    let times: Vec<f64> = grown(records, "gpu gae").map(|(.., time)| time).collect();
    let [short, long] = times[..] else { return None };
    Some(long / short)
}

pub(super) fn tables(records: &Records) -> String {
    let mut text = String::new();
    let about = |key: &str| records.of("gpu").find_map(|record| record[key].as_str()).unwrap_or("unknown");
    for shape in [LARGE, ROWS_NATIVE] {
        let of = |who, key| number(records, "gpu", shape, who, key);
        let Some(ours) = of("ours", "ms") else { continue };
        if text.is_empty() {
            text += &format!(
                "Adapter: {} ({}), {}. burn {}. Load before: {}.\n\n",
                about("adapter"),
                about("driver"),
                about("backend"),
                about("burn"),
                about("load")
            );
        }
        text += &format!("### chain on a GPU, {shape}\n\n");
        text += &head(&["who", "ms", "× ours", "dispatches", "bytes per token", "loss off by", "gradient off by"]);
        for (who, name) in WAYS {
            let Some(ms) = of(who, "ms") else { continue };
            let counted = |key| number(records, "gpu-count", shape, who, key);
            let whole = |value: Option<f64>| value.map_or("–".into(), |value| format!("{value:.0}"));
            let off = |key| if who == "ours" { "–".into() } else { or_dash(of(who, key)) };
            let (dispatches, bytes) = (whole(counted("dispatches")), whole(counted("bytes")));
            text += &row(&[name.into(), short(ms), short(ms / ours), dispatches, bytes, off("loss"), off("gradient")]);
        }
        text += "\n";
    }
    let rows: Vec<[String; 4]> = ["gpu chain", "gpu gae"]
        .into_iter()
        .flat_map(|name| grown(records, name).map(move |(tokens, width, time)| (name, tokens, width, time)))
        .map(|(name, tokens, width, time)| {
            [name.trim_start_matches("gpu ").into(), tokens.to_string(), width.to_string(), short(time)]
        })
        .collect();
    if !rows.is_empty() {
        text += "### growth on a GPU\n\n";
        text += &head(&["what", "tokens", "tokens of a response", "ns per token"]);
        rows.iter().for_each(|cells| text += &row(cells));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(lines: &[(&str, &str)]) -> Records {
        let mut records = Records::default();
        lines.iter().for_each(|(run, line)| records.add_line(run, line).unwrap());
        records
    }

    #[test]
    fn burn_is_represented_by_its_better_way() {
        let mut lines = Vec::new();
        for (who, ms, bytes) in [("ours", 2, 10), ("burn tuned", 8, 40), ("burn", 6, 80)] {
            let record = |key, value| format!(r#"{{"item":"gpu","shape":"256×4096","who":"{who}","{key}":{value}}}"#);
            lines.push(("gpu", record("ms", ms)));
            lines.push(("gpu-count", record("bytes", bytes)));
        }
        let lines: Vec<(&str, &str)> = lines.iter().map(|(run, line)| (*run, line.as_str())).collect();
        let records = records(&lines);
        assert_eq!(times_faster(&records, LARGE), Some(3.0));
        assert_eq!(share_of_bytes(&records, LARGE), Some(0.25));
        assert!(times_faster(&records, ROWS_NATIVE).is_none());
        assert!(tables(&records).contains("| **tokenwise**, fused | 2.00 | 1.00 | – | 10 | – | – |"));
    }

    #[test]
    fn growth_is_judged_towards_larger_batches() {
        let line = |name, tokens, ms| format!(r#"{{"growth":"{name}","tokens":{tokens},"width":1000,"ms":{ms}}}"#);
        // 300, 100 and 120 ns per token
        let lines = [(10_000, 3), (100_000, 10), (1_000_000, 120)].map(|(tokens, ms)| line("gpu chain", tokens, ms));
        let lines = lines.each_ref().map(|line| ("gpu-growth", line.as_str()));
        let records = records(&lines);
        assert!((growth(&records).unwrap() - 1.2).abs() < 1e-12);
        assert!((spread(&records).unwrap() - 3.0).abs() < 1e-12);
        assert!(long_row(&records).is_none());
        assert!(growth(&Records::default()).is_none() && spread(&Records::default()).is_none());
    }
}
