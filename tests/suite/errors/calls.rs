//! Calls that the catalogue does not make: functions with a state, texts, the comparison of profiles, and scratch of
//! the wrong length. The other parameters of functions with scratch are tested in `formulas.rs`.

mod profiles;

use tokenwise::{
    advantage::{self, *},
    loss::{self, *},
    metric::{self, *},
    rollout::{self, *},
    weight::{self, *},
    Groups, Moments, Result,
};

use super::{Call, Ended, Function, Unwritten, SEQUENCES, TOKENS, UNIT};

/// Log-probabilities, rewards and other columns with one number per token.
const X: &[f64; TOKENS] = &[0.5; TOKENS];
const SCORES: &[f64; SEQUENCES] = &[0.5; SEQUENCES];

/// The two sequences of the batch, of one prompt.
fn pair() -> Groups<'static> {
    Groups::from_ids(&[0, 0]).unwrap()
}

/// Five scores of two prompts.
fn groups() -> Groups<'static> {
    Groups::from_ids(&[0, 1, 1, 0, 1]).unwrap()
}

fn policy() -> PolicyLossInput<'static, f64> {
    PolicyLossInput::new(X, X, X)
}

/// Scratch whose content is not public.
fn opaque<T: Clone + Default>(call: &mut Call, name: &'static str, len: usize) -> Vec<T> {
    vec![T::default(); call.len(name, len)]
}

/// Five scores and a scratch with moments for each group.
fn scored(call: &mut Call, run: impl FnOnce(&Groups<'_>, &[f64], &mut [Moments], &mut [f64]) -> Result<()>) -> Ended {
    let (mut scratch, mut out) = (call.output::<Moments>("scratch", 2), [f64::UNWRITTEN; 5]);
    Ended::new(run(&groups(), &[0.5; 5], &mut scratch, &mut out)).with(&out).with(&scratch)
}

fn group_relative(call: &mut Call) -> Ended {
    scored(call, |g, x, scratch, out| advantage::group_relative(g, x, &GroupConfig::default(), scratch, out))
}

fn leave_one_out(call: &mut Call) -> Ended {
    scored(call, |g, x, scratch, out| advantage::leave_one_out(g, x, &LeaveOneOutConfig::default(), scratch, out))
}

fn leave_one_out_scaled(call: &mut Call) -> Ended {
    let config = LeaveOneOutScaledConfig::default();
    scored(call, |g, x, scratch, out| advantage::leave_one_out_scaled(g, x, &config, scratch, out))
}

fn normalize_scores(call: &mut Call) -> Ended {
    scored(call, |g, x, scratch, out| advantage::normalize_scores(g, x, &NormalizeConfig::default(), scratch, out))
}

fn gpg_advantage(call: &mut Call) -> Ended {
    scored(call, |g, x, scratch, out| advantage::gpg_advantage(g, x, &GpgConfig::default(), scratch, out))
}

fn max_rl(call: &mut Call) -> Ended {
    scored(call, |g, x, scratch, out| advantage::max_rl(g, x, &MaxRlConfig::default(), scratch, out))
}

fn decoupled_scores(call: &mut Call) -> Ended {
    scored(call, |g, x, scratch, out| {
        let input = GdpoInput { sources: x, weights: &[1.0] };
        advantage::decoupled_scores(g, input, &GroupConfig::default(), scratch, out)
    })
}

fn best_of_group(call: &mut Call) -> Ended {
    let mut top = opaque(call, "top", 2);
    let (mut moments, mut out) = (call.output::<Moments>("moments", 2), [f64::UNWRITTEN; 5]);
    let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };
    let result = advantage::best_of_group(&groups(), &[0.5; 5], &BestOfGroupConfig::default(), scratch, &mut out);
    Ended::new(result).with(&out).with(&moments)
}

fn length_weighted_baseline(call: &mut Call) -> Ended {
    let (mut scratch, mut out) = (opaque(call, "scratch", 1), [f64::UNWRITTEN; SEQUENCES]);
    let config = LengthWeightedConfig::default();
    let result = advantage::length_weighted_baseline(&call.batch(), &pair(), SCORES, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out)
}

fn reinforce_plus_plus_baseline(call: &mut Call) -> Ended {
    let (mut scratch, mut out) = (call.output::<Moments>("scratch", 1), [f64::UNWRITTEN; TOKENS]);
    let (batch, config) = (call.batch(), ReinforcePlusPlusBaselineConfig::default());
    let result = advantage::reinforce_plus_plus_baseline(&batch, &pair(), SCORES, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

fn gdpo(call: &mut Call) -> Ended {
    let (mut moments, mut scores) = (call.output::<Moments>("moments", 1), call.output::<f64>("scores", SEQUENCES));
    let mut out = [f64::UNWRITTEN; TOKENS];
    let input = GdpoInput { sources: SCORES, weights: &[1.0] };
    let scratch = GdpoScratch { moments: &mut moments, scores: &mut scores };
    let result = advantage::gdpo(&call.batch(), &pair(), input, &GdpoConfig::default(), scratch, &mut out);
    Ended::new(result).with(&out).with(&moments).with(&scores)
}

fn optimal(call: &mut Call, kept: bool) -> Ended {
    let (mut columns, mut lengths) = (opaque(call, "columns", TOKENS / SEQUENCES), opaque(call, "lengths", 1));
    let (mut advantages, mut returns) = ([f64::UNWRITTEN; TOKENS], [f64::UNWRITTEN; TOKENS]);
    let input = OptimalBaselineInput { rewards: X, old_log_probs: X, sum_pi_squared: X, is_weights: None };
    let scratch = OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths };
    let output = OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns };
    let run = if kept { tir_optimal_token_baseline::<f64> } else { optimal_token_baseline };
    let result = run(&call.batch(), &pair(), input, &OptimalBaselineConfig::default(), scratch, output);
    Ended::new(result).with(&advantages).with(&returns)
}

fn gvpo(call: &mut Call) -> Ended {
    let (mut scratch, mut grad) = (call.output::<Moments>("scratch", 1), [f64::UNWRITTEN; TOKENS]);
    let result = loss::gvpo(&call.batch(), &pair(), policy(), &GvpoConfig::default(), &mut scratch, &mut grad);
    Ended::new(result).with(&grad).with(&scratch)
}

fn trie_complexity(call: &mut Call) -> Ended {
    let (mut scratch, mut out) = (opaque(call, "scratch", SEQUENCES), [f64::UNWRITTEN; TOKENS]);
    let input = TrieInput { tokens: &[0; TOKENS], rewards: X };
    let config = TrieConfig::default();
    Ended::new(weight::trie_complexity(&call.batch(), &pair(), input, &config, &mut scratch, &mut out)).with(&out)
}

/// A mask must not change in a rejected call; in an accepted one any entry may stay the same.
fn masked(result: Result<()>, keep: &[bool]) -> Ended {
    let refused = result.is_err();
    let ended = Ended::new(result);
    if refused {
        ended.with(keep)
    } else {
        ended
    }
}

const ROLLOUT: RolloutInput<'static, f64> = RolloutInput { old_log_probs: X, rollout_log_probs: X };

fn m2po_mask(call: &mut Call) -> Ended {
    let kept = call.batch().kept();
    let (mut scratch, mut keep) = (call.output::<f64>("scratch", kept), [true; TOKENS]);
    let result = rollout::m2po_mask(&call.batch(), ROLLOUT, &M2poConfig { tau: 0.5 }, &mut scratch, &mut keep);
    masked(result, &keep).with(&scratch)
}

fn dynamic_sampling_filter(call: &mut Call) -> Ended {
    let (mut scratch, mut keep) = (call.output::<Moments>("scratch", 1), [true; 1]);
    let rule = GroupRule::Spread { at_least: 0.5 };
    let result = rollout::dynamic_sampling_filter(&pair(), SCORES, &rule, &mut scratch, &mut keep);
    masked(result, &keep).with(&scratch)
}

fn pf_ppo_indices(call: &mut Call) -> Ended {
    let mut scratch = call.output("scratch", SEQUENCES);
    Ended::new(rollout::pf_ppo_indices(SCORES, &ResampleConfig { seed: 1 }, &mut scratch, &mut [0; 3])).with(&scratch)
}

const REJECTION: RejectionConfig<'static> = RejectionConfig {
    criteria: &[Criterion { option: RejectionOption::TokenK1, lower: 0.5, upper: 2.0 }],
    divisor: tokenwise::Divisor::Count,
};

/// Metrics of one criterion, which only an accepted call fills.
fn criteria(call: &mut Call, run: impl FnOnce(&mut Call, &mut [CriterionMetrics]) -> Result<()>) -> Ended {
    let mut metrics: Vec<CriterionMetrics> = opaque(call, "per_criterion", 1);
    let result = run(call, &mut metrics);
    if result.is_err() {
        assert!(metrics.iter().all(|found| *found == CriterionMetrics::default()));
    }
    Ended::new(result)
}

fn rollout_rejection_metrics(call: &mut Call) -> Ended {
    criteria(call, |call, metrics| {
        rollout::rollout_rejection_metrics(&call.batch(), ROLLOUT, &REJECTION, metrics).map(|_| ())
    })
}

fn bypass_loss(call: &mut Call) -> Ended {
    let (mut weights, mut grad, mut keep) = ([f64::UNWRITTEN; TOKENS], [f64::UNWRITTEN; TOKENS], [true; TOKENS]);
    let ended = criteria(call, |call, per_criterion| {
        let config = BypassConfig { rejection: REJECTION, ..Default::default() };
        let output = BypassOutput { weights: &mut weights, keep: &mut keep, per_criterion, grad: &mut grad };
        loss::bypass_loss(&call.batch(), policy(), &config, output).map(|_| ())
    });
    ended.with(&weights).with(&grad)
}

fn verl_metrics(call: &mut Call) -> Ended {
    criteria(call, |call, metrics| {
        let input = VerlInput { old_log_probs: Some(X), rollout_log_probs: Some(X), ..VerlInput::default() };
        let config = VerlConfig { rejection: Some(REJECTION), ..Default::default() };
        metric::verl_metrics(&call.batch(), input, &config, metrics).map(|_| ())
    })
}

fn trl_metrics(call: &mut Call) -> Ended {
    let mut per_source: Vec<RewardSource> = opaque(call, "per_source", 1);
    let mut scratch: Vec<Moments> = call.output("scratch", 1);
    let rewards = TrlRewards { groups: pair(), sources: SCORES, source_weights: &[1.0] };
    let input = TrlInput { rewards: Some(rewards), ..TrlInput::default() };
    let output = TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
    let result = metric::trl_metrics::<f64>(&call.batch(), input, &TrlConfig::default(), output).map(|_| ());
    Ended::new(result).with(&scratch)
}

fn openrlhf_metrics(call: &mut Call) -> Ended {
    let mut scratch: Vec<Moments> = call.output("scratch", 1);
    let input = OpenRlhfInput { scores: Some(SCORES), groups: Some(pair()), ..OpenRlhfInput::default() };
    Ended::new(metric::openrlhf_metrics(&call.batch(), input, &OpenRlhfConfig::default(), &mut scratch)).with(&scratch)
}

fn role_baseline(call: &mut Call) -> Ended {
    // the number of roles is the number of sequences, so it cannot be wrong
    let (scores, mut out) = (call.input("scores", 3), call.output("out", 3));
    let decay = call.number("decay", UNIT);
    let result = RoleBaseline::new(decay).and_then(|baseline| {
        advantage::role_baseline(RoleInput { roles: &[0, 1, 0], scores: &scores }, &mut [baseline; 2], &mut out)
    });
    Ended::new(result).with(&out)
}

pub(super) const FUNCTIONS: &[Function] = &[
    Function { name: "compare", run: profiles::compare },
    Function { name: "role_baseline", run: role_baseline },
    Function { name: "group_relative", run: group_relative },
    Function { name: "leave_one_out", run: leave_one_out },
    Function { name: "leave_one_out_scaled", run: leave_one_out_scaled },
    Function { name: "normalize_scores", run: normalize_scores },
    Function { name: "gpg_advantage", run: gpg_advantage },
    Function { name: "max_rl", run: max_rl },
    Function { name: "decoupled_scores", run: decoupled_scores },
    Function { name: "best_of_group", run: best_of_group },
    Function { name: "length_weighted_baseline", run: length_weighted_baseline },
    Function { name: "reinforce_plus_plus_baseline", run: reinforce_plus_plus_baseline },
    Function { name: "gdpo", run: gdpo },
    Function { name: "optimal_token_baseline", run: |call| optimal(call, false) },
    Function { name: "tir_optimal_token_baseline", run: |call| optimal(call, true) },
    Function { name: "gvpo", run: gvpo },
    Function { name: "trie_complexity", run: trie_complexity },
    Function { name: "m2po_mask", run: m2po_mask },
    Function { name: "dynamic_sampling_filter", run: dynamic_sampling_filter },
    Function { name: "pf_ppo_indices", run: pf_ppo_indices },
    Function { name: "rollout_rejection_metrics", run: rollout_rejection_metrics },
    Function { name: "bypass_loss", run: bypass_loss },
    Function { name: "verl_metrics", run: verl_metrics },
    Function { name: "trl_metrics", run: trl_metrics },
    Function { name: "openrlhf_metrics", run: openrlhf_metrics },
];
