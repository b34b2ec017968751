use crate::{
    error::{check_finite, check_len, Result},
    layout::{Batch, Row},
    math::sqrt,
    real::Real,
    reduce::{fold_row, map_row, Sum},
    simd::multiversion,
};

/// Keeps deviations, and the divisors of the means over a sequence, positive.
const EPSILON: f64 = 1e-6;

/// How far each advantage is from that of the token before it: a measure of structure that needs only one response.
///
/// ```text
/// C_t = |A_t − A_{t−1}|        0 at the first kept token
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0; `t − 1` is the previous kept token.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
///
/// **Reference.** BNTO, `docs/bnto.md` §3.4.
///
/// # Example
///
/// ```
/// use tokenwise::{weight::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
/// let mut out = [9.0; 4];
/// advantage_jump(&batch, &[1.0, 3.0, f64::NAN, 2.5], &mut out)?;
/// assert_eq!(out, [0.0, 2.0, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn advantage_jump<R: Real>(batch: &Batch<'_>, advantages: &[R], out: &mut [R]) -> Result<()> {
    check_len("advantages", advantages, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    for row in batch.token_rows() {
        let mut before = None;
        for ((out, &advantage), &keep) in row.of_mut(out).iter_mut().zip(row.of(advantages)).zip(row.keep) {
            *out = R::zero();
            if keep {
                *out = before.map_or(R::zero(), |before: R| (advantage - before).abs());
                before = Some(advantage);
            }
        }
    }
    Ok(())
}

/// What [`structural_weights`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct StructuralInput<'a, R> {
    /// Log-probabilities of the policy.
    pub log_probs: &'a [R],
    /// Advantages.
    pub advantages: &'a [R],
    /// Structural complexity of each token: [`advantage_jump`] or [`trie_complexity`](super::trie_complexity).
    pub complexity: &'a [R],
}

/// The tokens over which means and deviations are computed.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ScoreScope {
    /// The kept tokens of the batch.
    #[default]
    Batch,
    /// The kept tokens of the same sequence; every mean then divides by `n_i + 1e-6`.
    Sequence,
}

/// The factors of the terms of [`structural_weights`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct StructuralConfig {
    /// Factor c of the complexity; default 1.
    pub complexity: f64,
    /// Factor α of the surprisal; default 0.3.
    pub surprisal: f64,
    /// Factor β of the drift D, the centred surprisal times the advantage; default 0.2.
    pub drift: f64,
    /// Default [`ScoreScope::Batch`].
    pub scope: ScoreScope,
}

impl Default for StructuralConfig {
    fn default() -> Self {
        Self { complexity: 1.0, surprisal: 0.3, drift: 0.2, scope: ScoreScope::Batch }
    }
}

/// How important each token is for the structure of the response: never negative, a constant in every gradient.
///
/// ```text
/// S = −log π      D = A (S − mean S)      I = max(0, c z(C) + α z(S) + β z(D))
/// z(x) = clamp((x − μ) / (σ + 1e-6), ±3)      σ = √(mean (x − μ)² + 1e-6)
/// means over the batch or over the sequence
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if one of the three factors is not finite.
///
/// **Reference.** BNTO, `docs/bnto.md` §3.3; variances divide by n.
///
/// # Example
///
/// ```
/// use tokenwise::{weight::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = StructuralInput {
///     log_probs: &[-1.0, f64::NAN, -3.0],
///     advantages: &[1.0, f64::NAN, 1.0],
///     complexity: &[0.0, f64::NAN, 0.0],
/// };
/// let mut out = [9.0; 3];
/// structural_weights(
///     &batch,
///     input,
///     &StructuralConfig { surprisal: 0.5, drift: 0.0, ..Default::default() },
///     &mut out,
/// )?;
/// assert_eq!(out[..2], [0.0, 0.0]);                  // the first token is less surprising than the mean
/// approx::assert_abs_diff_eq!(out[2], 0.5, epsilon = 1e-5); // the last is one deviation above it
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn structural_weights<R: Real>(
    batch: &Batch<'_>,
    input: StructuralInput<'_, R>,
    config: &StructuralConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("advantages", input.advantages, batch.tokens())?;
    check_len("complexity", input.complexity, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_finite::<R>("complexity", config.complexity)?;
    check_finite::<R>("surprisal", config.surprisal)?;
    check_finite::<R>("drift", config.drift)?;
    weigh(batch, input, config, out);
    Ok(())
}

#[multiversion]
fn weigh<R: Real>(batch: &Batch<'_>, input: StructuralInput<'_, R>, config: &StructuralConfig, out: &mut [R]) {
    match config.scope {
        ScoreScope::Batch => {
            let scores = Scores::of(|| batch.token_rows(), input, batch.kept().max(1) as f64);
            for row in batch.token_rows() {
                scores.write(&row, input, config, out);
            }
        }
        ScoreScope::Sequence => {
            for row in batch.token_rows() {
                let scores = Scores::of(|| core::iter::once(row), input, row.kept() as f64 + EPSILON);
                scores.write(&row, input, config, out);
            }
        }
    }
}

/// The three quantities of a token.
#[inline(always)]
fn quantities<R: Real>([log_prob, advantage, complexity]: [R; 3], mean_surprisal: f64) -> [f64; 3] {
    let surprisal = -log_prob.widen();
    [complexity.widen(), surprisal, advantage.widen() * (surprisal - mean_surprisal)]
}

#[inline(always)]
fn means<'b, R: Real>(
    rows: impl Iterator<Item = Row<'b>>,
    inputs: [&[R]; 3],
    n: f64,
    term: impl Fn([R; 3]) -> [f64; 3],
) -> [f64; 3] {
    let mut sums = [Sum::default(); 3];
    for row in rows {
        for (sum, part) in sums.iter_mut().zip(fold_row(&row, inputs, [], |token| ([], term(token)))) {
            sum.add(part);
        }
    }
    Sum::means(&sums, n)
}

/// Means and scales of complexity, surprisal and drift.
struct Scores {
    mean: [f64; 3],
    scale: [f64; 3],
}

impl Scores {
    #[inline(always)]
    fn of<'b, R: Real, I: Iterator<Item = Row<'b>>>(
        rows: impl Fn() -> I,
        input: StructuralInput<'_, R>,
        n: f64,
    ) -> Self {
        let inputs = [input.log_probs, input.advantages, input.complexity];
        let [_, mean_surprisal, _] = means(rows(), inputs, n, |token| quantities(token, 0.0));
        let mean = means(rows(), inputs, n, |token| quantities(token, mean_surprisal));
        let variance = means(rows(), inputs, n, |token| {
            let [c, s, d] = quantities(token, mean_surprisal);
            [(c - mean[0]) * (c - mean[0]), (s - mean[1]) * (s - mean[1]), (d - mean[2]) * (d - mean[2])]
        });
        Self { mean, scale: variance.map(|variance| sqrt(variance + EPSILON) + EPSILON) }
    }

    #[inline(always)]
    fn write<R: Real>(&self, row: &Row<'_>, input: StructuralInput<'_, R>, config: &StructuralConfig, out: &mut [R]) {
        let inputs = [input.log_probs, input.advantages, input.complexity];
        map_row(row, inputs, out, |token| {
            let x = quantities(token, self.mean[1]);
            let z = |i: usize| {
                let z = (x[i] - self.mean[i]) / self.scale[i];
                let z = if z < -3.0 { -3.0 } else { z };
                if z > 3.0 {
                    3.0
                } else {
                    z
                }
            };
            let importance = config.complexity * z(0) + config.surprisal * z(1) + config.drift * z(2);
            R::narrow(if importance < 0.0 { 0.0 } else { importance })
        });
    }
}
