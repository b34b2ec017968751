//! The page `docs/benchmarks.md`.

use std::{fs, process::Command};

use anyhow::Result;

use super::{
    native::REQUIREMENTS,
    records::Records,
    tables::{bits, embedded, floors, growth, instructions, items, packed, threads, wasm},
};
use crate::workspace::{stdout_of, Workspace};

type Table = fn(&Records) -> String;

/// Heading, explanation, and table.
const PARTS: [(&str, &str, Table); 9] = [
    ("Bounds", "What the library is held to, and what this run reached.", floors),
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
];

/// All tables that are not empty.
pub(super) fn tables(records: &Records) -> String {
    let mut text = String::new();
    for (heading, about, table) in PARTS {
        let table = table(records);
        if !table.is_empty() {
            text += &format!("## {heading}\n\n{about}\n\n{}\n\n", table.trim_end());
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
        "# Benchmarks\n\nWritten by `cargo xtask bench --write`; nothing here is typed by hand.\n\nMachine: {}. {}. \
         Peers: {}, onnxruntime-web (`bench/wasm/package.json`). Times are medians of wall time, each sample at least \
         2 ms (10 ms beside peers, 20 ms in JavaScript). Load while measuring: {}. On a busy machine differences \
         below 1.3× say nothing. The peers' code is written for GPUs: these ratios are about CPUs.\n\n{}",
        machine(),
        rustc.trim(),
        peers.join(", "),
        load.split(' ').take(3).collect::<Vec<_>>().join(", "),
        tables(records)
    );
    Ok(text.trim_end().to_owned() + "\n")
}

fn machine() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split(": ").nth(1)).unwrap_or("unknown");
    let family = info.lines().find_map(|line| line.strip_prefix("cpu family")?.split(": ").nth(1)).unwrap_or("?");
    let count = info.lines().filter(|line| line.starts_with("processor")).count();
    let (os, arch) = (std::env::consts::OS, std::env::consts::ARCH);
    format!("{model} (family {family}), {count} processors, {os} {arch}")
}
