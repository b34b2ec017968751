//! The formulas over logits for `f32` alone, compiled with this crate rather than with its user: a module that is built for size
//! keeps the loops that are worth their room.

use super::{
    entropy as any_entropy, log_probs_and_entropy as any_log_probs_and_entropy, token_log_probs as any_token_log_probs,
    LogProbInput, LogProbOutput, LogitsInput, PolicyConfig,
};
use crate::{error::Result, layout::Batch};

/// [`any_log_probs_and_entropy`] of `f32`.
pub fn log_probs_and_entropy(
    batch: &Batch<'_>,
    input: LogProbInput<'_, f32>,
    config: &PolicyConfig,
    output: LogProbOutput<'_, f32>,
) -> Result<()> {
    any_log_probs_and_entropy(batch, input, config, output)
}

/// [`any_token_log_probs`] of `f32`.
pub fn token_log_probs(
    batch: &Batch<'_>,
    input: LogProbInput<'_, f32>,
    config: &PolicyConfig,
    out: &mut [f32],
) -> Result<()> {
    any_token_log_probs(batch, input, config, out)
}

/// [`any_entropy`] of `f32`.
pub fn entropy(batch: &Batch<'_>, input: LogitsInput<'_, f32>, config: &PolicyConfig, out: &mut [f32]) -> Result<()> {
    any_entropy(batch, input, config, out)
}
