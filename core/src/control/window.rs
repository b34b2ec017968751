//! The last numbers of a series, without allocation.

use crate::{
    error::{check_config, Result},
    reduce::Sum,
};

/// Numbers a window can hold.
pub(super) const LONGEST: usize = 32;

/// A target that follows the measurements: `factor` times the mean of the last `length` ones, once there are that many.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Follow {
    /// Measurements the mean is over; 1 to 32, default 10.
    pub length: u32,
    /// The factor of their mean; positive, default 1.1.
    pub factor: f64,
}

impl Default for Follow {
    fn default() -> Self {
        Self { length: 10, factor: 1.1 }
    }
}

impl Follow {
    pub(super) fn check(&self) -> Result<()> {
        let inside = self.length >= 1 && self.length as usize <= LONGEST;
        check_config("length", "from 1 to 32", f64::from(self.length), inside)?;
        crate::error::check_positive::<f64>("factor", self.factor)
    }
}

/// The last measurements of a series, the oldest overwritten first.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct Window {
    values: [f64; LONGEST],
    /// The number of measurements ever added.
    seen: u64,
}

impl Window {
    /// The number of measurements added, including those overwritten since.
    pub const fn seen(&self) -> u64 {
        self.seen
    }

    pub(super) fn check(&self) -> Result<()> {
        self.values.iter().try_for_each(|&value| crate::error::check_finite::<f64>("window", value))
    }

    /// Adds a number; returns the target computed from the last ones, once there are enough.
    pub(super) fn follow(&mut self, value: f64, follow: &Follow) -> Option<f64> {
        let length = u64::from(follow.length);
        self.values[(self.seen % length) as usize] = value;
        self.seen += 1;
        if self.seen < length {
            return None;
        }
        let mut sum = Sum::default();
        // oldest first
        for i in self.seen..self.seen + length {
            sum.add(self.values[(i % length) as usize]);
        }
        // an overflowed target is discarded: the caller keeps the previous one
        Some(follow.factor * (sum.value() / length as f64)).filter(|target| target.is_finite())
    }
}
