//! Metrics under our own names, with the papers' conventions.

use tokenwise::{
    metric::{analysis, AnalysisInput, Summary},
    Profile, Result,
};

use super::{
    inputs::Inputs,
    sets::{openrlhf, trl, verl, Entry},
};
use crate::{args::Metrics, rollout::Column};

macro_rules! summary {
    ($prefix:literal, $summary:expr) => {{
        let summary: Option<Summary> = $summary;
        [
            (concat!($prefix, "/mean"), summary.map(|found| found.mean)),
            (concat!($prefix, "/max"), summary.map(|found| found.max)),
            (concat!($prefix, "/min"), summary.map(|found| found.min)),
        ]
    }};
}

pub(super) fn entries(inputs: &Inputs<'_>, profile: Profile, options: &Metrics) -> Result<Vec<Entry>> {
    let (verl, trl) = (verl(inputs, profile, options)?, trl(inputs, profile, options)?);
    let group_std = openrlhf(inputs, profile, options)?.group_reward_std;
    let rewards = trl.rewards;
    let policy = verl.policy_loss;
    let mut all = Vec::new();
    all.extend(summary!("score", verl.scores));
    all.extend([
        ("score/std", rewards.map(|found| found.reward_std)),
        ("score/group_std", group_std),
        ("score/tied_groups", rewards.filter(|_| inputs.groups.is_some()).map(|found| found.frac_reward_zero_std)),
    ]);
    all.extend(summary!("reward", verl.rewards));
    all.extend(summary!("advantage", verl.advantages));
    all.extend(summary!("return", verl.returns));
    all.extend(summary!("value", verl.values));
    all.push(("value/explained_variance", verl.explained_variance));
    all.extend(summary!("length", trl.completions.map(|found| found.all)));
    all.extend([
        ("length/truncated", trl.completions.and_then(|found| found.clipped_ratio)),
        ("loss/policy", policy.map(|found| found.loss)),
        ("ratio/clip_fraction", policy.map(|found| found.clip_fraction)),
        ("ratio/kl", policy.map(|found| found.kl)),
        ("reference/kl", verl.kl_loss),
        ("policy/entropy", verl.entropy_loss.or(verl.old_entropy)),
        ("sampler/kl", verl.mismatch.map(|found| found.kl)),
    ]);
    let mut entries: Vec<Entry> = all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect();
    let column = |column| inputs.column(column);
    if let (Some(old_log_probs), Some(advantages), Some(rewards), true) =
        (column(Column::OldLogProbs), column(Column::Advantages), column(Column::Rewards), inputs.batch()?.kept() > 0)
    {
        entries.extend(analysis(&inputs.batch()?, AnalysisInput { old_log_probs, advantages, rewards })?.entries());
    }
    Ok(entries)
}
