//! Training: a step and its stages.

pub mod stages;
mod trainer;
mod warm_up;

pub use trainer::{Step, Trainer};
pub use warm_up::{warm_up, WarmUp};
