use super::Summary;
use crate::{
    entries::known,
    loss::{PolicyLoss, ValueLoss},
    metric::VarianceProxy,
    rollout::{CriterionMetrics, ProbabilityDifference, RejectionTotals, RolloutMismatch, RolloutWeightMetrics},
};

/// The lengths of sequences; NaN if there are none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct LengthSummary {
    /// In tokens.
    pub tokens: Summary,
    /// Share of sequences of exactly the maximum length.
    pub clip_ratio: f64,
}

/// The KL penalty in the reward: the result of [`kl_in_reward`](crate::reward::kl_in_reward), and its β.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardKl {
    /// The mean over sequences of their mean estimate.
    pub kl: f64,
    /// β.
    pub coefficient: f64,
}

/// The result of [`verl_metrics`](super::verl_metrics); `None` where the input was not given.
#[non_exhaustive]
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

/// The entries of a [`Summary`].
macro_rules! summary {
    ($prefix:literal, $found:expr) => {
        known([
            (concat!($prefix, "/mean"), $found.map(|found| found.mean)),
            (concat!($prefix, "/max"), $found.map(|found| found.max)),
            (concat!($prefix, "/min"), $found.map(|found| found.min)),
        ])
    };
}

/// The entries of a [`LengthSummary`].
macro_rules! lengths {
    ($prefix:literal, $found:expr) => {
        known([
            (concat!($prefix, "/mean"), $found.map(|found| found.tokens.mean)),
            (concat!($prefix, "/max"), $found.map(|found| found.tokens.max)),
            (concat!($prefix, "/min"), $found.map(|found| found.tokens.min)),
            (concat!($prefix, "/clip_ratio"), $found.map(|found| found.clip_ratio)),
        ])
    };
}

impl<'a> VerlMetrics<'a> {
    /// The keys and values as verl 0.9.1 logs them, for the inputs that were given.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> + 'a {
        self.of_data()
            .chain(self.of_update())
            .chain(self.probability_difference.map(|found| found.entries()).into_iter().flatten())
            .chain(self.mismatch.map(|found| found.entries()).into_iter().flatten())
            .chain(self.rollout_weights.map(|found| found.entries()).into_iter().flatten())
            .chain(self.criteria.iter().flat_map(CriterionMetrics::entries))
            .chain(self.rejection.map(|found| found.entries()).into_iter().flatten())
            .chain(self.variance_proxy.map(|found| found.entries()).into_iter().flatten())
    }

    fn of_data(&self) -> impl Iterator<Item = (&'static str, f64)> {
        summary!("critic/score", self.scores)
            .chain(summary!("critic/rewards", self.rewards))
            .chain(summary!("critic/advantages", self.advantages))
            .chain(summary!("critic/returns", self.returns))
            .chain(summary!("critic/values", self.values))
            .chain(known([("critic/vf_explained_var", self.explained_variance)]))
            .chain(lengths!("response_length", self.response_length))
            .chain(lengths!("response_length_non_aborted", self.response_length_non_aborted))
            .chain(known([("response/aborted_ratio", self.aborted_ratio)]))
            .chain(lengths!("prompt_length", self.prompt_length))
            .chain(known([("perf/total_num_tokens", self.total_num_tokens)]))
    }

    fn of_update(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let (policy, value) = (self.policy_loss, self.value_loss);
        known([
            ("actor/entropy", self.old_entropy),
            ("actor/reward_kl_penalty", self.reward_kl.map(|found| found.kl)),
            ("actor/reward_kl_penalty_coeff", self.reward_kl.map(|found| found.coefficient)),
            ("actor/pg_loss", policy.map(|found| found.loss)),
            ("actor/pg_clipfrac", policy.map(|found| found.clip_fraction)),
            ("actor/ppo_kl", policy.map(|found| found.kl)),
            ("actor/pg_clipfrac_lower", policy.map(|found| found.clip_fraction_lower)),
            ("actor/entropy_loss", self.entropy_loss),
            ("actor/kl_loss", self.kl_loss),
            ("actor/kl_coef", self.kl_coefficient),
            ("actor/loss", self.actor_loss),
            ("critic/vf_loss", value.map(|found| found.loss)),
            ("critic/vf_clipfrac", value.map(|found| found.clip_fraction)),
            ("critic/vpred_mean", self.prediction_mean),
            ("critic/loss", value.map(|found| found.loss)),
        ])
    }
}
