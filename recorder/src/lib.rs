//! The metrics of a training run on disk, in two files that survive being killed at any point:
//!
//! * `metrics_<experiment>.jsonl`: one JSON object a line and step, with distributions every N steps;
//! * `entropy_history_<experiment>.json`: the policy entropy alone, as one JSON array `[{"step": 1, "entropy": 4.532}, …]`.
//!
//! ```
//! use tokenwise_recorder::{read_history, Recorder, RecorderConfig};
//!
//! let folder = std::env::temp_dir().join(format!("tokenwise-recorder-{}", std::process::id()));
//! std::fs::create_dir_all(&folder)?;
//! let mut recorder = Recorder::open(&folder, "solver", &RecorderConfig::default())?;
//! recorder.record(1, &[("policy/entropy", 4.532), ("analysis/wH_sum", 0.25)])?;
//! recorder.record(2, &[("policy/entropy", 4.201)])?;
//!
//! let history = read_history(&folder.join("entropy_history_solver.json"))?;
//! assert_eq!(history[1].step, 2);
//! assert_eq!(history[1].entropy, 4.201);
//! # std::fs::remove_dir_all(&folder)?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Why the array is safe and cheap
//!
//! A JSON array cannot be extended in place: between losing its `]` and gaining a new one it is not JSON, and a write that
//! crosses a page can be cut there by a signal. Writing the whole array anew and renaming it is safe, but costs the whole history
//! at every step. [`History`] therefore keeps two copies. The one without a public name is one record behind: it gets the two
//! records it lacks, is synced, and takes the public name by a rename, which the file system does at once or not at all; the other
//! copy then becomes the hidden one. Every append costs two records, however long the history, and the public name stands for a
//! whole array at every instant. Where hard links do not exist, the hidden copy is written anew each time.
//!
//! Only a reader that keeps the file open from one step to the step after the next can see it change.
#![forbid(unsafe_code)]

mod distribution;
mod error;
mod history;
mod lines;
mod read;
mod recorder;

pub use distribution::Distribution;
pub use error::{Error, Result};
pub use history::History;
pub use lines::{read_lines, JsonLines};
pub use read::{parse_history, read_history, Record};
pub use recorder::{history_name, metrics_name, Recorder, RecorderConfig, ENTROPY_KEY};

pub use serde_json::{Map, Value};

/// What a record must outlive once it was accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Survive {
    /// The process: nothing is synced. The operating system writes when it likes.
    Kill,
    /// The machine: files and folder are synced at every record.
    #[default]
    PowerLoss,
}

/// Where a run goes on when its files already exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// After the last record.
    #[default]
    End,
    /// At this step, as after loading an older checkpoint: records from it on are removed.
    At(u64),
}
