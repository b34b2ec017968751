use super::Across;
use crate::{
    error::{check_config, check_len, check_unit, Result},
    layout::{Batch, Row},
    real::Real,
};

/// What [`td_lambda`], [`n_step_returns`] and [`upgo`](super::upgo) read.
#[derive(Clone, Copy, Debug)]
pub struct TdInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// Values V(s), state-aligned.
    pub values: &'a [R],
    /// One per sequence: the value after its last kept token. 0 for a finished sequence, V(s) for a truncated one.
    pub bootstrap: &'a [R],
}

impl<R: Real> TdInput<'_, R> {
    pub(super) fn check(&self, batch: &Batch<'_>, out: &[R]) -> Result<()> {
        check_len("rewards", self.rewards, batch.tokens())?;
        check_len("values", self.values, batch.tokens())?;
        check_len("bootstrap", self.bootstrap, batch.sequences())?;
        check_len("out", out, batch.tokens())
    }
}

/// How [`td_lambda`] discounts and mixes.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct TdLambdaConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// Share λ of the return, against the next value, in `[0, 1]`; default 1.
    pub lambda: f64,
    /// How a dropped token between two kept ones is treated; default [`Across::StepOver`].
    pub across: Across,
}

impl Default for TdLambdaConfig {
    fn default() -> Self {
        Self { gamma: 1.0, lambda: 1.0, across: Across::StepOver }
    }
}

/// Returns that mix in the critic's value at every step: the targets of TD(λ).
///
/// ```text
/// G_t = r_t + γ ((1 − λ) V_{t+1} + λ G_{t+1})        V and G after the last kept token = bootstrap
/// ```
///
/// λ = 0 gives the one-step target `r_t + γ V_{t+1}`, λ = 1 the discounted return. `G − V` is the advantage of
/// [`gae`](super::gae).
///
/// **Alignment.** `rewards` is action-aligned, `values` and `out` state-aligned; `bootstrap` has one entry per
/// sequence.
///
/// **Mask.** Dropped slots are never read and get 0. `t + 1` is the next *kept* token, or under [`Across::ZeroStep`]
/// the next slot, with reward and value 0 where it is dropped. Dropped slots after the last kept token count under
/// neither rule.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ or λ is outside `[0, 1]`.
///
/// **Reference.** Sutton & Barto 2018, eq. 12.20; rlax `lambda_returns`, whose `v_t` is our `V_{t+1}`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let input = TdInput { rewards: &[0.0, 0.0, f64::NAN, 1.0], values: &[0.5, 0.5, f64::NAN, 0.5], bootstrap: &[0.0] };
/// let mut returns = [9.0; 4];
/// td_lambda(&batch, input, &TdLambdaConfig { lambda: 0.5, ..Default::default() }, &mut returns)?;
/// assert_eq!(returns, [0.625, 0.75, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn td_lambda<R: Real>(
    batch: &Batch<'_>,
    input: TdInput<'_, R>,
    config: &TdLambdaConfig,
    out: &mut [R],
) -> Result<()> {
    input.check(batch, out)?;
    check_td_config(config)?;
    let (gamma, lambda) = (R::narrow(config.gamma), R::narrow(config.lambda));
    let critic = R::narrow(1.0 - config.lambda);
    for (row, &bootstrap) in batch.rows().zip(input.bootstrap) {
        let (rewards, values, out) = (row.of(input.rewards), row.of(input.values), row.of_mut(out));
        let (mut next_value, mut ahead) = (bootstrap, bootstrap);
        let mut seen_kept = false;
        // G_t needs G_{t+1}
        for t in (0..row.keep.len()).rev() {
            out[t] = if row.keep[t] {
                seen_kept = true;
                ahead = rewards[t] + gamma * (critic * next_value + lambda * ahead);
                next_value = values[t];
                ahead
            } else {
                if seen_kept && config.across == Across::ZeroStep {
                    ahead = gamma * (critic * next_value + lambda * ahead);
                    next_value = R::zero();
                }
                R::zero()
            };
        }
    }
    Ok(())
}

/// The checks of [`td_lambda`] that need no data, for crates that compute it elsewhere.
#[doc(hidden)]
pub fn check_td_config(config: &TdLambdaConfig) -> Result<()> {
    check_unit("gamma", config.gamma)?;
    check_unit("lambda", config.lambda)
}

/// How [`n_step_returns`] looks ahead.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct NStepConfig {
    /// Number of observed rewards before the critic's value, at least 1; default 1.
    pub n: usize,
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// Share λ of the return, against the next value, at every step except the last, in `[0, 1]`; default 1.
    pub lambda: f64,
    /// How a dropped token between two kept ones is treated; default [`Across::StepOver`].
    pub across: Across,
}

impl Default for NStepConfig {
    fn default() -> Self {
        Self { n: 1, gamma: 1.0, lambda: 1.0, across: Across::StepOver }
    }
}

/// Returns over a window: `n` observed rewards, then the critic's value.
///
/// ```text
/// G_t = r_t + γ r_{t+1} + … + γ^{n−1} r_{t+n−1} + γ^n V_{t+n}        fewer than n left: all of them, then bootstrap
/// ```
///
/// λ below 1 mixes in the critic at every step of the window, as in [`td_lambda`]. The cost is `n` steps per token.
///
/// **Alignment.** `rewards` is action-aligned, `values` and `out` state-aligned; `bootstrap` has one entry per
/// sequence.
///
/// **Mask.** Dropped slots are never read and get 0. Steps are *kept* tokens, or under [`Across::ZeroStep`] slots, with
/// reward and value 0 where they are dropped. Dropped slots after the last kept token count under neither rule.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if `n` is 0 or γ or λ is outside `[0, 1]`.
///
/// **Reference.** Sutton & Barto 2018, eq. 7.1; rlax `n_step_bootstrapped_returns`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let input = TdInput { rewards: &[1.0, 2.0, f64::NAN, 4.0], values: &[0.0, 1.0, f64::NAN, 2.0], bootstrap: &[8.0] };
/// let mut returns = [9.0; 4];
/// n_step_returns(&batch, input, &NStepConfig { n: 2, gamma: 0.5, ..Default::default() }, &mut returns)?;
/// assert_eq!(returns, [2.5, 6.0, 0.0, 8.0]);      // 1 + 2/2 + 2/4, 2 + 4/2 + 8/4, 4 + 8/2
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn n_step_returns<R: Real>(
    batch: &Batch<'_>,
    input: TdInput<'_, R>,
    config: &NStepConfig,
    out: &mut [R],
) -> Result<()> {
    input.check(batch, out)?;
    check_config("n", "at least 1", config.n as f64, config.n > 0)?;
    check_unit("gamma", config.gamma)?;
    check_unit("lambda", config.lambda)?;
    let gamma = R::narrow(config.gamma);
    let critic = R::narrow(config.gamma * (1.0 - config.lambda));
    let decay = R::narrow(config.gamma * config.lambda);
    for (row, &bootstrap) in batch.rows().zip(input.bootstrap) {
        let (rewards, values, out) = (row.of(input.rewards), row.of(input.values), row.of_mut(out));
        let last = row.last_kept();
        let kept_or_zero = |slice: &[R], t: usize| if row.keep[t] { slice[t] } else { R::zero() };
        for (t, out) in out.iter_mut().enumerate() {
            let (mut total, mut weight) = (R::zero(), R::one());
            // nothing to do for a dropped slot
            let mut step = if row.keep[t] { Some(t) } else { None };
            let mut left = config.n;
            while let Some(at) = step {
                let next = if Some(at) == last { None } else { following(&row, at, config.across) };
                let next_value = next.map_or(bootstrap, |next| kept_or_zero(values, next));
                left -= 1;
                step = if left == 0 { None } else { next };
                let share = if step.is_some() { critic } else { gamma };
                total += weight * (kept_or_zero(rewards, at) + share * next_value);
                weight *= decay;
            }
            *out = total;
        }
    }
    Ok(())
}

/// The step after slot `at`.
fn following(row: &Row<'_>, at: usize, across: Across) -> Option<usize> {
    match across {
        Across::StepOver => (at + 1..row.keep.len()).find(|&t| row.keep[t]),
        Across::ZeroStep => Some(at + 1).filter(|&t| t < row.keep.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::{advantage::*, Error};

    const BOOTSTRAP: [f64; 4] = [0.0, 0.25, 0.5, -1.0];

    fn input() -> TdInput<'static, f64> {
        TdInput { rewards: &REWARDS, values: &VALUES, bootstrap: &BOOTSTRAP }
    }

    #[test]
    fn td_lambda_is_gae_plus_the_value_under_both_rules() {
        for across in [Across::StepOver, Across::ZeroStep] {
            for lambda in [0.0, 0.8, 1.0] {
                let (mut out, mut advantages, mut returns) = ([9.0; 20], [9.0; 20], [9.0; 20]);
                td_lambda(&batch(), input(), &TdLambdaConfig { gamma: 0.9, lambda, across }, &mut out).unwrap();
                let gae_input = GaeInput { rewards: &REWARDS, values: &VALUES, bootstrap: &BOOTSTRAP };
                let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
                gae(&batch(), gae_input, &GaeConfig { gamma: 0.9, lambda, across }, output).unwrap();
                assert_close(&out, &returns);
            }
        }
    }

    #[test]
    fn a_window_past_the_end_is_the_return_and_a_window_of_one_the_td_target() {
        for across in [Across::StepOver, Across::ZeroStep] {
            for (n, lambda) in [(1, 0.0), (9, 1.0), (9, 0.7)] {
                let (mut out, mut expected) = ([9.0; 20], [9.0; 20]);
                n_step_returns(&batch(), input(), &NStepConfig { n, gamma: 0.9, lambda, across }, &mut out).unwrap();
                td_lambda(&batch(), input(), &TdLambdaConfig { gamma: 0.9, lambda, across }, &mut expected).unwrap();
                assert_close(&out, &expected);
            }
        }
    }

    #[test]
    fn refused_calls_write_nothing() {
        let mut out = [9.0; 20];
        let none = NStepConfig { n: 0, ..Default::default() };
        let error = n_step_returns(&batch(), input(), &none, &mut out).unwrap_err();
        assert_eq!(error, Error::Config { what: "n", must_be: "at least 1", got: 0.0 });
        let steep = TdLambdaConfig { gamma: 1.5, ..Default::default() };
        assert_eq!(td_lambda(&batch(), input(), &steep, &mut out).unwrap_err().parameter(), "gamma");
        let short = TdInput { bootstrap: &BOOTSTRAP[1..], ..input() };
        assert_eq!(td_lambda(&batch(), short, &Default::default(), &mut out).unwrap_err().parameter(), "bootstrap");
        assert_eq!(out, [9.0; 20]);
    }
}
