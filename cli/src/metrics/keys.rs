//! Under which key each framework logs what.

use tokenwise::Profile;

use super::found::{Found, Summary};

/// One logged number.
#[derive(Clone, Debug)]
pub(crate) struct Entry {
    /// What it is, the same for all frameworks.
    pub(crate) what: &'static str,
    /// What it is called.
    pub(crate) key: &'static str,
    pub(crate) value: f64,
}

struct Key {
    what: &'static str,
    /// paper, verl, TRL, OpenRLHF; empty where it is not logged.
    names: [&'static str; 4],
    value: fn(&Found) -> Option<f64>,
}

macro_rules! keys {
    ($($what:literal: [$paper:literal, $verl:literal, $trl:literal, $openrlhf:literal] = $value:expr;)*) => {
        &[$(Key { what: $what, names: [$paper, $verl, $trl, $openrlhf], value: $value }),*]
    };
}

fn part(summary: Option<Summary>, part: fn(Summary) -> f64) -> Option<f64> {
    summary.map(part)
}

const KEYS: &[Key] = keys! {
    "score, mean": ["score/mean", "critic/score/mean", "reward", "train/reward"] = |f| part(f.scores, |s| s.mean);
    "score, max": ["score/max", "critic/score/max", "", ""] = |f| part(f.scores, |s| s.max);
    "score, min": ["score/min", "critic/score/min", "", ""] = |f| part(f.scores, |s| s.min);
    "score, deviation": ["score/std", "", "reward_std", ""] = |f| f.score_std;
    "score, deviation in a group": ["score/group_std", "", "", "train/group_reward_std"] = |f| f.group_std;
    "share of tied groups": ["score/tied_groups", "", "frac_reward_zero_std", ""] = |f| f.tied_groups;
    "reward of a sequence, mean": ["reward/mean", "critic/rewards/mean", "", "train/return"] = |f| part(f.rewards, |s| s.mean);
    "reward of a sequence, max": ["reward/max", "critic/rewards/max", "", ""] = |f| part(f.rewards, |s| s.max);
    "reward of a sequence, min": ["reward/min", "critic/rewards/min", "", ""] = |f| part(f.rewards, |s| s.min);
    "advantage, mean": ["advantage/mean", "critic/advantages/mean", "", ""] = |f| part(f.advantages, |s| s.mean);
    "advantage, max": ["advantage/max", "critic/advantages/max", "", ""] = |f| part(f.advantages, |s| s.max);
    "advantage, min": ["advantage/min", "critic/advantages/min", "", ""] = |f| part(f.advantages, |s| s.min);
    "return, mean": ["return/mean", "critic/returns/mean", "", ""] = |f| part(f.returns, |s| s.mean);
    "return, max": ["return/max", "critic/returns/max", "", ""] = |f| part(f.returns, |s| s.max);
    "return, min": ["return/min", "critic/returns/min", "", ""] = |f| part(f.returns, |s| s.min);
    "value, mean": ["value/mean", "critic/values/mean", "", "train/values"] = |f| part(f.values, |s| s.mean);
    "value, max": ["value/max", "critic/values/max", "", ""] = |f| part(f.values, |s| s.max);
    "value, min": ["value/min", "critic/values/min", "", ""] = |f| part(f.values, |s| s.min);
    "explained variance": ["value/explained_variance", "critic/vf_explained_var", "", ""] = |f| f.explained_variance;
    "length, mean": ["length/mean", "response_length/mean", "completions/mean_length", "train/response_length"] = |f| part(f.lengths, |s| s.mean);
    "length, max": ["length/max", "response_length/max", "completions/max_length", ""] = |f| part(f.lengths, |s| s.max);
    "length, min": ["length/min", "response_length/min", "completions/min_length", ""] = |f| part(f.lengths, |s| s.min);
    "share cut off": ["length/truncated", "", "completions/clipped_ratio", "train/truncated"] = |f| f.truncated;
    "length of finished ones, mean": ["", "", "completions/mean_terminated_length", ""] = |f| part(f.terminated, |s| s.mean);
    "length of finished ones, max": ["", "", "completions/max_terminated_length", ""] = |f| part(f.terminated, |s| s.max);
    "length of finished ones, min": ["", "", "completions/min_terminated_length", ""] = |f| part(f.terminated, |s| s.min);
    "policy loss": ["loss/policy", "actor/pg_loss", "policy_loss", "train/policy_loss"] = |f| f.policy.map(|p| p.loss);
    "clip fraction": ["ratio/clip_fraction", "actor/pg_clipfrac", "clip_ratio/region_mean", "train/ppo_clip_ratio"]
        = |f| f.clipped.map(|c| c.clipped).or(f.policy.map(|p| p.clip_fraction));
    "clip fraction, low side": ["", "", "clip_ratio/low_mean", ""] = |f| f.clipped.map(|c| c.low);
    "clip fraction, high side": ["", "", "clip_ratio/high_mean", ""] = |f| f.clipped.map(|c| c.high);
    "clip fraction of the dual clip": ["", "actor/pg_clipfrac_lower", "", ""] = |f| f.policy.map(|p| p.clip_fraction_lower);
    "KL to the old policy": ["ratio/kl", "actor/ppo_kl", "", "train/ppo_kl"] = |f| f.policy.map(|p| p.kl);
    "KL to the reference": ["reference/kl", "actor/kl_loss", "kl", "train/kl"] = |f| f.ref_kl;
    "entropy": ["policy/entropy", "actor/entropy", "entropy", "train/entropy_loss"] = |f| f.entropy;
    "sampler difference, mean": ["", "", "sampling/sampling_logp_difference/mean", ""] = |f| part(f.sampler, |s| s.mean);
    "sampler difference, max": ["", "", "sampling/sampling_logp_difference/max", ""] = |f| part(f.sampler, |s| s.max);
    "KL to the sampler": ["sampler/kl", "", "", "train/vllm_kl"] = |f| f.mismatch.map(|m| m.kl);
};

/// What a framework logs for a batch, in its order.
pub(crate) fn entries(found: &Found, profile: Profile) -> Vec<Entry> {
    let place = match profile {
        Profile::Verl0_9_1 => 1,
        Profile::Trl1_16 => 2,
        Profile::OpenRlhf0_11 => 3,
        _ => 0,
    };
    let named = KEYS.iter().filter(|key| !key.names[place].is_empty());
    let mut entries: Vec<Entry> = named
        .filter_map(|key| Some(Entry { what: key.what, key: key.names[place], value: (key.value)(found)? }))
        .collect();
    let same = |(key, value): (&'static str, f64)| Entry { what: key, key, value };
    if let Some(mismatch) = found.mismatch.filter(|_| place == 1) {
        entries.extend(mismatch.entries().map(same));
    }
    // the owner's, whoever trains
    entries.extend(found.analysis.iter().flat_map(|analysis| analysis.entries().map(same)));
    entries
}
