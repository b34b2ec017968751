use super::topk::jsd_entry;
use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    loss::{aggregate::Plan, Aggregate},
    math::exp,
    policy::{
        vocab_row::{block_sums, check_logits, Block, Terms, VocabRow},
        Logit,
    },
    real::Real,
    reduce::Sum,
    simd::{multiversion, vocab::BLOCK},
};

/// What [`generalized_jsd`] reads.
#[derive(Clone, Copy, Debug)]
pub struct JsdInput<'a, L: Logit> {
    /// `[tokens, vocab]`, row-major: the student's row that predicted each token; the gradient is taken with respect to
    /// these.
    pub logits: &'a [L],
    /// The teacher's rows, of the same shape; constants.
    pub teacher_logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
    /// A weight for each token's loss, such as a capped importance weight; constants. `None` gives weight 1.
    pub weights: Option<&'a [L::Compute]>,
}

impl<'a, L: Logit> JsdInput<'a, L> {
    /// Every token has weight 1.
    pub const fn new(logits: &'a [L], teacher_logits: &'a [L], vocab: usize) -> Self {
        Self { logits, teacher_logits, vocab, weights: None }
    }
}

/// How [`generalized_jsd`] compares student and teacher.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct JsdConfig<'a> {
    /// 0 forward KL, 1 reverse KL, between them the mixture; default 0.5.
    pub beta: f64,
    /// Both rows of logits are divided by this; positive, default 1.
    pub temperature: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for JsdConfig<'_> {
    fn default() -> Self {
        Self { beta: 0.5, temperature: 1.0, aggregate: Aggregate::default() }
    }
}

/// The generalized Jensen–Shannon divergence of student and teacher over the whole vocabulary. Returns the loss.
///
/// ```text
/// β = 0: D = KL(q‖p)      β = 1: D = KL(p‖q)      else m = (1 − β) p + β q,  D = β KL(q‖m) + (1 − β) KL(p‖m)
/// loss = Agg_t D_t      ∂loss/∂z_v = W_t (D'_v − p_v Σ_u D'_u) / τ      D' = −q,  p (ln p/q + 1),  (1 − β) p ln p/m
/// ```
///
/// p, q: soft-max of student and teacher at temperature τ. The gradient, written into `grad_logits`, is p − q over τ at
/// β = 0, and its rows add up to 0 at every β. An entry with probability 0 under both contributes 0.
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Rows of dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch` and `vocab`;
/// [`Error::Config`](crate::Error::Config) if `vocab` is 0, τ not positive or β outside `[0, 1]`;
/// [`Error::Overflow`](crate::Error::Overflow) if `tokens × vocab` does not fit into a machine word; the errors of
/// [`aggregate`](crate::loss::aggregate).
///
/// **Reference.** Agarwal et al. 2024 (GKD), arXiv:2306.13649, eq. 1, where β is the student's weight in the mixture;
/// with β as here: TRL 1.16 `generalized_jsd_loss`, whose `batchmean` is the token mean, and `full_logits` of SDFT.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let input = JsdInput::new(
///     &[0.0, 0.0, f64::NAN, f64::NAN],
///     &[0.0, f64::NEG_INFINITY, f64::NAN, f64::NAN],
///     2,
/// );
/// let mut grad_logits = [9.0; 4];
/// let loss = generalized_jsd(&batch, input, &JsdConfig { beta: 0.0, ..Default::default() }, &mut grad_logits)?;
/// assert_eq!((loss, grad_logits), (math::ln(2.0), [-0.5, 0.5, 0.0, 0.0]));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn generalized_jsd<L: Logit>(
    batch: &Batch<'_>,
    input: JsdInput<'_, L>,
    config: &JsdConfig<'_>,
    grad_logits: &mut [L::Compute],
) -> Result<f64> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_logits(batch, "teacher_logits", input.teacher_logits, input.vocab, config.temperature)?;
    if let Some(weights) = input.weights {
        check_len("weights", weights, batch.tokens())?;
    }
    check_len("grad_logits", grad_logits, input.logits.len())?;
    check_unit("beta", config.beta)?;
    let plan = config.aggregate.plan(batch)?;
    Ok(walk(batch, input, L::Compute::narrow(config.beta), scale, &plan, grad_logits))
}

/// Both soft-max rows of one token.
struct Pair<R> {
    student: VocabRow<R>,
    teacher: VocabRow<R>,
    /// ln of the student's sum minus ln of the teacher's
    log_sums: R,
    inverse_sums: [R; 2],
    beta: R,
}

impl<R: Real> Pair<R> {
    #[inline(always)]
    fn read<L: Logit<Compute = R>>(logits: &[L], teacher_logits: &[L], scale: R, beta: R) -> Self {
        let (student, teacher) = (VocabRow::read(logits, scale), VocabRow::read(teacher_logits, scale));
        let log_sums = R::narrow(student.log_sum() - teacher.log_sum());
        let inverse_sums = [R::narrow(1.0 / student.sum), R::narrow(1.0 / teacher.sum)];
        Self { student, teacher, log_sums, inverse_sums, beta }
    }

    /// p, the entry's term of the divergence, and the derivative of that term with respect to ln p.
    #[inline(always)]
    fn entry(&self, [z, w]: [R; 2]) -> (R, R, R) {
        let (distance, teacher_distance) = (z - self.student.max, w - self.teacher.max);
        let p = exp(distance) * self.inverse_sums[0];
        let q = exp(teacher_distance) * self.inverse_sums[1];
        let (part, slope) = jsd_entry(p, q, distance - teacher_distance - self.log_sums, self.beta);
        // −inf in both rows makes the ratio NaN, but the entry contributes 0
        let absent = (p == R::zero()) & (q == R::zero());
        if absent {
            (p, R::zero(), R::zero())
        } else {
            (p, part, slope)
        }
    }
}

impl<R: Real> Terms<R, 2, 2> for Pair<R> {
    #[inline(always)]
    fn of(&self, z: [R; 2]) -> [R; 2] {
        let (_, part, slope) = self.entry(z);
        [part, slope]
    }
}

#[multiversion]
fn walk<L: Logit>(
    batch: &Batch<'_>,
    input: JsdInput<'_, L>,
    beta: L::Compute,
    scale: L::Compute,
    plan: &Plan<'_>,
    grad: &mut [L::Compute],
) -> f64 {
    let vocab = input.vocab;
    let mut loss = Sum::default();
    let (mut block, mut other) = (Block::<_, BLOCK>::new(), Block::<_, BLOCK>::new());
    for (row, weight) in plan.rows(batch) {
        let mut total = Sum::default();
        for t in 0..row.keep.len() {
            let slot = row.start + t;
            let entries = slot * vocab..(slot + 1) * vocab;
            let grad = &mut grad[entries.clone()];
            if !row.keep[t] {
                grad.fill(L::Compute::zero());
                continue;
            }
            let (logits, teacher_logits) = (&input.logits[entries.clone()], &input.teacher_logits[entries]);
            let pair = Pair::read(logits, teacher_logits, scale, beta);
            let (mut divergence, mut slopes) = (Sum::default(), Sum::default());
            for (logits, teacher_logits) in logits.chunks(BLOCK).zip(teacher_logits.chunks(BLOCK)) {
                block.load(logits, scale);
                other.load(teacher_logits, scale);
                let [part, slope] = block_sums([block.view(), other.view()], &pair);
                divergence.add(part);
                slopes.add(slope);
            }
            let omega = input.weights.map_or(1.0, |weights| weights[slot].widen());
            total.add(omega * divergence.value());
            let pull = L::Compute::narrow(slopes.value());
            let g = L::Compute::narrow(omega * weight) * scale;
            for ((grad, &z), &w) in grad.iter_mut().zip(logits).zip(teacher_logits) {
                let (p, _, slope) = pair.entry([z.load() * scale, w.load() * scale]);
                *grad = g * (slope - p * pull);
            }
        }
        loss.add(weight * total.value());
    }
    loss.value()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        layout::{Layout, Mask},
        math::ln,
    };

    #[test]
    fn an_entry_that_one_of_both_excludes_counts_for_the_other() {
        let batch = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let (even, sure) = ([0.0, 0.0], [0.0, f64::NEG_INFINITY]);
        // the mixture is ¾, ¼
        let expected = 0.5 * ln(4.0 / 3.0) + 0.25 * ln(2.0 / 3.0) + 0.25 * ln(2.0);
        for (student, teacher) in [(even, sure), (sure, even)] {
            let input = JsdInput::new(&student, &teacher, 2);
            let loss = generalized_jsd(&batch, input, &JsdConfig::default(), &mut [9.0; 2]).unwrap();
            assert!(approx::relative_eq!(loss, expected, max_relative = 1e-15), "{loss} {expected}");
        }
    }
}
