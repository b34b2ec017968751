//! Numbers that are aggregated as a loss is: what enters the sum for a sequence, and what the sum is divided by.

use super::{
    row::{add_rows, add_sums},
    sum::{mean, rounded},
};
use crate::{
    error::{check_config, check_positive, Result},
    layout::Batch,
    loss::{Aggregate, AggregateMode, EmptyRows},
    real::Real,
};

/// Kept tokens, sequences, and sequences with a kept token of all batches of a state.
#[derive(Clone, Copy)]
pub(super) struct Totals {
    pub(super) tokens: u64,
    pub(super) sequences: u64,
    pub(super) kept_sequences: u64,
}

/// Whether a state can aggregate so. The tokens of a prompt are not counted in a state, which has a fixed size.
pub(super) fn check(aggregate: &Aggregate<'_>) -> Result<()> {
    if let AggregateMode::SequenceMeanTokenSumNorm { scale } = aggregate.mode {
        check_positive::<f64>("scale", scale)?;
    }
    let by_prompts = matches!(aggregate.mode, AggregateMode::PromptMean { .. });
    check_config("aggregate", "a mode without prompts", 0.0, !by_prompts)
}

/// What the sum of a sequence's numbers is divided by before it enters the sum over sequences.
pub(super) fn share(aggregate: &Aggregate<'_>, kept: usize) -> f64 {
    match aggregate.mode {
        AggregateMode::SequenceMeanTokenMean => aggregate.divisor.of(kept.max(1) as f64),
        _ => 1.0,
    }
}

/// Adds the kept numbers of a batch.
pub(super) fn add<R: Real>(batch: &Batch<'_>, values: &[R], aggregate: &Aggregate<'_>, sum: &mut [i64]) {
    if aggregate.mode == AggregateMode::SequenceMeanTokenMean {
        add_rows(batch, values, |row, total| total / share(aggregate, row.kept()), sum);
    } else {
        add_sums(batch, values, sum);
    }
}

/// The aggregate of all batches; NaN where it is a mean over nothing.
pub(super) fn value(sum: &[i64], aggregate: &Aggregate<'_>, totals: Totals) -> f64 {
    let sequences = match aggregate.empty_rows {
        EmptyRows::Excluded => totals.kept_sequences,
        EmptyRows::Counted => totals.sequences,
    };
    match aggregate.mode {
        AggregateMode::TokenMean => mean(sum, totals.tokens),
        AggregateMode::TokenSum => rounded(sum),
        // a mean by local counts without kept tokens is undefined
        _ if totals.tokens == 0 => f64::NAN,
        AggregateMode::SequenceMeanTokenSumNorm { scale } => mean(sum, sequences) / scale,
        _ => mean(sum, sequences),
    }
}
