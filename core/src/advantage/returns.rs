use crate::{
    error::{check_len, check_unit, Result},
    layout::{Batch, Row},
    real::Real,
    recursion::{run, Lanes, Recursion},
};

/// What a recursion does at a dropped token between two kept ones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Across {
    /// "Next" is the next kept token; nothing decays on the way. verl 0.9.1, NeMo-RL (2026-08).
    #[default]
    StepOver,
    /// A dropped token is a step with reward 0 and value 0: it costs a discount and breaks the bootstrap. OpenRLHF 0.11.
    ZeroStep,
}

/// What [`discounted_returns`] reads.
#[derive(Clone, Copy, Debug)]
pub struct ReturnsInput<'a, R> {
    /// Token rewards, action-aligned.
    pub rewards: &'a [R],
    /// One per sequence: what is expected after its last kept token. 0 for a finished sequence, V(s) for a truncated one.
    pub bootstrap: &'a [R],
}

/// How [`discounted_returns`] discounts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ReturnsConfig {
    /// Discount γ per step, in `[0, 1]`; default 1.
    pub gamma: f64,
    /// What a dropped token between two kept ones costs; default [`Across::StepOver`].
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
/// **Alignment.** `rewards` is action-aligned; `out` is state-aligned: slot `i` holds what followed from the state before
/// token `i + 1`. `bootstrap` has one entry per sequence.
///
/// **Mask.** Dropped slots are never read and get 0. `t + 1` is the next *kept* token, or under [`Across::ZeroStep`] the next
/// slot, with reward 0 where it is dropped. Dropped slots after the last kept token count under neither rule.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ is outside `[0, 1]`.
///
/// **Reference.** `StepOver`: the returns of verl 0.9.1's REINFORCE++; `ZeroStep`: OpenRLHF 0.11 `get_cumulative_returns`.
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
    check_unit("gamma", config.gamma)?;
    let gamma = R::narrow(config.gamma);
    run(batch, Discount(gamma), [input.rewards], config.across, &|sequence| [input.bootstrap[sequence]], [out]);
    Ok(())
}

#[derive(Clone, Copy)]
struct Discount<R>(R);

impl<R: Real> Recursion<R, 1, 1, 1> for Discount<R> {
    #[cfg_attr(not(compact), inline(always))]
    fn kept<V: Lanes<R>>(&self, [reward]: [V; 1], [ahead]: [V; 1]) -> ([V; 1], [V; 1]) {
        let ahead = reward + V::all(self.0) * ahead;
        ([ahead], [ahead])
    }

    #[cfg_attr(not(compact), inline(always))]
    fn dropped(&self, [ahead]: [R; 1]) -> [R; 1] {
        [self.0 * ahead]
    }
}

/// The recursion over one sequence.
#[cfg_attr(not(compact), inline(always))]
pub(super) fn row_returns<R: Real>(
    row: &Row<'_>,
    rewards: &[R],
    bootstrap: R,
    gamma: R,
    across: Across,
    out: &mut [R],
) {
    let (rewards, out) = (row.of(rewards), row.of_mut(out));
    let mut ahead = bootstrap;
    let mut seen_kept = false;
    // G_t needs G_{t+1}
    for t in (0..row.keep.len()).rev() {
        out[t] = if row.keep[t] {
            seen_kept = true;
            ahead = rewards[t] + gamma * ahead;
            ahead
        } else {
            if seen_kept && across == Across::ZeroStep {
                ahead = gamma * ahead;
            }
            R::zero()
        };
    }
}
