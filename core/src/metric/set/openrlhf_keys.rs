use crate::{
    entries::known,
    loss::{PolicyLoss, ValueLoss},
    rollout::GateReport,
};

/// The result of [`openrlhf_metrics`](super::openrlhf_metrics); `None` where the input was not given.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct OpenRlhfMetrics {
    /// `policy_loss`, `ppo_clip_ratio`, `ppo_kl`.
    pub policy_loss: Option<PolicyLoss>,
    /// `vllm_kl`, `is_filter_ratio`.
    pub gate: Option<GateReport>,
    /// `entropy_loss`.
    pub entropy_loss: Option<f64>,
    /// `kl`.
    pub kl: Option<f64>,
    /// `logprobs_diff`.
    pub logprobs_diff: Option<f64>,
    /// `reward`.
    pub reward: Option<f64>,
    /// `return`.
    pub episode_return: Option<f64>,
    /// `group_reward_std`.
    pub group_reward_std: Option<f64>,
    /// `response_length`.
    pub response_length: f64,
    /// `total_length`.
    pub total_length: Option<f64>,
    /// `response_clip_ratio`.
    pub response_clip_ratio: Option<f64>,
    /// `truncated`.
    pub truncated: Option<f64>,
    /// `critic_loss`.
    pub value_loss: Option<ValueLoss>,
    /// `values`.
    pub values: Option<f64>,
}

impl OpenRlhfMetrics {
    /// The keys and values as OpenRLHF 0.11 logs them, for the inputs that were given.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let (policy, gate) = (self.policy_loss, self.gate);
        known([
            ("train/policy_loss", policy.map(|found| found.loss)),
            ("train/entropy_loss", self.entropy_loss),
            ("train/ppo_clip_ratio", policy.map(|found| found.clip_fraction)),
            ("train/ppo_kl", policy.map(|found| found.kl)),
            ("train/vllm_kl", gate.map(|found| found.kl)),
            ("train/is_filter_ratio", gate.map(|found| found.filtered)),
            ("train/kl", self.kl),
            ("train/logprobs_diff", self.logprobs_diff),
            ("train/reward", self.reward),
            ("train/return", self.episode_return),
            ("train/group_reward_std", self.group_reward_std),
            ("train/response_length", Some(self.response_length)),
            ("train/total_length", self.total_length),
            ("train/response_clip_ratio", self.response_clip_ratio),
            ("train/truncated", self.truncated),
            ("train/critic_loss", self.value_loss.map(|found| found.loss)),
            ("train/values", self.values),
        ])
    }
}
