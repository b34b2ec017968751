//! Metrics under our own names, with the papers' conventions.

use tokenwise::{
    control::{
        BudgetSource, DualGame, DualGameRules, DualGameStep, EntropyBudgetConfig, KlControlConfig, LinearKlConfig,
    },
    metric::{analysis, AnalysisInput, Summary},
    weight::TokenWeight,
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
    Ok(all.into_iter().filter_map(|(key, value)| Some((key, value?))).collect())
}

/// The keys that a dual game logs and reads: the five of `analysis/…`, and what its controllers take from a batch.
pub(super) fn game(inputs: &Inputs<'_>) -> Result<Vec<Entry>> {
    let column = |column| inputs.column(column);
    let batch = inputs.batch()?;
    // without rewards on the tokens: the scores, without a KL penalty
    let rewards = column(Column::Rewards).map(Into::into).or_else(|| inputs.token_scores());
    let (Some(old_log_probs), Some(advantages), Some(rewards), true) =
        (column(Column::OldLogProbs), column(Column::Advantages), rewards, batch.kept() > 0)
    else {
        return Ok(Vec::new());
    };
    let rewards = &rewards[..];
    let step = DualGameStep {
        old_log_probs,
        ref_log_probs: column(Column::RefLogProbs),
        advantages,
        rewards,
        weight: TokenWeight::Plain,
        last_update: None,
    };
    // λ and β depend on earlier steps; these do not
    const INPUTS: [&str; 5] = [
        "dual_game/KL_per_token",
        "dual_game/wH_per_token",
        "dual_game/token_entropy_mean",
        "dual_game/reward_std",
        "dual_game/token_count",
    ];
    let rules = DualGameRules {
        kl: KlControlConfig::Linear(LinearKlConfig { beta: 0.0, target: 0.0, ..Default::default() }),
        budget: EntropyBudgetConfig { source: BudgetSource::Given(0.0), ..Default::default() },
    };
    match DualGame::new(&rules).and_then(|mut game| game.step(&batch, step, None)) {
        Ok(report) => {
            let inputs = report.entries().filter(|(key, _)| INPUTS.contains(key));
            Ok(report.analysis.entries().into_iter().chain(inputs).collect())
        }
        // numbers that no controller accepts, such as rewards that are not finite
        Err(_) => {
            let measured = analysis(&batch, AnalysisInput { old_log_probs, advantages, rewards })?;
            Ok(measured.entries().to_vec())
        }
    }
}
