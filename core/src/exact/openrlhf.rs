use super::{
    aggregated::{self, Totals},
    limbs,
    partial::{given, state, Partial as _},
    row::{add_each, add_sums, again, each_row, Due},
    sum::mean,
};
use crate::{
    divergence::KlConfig,
    error::Result,
    layout::Batch,
    metric::{
        check_openrlhf, deviations_of_prompts, kl_and_difference, span, KlUse, OpenRlhfConfig, OpenRlhfInput,
        OpenRlhfMetrics,
    },
    real::Real,
    simd::multiversion,
    statistics::Moments,
};

state! {
    /// The sums behind the keys that OpenRLHF logs for a batch, not rounded.
    ///
    /// Of the keys of [`openrlhf_metrics`](crate::metric::openrlhf_metrics) it has those that are about tokens and
    /// sequences. What the losses and the gate returned is not among them. The sequences of a prompt are in one batch:
    /// `group_reward_std` is about whole groups.
    ExactOpenRlhf, kind: 8,
    pieces: [
        Count TOKENS, Count SEQUENCES, Count KEPT_SEQUENCES,
        Count HAS_KL, Count HAS_ENTROPIES, Count HAS_REWARDS, Count HAS_PREDICTIONS, Count HAS_SCORES, Count HAS_GROUPS,
        Count HAS_LENGTHS, Count HAS_TRUNCATED,
        Count SPANS, Count TOTAL_TOKENS, Count CLIPPED, Count TRUNCATED,
        Sum KL, Sum DIFFERENCES, Sum KL_MEANS, Sum DIFFERENCE_MEANS,
        Sum ENTROPIES, Sum RETURNS, Sum VALUES, Sum SCORES, Sum DEVIATIONS,
    ],
    peaks: 0
}

impl ExactOpenRlhf {
    /// Adds a batch. All batches of a state have the same inputs and the same config; `scratch` has
    /// [`openrlhf_scratch_len`](crate::metric::openrlhf_scratch_len) entries.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if a slice or the groups do not fit;
    /// [`Error::Config`](crate::Error::Config) if entropies and KL are aggregated by prompts. An empty mask is not an
    /// error.
    pub fn update<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: &OpenRlhfInput<'_, R>,
        config: &OpenRlhfConfig<'_>,
        scratch: &mut [Moments],
    ) -> Result<()> {
        check_openrlhf(batch, input, scratch)?;
        aggregated::check(&config.aggregate)?;
        self.add_count(Self::TOKENS, batch.kept());
        self.add_count(Self::SEQUENCES, batch.sequences());
        self.add_count(Self::KEPT_SEQUENCES, batch.kept_sequences());
        for row in batch.token_rows() {
            self.add_count(Self::SPANS, span(&row));
        }
        for (has, sum, slice) in [
            (Self::HAS_REWARDS, Self::RETURNS, input.rewards),
            (Self::HAS_PREDICTIONS, Self::VALUES, input.predictions),
        ] {
            if let Some(slice) = slice {
                self.add_count(has, batch.sequences());
                add_sums(batch, slice, self.piece_mut(sum));
            }
        }
        if let Some(entropies) = input.entropies {
            self.add_count(Self::HAS_ENTROPIES, batch.sequences());
            aggregated::add(batch, entropies, &config.aggregate, self.piece_mut(Self::ENTROPIES));
        }
        if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
            self.add_count(Self::HAS_KL, batch.sequences());
            add_kl(batch, [policy, reference], config, self.pieces_mut(Self::KL));
        }
        self.add_scores(batch, input, scratch);
        self.canonical();
        Ok(())
    }

    /// What has one number per sequence.
    fn add_scores<R: Real>(&mut self, batch: &Batch<'_>, input: &OpenRlhfInput<'_, R>, scratch: &mut [Moments]) {
        let sequences = batch.sequences();
        if let Some(scores) = input.scores {
            self.add_count(Self::HAS_SCORES, sequences);
            self.add_numbers(Self::SCORES, scores.iter().map(|score| score.widen()));
            if let Some(groups) = input.groups {
                self.add_count(Self::HAS_GROUPS, sequences);
                self.add_numbers(Self::DEVIATIONS, deviations_of_prompts(groups, scores, scratch));
            }
        }
        if let Some(lengths) = input.total_lengths {
            self.add_count(Self::HAS_LENGTHS, sequences);
            for &length in lengths.tokens {
                self.add_count(Self::TOTAL_TOKENS, length as usize);
                self.add_count(Self::CLIPPED, usize::from(length >= lengths.limit));
            }
        }
        if let Some(flags) = input.truncated {
            self.add_count(Self::HAS_TRUNCATED, sequences);
            self.add_count(Self::TRUNCATED, flags.iter().filter(|&&flag| flag).count());
        }
    }

    fn add_numbers(&mut self, index: usize, numbers: impl Iterator<Item = f64>) {
        let (sum, mut due) = (self.piece_mut(index), Due::default());
        for number in numbers {
            limbs::add(sum, 0, number, 1);
            due.carry([&mut *sum]);
        }
    }

    /// The metrics of all batches together, as [`openrlhf_metrics`](crate::metric::openrlhf_metrics) reports them for
    /// one; of `config` the use of the KL and the aggregation are read.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if some batches had an input and others had not.
    pub fn metrics(&self, config: &OpenRlhfConfig<'_>) -> Result<OpenRlhfMetrics> {
        let (tokens, sequences) = (self.count(Self::TOKENS), self.count(Self::SEQUENCES));
        let has = |what, index| given(what, self.count(index), sequences);
        let by_tokens = |index| mean(self.piece(index), tokens);
        let totals = Totals { tokens, sequences, kept_sequences: self.count(Self::KEPT_SEQUENCES) };
        let aggregate = |index| aggregated::value(self.piece(index), &config.aggregate, totals);
        let by_sequences = |index| mean(self.piece(index), sequences);
        let share = |index| self.count(index) as f64 / sequences as f64;
        let mut found = OpenRlhfMetrics { response_length: share(Self::SPANS), ..Default::default() };
        if has("ref_log_probs", Self::HAS_KL)? {
            let (kl, difference) = match config.kl_use {
                KlUse::Reward => (by_sequences(Self::KL_MEANS), by_sequences(Self::DIFFERENCE_MEANS)),
                KlUse::Loss => (aggregate(Self::KL), by_tokens(Self::DIFFERENCES)),
            };
            (found.kl, found.logprobs_diff) = (Some(kl), Some(difference));
        }
        found.entropy_loss = has("entropies", Self::HAS_ENTROPIES)?.then(|| aggregate(Self::ENTROPIES));
        found.episode_return = has("rewards", Self::HAS_REWARDS)?.then(|| by_sequences(Self::RETURNS));
        found.values = has("predictions", Self::HAS_PREDICTIONS)?.then(|| by_tokens(Self::VALUES));
        found.reward = has("scores", Self::HAS_SCORES)?.then(|| by_sequences(Self::SCORES));
        found.group_reward_std = has("groups", Self::HAS_GROUPS)?.then(|| by_sequences(Self::DEVIATIONS));
        if has("total_lengths", Self::HAS_LENGTHS)? {
            found.total_length = Some(share(Self::TOTAL_TOKENS));
            found.response_clip_ratio = Some(share(Self::CLIPPED));
        }
        found.truncated = has("truncated", Self::HAS_TRUNCATED)?.then(|| share(Self::TRUNCATED));
        Ok(found)
    }
}

/// Adds the KL and the difference of log-probabilities: of tokens, and the means of sequences.
fn add_kl<R: Real>(batch: &Batch<'_>, inputs: [&[R]; 2], config: &OpenRlhfConfig<'_>, sums: [&mut [i64]; 4]) {
    let mut sums = sums;
    let mut due = Due::default();
    each_row::<R, _>(
        batch,
        |part, report| kl_rows(&part.batch, inputs.map(|input| part.of(input)), &config.kl, report),
        |row, [kl, difference]| {
            // not a number without kept tokens, as in the plain function
            let kept = row.kept() as f64;
            let in_loss = kl / aggregated::share(&config.aggregate, row.kept());
            add_each(again(&mut sums), [in_loss, difference, kl / kept, difference / kept]);
            due.carry(again(&mut sums));
        },
    );
}

#[multiversion]
fn kl_rows<R: Real>(batch: &Batch<'_>, inputs: [&[R]; 2], config: &KlConfig, report: &mut dyn FnMut([f64; 2])) {
    for row in batch.rows() {
        report(kl_and_difference(&row, inputs, config));
    }
}
