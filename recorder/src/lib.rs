//! Records the metrics of a training run in two files that survive a kill at any point:
//!
//! * `metrics_<experiment>.jsonl`: one JSON object per step, one per line, with distributions every N steps;
//! * `entropy_history_<experiment>.json`: the policy entropy alone, as one JSON array
//!   `[{"step": 1, "entropy": 4.532}, …]`.
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
//! A JSON array cannot be extended in place: between removing its `]` and writing a new one it is not valid JSON, and a
//! signal can interrupt a write at a page boundary. Rewriting the array and renaming it is safe, but costs the whole
//! history at every step. [`History`] therefore keeps two copies. The hidden copy is one record behind: an append
//! writes the two missing records to it, syncs it, and renames it to the public name, which is atomic; the other copy
//! then becomes the hidden one. Every append costs two records, however long the history, and the public name always
//! refers to a complete array. Without hard links the hidden copy is rewritten each time.
//!
//! A reader that takes longer than a step to read the file can see it change, because the next append but one extends
//! the copy that it has open. [`read_history`] notices that and reads again; other programs should do the same if the
//! array does not parse.
//!
//! A lock file beside each file admits one writer at a time ([`Error::Locked`]); the operating system releases it when
//! the process ends. A write that fails half-way, as on a full disk, is undone, and the step can be recorded again.
//!
//! # TensorBoard
//!
//! With feature `tensorboard`, `EventFile` writes the same metrics as an event file, which TensorBoard draws.
#![forbid(unsafe_code)]

mod disk;
mod distribution;
mod error;
mod growing;
mod history;
mod lines;
mod lock;
mod read;
mod recorder;
#[cfg(feature = "tensorboard")]
mod tensorboard;

pub use distribution::Distribution;
pub use error::{Error, Result};
pub use history::History;
pub use lines::{read_lines, JsonLines};
pub use read::{parse_history, read_history, Record};
pub use recorder::{history_name, metrics_name, Recorder, RecorderConfig, ENTROPY_KEY};
#[cfg(feature = "tensorboard")]
pub use tensorboard::{read_events, Event, EventFile, EventHistogram};

pub use serde_json::{Map, Value};

/// What an accepted record survives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Survive {
    /// A kill of the process: nothing is synced.
    Kill,
    /// A power loss: file and folder are synced at every record.
    #[default]
    PowerLoss,
}

/// Where a run continues if its files already exist.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Resume {
    /// After the last record.
    #[default]
    End,
    /// At this step, after loading an older checkpoint: records from this step on are removed.
    At(u64),
}
