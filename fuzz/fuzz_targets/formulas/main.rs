//! Bytes to every function: nothing may panic, an error writes nothing, and a dropped slot gets 0.
//!
//! Run with `cargo +nightly fuzz run formulas -- -max_total_time=60`.
#![no_main]

mod advantages;
mod distillations;
mod dual_games;
mod groups;
mod losses;
mod metrics;
mod policies;
mod profiles;
mod reader;
mod rewards;
mod rollouts;
mod sequence_losses;
mod traces;

use libfuzzer_sys::fuzz_target;
use tokenwise::{Batch, Layout, Mask};

use reader::Reader;

/// Every part gets bytes of its own: an input runs one of them, so that a short one reaches all.
const PARTS: [fn(&mut Reader<'_>, &Batch<'_>); 10] = [
    policies::run,
    rewards::run,
    advantages::run,
    traces::run,
    groups::run,
    rollouts::run,
    losses::run,
    sequence_losses::run,
    distillations::run,
    metrics::run,
    profiles::run,
    dual_games::run,
];

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader(data);
    let part = reader.pick(&PARTS);
    let offsets = reader.ids(usize::from(reader.0.first().copied().unwrap_or(0) % 5), 12);
    let (rows, cols) = (usize::from(reader.byte() % 4), usize::from(reader.byte() % 20));
    let layout = if reader.byte() < 128 { Layout::padded(rows, cols) } else { Layout::packed(&offsets) };
    let Ok(layout) = layout else { return };
    let keep: Vec<bool> = (0..reader.len(layout.tokens())).map(|_| reader.byte() % 4 != 0).collect();
    let Ok(batch) = Batch::new(layout, Mask::new(&keep)) else { return };
    part(&mut reader, &batch);
});
