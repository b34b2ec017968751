use super::Across;
use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    real::Real,
    recursion::{run, Recursion},
    simd::Pack,
};

/// What [`gae`] and [`monte_carlo_advantage`](super::monte_carlo_advantage) read.
#[derive(Clone, Copy, Debug)]
pub struct GaeInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// Values V(s), state-aligned.
    pub values: &'a [R],
    /// One per sequence: the value after its last kept token. 0 for a finished sequence, V(s) for a truncated one.
    pub bootstrap: &'a [R],
}

/// How [`gae`] discounts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GaeConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// Decay λ of the trace, in `[0, 1]`; default 1.
    pub lambda: f64,
    /// How a dropped token between two kept ones is treated; default [`Across::StepOver`].
    pub across: Across,
}

impl Default for GaeConfig {
    fn default() -> Self {
        Self { gamma: 1.0, lambda: 1.0, across: Across::StepOver }
    }
}

/// What [`gae`] and [`monte_carlo_advantage`](super::monte_carlo_advantage) write.
#[derive(Debug)]
pub struct GaeOutput<'a, R> {
    /// Advantages, action-aligned, not whitened.
    pub advantages: &'a mut [R],
    /// Returns, state-aligned: the critic's target.
    pub returns: &'a mut [R],
}

/// Generalized advantage estimates: how much better each token was than the critic predicted.
///
/// ```text
/// δ_t = r_t + γ V_{t+1} − V_t      V after the last kept token = bootstrap
/// A_t = δ_t + γ λ A_{t+1}          G_t = A_t + V_t
/// ```
///
/// λ = 0 gives the TD error δ; λ = 1 gives the discounted return minus the value.
///
/// **Rounding.** As [`discounted_returns`](super::discounted_returns), with γλ in place of γ.
///
/// **Alignment.** `rewards` and `advantages` are action-aligned, `values` and `returns` state-aligned (same index, see
/// the crate docs); `bootstrap` has one entry per sequence. Returns use the advantages *before* any whitening.
///
/// **Mask.** Dropped slots are never read and get `0` in both outputs; `t + 1` is the next *kept* token,
/// or the next slot with reward and value 0 under [`Across::ZeroStep`]. Dropped slots after the last kept token count
/// under neither rule.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ or λ is outside `[0, 1]`.
///
/// **Reference.** Schulman et al. 2016, arXiv:1506.02438, eq. 16. `StepOver`: verl 0.9.1, NeMo-RL (2026-08);
/// `ZeroStep`: OpenRLHF 0.11.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// // the third token came from a tool, not from the policy
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let (mut advantages, mut returns) = ([0.0; 4], [0.0; 4]);
/// gae(
///     &batch,
///     GaeInput { rewards: &[0.0, 0.0, f64::NAN, 1.0], values: &[0.5, 0.5, f64::NAN, 0.5], bootstrap: &[0.0] },
///     &GaeConfig { lambda: 0.5, ..Default::default() },     // γ = 1, StepOver
///     GaeOutput { advantages: &mut advantages, returns: &mut returns },
/// )?;
/// assert_eq!(advantages, [0.125, 0.25, 0.0, 0.5]);
/// assert_eq!(returns, [0.625, 0.75, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn gae<R: Real>(
    batch: &Batch<'_>,
    input: GaeInput<'_, R>,
    config: &GaeConfig,
    output: GaeOutput<'_, R>,
) -> Result<()> {
    check_gae(batch, &input, config, &output)?;
    let gamma = R::narrow(config.gamma);
    let decay = R::narrow(config.gamma * config.lambda);
    run(
        batch,
        Estimate { gamma, decay },
        [input.rewards, input.values],
        config.across,
        &|sequence| [input.bootstrap[sequence], R::zero()],
        [output.advantages, output.returns],
    );
    Ok(())
}

/// δ_t = r_t + γ V_{t+1} − V_t.
#[inline(always)]
pub(super) fn temporal_difference<R: Real, V: Pack<R>>(gamma: R, reward: V, value: V, next_value: V) -> V {
    reward + next_value.splat(gamma) * next_value - value
}

#[derive(Clone, Copy)]
struct Estimate<R> {
    gamma: R,
    decay: R,
}

/// State carried from the next token: its value and its advantage.
impl<R: Real> Recursion<R, 2, 2, 2> for Estimate<R> {
    #[inline(always)]
    fn kept<V: Pack<R>>(&self, [reward, value]: [V; 2], [next_value, next_advantage]: [V; 2]) -> ([V; 2], [V; 2]) {
        let delta = temporal_difference(self.gamma, reward, value, next_value);
        let advantage = delta + next_advantage.splat(self.decay) * next_advantage;
        ([advantage, advantage + value], [value, advantage])
    }

    #[inline(always)]
    fn dropped(&self, [next_value, next_advantage]: [R; 2]) -> [R; 2] {
        [R::zero(), self.gamma * next_value + self.decay * next_advantage]
    }
}

/// The checks of [`gae`], for crates that compute it elsewhere and must reject the same calls.
#[doc(hidden)]
pub fn check_gae<R: Real>(
    batch: &Batch<'_>,
    input: &GaeInput<'_, R>,
    config: &GaeConfig,
    output: &GaeOutput<'_, R>,
) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("values", input.values, batch.tokens())?;
    check_len("bootstrap", input.bootstrap, batch.sequences())?;
    check_len("advantages", output.advantages, batch.tokens())?;
    check_len("returns", output.returns, batch.tokens())?;
    check_gae_config(config)
}

/// The part of [`check_gae`] that needs no data.
#[doc(hidden)]
pub fn check_gae_config(config: &GaeConfig) -> Result<()> {
    check_unit("gamma", config.gamma)?;
    check_unit("lambda", config.lambda)
}
