use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    math::exp,
    real::Real,
};

/// Trace coefficient: how much the later rewards count when the policy would have chosen other tokens.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum TraceCoefficient {
    /// `ρ`: the whole importance ratio; unbiased and noisy.
    Importance,
    /// `λ`: no correction; safe only close to the policy (Q(λ)).
    Lambda,
    /// `λ π`: the probability itself; needs no old policy, and decays fast (tree backup; rlax at λ = 1).
    TreeBackup,
    /// `λ min(1, ρ)`: never noisier than on-policy, and cut only where necessary (Retrace).
    #[default]
    Retrace,
}

/// What [`retrace`] reads.
#[derive(Clone, Copy, Debug)]
pub struct RetraceInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// Values of the states under the policy, `Σ_a π(a) Q(s, a)`, state-aligned.
    pub values: &'a [R],
    /// Action values `Q(s, a)` of the emitted tokens, action-aligned.
    pub action_values: &'a [R],
    /// One per sequence: the value after its last kept token. 0 for a finished sequence, V(s) for a truncated one.
    pub bootstrap: &'a [R],
    /// Log-probabilities under the policy being evaluated, action-aligned.
    pub log_probs: &'a [R],
    /// Log-probabilities under the policy that generated the tokens, action-aligned.
    pub old_log_probs: &'a [R],
}

/// How [`retrace`] discounts and corrects.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct RetraceConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// λ of the coefficient, in `[0, 1]`; default 1. [`TraceCoefficient::Importance`] does not use it.
    pub lambda: f64,
    /// The coefficient; default [`TraceCoefficient::Retrace`].
    pub coefficient: TraceCoefficient,
}

impl Default for RetraceConfig {
    fn default() -> Self {
        Self { gamma: 1.0, lambda: 1.0, coefficient: TraceCoefficient::Retrace }
    }
}

/// Returns for action values, from tokens that another policy generated.
///
/// ```text
/// G_t = r_t + γ (V_{t+1} + c_{t+1} (G_{t+1} − Q_{t+1}))        last kept token: G = r + γ bootstrap
/// c = ρ | λ | λ π | λ min(1, ρ)        ρ = exp(log π − log π_old)
/// ```
///
/// **Alignment.** `values` is state-aligned, the other token slices and `out` action-aligned; `bootstrap` has one entry
/// per sequence.
///
/// **Mask.** Dropped slots are never read and get 0; `t + 1` is the next *kept* token.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ or λ is outside `[0, 1]`.
///
/// **Reference.** Munos et al. 2016, arXiv:1606.02647, eq. 3 and table 1; rlax
/// `general_off_policy_returns_from_q_and_v`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = RetraceInput {
///     rewards: &[0.0, f64::NAN, 1.0],
///     values: &[0.5, f64::NAN, 0.25],
///     action_values: &[0.5, f64::NAN, 0.75],
///     bootstrap: &[2.0],
///     log_probs: &[-1.0, f64::NAN, -0.5],
///     old_log_probs: &[-1.0, f64::NAN, -1.0],      // the policy likes the last token more than before: capped at 1
/// };
/// let mut returns = [9.0; 3];
/// retrace(&batch, input, &RetraceConfig { gamma: 0.5, ..Default::default() }, &mut returns)?;
/// assert_eq!(returns, [0.75, 0.0, 2.0]);           // (0.25 + 2 − 0.75) / 2
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn retrace<R: Real>(
    batch: &Batch<'_>,
    input: RetraceInput<'_, R>,
    config: &RetraceConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("values", input.values, batch.tokens())?;
    check_len("action_values", input.action_values, batch.tokens())?;
    check_len("bootstrap", input.bootstrap, batch.sequences())?;
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_unit("gamma", config.gamma)?;
    check_unit("lambda", config.lambda)?;
    let (gamma, lambda) = (R::narrow(config.gamma), R::narrow(config.lambda));
    for (row, &bootstrap) in batch.rows().zip(input.bootstrap) {
        let (rewards, values, action_values) =
            (row.of(input.rewards), row.of(input.values), row.of(input.action_values));
        let (log_probs, old_log_probs, out) = (row.of(input.log_probs), row.of(input.old_log_probs), row.of_mut(out));
        // V_{t+1} + c_{t+1} (G_{t+1} − Q_{t+1})
        let mut ahead = bootstrap;
        for t in (0..row.keep.len()).rev() {
            if !row.keep[t] {
                out[t] = R::zero();
                continue;
            }
            out[t] = rewards[t] + gamma * ahead;
            let ratio = || exp(log_probs[t] - old_log_probs[t]);
            let coefficient = match config.coefficient {
                TraceCoefficient::Importance => ratio(),
                TraceCoefficient::Lambda => lambda,
                TraceCoefficient::TreeBackup => lambda * exp(log_probs[t]),
                TraceCoefficient::Retrace => {
                    let ratio = ratio();
                    // written so that a NaN ratio propagates
                    lambda * if ratio > R::one() { R::one() } else { ratio }
                }
            };
            ahead = values[t] + coefficient * (out[t] - action_values[t]);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};

    fn first_row(coefficient: TraceCoefficient) -> [f64; 4] {
        let mut out = [9.0; 20];
        let action_values: [f64; 20] = core::array::from_fn(|t| VALUES[t] + 0.125);
        let input = RetraceInput {
            rewards: &REWARDS,
            values: &VALUES,
            action_values: &action_values,
            bootstrap: &[0.5; 4],
            log_probs: &LOG_PROBS,
            old_log_probs: &OLD_LOG_PROBS,
        };
        retrace(&batch(), input, &RetraceConfig { gamma: 0.9, lambda: 0.8, coefficient }, &mut out).unwrap();
        assert!(out.iter().all(|x| x.is_finite()) && out[4] == 0.0);
        [out[0], out[1], out[2], out[3]]
    }

    #[test]
    fn every_coefficient_by_the_definition() {
        // log-ratios 0.05, −0.3, 0, 0.5; only those of the second to fourth token matter
        for (coefficient, c) in [
            (TraceCoefficient::Importance, [exp(-0.3), 1.0, exp(0.5)]),
            (TraceCoefficient::Lambda, [0.8; 3]),
            (TraceCoefficient::TreeBackup, [0.8 * exp(-1.3), 0.8 * exp(-0.2), 0.8 * exp(-0.2)]),
            (TraceCoefficient::Retrace, [0.8 * exp(-0.3), 0.8, 0.8]),
        ] {
            let fourth = 1.0 + 0.9 * 0.5;
            let third = 0.9 * (0.4 + c[2] * (fourth - 0.525));
            let second = 0.9 * (0.3 + c[1] * (third - 0.425));
            let first = 0.9 * (0.2 + c[0] * (second - 0.325));
            assert_close(&first_row(coefficient), &[first, second, third, fourth]);
        }
    }
}
