//! Corresponding keys of the frameworks, and the comparison of two sets of values.

use tokenwise::Profile;

use super::sets::Entry;

/// Relative difference up to which two values differ only by the order of additions.
const ROUNDING: f64 = 1e-12;

/// paper, verl, TRL, OpenRLHF; empty if not logged. Keys without a row have no counterpart.
const SAME: &[[&str; 4]] = &[
    ["score/mean", "critic/score/mean", "reward", "train/reward"],
    ["score/max", "critic/score/max", "", ""],
    ["score/min", "critic/score/min", "", ""],
    ["score/std", "", "reward_std", ""],
    ["score/group_std", "", "", "train/group_reward_std"],
    ["score/tied_groups", "", "frac_reward_zero_std", ""],
    ["reward/mean", "critic/rewards/mean", "", "train/return"],
    ["reward/max", "critic/rewards/max", "", ""],
    ["reward/min", "critic/rewards/min", "", ""],
    ["advantage/mean", "critic/advantages/mean", "", ""],
    ["advantage/max", "critic/advantages/max", "", ""],
    ["advantage/min", "critic/advantages/min", "", ""],
    ["return/mean", "critic/returns/mean", "", ""],
    ["return/max", "critic/returns/max", "", ""],
    ["return/min", "critic/returns/min", "", ""],
    ["value/mean", "critic/values/mean", "", ""],
    ["value/max", "critic/values/max", "", ""],
    ["value/min", "critic/values/min", "", ""],
    ["value/explained_variance", "critic/vf_explained_var", "", ""],
    ["", "critic/vf_loss", "", "train/critic_loss"],
    ["", "critic/vpred_mean", "", "train/values"],
    ["length/mean", "response_length/mean", "completions/mean_length", "train/response_length"],
    ["length/max", "response_length/max", "completions/max_length", ""],
    ["length/min", "response_length/min", "completions/min_length", ""],
    ["length/truncated", "", "completions/clipped_ratio", "train/truncated"],
    ["", "perf/total_num_tokens", "num_tokens", ""],
    ["loss/policy", "actor/pg_loss", "policy_loss", "train/policy_loss"],
    ["ratio/clip_fraction", "actor/pg_clipfrac", "clip_ratio/region_mean", "train/ppo_clip_ratio"],
    ["ratio/kl", "actor/ppo_kl", "", "train/ppo_kl"],
    ["reference/kl", "actor/kl_loss", "kl", "train/kl"],
    ["policy/entropy", "actor/entropy_loss", "entropy", "train/entropy_loss"],
    ["sampler/kl", "rollout_corr/kl", "", "train/vllm_kl"],
];

fn place(profile: Profile) -> usize {
    match profile {
        Profile::Verl0_9_1 => 1,
        Profile::Trl1_16 => 2,
        Profile::OpenRlhf0_11 => 3,
        _ => 0,
    }
}

fn same(a: f64, b: f64) -> bool {
    let size = a.abs().max(b.abs());
    a == b || (a.is_nan() && b.is_nan()) || (size.is_finite() && (a - b).abs() <= ROUNDING * size)
}

/// The metrics of two frameworks side by side.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Compared {
    /// Corresponding metrics whose values differ.
    pub(crate) differ: Vec<[Entry; 2]>,
    /// Number of metrics with equal values.
    pub(crate) agree: usize,
    /// Metrics that only one of the two logs.
    pub(crate) only: [Vec<&'static str>; 2],
}

impl Compared {
    pub(crate) fn of(entries: [&[Entry]; 2], profiles: [Profile; 2]) -> Self {
        let [mine, theirs] = profiles.map(place);
        let counterpart = |key: &'static str| match SAME.iter().find(|row| row[mine] == key) {
            Some(row) => row[theirs],
            None if mine == theirs || key.starts_with("analysis/") || key.starts_with("dual_game/") => key,
            None => "",
        };
        let mut found = Self::default();
        let mut matched = Vec::new();
        for &(key, value) in entries[0] {
            let name = counterpart(key);
            match entries[1].iter().find(|(other, _)| *other == name) {
                Some(&other) => {
                    matched.push(other.0);
                    if same(value, other.1) {
                        found.agree += 1;
                    } else {
                        found.differ.push([(key, value), other]);
                    }
                }
                None => found.only[0].push(key),
            }
        }
        found.only[1] = entries[1].iter().map(|(key, _)| *key).filter(|key| !matched.contains(key)).collect();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_stands_for_one_thing() {
        for place in 0..4 {
            let mut keys: Vec<&str> = SAME.iter().map(|row| row[place]).filter(|key| !key.is_empty()).collect();
            let all = keys.len();
            keys.sort_unstable();
            keys.dedup();
            assert_eq!(keys.len(), all);
        }
        let (verl, trl) = ([("actor/pg_loss", 1.0), ("critic/score/max", 2.0)], [("policy_loss", 1.5), ("kl", 0.0)]);
        let found = Compared::of([&verl, &trl], [Profile::Verl0_9_1, Profile::Trl1_16]);
        assert_eq!(found.differ, [[verl[0], trl[0]]]);
        assert_eq!(found.only, [vec!["critic/score/max"], vec!["kl"]]);
        assert!(same(0.1 + 0.2, 0.3) && !same(0.2, 0.2 - 4e-10) && !same(f64::INFINITY, 1.0) && !same(f64::NAN, 0.0));
        let same = Compared::of([&verl, &verl], [Profile::Verl0_9_1; 2]);
        assert_eq!((same.agree, same.differ.len()), (2, 0));
    }
}
