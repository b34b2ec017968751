//! **Rollout correction.** Reads log-probabilities of trainer and sampler, writes importance weights and masks. A mask
//! is a column of 1 and 0.

pub(crate) mod masks;
pub(crate) mod mismatch;
pub(crate) mod rejection;
pub(crate) mod weights;

use tokenwise::{math::sqrt, rollout::RolloutInput, Divisor, Moments, Spread};

use crate::{
    batch::GpuBatch,
    call::{real, Request},
    column::{Column, Input},
    error::GpuError,
    fold::Fold,
    recording::{Done, Download, Recording},
    token::{sequence, token, In},
    trace::SUBTRACT,
};

/// What the rollout corrections read.
#[derive(Clone, Debug)]
pub struct RolloutColumns<'a> {
    /// Log-probabilities that the trainer computed for the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Log-probabilities that the sampler reported.
    pub rollout_log_probs: Input<'a>,
}

impl RolloutColumns<'_> {
    fn check(&self, batch: &GpuBatch<'_>) -> Result<(), GpuError> {
        self.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        self.rollout_log_probs.check_len("rollout_log_probs", batch.tokens())
    }
}

/// Two tokens on which the core checks a config.
const TWO: RolloutInput<'static, f32> = RolloutInput { old_log_probs: &[0.0; 2], rollout_log_probs: &[0.0; 2] };

const PAIR: &[In] = &[token("old_log_probs"), token("rollout_log_probs")];

const ROW: &[In] = &[sequence("log_ratios"), sequence("counts")];

/// The largest and smallest of some numbers.
fn extremes(numbers: impl Iterator<Item = f64>) -> (f64, f64) {
    numbers.fold((f64::NEG_INFINITY, f64::INFINITY), |(most, least), x| (most.max(x), least.min(x)))
}

fn deviation(numbers: impl Iterator<Item = f64>) -> f64 {
    let mut moments = Moments::default();
    numbers.for_each(|x| moments.merge(&Moments { count: 1, mean: x, m2: 0.0 }));
    moments.variance(Spread::Sample, Divisor::Count).map_or(0.0, sqrt)
}

/// The numbers of one column per sequence.
fn rows(done: &Done, column: Download) -> Vec<f64> {
    done.floats(column).iter().map(|&x| f64::from(x)).collect()
}

/// Added in order.
fn total(numbers: impl Iterator<Item = f64>) -> f64 {
    numbers.fold(0.0, |sum, x| sum + x)
}

fn count(yes: impl Iterator<Item = bool>) -> f64 {
    yes.filter(|&yes| yes).count() as f64
}

impl Recording<'_> {
    fn pair(&mut self, input: &RolloutColumns<'_>) -> Result<[Column; 2], GpuError> {
        self.columns([&input.old_log_probs, &input.rollout_log_probs])
    }

    /// The sum of the log-ratios of each sequence.
    fn log_ratios(&mut self, batch: &GpuBatch<'_>, [old, rollout]: &[Column; 2]) -> Result<Column, GpuError> {
        let ([deltas], _) = self.tokens(&SUBTRACT, batch, &[Some(old), Some(rollout)], &[])?;
        self.fold(Fold::Sum, batch, &deltas)
    }

    /// A fold that the host reads.
    fn folded(&mut self, operation: Fold, batch: &GpuBatch<'_>, tokens: &Column) -> Result<Download, GpuError> {
        let folded = self.fold(operation, batch, tokens)?;
        Ok(self.download(&folded))
    }
}

fn input<'a>(call: &Request<'_, 'a>) -> Result<RolloutColumns<'a>, GpuError> {
    Ok(RolloutColumns {
        old_log_probs: real(call, "old_log_probs")?,
        rollout_log_probs: real(call, "rollout_log_probs")?,
    })
}
