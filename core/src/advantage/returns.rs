use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    real::Real,
    recursion::{run, Across, Recursion},
    simd::Pack,
};

/// What [`discounted_returns`] reads.
#[derive(Clone, Copy, Debug)]
pub struct ReturnsInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// One per sequence: the return expected after its last kept token. 0 for a finished sequence, V(s) for a truncated
    /// one.
    pub bootstrap: &'a [R],
}

/// How [`discounted_returns`] discounts.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ReturnsConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// How a dropped token between two kept ones is treated; default [`Across::StepOver`].
    pub across: Across,
}

impl Default for ReturnsConfig {
    fn default() -> Self {
        Self { gamma: 1.0, across: Across::StepOver }
    }
}

/// Monte-Carlo returns: the discounted sum of the rewards from each token on.
///
/// ```text
/// G_t = r_t + γ G_{t+1}        G after the last kept token = bootstrap
/// ```
///
/// γ = 0 gives the rewards themselves.
///
/// **Rounding.** The recursion is carried in the type of the columns. Its rounding errors add up over 1/(1 − γ) tokens,
/// with γ = 1 over all n: in `f32` to at most n·2⁻²⁴ of the largest return. Constant rewards reached a quarter of that:
/// 1.3·10⁻⁵ of the largest return after 10³ tokens, 1.3 % after 10⁶. Where it matters, convert the columns to `f64`,
/// which is exact and takes the state with it.
///
/// **Alignment.** `rewards` is action-aligned; `out` is state-aligned: slot `i` holds the return from the state before
/// token `i + 1`. `bootstrap` has one entry per sequence.
///
/// **Mask.** Dropped slots are never read and get 0. `t + 1` is the next *kept* token, or under [`Across::ZeroStep`]
/// the next slot, with reward 0 where it is dropped. Dropped slots after the last kept token count under neither rule.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ is outside `[0, 1]`.
///
/// **Reference.** `StepOver`: the returns of verl 0.9.1's REINFORCE++; `ZeroStep`: OpenRLHF 0.11
/// `get_cumulative_returns`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let input = ReturnsInput { rewards: &[0.0, 1.0, f64::NAN, 2.0], bootstrap: &[0.0] };
/// let mut returns = [0.0; 4];
/// discounted_returns(&batch, input, &ReturnsConfig { gamma: 0.5, ..Default::default() }, &mut returns)?;
/// assert_eq!(returns, [1.0, 2.0, 0.0, 2.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn discounted_returns<R: Real>(
    batch: &Batch<'_>,
    input: ReturnsInput<'_, R>,
    config: &ReturnsConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("rewards", input.rewards, batch.tokens())?;
    check_len("bootstrap", input.bootstrap, batch.sequences())?;
    check_len("out", out, batch.tokens())?;
    check_returns_config(config)?;
    write_returns(batch, input.rewards, |sequence| input.bootstrap[sequence], config, out);
    Ok(())
}

/// [`discounted_returns`] without the checks; `bootstrap` returns the bootstrap of each sequence.
pub(super) fn write_returns<R: Real>(
    batch: &Batch<'_>,
    rewards: &[R],
    bootstrap: impl Fn(usize) -> R + Sync,
    config: &ReturnsConfig,
    out: &mut [R],
) {
    let gamma = R::narrow(config.gamma);
    run(batch, Discount(gamma), [rewards], config.across, &|sequence| [bootstrap(sequence)], [out]);
}

/// The checks of [`discounted_returns`] that need no data, for crates that compute it elsewhere.
#[doc(hidden)]
pub fn check_returns_config(config: &ReturnsConfig) -> Result<()> {
    check_unit("gamma", config.gamma)
}

#[derive(Clone, Copy)]
struct Discount<R>(R);

impl<R: Real> Recursion<R, 1, 1, 1> for Discount<R> {
    #[inline(always)]
    fn kept<V: Pack<R>>(&self, [reward]: [V; 1], [ahead]: [V; 1]) -> ([V; 1], [V; 1]) {
        let ahead = reward + ahead.splat(self.0) * ahead;
        ([ahead], [ahead])
    }

    #[inline(always)]
    fn dropped(&self, [ahead]: [R; 1]) -> [R; 1] {
        [self.0 * ahead]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    /// The largest error, in parts of the largest return, for constant rewards and γ = 1.
    fn drift<R: Real>(tokens: usize, reward: f32) -> f64 {
        let keep = vec![true; tokens];
        let batch = Batch::new(Layout::padded(1, tokens).unwrap(), Mask::new(&keep)).unwrap();
        let rewards = vec![R::narrow(f64::from(reward)); tokens];
        let mut returns = vec![R::zero(); tokens];
        let input = ReturnsInput { rewards: &rewards, bootstrap: &[R::zero()] };
        discounted_returns(&batch, input, &ReturnsConfig::default(), &mut returns).unwrap();
        let exact = |t: usize| (tokens - t) as f64 * f64::from(reward);
        let errors = returns.iter().enumerate().map(|(t, got)| (got.widen() - exact(t)).abs());
        errors.fold(0.0, f64::max) / exact(0)
    }

    #[test]
    fn the_drift_of_constant_rewards_is_as_documented() {
        // miri takes a minute for a million tokens
        let tokens = if cfg!(miri) { 1_000 } else { 1_000_000 };
        let bound = tokens as f64 * libm::pow(2.0, -24.0);
        let worst =
            [0.1, 0.3, 1.0 / 3.0, 0.7].map(|reward| drift::<f32>(tokens, reward)).into_iter().fold(0.0, f64::max);
        assert!(worst < bound && worst > bound / 10.0, "{worst:e} of {bound:e}");
        assert!(drift::<f64>(tokens, 0.1) < 1e-10);
    }
}
