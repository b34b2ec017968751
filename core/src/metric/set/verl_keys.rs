use super::Summary;
use crate::{
    loss::{PolicyLoss, ValueLoss},
    metric::{entries::Entries, VarianceProxy},
    rollout::{CriterionMetrics, ProbabilityDifference, RejectionTotals, RolloutMismatch, RolloutWeightMetrics},
};

/// How long sequences are; NaN of none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LengthSummary {
    /// In tokens.
    pub tokens: Summary,
    /// Share of sequences of just the longest allowed length.
    pub clip_ratio: f64,
}

/// What the KL penalty in the reward came to: what [`kl_in_reward`](crate::reward::kl_in_reward) returned, and its β.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardKl {
    /// The mean over sequences of their mean estimate.
    pub kl: f64,
    /// β.
    pub coefficient: f64,
}

/// What [`verl_metrics`](super::verl_metrics) found; `None` for what it was not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct VerlMetrics<'a> {
    /// `critic/score/*`.
    pub scores: Option<Summary>,
    /// `critic/rewards/*`.
    pub rewards: Option<Summary>,
    /// `critic/advantages/*`.
    pub advantages: Option<Summary>,
    /// `critic/returns/*`.
    pub returns: Option<Summary>,
    /// `critic/values/*`.
    pub values: Option<Summary>,
    /// `critic/vf_explained_var`.
    pub explained_variance: Option<f64>,
    /// `response_length/*`.
    pub response_length: Option<LengthSummary>,
    /// `response_length_non_aborted/*`.
    pub response_length_non_aborted: Option<LengthSummary>,
    /// `response/aborted_ratio`.
    pub aborted_ratio: Option<f64>,
    /// `prompt_length/*`.
    pub prompt_length: Option<LengthSummary>,
    /// `perf/total_num_tokens`.
    pub total_num_tokens: Option<f64>,
    /// `actor/entropy`.
    pub old_entropy: Option<f64>,
    /// `actor/reward_kl_penalty`, `actor/reward_kl_penalty_coeff`.
    pub reward_kl: Option<RewardKl>,
    /// `actor/pg_loss`, `actor/pg_clipfrac`, `actor/pg_clipfrac_lower`, `actor/ppo_kl`.
    pub policy_loss: Option<PolicyLoss>,
    /// `actor/entropy_loss`.
    pub entropy_loss: Option<f64>,
    /// `actor/kl_loss`.
    pub kl_loss: Option<f64>,
    /// `actor/kl_coef`, beside `actor/kl_loss`.
    pub kl_coefficient: Option<f64>,
    /// `actor/loss`.
    pub actor_loss: Option<f64>,
    /// `critic/vf_loss`, `critic/vf_clipfrac`, `critic/loss`.
    pub value_loss: Option<ValueLoss>,
    /// `critic/vpred_mean`.
    pub prediction_mean: Option<f64>,
    /// `training/rollout_probs_diff_*`, `training/rollout_actor_probs_pearson_corr`.
    pub probability_difference: Option<ProbabilityDifference>,
    /// `rollout_corr/*`.
    pub mismatch: Option<RolloutMismatch>,
    /// `rollout_corr/rollout_is_*`.
    pub rollout_weights: Option<RolloutWeightMetrics>,
    /// `rollout_corr/rollout_rs_*` of all criteria together.
    pub rejection: Option<RejectionTotals>,
    /// `rollout_corr/rollout_rs_{option}_*`.
    pub criteria: &'a [CriterionMetrics],
    /// `variance_proxy/*`.
    pub variance_proxy: Option<VarianceProxy>,
}

/// The keys of a [`Summary`].
macro_rules! summary {
    ($prefix:literal) => {
        &[concat!($prefix, "/mean"), concat!($prefix, "/max"), concat!($prefix, "/min")]
    };
}

/// The keys of a [`LengthSummary`].
macro_rules! lengths {
    ($prefix:literal) => {
        &[
            concat!($prefix, "/mean"),
            concat!($prefix, "/max"),
            concat!($prefix, "/min"),
            concat!($prefix, "/clip_ratio"),
        ]
    };
}

#[cfg_attr(compact, inline(never))]
fn summary(list: &mut Entries, keys: &[&'static str; 3], found: &Option<Summary>) {
    list.group(keys, found.map(|found| [found.mean, found.max, found.min]));
}

#[cfg_attr(compact, inline(never))]
fn lengths(list: &mut Entries, keys: &[&'static str; 4], found: &Option<LengthSummary>) {
    list.group(keys, found.map(|found| [found.tokens.mean, found.tokens.max, found.tokens.min, found.clip_ratio]));
}

impl<'a> VerlMetrics<'a> {
    /// The keys as verl 0.9.1 logs them, those of what was given.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> + 'a {
        let (mut first, mut last) = (Entries::new(), Entries::new());
        self.of_data(&mut first);
        self.of_update(&mut first);
        if let Some(found) = &self.probability_difference {
            first.pairs(&found.entries());
        }
        if let Some(found) = &self.mismatch {
            first.pairs(&found.entries());
        }
        if let Some(found) = &self.rollout_weights {
            found.add_to(&mut first);
        }
        if let Some(found) = &self.rejection {
            last.pairs(&found.entries());
        }
        if let Some(found) = &self.variance_proxy {
            last.pairs(&found.entries());
        }
        first.chain(self.criteria.iter().flat_map(CriterionMetrics::entries)).chain(last)
    }

    fn of_data(&self, list: &mut Entries) {
        summary(list, summary!("critic/score"), &self.scores);
        summary(list, summary!("critic/rewards"), &self.rewards);
        summary(list, summary!("critic/advantages"), &self.advantages);
        summary(list, summary!("critic/returns"), &self.returns);
        summary(list, summary!("critic/values"), &self.values);
        list.add("critic/vf_explained_var", &self.explained_variance);
        lengths(list, lengths!("response_length"), &self.response_length);
        lengths(list, lengths!("response_length_non_aborted"), &self.response_length_non_aborted);
        list.add("response/aborted_ratio", &self.aborted_ratio);
        lengths(list, lengths!("prompt_length"), &self.prompt_length);
        list.add("perf/total_num_tokens", &self.total_num_tokens);
    }

    fn of_update(&self, list: &mut Entries) {
        list.add("actor/entropy", &self.old_entropy);
        list.group(
            &["actor/reward_kl_penalty", "actor/reward_kl_penalty_coeff"],
            self.reward_kl.map(|found| [found.kl, found.coefficient]),
        );
        list.group(
            &["actor/pg_loss", "actor/pg_clipfrac", "actor/ppo_kl", "actor/pg_clipfrac_lower"],
            self.policy_loss.map(|found| [found.loss, found.clip_fraction, found.kl, found.clip_fraction_lower]),
        );
        list.add("actor/entropy_loss", &self.entropy_loss);
        list.add("actor/kl_loss", &self.kl_loss);
        list.add("actor/kl_coef", &self.kl_coefficient);
        list.add("actor/loss", &self.actor_loss);
        let value = self.value_loss;
        list.group(&["critic/vf_loss", "critic/vf_clipfrac"], value.map(|found| [found.loss, found.clip_fraction]));
        list.add("critic/vpred_mean", &self.prediction_mean);
        list.group(&["critic/loss"], value.map(|found| [found.loss]));
    }
}
