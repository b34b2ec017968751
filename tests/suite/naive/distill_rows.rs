//! Distillation losses over several entries of the vocabulary, or all.

use tokenwise::{
    loss::{
        Aggregate, ForwardKlTopK, ForwardKlTopKConfig, JsdConfig, MixedKlConfig, OutsideTopK, TopKJsdConfig,
        TopKOverlap, TopKRest,
    },
    Divisor,
};

use super::{distill::smallest_and_largest, loss::aggregate, policy::log_softmax, token_loss::mean_or_zero, Tokens};

/// Rows of `k` log-probabilities of student and teacher.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Rows<'a> {
    /// Of the student.
    pub(crate) student: &'a [f64],
    /// Of the teacher.
    pub(crate) teacher: &'a [f64],
    /// Entries per token.
    pub(crate) k: usize,
}

impl Rows<'_> {
    fn of(&self, slot: usize) -> (&[f64], &[f64]) {
        let entries = slot * self.k..(slot + 1) * self.k;
        (&self.student[entries.clone()], &self.teacher[entries])
    }

    /// Aggregates the losses of the tokens and weights their gradients.
    fn total(
        &self,
        tokens: Tokens<'_>,
        how: &Aggregate<'_>,
        omega: impl Fn(usize) -> f64,
        token: impl Fn(usize) -> (f64, Vec<f64>),
    ) -> (f64, Vec<f64>) {
        let losses = tokens.fill(|slot| omega(slot) * token(slot).0);
        let (loss, weights) = aggregate(tokens, &losses, how);
        let mut grad = vec![0.0; self.student.len()];
        for slot in tokens.kept() {
            for (j, slope) in token(slot).1.into_iter().enumerate() {
                grad[slot * self.k + j] = weights[slot] * omega(slot) * slope;
            }
        }
        (loss, grad)
    }
}

/// Forward KL over the teacher's likeliest tokens: result, the loss of each token, its gradient.
pub(crate) fn forward_kl_topk(
    tokens: Tokens<'_>,
    rows: Rows<'_>,
    ids: Option<[&[u32]; 2]>,
    config: &ForwardKlTopKConfig<'_>,
) -> (ForwardKlTopK, Vec<f64>, Vec<f64>) {
    let floor = config.log_prob_floor.unwrap_or(f64::NEG_INFINITY);
    let most = config.max_loss.unwrap_or(f64::INFINITY);
    let part = |s: f64, q: f64| q.max(floor).exp() * (q.max(floor) - s.max(floor));
    let whole = |slot: usize| {
        let (s, q) = rows.of(slot);
        s.iter().zip(q).map(|(&s, &q)| part(s, q)).sum::<f64>()
    };
    let (loss, grad) = rows.total(
        tokens,
        &config.aggregate,
        |_| 1.0,
        |slot| {
            let (s, q) = rows.of(slot);
            let inside = (0.0..=most).contains(&whole(slot));
            let slope = |(&s, &q): (&f64, &f64)| if inside && s >= floor { -q.max(floor).exp() } else { 0.0 };
            (whole(slot).max(0.0).min(most), s.iter().zip(q).map(slope).collect())
        },
    );
    let mass = |of: &dyn Fn(usize) -> f64| {
        let (min, max) = smallest_and_largest(tokens, of);
        [mean_or_zero(tokens, Divisor::Count, of), min, max]
    };
    let (loss_min, loss_max) = smallest_and_largest(tokens, |slot| whole(slot).max(0.0));
    let overlap = ids.map(|[teacher, student]| {
        let shared = |slot: usize| {
            let entries = slot * rows.k..(slot + 1) * rows.k;
            let (s, q) = rows.of(slot);
            let student = &student[entries.clone()];
            let both = teacher[entries].iter().enumerate().filter(|(_, id)| student.contains(id));
            both.map(|(j, _)| -part(s[j], q[j])).collect::<Vec<f64>>()
        };
        let means: Vec<f64> =
            tokens.kept().into_iter().map(shared).filter(|shared| !shared.is_empty()).map(mean).collect();
        let mut result = TopKOverlap::default();
        result.ratio = mean_or_zero(tokens, Divisor::Count, |slot| shared(slot).len() as f64 / rows.k as f64);
        result.token_advantage = if means.is_empty() { 0.0 } else { mean(means) };
        result
    });
    let mut result = ForwardKlTopK::default();
    result.loss = loss;
    result.loss_min = loss_min;
    result.loss_max = loss_max;
    result.student_mass = mass(&|slot| rows.of(slot).0.iter().map(|s| s.exp()).sum());
    result.teacher_mass = mass(&|slot| rows.of(slot).1.iter().map(|q| q.exp()).sum());
    result.overlap = overlap;
    (result, tokens.fill(|slot| whole(slot).max(0.0).min(most)), grad)
}

fn mean(numbers: Vec<f64>) -> f64 {
    numbers.iter().sum::<f64>() / numbers.len() as f64
}

/// The divergence of two whole distributions, and its derivative with respect to each of the student's
/// log-probabilities.
fn jsd(s: &[f64], t: &[f64], beta: f64) -> (f64, Vec<f64>) {
    let pairs = || s.iter().zip(t).map(|(&s, &t)| (s, t));
    let mixed = |s: f64, t: f64| ((1.0 - beta) * s.exp() + beta * t.exp()).ln();
    if beta == 0.0 {
        (pairs().map(|(s, t)| t.exp() * (t - s)).sum(), t.iter().map(|t| -t.exp()).collect())
    } else if beta == 1.0 {
        let part = |(s, t): (f64, f64)| s.exp() * (s - t);
        (pairs().map(part).sum(), pairs().map(|(s, t)| part((s, t)) + s.exp()).collect())
    } else {
        let to_teacher: f64 = pairs().map(|(s, t)| t.exp() * (t - mixed(s, t))).sum();
        let to_student: f64 = pairs().map(|(s, t)| s.exp() * (s - mixed(s, t))).sum();
        let slopes = pairs().map(|(s, t)| (1.0 - beta) * s.exp() * (s - mixed(s, t))).collect();
        (beta * to_teacher + (1.0 - beta) * to_student, slopes)
    }
}

/// The divergence over a few tokens and the rest.
pub(crate) fn topk_jsd(
    tokens: Tokens<'_>,
    rows: Rows<'_>,
    omega: Option<&[f64]>,
    config: &TopKJsdConfig<'_>,
) -> (f64, Vec<f64>) {
    let token = |slot: usize| {
        let (s, t) = rows.of(slot);
        match config.rest {
            TopKRest::Renormalize => {
                let (s, t) = (log_softmax(s, 1.0), log_softmax(t, 1.0));
                let (value, slopes) = jsd(&s, &t, config.beta);
                let total: f64 = slopes.iter().sum();
                (value, s.iter().zip(slopes).map(|(s, slope)| slope - s.exp() * total).collect())
            }
            TopKRest::Tail => {
                let tail = |row: &[f64]| {
                    let log_sum = row.iter().map(|x| x.exp()).sum::<f64>().ln();
                    (log_sum <= -1e-7, (-log_sum.min(-1e-7).exp_m1()).ln())
                };
                let ((moves, s_tail), (_, t_tail)) = (tail(s), tail(t));
                let (value, slopes) = jsd(&[s, &[s_tail]].concat(), &[t, &[t_tail]].concat(), config.beta);
                let by_tail = if moves { slopes[rows.k] / s_tail.exp() } else { 0.0 };
                (value, s.iter().zip(&slopes).map(|(s, slope)| slope - s.exp() * by_tail).collect())
            }
            _ => panic!("no textbook version of this variant"),
        }
    };
    rows.total(tokens, &config.aggregate, |slot| omega.map_or(1.0, |omega| omega[slot]), token)
}

/// Both KL divergences over the teacher's likeliest tokens: loss, gradient, gradient with respect to the entropy.
pub(crate) fn mixed_kl_topk(
    tokens: Tokens<'_>,
    rows: Rows<'_>,
    entropies: &[f64],
    config: &MixedKlConfig<'_>,
) -> (f64, Vec<f64>, Vec<f64>) {
    let (w, r) = (config.forward, 1.0 - config.forward);
    let token = |slot: usize| {
        let (s, t) = rows.of(slot);
        let t = log_softmax(t, 1.0);
        match config.outside {
            OutsideTopK::Renormalize => {
                let s = log_softmax(s, 1.0);
                let ((ahead, a), (back, b)) = (jsd(&s, &t, 0.0), jsd(&s, &t, 1.0));
                let slopes: Vec<f64> = a.iter().zip(b).map(|(a, b)| w * a + r * b).collect();
                let total: f64 = slopes.iter().sum();
                (w * ahead + r * back, s.iter().zip(slopes).map(|(s, slope)| slope - s.exp() * total).collect())
            }
            OutsideTopK::LogProb(c) => {
                let ((ahead, a), (back, b)) = (jsd(s, &t, 0.0), jsd(s, &t, 1.0));
                let inside: f64 = s.iter().map(|s| s.exp() * s).sum();
                let mass: f64 = s.iter().map(|s| s.exp()).sum();
                let rest = if r == 0.0 { 0.0 } else { r * (-entropies[slot] - inside - c * (1.0 - mass)) };
                let by_rest = |s: f64| r * (c * s.exp() - s.exp() * s - s.exp());
                let slope = |((a, b), s): ((&f64, &f64), &f64)| w * a + r * b + by_rest(*s);
                (w * ahead + r * back + rest, a.iter().zip(&b).zip(s).map(slope).collect())
            }
            _ => panic!("no textbook version of this variant"),
        }
    };
    let (loss, grad) = rows.total(tokens, &config.aggregate, |_| 1.0, token);
    let weights = aggregate(tokens, &vec![0.0; tokens.keep.len()], &config.aggregate).1;
    let by_entropy = if config.outside == OutsideTopK::Renormalize { 0.0 } else { -r };
    (loss, grad, tokens.fill(|slot| weights[slot] * by_entropy))
}

/// The divergence over the vocabulary; `rows` are logits.
pub(crate) fn generalized_jsd(
    tokens: Tokens<'_>,
    rows: Rows<'_>,
    omega: Option<&[f64]>,
    config: &JsdConfig<'_>,
) -> (f64, Vec<f64>) {
    let token = |slot: usize| {
        let (z, w) = rows.of(slot);
        let (s, t) = (log_softmax(z, config.temperature), log_softmax(w, config.temperature));
        let (value, slopes) = jsd(&s, &t, config.beta);
        let total: f64 = slopes.iter().sum();
        let by_logit = |(s, slope): (&f64, f64)| (slope - s.exp() * total) / config.temperature;
        (value, s.iter().zip(slopes).map(by_logit).collect())
    };
    rows.total(tokens, &config.aggregate, |slot| omega.map_or(1.0, |omega| omega[slot]), token)
}
