use crate::{
    divergence::{kl_slope, kl_value, KlConfig, KlEstimator, KlGradient},
    error::{check_config, check_finite, check_len, check_positive, Result},
    layout::Batch,
    loss::{
        aggregate::Plan,
        policy::{check_bound, Token, TokenLoss},
        ppo_clip::Clipping,
        reinforce::Plain,
        surrogate::Surrogate,
        Aggregate, Clip, DualClip,
    },
    math::clamp,
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::{Divisor, Extremes},
};

/// What [`opd_loss`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct OpdLossInput<'a, R> {
    /// Log-probabilities of the student; the gradient is taken with respect to these.
    pub log_probs: &'a [R],
    /// Log-probabilities of the policy that sampled; constants. The student's own if there is no older policy.
    pub old_log_probs: &'a [R],
    /// Log-probabilities of the same tokens under the teacher; constants.
    pub teacher_log_probs: &'a [R],
    /// A weight for each token's loss, such as a rollout correction; constants. `None` gives weight 1.
    pub weights: Option<&'a [R]>,
}

impl<'a, R> OpdLossInput<'a, R> {
    /// Every token has weight 1.
    pub const fn new(log_probs: &'a [R], old_log_probs: &'a [R], teacher_log_probs: &'a [R]) -> Self {
        Self { log_probs, old_log_probs, teacher_log_probs, weights: None }
    }
}

/// How the distance to the teacher becomes a gradient.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum OpdRoute {
    /// The negated distance is the advantage of the clipped surrogate. verl 0.9.1 `use_policy_gradient`.
    #[default]
    Clipped,
    /// The same without a clip, `−ρ A`. AReaL (2026-05) without a reward.
    Surrogate,
    /// The same without a ratio, `−A log π`. TRL 1.16 `sampled_token`, whose cap on importance weights is that of
    /// [`rollout_weights`](crate::rollout::rollout_weights) with `Truncate`.
    Reinforce,
    /// The distance itself is the loss. verl 0.9.1 without `use_policy_gradient`.
    Supervised,
}

/// How [`opd_loss`] measures the distance and turns it into a loss.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct OpdLossConfig<'a> {
    /// The estimate; default K1, unbounded.
    pub kl: KlConfig,
    /// Estimates are bounded to ± this, with gradient 0 strictly beyond; default 10 (verl), `None` for no bound.
    pub max_loss: Option<f64>,
    /// Default [`OpdRoute::Clipped`].
    pub route: OpdRoute,
    /// Loss and gradient are multiplied by this; default 1.
    pub coefficient: f64,
    /// ε⁻ of the clipped route; default 0.2.
    pub clip_low: f64,
    /// ε⁺ of the clipped route; default 0.2.
    pub clip_high: f64,
    /// Second bound of the clipped route; default [`DualClip::Off`].
    pub dual_clip: DualClip,
    /// Log-ratios are bounded to ±this, with gradient 0 strictly beyond; default 20.
    pub log_ratio_bound: Option<f64>,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
    /// Divisor of the means of the clip metrics; default the exact count.
    pub divisor: Divisor,
}

impl Default for OpdLossConfig<'_> {
    fn default() -> Self {
        Self {
            kl: KlConfig::default(),
            max_loss: Some(10.0),
            route: OpdRoute::Clipped,
            coefficient: 1.0,
            clip_low: 0.2,
            clip_high: 0.2,
            dual_clip: DualClip::Off,
            log_ratio_bound: Some(20.0),
            aggregate: Aggregate::default(),
            divisor: Divisor::Count,
        }
    }
}

/// What [`opd_loss`] returns. Metrics are over the kept tokens; 0 if there are none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpdLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// As in [`PolicyLoss`](crate::loss::PolicyLoss); 0 except on the clipped route.
    pub clip_fraction: f64,
    /// As in [`PolicyLoss`](crate::loss::PolicyLoss); 0 except on the clipped route.
    pub clip_fraction_lower: f64,
    /// Mean of `log π_old − log π`.
    pub kl: f64,
    /// Mean of the estimate's absolute value, before `max_loss`. verl logs it as `distillation/abs_loss`.
    pub abs_loss: f64,
    /// The smallest estimate, before `max_loss`.
    pub loss_min: f64,
    /// The largest estimate, before `max_loss`.
    pub loss_max: f64,
}

/// On-policy distillation: each sampled token's distance to the teacher, as a reward to the policy or as a loss itself.
///
/// ```text
/// L_t = clip(kl(log π_t − log π_teacher,t), ±max)        A_t = −L_t, a constant
/// Clipped: ppo(ρ_t, A_t)     Surrogate: −ρ_t A_t     Reinforce: −A_t log π_t     Supervised: L_t     loss = c · Agg_t
/// ```
///
/// Writes ∂loss/∂log_probs into `grad`. With K1 the advantage is that of
/// [`opd_advantage`](crate::advantage::opd_advantage), evaluated at the current policy. Supervised K1 is rejected: its
/// gradient would not depend on the teacher.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if the estimator is K1 with its own gradient and the route supervised, a
/// bound not positive, a clip width negative, the dual clip not above 1 or the coefficient not finite; the errors of
/// [`aggregate`](crate::loss::aggregate).
///
/// **Reference.** verl 0.9.1 `distillation_loss` with its estimators (K3 by default; `KlBounds::K3Only`,
/// `NegativeOnly(3.0)`, [`Divisor::CountPlusEpsilon`]); it rejects only the name `k1` and accepts the same estimate as
/// `kl`. Thinking Machines 2025, "On-Policy Distillation". For the other frameworks see [`OpdRoute`].
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-1.0, f64::NAN, -1.0];
/// let input = OpdLossInput::new(
///     &log_probs,
///     &log_probs,
///     &[-0.5, f64::NAN, -2.0],
/// );
/// let mut grad = [9.0; 3];
/// let result = opd_loss(&batch, input, &OpdLossConfig::default(), &mut grad)?;
/// assert_eq!(result.loss, 0.25);                 // −(0.5 − 1) / 2
/// assert_eq!(grad, [-0.25, 0.0, 0.5]);           // towards the first token, away from the last
/// assert_eq!((result.abs_loss, result.loss_min, result.loss_max), (0.75, -0.5, 1.0));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn opd_loss<R: Real>(
    batch: &Batch<'_>,
    input: OpdLossInput<'_, R>,
    config: &OpdLossConfig<'_>,
    grad: &mut [R],
) -> Result<OpdLoss> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("teacher_log_probs", input.teacher_log_probs, batch.tokens())?;
    if let Some(weights) = input.weights {
        check_len("weights", weights, batch.tokens())?;
    }
    check_len("grad", grad, batch.tokens())?;
    let blind = config.kl.estimator == KlEstimator::K1 && config.kl.gradient == KlGradient::Own;
    check_config(
        "estimator",
        "other than K1 for a supervised loss",
        1.0,
        !blind || config.route != OpdRoute::Supervised,
    )?;
    if let Some(max_loss) = config.max_loss {
        check_positive::<R>("max_loss", max_loss)?;
    }
    check_finite::<R>("coefficient", config.coefficient)?;
    let clip = Clip::new(config.clip_low, config.clip_high, config.dual_clip)?;
    let bound = check_bound(config.log_ratio_bound)?;
    let plan = config.aggregate.plan(batch)?.times(config.coefficient);
    let formula = Formula {
        kl: config.kl,
        most: R::narrow(config.max_loss.unwrap_or(f64::INFINITY)),
        route: config.route,
        clipped: Clipping { clip, bound, kl_bound: bound },
        plain: Surrogate { bound },
    };
    let [loss, held, held_below, kl, abs] = walk(batch, input, &formula, &plan, grad);
    if batch.kept() == 0 {
        return Ok(OpdLoss { loss, ..Default::default() });
    }
    let mut range = Extremes::NONE;
    for (slot, _) in batch.mask().as_slice().iter().enumerate().filter(|(_, &keep)| keep) {
        range.add(kl_value(&config.kl, input.log_probs[slot] - input.teacher_log_probs[slot]).widen());
    }
    let (kept, clip_kept) = (batch.kept() as f64, config.divisor.of(batch.kept() as f64));
    Ok(OpdLoss {
        loss,
        clip_fraction: held / clip_kept,
        clip_fraction_lower: held_below / clip_kept,
        kl: kl / clip_kept,
        abs_loss: abs / kept,
        loss_min: range.min,
        loss_max: range.max,
    })
}

struct Formula<R> {
    kl: KlConfig,
    most: R,
    route: OpdRoute,
    clipped: Clipping<R>,
    plain: Surrogate<R>,
}

impl<R: Real> Formula<R> {
    /// The loss of a token, and its estimate before the bound.
    #[inline(always)]
    fn token(&self, new: R, old: R, teacher: R) -> (Token<R>, R) {
        let d = new - teacher;
        let estimate = kl_value(&self.kl, d);
        let bounded = clamp(estimate, -self.most, self.most);
        let token = match self.route {
            OpdRoute::Clipped => self.clipped.token(new, old, -bounded),
            OpdRoute::Surrogate => Token { held: false, ..self.plain.token(new, old, -bounded) },
            OpdRoute::Reinforce => Plain.token(new, old, -bounded),
            OpdRoute::Supervised => {
                let beyond = (estimate > self.most) | (estimate < -self.most);
                let slope = if beyond { R::zero() } else { kl_slope(&self.kl, d) };
                Token { loss: bounded, slope, held: false, held_below: false, kl: old - new }
            }
        };
        (token, estimate)
    }
}

#[multiversion]
fn walk<R: Real>(
    batch: &Batch<'_>,
    input: OpdLossInput<'_, R>,
    formula: &Formula<R>,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> [f64; 5] {
    let mut totals = [Sum::default(); 5];
    let [new, old, teacher] = [input.log_probs, input.old_log_probs, input.teacher_log_probs];
    for (row, weight) in plan.rows(batch) {
        let w = R::narrow(weight);
        let term = |new: R, old: R, teacher: R, omega: R| {
            let (token, estimate) = formula.token(new, old, teacher);
            let (grad, [loss, held, held_below, kl]) = token.weighed(omega, w);
            (grad, [loss, held, held_below, kl, estimate.abs()])
        };
        let mut parts = match input.weights {
            None => fold_row(&row, [new, old, teacher], [&mut *grad], |[new, old, teacher]| {
                term(new, old, teacher, R::one())
            }),
            Some(weights) => fold_row(&row, [new, old, teacher, weights], [&mut *grad], |[new, old, teacher, omega]| {
                term(new, old, teacher, omega)
            }),
        };
        parts[0] *= weight;
        Sum::add_each(&mut totals, &parts);
    }
    Sum::values(&totals)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Error, Layout, Mask};

    #[test]
    fn a_supervised_k1_is_refused_unless_its_gradient_knows_the_teacher() {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let input = OpdLossInput::new(&[-1.0], &[-1.0], &[-1.5]);
        let config = OpdLossConfig { route: OpdRoute::Supervised, ..Default::default() };
        let mut grad = [9.0];
        let must_be = "other than K1 for a supervised loss";
        let refused = opd_loss(&batch, input, &config, &mut grad);
        assert_eq!(refused, Err(Error::Config { what: "estimator", must_be, got: 1.0 }));
        assert_eq!(grad, [9.0]);
        let kl = KlConfig { gradient: KlGradient::StraightThrough, ..config.kl };
        assert_eq!(opd_loss(&batch, input, &OpdLossConfig { kl, ..config }, &mut grad).unwrap().loss, 0.5);
        assert_eq!(grad, [0.5]);
    }
}
