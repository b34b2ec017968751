//! Shared by the losses over a few entries per token. Rows are short, so everything is computed in `f64`.

use crate::{
    error::{check_config, check_len, checked_size, Result},
    layout::Batch,
    math::{exp, ln},
    real::Real,
    reduce::Sum,
};

/// The length of slices with `k` entries per token.
pub(super) fn check_k(batch: &Batch<'_>, k: usize) -> Result<usize> {
    check_config("k", "at least 1", k as f64, k > 0)?;
    checked_size("tokens × k", batch.tokens(), k)
}

/// Both rows of log-probabilities.
pub(super) fn check_rows<R>(batch: &Batch<'_>, k: usize, log_probs: &[R], teacher_log_probs: &[R]) -> Result<usize> {
    let len = check_k(batch, k)?;
    check_len("log_probs", log_probs, len)?;
    check_len("teacher_log_probs", teacher_log_probs, len)?;
    Ok(len)
}

/// Σ of a function of the entries of two rows, in order.
#[inline]
pub(super) fn sum<R: Real>(student: &[R], teacher: &[R], term: impl Fn(f64, f64) -> f64) -> f64 {
    let mut sum = Sum::default();
    for (s, t) in student.iter().zip(teacher) {
        sum.add(term(s.widen(), t.widen()));
    }
    sum.value()
}

/// ln Σ e^x of a row; −inf for a row of zero probability.
pub(super) fn log_sum<R: Real>(row: &[R]) -> f64 {
    let max = row.iter().fold(f64::NEG_INFINITY, |max, x| if x.widen() > max { x.widen() } else { max });
    // without a finite maximum the differences would be NaN; NaN entries must stay NaN
    let max = if max.is_finite() { max } else { 0.0 };
    max + ln(sum(row, row, |x, _| exp(x - max)))
}

/// `p · x`, where `0 · ±inf` is 0.
#[inline(always)]
pub(super) fn weighted<R: Real>(p: R, x: R) -> R {
    if p == R::zero() {
        R::zero()
    } else {
        p * x
    }
}

/// One entry's term of the generalized Jensen–Shannon divergence, and its derivative with respect to the student's
/// log-probability.
///
/// `log_ratio` is ln p − ln q, student minus teacher; β = 0 and β = 1 are the two KL divergences.
#[inline(always)]
pub(super) fn jsd_entry<R: Real>(p: R, q: R, log_ratio: R, beta: R) -> (R, R) {
    if beta == R::zero() {
        return (weighted(q, -log_ratio), -q);
    }
    if beta == R::one() {
        let part = weighted(p, log_ratio);
        return (part, part + p);
    }
    // ln m relative to the larger of the two, so that nothing overflows and equal rows give exactly 0
    let rest = R::one() - beta;
    let (student, teacher) = if log_ratio > R::zero() {
        let mixed = ln(rest + beta * exp(-log_ratio));
        (-mixed, -log_ratio - mixed)
    } else {
        let mixed = ln(beta + rest * exp(log_ratio));
        (log_ratio - mixed, -mixed)
    };
    let slope = rest * weighted(p, student);
    (beta * weighted(q, teacher) + slope, slope)
}
