//! From which size on a call goes to the device.

use serde::{Deserialize, Serialize};
use tokenwise_catalogue::{Entry, Kind};

/// What the cost of a formula grows with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Family {
    /// Kept tokens × vocabulary.
    Logits,
    /// Token slots, or sequences for formulas over groups.
    Tokens,
    /// Token slots of a recursion over each sequence, which the core computes token after token.
    Scans,
}

/// The recursions among the formulas.
const SCANS: &[&str] = &[
    "discounted_returns",
    "gae",
    "gae_decoupled",
    "monte_carlo_advantage",
    "td_lambda",
    "n_step_returns",
    "upgo",
    "vtrace",
    "retrace",
    "puffer_advantage",
];

impl Family {
    /// The family of a formula.
    pub fn of(entry: &Entry) -> Self {
        if entry.inputs.iter().any(|column| column.kind == Kind::Logit) {
            return Self::Logits;
        }
        match SCANS.contains(&entry.name) {
            true => Self::Scans,
            false => Self::Tokens,
        }
    }
}

/// The work from which a call goes to the GPU, for each [`Family`].
///
/// The defaults are estimates for a discrete GPU: a call costs a few tenths of a millisecond whatever its size, and every
/// number crosses the bus once. [`Engine::calibrate`](crate::Engine::calibrate) measures them on the machine. They can be stored with serde.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Thresholds {
    /// Kept tokens × vocabulary; default 2²⁰.
    pub logits: u64,
    /// Token slots; default 2²².
    pub tokens: u64,
    /// Token slots of a recursion; default 2²².
    pub scans: u64,
}

impl Thresholds {
    /// Every call goes to the GPU.
    pub const ALWAYS: Self = Self { logits: 0, tokens: 0, scans: 0 };
    /// No call goes to the GPU.
    pub const NEVER: Self = Self { logits: u64::MAX, tokens: u64::MAX, scans: u64::MAX };

    /// The threshold of a family.
    pub const fn of(&self, family: Family) -> u64 {
        match family {
            Family::Logits => self.logits,
            Family::Tokens => self.tokens,
            Family::Scans => self.scans,
        }
    }
}

impl Default for Thresholds {
    fn default() -> Self {
        Self { logits: 1 << 20, tokens: 1 << 22, scans: 1 << 22 }
    }
}
