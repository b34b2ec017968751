use super::vtrace::Cap;
use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    real::Real,
};

/// What the capped ratio multiplies in [`puffer_advantage`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum PufferVariant {
    /// The whole TD error, as in V-trace. PufferLib 3.
    #[default]
    V3,
    /// The reward only. PufferLib 4.
    V4,
}

/// What [`puffer_advantage`] reads.
#[derive(Clone, Copy, Debug)]
pub struct PufferInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// Values V(s), state-aligned.
    pub values: &'a [R],
    /// One per sequence: the value after its last kept token. 0 for a finished sequence, V(s) for a truncated one.
    pub bootstrap: &'a [R],
    /// Importance ratios π / π_old, action-aligned.
    pub ratios: &'a [R],
}

/// How [`puffer_advantage`] discounts and clips.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct PufferConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// Decay λ of the trace, in `[0, 1]`; default 1.
    pub lambda: f64,
    /// Cap ρ̄ of the ratio in the TD error. Positive or ∞; default 1.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub rho_bar: f64,
    /// Cap c̄ of the ratio in the trace. Positive or ∞; default 1.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub c_bar: f64,
    /// What the ratio multiplies; default [`PufferVariant::V3`].
    pub variant: PufferVariant,
}

impl Default for PufferConfig {
    fn default() -> Self {
        Self { gamma: 1.0, lambda: 1.0, rho_bar: 1.0, c_bar: 1.0, variant: PufferVariant::V3 }
    }
}

/// GAE and V-trace in one recursion: advantages with capped importance ratios.
///
/// ```text
/// ρ = min(w_t, ρ̄)    c = min(w_t, c̄)                    V after the last kept token = bootstrap
/// δ_t = ρ (r_t + γ V_{t+1} − V_t)      V3
/// δ_t = ρ r_t + γ V_{t+1} − V_t        V4
/// A_t = δ_t + γ λ c A_{t+1}
/// ```
///
/// Ratios of 1 give GAE; λ = 1 gives the error of V-trace.
///
/// **Alignment.** `values` is state-aligned, the other token slices and `out` action-aligned; `bootstrap` has one entry
/// per sequence.
///
/// **Mask.** Dropped slots are never read and get 0; `t + 1` is the next *kept* token.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ or λ is outside `[0, 1]` or a cap is not positive.
///
/// **Reference.** PufferLib's `puff_advantage`. It stores reward and end flag of step `t` in slot `t + 1`, allows
/// several episodes in one row, and leaves the last slot 0; here every episode is a sequence, and the value in that
/// last slot is `bootstrap`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = PufferInput {
///     rewards: &[1.0, f64::NAN, 2.0],
///     values: &[0.5, f64::NAN, 1.0],
///     bootstrap: &[0.0],
///     ratios: &[0.5, f64::NAN, 4.0],
/// };
/// let mut advantages = [9.0; 3];
/// puffer_advantage(&batch, input, &PufferConfig::default(), &mut advantages)?;
/// assert_eq!(advantages, [1.25, 0.0, 1.0]);       // 0.5 · 1.5 + 0.5 · 1
/// puffer_advantage(
///     &batch,
///     input,
///     &PufferConfig { variant: PufferVariant::V4, ..Default::default() },
///     &mut advantages,
/// )?;
/// assert_eq!(advantages, [1.5, 0.0, 1.0]);        // 0.5 + 1 − 0.5, + 0.5 · 1
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn puffer_advantage<R: Real>(
    batch: &Batch<'_>,
    input: PufferInput<'_, R>,
    config: &PufferConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("values", input.values, batch.tokens())?;
    check_len("bootstrap", input.bootstrap, batch.sequences())?;
    check_len("ratios", input.ratios, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_unit("gamma", config.gamma)?;
    check_unit("lambda", config.lambda)?;
    let (rho, c) = (Cap::new("rho_bar", config.rho_bar, 1.0)?, Cap::new("c_bar", config.c_bar, 1.0)?);
    let (gamma, decay) = (R::narrow(config.gamma), R::narrow(config.gamma * config.lambda));
    for (row, &bootstrap) in batch.rows().zip(input.bootstrap) {
        let (rewards, values) = (row.of(input.rewards), row.of(input.values));
        let (ratios, out) = (row.of(input.ratios), row.of_mut(out));
        let (mut next_value, mut next_advantage) = (bootstrap, R::zero());
        // A_t needs A_{t+1}
        for t in (0..row.keep.len()).rev() {
            out[t] = if row.keep[t] {
                let weight = rho.of(ratios[t]);
                let delta = match config.variant {
                    PufferVariant::V3 => weight * (rewards[t] + gamma * next_value - values[t]),
                    PufferVariant::V4 => weight * rewards[t] + gamma * next_value - values[t],
                };
                next_advantage = delta + decay * c.of(ratios[t]) * next_advantage;
                next_value = values[t];
                next_advantage
            } else {
                R::zero()
            };
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::{advantage::*, math::exp};

    #[test]
    fn ratios_of_one_give_gae() {
        for variant in [PufferVariant::V3, PufferVariant::V4] {
            let (mut out, mut advantages, mut returns) = ([9.0; 20], [9.0; 20], [9.0; 20]);
            let input = PufferInput { rewards: &REWARDS, values: &VALUES, bootstrap: &[0.5; 4], ratios: &[1.0; 20] };
            let config = PufferConfig { gamma: 0.9, lambda: 0.8, variant, ..Default::default() };
            puffer_advantage(&batch(), input, &config, &mut out).unwrap();
            let input = GaeInput { rewards: &REWARDS, values: &VALUES, bootstrap: &[0.5; 4] };
            let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
            gae(&batch(), input, &GaeConfig { gamma: 0.9, lambda: 0.8, ..Default::default() }, output).unwrap();
            assert_close(&out, &advantages);
        }
    }

    #[test]
    fn the_third_variant_is_the_error_of_vtrace() {
        let ratios: [f64; 20] = core::array::from_fn(|t| exp(LOG_PROBS[t] - OLD_LOG_PROBS[t]));
        let (mut out, mut targets, mut advantages) = ([9.0; 20], [9.0; 20], [9.0; 20]);
        let input = PufferInput { rewards: &REWARDS, values: &VALUES, bootstrap: &[0.5; 4], ratios: &ratios };
        let config = PufferConfig { gamma: 0.9, lambda: 0.8, rho_bar: 1.1, ..Default::default() };
        puffer_advantage(&batch(), input, &config, &mut out).unwrap();
        let input = VtraceInput {
            rewards: &REWARDS,
            values: &VALUES,
            bootstrap: &[0.5; 4],
            log_probs: &LOG_PROBS,
            old_log_probs: &OLD_LOG_PROBS,
        };
        let config = VtraceConfig { gamma: 0.9, lambda: 0.8, rho_bar: 1.1, ..Default::default() };
        vtrace(&batch(), input, &config, VtraceOutput { targets: &mut targets, advantages: &mut advantages }).unwrap();
        for (error, (target, value)) in out.iter().zip(targets.iter().zip(VALUES)) {
            assert!(value.is_nan() && *error == 0.0 || approx::abs_diff_eq!(error + value, *target, epsilon = 1e-14));
        }
    }
}
