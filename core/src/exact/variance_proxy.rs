use super::{
    partial::{state, Partial as _},
    row::{add_each, again, each_row, Due},
    sum::mean,
};
use crate::{
    error::{check_not_negative, Error, Result},
    layout::Batch,
    metric::{proxy_row, VarianceProxy, VarianceProxyConfig, VarianceProxyInput},
    real::Real,
    simd::multiversion,
    statistics::Divisor,
};

state! {
    /// The sums behind the proxies of gradient noise, not rounded.
    ExactVarianceProxy, kind: 13, pieces: [Count SEQUENCES, Sum POWER, Sum A_SQUARED, Sum W], peaks: 0
}

impl ExactVarianceProxy {
    /// Adds a batch. All batches of a state have the same divisor, and weights or none.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`.
    pub fn update<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: VarianceProxyInput<'_, R>,
        divisor: Divisor,
    ) -> Result<()> {
        input.check(batch)?;
        self.add_count(Self::SEQUENCES, batch.sequences());
        let mut sums: [&mut [i64]; 3] = self.pieces_mut(Self::POWER);
        let mut due = Due::default();
        each_row::<R, _>(
            batch,
            |part, report| {
                let input = VarianceProxyInput {
                    old_log_probs: part.of(input.old_log_probs),
                    sum_pi_squared: part.of(input.sum_pi_squared),
                    advantages: part.of(input.advantages),
                    weights: input.weights.map(|weights| part.of(weights)),
                };
                proxy_rows(&part.batch, input, divisor, report);
            },
            |_, terms: [f64; 3]| {
                add_each(again(&mut sums), terms);
                due.carry(again(&mut sums));
            },
        );
        self.canonical();
        Ok(())
    }

    /// The result of [`variance_proxy`](crate::metric::variance_proxy) for all batches together; of `config` only the
    /// norm is read, which is that of the gradient of all of them.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if the norm is negative or not finite; [`Error::EmptyMask`] if no sequence was added.
    pub fn proxy(&self, config: &VarianceProxyConfig) -> Result<VarianceProxy> {
        check_not_negative::<f64>("gradient_norm", config.gradient_norm)?;
        let sequences = self.count(Self::SEQUENCES);
        if sequences == 0 {
            return Err(Error::EmptyMask);
        }
        let means = [Self::POWER, Self::A_SQUARED, Self::W].map(|index| mean(self.piece(index), sequences));
        Ok(VarianceProxy::of(means, config.gradient_norm, sequences))
    }
}

#[multiversion]
fn proxy_rows<R: Real>(
    batch: &Batch<'_>,
    input: VarianceProxyInput<'_, R>,
    divisor: Divisor,
    report: &mut dyn FnMut([f64; 3]),
) {
    for row in batch.token_rows() {
        let kept = row.last_kept().is_some();
        report(if kept { proxy_row(&row, input, divisor) } else { [0.0; 3] });
    }
}
