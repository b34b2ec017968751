//! Tests of the command's output, exit codes and files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod bad_input;
mod command;
mod engine;
mod entropy;
mod explain;
mod lint;
mod metrics;
mod sets;
