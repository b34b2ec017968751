use super::{gae::temporal_difference, Across, GaeInput, GaeOutput};
use crate::{
    error::{check_len, check_positive, check_unit, Result},
    layout::{Batch, Row},
    real::Real,
    recursion::{run, Recursion},
    simd::Pack,
};

/// Where the λ of the policy's advantages comes from.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(untagged, from = "crate::spelling::control::GivenLambda"))]
pub enum PolicyLambda {
    /// The same for every sequence, in `[0, 1]`.
    Fixed(f64),
    /// Longer sequences look further ahead: `λ_i = 1 − 1 / max(α n_i, 1)`, with `n_i` kept tokens. VAPO: α = 0.05.
    LengthAdaptive {
        /// α, positive.
        alpha: f64,
    },
}

impl PolicyLambda {
    fn of(self, row: &Row<'_>) -> f64 {
        match self {
            Self::Fixed(lambda) => lambda,
            Self::LengthAdaptive { alpha } => {
                let reach = alpha * row.kept() as f64;
                1.0 - 1.0 / if reach > 1.0 { reach } else { 1.0 }
            }
        }
    }
}

/// How [`gae_decoupled`] discounts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GaeDecoupledConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// λ of the critic's returns, in `[0, 1]`; default 1.
    pub lambda_value: f64,
    /// λ of the policy's advantages; default fixed at 0.95.
    pub lambda_policy: PolicyLambda,
    /// How a dropped token between two kept ones is treated; default [`Across::StepOver`].
    pub across: Across,
}

impl Default for GaeDecoupledConfig {
    fn default() -> Self {
        Self { gamma: 1.0, lambda_value: 1.0, lambda_policy: PolicyLambda::Fixed(0.95), across: Across::StepOver }
    }
}

/// GAE with one λ for the critic and another for the policy: unbiased targets, low-variance advantages.
///
/// ```text
/// A_t = δ_t + γ λ_policy A_{t+1}        G_t = V_t + Â_t,  Â_t = δ_t + γ λ_value Â_{t+1}        δ as in gae
/// ```
///
/// Equal λ give [`gae`](super::gae).
///
/// **Alignment.** `rewards` and `advantages` are action-aligned, `values` and `returns` state-aligned; `bootstrap` has
/// one entry per sequence.
///
/// **Mask.** As in [`gae`](super::gae): dropped slots are never read, get 0, and do not count in `n_i`.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ or a fixed λ is outside `[0, 1]` or α is not positive.
///
/// **Reference.** Yuan et al. 2025 (VC-PPO), arXiv:2503.01491; length-adaptive: Yue et al. 2025 (VAPO),
/// arXiv:2504.05118. NeMo-RL (2026-08): α if it is positive, else its λ_policy, with `StepOver`; it then whitens like
/// [`whiten`](super::whiten).
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let (mut advantages, mut returns) = ([0.0; 4], [0.0; 4]);
/// gae_decoupled(
///     &batch,
///     GaeInput { rewards: &[0.0, 0.0, f64::NAN, 1.0], values: &[0.5, 0.5, f64::NAN, 0.5], bootstrap: &[0.0] },
///     &GaeDecoupledConfig { lambda_policy: PolicyLambda::Fixed(0.5), ..Default::default() },
///     GaeOutput { advantages: &mut advantages, returns: &mut returns },
/// )?;
/// assert_eq!(advantages, [0.125, 0.25, 0.0, 0.5]);
/// assert_eq!(returns, [1.0, 1.0, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn gae_decoupled<R: Real>(
    batch: &Batch<'_>,
    input: GaeInput<'_, R>,
    config: &GaeDecoupledConfig,
    output: GaeOutput<'_, R>,
) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("values", input.values, batch.tokens())?;
    check_len("bootstrap", input.bootstrap, batch.sequences())?;
    check_len("advantages", output.advantages, batch.tokens())?;
    check_len("returns", output.returns, batch.tokens())?;
    check_unit("gamma", config.gamma)?;
    check_unit("lambda_value", config.lambda_value)?;
    match config.lambda_policy {
        PolicyLambda::Fixed(lambda) => check_unit("lambda_policy", lambda)?,
        PolicyLambda::LengthAdaptive { alpha } => check_positive::<R>("alpha", alpha)?,
    }
    let decay = |lambda: f64| R::narrow(config.gamma * lambda);
    run(
        batch,
        Estimates { gamma: R::narrow(config.gamma), decay_value: decay(config.lambda_value) },
        [input.rewards, input.values],
        config.across,
        &|sequence| {
            let decay_policy = decay(config.lambda_policy.of(&batch.row(sequence)));
            [input.bootstrap[sequence], R::zero(), R::zero(), decay_policy]
        },
        [output.advantages, output.returns],
    );
    Ok(())
}

#[derive(Clone, Copy)]
struct Estimates<R> {
    gamma: R,
    decay_value: R,
}

/// State carried from the next token: its value, its advantage with either λ, and the policy's γ λ, which differs
/// between sequences and is passed on unchanged.
impl<R: Real> Recursion<R, 2, 2, 4> for Estimates<R> {
    #[inline(always)]
    fn kept<V: Pack<R>>(
        &self,
        [reward, value]: [V; 2],
        [next_value, next_advantage, next_target, decay_policy]: [V; 4],
    ) -> ([V; 2], [V; 4]) {
        let delta = temporal_difference(self.gamma, reward, value, next_value);
        let advantage = delta + decay_policy * next_advantage;
        let target = delta + next_target.splat(self.decay_value) * next_target;
        ([advantage, target + value], [value, advantage, target, decay_policy])
    }

    #[inline(always)]
    fn dropped(&self, [next_value, next_advantage, next_target, decay_policy]: [R; 4]) -> [R; 4] {
        let delta = self.gamma * next_value;
        [R::zero(), delta + decay_policy * next_advantage, delta + self.decay_value * next_target, decay_policy]
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::advantage::{gae, GaeConfig};

    fn input() -> GaeInput<'static, f64> {
        GaeInput { rewards: &REWARDS, values: &VALUES, bootstrap: &[0.5; 4] }
    }

    fn plain(lambda: f64) -> ([f64; 20], [f64; 20]) {
        let (mut advantages, mut returns) = ([9.0; 20], [9.0; 20]);
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        gae(&batch(), input(), &GaeConfig { gamma: 0.9, lambda, ..Default::default() }, output).unwrap();
        (advantages, returns)
    }

    fn decoupled(lambda_policy: PolicyLambda) -> ([f64; 20], [f64; 20]) {
        let (mut advantages, mut returns) = ([9.0; 20], [9.0; 20]);
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        let config = GaeDecoupledConfig { gamma: 0.9, lambda_value: 0.8, lambda_policy, ..Default::default() };
        gae_decoupled(&batch(), input(), &config, output).unwrap();
        (advantages, returns)
    }

    #[test]
    fn each_output_is_that_of_its_own_lambda() {
        let (advantages, returns) = decoupled(PolicyLambda::Fixed(0.3));
        assert_eq!(advantages, plain(0.3).0);
        assert_eq!(returns, plain(0.8).1);
    }

    #[test]
    fn longer_sequences_look_further() {
        // 4, 4, 2 and 5 kept tokens: λ = 1 − 1/2, 1 − 1/2, 0 and 1 − 1/2.5
        let (advantages, _) = decoupled(PolicyLambda::LengthAdaptive { alpha: 0.5 });
        assert_close(&advantages[..10], &plain(0.5).0[..10]);
        assert_close(&advantages[10..15], &plain(0.0).0[10..15]);
        assert_close(&advantages[15..], &plain(0.6).0[15..]);
        let config =
            GaeDecoupledConfig { lambda_policy: PolicyLambda::LengthAdaptive { alpha: 0.0 }, ..Default::default() };
        let output = GaeOutput { advantages: &mut [9.0; 20], returns: &mut [9.0; 20] };
        assert_eq!(gae_decoupled(&batch(), input(), &config, output).unwrap_err().parameter(), "alpha");
    }
}
