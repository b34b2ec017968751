use crate::{
    error::{check_config, check_len, check_range, check_unit, Result},
    layout::Batch,
    math::exp,
    real::Real,
};

/// What [`vtrace`] reads.
#[derive(Clone, Copy, Debug)]
pub struct VtraceInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// Values V(s), state-aligned.
    pub values: &'a [R],
    /// One per sequence: the value after its last kept token. 0 for a finished sequence, V(s) for a truncated one.
    pub bootstrap: &'a [R],
    /// Log-probabilities under the policy being trained, action-aligned.
    pub log_probs: &'a [R],
    /// Log-probabilities under the policy that generated the tokens, action-aligned.
    pub old_log_probs: &'a [R],
}

/// How [`vtrace`] discounts and clips.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct VtraceConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// Decay λ of the trace, in `[0, 1]`; default 1.
    pub lambda: f64,
    /// Cap ρ̄ of the ratio that weights each TD error: decides *which* value function is learned. Positive or ∞;
    /// default 1.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub rho_bar: f64,
    /// Cap c̄ of the ratio that propagates TD errors back: decides how fast it is learned. Positive or ∞; default 1
    /// (rlax has no other).
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub c_bar: f64,
    /// Cap ρ̄_pg of the ratio that weights the advantages. Positive or ∞; default 1.
    #[cfg_attr(feature = "serde", serde(with = "crate::spelling::number"))]
    pub rho_bar_pg: f64,
    /// Share α of the caps, in `[0, 1]`: 1 (default) is V-trace, below 1 leaky V-trace, 0 no caps.
    pub alpha: f64,
}

impl Default for VtraceConfig {
    fn default() -> Self {
        Self { gamma: 1.0, lambda: 1.0, rho_bar: 1.0, c_bar: 1.0, rho_bar_pg: 1.0, alpha: 1.0 }
    }
}

/// What [`vtrace`] writes.
#[derive(Debug)]
pub struct VtraceOutput<'a, R> {
    /// Targets of the critic, state-aligned.
    pub targets: &'a mut [R],
    /// Advantages, action-aligned, weighted by the clipped ratio.
    pub advantages: &'a mut [R],
}

/// Value targets and advantages with capped importance weights, for tokens that an older policy generated.
///
/// ```text
/// ρ_t = exp(log π_t − log π_old,t)        cap(b) = (1 − α) ρ_t + α min(b, ρ_t)
/// V after the last kept token = bootstrap
/// δ_t = cap(ρ̄) (r_t + γ V_{t+1} − V_t)
/// e_t = δ_t + γ λ cap(c̄) e_{t+1}          target_t = V_t + e_t
/// A_t = cap(ρ̄_pg) (r_t + γ (λ target_{t+1} + (1 − λ) V_{t+1}) − V_t)
/// ```
///
/// With equal policies, the targets are those of TD(λ).
///
/// **Alignment.** `values` and `targets` are state-aligned, the other token slices action-aligned; `bootstrap` has one
/// entry per sequence.
///
/// **Mask.** Dropped slots are never read and get 0 in both outputs; `t + 1` is the next *kept* token.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ, λ or α is outside `[0, 1]` or a cap is not positive.
///
/// **Reference.** Espeholt et al. 2018 (IMPALA), arXiv:1802.01561, eq. 1 and §4.1, with λ as in rlax
/// `vtrace_td_error_and_advantage`; α as in rlax `leaky_vtrace`. TorchRL's `c̄` is ours, and its advantage is the one
/// at λ = 1 with ρ̄_pg = ρ̄.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let (mut targets, mut advantages) = ([9.0; 3], [9.0; 3]);
/// vtrace(
///     &batch,
///     VtraceInput {
///         rewards: &[0.0, f64::NAN, 1.0],
///         values: &[0.5, f64::NAN, 0.25],
///         bootstrap: &[0.0],
///         log_probs: &[-1.0, f64::NAN, -1.0],
///         old_log_probs: &[-1.0, f64::NAN, -2.0],      // ratios 1 and e, the second capped at 1
///     },
///     &VtraceConfig { lambda: 0.5, ..Default::default() },
///     VtraceOutput { targets: &mut targets, advantages: &mut advantages },
/// )?;
/// assert_eq!(targets, [0.625, 0.0, 1.0]);
/// assert_eq!(advantages, [0.125, 0.0, 0.75]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn vtrace<R: Real>(
    batch: &Batch<'_>,
    input: VtraceInput<'_, R>,
    config: &VtraceConfig,
    output: VtraceOutput<'_, R>,
) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("values", input.values, batch.tokens())?;
    check_len("bootstrap", input.bootstrap, batch.sequences())?;
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("targets", output.targets, batch.tokens())?;
    check_len("advantages", output.advantages, batch.tokens())?;
    check_unit("gamma", config.gamma)?;
    check_unit("lambda", config.lambda)?;
    check_unit("alpha", config.alpha)?;
    let rho = Cap::new("rho_bar", config.rho_bar, config.alpha)?;
    let c = Cap::new("c_bar", config.c_bar, config.alpha)?;
    let pg = Cap::new("rho_bar_pg", config.rho_bar_pg, config.alpha)?;
    let (gamma, lambda) = (R::narrow(config.gamma), R::narrow(config.lambda));
    let decay = R::narrow(config.gamma * config.lambda);
    for (row, &bootstrap) in batch.rows().zip(input.bootstrap) {
        let (rewards, values) = (row.of(input.rewards), row.of(input.values));
        let (log_probs, old_log_probs) = (row.of(input.log_probs), row.of(input.old_log_probs));
        let (targets, advantages) = (row.of_mut(output.targets), row.of_mut(output.advantages));
        let (mut next_value, mut next_error) = (bootstrap, R::zero());
        // e_t needs e_{t+1}
        for t in (0..row.keep.len()).rev() {
            if !row.keep[t] {
                targets[t] = R::zero();
                advantages[t] = R::zero();
                continue;
            }
            let ratio = exp(log_probs[t] - old_log_probs[t]);
            // λ target + (1 − λ) V as V + λ (target − V): exactly the bootstrap at the end
            let ahead = rewards[t] + gamma * (next_value + lambda * next_error);
            advantages[t] = pg.of(ratio) * (ahead - values[t]);
            let delta = rho.of(ratio) * (rewards[t] + gamma * next_value - values[t]);
            next_error = delta + decay * c.of(ratio) * next_error;
            next_value = values[t];
            targets[t] = next_value + next_error;
        }
    }
    Ok(())
}

/// Caps a ratio, wholly or in part.
#[derive(Clone, Copy)]
pub(super) struct Cap<R> {
    at: R,
    /// α and 1 − α, if the cap is leaky.
    leak: Option<(R, R)>,
}

impl<R: Real> Cap<R> {
    pub(super) fn new(what: &'static str, at: f64, alpha: f64) -> Result<Self> {
        check_config(what, "positive", at, at > 0.0)?;
        check_range::<R>(what, at)?;
        let leak = if alpha == 1.0 { None } else { Some((R::narrow(alpha), R::narrow(1.0 - alpha))) };
        Ok(Self { at: R::narrow(at), leak })
    }

    #[inline(always)]
    pub(super) fn of(self, ratio: R) -> R {
        // written so that a NaN ratio propagates
        let capped = if ratio > self.at { self.at } else { ratio };
        match self.leak {
            None => capped,
            Some((alpha, rest)) => rest * ratio + alpha * capped,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::{advantage::*, Layout, Mask};

    const BOOTSTRAP: [f64; 4] = [0.0, 0.25, 0.5, -1.0];

    fn run(log_probs: &[f64], config: &VtraceConfig) -> ([f64; 20], [f64; 20]) {
        let (mut targets, mut advantages) = ([9.0; 20], [9.0; 20]);
        let input = VtraceInput {
            rewards: &REWARDS,
            values: &VALUES,
            bootstrap: &BOOTSTRAP,
            log_probs,
            old_log_probs: &OLD_LOG_PROBS,
        };
        let output = VtraceOutput { targets: &mut targets, advantages: &mut advantages };
        vtrace(&batch(), input, config, output).unwrap();
        (targets, advantages)
    }

    #[test]
    fn equal_policies_give_td_lambda() {
        let config = VtraceConfig { gamma: 0.9, lambda: 0.8, ..Default::default() };
        let (targets, advantages) = run(&OLD_LOG_PROBS, &config);
        let input = TdInput { rewards: &REWARDS, values: &VALUES, bootstrap: &BOOTSTRAP };
        let mut expected = [9.0; 20];
        td_lambda(&batch(), input, &TdLambdaConfig { gamma: 0.9, lambda: 0.8, ..Default::default() }, &mut expected)
            .unwrap();
        assert_close(&targets, &expected);
        let without_values: [f64; 20] =
            core::array::from_fn(|t| if expected[t] == 0.0 { 0.0 } else { expected[t] - VALUES[t] });
        assert_close(&advantages, &without_values);
    }

    #[test]
    fn the_definition_by_hand_on_the_third_sequence() {
        // ratios e^0.2 and e^−0.05; γ 0.9, λ 0.8, ρ̄ 1.1, c̄ 1, ρ̄_pg 1
        let config = VtraceConfig { gamma: 0.9, lambda: 0.8, rho_bar: 1.1, ..Default::default() };
        let (targets, advantages) = run(&LOG_PROBS, &config);
        let low = exp(-0.05);
        let last = low * (-1.0 + 0.9 * 0.5 + 0.4);
        let first = 1.1 * (0.9 * -0.4 + 0.2) + 0.72 * last;
        assert_close(&targets[10..12], &[-0.2 + first, -0.4 + last]);
        assert_close(&advantages[10..12], &[0.9 * (-0.4 + 0.8 * last) + 0.2, last]);
    }

    #[test]
    fn a_leak_of_everything_is_no_cap_and_caps_survive_an_infinite_ratio() {
        let leaky = VtraceConfig { gamma: 0.9, alpha: 0.0, ..Default::default() };
        let caps = f64::INFINITY;
        let free = VtraceConfig { gamma: 0.9, rho_bar: caps, c_bar: caps, rho_bar_pg: caps, ..Default::default() };
        let (a, b) = (run(&LOG_PROBS, &leaky), run(&LOG_PROBS, &free));
        assert_close(&a.0, &b.0);
        assert_close(&a.1, &b.1);
        let (targets, _) = run(&[1e9; 20], &VtraceConfig::default());
        assert!(targets.iter().all(|target| target.is_finite()));
    }

    #[test]
    fn refused_calls_write_nothing() {
        let mut targets = [9.0; 1];
        let one = [0.0; 1];
        let input = VtraceInput { rewards: &one, values: &one, bootstrap: &one, log_probs: &one, old_log_probs: &one };
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        for config in [
            VtraceConfig { c_bar: 0.0, ..Default::default() },
            VtraceConfig { rho_bar: f64::NAN, ..Default::default() },
            VtraceConfig { alpha: 2.0, ..Default::default() },
        ] {
            let output = VtraceOutput { targets: &mut targets, advantages: &mut [9.0; 1] };
            assert_eq!(vtrace(&batch, input, &config, output).unwrap_err().code(), "config");
        }
        assert_eq!(targets, [9.0]);
    }
}
