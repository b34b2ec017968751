use super::Summary;
use crate::metric::entries::Entries;

/// What the scores of the completions are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TrlRewardMetrics {
    /// Mean over completions of the weighted sum of their scores; those without any score left out.
    pub reward: f64,
    /// Its standard deviation (divided by `n − 1`); NaN of fewer than two.
    pub reward_std: f64,
    /// Share of completions whose group (or batch) has no spread.
    pub frac_reward_zero_std: f64,
}

/// What one reward function gave: `rewards/{name}/mean` and `rewards/{name}/std`, by the name the caller knows.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RewardSource {
    /// The mean of what it scored.
    pub mean: f64,
    /// Its standard deviation (divided by `n − 1`); NaN of fewer than two.
    pub std: f64,
}

/// How long completions are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CompletionLengths {
    /// Of all.
    pub all: Summary,
    /// Share that was cut; only if it is known which.
    pub clipped_ratio: Option<f64>,
    /// Of those that were not cut, 0 if all were; likewise.
    pub terminated: Option<Summary>,
}

/// How often the clip holds a token, or a sequence at that level.
#[derive(Clone, Copy, Debug, PartialEq)]
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
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SamplingMetrics {
    /// Mean over tokens the sampler scored.
    pub mean: f64,
    /// The largest.
    pub max: f64,
}

/// What [`trl_metrics`](super::trl_metrics) found; `None` for what it was not given.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TrlMetrics<'a> {
    /// `num_tokens`.
    pub num_tokens: Option<f64>,
    /// `completions/*`.
    pub completions: Option<CompletionLengths>,
    /// `reward`, `reward_std`, `frac_reward_zero_std`.
    pub rewards: Option<TrlRewardMetrics>,
    /// `rewards/{name}/*`, in the order of the sources; not among [`Self::entries`], for the names are the caller's.
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
    /// The keys as TRL 1.16 logs them in training, those of what was given.
    pub fn entries(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let mut list = Entries::new();
        list.add("num_tokens", &self.num_tokens);
        if let Some(CompletionLengths { all, clipped_ratio, terminated }) = self.completions {
            list.all(
                &["completions/mean_length", "completions/min_length", "completions/max_length"],
                &[all.mean, all.min, all.max],
            );
            list.add("completions/clipped_ratio", &clipped_ratio);
            list.group(
                &[
                    "completions/mean_terminated_length",
                    "completions/min_terminated_length",
                    "completions/max_terminated_length",
                ],
                terminated.map(|found| [found.mean, found.min, found.max]),
            );
        }
        list.group(
            &["reward", "reward_std", "frac_reward_zero_std"],
            self.rewards.map(|found| [found.reward, found.reward_std, found.frac_reward_zero_std]),
        );
        list.group(
            &["sampling/sampling_logp_difference/mean", "sampling/sampling_logp_difference/max"],
            self.sampling.map(|found| [found.mean, found.max]),
        );
        list.group(
            &[
                "sampling/importance_sampling_ratio/min",
                "sampling/importance_sampling_ratio/mean",
                "sampling/importance_sampling_ratio/max",
            ],
            self.importance_sampling_ratio.map(|found| [found.min, found.mean, found.max]),
        );
        list.add("policy_loss", &self.policy_loss);
        list.add("entropy_coef", &self.entropy_coef);
        list.add("kl", &self.kl);
        list.add("entropy", &self.entropy);
        list.group(
            &[
                "clip_ratio/low_mean",
                "clip_ratio/high_mean",
                "clip_ratio/region_mean",
                "clip_ratio/low_min",
                "clip_ratio/high_max",
            ],
            self.clip_ratio
                .map(|found| [found.low_mean, found.high_mean, found.region_mean, found.low_min, found.high_max]),
        );
        list.add("cispo_clip_ratio", &self.cispo_clip_ratio);
        list.add("vespo/phi_seq_mean", &self.vespo_phi);
        list
    }
}
