use crate::{
    error::{check_len, check_not_negative, check_positive, Result},
    layout::Batch,
    loss::Aggregate,
    real::Real,
    reduce::Sum,
    statistics::Extremes,
};

/// What [`iw_opd`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct IwOpdInput<'a, R> {
    /// Log-probabilities of the student; the gradient is taken with respect to these.
    pub log_probs: &'a [R],
    /// Log-probabilities of the student when it sampled; constants.
    pub old_log_probs: &'a [R],
    /// Log-probabilities of the same tokens under the teacher; constants.
    pub teacher_log_probs: &'a [R],
}

/// How [`iw_opd`] weights the beginning of a response.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct IwOpdConfig<'a> {
    /// How much more the first token counts than the last, γ; default 0.5.
    pub gamma: f64,
    /// ε, the lower bound of the total of absolute advantages; default 1e-8.
    pub epsilon: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for IwOpdConfig<'_> {
    fn default() -> Self {
        Self { gamma: 0.5, epsilon: 1e-8, aggregate: Aggregate::default() }
    }
}

/// What [`iw_opd`] returns. Metrics are over the kept tokens; 0 if there are none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct IwOpdLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// Mean of `w a`.
    pub mean_advantage: f64,
    /// Mean of `|a|`.
    pub mean_abs_advantage: f64,
    /// Mean of `w`.
    pub mean_weight: f64,
    /// The smallest `w`.
    pub min_weight: f64,
    /// The largest `w`.
    pub max_weight: f64,
}

/// On-policy distillation that gives a token more weight the less the teacher disagrees with the tokens before it.
///
/// ```text
/// a_t = log π_teacher,t − log π_old,t        w_t = 1 + γ (1 − Σ_{u < t} |a_u| / max(Σ_u |a_u|, ε))
/// loss = −Agg_t w_t a_t log π_t              ∂loss/∂log π_t = −W_t w_t a_t
/// ```
///
/// γ = 0 gives [`opd_loss`](super::opd_loss) with the route `Reinforce` and the advantage of the policy that sampled.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read, add nothing to a prefix, and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ is negative or ε not positive; the errors of
/// [`aggregate`](crate::loss::aggregate).
///
/// **Reference.** TRL 1.16 `iw_opd`, with the token mean; it rejects a batch in which the teacher has not scored a kept
/// token.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-1.0, f64::NAN, -2.0];
/// let input = IwOpdInput {
///     log_probs: &log_probs,
///     old_log_probs: &log_probs,
///     teacher_log_probs: &[-0.5, f64::NAN, -2.5],
/// };
/// let mut grad = [9.0; 3];
/// let result = iw_opd(&batch, input, &IwOpdConfig::default(), &mut grad)?;
/// assert_eq!(grad, [-0.375, 0.0, 0.3125]);            // weights 1.5 and 1.25
/// assert_eq!((result.loss, result.mean_weight), (-0.25, 1.375));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn iw_opd<R: Real>(
    batch: &Batch<'_>,
    input: IwOpdInput<'_, R>,
    config: &IwOpdConfig<'_>,
    grad: &mut [R],
) -> Result<IwOpdLoss> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("teacher_log_probs", input.teacher_log_probs, batch.tokens())?;
    check_len("grad", grad, batch.tokens())?;
    check_not_negative::<R>("gamma", config.gamma)?;
    check_positive::<R>("epsilon", config.epsilon)?;
    let plan = config.aggregate.plan(batch)?;
    let [mut loss, mut advantages, mut sizes, mut weights] = [Sum::default(); 4];
    let mut range = Extremes::NONE;
    for (row, share) in plan.rows(batch) {
        let (new, old) = (row.of(input.log_probs), row.of(input.old_log_probs));
        let (teacher, grad) = (row.of(input.teacher_log_probs), row.of_mut(grad));
        let advantage = |t: usize| (teacher[t] - old[t]).widen();
        let magnitude = |a: f64| if a < 0.0 { -a } else { a };
        let kept = || (0..row.keep.len()).filter(|&t| row.keep[t]);
        let mut total = Sum::default();
        kept().for_each(|t| total.add(magnitude(advantage(t))));
        let total = total.value();
        sizes.add(total);
        let total = if total < config.epsilon { config.epsilon } else { total };
        let (mut before, mut sum) = (Sum::default(), Sum::default());
        grad.fill(R::zero());
        for t in kept() {
            let a = advantage(t);
            let weight = 1.0 + config.gamma * (1.0 - before.value() / total);
            before.add(magnitude(a));
            sum.add(-new[t].widen() * (weight * a));
            advantages.add(weight * a);
            weights.add(weight);
            range.add(weight);
            let slope = -share * (weight * a);
            grad[t] = if new[t].is_nan() { new[t] } else { R::narrow(slope) };
        }
        loss.add(share * sum.value());
    }
    if batch.kept() == 0 {
        return Ok(IwOpdLoss::default());
    }
    let mean = |sum: Sum| sum.value() / batch.kept() as f64;
    Ok(IwOpdLoss {
        loss: loss.value(),
        mean_advantage: mean(advantages),
        mean_abs_advantage: mean(sizes),
        mean_weight: mean(weights),
        min_weight: range.min,
        max_weight: range.max,
    })
}
