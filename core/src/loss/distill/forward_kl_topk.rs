use super::topk::{check_rows, sum, weighted};
use crate::{
    error::{check_config, check_len, check_positive, check_range, Result},
    layout::Batch,
    loss::Aggregate,
    math::{clamp, exp},
    real::Real,
    reduce::Sum,
    statistics::Extremes,
};

/// The ids behind the entries of [`forward_kl_topk`], for its overlap metrics only.
#[derive(Clone, Copy, Debug)]
pub struct TopKIds<'a> {
    /// `[tokens, k]`: the teacher's likeliest tokens, to which the log-probabilities belong.
    pub teacher: &'a [u32],
    /// `[tokens, k]`: the student's likeliest tokens.
    pub student: &'a [u32],
}

/// What [`forward_kl_topk`] reads.
#[derive(Clone, Copy, Debug)]
pub struct ForwardKlTopKInput<'a, R> {
    /// `[tokens, k]`, row-major: the student's log-probabilities of the teacher's likeliest tokens.
    pub log_probs: &'a [R],
    /// `[tokens, k]`: the teacher's; constants.
    pub teacher_log_probs: &'a [R],
    /// Entries per token.
    pub k: usize,
    /// `None` for no overlap metrics.
    pub ids: Option<TopKIds<'a>>,
}

impl<'a, R> ForwardKlTopKInput<'a, R> {
    /// Without ids there are no overlap metrics.
    pub const fn new(log_probs: &'a [R], teacher_log_probs: &'a [R], k: usize) -> Self {
        Self { log_probs, teacher_log_probs, k, ids: None }
    }
}

/// The bounds of [`forward_kl_topk`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct ForwardKlTopKConfig<'a> {
    /// Lower bound of the log-probabilities, with gradient 0 strictly below; default −10, `None` for no floor.
    pub log_prob_floor: Option<f64>,
    /// Upper bound of a token's loss, with gradient 0 strictly above; default 10, `None` for no bound.
    pub max_loss: Option<f64>,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for ForwardKlTopKConfig<'_> {
    fn default() -> Self {
        Self { log_prob_floor: Some(-10.0), max_loss: Some(10.0), aggregate: Aggregate::default() }
    }
}

/// What [`forward_kl_topk`] writes.
#[derive(Debug)]
pub struct ForwardKlTopKOutput<'a, R> {
    /// The loss of each token, within its bounds. Negated, it is the advantage that verl passes to the clipped
    /// surrogate.
    pub losses: &'a mut [R],
    /// `[tokens, k]`: ∂loss/∂log_probs.
    pub grad: &'a mut [R],
}

/// How far student and teacher agree on which tokens are likeliest.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TopKOverlap {
    /// Mean share of the teacher's likeliest tokens that are among the student's.
    pub ratio: f64,
    /// The mean of `−p_T (ln p_T − ln p_S)` over such entries of a token, averaged over the tokens that have any; 0 if
    /// none has.
    pub token_advantage: f64,
}

/// What [`forward_kl_topk`] returns. Metrics are over the kept tokens; 0 if there are none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ForwardKlTopK {
    /// The aggregated loss.
    pub loss: f64,
    /// The smallest loss of a token, before `max_loss`.
    pub loss_min: f64,
    /// The largest loss of a token, before `max_loss`.
    pub loss_max: f64,
    /// Mean, smallest and largest total probability of a token's entries under the student.
    pub student_mass: [f64; 3],
    /// The same under the teacher.
    pub teacher_mass: [f64; 3],
    /// `Some` if ids were given.
    pub overlap: Option<TopKOverlap>,
}

/// Forward KL to the teacher over its likeliest tokens only: the student learns to cover all that the teacher finds
/// likely.
///
/// ```text
/// L_t = clip(Σ_j p_j (ln p_j − s_j), 0, max)        s_j, ln p_j: log-probabilities of student and teacher, ≥ floor
/// loss = Agg_t L_t        ∂loss/∂s_j = −W_t p_j, 0 where s_j was below the floor or L_t beyond a bound
/// ```
///
/// The entries do not add up to 1, so the sum can be negative; it is then taken as 0.
/// [`topk_log_probs`](crate::policy::topk_log_probs) reads the student's entries from logits,
/// [`topk_logits_gradient`](crate::policy::topk_logits_gradient) propagates the gradient back to the logits.
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Rows of dropped slots are never read and get 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch` and `k`;
/// [`Error::Config`](crate::Error::Config) if `k` is 0, the floor not negative or `max_loss` not positive;
/// [`Error::Overflow`](crate::Error::Overflow) if `tokens × k` does not fit into a machine word; the errors of
/// [`aggregate`](crate::loss::aggregate).
///
/// **Reference.** verl 0.9.1 `forward_kl_topk` (k 128); total probabilities are taken before the floor. Overlap:
/// arXiv:2604.13016.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let half = math::ln(0.5);
/// let input = ForwardKlTopKInput {
///     log_probs: &[half - 1.0, f64::NAN],
///     teacher_log_probs: &[half, f64::NAN],
///     k: 1,
///     ids: Some(TopKIds { teacher: &[7, 0], student: &[7, 0] }),
/// };
/// let (mut losses, mut grad) = ([9.0; 2], [9.0; 2]);
/// let output = ForwardKlTopKOutput { losses: &mut losses, grad: &mut grad };
/// let result = forward_kl_topk(&batch, input, &ForwardKlTopKConfig::default(), output)?;
/// assert_eq!((result.loss, losses, grad), (0.5, [0.5, 0.0], [-0.5, 0.0]));
/// assert_eq!(result.overlap.map(|overlap| (overlap.ratio, overlap.token_advantage)), Some((1.0, -0.5)));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn forward_kl_topk<R: Real>(
    batch: &Batch<'_>,
    input: ForwardKlTopKInput<'_, R>,
    config: &ForwardKlTopKConfig<'_>,
    output: ForwardKlTopKOutput<'_, R>,
) -> Result<ForwardKlTopK> {
    let ForwardKlTopKOutput { losses, grad } = output;
    let k = input.k;
    let len = check_rows(batch, k, input.log_probs, input.teacher_log_probs)?;
    if let Some(ids) = input.ids {
        check_len("teacher", ids.teacher, len)?;
        check_len("student", ids.student, len)?;
    }
    check_len("losses", losses, batch.tokens())?;
    check_len("grad", grad, len)?;
    let floor = config.log_prob_floor.unwrap_or(f64::NEG_INFINITY);
    check_config("log_prob_floor", "negative", floor, floor < 0.0)?;
    check_range::<R>("log_prob_floor", floor)?;
    if let Some(max_loss) = config.max_loss {
        check_positive::<R>("max_loss", max_loss)?;
    }
    let most = config.max_loss.unwrap_or(f64::INFINITY);
    let plan = config.aggregate.plan(batch)?;

    let mut loss = Sum::default();
    let [mut range, mut student, mut teacher] = [Spread::NONE; 3];
    let [mut shared, mut advantages, mut positions] = [Sum::default(); 3];
    for (row, weight) in plan.rows(batch) {
        let mut total = Sum::default();
        for t in 0..row.keep.len() {
            let slot = row.start + t;
            let entries = slot * k..(slot + 1) * k;
            let out = &mut grad[entries.clone()];
            if !row.keep[t] {
                losses[slot] = R::zero();
                out.fill(R::zero());
                continue;
            }
            let (s, p) = (&input.log_probs[entries.clone()], &input.teacher_log_probs[entries.clone()]);
            let part = |s: f64, p: f64| {
                let (s, p) = (at_least(s, floor), at_least(p, floor));
                weighted(exp(p), p - s)
            };
            let divergence = at_least(sum(s, p, part), 0.0);
            let below = sum(s, p, part) < 0.0;
            let bounded = clamp(divergence, 0.0, most);
            range.add(divergence);
            student.add(sum(s, p, |s, _| exp(s)));
            teacher.add(sum(s, p, |_, p| exp(p)));
            losses[slot] = R::narrow(bounded);
            total.add(bounded);
            for ((out, s), p) in out.iter_mut().zip(s).zip(p) {
                let flat = below | (divergence > most) | (s.widen() < floor);
                let slope = if flat { 0.0 } else { 0.0 - weight * exp(at_least(p.widen(), floor)) };
                *out = R::narrow(if divergence.is_nan() { divergence } else { slope });
            }
            if let Some(ids) = input.ids {
                let (mut count, mut advantage) = (0.0, Sum::default());
                let chosen = &ids.student[entries.clone()];
                for (id, (s, p)) in ids.teacher[entries].iter().zip(s.iter().zip(p)) {
                    if chosen.contains(id) {
                        count += 1.0;
                        advantage.add(-part(s.widen(), p.widen()));
                    }
                }
                shared.add(count);
                if count > 0.0 {
                    advantages.add(advantage.value() / count);
                    positions.add(1.0);
                }
            }
        }
        loss.add(weight * total.value());
    }
    let kept = batch.kept() as f64;
    let ratio = |sum: f64, count: f64| if count == 0.0 { 0.0 } else { sum / count };
    let [_, loss_min, loss_max] = range.of(kept);
    Ok(ForwardKlTopK {
        loss: loss.value(),
        loss_min,
        loss_max,
        student_mass: student.of(kept),
        teacher_mass: teacher.of(kept),
        overlap: input.ids.map(|_| TopKOverlap {
            ratio: ratio(shared.value(), kept * k as f64),
            token_advantage: ratio(advantages.value(), positions.value()),
        }),
    })
}

/// NaN stays NaN.
fn at_least(x: f64, low: f64) -> f64 {
    if x < low {
        low
    } else {
        x
    }
}

/// Mean, smallest and largest number.
#[derive(Clone, Copy)]
struct Spread {
    sum: Sum,
    range: Extremes,
}

impl Spread {
    const NONE: Self = Self { sum: Sum::ZERO, range: Extremes::NONE };

    fn add(&mut self, x: f64) {
        self.sum.add(x);
        self.range.add(x);
    }

    fn of(self, count: f64) -> [f64; 3] {
        if count == 0.0 {
            [0.0; 3]
        } else {
            [self.sum.value() / count, self.range.min, self.range.max]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        layout::{Layout, Mask},
        Error,
    };

    #[test]
    fn a_floor_of_zero_would_make_every_probability_one() {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let input = ForwardKlTopKInput { log_probs: &[-1.0], teacher_log_probs: &[-2.0], k: 1, ids: None };
        let config = ForwardKlTopKConfig { log_prob_floor: Some(0.0), ..Default::default() };
        let (mut losses, mut grad) = ([9.0], [9.0]);
        let output = ForwardKlTopKOutput { losses: &mut losses, grad: &mut grad };
        let error = forward_kl_topk(&batch, input, &config, output).unwrap_err();
        assert!(matches!(error, Error::Config { .. }), "{error}");
        assert_eq!((losses, grad), ([9.0], [9.0]));
    }
}
