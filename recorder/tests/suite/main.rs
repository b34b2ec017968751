//! Files that are killed, resumed, read meanwhile, and written by others.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

mod files;
mod kill;
