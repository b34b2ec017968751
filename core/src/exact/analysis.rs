use super::{
    moments::co_moments,
    partial::{state, Partial as _},
    row::{add_each, add_products, again, each_row, Due, Two},
    sum::rounded,
};
use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    metric::{analysis_rows, entropies, Analysis, AnalysisInput},
    real::Real,
    reduce::fold_row,
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
        add(batch, input, self.pieces_mut(Self::X));
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

fn add<R: Real>(batch: &Batch<'_>, input: AnalysisInput<'_, R>, sums: [&mut [i64]; 8]) {
    let mut sums = sums;
    let mut due = Due::default();
    each_row::<R, _>(
        batch,
        |part, report| {
            let input = input.part(part);
            if size_of::<R>() == 4 {
                analysis_rows(&part.batch, input, &mut |(moments, [x, y, others @ ..])| {
                    report((Two::of_moments(&moments, [x, y]), others));
                });
            } else {
                rows(&part.batch, input, report);
            }
        },
        |row, (two, others)| {
            let [x, y, xx, yy, xy, entropy, wh, reward] = again(&mut sums);
            let inputs = [input.advantages, input.old_log_probs];
            two.add_to([x, y, xx, yy, xy], |limbs| add_products(row, inputs, |pair| pair, limbs));
            add_each([entropy, wh, reward], others);
            due.carry(again(&mut sums));
        },
    );
}

#[multiversion(avx512)]
fn rows<R: Real>(batch: &Batch<'_>, input: AnalysisInput<'_, R>, report: &mut dyn FnMut((Two, [f64; 3]))) {
    for row in batch.token_rows() {
        let inputs = [input.advantages, input.old_log_probs, input.rewards];
        let others = fold_row(&row, inputs, [], |[advantage, log_prob, reward]| {
            let [entropy, weighted] = entropies(advantage, log_prob);
            ([], [entropy, weighted, reward])
        });
        report((Two::of(&row, [input.advantages, input.old_log_probs], |pair| pair), others));
    }
}
