//! Rollout files in five formats, read batch by batch into columns. The formats are described in
//! `docs/rollout-files.md`.
//!
//! A file is a [`Source`] (bytes in memory are one), its [`Kind`] is determined from its name and first bytes, and
//! [`read`] hands its batches to a function. JSON Lines, CSV and safetensors need the memory of one batch, JSON that of
//! one batch and one record, Parquet that of one row group.
//!
//! ```
//! use std::ops::ControlFlow;
//! use tokenwise_reader::{read, Bytes, Column, Kind, Options};
//!
//! let file = Bytes::from_static(b"{\"score\": 1, \"log_probs\": [-0.5, -0.25]}\n");
//! let options = Options::default();
//! let kind = Kind::of("rollouts.jsonl", &file, &options.names)?;
//! read(&file, kind, &options, &mut |rollouts| {
//!     assert_eq!(rollouts.rows[0].score, Some(1.0));
//!     assert_eq!(rollouts.column(Column::LogProbs), Some(&[-0.5, -0.25][..]));
//!     ControlFlow::Continue(())
//! })?;
//! # Ok::<(), tokenwise_reader::Error>(())
//! ```
#![forbid(unsafe_code)]

mod batch;
mod csv_table;
mod fault;
mod feeder;
mod fields;
mod json;
mod kind;
mod numbers;
mod object;
mod parquet_table;
mod plain;
mod source;
mod tensors;
mod texts;

pub use batch::{Label, Rollouts, Row};
pub use bytes::Bytes;
pub use fault::{Error, Fault, Place};
pub use feeder::Sink;
pub use fields::{Column, Field, Names};
pub use kind::Kind;
pub use source::Source;

use feeder::Feeder;

/// How a file is read.
#[derive(Clone, Debug)]
pub struct Options {
    /// The names of its fields.
    pub names: Names,
    /// Without steps in the file: where a batch is cut.
    pub batch_tokens: u64,
    /// Whether to collect the texts of tokens and the names of prompts and groups.
    pub labels: bool,
    /// A file with more tokens is rejected.
    pub most_tokens: u64,
    /// A file with more sequences is rejected.
    pub most_sequences: u64,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            names: Names::default(),
            batch_tokens: 1_000_000,
            labels: false,
            most_tokens: u64::MAX,
            most_sequences: u64::MAX,
        }
    }
}

impl Options {
    fn find(&self, name: &str) -> Option<Field> {
        self.names.find(name).or_else(|| fields::label(name).filter(|_| self.labels))
    }
}

/// Summary of a file that was read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// How many sequences it has.
    pub sequences: u64,
    /// Names with numbers that match no field; collected with [`Options::labels`].
    pub passed_over: Vec<String>,
}

/// Passes the batches of a file to `sink`, in order, until it breaks. A batch is the sequences of one step.
///
/// # Errors
///
/// What is wrong with the file, and where; [`Fault::Stopped`] if the sink stopped the reading.
pub fn read<S: Source>(source: &S, kind: Kind, options: &Options, sink: Sink<'_>) -> Result<Summary, Error> {
    let mut feeder = Feeder::new(options, sink);
    match kind {
        Kind::JsonLines => json::lines(source, &mut feeder)?,
        Kind::Json => json::documents(source, &mut feeder)?,
        Kind::Csv => csv_table::read(source, &mut feeder)?,
        Kind::Parquet => parquet_table::read(source, &mut feeder)?,
        Kind::Tensors => tensors::read(source, &mut feeder)?,
    }
    feeder.finish()?;
    if feeder.sequences == 0 {
        return Err(Fault::NoRollout {}.into());
    }
    Ok(Summary { sequences: feeder.sequences, passed_over: feeder.passed_over })
}
