//! Files of writers that are killed or resumed, read concurrently, or written by other programs.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod files;
mod kill;
