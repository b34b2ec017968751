//! Inputs made of integers: no float arithmetic that could itself differ, apart from exact scaling by powers of two.

use core::sync::atomic::{AtomicU32, Ordering::Relaxed};

use crate::hash::Value;

/// Which of the possible inputs; see [`crate::vary`].
static VARIATION: AtomicU32 = AtomicU32::new(0);

pub(crate) fn vary(variation: u32) {
    VARIATION.store(variation, Relaxed);
}

/// Whether the inputs are others than those of the record.
pub(crate) fn is_varied() -> bool {
    VARIATION.load(Relaxed) != 0
}

/// A linear congruential generator (Knuth's MMIX constants); its upper bits are good enough for inputs.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn new(seed: u64) -> Self {
        let varied = seed ^ (u64::from(VARIATION.load(Relaxed)) << 32);
        Self(varied.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x2545_f491_4f6c_dd1d)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        // the lowest bits of such a generator have short periods
        self.0 ^ (self.0 >> 32)
    }

    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        (((self.bits() >> 32) * u64::from(bound)) >> 32) as u32
    }

    /// A multiple of 2⁻³⁰ in `[-1, 1)`: exact in `f64`, rounded once for `f32`.
    fn signed(&mut self) -> f64 {
        f64::from((self.bits() >> 33) as i32) / f64::from(1 << 30) - 1.0
    }
}

/// The kind of numbers in a column.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// In `[-4, 4)`: rewards, values, advantages, logits.
    Signed,
    /// About `[-8, 0)`, the same numbers for every seed up to small offsets: policies that differ slightly.
    LogProb,
    /// In `[0, 2)`: weights, entropies.
    NotNegative,
}

/// The range of the numbers of a case.
#[derive(Clone, Copy, PartialEq)]
pub(crate) enum Range {
    /// As in training.
    Usual,
    /// Finite, but zero, subnormal or large.
    Extreme,
    /// Infinities and NaN among the usual ones.
    Undefined,
}

const EXTREME: [f64; 16] =
    [0.0, -0.0, 1e-45, -1e-45, 1e-40, -3e-39, 5e-324, 1e-300, 1e-7, -1e-7, 20.0, -20.0, 88.75, -88.75, -103.5, -1000.0];

/// Fills a column, the same for equal arguments on every machine.
pub(crate) fn fill<R: Value>(column: &mut [R], seed: u64, kind: Kind, range: Range) {
    let (mut own, mut shared) = (Random::new(seed), Random::new(0));
    for slot in column {
        let usual = match kind {
            Kind::Signed => own.signed() * 4.0,
            Kind::LogProb => shared.signed() * 4.0 - 4.0 + own.signed() / 8.0,
            Kind::NotNegative => own.signed() + 1.0,
        };
        let odd = own.below(4) == 0;
        *slot = R::narrow(match range {
            Range::Extreme => {
                let extreme = EXTREME[own.below(16) as usize];
                if matches!(kind, Kind::NotNegative) && extreme < 0.0 {
                    -extreme
                } else {
                    extreme
                }
            }
            Range::Undefined if odd => [f64::INFINITY, f64::NEG_INFINITY, f64::NAN, -0.0][own.below(4) as usize],
            Range::Usual | Range::Undefined => usual,
        });
    }
}

/// Fills a dropped slot with values that must never be read.
pub(crate) fn poison<R: Value>(slot: &mut [R], index: usize) {
    slot.fill([R::nan(), R::infinity(), R::neg_infinity(), R::LARGEST][index % 4]);
}
