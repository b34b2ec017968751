use super::{
    block::{blocks_of_row, map_columns, Column, Due, PairSums},
    moments::co_moments,
    partial::{state, Partial as _},
    sum::rounded,
};
use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    math::exp,
    metric::{Analysis, AnalysisInput},
    real::Real,
    simd::multiversion,
};

state! {
    /// The sums behind the five `analysis/…` keys, not rounded.
    ExactAnalysis, kind: 4,
    pieces: [
        Count TOKENS, Count SEQUENCES, Sum X, Sum Y, Products XX, Products YY, Products XY, Sum ENTROPY, Sum WH,
        Sum REWARD,
    ],
    peaks: 0
}

impl ExactAnalysis {
    /// Adds the kept tokens of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`. An empty mask is not an error.
    pub fn update<R: Real>(&mut self, batch: &Batch<'_>, input: AnalysisInput<'_, R>) -> Result<()> {
        check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
        check_len("advantages", input.advantages, batch.tokens())?;
        check_len("rewards", input.rewards, batch.tokens())?;
        self.add_count(Self::TOKENS, batch.kept());
        self.add_count(Self::SEQUENCES, batch.sequences());
        let [x, y, xx, yy, xy, entropy, wh, reward] = self.pieces_mut(Self::X);
        add(batch, input, &mut PairSums { x, y, xx, yy, xy }, [entropy, wh, reward]);
        self.canonical();
        Ok(())
    }

    /// The sums, each rounded once: the result of [`analysis`](crate::metric::analysis) for all batches together.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no token was added.
    pub fn analysis(&self) -> Result<Analysis> {
        if self.count(Self::TOKENS) == 0 {
            return Err(Error::EmptyMask);
        }
        let [x, y, xx, yy, xy] = [Self::X, Self::Y, Self::XX, Self::YY, Self::XY].map(|index| self.piece(index));
        Ok(Analysis {
            moments: co_moments(self.count(Self::TOKENS), [x, y], [xx, yy, xy]),
            entropy_sum: rounded(self.piece(Self::ENTROPY)),
            wh_sum: rounded(self.piece(Self::WH)),
            reward_sum: rounded(self.piece(Self::REWARD)),
            sequences: self.count(Self::SEQUENCES),
        })
    }
}

#[multiversion(avx512)]
fn add<R: Real>(batch: &Batch<'_>, input: AnalysisInput<'_, R>, pairs: &mut PairSums<'_>, others: [&mut [i64]; 3]) {
    let [entropies, whs, rewards] = others;
    let mut columns = [Column::new(), Column::new(), Column::new()];
    let (mut entropy, mut wh) = (Column::new(), Column::new());
    let mut due = Due::default();
    for row in batch.token_rows() {
        let inputs = [input.advantages, input.old_log_probs, input.rewards];
        blocks_of_row(&row, inputs, &mut columns, |[advantage, log_prob, reward], keep| {
            // a dropped slot has advantage 0 and log-probability 0, p = 1, which add 0 to both sums
            map_columns(keep.len(), [advantage, log_prob], [&mut entropy, &mut wh], |[advantage, log_prob]| {
                let p = exp(log_prob);
                let h = if p == R::zero() { R::zero() } else { -(p * log_prob) };
                [h, p * (R::one() - p) * advantage.abs() * h]
            });
            entropy.measure(keep.len());
            wh.measure(keep.len());
            pairs.add(advantage, log_prob, keep.len());
            entropy.add_to(keep.len(), entropies);
            wh.add_to(keep.len(), whs);
            reward.add_to(keep.len(), rewards);
            due.carry([&mut *pairs.x, &mut *pairs.y, &mut *pairs.xx, &mut *pairs.yy, &mut *pairs.xy]);
            due.also([&mut *entropies, &mut *whs, &mut *rewards]);
        });
    }
}
