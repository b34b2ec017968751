use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, Sum},
    rollout::{BatchNormalize, RolloutConfig, RolloutInput, RolloutLevel},
    simd::multiversion,
    statistics::Divisor,
};

/// Importance weights: how much each token counts, so that tokens drawn by the sampler stand for tokens drawn by the
/// trainer's policy.
///
/// ```text
/// δ = log π_old − log π_rollout      w = e^δ, e^{Σ_t δ} or e^{Σ_t δ / n}
/// ω = w within bounds, then ω / mean ω if asked
/// ```
///
/// Returns the mean that the weights were divided by; 1 if they were not divided.
///
/// **Alignment.** Action-aligned in and out; a sequence's weight is written to each of its kept tokens.
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if a bound is outside its domain;
/// [`Error::EmptyMask`] if the mean is needed and no token is kept.
///
/// **Reference.** verl 0.9.1 `compute_rollout_correction_weights` (`Token`, `Sequence`; `Truncate`, `Zero`; ±20); the
/// levels and bounds of other frameworks are listed at [`RolloutLevel`] and
/// [`WeightBound`](crate::rollout::WeightBound). TRL 1.16: [`RolloutConfig::sampler_mode`]. A NaN ratio stays NaN under
/// every bound; verl turns it into 0 under `Zero`.
///
/// # Example
///
/// ```
/// use tokenwise::{math, rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RolloutInput {
///     old_log_probs: &[-1.0, f64::NAN, math::ln(4.0)],
///     rollout_log_probs: &[-1.0, f64::NAN, 0.0],
/// };
/// let mut weights = [9.0; 3];
/// let factor = rollout_weights(&batch, input, &RolloutConfig::default(), &mut weights)?;
/// assert_eq!((weights, factor), ([1.0, 0.0, 2.0], 1.0));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn rollout_weights<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &RolloutConfig,
    weights: &mut [R],
) -> Result<f64> {
    input.check(batch)?;
    check_len("weights", weights, batch.tokens())?;
    config.check::<R>()?;
    if config.normalize != BatchNormalize::Off && batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    let factor = weigh(batch, input, config, weights);
    if config.normalize == BatchNormalize::Off || factor <= 1e-8 {
        return Ok(1.0);
    }
    divide(batch, factor, weights);
    Ok(factor)
}

/// Divides the weights of kept tokens by their mean.
pub(crate) fn divide<R: Real>(batch: &Batch<'_>, factor: f64, weights: &mut [R]) {
    let divisor = R::narrow(factor);
    for row in batch.token_rows() {
        for (weight, &keep) in row.of_mut(weights).iter_mut().zip(row.keep) {
            if keep {
                *weight /= divisor;
            }
        }
    }
}

/// The mean that [`BatchNormalize`] needs, from sums over sequences.
#[derive(Clone, Copy, Default)]
struct MeanWeight {
    tokens: Sum,
    sequences: Sum,
}

impl MeanWeight {
    fn add(&mut self, sum: f64, kept: usize, divisor: Divisor) {
        self.tokens.add(sum);
        if kept > 0 {
            self.sequences.add(sum / divisor.of(kept as f64));
        }
    }

    fn value(self, batch: &Batch<'_>, config: &RolloutConfig) -> f64 {
        match (config.normalize, config.level) {
            (BatchNormalize::ByLevel, RolloutLevel::Sequence | RolloutLevel::Geometric) => {
                self.sequences.value() / batch.kept_sequences() as f64
            }
            _ => self.tokens.value() / config.divisor.of(batch.kept() as f64),
        }
    }
}

/// Writes the weights, returns their mean.
#[multiversion]
fn weigh<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>, config: &RolloutConfig, weights: &mut [R]) -> f64 {
    let mut mean = MeanWeight::default();
    for row in batch.token_rows() {
        let [sum] = if config.level == RolloutLevel::Token {
            fold_row(&row, [input.old_log_probs, input.rollout_log_probs], [&mut *weights], |[old, rollout]| {
                let weight = config.bound.apply(config.ratio(config.log_ratio(old, rollout)));
                ([weight], [weight.widen()])
            })
        } else {
            let weight = config.bound.apply(R::narrow(config.ratio(config.sequence_log_ratio(&row, input))));
            fold_row(&row, [], [&mut *weights], |[]| ([weight], [weight.widen()]))
        };
        mean.add(sum, row.kept(), config.divisor);
    }
    mean.value(batch, config)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{
        fixture::{batch, input, near},
        SamplerMode, WeightBound,
    };

    fn weights(config: &RolloutConfig) -> ([f64; 20], f64) {
        let mut weights = [9.0; 20];
        let factor = rollout_weights(&batch(), input(), config, &mut weights).unwrap();
        (weights, factor)
    }

    #[test]
    fn the_numbers_of_verl() {
        let config = RolloutConfig { bound: WeightBound::Truncate { upper: 1.1 }, ..Default::default() };
        let (got, _) = weights(&config);
        let expected = [1.020201, 1.1, 1.051271, 0.951229, 0.0, 1.051271, 0.904837, 0.0, 1.1, 0.904837];
        for (got, expected) in got.into_iter().zip(expected) {
            near(got, expected);
        }
        let config = RolloutConfig { bound: WeightBound::Zero { lower: 0.92, upper: 1.1 }, ..config };
        let (got, _) = weights(&config);
        for (got, expected) in got.into_iter().zip([1.020201, 0.0, 1.051271, 0.951229, 0.0]) {
            near(got, expected);
        }
        let config = RolloutConfig {
            level: RolloutLevel::Sequence,
            bound: WeightBound::Truncate { upper: 1.2 },
            normalize: BatchNormalize::ByLevel,
            divisor: Divisor::CountPlusEpsilon,
            ..config
        };
        let (got, factor) = weights(&config);
        near(factor, 1.050461);
        for (slot, expected) in [(0, 1.073336), (5, 0.905536), (10, 0.878773), (15, 1.142356)] {
            near(got[slot], expected);
        }
        assert_eq!(got[4], 0.0);
    }

    #[test]
    fn the_modes_of_trl() {
        let (got, _) = weights(&RolloutConfig::sampler_mode(SamplerMode::SequenceMask, 0.0, 1.2));
        near(got[0], 1.127497);
        assert_eq!(got[15], 0.0);
        let (got, _) = weights(&RolloutConfig::sampler_mode(SamplerMode::TokenTruncate, 0.95, 1.1));
        assert_eq!((got[1], got[6]), (1.1, 0.95));
        let keep = [true];
        let one = Batch::new(crate::Layout::padded(1, 1).unwrap(), crate::Mask::new(&keep)).unwrap();
        let mut out = [9.0];
        let config = RolloutConfig::sampler_mode(SamplerMode::TokenMask, 0.0, f64::INFINITY);
        let unscored = RolloutInput { old_log_probs: &[-1.0], rollout_log_probs: &[f64::NAN] };
        rollout_weights(&one, unscored, &config, &mut out).unwrap();
        assert_eq!(out, [1.0]);
    }

    #[test]
    fn refused_before_anything_is_written() {
        let mut out = [9.0; 20];
        for bound in [
            WeightBound::Truncate { upper: 0.0 },
            WeightBound::Truncate { upper: f64::NAN },
            WeightBound::Clamp { lower: 2.0, upper: 1.0 },
            WeightBound::Zero { lower: -1.0, upper: 1.0 },
        ] {
            let config = RolloutConfig { bound, ..Default::default() };
            assert!(rollout_weights(&batch(), input(), &config, &mut out).is_err());
        }
        assert_eq!(out, [9.0; 20]);
    }
}
