use super::{selection::before_rank, ExactCoMoments};
use crate::{
    error::{check_len, Result},
    layout::Batch,
    loss::{
        clip_of_selection, wanted, Candidates, Center, ClipCovConfig, ClipCovSelectionConfig, Draw, PolicyLossInput,
    },
    real::Real,
};

/// [`clip_cov_selection`](crate::loss::clip_cov_selection) among the tokens of all ranks.
///
/// 1. Merge an [`ExactCoMoments`] of advantages (x) and log-probabilities (y), and make this of it.
/// 2. The ranks exchange how many [`Self::candidates`] each has.
/// 3. [`Self::select`] draws on each rank, and [`clip_cov`](crate::loss::clip_cov) takes the selection, with the counts
///    of all ranks in its aggregation.
///
/// What a draw needs to know of earlier ones is how many candidates there were, so that each rank repeats those of the
/// ranks before it: ranks with consecutive sequences choose what one process would.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ClipCov {
    count: u64,
    advantage: f64,
    log_prob: f64,
}

impl ClipCov {
    /// From the merged moments of advantages (x) and log-probabilities (y).
    pub fn new(moments: &ExactCoMoments) -> Self {
        let found = moments.co_moments();
        Self { count: found.count, advantage: found.mean_x, log_prob: found.mean_y }
    }

    fn of<'a, R: Real>(&self, config: &ClipCovConfig<'a>) -> Result<Candidates<'a, R>> {
        let n = self.count as f64;
        let shrink = if self.count == 0 { 1.0 } else { n / config.divisor.of(n) };
        let center = Center { advantage: self.advantage * shrink, log_prob: self.log_prob * shrink };
        Ok(Candidates { clip: clip_of_selection(config)?, config: *config, center })
    }

    /// How many tokens of a rank may be chosen.
    ///
    /// # Errors
    ///
    /// Those of [`clip_cov_selection`](crate::loss::clip_cov_selection).
    pub fn candidates<R: Real>(
        &self,
        batch: &Batch<'_>,
        input: PolicyLossInput<'_, R>,
        config: &ClipCovConfig<'_>,
    ) -> Result<u64> {
        input.check(batch, input.log_probs)?;
        Ok(self.of(config)?.count(batch, &input) as u64)
    }

    /// Selects tokens of a rank: `candidates` of each rank, in order, `index` the rank. Returns how many were chosen.
    ///
    /// # Errors
    ///
    /// Those of [`clip_cov_selection`](crate::loss::clip_cov_selection).
    pub fn select<R: Real>(
        &self,
        batch: &Batch<'_>,
        input: PolicyLossInput<'_, R>,
        config: &ClipCovSelectionConfig<'_>,
        (candidates, index): (&[u64], usize),
        selected: &mut [bool],
    ) -> Result<usize> {
        input.check(batch, input.log_probs)?;
        check_len("selected", selected, batch.tokens())?;
        let of_rank = self.of(&config.clip)?;
        let wanted = wanted(config.clip.ratio, self.count as usize) as u64;
        let (before, all) = before_rank(candidates, index);
        let mut draw = Draw::new(config.seed, wanted, all);
        (0..before).for_each(|_| {
            draw.next();
        });
        Ok(of_rank.choose(batch, &input, draw, selected))
    }
}
