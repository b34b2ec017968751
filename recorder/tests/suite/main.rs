//! Files of writers that are killed, resumed, out of room or two at once, read concurrently, or written by other
//! programs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod files;
#[cfg(unix)]
mod full_disk;
mod kill;
#[cfg(feature = "tensorboard")]
mod tensorboard;
mod writers;

/// How often the tests of chance are repeated.
fn rounds() -> u32 {
    std::env::var("TOKENWISE_ROUNDS").ok().and_then(|text| text.parse().ok()).unwrap_or(60)
}
