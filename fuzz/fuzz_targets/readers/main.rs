//! Arbitrary bytes as a rollout file of every format: nothing may panic, and what is accepted is consistent.
//!
//! The first byte chooses the format. Run with `cargo +nightly fuzz run readers -- -max_total_time=60`.
#![no_main]

use std::ops::ControlFlow;

use libfuzzer_sys::fuzz_target;
use tokenwise_reader::{Budget, Bytes, Column, File, Options};

const NAMES: [&str; 8] = ["a.jsonl", "a.json", "a.csv", "a.parquet", "a.safetensors", "", "a.jsonl.gz", "a.jsonl.zst"];

fuzz_target!(|data: &[u8]| {
    let Some((first, bytes)) = data.split_first() else { return };
    let name = NAMES[usize::from(first % 8)];
    let options = Options { memory: Budget::new(64 << 20), labels: first & 8 != 0, ..Options::default() };
    let Ok(file) = File::open(name, Bytes::copy_from_slice(bytes), &options) else { return };
    let _ = file.read(&options, &mut |rollouts| {
        assert_eq!(rollouts.kept().len(), rollouts.tokens());
        for column in Column::ALL {
            assert!(rollouts.column(column).is_none_or(|numbers| numbers.len() == rollouts.tokens()));
        }
        ControlFlow::Continue(())
    });
});
