use crate::{
    error::{check_len, Error, Result},
    layout::{Batch, Row},
    math::{clamp, exp_remainder, ln},
    real::Real,
    reduce::fold_row,
    rollout::RolloutInput,
    simd::multiversion,
    statistics::{Divisor, Extremes},
};

/// The statistic of a token or sequence. With δ = log π_old − log π_rollout within ±20:
/// k1 = −δ, k2 = δ²/2, k3 = e^δ − 1 − δ.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum RejectionOption {
    /// k1 of each token.
    TokenK1,
    /// k2 of each token.
    TokenK2,
    /// k3 of each token.
    TokenK3,
    /// Sum of k1 over a sequence.
    SeqSumK1,
    /// Sum of k2 over a sequence.
    SeqSumK2,
    /// Sum of k3 over a sequence.
    SeqSumK3,
    /// Mean of k1 over a sequence.
    SeqMeanK1,
    /// Mean of k2 over a sequence.
    SeqMeanK2,
    /// Mean of k3 over a sequence.
    SeqMeanK3,
    /// Largest k2 of a sequence.
    SeqMaxK2,
    /// Largest k3 of a sequence.
    SeqMaxK3,
}

/// What the statistic is computed over.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Scope {
    Token,
    Sum,
    Mean,
    Max,
}

/// Which statistic.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Statistic {
    K1,
    K2,
    K3,
}

impl RejectionOption {
    /// All options.
    pub const ALL: [Self; 11] = [
        Self::TokenK1,
        Self::TokenK2,
        Self::TokenK3,
        Self::SeqSumK1,
        Self::SeqSumK2,
        Self::SeqSumK3,
        Self::SeqMeanK1,
        Self::SeqMeanK2,
        Self::SeqMeanK3,
        Self::SeqMaxK2,
        Self::SeqMaxK3,
    ];

    /// verl's name: `token_k1` … `seq_max_k3`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TokenK1 => "token_k1",
            Self::TokenK2 => "token_k2",
            Self::TokenK3 => "token_k3",
            Self::SeqSumK1 => "seq_sum_k1",
            Self::SeqSumK2 => "seq_sum_k2",
            Self::SeqSumK3 => "seq_sum_k3",
            Self::SeqMeanK1 => "seq_mean_k1",
            Self::SeqMeanK2 => "seq_mean_k2",
            Self::SeqMeanK3 => "seq_mean_k3",
            Self::SeqMaxK2 => "seq_max_k2",
            Self::SeqMaxK3 => "seq_max_k3",
        }
    }

    pub(crate) const fn parts(self) -> (Scope, Statistic) {
        match self {
            Self::TokenK1 => (Scope::Token, Statistic::K1),
            Self::TokenK2 => (Scope::Token, Statistic::K2),
            Self::TokenK3 => (Scope::Token, Statistic::K3),
            Self::SeqSumK1 => (Scope::Sum, Statistic::K1),
            Self::SeqSumK2 => (Scope::Sum, Statistic::K2),
            Self::SeqSumK3 => (Scope::Sum, Statistic::K3),
            Self::SeqMeanK1 => (Scope::Mean, Statistic::K1),
            Self::SeqMeanK2 => (Scope::Mean, Statistic::K2),
            Self::SeqMeanK3 => (Scope::Mean, Statistic::K3),
            Self::SeqMaxK2 => (Scope::Max, Statistic::K2),
            Self::SeqMaxK3 => (Scope::Max, Statistic::K3),
        }
    }

    /// Whether the bounds are ratios, whose logs are compared (k1), rather than divergences.
    pub const fn takes_ratios(self) -> bool {
        matches!(self.parts().1, Statistic::K1)
    }
}

/// One condition that a token or sequence must meet to be kept.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct Criterion {
    /// The statistic.
    pub option: RejectionOption,
    /// k1 only: `ln lower ≤ k1`; positive. Not used by the others.
    pub lower: f64,
    /// k1: `k1 ≤ ln upper`, not below `lower`; the others: statistic ≤ `upper`. Positive.
    pub upper: f64,
}

impl Default for Criterion {
    fn default() -> Self {
        Self { option: RejectionOption::TokenK1, lower: 0.5, upper: 2.0 }
    }
}

impl Criterion {
    pub(crate) fn check(&self, index: usize) -> Result<()> {
        let entry = |must_be, got| Err(Error::Entry { what: "criteria", index, must_be, got });
        if !(self.upper.is_finite() && self.upper > 0.0) {
            return entry("an upper bound that is finite and positive", self.upper);
        }
        if self.option.takes_ratios() && !(self.lower > 0.0 && self.lower <= self.upper) {
            return entry("a lower bound that is positive and not above the upper one", self.lower);
        }
        Ok(())
    }

    /// The bounds in the unit of the statistic; −inf if there is no lower one.
    pub(crate) fn bounds(&self) -> (f64, f64) {
        if self.option.takes_ratios() {
            (ln(self.lower), ln(self.upper))
        } else {
            (f64::NEG_INFINITY, self.upper)
        }
    }

    /// The statistic of one token.
    #[inline(always)]
    pub(crate) fn token<R: Real>(&self, old: R, rollout: R) -> f64 {
        let bound = R::narrow(20.0);
        let delta = clamp(old - rollout, -bound, bound);
        match self.option.parts().1 {
            Statistic::K1 => -delta.widen(),
            Statistic::K2 => (R::narrow(0.5) * (delta * delta)).widen(),
            Statistic::K3 => exp_remainder(delta).widen(),
        }
    }

    /// The statistic of one sequence; the mean over its tokens for a token option; 0 without kept tokens.
    #[inline(always)]
    pub(crate) fn sequence<R: Real>(&self, row: &Row<'_>, input: RolloutInput<'_, R>, divisor: Divisor) -> f64 {
        let (scope, kept) = (self.option.parts().0, row.kept());
        if kept == 0 {
            return 0.0;
        }
        if scope == Scope::Max {
            let mut extremes = Extremes::NONE;
            let pairs = row.of(input.old_log_probs).iter().zip(row.of(input.rollout_log_probs));
            for ((&old, &rollout), _) in pairs.zip(row.keep).filter(|(_, &keep)| keep) {
                extremes.add(self.token(old, rollout));
            }
            return extremes.max;
        }
        let inputs = [input.old_log_probs, input.rollout_log_probs];
        let [sum] = fold_row(row, inputs, [], |[old, rollout]| ([], [self.token(old, rollout)]));
        if scope == Scope::Sum {
            sum
        } else {
            sum / divisor.of(kept as f64)
        }
    }
}

/// The conventions of [`rollout_rejection`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct RejectionConfig<'a> {
    /// All must be met; an empty slice keeps everything. Skipped by serde: each criterion is a config of its own.
    #[cfg_attr(feature = "serde", serde(skip))]
    pub criteria: &'a [Criterion],
    /// Divisor of a mean over a sequence; default the exact count.
    pub divisor: Divisor,
}

impl RejectionConfig<'_> {
    pub(crate) fn check(&self) -> Result<()> {
        self.criteria.iter().enumerate().try_for_each(|(index, criterion)| criterion.check(index))
    }
}

/// Keeps the tokens on which trainer and sampler agree closely enough, by every criterion.
///
/// ```text
/// δ = clip(log π_old − log π_rollout, ±20)      k1 = −δ      k2 = δ²/2      k3 = e^δ − 1 − δ
/// k1: keep iff ln L ≤ k1 ≤ ln U      k2, k3: keep iff statistic ≤ U
/// ```
///
/// k1 is *minus* the log-ratio, so the bounds `L … U` accept ratios `π_old/π_rollout` in the reciprocal interval
/// `1/U … 1/L`; only `L = 1/U` is symmetric. A sequence criterion keeps or drops the sequence as a whole; a NaN
/// statistic drops its token or sequence.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and stay dropped.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::Entry`] with the first criterion whose
/// bounds are not positive or not in order.
///
/// **Reference.** verl 0.9.1 `compute_rollout_rejection_mask`, with [`Divisor::CountPlusEpsilon`]; its strings are read
/// by [`parse_rejection`](crate::rollout::parse_rejection).
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let input = RolloutInput {
///     old_log_probs: &[-1.0, -2.0, f64::NAN, -0.5],
///     rollout_log_probs: &[-1.0, -1.0, f64::NAN, -0.5],
/// };
/// let criteria = [Criterion { option: RejectionOption::TokenK2, upper: 0.25, ..Default::default() }];
/// let mut keep = [true; 4];
/// rollout_rejection(&batch, input, &RejectionConfig { criteria: &criteria, ..Default::default() }, &mut keep)?;
/// assert_eq!(keep, [true, false, false, true]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn rollout_rejection<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    config: &RejectionConfig<'_>,
    keep: &mut [bool],
) -> Result<()> {
    input.check(batch)?;
    check_len("keep", keep, batch.tokens())?;
    config.check()?;
    reject(batch, input, config, keep);
    Ok(())
}

#[multiversion]
fn reject<R: Real>(batch: &Batch<'_>, input: RolloutInput<'_, R>, config: &RejectionConfig<'_>, keep: &mut [bool]) {
    for row in batch.token_rows() {
        let keep = row.of_mut(keep);
        keep.copy_from_slice(row.keep);
        for criterion in config.criteria {
            let (lower, upper) = criterion.bounds();
            let inside = |statistic: f64| statistic >= lower && statistic <= upper;
            if criterion.option.parts().0 != Scope::Token {
                if !inside(criterion.sequence(&row, input, config.divisor)) {
                    keep.fill(false);
                }
                continue;
            }
            let pairs = row.of(input.old_log_probs).iter().zip(row.of(input.rollout_log_probs));
            for (keep, (&old, &rollout)) in keep.iter_mut().zip(pairs) {
                *keep = *keep && inside(criterion.token(old, rollout));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rollout::{
        fixture::{batch, input, KEEP},
        parse_rejection,
    };

    #[test]
    fn the_mask_of_verl() {
        let mut criteria = [Criterion::default(); 3];
        assert_eq!(parse_rejection("token_k1,seq_mean_k3,seq_max_k2", "0.9_1.12,0.004,0.05", &mut criteria), Ok(3));
        let config = RejectionConfig { criteria: &criteria, divisor: Divisor::CountPlusEpsilon };
        let mut keep = [true; 20];
        rollout_rejection(&batch(), input(), &config, &mut keep).unwrap();
        for row in [0, 2] {
            assert_eq!(keep[row * 5..][..5], KEEP[row * 5..][..5]);
        }
        for row in [1, 3] {
            assert_eq!(keep[row * 5..][..5], [false; 5]);
        }
    }
}
