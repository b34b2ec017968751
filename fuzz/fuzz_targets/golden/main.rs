//! Arbitrary bytes as a file of golden cases: reading its calls may refuse, never panic.
//!
//! Run with `cargo +nightly fuzz run golden -- -max_total_time=60`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tokenwise_tests::golden::calls_of;

fuzz_target!(|text: &str| {
    calls_of("fuzz", text);
});
