use super::{
    partial::{state, Partial as _},
    row::{add_each, again, each_row, Due},
    sum::mean_by,
};
use crate::{
    divergence::KlInput,
    error::{check_len, Error, Result},
    layout::Batch,
    loss::Clip,
    metric::{held_of_row, kl_of_rows, ClipConfig, ClipFractions, KlMeans, RatioInput},
    real::Real,
    simd::multiversion,
    statistics::MeanConfig,
};

state! {
    /// The sums of every KL estimate, not rounded.
    ExactKl, kind: 5, pieces: [Count TOKENS, Sum K1, Sum ABS, Sum K2, Sum K3], peaks: 0
}

impl ExactKl {
    /// Adds the kept tokens of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`. An empty mask is not an error.
    pub fn update<R: Real>(&mut self, batch: &Batch<'_>, input: KlInput<'_, R>) -> Result<()> {
        check_len("log_probs", input.log_probs, batch.tokens())?;
        check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
        self.add_count(Self::TOKENS, batch.kept());
        add_kl(batch, input, self.pieces_mut(Self::K1));
        self.canonical();
        Ok(())
    }

    /// The result of [`kl_means`](crate::metric::kl_means) for all batches together.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no token was added.
    pub fn means(&self, config: &MeanConfig) -> Result<KlMeans> {
        let count = self.count(Self::TOKENS);
        if count == 0 {
            return Err(Error::EmptyMask);
        }
        let [k1, abs, k2, k3] =
            [Self::K1, Self::ABS, Self::K2, Self::K3].map(|index| mean_by(self.piece(index), count, config));
        Ok(KlMeans { k1, abs, k2, k3 })
    }
}

fn add_kl<R: Real>(batch: &Batch<'_>, input: KlInput<'_, R>, sums: [&mut [i64]; 4]) {
    let mut sums = sums;
    let mut due = Due::default();
    each_row::<R, _>(
        batch,
        |part, report| {
            let (log_probs, ref_log_probs) = (part.of(input.log_probs), part.of(input.ref_log_probs));
            kl_of_rows(&part.batch, KlInput { log_probs, ref_log_probs }, report);
        },
        |_, estimates| {
            add_each(again(&mut sums), estimates);
            due.carry(again(&mut sums));
        },
    );
}

state! {
    /// How many tokens the clip holds, on which side, and of how many.
    ExactClip, kind: 6, pieces: [Count TOKENS, Count LOW, Count HIGH, Count DUAL], peaks: 0
}

impl ExactClip {
    /// Adds the kept tokens of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] as for
    /// [`ppo_clip`](crate::loss::ppo_clip). An empty mask is not an error.
    pub fn update<R: Real>(&mut self, batch: &Batch<'_>, input: RatioInput<'_, R>, config: &ClipConfig) -> Result<()> {
        check_len("log_probs", input.log_probs, batch.tokens())?;
        check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
        check_len("advantages", input.advantages, batch.tokens())?;
        let clip = Clip::new(config.clip_low, config.clip_high, config.dual_clip)?;
        self.add_count(Self::TOKENS, batch.kept());
        for (index, held) in [Self::LOW, Self::HIGH, Self::DUAL].into_iter().zip(held(batch, input, &clip)) {
            self.add_count(index, held);
        }
        Ok(())
    }

    /// The result of [`clip_fractions`](crate::metric::clip_fractions) for all batches together; of `config` only the
    /// divisor is read.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if no token was added.
    pub fn fractions(&self, config: &ClipConfig) -> Result<ClipFractions> {
        let count = self.count(Self::TOKENS);
        if count == 0 {
            return Err(Error::EmptyMask);
        }
        let n = config.divisor.of(count as f64);
        let [low, high, dual] = [Self::LOW, Self::HIGH, Self::DUAL].map(|index| self.count(index) as f64 / n);
        Ok(ClipFractions { clipped: low + high, low, high, dual })
    }
}

#[multiversion]
fn held<R: Real>(batch: &Batch<'_>, input: RatioInput<'_, R>, clip: &Clip<R>) -> [usize; 3] {
    let mut counts = [0; 3];
    for row in batch.token_rows() {
        for (count, part) in counts.iter_mut().zip(held_of_row(&row, input, clip)) {
            *count += part as usize;
        }
    }
    counts
}
