//! Stage 3.

use tokenwise::{
    divergence::{KlConfig, KlEstimator},
    reward::{self, KlInRewardInput, KlRewardConfig, OverlongConfig, OverlongFloor, OverlongInput, ShapeInput},
    Divisor,
};

use crate::{
    cases::{Case, Out},
    hash::Value,
};

pub(crate) fn place_scores<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let result = reward::place_scores(&case.batch, case.scores, out.a);
    out.record(result);
}

pub(crate) fn shape_rewards<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = ShapeInput { scores: case.rewards, kl: case.weights };
    let result = reward::shape_rewards(&case.batch, input, 0.05, out.a);
    out.record(result);
}

pub(crate) fn kl_in_reward<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (estimator, divisor) in [
        (KlEstimator::K1, Divisor::Count),
        (KlEstimator::K3, Divisor::CountPlusEpsilon),
        (KlEstimator::K2, Divisor::Count),
    ] {
        let input = KlInRewardInput {
            scores: case.rewards,
            old_log_probs: case.old_log_probs,
            ref_log_probs: case.ref_log_probs,
        };
        let kl = KlConfig { estimator, ..KlConfig::default() };
        let result = reward::kl_in_reward(&case.batch, input, &KlRewardConfig { beta: 0.05, kl, divisor }, out.a);
        out.record(result);
    }
}

pub(crate) fn overlong_penalty<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    const LENGTHS: [u32; 9] = [0, 1, 69, 70, 71, 85, 100, 101, 300];
    for floor in [OverlongFloor::Unlimited, OverlongFloor::Factor] {
        let input = OverlongInput { scores: case.scores, lengths: &LENGTHS[..case.scores.len()] };
        let config = OverlongConfig { max_len: 100, buffer: 30, factor: 0.7, floor };
        let result = reward::overlong_penalty(input, &config, out.sequences);
        out.record(result);
    }
}
