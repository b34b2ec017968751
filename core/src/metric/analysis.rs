use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    math::exp,
    parallel::{in_order, Part, Work},
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::{CoMoments, Spread},
};

/// What [`analysis`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct AnalysisInput<'a, R> {
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: &'a [R],
    /// Advantages.
    pub advantages: &'a [R],
    /// Token rewards.
    pub rewards: &'a [R],
}

impl<R> AnalysisInput<'_, R> {
    /// The inputs of a part of the batch.
    pub(crate) fn part(&self, part: &Part<'_>) -> Self {
        Self {
            old_log_probs: part.of(self.old_log_probs),
            advantages: part.of(self.advantages),
            rewards: part.of(self.rewards),
        }
    }
}

/// The sums behind the five `analysis/…` keys; shards are combined by [`Analysis::merge`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Analysis {
    /// Joint moments of advantages (x) and log-probabilities (y).
    pub moments: CoMoments,
    /// Σ H.
    pub entropy_sum: f64,
    /// Σ w H.
    pub wh_sum: f64,
    /// Σ of all token rewards.
    pub reward_sum: f64,
    /// Sequences, with or without kept tokens.
    pub sequences: u64,
}

impl Analysis {
    /// `analysis/entropy_per_token_mean`: mean of the self-information proxy `H = −p ln p`.
    pub fn entropy_per_token_mean(&self) -> f64 {
        self.entropy_sum / self.moments.count as f64
    }

    /// `analysis/covariance_mean`: mean of `(A − Ā)(log p − mean log p)`.
    pub fn covariance_mean(&self) -> f64 {
        self.moments.covariance(Spread::Population).unwrap_or(f64::NAN)
    }

    /// `analysis/wH_per_token`: the budget used, per kept token.
    pub fn wh_per_token(&self) -> f64 {
        self.wh_sum / self.moments.count as f64
    }

    /// `analysis/reward_sum_mean`: mean over sequences of their summed rewards.
    pub fn reward_sum_mean(&self) -> f64 {
        self.reward_sum / self.sequences as f64
    }

    /// The five keys as a trainer logs them.
    pub fn entries(&self) -> [(&'static str, f64); 5] {
        [
            ("analysis/entropy_per_token_mean", self.entropy_per_token_mean()),
            ("analysis/covariance_mean", self.covariance_mean()),
            ("analysis/wH_sum", self.wh_sum),
            ("analysis/wH_per_token", self.wh_per_token()),
            ("analysis/reward_sum_mean", self.reward_sum_mean()),
        ]
    }

    /// Combines the sums of two disjoint batches.
    pub fn merge(&mut self, other: &Self) {
        self.moments.merge(&other.moments);
        self.entropy_sum += other.entropy_sum;
        self.wh_sum += other.wh_sum;
        self.reward_sum += other.reward_sum;
        self.sequences += other.sequences;
    }
}

/// The five `analysis/…` numbers of a batch: entropy, covariance of advantage and log-probability, weighted entropy,
/// reward.
///
/// ```text
/// p = e^{log p}      H = −p log p      w = p (1 − p) |A|
/// entropy_per_token_mean = mean H      covariance_mean = mean (A − Ā)(log p − mean log p)
/// wH_sum = Σ w H      wH_per_token = wH_sum / N      reward_sum_mean = mean over sequences of Σ_t r
/// ```
///
/// H is the self-information proxy of the chosen token, not the entropy of the distribution; at p = 0 it is 0.
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read and not counted. Sequences without kept tokens count as reward 0.
///
/// **Errors.** [`Error::Length`] if a slice does not fit `batch`; [`Error::EmptyMask`] without kept tokens.
///
/// **Reference.** `docs/bnto.md` §2.
///
/// # Example
///
/// ```
/// use tokenwise::{metric::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let result = analysis(
///     &batch,
///     AnalysisInput {
///         old_log_probs: &[0.0, f64::NAN, 0.0],
///         advantages: &[1.0, f64::NAN, -1.0],
///         rewards: &[0.25, f64::NAN, 1.0],
///     },
/// )?;
/// assert_eq!(result.reward_sum_mean(), 1.25);
/// // certain tokens
/// assert_eq!((result.entropy_per_token_mean(), result.covariance_mean(), result.wh_sum), (0.0, 0.0, 0.0));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn analysis<R: Real>(batch: &Batch<'_>, input: AnalysisInput<'_, R>) -> Result<Analysis> {
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("advantages", input.advantages, batch.tokens())?;
    check_len("rewards", input.rewards, batch.tokens())?;
    if batch.kept() == 0 {
        return Err(Error::EmptyMask);
    }
    let (mut moments, mut totals) = (CoMoments::default(), [Sum::default(); 5]);
    in_order::<R, _, 0>(
        batch,
        Work::ONE,
        [],
        |part, [], report| analysis_rows(&part.batch, input.part(part), report),
        |(row, parts)| {
            moments.merge(&row);
            Sum::add_each(&mut totals, &parts);
        },
    );
    let [_, _, entropy_sum, wh_sum, reward_sum] = Sum::values(&totals);
    Ok(Analysis { moments, entropy_sum, wh_sum, reward_sum, sequences: batch.sequences() as u64 })
}

/// Each sequence is read twice while it is in the cache; the batch is traversed once.
#[multiversion(avx512)]
pub(crate) fn analysis_rows<R: Real>(
    batch: &Batch<'_>,
    input: AnalysisInput<'_, R>,
    report: &mut dyn FnMut((CoMoments, [f64; 5])),
) {
    for row in batch.token_rows() {
        let inputs = [input.advantages, input.old_log_probs, input.rewards];
        let parts = fold_row(&row, inputs, [], |[advantage, log_prob, reward]| {
            let [entropy, weighted] = entropies(advantage, log_prob);
            ([], [advantage, log_prob, entropy, weighted, reward])
        });
        report((CoMoments::of_row(&row, input.advantages, input.old_log_probs, parts[0], parts[1]), parts));
    }
}

/// `H` and `w H` of one token.
#[inline(always)]
pub(crate) fn entropies<R: Real>(advantage: R, log_prob: R) -> [R; 2] {
    let p = exp(log_prob);
    // 0 · −inf would be NaN
    let entropy = if p == R::zero() { R::zero() } else { -(p * log_prob) };
    let weight = p * (R::one() - p) * advantage.abs();
    [entropy, weight * entropy]
}
