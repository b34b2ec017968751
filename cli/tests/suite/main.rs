//! Tests of the command's output, exit codes and files.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod bad_input;
mod columns;
mod command;
mod engine;
mod entropy;
mod explain;
mod inputs;
mod lint;
mod memory;
mod metrics;
mod pdf;
mod report;
mod sets;
mod traces;
