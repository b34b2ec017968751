use super::{
    aggregate::Plan,
    policy::{check_bound, Ratio, Token},
    ppo_clip::Clip,
    Aggregate, DualClip, PolicyLossInput,
};
use crate::{
    error::{check_len, check_not_negative, Result},
    layout::Batch,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::Divisor,
    weight::{Kind, TokenWeight},
};

/// What [`dual_game`] reads.
#[derive(Clone, Copy, Debug)]
pub struct DualGameInput<'a, R> {
    /// The inputs common to all policy losses.
    pub policy: PolicyLossInput<'a, R>,
    /// Log-probabilities of the reference; constants. Without them β has no effect, and gates are 1.
    pub ref_log_probs: Option<&'a [R]>,
    /// How much each token's entropy counts.
    pub weight: TokenWeight<'a, R>,
}

impl<'a, R> DualGameInput<'a, R> {
    /// [`TokenWeight::Plain`], without a reference.
    pub const fn new(policy: PolicyLossInput<'a, R>) -> Self {
        Self { policy, ref_log_probs: None, weight: TokenWeight::Plain }
    }
}

/// Whether the gradient of [`dual_game`] includes the dependence of the modified advantage on the policy.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum DualGradient {
    /// The modified advantage is a constant: `A_mod ∇log π`, the form of the equation.
    #[default]
    Detached,
    /// The derivative flows through the modified advantage too, and through `w` where it is a function of the policy.
    Through,
}

/// Prices and clip of [`dual_game`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct DualGameConfig<'a> {
    /// γ: negative advantages are multiplied by this; not negative, default 1.2.
    pub gamma: f64,
    /// λ: the price of weighted entropy; not negative, default 0.
    pub lambda: f64,
    /// β: the price of the KL to the reference; not negative, default 0.
    pub beta: f64,
    /// ε⁻; default 0.2.
    pub clip_low: f64,
    /// ε⁺; default 0.2.
    pub clip_high: f64,
    /// Default [`DualGradient::Detached`].
    pub gradient: DualGradient,
    /// Log-ratios are bounded to ±this; default 20.
    pub log_ratio_bound: Option<f64>,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
}

impl Default for DualGameConfig<'_> {
    fn default() -> Self {
        Self {
            gamma: 1.2,
            lambda: 0.0,
            beta: 0.0,
            clip_low: 0.2,
            clip_high: 0.2,
            gradient: DualGradient::Detached,
            log_ratio_bound: Some(20.0),
            aggregate: Aggregate::default(),
            divisor: Divisor::Count,
        }
    }
}

/// The loss of [`dual_game`] and its metrics. The means are over the kept tokens of the current batch; 0 if there are
/// none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct DualGameLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// Share of tokens held by the clip on either side.
    pub clip_fraction: f64,
    /// Share of tokens held above `1 + ε⁺`.
    pub clip_fraction_upper: f64,
    /// Share of tokens held below `1 − ε⁻`.
    pub clip_fraction_lower: f64,
    /// Mean of `log π_old − log π`, bounded: the trainers' `ppo_kl`.
    pub kl: f64,
}

/// Clipped surrogate whose advantages include the price of entropy and of the KL to the reference. Returns the loss,
/// writes its gradient.
///
/// ```text
/// A_base = max(A, 0) + γ min(A, 0)        A_mod = A_base − λ w (−log π − 1) − β (log π − log π_ref)
/// ρ = exp(clamp(log π − log π_old, ±20))        loss = Agg_t max(−A_mod ρ, −A_mod clip(ρ, 1 − ε⁻, 1 + ε⁺))
/// Detached: ∂loss/∂log π_t = −W_t A_mod ρ, or 0 if clipped
/// Through: additionally −W_t A_mod′ ρ̂, with ρ̂ the ratio of the larger term, A_mod′ = λ (w′ (log π + 1) + w) − β
/// Plain: w′ = p (1 − 2p) |A|      Structural: w′ = 0
/// KlGated: w′ = |A| (p (1 − 2p) |d| + p (1 − p) sign d), d = log π − log π_ref
/// ```
///
/// γ = 1 and λ = β = 0 give [`ppo_clip`](super::ppo_clip), bit for bit. **At a bound** the full gradient is kept,
/// strictly beyond it it is 0; where `A_mod = 0` both terms are equal, and ρ̂ is the mean of both ratios, as in
/// automatic differentiation. sign 0 = 0.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ, a price or a clip width is negative or not finite, or the log-ratio
/// bound not positive; the errors of [`aggregate`](super::aggregate).
///
/// **Reference.** BNTO, `docs/bnto.md` §4; γ = 1.2 and [`DualGradient::Detached`] are its settings.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, weight::TokenWeight, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-2.0, f64::NAN, -1.0];
/// let input = DualGameInput {
///     policy: PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, -1.0]),
///     ref_log_probs: Some(&[-2.5, f64::NAN, -1.0]),
///     weight: TokenWeight::Structural(&[0.5, f64::NAN, 0.5]),
/// };
/// let mut grad = [9.0; 3];
/// let config = DualGameConfig { gamma: 1.5, lambda: 0.5, beta: 0.25, ..Default::default() };
/// let result = dual_game(&batch, input, &config, &mut grad)?;
/// // A_mod = 1 − 0.5 · 0.5 · (2 − 1) − 0.25 · 0.5 and −1.5
/// assert_eq!(grad, [-0.625 / 2.0, 0.0, 1.5 / 2.0]);
/// assert_eq!(result.loss, 0.4375);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn dual_game<R: Real>(
    batch: &Batch<'_>,
    input: DualGameInput<'_, R>,
    config: &DualGameConfig<'_>,
    grad: &mut [R],
) -> Result<DualGameLoss> {
    input.policy.check(batch, grad)?;
    if let Some(ref_log_probs) = input.ref_log_probs {
        check_len("ref_log_probs", ref_log_probs, batch.tokens())?;
    }
    input.weight.check(batch)?;
    check_not_negative::<R>("gamma", config.gamma)?;
    check_not_negative::<R>("lambda", config.lambda)?;
    check_not_negative::<R>("beta", config.beta)?;
    let clip = Clip::new(config.clip_low, config.clip_high, DualClip::Off)?;
    let bound = check_bound(config.log_ratio_bound)?;
    let plan = config.aggregate.plan(batch)?;
    let game = Game {
        gamma: R::narrow(config.gamma),
        lambda: R::narrow(config.lambda),
        // without a reference there is no KL
        beta: R::narrow(if input.ref_log_probs.is_some() { config.beta } else { 0.0 }),
        clip,
        bound,
        through: config.gradient == DualGradient::Through,
        kind: Kind::of(input.weight, input.ref_log_probs, input.policy.log_probs).0,
    };
    let [loss, upper, lower, kl] = walk(batch, &input, &game, &plan, grad);
    let mean = |sum: f64| if batch.kept() == 0 { 0.0 } else { sum / config.divisor.of(batch.kept() as f64) };
    Ok(DualGameLoss {
        loss,
        clip_fraction: mean(upper + lower),
        clip_fraction_upper: mean(upper),
        clip_fraction_lower: mean(lower),
        kl: mean(kl),
    })
}

struct Game<R> {
    gamma: R,
    lambda: R,
    beta: R,
    clip: Clip<R>,
    bound: R,
    through: bool,
    kind: Kind,
}

impl<R: Real> Game<R> {
    /// The advantage after both prices, and its derivative with respect to the log-probability.
    #[inline(always)]
    fn advantage(&self, log_prob: R, gap: R, advantage: R, given: R) -> (R, R) {
        let (zero, one) = (R::zero(), R::one());
        let base = if advantage < zero { self.gamma * advantage } else { advantage };
        let w = self.kind.weigh(log_prob, gap, advantage, given);
        // skipped at a price of 0: 0 · inf would be NaN
        let (entropy, entropy_slope) = if (self.lambda == zero) | ((w.weight == zero) & (w.slope == zero)) {
            (zero, zero)
        } else {
            let surplus = -log_prob - one;
            (self.lambda * w.weight * surplus, self.lambda * (w.weight - w.slope * surplus))
        };
        let (distance, distance_slope) = if self.beta == zero { (zero, zero) } else { (self.beta * gap, self.beta) };
        (base - entropy - distance, entropy_slope - distance_slope)
    }

    #[inline(always)]
    fn token(&self, log_prob: R, old_log_prob: R, advantage: R, reference: R, given: R) -> Token<R> {
        let zero = R::zero();
        let (modified, slope) = self.advantage(log_prob, log_prob - reference, advantage, given);
        let ratio = Ratio::new(log_prob - old_log_prob, self.bound);
        let token = self.clip.token(ratio.ratio, modified);
        let mut gradient = if token.flat | ratio.beyond { zero } else { -modified * ratio.ratio };
        // skipped at a slope of 0, whatever the ratio: 0 · inf would be NaN
        if self.through & (slope != zero) {
            let clipped = self.clip.inside(ratio.ratio);
            let taken = if modified == zero {
                (ratio.ratio + clipped) * R::narrow(0.5)
            } else if token.held {
                clipped
            } else {
                ratio.ratio
            };
            gradient -= slope * taken;
        }
        Token {
            loss: token.loss,
            slope: gradient,
            held: token.held & (modified > zero),
            held_below: token.held & (modified < zero),
            kl: -ratio.log_ratio,
        }
    }
}

#[multiversion]
fn walk<R: Real>(
    batch: &Batch<'_>,
    input: &DualGameInput<'_, R>,
    game: &Game<R>,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> [f64; 4] {
    let policy = input.policy;
    // absent inputs do not affect the result; the log-probabilities serve as placeholders
    let reference = input.ref_log_probs.unwrap_or(policy.log_probs);
    let (_, given) = Kind::of(input.weight, input.ref_log_probs, policy.log_probs);
    let omegas = policy.weights.unwrap_or(policy.log_probs);
    let weighs = policy.weights.is_some();
    let mut totals = [Sum::default(); 4];
    for (row, weight) in plan.rows(batch) {
        let w = R::narrow(weight);
        let inputs = [policy.log_probs, policy.old_log_probs, policy.advantages, reference, given, omegas];
        let mut parts = fold_row(&row, inputs, [&mut *grad], |[new, old, advantage, reference, given, omega]| {
            let token = game.token(new, old, advantage, reference, given);
            token.weighed(if weighs { omega } else { R::one() }, w)
        });
        parts[0] *= weight;
        Sum::add_each(&mut totals, &parts);
    }
    Sum::values(&totals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{layout::Layout, Mask};

    /// Loss and gradient of one token with advantage 1, whose old log-probability is 0.
    fn one(log_prob: f64, weight: TokenWeight<'_, f64>, lambda: f64) -> (f64, f64) {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let (log_probs, mut grad) = ([log_prob], [9.0]);
        let input = DualGameInput { weight, ..DualGameInput::new(PolicyLossInput::new(&log_probs, &[0.0], &[1.0])) };
        let config = DualGameConfig { lambda, gradient: DualGradient::Through, ..Default::default() };
        (dual_game(&batch, input, &config, &mut grad).unwrap().loss, grad[0])
    }

    #[test]
    fn a_certain_token_has_no_weight_but_a_slope() {
        // w = p (1 − p) |A| = 0, w′ = −|A|: the advantage stays, its derivative is −λ |A|
        assert_eq!(one(0.0, TokenWeight::Plain, 0.5), (-1.0, -1.0 + 0.5));
    }

    #[test]
    fn a_constant_weight_has_no_slope_but_a_price() {
        // A_mod = 1 − λ w (0 − 1), and its derivative is λ w
        assert_eq!(one(0.0, TokenWeight::Structural(&[0.5]), 0.5), (-1.25, -1.25 - 0.25));
    }

    #[test]
    fn an_impossible_token_has_no_price() {
        // the ratio is e⁻²⁰, the bound of the log-ratio; an infinite surprisal times 0 would be NaN
        let (loss, gradient) = one(f64::NEG_INFINITY, TokenWeight::Plain, 0.5);
        assert!(loss < 0.0 && loss > -1e-8 && gradient == 0.0, "{loss} {gradient}");
        let (loss, gradient) = one(f64::NEG_INFINITY, TokenWeight::Structural(&[0.5]), 0.0);
        assert!(loss < 0.0 && loss > -1e-8 && gradient == 0.0, "{loss} {gradient}");
    }
}
