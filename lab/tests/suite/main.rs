//! Tests of the laboratory as a whole: the command with small networks.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests: a failure is a panic")]

mod bits;
mod files;
mod folder;
