//! The page `docs/benchmarks.md`.

use std::{fs, process::Command};

use anyhow::Result;

use super::{
    gpu,
    native::REQUIREMENTS,
    records::Records,
    tables::{bits, embedded, floors, growth, instructions, items, packed, threads, wasm, NOT_MEASURED},
};
use crate::workspace::{stdout_of, Workspace};

const BOUNDS: &str = "Bounds";

type Table = fn(&Records) -> String;

/// Heading, explanation, and table.
const PARTS: [(&str, &str, Table); 10] = [
    (BOUNDS, "What the library is held to, and what this run reached.", floors),
    (
        "One thread",
        "Tokenwise and its peers alternate, in one process, on the same buffers. A call is repeated until a sample is \
         long enough; *first ms* is the call before that, when the caches hold what the previous call left there. A \
         batch has about 60 % kept tokens; tokens per second count only those, though all implementations also \
         process the padding. Tokenwise writes into existing buffers, the peers allocate theirs; the batch is checked \
         once beforehand (in `step` this is part of the time). `ppo-forward` compares the same call of tokenwise, \
         which always writes the gradient, with peers that do not compute it. `logits-gradient` is forward and \
         gradient. tianshou's GAE is timed with verl's whitening and sums in f64. `torch` is the formula in plain \
         torch, `torch.compile` the same, compiled. A limit moves as many bytes as the item has to read and write \
         once, mask included; for sizes close to that of the cache it varies. Errors are the largest over kept \
         tokens, relative to the largest value; for log-probabilities and entropies they are absolute, over 64 rows. \
         Where CPU/wall is well below 1, other processes used the processor and the time is too long.",
        items,
    ),
    ("Bits", "Whether every bit of the results is the same, padded and packed, large and small.", bits),
    ("Packed and padded", "The same tokens with 40 % padding and without.", packed),
    (
        "Two threads",
        "Tokenwise and each peer run in separate processes, because idle workers of one thread pool would compete \
         with the other. A peer below 1.5 CPUs did not run in parallel, although it was allowed to.",
        threads,
    ),
    ("Growth", "Time per kept token as batches grow, padded, rows of at most 4096 slots, one thread.", growth),
    (
        "Instructions",
        "With AVX2, per slot of a padded batch, or per logit, counted by callgrind: the same on a busy machine as on \
         an idle one. More than the limit fails the tests.",
        instructions,
    ),
    (
        "WebAssembly",
        "One thread, simd128 unless noted. *In place* is the formula over memory of the module; the package copies \
         typed arrays in, as onnxruntime-web does.",
        wasm,
    ),
    (
        "Microcontrollers",
        "Single precision, built for size, in an emulator that counts instructions: what a program with the formula \
         needs beyond one without it. Buffers of the caller are not counted.",
        embedded,
    ),
    (
        "GPU in software",
        "One update on resident columns, on one device of Mesa's lavapipe, in one process, in turns: KL (k3), \
         rewards, GAE, whitening, PPO loss and gradient over 256×4096 slots, about 60 % of them kept; and the same \
         from 512 rows of logits, with entropy, to the gradient of the logits. The loss is read back. *Fused* is \
         one submission of tokenwise-gpu. *One kernel per tensor operation* writes every intermediate to memory \
         (`bench/gpu/src/tensor.rs`); its GAE doubles the number of steps in each round. burn runs with fusion and \
         autotune, written twice: as in a trainer, and tuned by hand; bounds are against the better one. Where \
         bindings are limited to 128 MiB, rows are split. Dispatches and bytes are counted in a trace of the \
         device: a dispatch is taken to move all that it binds, a gather or scatter what it touches. This \
         overstates passes that leave a binding alone (the fused chain after the log-probabilities touches 123 \
         bytes per token, docs/gpu.md); for the loop, which reads columns of whole tensors, it says nothing. *Off \
         by* is the difference from the fused chain, relative to its largest number. Times on a software adapter \
         say nothing about the speed of a real GPU; the ratios show what fusion saves here.",
        gpu::tables,
    ),
];

/// All tables that are not empty.
pub(super) fn tables(records: &Records) -> String {
    let mut text = String::new();
    for (heading, about, table) in PARTS {
        let table = table(records);
        if !table.is_empty() {
            text += &section(heading, about, &table);
        }
    }
    text
}

/// The whole page.
pub(super) fn page(workspace: &Workspace, records: &Records) -> Result<String> {
    let pins = REQUIREMENTS
        .map(|file| fs::read_to_string(workspace.root.join(file)))
        .into_iter()
        .collect::<Result<String, _>>()?;
    let version =
        |package: &str| pins.lines().find_map(|line| line.strip_prefix(package)?.strip_prefix("==")).unwrap_or("?");
    let peers = ["torch", "verl", "trl", "tianshou", "jax"].map(|package| format!("{package} {}", version(package)));
    let rustc = stdout_of(Command::new("rustc").arg("--version"))?;
    let load = fs::read_to_string("/proc/loadavg").unwrap_or_else(|_| "unknown".into());
    let text = format!(
        "# Benchmarks\n\nWritten by `cargo xtask bench --write`; nothing here is typed by hand. With `--only PART` \
         only the section of the part and its bounds are written.\n\nMachine: {}. {}. Peers: {}, onnxruntime-web \
         (`bench/wasm/package.json`). Times are medians of wall time, each sample at least 2 ms (10 ms beside \
         peers, 20 ms in JavaScript). Load while measuring: {}. On a busy machine differences below 1.3× say \
         nothing. The peers' code is written for GPUs: these ratios are about CPUs.\n\n{}",
        machine(),
        rustc.trim(),
        peers.join(", "),
        load.split(' ').take(3).collect::<Vec<_>>().join(", "),
        tables(records)
    );
    Ok(text.trim_end().to_owned() + "\n")
}

/// The page with the sections that were measured in place of the old ones, and the rows of the bounds.
pub(super) fn updated(page: &str, records: &Records) -> String {
    // the text before the first heading, then the sections
    let mut sections: Vec<String> = Vec::new();
    for line in page.split_inclusive('\n') {
        match sections.last_mut() {
            Some(section) if !line.starts_with("## ") => section.push_str(line),
            _ => sections.push(line.into()),
        }
    }
    let place = |sections: &[String], heading: &str| {
        sections.iter().position(|section| section.lines().next() == Some(&format!("## {heading}")))
    };
    for (index, (heading, about, table)) in PARTS.iter().enumerate() {
        let table = table(records);
        if table.is_empty() {
            continue;
        }
        match place(&sections, heading) {
            Some(at) if *heading == BOUNDS => sections[at] = merged(&sections[at], &table),
            Some(at) => sections[at] = section(heading, about, &table),
            None => {
                let later = PARTS[index + 1..].iter().find_map(|(heading, ..)| place(&sections, heading));
                sections.insert(later.unwrap_or(sections.len()), section(heading, about, &table));
            }
        }
    }
    let sections: Vec<&str> = sections.iter().map(|section| section.trim_end()).collect();
    sections.join("\n\n") + "\n"
}

fn section(heading: &str, about: &str, table: &str) -> String {
    format!("## {heading}\n\n{about}\n\n{}\n\n", table.trim_end())
}

/// The bounds with the rows that have been measured.
fn merged(old: &str, table: &str) -> String {
    let what = |row: &str| row.split(" | ").next().map(str::to_owned);
    let mut lines: Vec<&str> = old.trim_end().lines().collect();
    for row in table.lines().skip(2).filter(|row| !row.contains(NOT_MEASURED)) {
        match lines.iter().position(|line| what(line) == what(row)) {
            Some(at) => lines[at] = row,
            None => lines.push(row),
        }
    }
    lines.join("\n") + "\n"
}

fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1)).unwrap_or("unknown");
    let family = info.lines().find_map(|line| line.strip_prefix("cpu family")?.split(": ").nth(1)).unwrap_or("?");
    let count = info.lines().filter(|line| line.starts_with("processor")).count();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{model} (family {family}), {count} processors, {os} {arch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_replaces_only_what_was_measured() {
        let old = [
            "# Benchmarks\n\nHead.\n\n## Bounds\n\nText.\n\n| what | bound | measured | reached |\n",
            "| --- | ---: | ---: | ---: |\n| gae | ≥ 1 | 2 | yes |\n",
            "| gae on a GPU, a row of 10⁶ tokens against 1,000 of 1,000, time | ≤ 1.00 | 9.00 | **no** |",
            "\n\n## Growth\n\nKept.\n\n## Microcontrollers\n\nKept too.\n",
        ];
        let old = old.concat();
        let mut records = Records::default();
        for (width, ms) in [(1000, 2.0), (1_000_000, 1.0)] {
            let line = format!(r#"{{"growth":"gpu gae","tokens":1000000,"width":{width},"ms":{ms}}}"#);
            records.add_line("gpu-growth", &line).unwrap();
        }
        let new = updated(&old, &records);
        assert!(new.contains("| gae | ≥ 1 | 2 | yes |\n| gae on a GPU"), "{new}");
        assert!(new.contains("1,000 of 1,000, time | ≤ 1.00 | 0.500 | yes |"), "{new}");
        assert!(
            new.contains("## Growth\n\nKept.\n\n## Microcontrollers\n\nKept too.\n\n## GPU in software\n"),
            "{new}"
        );
        assert!(!new.contains("not measured") && new.starts_with("# Benchmarks\n\nHead.\n\n## Bounds"), "{new}");
        assert_eq!(updated(&new, &records), new);
        assert_eq!(updated(&old, &Records::default()), old);
    }
}
