use super::Summary;
use crate::entries::known;

/// Statistics of the scores of the completions.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrlRewardMetrics {
    /// Mean over completions of the weighted sum of their scores; completions without any score are left out.
    pub reward: f64,
    /// Its standard deviation (divided by `n − 1`); NaN for fewer than two.
    pub reward_std: f64,
    /// Share of completions whose group (or batch) has no spread.
    pub frac_reward_zero_std: f64,
}

/// Statistics of one reward function: `rewards/{name}/mean` and `rewards/{name}/std`, where the caller knows the name.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardSource {
    /// The mean of its scores.
    pub mean: f64,
    /// Its standard deviation (divided by `n − 1`); NaN for fewer than two.
    pub std: f64,
}

/// The lengths of completions.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct CompletionLengths {
    /// Of all completions.
    pub all: Summary,
    /// Share that was truncated; `None` if `truncated` was not given.
    pub clipped_ratio: Option<f64>,
    /// Of those that were not truncated, 0 if all were; `None` likewise.
    pub terminated: Option<Summary>,
}

/// How often the clip holds a token, or at sequence level a sequence.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ClipRatios {
    /// Share held below.
    pub low_mean: f64,
    /// Share held above.
    pub high_mean: f64,
    /// Share held on either side.
    pub region_mean: f64,
    /// The smallest share held below of any sequence; NaN if none has a kept token.
    pub low_min: f64,
    /// The largest share held above of any sequence; likewise.
    pub high_max: f64,
}

/// How far the sampler is from the trainer: mean and largest `|δ|`, 0 without tokens.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SamplingMetrics {
    /// Mean over tokens the sampler scored.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// The result of [`trl_metrics`](super::trl_metrics); `None` where the input was not given.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrlMetrics<'a> {
    /// `num_tokens`.
    pub num_tokens: Option<f64>,
    /// `completions/*`.
    pub completions: Option<CompletionLengths>,
    /// `reward`, `reward_std`, `frac_reward_zero_std`.
    pub rewards: Option<TrlRewardMetrics>,
    /// `rewards/{name}/*`, in the order of the sources; not among [`Self::entries`], because only the caller knows the
    /// names.
    pub sources: &'a [RewardSource],
    /// `sampling/sampling_logp_difference/*`.
    pub sampling: Option<SamplingMetrics>,
    /// `sampling/importance_sampling_ratio/*`; 0 without tokens.
    pub importance_sampling_ratio: Option<Summary>,
    /// `policy_loss`.
    pub policy_loss: Option<f64>,
    /// `entropy_coef`.
    pub entropy_coef: Option<f64>,
    /// `kl`.
    pub kl: Option<f64>,
    /// `entropy`.
    pub entropy: Option<f64>,
    /// `clip_ratio/*`.
    pub clip_ratio: Option<ClipRatios>,
    /// `cispo_clip_ratio`.
    pub cispo_clip_ratio: Option<f64>,
    /// `vespo/phi_seq_mean`.
    pub vespo_phi: Option<f64>,
}

impl TrlMetrics<'_> {
    /// The same without the sources, so that it borrows nothing and may outlive the output.
    pub const fn without_sources(self) -> TrlMetrics<'static> {
        TrlMetrics { sources: &[], ..self }
    }

    /// The keys and values as TRL 1.16 logs them in training, for the inputs that were given.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let (completions, rewards, sampling) = (self.completions, self.rewards, self.sampling);
        let terminated = completions.and_then(|found| found.terminated);
        let (ratio, clip) = (self.importance_sampling_ratio, self.clip_ratio);
        known([
            ("num_tokens", self.num_tokens),
            ("completions/mean_length", completions.map(|found| found.all.mean)),
            ("completions/min_length", completions.map(|found| found.all.min)),
            ("completions/max_length", completions.map(|found| found.all.max)),
            ("completions/clipped_ratio", completions.and_then(|found| found.clipped_ratio)),
            ("completions/mean_terminated_length", terminated.map(|found| found.mean)),
            ("completions/min_terminated_length", terminated.map(|found| found.min)),
            ("completions/max_terminated_length", terminated.map(|found| found.max)),
            ("reward", rewards.map(|found| found.reward)),
            ("reward_std", rewards.map(|found| found.reward_std)),
            ("frac_reward_zero_std", rewards.map(|found| found.frac_reward_zero_std)),
            ("sampling/sampling_logp_difference/mean", sampling.map(|found| found.mean)),
            ("sampling/sampling_logp_difference/max", sampling.map(|found| found.max)),
            ("sampling/importance_sampling_ratio/min", ratio.map(|found| found.min)),
            ("sampling/importance_sampling_ratio/mean", ratio.map(|found| found.mean)),
            ("sampling/importance_sampling_ratio/max", ratio.map(|found| found.max)),
            ("policy_loss", self.policy_loss),
            ("entropy_coef", self.entropy_coef),
            ("kl", self.kl),
            ("entropy", self.entropy),
            ("clip_ratio/low_mean", clip.map(|found| found.low_mean)),
            ("clip_ratio/high_mean", clip.map(|found| found.high_mean)),
            ("clip_ratio/region_mean", clip.map(|found| found.region_mean)),
            ("clip_ratio/low_min", clip.map(|found| found.low_min)),
            ("clip_ratio/high_max", clip.map(|found| found.high_max)),
            ("cispo_clip_ratio", self.cispo_clip_ratio),
            ("vespo/phi_seq_mean", self.vespo_phi),
        ])
    }
}
