use super::{
    limbs,
    moments::deviations,
    partial::{self, given, number, state, Partial as _},
    row::{add_each, again, each_row, Due},
    sum::mean,
};
use crate::{
    error::{check_len, Result},
    layout::Batch,
    loss::Clip,
    metric::{
        check_trl, clipped_ratios, deviation, group_moments, is_flat, reward_of, trl_row, trl_scratch_len, ClipRatios,
        CompletionLengths, Numbers, SamplingMetrics, Summary, TrlConfig, TrlInput, TrlMetrics, TrlRewardMetrics,
        TrlRewards, TrlRow, TrlScale,
    },
    parallel::Part,
    real::Real,
    simd::multiversion,
    statistics::Moments,
};

state! {
    /// The sums and extremes behind the keys that TRL logs for a batch, not rounded.
    ///
    /// Of the keys of [`trl_metrics`](crate::metric::trl_metrics) it has those that are about tokens and sequences.
    /// What the loss returned is not among them, nor are `rewards/{name}/…`: a state has a fixed size, so that each
    /// reward function has an [`ExactMoments`](super::ExactMoments) of its own. The completions of a prompt are in one
    /// batch: `frac_reward_zero_std` is about whole groups.
    ExactTrl, kind: 9,
    pieces: [
        Count TOKENS, Count SEQUENCES,
        Count HAS_LENGTHS, Count HAS_TRUNCATED, Count HAS_PROMPTS, Count HAS_REWARDS, Count HAS_KL, Count HAS_ENTROPIES,
        Count HAS_CLIP, Count HAS_SAMPLER, Count HAS_WEIGHTS,
        Count COMPLETION_TOKENS, Count PROMPT_TOKENS, Count TRUNCATED, Count WHOLE_TOKENS,
        Count GROUPS, Count FLAT, Count REWARDED,
        Count LOW, Count HIGH, Count UNITS, Count SCORED, Count WEIGHED,
        Sum KL, Sum ENTROPIES, Sum GAPS, Sum WEIGHTS, Sum REWARDS, Products SQUARES,
    ],
    peaks: 12
}

/// Where the largest and the negated smallest number of each are among the peaks.
mod peak {
    pub(super) const LENGTHS: usize = 0;
    pub(super) const WHOLE: usize = 2;
    pub(super) const GAPS: usize = 4;
    pub(super) const WEIGHTS: usize = 6;
    pub(super) const LOW: usize = 8;
    pub(super) const HIGH: usize = 10;
}

impl ExactTrl {
    /// Adds a batch. All batches of a state have the same inputs and the same config; `scratch` has
    /// [`trl_scratch_len`] entries. Of `input.loss` only the kind is read: it says whether there is a clip.
    ///
    /// # Errors
    ///
    /// Those of [`trl_metrics`](crate::metric::trl_metrics).
    pub fn update<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: &TrlInput<'_, R>,
        config: &TrlConfig,
        scratch: &mut [Moments],
    ) -> Result<()> {
        check_trl(batch, input, config)?;
        check_len("scratch", scratch, trl_scratch_len(input))?;
        let clip = Clip::new(config.clip_low, config.clip_high, config.dual_clip)?;
        self.add_count(Self::TOKENS, batch.kept());
        self.add_count(Self::SEQUENCES, batch.sequences());
        for (has, given) in [
            (Self::HAS_KL, input.log_probs.and(input.ref_log_probs).is_some()),
            (Self::HAS_ENTROPIES, input.entropies.is_some()),
            (Self::HAS_CLIP, clipped_ratios(input).is_some()),
            (Self::HAS_SAMPLER, input.old_log_probs.and(input.rollout_log_probs).is_some()),
            (Self::HAS_WEIGHTS, input.weights.is_some()),
        ] {
            self.add_count(has, if given { batch.sequences() } else { 0 });
        }
        self.add_tokens(batch, input, config, &clip);
        self.add_lengths(input);
        if let Some(rewards) = &input.rewards {
            self.add_rewards(rewards, scratch);
        }
        self.canonical();
        Ok(())
    }

    fn add_tokens<R: Real>(&mut self, batch: &Batch<'_>, input: &TrlInput<'_, R>, config: &TrlConfig, clip: &Clip<R>) {
        let mut counts = [0; 5];
        let mut peaks = self.peaks;
        let mut sums: [&mut [i64]; 4] = self.pieces_mut(Self::KL);
        let mut due = Due::default();
        each_row::<R, _>(
            batch,
            |part, report| rows(&part.batch, &of_part(input, part), config, clip, report),
            |_, TrlRow { kl, entropy, held: [low, high], units, gaps, weights }: TrlRow| {
                add_each(again(&mut sums), [kl, entropy, gaps.sum, weights.sum]);
                due.carry(again(&mut sums));
                let more = [low as usize, high as usize, units, gaps.count, weights.count];
                counts.iter_mut().zip(more).for_each(|(count, more)| *count += more);
                if units > 0 {
                    partial::peak(&mut peaks, peak::LOW, low / units as f64);
                    partial::peak(&mut peaks, peak::HIGH, high / units as f64);
                }
                for (first, Numbers { ends, .. }) in [(peak::GAPS, gaps), (peak::WEIGHTS, weights)] {
                    ends.into_iter().flatten().for_each(|x| partial::peak(&mut peaks, first, x));
                }
            },
        );
        self.peaks = peaks;
        for (index, count) in [Self::LOW, Self::HIGH, Self::UNITS, Self::SCORED, Self::WEIGHED].into_iter().zip(counts)
        {
            self.add_count(index, count);
        }
    }

    fn add_lengths<R>(&mut self, input: &TrlInput<'_, R>) {
        let Some(lengths) = input.completion_lengths else { return };
        self.add_count(Self::HAS_LENGTHS, lengths.len());
        for (sequence, &length) in lengths.iter().enumerate() {
            self.add_count(Self::COMPLETION_TOKENS, length as usize);
            partial::peak(&mut self.peaks, peak::LENGTHS, f64::from(length));
            match input.truncated {
                Some(flags) if flags[sequence] => self.add_count(Self::TRUNCATED, 1),
                Some(_) => {
                    self.add_count(Self::WHOLE_TOKENS, length as usize);
                    partial::peak(&mut self.peaks, peak::WHOLE, f64::from(length));
                }
                None => {}
            }
        }
        self.add_count(Self::HAS_TRUNCATED, input.truncated.map_or(0, <[bool]>::len));
        if let Some(prompts) = input.prompt_lengths {
            self.add_count(Self::HAS_PROMPTS, prompts.len());
            prompts.iter().for_each(|&length| self.add_count(Self::PROMPT_TOKENS, length as usize));
        }
    }

    fn add_rewards<R: Real>(&mut self, rewards: &TrlRewards<'_, R>, scratch: &mut [Moments]) {
        let sequences = rewards.groups.sequences();
        group_moments(rewards, scratch);
        self.add_count(Self::HAS_REWARDS, sequences);
        self.add_count(Self::GROUPS, rewards.groups.count());
        self.add_count(Self::FLAT, rewards.groups.ids().filter(|&group| is_flat(&scratch[group])).count());
        let mut due = Due::default();
        for reward in (0..sequences).map(|sequence| reward_of(rewards, sequence)).filter(|reward| !reward.is_nan()) {
            self.add_count(Self::REWARDED, 1);
            let [sum, squares] = self.pieces_mut(Self::REWARDS);
            limbs::add(sum, 0, reward, 1);
            limbs::add_product(squares, [reward, reward], 1);
            due.carry([sum, squares]);
        }
    }

    /// The metrics of all batches together, as [`trl_metrics`](crate::metric::trl_metrics) reports them for one; of
    /// `config` the scale, the entropy coefficient and the tokens seen before are read.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if some batches had an input and others had not.
    pub fn metrics(&self, config: &TrlConfig) -> Result<TrlMetrics<'static>> {
        let sequences = self.count(Self::SEQUENCES);
        let has = |what, index| given(what, self.count(index), sequences);
        let by_tokens = |index| or_zero(mean(self.piece(index), self.count(Self::TOKENS)), self.count(Self::TOKENS));
        let mut found = TrlMetrics { entropy_coef: config.entropy_coefficient, ..Default::default() };
        if has("completion_lengths", Self::HAS_LENGTHS)? {
            found.completions = Some(self.lengths(has("truncated", Self::HAS_TRUNCATED)?));
            let tokens = self.count(Self::COMPLETION_TOKENS) + self.count(Self::PROMPT_TOKENS);
            let all = config.tokens_seen.saturating_add(tokens) as f64;
            found.num_tokens = has("prompt_lengths", Self::HAS_PROMPTS)?.then_some(all);
        }
        found.rewards = has("rewards", Self::HAS_REWARDS)?.then(|| self.rewards(config.scale));
        found.kl = has("ref_log_probs", Self::HAS_KL)?.then(|| by_tokens(Self::KL));
        found.entropy = has("entropies", Self::HAS_ENTROPIES)?.then(|| by_tokens(Self::ENTROPIES));
        found.clip_ratio = has("advantages", Self::HAS_CLIP)?.then(|| self.clip_ratios());
        if has("rollout_log_probs", Self::HAS_SAMPLER)? {
            let gaps = self.summary(Self::GAPS, Self::SCORED, peak::GAPS);
            found.sampling = Some(SamplingMetrics { mean: gaps.mean, max: gaps.max });
        }
        if has("weights", Self::HAS_WEIGHTS)? {
            found.importance_sampling_ratio = Some(self.summary(Self::WEIGHTS, Self::WEIGHED, peak::WEIGHTS));
        }
        Ok(found)
    }

    /// Mean and extremes; 0 if there are no numbers.
    fn summary(&self, sum: usize, count: usize, first: usize) -> Summary {
        let count = self.count(count);
        self.extremes(mean(self.piece(sum), count), count, first)
    }

    fn extremes(&self, mean: f64, count: u64, first: usize) -> Summary {
        let [max, min] = [number(self.peaks[first]), -number(self.peaks[first + 1])];
        Summary { mean: or_zero(mean, count), max: or_zero(max, count), min: or_zero(min, count) }
    }

    fn lengths(&self, flagged: bool) -> CompletionLengths {
        let (sequences, truncated) = (self.count(Self::SEQUENCES), self.count(Self::TRUNCATED));
        let whole = sequences - truncated.min(sequences);
        let share = |count: u64, of: u64| count as f64 / of as f64;
        let terminated = share(self.count(Self::WHOLE_TOKENS), whole);
        CompletionLengths {
            all: self.extremes(share(self.count(Self::COMPLETION_TOKENS), sequences), sequences, peak::LENGTHS),
            clipped_ratio: flagged.then(|| share(truncated, sequences)),
            terminated: flagged.then(|| self.extremes(terminated, whole, peak::WHOLE)),
        }
    }

    fn rewards(&self, scale: TrlScale) -> TrlRewardMetrics {
        let (sequences, count) = (self.count(Self::SEQUENCES), self.count(Self::REWARDED));
        let [sum, squares] = [Self::REWARDS, Self::SQUARES].map(|index| self.piece(index));
        let mut all = Moments::default();
        if count > 0 {
            all = Moments { count, mean: mean(sum, count), m2: deviations(count, squares, sum, sum) };
        }
        let flat = match scale {
            TrlScale::Group if self.count(Self::GROUPS) == sequences => sequences,
            TrlScale::Group => self.count(Self::FLAT),
            TrlScale::Batch if sequences == 1 || is_flat(&all) => sequences,
            TrlScale::Batch => 0,
        };
        TrlRewardMetrics {
            reward: mean(sum, count),
            reward_std: deviation(&all),
            frac_reward_zero_std: flat as f64 / sequences as f64,
        }
    }

    fn clip_ratios(&self) -> ClipRatios {
        let units = self.count(Self::UNITS);
        let [low_mean, high_mean] =
            [Self::LOW, Self::HIGH].map(|index| or_zero(self.count(index) as f64 / units as f64, units));
        ClipRatios {
            low_mean,
            high_mean,
            region_mean: low_mean + high_mean,
            low_min: -number(self.peaks[peak::LOW + 1]),
            high_max: number(self.peaks[peak::HIGH]),
        }
    }
}

fn or_zero(x: f64, count: u64) -> f64 {
    if count == 0 {
        0.0
    } else {
        x
    }
}

/// The token columns of some sequences.
fn of_part<'a, R>(input: &TrlInput<'a, R>, part: &Part<'_>) -> TrlInput<'a, R> {
    let of = |slice: Option<&'a [R]>| slice.map(|slice| part.of(slice));
    TrlInput {
        log_probs: of(input.log_probs),
        old_log_probs: of(input.old_log_probs),
        ref_log_probs: of(input.ref_log_probs),
        rollout_log_probs: of(input.rollout_log_probs),
        weights: of(input.weights),
        advantages: of(input.advantages),
        entropies: of(input.entropies),
        loss: input.loss,
        ..Default::default()
    }
}

#[multiversion]
fn rows<R: Real>(
    batch: &Batch<'_>,
    input: &TrlInput<'_, R>,
    config: &TrlConfig,
    clip: &Clip<R>,
    report: &mut dyn FnMut(TrlRow),
) {
    for row in batch.rows() {
        report(trl_row(&row, input, config, clip));
    }
}
