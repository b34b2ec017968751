//! Files that are killed, resumed, read meanwhile, and written by others.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod files;
mod kill;
