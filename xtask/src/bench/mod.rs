//! `cargo xtask bench`: times the formulas, beside other implementations and beside the bandwidth of the memory.

mod counts;
mod embedded;
mod floors;
mod gpu;
mod launch;
mod native;
mod page;
mod records;
mod tables;
mod wasm;

use std::fs;

use anyhow::{bail, Context, Result};
use clap::builder::PossibleValuesParser;

use self::{launch::Progress, native::Native, records::Records};
use crate::workspace::Workspace;

/// Measurements that are not one formula's.
const PARTS: [&str; 5] = ["growth", "counts", "wasm", "embedded", "gpu"];
const ITEMS: [&str; 13] = [
    "gae",
    "grpo",
    "ppo-forward",
    "ppo",
    "analysis",
    "returns",
    "kl",
    "whiten",
    "step",
    "logits-f32",
    "logits-bf16",
    "logits-gradient-f32",
    "logits-gradient-bf16",
];
const PAGE: &str = "docs/benchmarks.md";

/// Measure speed, beside peers and the limits of the machine
///
/// Times the formulas and their counterparts in verl, TRL, tianshou, JAX, torch and torch.compile, alternating in one
/// process on the same buffers. Prints time, tokens per second, ratios, shares of the copy and read limits, bits and
/// errors. The peers are installed, pinned, into a private Python environment below target/ (about 6 GB, once). Part
/// gpu runs the chain on a software GPU, beside burn, which is built from bench/gpu with a lock file of its own.
#[derive(clap::Args)]
pub(crate) struct Options {
    /// Only the formulas and the limits: no Python, under three minutes
    #[arg(long)]
    quick: bool,
    /// Only this item or part
    #[arg(long, value_name = "ITEM", value_parser = PossibleValuesParser::new(ITEMS.into_iter().chain(PARTS)))]
    only: Option<String>,
    /// 1 or 2 threads; both if not given (2 needs the library's feature rayon)
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=2))]
    threads: Option<u8>,
    /// Print the records, one per line, instead of tables
    #[arg(long)]
    json: bool,
    /// Write docs/benchmarks.md. Numbers that are compared come from one run: either everything is measured, or with
    /// --only a part that has a section of its own, and only this section and its bounds are replaced
    #[arg(long, conflicts_with_all = ["quick", "threads"])]
    write: bool,
}

pub(crate) fn bench(workspace: &Workspace, options: &Options) -> Result<()> {
    let Options { quick, json, write, .. } = *options;
    let (only, threads) = (options.only.as_deref(), options.threads.map(usize::from));
    if let Some(item) = only.filter(|only| write && ITEMS.contains(only)) {
        bail!("{item} has no section of its own in {PAGE}: --write needs everything, or one of {}", PARTS.join(", "));
    }
    let (mut records, mut progress) = (Records::default(), Progress::new(workspace)?);
    let measured = measure(workspace, (quick, only, threads), &mut records, &mut progress);
    progress.end();
    // kept even if a later measurement failed: they took minutes
    let kept = progress.folder.join("records.jsonl");
    fs::write(&kept, records.lines()).with_context(|| kept.display().to_string())?;
    measured?;
    if json {
        print!("{}", records.lines());
    } else {
        print!("{}", page::tables(&records));
    }
    if write {
        let file = workspace.root.join(PAGE);
        let text = match only {
            Some(_) => page::updated(&fs::read_to_string(&file).context(PAGE)?, &records),
            None => page::page(workspace, &records)?,
        };
        fs::write(file, text).context(PAGE)?;
        eprintln!("{PAGE} written");
    }
    Ok(())
}

fn measure(
    workspace: &Workspace,
    (quick, only, threads): (bool, Option<&str>, Option<usize>),
    records: &mut Records,
    progress: &mut Progress,
) -> Result<()> {
    let native = Native { workspace, only: only.filter(|only| ITEMS.contains(only)) };
    let part = |name| !quick && only.is_none_or(|only| only == name);
    if only.is_none_or(|only| ITEMS.contains(&only)) {
        native.measure(quick, threads, records, progress)?;
    }
    if part("growth") {
        native.growth(records, progress)?;
    }
    if part("counts") {
        counts::measure(workspace, records, progress)?;
    }
    if part("wasm") {
        wasm::measure(&native, records, progress)?;
    }
    if part("embedded") {
        embedded::measure(workspace, records, progress)?;
    }
    if part("gpu") {
        gpu::measure(workspace, records, progress)?;
    }
    Ok(())
}
