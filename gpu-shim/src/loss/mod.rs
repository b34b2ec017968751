//! **Stage 5 of 7 — loss.** Reads log-probabilities and advantages, writes one loss and its gradient.

use tokenwise::{loss::Aggregate, Batch, Divisor, Layout, Mask};
use tokenwise_catalogue::find;

use crate::{
    batch::GpuBatch,
    call::{numbers, Answer, Numbers},
    column::{Column, Input},
    error::GpuError,
    recording::{Download, Pending, Recording},
    token::{bits, kernel, sequence, weight, TokenKernel},
};

pub(crate) mod distill;
pub(crate) mod game;
pub(crate) mod policy;
pub(crate) mod scores;
pub(crate) mod sequences;
pub(crate) mod tokens;

pub(crate) use policy::clip_settings;
pub use {distill::*, game::*, policy::*, scores::*, tokens::*};

/// A loss on the device with its gradient.
#[derive(Debug)]
pub struct LossResult<T> {
    /// The gradient with respect to the first input.
    pub grad: Column,
    /// The loss and its metrics.
    pub loss: Pending<T>,
}

/// The gradient of a policy loss, and those of its numbers that the formula returns.
fn answer(formula: &'static str, result: PolicyLossResult) -> Answer {
    let returned = find(formula).map_or(&[][..], |entry| entry.numbers);
    named(result, move |result| {
        let numbers = [
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
        ];
        numbers.into_iter().filter(|(name, _)| returned.contains(name)).collect()
    })
}

/// The gradient of a loss, and its numbers by name.
fn named<T: 'static>(result: LossResult<T>, names: impl Fn(T) -> Numbers + Send + Sync + 'static) -> Answer {
    Answer { columns: vec![("grad", result.grad)], ..numbers(result.loss, names) }
}

/// The gradient of a loss that returns nothing else.
fn plain(result: LossResult<f64>) -> Answer {
    named(result, |loss| vec![("loss", loss)])
}

/// Runs the core's check of a config: `call` is the loss of one token with the default aggregation, whose own check is
/// [`Weights::new`]. The core checks lengths first, then the config, then the aggregation.
fn check_config<T>(call: impl FnOnce(&Batch<'_>, &mut [f32]) -> tokenwise::Result<T>) -> Result<(), GpuError> {
    let batch = Batch::new(Layout::padded(1, 1)?, Mask::new(&[true]))?;
    call(&batch, &mut [0.0])?;
    Ok(())
}

/// The aggregation weights of a batch.
#[derive(Clone, Debug)]
pub(crate) struct Weights {
    /// The factor of every token, in the gradient and in the sum.
    pub(crate) share: f64,
    /// A further factor for each sequence, if they differ.
    pub(crate) rows: Option<Vec<f32>>,
}

impl Weights {
    pub(crate) fn new(batch: &Batch<'_>, aggregate: &Aggregate<'_>) -> Result<Self, GpuError> {
        let mut weights = Vec::with_capacity(batch.sequences());
        aggregate.sequence_weights(batch, |weight| weights.push(weight))?;
        let share = weights.first().copied().unwrap_or(1.0);
        if weights.iter().all(|&weight| weight == share) {
            return Ok(Self { share, rows: None });
        }
        Ok(Self { share: 1.0, rows: Some(weights.into_iter().map(|weight| weight as f32).collect()) })
    }

    /// The same weights, each times a coefficient.
    fn times(self, coefficient: f64) -> Self {
        Self { share: self.share * coefficient, ..self }
    }
}

/// What [`Recording::weighed`] records.
struct Weighed {
    grad: Column,
    /// The sums; the first one is the loss without `share`.
    sums: Download,
    share: f64,
}

/// Storage buffers for inputs and outputs that every device has, beside slots and record.
const COLUMNS: usize = 6;

const WEIGHTED: TokenKernel = kernel(
    "loss/weighted",
    include_str!("../../shaders/loss/weighted.wgsl"),
    &[weight("weights"), sequence("row_weights")],
    &["out"],
    &[],
    &[],
);

impl Recording<'_> {
    /// Runs a loss whose input and config were checked. The kernel's inputs are `inputs`, then `weights` if it has
    /// rollout weights, then `row_weights`; its first setting is `share`, which `settings` lacks; its output is the
    /// gradient.
    fn weighed(
        &mut self,
        kernel: &TokenKernel,
        batch: &GpuBatch<'_>,
        inputs: &[Option<&Input<'_>>],
        rollout: Option<&Input<'_>>,
        weights: Weights,
        settings: &[u32],
    ) -> Result<Weighed, GpuError> {
        let mut columns = Vec::with_capacity(inputs.len() + 2);
        for input in inputs {
            columns.push(input.map(|input| self.column(input)).transpose()?);
        }
        let mut rollout = rollout.map(|rollout| self.column(rollout)).transpose()?;
        let mut rows = weights.rows.as_ref().map(|rows| self.upload(rows)).transpose()?;
        let bound = columns.iter().flatten().count() + 3;
        if let (Some(of_tokens), Some(of_rows), true) = (&rollout, &rows, bound > COLUMNS) {
            let ([product], _) = self.tokens(&WEIGHTED, batch, &[Some(of_tokens), Some(of_rows)], &[])?;
            (rollout, rows) = (Some(product), None);
        }
        if kernel.inputs.len() == inputs.len() + 2 {
            columns.push(rollout);
        }
        columns.push(rows);
        let given: Vec<Option<&Column>> = columns.iter().map(Option::as_ref).collect();
        let settings = [&[bits(weights.share)], settings].concat();
        let ([grad], record) = self.tokens(kernel, batch, &given, &settings)?;
        Ok(Weighed { grad, sums: record.header, share: weights.share })
    }
}

/// Means over the kept tokens of a batch; 0 if there are none.
fn mean_over(batch: &GpuBatch<'_>, divisor: Divisor) -> impl Fn(f64) -> f64 + Send + Sync + 'static {
    let kept = batch.host().kept();
    move |sum| if kept == 0 { 0.0 } else { sum / divisor.of(kept as f64) }
}
