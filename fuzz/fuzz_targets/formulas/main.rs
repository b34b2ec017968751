//! Arbitrary bytes as input of every function: nothing may panic, an error writes nothing, a dropped slot gets 0.
//!
//! The formulas come from the catalogue; what has another shape than a formula (controllers, text, comparison) has a
//! file here. Run with `cargo +nightly fuzz run formulas -- -max_total_time=60`.
#![no_main]

mod compare;
mod entry;
mod games;
mod reader;
mod states;

use libfuzzer_sys::fuzz_target;
use tokenwise::{Batch, Layout, Mask};

use reader::Reader;

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader(data);
    let part = reader.byte();
    let count = usize::from(reader.byte() % 5);
    let offsets = reader.ids(count, 12);
    let (rows, cols) = (usize::from(reader.byte() % 4), usize::from(reader.byte() % 20));
    let layout = if reader.byte() < 128 { Layout::padded(rows, cols) } else { Layout::packed(&offsets) };
    let Ok(layout) = layout else { return };
    let keep: Vec<bool> = (0..reader.len(layout.tokens())).map(|_| reader.byte() % 4 != 0).collect();
    let Ok(batch) = Batch::new(layout, Mask::new(&keep)) else { return };
    match part {
        0..=7 => compare::run(&mut reader, &batch),
        8..=15 => games::run(&mut reader, &batch),
        16..=23 => states::run(&mut reader, &batch),
        // both types, with the same bytes
        _ => {
            entry::run::<f64>(&mut Reader(reader.0), batch);
            entry::run::<f32>(&mut reader, batch);
        }
    }
});
