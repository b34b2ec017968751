//! Event files of TensorBoard.

mod file;
mod frame;
mod message;

pub use file::{read_events, Event, EventFile, EventHistogram};
