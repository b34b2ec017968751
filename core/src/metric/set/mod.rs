//! Everything a trainer logs for a batch, by the names of the frameworks.

mod openrlhf;
mod openrlhf_keys;
mod reduction;
mod trl;
mod trl_keys;
mod trl_rewards;
mod trl_walk;
mod verl;
mod verl_keys;
mod verl_walk;

pub use openrlhf::{openrlhf_metrics, KlUse, OpenRlhfConfig, OpenRlhfInput};
pub use openrlhf_keys::OpenRlhfMetrics;
pub use reduction::Reduction;
pub use trl::{trl_metrics, TrlConfig, TrlInput, TrlLevel, TrlLoss, TrlOutput, TrlRewards, TrlScale};
pub use trl_keys::{ClipRatios, CompletionLengths, RewardSource, SamplingMetrics, TrlMetrics, TrlRewardMetrics};
pub use verl::{verl_metrics, VerlConfig, VerlInput};
pub use verl_keys::{LengthSummary, RewardKl, VerlMetrics};

use crate::{
    error::{check_len, kept, refused, Error, Result},
    layout::{Batch, Row},
    loss::{Aggregate, AggregateMode, Plan},
    real::Real,
    reduce::{row_total, Sum},
    rollout::Extremes,
};

/// Mean, largest and smallest of some numbers; NaN of none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Summary {
    /// Their mean.
    pub mean: f64,
    /// The largest.
    pub max: f64,
    /// The smallest.
    pub min: f64,
}

/// How long each sequence is, and how long it may be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Lengths<'a> {
    /// One per sequence, in tokens. What the model read, not what the loss keeps.
    pub tokens: &'a [u32],
    /// The longest allowed: a sequence of just this length was cut.
    pub limit: u32,
}

/// What a [`Summary`] is made of.
#[derive(Clone, Copy)]
struct Tally {
    sum: Sum,
    extremes: Extremes,
    count: u64,
}

impl Tally {
    fn new() -> Self {
        Self { sum: Sum::default(), extremes: Extremes::NONE, count: 0 }
    }

    fn add(&mut self, x: f64) {
        self.sum.add(x);
        self.extremes.add(x);
        self.count += 1;
    }

    /// Takes in the kept tokens of a sequence, and gives their sum.
    #[cfg_attr(not(compact), inline(always))]
    fn add_row<R: Real>(&mut self, row: &Row<'_>, values: &[R]) -> f64 {
        let sum = row_total(row, values);
        for (x, _) in row.of(values).iter().zip(row.keep).filter(|(_, &keep)| keep) {
            self.extremes.add(x.widen());
        }
        self.sum.add(sum);
        self.count += row.kept() as u64;
        sum
    }

    fn mean(&self) -> f64 {
        self.sum.value() / self.count as f64
    }

    fn summary(&self) -> Summary {
        let of = |x: f64| if self.count == 0 { f64::NAN } else { x };
        Summary { mean: self.mean(), max: of(self.extremes.max), min: of(self.extremes.min) }
    }

    /// As [`Self::summary`], but 0 of none.
    fn or_zero(&self) -> Summary {
        if self.count == 0 {
            return Summary { mean: 0.0, max: 0.0, min: 0.0 };
        }
        self.summary()
    }
}

/// Of one number per sequence, in their order.
fn tally(numbers: impl Iterator<Item = f64>) -> Tally {
    let mut all = Tally::new();
    numbers.for_each(|x| all.add(x));
    all
}

fn check_optional<T>(what: &'static str, slice: Option<&[T]>, expected: usize) -> Result<()> {
    slice.map_or(Ok(()), |slice| check_len(what, slice, expected))
}

/// How entropies and KL are aggregated.
struct Weighing<'a> {
    plan: Plan<'a>,
    /// A mean over nothing: whatever was added up is NaN.
    undefined: bool,
}

impl<'a> Weighing<'a> {
    fn new(batch: &Batch<'_>, aggregate: &Aggregate<'a>, wanted: bool) -> Result<Self> {
        let nothing = Aggregate { mode: AggregateMode::TokenSum, ..Default::default() };
        let (plan, undefined) = match kept(aggregate.plan(batch)) {
            _ if !wanted => (nothing.plan(batch)?, false),
            Err(Error::EmptyMask) => (nothing.plan(batch)?, true),
            Err(error) => return refused(error),
            Ok(plan) => (plan, false),
        };
        Ok(Self { plan, undefined })
    }

    fn total(&self, sum: Sum) -> f64 {
        if self.undefined {
            f64::NAN
        } else {
            sum.value()
        }
    }
}
