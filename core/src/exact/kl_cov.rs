use super::{selection::before_rank, ExactCoMoments, Selection};
use crate::{
    error::{check_len, check_unit, Result},
    layout::Batch,
    loss::{kl_cov_of, wanted, Center, Chosen, KlCovConfig, PolicyLoss, PolicyLossInput},
    real::Real,
};

/// [`kl_cov`](crate::loss::kl_cov) whose tokens are chosen among those of all ranks.
///
/// 1. Merge an [`ExactCoMoments`] of advantages (x) and log-probabilities (y), and make this of it.
/// 2. Each rank writes its [`Self::covariances`]; a [`Selection`] of [`KeyBits::Double`](super::KeyBits::Double) with
///    [`Self::rank`] finds the smallest that is chosen.
/// 3. The ranks exchange how many of their covariances equal it; [`Self::ties`] says how many of them each chooses.
/// 4. [`Self::loss`], with the settings of all ranks' counts in the aggregation.
///
/// Among equal covariances those of earlier ranks come first, so that ranks with consecutive sequences choose what one
/// process would.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct KlCov {
    count: u64,
    advantage: f64,
    log_prob: f64,
}

impl KlCov {
    /// From the merged moments of advantages (x) and log-probabilities (y).
    pub fn new(moments: &ExactCoMoments) -> Self {
        let found = moments.co_moments();
        Self { count: found.count, advantage: found.mean_x, log_prob: found.mean_y }
    }

    fn center(&self) -> Center {
        Center { advantage: self.advantage, log_prob: self.log_prob }
    }

    /// The covariance of each kept token of a rank, −inf where it is NaN; 0 in dropped slots.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
    pub fn covariances<R: Real>(
        &self,
        batch: &Batch<'_>,
        input: PolicyLossInput<'_, R>,
        out: &mut [f64],
    ) -> Result<()> {
        input.check(batch, input.log_probs)?;
        check_len("out", out, batch.tokens())?;
        for (slot, (out, &keep)) in out.iter_mut().zip(batch.mask().as_slice()).enumerate() {
            *out = if keep { self.center().covariance(&input, slot) } else { 0.0 };
            // NaN is never chosen; −0 becomes +0, which it equals but is not ordered like
            *out = if out.is_nan() { f64::NEG_INFINITY } else { *out + 0.0 };
        }
        Ok(())
    }

    /// How many covariances of all ranks are below the smallest that is chosen: the rank of the [`Selection`].
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if the ratio is outside `[0, 1]`.
    pub fn rank(&self, config: &KlCovConfig<'_>) -> Result<u64> {
        check_unit("ratio", config.ratio)?;
        let count = self.count as usize;
        Ok((count - wanted(config.ratio, count).min(count)) as u64)
    }

    /// How many of its covariances at the threshold a rank chooses: `equal` of each rank, in order, `index` the rank.
    pub fn ties(selection: &Selection, equal: &[u64], index: usize) -> u64 {
        let (before, all) = before_rank(equal, index);
        (all - selection.ties_before().min(all)).saturating_sub(before)
    }

    /// The loss of a rank; tokens above the threshold are chosen, and so many of those at it.
    ///
    /// # Errors
    ///
    /// Those of [`kl_cov`](crate::loss::kl_cov).
    pub fn loss<R: Real>(
        &self,
        batch: &Batch<'_>,
        input: PolicyLossInput<'_, R>,
        config: &KlCovConfig<'_>,
        (threshold, ties): (f64, u64),
        grad: &mut [R],
    ) -> Result<PolicyLoss> {
        let chosen = Chosen { center: self.center(), threshold, ties: ties as usize };
        kl_cov_of(batch, &input, config, chosen, grad)
    }
}
