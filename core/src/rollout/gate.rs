use crate::{
    error::{check_config, check_finite, check_len, check_range, Error, Result},
    layout::Batch,
    math::{clamp, exp, ln},
    real::Real,
    reduce::{count, fold_row, Sum},
    rollout::RolloutInput,
    simd::multiversion,
};

/// What the gate accepts or rejects.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GateLevel {
    /// Nothing: every weight is 1.
    #[default]
    Off,
    /// Each token.
    Token,
    /// Each sequence as a whole.
    Sequence,
}

/// What the gate measures; p is the sampler's probability of the token, q the trainer's, both clamped to
/// `[1e-6, 1 − 1e-6]`.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GateStatistic {
    /// `e^δ`; the geometric mean for a sequence.
    #[default]
    Ratio,
    /// `p ln(p/q) + (1 − p) ln((1 − p)/(1 − q))`; the mean for a sequence.
    BinaryKl,
    /// `|p − q|`; the mean for a sequence.
    TotalVariation,
}

/// What the gate does outside the band.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GateMode {
    /// The weight is the ratio, clamped to the band. Only for the ratio of a token.
    Clip,
    /// The weight is the token's ratio inside the band, not truncated, and 0 outside.
    #[default]
    Mask,
}

/// The conventions of [`rollout_gate`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GateConfig {
    /// Default off.
    pub level: GateLevel,
    /// Default the ratio.
    pub statistic: GateStatistic,
    /// Default mask.
    pub mode: GateMode,
    /// The lower end of the band; default 0.5. Must be 0 (or below) for a divergence.
    pub lower: f64,
    /// The upper end; default 5.
    pub upper: f64,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self { level: GateLevel::Off, statistic: GateStatistic::Ratio, mode: GateMode::Mask, lower: 0.5, upper: 5.0 }
    }
}

impl GateConfig {
    fn check<R: Real>(&self) -> Result<()> {
        check_finite::<R>("lower", self.lower)?;
        check_config(
            "upper",
            "finite and not below lower",
            self.upper,
            self.upper.is_finite() && self.upper >= self.lower,
        )?;
        check_range::<R>("upper", self.upper)?;
        if self.level == GateLevel::Off {
            return Ok(());
        }
        let plain = self.level == GateLevel::Token && self.statistic == GateStatistic::Ratio;
        // an error holds a number, so the rejected mode is reported by its index
        check_config(
            "mode",
            "Mask, unless the statistic is the token's ratio",
            0.0,
            self.mode == GateMode::Mask || plain,
        )?;
        let needs_none = self.statistic != GateStatistic::Ratio;
        check_config("lower", "0 or below for a divergence", self.lower, !needs_none || self.lower <= 0.0)
    }

    /// The statistic of one token; the ratio as its log, so that a sequence can take the mean.
    #[inline(always)]
    fn token<R: Real>(&self, old: R, rollout: R) -> R {
        let probability = |log_prob: R| clamp(exp(log_prob), R::narrow(1e-6), R::narrow(1.0 - 1e-6));
        let (p, q) = (probability(rollout), probability(old));
        match self.statistic {
            GateStatistic::Ratio => old - rollout,
            GateStatistic::BinaryKl => p * ln(p / q) + (R::one() - p) * ln((R::one() - p) / (R::one() - q)),
            GateStatistic::TotalVariation => (p - q).abs(),
        }
    }

    #[inline(always)]
    fn finish<R: Real>(&self, statistic: R) -> R {
        if self.statistic == GateStatistic::Ratio {
            exp(statistic)
        } else {
            statistic
        }
    }
}

/// Statistics of one call of the gate.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct GateReport {
    /// Share of tokens, or of sequences with kept tokens, outside the band. `is_filter_ratio`.
    pub filtered: f64,
    /// Mean over tokens of `log π_rollout − log π_old`. `vllm_kl`.
    pub kl: f64,
}

/// OpenRLHF's gate between trainer and sampler: one weight per token, 0 or clipped where the two disagree too much.
///
/// ```text
/// δ = log π_old − log π_rollout      s = e^δ (sequence: e^{mean δ}), binary KL or total variation (sequence: mean)
/// Clip: ω = clip(s, lower, upper)      Mask: ω = e^δ where lower ≤ s ≤ upper, else 0
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0. Sequences without kept tokens are not counted in the share. NaN is
/// outside every band: `Mask` gives 0, `Clip` NaN.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if the band is not finite or not in
/// order, if `Clip` is used with anything but the token's ratio, or a divergence with a positive lower end;
/// [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** OpenRLHF 0.11 `PolicyLoss` (`is_correction_*`), which counts empty sequences as filtered. Token
/// ratio: clip is TIS, mask is IcePop; sequence ratio: `seq-mask-tis`.
///
/// # Example
///
/// ```
/// use tokenwise::{math, rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RolloutInput {
///     old_log_probs: &[-1.0, f64::NAN, math::ln(8.0)],
///     rollout_log_probs: &[-1.0, f64::NAN, 0.0],
/// };
/// let config = GateConfig { level: GateLevel::Token, ..Default::default() };
/// let mut weights = [9.0; 3];
/// let report = rollout_gate(&batch, input, &config, &mut weights)?;
/// assert_eq!((weights, report.filtered), ([1.0, 0.0, 0.0], 0.5));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn rollout_gate<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &GateConfig,
    weights: &mut [R],
) -> Result<GateReport> {
    input.check(batch)?;
    check_len("weights", weights, batch.tokens())?;
    config.check::<R>()?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    Ok(gate(batch, input, config, weights))
}

#[multiversion]
fn gate<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>, config: &GateConfig, weights: &mut [R]) -> GateReport {
    // a divergence has no lower end, because rounding may make it slightly negative
    let plain = config.statistic == GateStatistic::Ratio;
    let lower = if plain { R::narrow(config.lower) } else { R::neg_infinity() };
    let upper = R::narrow(config.upper);
    let (mut kl, mut filtered) = (Sum::default(), Sum::default());
    for row in batch.token_rows().filter(|row| row.last_kept().is_none()) {
        row.of_mut(weights).fill(R::zero());
    }
    for row in batch.token_rows().filter(|row| row.last_kept().is_some()) {
        let inputs = [input.old_log_probs, input.rollout_log_probs];
        let of_sequence = (config.level == GateLevel::Sequence).then(|| {
            let [sum] = fold_row(&row, inputs, [], |[old, rollout]| ([], [config.token(old, rollout).widen()]));
            config.finish(R::narrow(sum / row.kept() as f64))
        });
        let [row_kl, outside] = fold_row(&row, inputs, [&mut *weights], |[old, rollout]| {
            let statistic = of_sequence.unwrap_or_else(|| config.finish(config.token(old, rollout)));
            let inside = statistic >= lower && statistic <= upper;
            let weight = match (config.level, config.mode) {
                (GateLevel::Off, _) => R::one(),
                (_, GateMode::Clip) => clamp(statistic, lower, upper),
                (_, GateMode::Mask) if inside => exp(old - rollout),
                (_, GateMode::Mask) => R::zero(),
            };
            ([weight], [(rollout - old).widen(), count(!inside)])
        });
        kl.add(row_kl);
        filtered.add(if of_sequence.is_some() { count(outside > 0.0) } else { outside });
    }
    let units = match config.level {
        GateLevel::Sequence => batch.kept_sequences(),
        _ => batch.kept(),
    };
    let filtered = if config.level == GateLevel::Off { 0.0 } else { filtered.value() / units as f64 };
    GateReport { filtered, kl: kl.value() / batch.kept() as f64 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::fixture::{batch, input, near};

    fn gated(config: &GateConfig) -> ([f64; 20], GateReport) {
        let mut weights = [9.0; 20];
        let report = rollout_gate(&batch(), input(), config, &mut weights).unwrap();
        (weights, report)
    }

    #[test]
    fn token_and_sequence_bands() {
        let config =
            GateConfig { level: GateLevel::Token, mode: GateMode::Clip, lower: 0.95, upper: 1.1, ..Default::default() };
        let (weights, report) = gated(&config);
        near(report.kl, -0.027333);
        assert_eq!((weights[1], weights[6], weights[4]), (1.1, 0.95, 0.0));
        let config =
            GateConfig { level: GateLevel::Sequence, mode: GateMode::Mask, lower: 0.99, upper: 1.05, ..config };
        let (weights, report) = gated(&config);
        // geometric means: e^0.03, e^-0.0125, e^-0.04, e^0.084
        near(weights[1], 1.105171);
        assert_eq!((weights[10], weights[15], report.filtered), (0.0, 0.0, 0.75));
    }

    #[test]
    fn divergences_take_an_upper_bound_only() {
        let config =
            GateConfig { level: GateLevel::Sequence, statistic: GateStatistic::TotalVariation, ..Default::default() };
        assert!(rollout_gate(&batch(), input(), &config, &mut [0.0; 20]).is_err());
        let (weights, report) = gated(&GateConfig { lower: 0.0, upper: 0.0285, ..config });
        // mean |p − q|: 0.028, 0.036, 0.025, 0.030
        assert_eq!((report.filtered, weights[5], weights[15]), (0.5, 0.0, 0.0));
        near(weights[10], 0.904837);
        let (_, report) = gated(&GateConfig { lower: 0.0, upper: 1.0, statistic: GateStatistic::BinaryKl, ..config });
        assert_eq!(report.filtered, 0.0);
        let clip = GateConfig { mode: GateMode::Clip, lower: 0.0, ..config };
        assert!(rollout_gate(&batch(), input(), &clip, &mut [0.0; 20]).is_err());
    }
}
