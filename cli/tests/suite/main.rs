//! The command as people and scripts see it: output, exit codes, files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod bad_input;
mod command;
mod entropy;
mod explain;
mod lint;
mod metrics;
mod sets;
