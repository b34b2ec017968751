//! Rollout files in five formats, read batch by batch into columns. The formats are described in
//! `docs/rollout-files.md`.
//!
//! A [`File`] is opened once, from a [`Source`] that can be read at any place (bytes in memory are one) or from a
//! stream such as a pipe; gzip is decompressed on the way. [`File::read`] hands its batches to a function. JSON Lines,
//! CSV and safetensors need the memory of one batch, JSON that of one batch and one record, Parquet that of one batch
//! and one page of every column. [`Options::memory`] limits all of it, whatever a file claims about its size.
//!
//! ```
//! use std::ops::ControlFlow;
//! use tokenwise_reader::{Bytes, Column, File, Options};
//!
//! let bytes = Bytes::from_static(b"{\"score\": 1, \"log_probs\": [-0.5, -0.25]}\n");
//! let options = Options::default();
//! File::open("rollouts.jsonl", bytes, &options)?.read(&options, &mut |rollouts| {
//!     assert_eq!(rollouts.rows[0].score, Some(1.0));
//!     assert_eq!(rollouts.column(Column::LogProbs), Some(&[-0.5, -0.25][..]));
//!     ControlFlow::Continue(())
//! })?;
//! # Ok::<(), tokenwise_reader::Error>(())
//! ```
#![forbid(unsafe_code)]
#![allow(clippy::disallowed_methods, reason = "sums here are of whole numbers, whose order does not matter")]

mod batch;
mod budget;
mod csv_table;
mod fault;
mod feeder;
mod fields;
mod file;
mod json;
mod kind;
mod numbers;
mod object;
mod pages;
mod parquet_table;
mod plain;
mod position;
mod source;
mod tensors;
mod texts;
mod thrift;
mod traces;

pub use batch::{Label, Rollouts, Row};
pub use budget::Budget;
pub use bytes::Bytes;
pub use fault::{Error, Fault, Place};
pub use feeder::Sink;
pub use fields::{Column, Field, Names};
pub use file::{File, Session};
pub use kind::Kind;
pub use source::Source;
pub use traces::LeftOut;

/// How a file is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of its fields.
    pub names: Names,
    /// Without steps in the file: where a batch is cut. A sequence without tokens counts as one.
    pub batch_tokens: u64,
    /// Whether to collect the texts of tokens and the names of prompts and groups.
    pub labels: bool,
    /// A file with more tokens is rejected.
    pub most_tokens: u64,
    /// A file with more sequences is rejected.
    pub most_sequences: u64,
    /// How much memory a batch and the buffers of a format may take.
    pub memory: Budget,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            names: Names::default(),
            batch_tokens: 1_000_000,
            labels: false,
            most_tokens: u64::MAX,
            most_sequences: u64::MAX,
            memory: Budget::default(),
        }
    }
}

/// Summary of a file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many sequences it has.
    pub sequences: u64,
    /// The fields that were found, each with its name in the file.
    pub found: Vec<(Field, String)>,
    /// Names that match no field; at most 40.
    pub ignored: Vec<String>,
    /// Those of them with numbers; collected with [`Options::labels`].
    pub passed_over: Vec<String>,
    /// Traces of prime-rl that are not among the sequences.
    pub left_out: LeftOut,
}
