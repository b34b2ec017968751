//! `cargo xtask bench`: how fast the formulas are, beside their peers and beside what the machine can move.

mod counts;
mod embedded;
mod floors;
mod launch;
mod native;
mod page;
mod records;
mod tables;
mod wasm;

use std::fs;

use anyhow::{bail, Context, Result};

use self::{launch::Progress, native::Native, records::Records};
use crate::{options::Options, workspace::Workspace};

pub(crate) const HELP: &str = "\
cargo xtask bench [--quick] [--only ITEM] [--threads N] [--json] [--write]

Times the formulas and the same things in verl, TRL, tianshou, JAX, torch and torch.compile, in turns in one process on the same
buffers, and prints time, tokens per second, ratios, shares of the copy and read limits, bits and errors. The peers are installed,
pinned, into a private Python environment below target/ (about 6 GB, once).

  --quick       the formulas and the limits alone: no Python, under three minutes
  --only ITEM   gae, grpo, ppo-forward, ppo, analysis, returns, kl, whiten, step, logits-f32, logits-bf16, logits-gradient-f32,
                logits-gradient-bf16, or one of the parts: growth, counts, wasm, embedded
  --threads N   1 or 2; default both (2 needs the library's feature rayon for ours)
  --json        prints the records, one a line, instead of tables
  --write       writes docs/benchmarks.md; only with everything measured
";

/// What is not an item but a part of its own.
const PARTS: [&str; 4] = ["growth", "counts", "wasm", "embedded"];
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

pub(crate) fn bench(workspace: &Workspace, mut options: Options) -> Result<()> {
    let (quick, json, write) = (options.flag("--quick"), options.flag("--json"), options.flag("--write"));
    let only: Option<String> = options.value("--only")?;
    let threads: Option<usize> = options.value("--threads")?;
    options.finish()?;
    let only = only.as_deref();
    if let Some(unknown) = only.filter(|only| !ITEMS.contains(only) && !PARTS.contains(only)) {
        bail!("there is no item {unknown:?}; --help lists them");
    }
    if threads.is_some_and(|threads| !(1..=2).contains(&threads)) {
        bail!("--threads is 1 or 2");
    }
    if write && (quick || only.is_some() || threads.is_some()) {
        bail!("--write is for everything: a page made of several runs compares what was not measured together");
    }

    let (mut records, mut progress) = (Records::default(), Progress::new(workspace)?);
    let measured = measure(workspace, (quick, only, threads), &mut records, &mut progress);
    progress.end();
    // what was measured before something failed took long enough
    let kept = progress.folder.join("records.jsonl");
    fs::write(&kept, records.lines()).with_context(|| kept.display().to_string())?;
    measured?;
    if json {
        print!("{}", records.lines());
    } else {
        print!("{}", page::tables(&records));
    }
    if write {
        let text = page::page(workspace, &records)?;
        fs::write(workspace.root.join(PAGE), text).context(PAGE)?;
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
    Ok(())
}
