//! Estimators without a critic.

use tokenwise::{
    advantage::{self, *},
    Groups, Moments,
};

use crate::errors::{Call, Ended, FINITE, NOT_NEGATIVE, POSITIVE, SEQUENCES, TOKENS, UNIT};

/// Five scores of two prompts.
const SCORES: usize = 5;
fn groups() -> Groups<'static> {
    Groups::from_ids(&[0, 1, 1, 0, 1]).unwrap()
}

/// The two sequences of the batch, of one prompt.
fn pair() -> Groups<'static> {
    Groups::from_ids(&[0, 0]).unwrap()
}

/// Scratch whose content cannot be looked into.
fn opaque<T: Clone + Default>(call: &mut Call, name: &'static str, len: usize) -> Vec<T> {
    vec![T::default(); call.len(name, len)]
}

pub(super) fn best_of_group(call: &mut Call) -> Ended {
    let (scores, mut moments) = (call.input("scores", SCORES), call.output::<Moments>("moments", 2));
    let (mut top, mut out) = (opaque(call, "top", 2), call.output("out", SCORES));
    let config = BestOfGroupConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };
    let result = advantage::best_of_group(&groups(), &scores, &config, scratch, &mut out);
    Ended::new(result).with(&out).with(&moments)
}

pub(super) fn length_weighted_baseline(call: &mut Call) -> Ended {
    let (scores, mut scratch) = (call.input("scores", SEQUENCES), opaque(call, "scratch", 1));
    let mut out = call.output("out", SEQUENCES);
    let config = LengthWeightedConfig::default();
    let result = advantage::length_weighted_baseline(&call.batch(), &pair(), &scores, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out)
}

pub(super) fn gpg_advantage(call: &mut Call) -> Ended {
    let (scores, mut scratch) = (call.input("scores", SCORES), call.output::<Moments>("scratch", 2));
    let mut out = call.output("out", SCORES);
    let config = GpgConfig { norm: call.number("norm", POSITIVE), ..Default::default() };
    let result = advantage::gpg_advantage(&groups(), &scores, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn leave_one_out_scaled(call: &mut Call) -> Ended {
    let (scores, mut scratch) = (call.input("scores", SCORES), call.output::<Moments>("scratch", 2));
    let mut out = call.output("out", SCORES);
    let config = LeaveOneOutScaledConfig { epsilon: call.number("epsilon", NOT_NEGATIVE) };
    let result = advantage::leave_one_out_scaled(&groups(), &scores, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn max_rl(call: &mut Call) -> Ended {
    let (scores, mut scratch) = (call.input("scores", SCORES), call.output::<Moments>("scratch", 2));
    let mut out = call.output("out", SCORES);
    let config = MaxRlConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let result = advantage::max_rl(&groups(), &scores, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn normalize_scores(call: &mut Call) -> Ended {
    let (scores, mut scratch) = (call.input("scores", SCORES), call.output::<Moments>("scratch", 2));
    let mut out = call.output("out", SCORES);
    let config = NormalizeConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let result = advantage::normalize_scores(&groups(), &scores, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn decoupled_scores(call: &mut Call) -> Ended {
    let (sources, mut scratch) = (call.input("sources", 2 * SCORES), call.output::<Moments>("scratch", 2));
    let mut out = call.output("out", SCORES);
    let config = GroupConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let input = GdpoInput { sources: &sources, weights: &[1.0, 2.0] };
    let result = advantage::decoupled_scores(&groups(), input, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn role_baseline(call: &mut Call) -> Ended {
    // the roles say how many sequences there are, so their own number cannot be wrong
    let (scores, mut out) = (call.input("scores", 3), call.output("out", 3));
    let decay = call.number("decay", UNIT);
    let result = RoleBaseline::new(decay)
        .and_then(|baseline| advantage::role_baseline(&[0, 1, 0], &scores, &mut [baseline; 2], &mut out));
    Ended::new(result).with(&out)
}

pub(super) fn reinforce_plus_plus(call: &mut Call) -> Ended {
    let (rewards, bootstrap) = (call.input("rewards", TOKENS), call.input("bootstrap", SEQUENCES));
    let (mut advantages, mut returns) = (call.output("advantages", TOKENS), call.output("returns", TOKENS));
    let gamma = call.number("gamma", UNIT);
    let whiten = WhitenConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let config = ReinforcePlusPlusConfig { gamma, whiten, ..Default::default() };
    let input = ReturnsInput { rewards: &rewards, bootstrap: &bootstrap };
    let output = ReinforcePlusPlusOutput { advantages: &mut advantages, returns: &mut returns };
    let result = advantage::reinforce_plus_plus(&call.batch(), input, &config, output);
    Ended::new(result).with(&advantages).with(&returns)
}

pub(super) fn reinforce_plus_plus_baseline(call: &mut Call) -> Ended {
    let (scores, mut scratch) = (call.input("scores", SEQUENCES), call.output::<Moments>("scratch", 1));
    let mut out = call.output("out", TOKENS);
    let whiten = WhitenConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let config = ReinforcePlusPlusBaselineConfig { whiten, ..Default::default() };
    let (batch, groups) = (call.batch(), pair());
    let result = advantage::reinforce_plus_plus_baseline(&batch, &groups, &scores, &config, &mut scratch, &mut out);
    Ended::new(result).with(&out).with(&scratch)
}

pub(super) fn remax(call: &mut Call) -> Ended {
    let (rewards, baselines) = (call.input("rewards", TOKENS), call.input("baselines", SEQUENCES));
    let (mut advantages, mut returns) = (call.output("advantages", TOKENS), call.output("returns", TOKENS));
    let input = RemaxInput { rewards: &rewards, baselines: &baselines };
    let output = RemaxOutput { advantages: &mut advantages, returns: &mut returns };
    Ended::new(advantage::remax(&call.batch(), input, output)).with(&advantages).with(&returns)
}

fn gdpo_with(call: &mut Call, configs: fn(f64) -> (GroupConfig, WhitenConfig)) -> Ended {
    let (sources, mut moments) = (call.input("sources", 2 * SEQUENCES), call.output::<Moments>("moments", 1));
    let mut scores = call.output::<f64>("scores", SEQUENCES);
    let mut out = call.output("out", TOKENS);
    let (group, whiten) = configs(call.number("epsilon", NOT_NEGATIVE));
    let config = GdpoConfig { group, whiten, ..Default::default() };
    let input = GdpoInput { sources: &sources, weights: &[1.0, 2.0] };
    let scratch = GdpoScratch { moments: &mut moments, scores: &mut scores };
    let result = advantage::gdpo(&call.batch(), &pair(), input, &config, scratch, &mut out);
    Ended::new(result).with(&out).with(&moments).with(&scores)
}

pub(super) fn gdpo(call: &mut Call) -> Ended {
    gdpo_with(call, |epsilon| (GroupConfig { epsilon, ..Default::default() }, WhitenConfig::default()))
}

pub(super) fn gdpo_whitened(call: &mut Call) -> Ended {
    gdpo_with(call, |epsilon| (GroupConfig::default(), WhitenConfig { epsilon, ..Default::default() }))
}

fn optimal(call: &mut Call, kept: bool) -> Ended {
    let rewards = call.input("rewards", TOKENS);
    let (old, squares) = (call.input("old_log_probs", TOKENS), call.input("sum_pi_squared", TOKENS));
    let weights = call.input("is_weights", TOKENS);
    let (mut columns, mut lengths) = (opaque(call, "columns", TOKENS / SEQUENCES), opaque(call, "lengths", 1));
    let (mut advantages, mut returns) = (call.output("advantages", TOKENS), call.output("returns", TOKENS));
    let config = OptimalBaselineConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let input = OptimalBaselineInput {
        rewards: &rewards,
        old_log_probs: &old,
        sum_pi_squared: &squares,
        is_weights: Some(&weights),
    };
    let scratch = OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths };
    let output = OptimalBaselineOutput { advantages: &mut advantages, returns: &mut returns };
    let result = if kept {
        advantage::tir_optimal_token_baseline(&call.batch(), &pair(), input, &config, scratch, output)
    } else {
        advantage::optimal_token_baseline(&call.batch(), &pair(), input, &config, scratch, output)
    };
    Ended::new(result).with(&advantages).with(&returns)
}

pub(super) fn optimal_token_baseline(call: &mut Call) -> Ended {
    optimal(call, false)
}

pub(super) fn tir_optimal_token_baseline(call: &mut Call) -> Ended {
    optimal(call, true)
}

pub(super) fn opd_advantage(call: &mut Call) -> Ended {
    let (teacher, old) = (call.input("teacher_log_probs", TOKENS), call.input("old_log_probs", TOKENS));
    let (advantages, mut out) = (call.input("advantages", TOKENS), call.output("out", TOKENS));
    let config = OpdConfig { coefficient: call.number("coefficient", FINITE) };
    let input = OpdInput { teacher_log_probs: &teacher, old_log_probs: &old, advantages: Some(&advantages) };
    Ended::new(advantage::opd_advantage(&call.batch(), input, &config, &mut out)).with(&out)
}

pub(super) fn minillm_advantage(call: &mut Call) -> Ended {
    let (teacher, old) = (call.input("teacher_log_probs", TOKENS), call.input("old_log_probs", TOKENS));
    let mut out = call.output("out", TOKENS);
    let config = MinillmConfig { gamma: call.number("gamma", UNIT), ..Default::default() };
    let input = MinillmInput { teacher_log_probs: &teacher, old_log_probs: &old };
    Ended::new(advantage::minillm_advantage(&call.batch(), input, &config, &mut out)).with(&out)
}
