//! The numbers behind the keys, by the conventions of a profile. The one place that calls the formulas.

use std::collections::HashMap;

use tokenwise::{
    divergence::{kl_estimate, KlInput},
    loss::{aggregate, ppo_clip, AggregateMode, PolicyLoss, PolicyLossInput, PpoConfig},
    math::sqrt,
    metric::{
        analysis, clip_fractions, explained_variance, mean, row_sums, Analysis, AnalysisInput, ClipConfig,
        ClipFractions, ExplainedVarianceInput, Moments, RatioInput, Spread,
    },
    rollout::{rollout_mismatch, RolloutInput, RolloutMismatch},
    Batch, Divisor, Profile,
};

use crate::rollout::{Column, Rollouts};

/// The clip range of the policy loss.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clip {
    pub(crate) low: f64,
    pub(crate) high: f64,
}

/// Mean, largest and smallest of something.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Summary {
    pub(crate) mean: f64,
    pub(crate) max: f64,
    pub(crate) min: f64,
}

/// What a batch gives; `None` where the file lacks what is needed.
#[derive(Debug, Default)]
pub(crate) struct Found {
    pub(crate) scores: Option<Summary>,
    pub(crate) score_std: Option<f64>,
    pub(crate) group_std: Option<f64>,
    pub(crate) tied_groups: Option<f64>,
    pub(crate) rewards: Option<Summary>,
    pub(crate) advantages: Option<Summary>,
    pub(crate) returns: Option<Summary>,
    pub(crate) values: Option<Summary>,
    pub(crate) explained_variance: Option<f64>,
    pub(crate) lengths: Option<Summary>,
    pub(crate) terminated: Option<Summary>,
    pub(crate) truncated: Option<f64>,
    pub(crate) policy: Option<PolicyLoss>,
    pub(crate) clipped: Option<ClipFractions>,
    pub(crate) ref_kl: Option<f64>,
    pub(crate) entropy: Option<f64>,
    pub(crate) sampler: Option<Summary>,
    pub(crate) mismatch: Option<RolloutMismatch>,
    pub(crate) analysis: Option<Analysis>,
}

impl Found {
    pub(crate) fn of(rollouts: &Rollouts, profile: Profile, clip: Clip) -> tokenwise::Result<Self> {
        let batch = rollouts.batch()?;
        let mut found = Self { lengths: lengths(rollouts, |_| true), ..Self::default() };
        found.of_sequences(rollouts, &batch)?;
        if batch.kept() > 0 {
            found.of_tokens(rollouts, &batch, profile)?;
            found.of_update(rollouts, &batch, profile, clip)?;
        }
        Ok(found)
    }

    fn of_sequences(&mut self, rollouts: &Rollouts, batch: &Batch<'_>) -> tokenwise::Result<()> {
        let mut scores: Vec<f64> = rollouts.rows.iter().filter_map(|row| row.score).collect();
        if let Some(column) = rollouts.column(Column::Scores).filter(|_| scores.is_empty()) {
            scores = vec![0.0; rollouts.rows.len()];
            row_sums(batch, column, &mut scores)?;
        }
        let all = moments(&scores);
        self.scores = summary(scores.iter().copied());
        self.score_std = all.variance(Spread::Sample, Divisor::Count).ok().map(sqrt);
        if scores.len() == rollouts.rows.len() && rollouts.rows.iter().all(|row| row.group.is_some()) {
            self.of_groups(rollouts, &scores);
        }
        if rollouts.rows.iter().all(|row| row.truncated.is_some()) {
            self.terminated = lengths(rollouts, |row| rollouts.rows[row].truncated == Some(false));
            let cut = rollouts.rows.iter().filter(|row| row.truncated == Some(true)).count();
            self.truncated = Some(cut as f64 / rollouts.rows.len() as f64);
        }
        Ok(())
    }

    fn of_groups(&mut self, rollouts: &Rollouts, scores: &[f64]) {
        let mut groups: HashMap<u64, Moments> = HashMap::new();
        for (row, &score) in rollouts.rows.iter().zip(scores) {
            groups.entry(row.group.unwrap_or(0)).or_default().merge(&Moments { count: 1, mean: score, m2: 0.0 });
        }
        let deviation = |row: usize| {
            let group = rollouts.rows[row].group.and_then(|group| groups.get(&group)).copied().unwrap_or_default();
            group.variance(Spread::Sample, Divisor::Count).map_or(0.0, sqrt)
        };
        let deviations: Vec<f64> = (0..scores.len()).map(deviation).collect();
        let tied = deviations.iter().filter(|deviation| **deviation <= 1e-8).count();
        self.group_std = Some(moments(&deviations).mean);
        self.tied_groups = Some(tied as f64 / scores.len() as f64);
    }

    fn of_tokens(&mut self, rollouts: &Rollouts, batch: &Batch<'_>, profile: Profile) -> tokenwise::Result<()> {
        let of = |column| -> tokenwise::Result<Option<Summary>> {
            let Some(numbers) = rollouts.column(column) else { return Ok(None) };
            let Some((max, min)) = extremes(numbers, rollouts.kept()) else { return Ok(None) };
            Ok(Some(Summary { mean: mean(batch, numbers, Divisor::Count)?, max, min }))
        };
        self.advantages = of(Column::Advantages)?;
        self.returns = of(Column::Returns)?;
        self.values = of(Column::Values)?;
        if let Some(rewards) = rollouts.column(Column::Rewards) {
            let mut sums = vec![0.0; rollouts.rows.len()];
            row_sums(batch, rewards, &mut sums)?;
            self.rewards = summary(sums.into_iter());
        }
        if let (Some(values), Some(returns)) = (rollouts.column(Column::Values), rollouts.column(Column::Returns)) {
            let input = ExplainedVarianceInput { values, returns };
            self.explained_variance = explained_variance(batch, input, &Default::default()).ok();
        }
        let mut scratch = Vec::new();
        if let Some(entropies) = rollouts.column(Column::Entropies) {
            scratch.resize(rollouts.tokens(), 0.0);
            let config = profile.aggregate(AggregateMode::TokenMean);
            self.entropy = Some(aggregate(batch, entropies, &config, &mut scratch)?);
        }
        let policy = rollouts.column(Column::LogProbs).or(rollouts.column(Column::OldLogProbs));
        if let (Some(log_probs), Some(ref_log_probs)) = (policy, rollouts.column(Column::RefLogProbs)) {
            let mut kl = vec![0.0; rollouts.tokens()];
            scratch.resize(rollouts.tokens(), 0.0);
            kl_estimate(batch, KlInput { log_probs, ref_log_probs }, &profile.kl_loss(), &mut kl)?;
            let by_sequence = profile == Profile::OpenRlhf0_11;
            let mode = if by_sequence { AggregateMode::SequenceMeanTokenMean } else { AggregateMode::TokenMean };
            self.ref_kl = Some(aggregate(batch, &kl, &profile.aggregate(mode), &mut scratch)?);
        }
        Ok(())
    }

    fn of_update(
        &mut self,
        rollouts: &Rollouts,
        batch: &Batch<'_>,
        profile: Profile,
        clip: Clip,
    ) -> tokenwise::Result<()> {
        let column = |column| rollouts.column(column);
        let old = column(Column::OldLogProbs);
        if let (Some(old_log_probs), Some(rollout_log_probs)) = (old, column(Column::RolloutLogProbs)) {
            let differs = old_log_probs.iter().zip(rollout_log_probs).zip(rollouts.kept()).filter(|(_, keep)| **keep);
            self.sampler = summary(differs.map(|((old, rollout), _)| (old - rollout).abs()));
            let input = RolloutInput { old_log_probs, rollout_log_probs };
            self.mismatch = Some(rollout_mismatch(batch, input, profile.divisor())?);
        }
        let Some((old_log_probs, advantages)) = old.zip(column(Column::Advantages)) else { return Ok(()) };
        if let Some(rewards) = column(Column::Rewards) {
            self.analysis = Some(analysis(batch, AnalysisInput { old_log_probs, advantages, rewards })?);
        }
        let Some(log_probs) = column(Column::LogProbs) else { return Ok(()) };
        let config = PpoConfig { clip_low: clip.low, clip_high: clip.high, ..profile.ppo() };
        let input = PolicyLossInput { log_probs, old_log_probs, advantages, weights: None };
        let mut grad = vec![0.0; rollouts.tokens()];
        self.policy = Some(ppo_clip(batch, input, &config, &mut grad)?);
        if profile == Profile::Trl1_16 {
            let config = ClipConfig { clip_low: clip.low, clip_high: clip.high, ..Default::default() };
            let input = RatioInput { log_probs, old_log_probs, advantages };
            self.clipped = Some(clip_fractions(batch, input, &config)?);
        }
        Ok(())
    }
}

fn moments(numbers: &[f64]) -> Moments {
    let mut all = Moments::default();
    for &x in numbers {
        all.merge(&Moments { count: 1, mean: x, m2: 0.0 });
    }
    all
}

fn summary(numbers: impl Iterator<Item = f64>) -> Option<Summary> {
    let (mut count, mut sum, mut max, mut min) = (0_u64, 0.0, f64::NEG_INFINITY, f64::INFINITY);
    for x in numbers {
        count += 1;
        sum += x;
        max = x.max(max);
        min = x.min(min);
    }
    (count > 0).then(|| Summary { mean: sum / count as f64, max, min })
}

fn extremes(numbers: &[f64], keep: &[bool]) -> Option<(f64, f64)> {
    let (mut max, mut min) = (f64::NEG_INFINITY, f64::INFINITY);
    for (&x, &keep) in numbers.iter().zip(keep) {
        max = if keep && x > max { x } else { max };
        min = if keep && x < min { x } else { min };
    }
    (max >= min).then_some((max, min))
}

/// Kept tokens of the chosen sequences, or the lengths the file tells where it has nothing per token.
fn lengths(rollouts: &Rollouts, chosen: impl Fn(usize) -> bool) -> Option<Summary> {
    let of = |row: usize| {
        let slots = rollouts.slots(row);
        if rollouts.tokens() == 0 {
            return rollouts.rows[row].length;
        }
        Some(rollouts.kept()[slots].iter().filter(|keep| **keep).count() as f64)
    };
    let all: Option<Vec<f64>> = (0..rollouts.rows.len()).filter(|row| chosen(*row)).map(of).collect();
    summary(all?.into_iter())
}
