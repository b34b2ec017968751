use crate::{
    loss::{PolicyLoss, ValueLoss},
    metric::entries::Entries,
    rollout::GateReport,
};

/// What [`openrlhf_metrics`](super::openrlhf_metrics) found; `None` for what it was not given.
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
    /// The keys as OpenRLHF 0.11 logs them, those of what was given.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let (policy, gate) = (self.policy_loss, self.gate);
        let mut list = Entries::new();
        list.group(&["train/policy_loss"], policy.map(|found| [found.loss]));
        list.add("train/entropy_loss", &self.entropy_loss);
        list.group(&["train/ppo_clip_ratio", "train/ppo_kl"], policy.map(|found| [found.clip_fraction, found.kl]));
        list.group(&["train/vllm_kl", "train/is_filter_ratio"], gate.map(|found| [found.kl, found.filtered]));
        list.add("train/kl", &self.kl);
        list.add("train/logprobs_diff", &self.logprobs_diff);
        list.add("train/reward", &self.reward);
        list.add("train/return", &self.episode_return);
        list.add("train/group_reward_std", &self.group_reward_std);
        list.add("train/response_length", &Some(self.response_length));
        list.add("train/total_length", &self.total_length);
        list.add("train/response_clip_ratio", &self.response_clip_ratio);
        list.add("train/truncated", &self.truncated);
        list.group(&["train/critic_loss"], self.value_loss.map(|found| [found.loss]));
        list.add("train/values", &self.values);
        list
    }
}
