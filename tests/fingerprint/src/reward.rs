//! Stage 3.

use tokenwise::{
    divergence::{KlConfig, KlEstimator},
    reward::{
        self, ClippedRewardsConfig, ClippedRewardsInput, GroupLengthConfig, GroupLengthInput, KlInRewardInput,
        KlInScoresInput, KlRewardConfig, MissingEosInput, OverlongConfig, OverlongFloor, OverlongInput,
        RepetitionConfig, RewardScale, ShapeInput, TruncatedInput,
    },
    Divisor,
};

use crate::{
    cases::{Case, Out},
    hash::Value,
    inputs::Random,
    shapes::MOST,
};

const LENGTHS: [u32; 9] = [0, 1, 69, 70, 71, 85, 100, 101, 300];
const FLAGS: [bool; 9] = [true, false, false, true, false, true, true, false, true];

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
    for floor in [OverlongFloor::Unlimited, OverlongFloor::Factor] {
        let input = OverlongInput { scores: case.scores, lengths: &LENGTHS[..case.scores.len()] };
        let config = OverlongConfig { max_len: 100, buffer: 30, factor: 0.7, floor };
        let result = reward::overlong_penalty(input, &config, out.sequences);
        out.record(result);
    }
}

pub(crate) fn repetition_penalty<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let (mut tokens, mut random) = ([0; MOST], Random::new(8));
    let tokens = &mut tokens[..case.batch.tokens()];
    // few enough kinds that phrases come again
    tokens.fill_with(|| random.below(3));
    for ngram in [0, 1, 2, 5] {
        let config = RepetitionConfig { ngram, penalty: -0.7 };
        let result = reward::repetition_penalty(&case.batch, tokens, &config, out.sequences);
        out.record(result);
    }
}

pub(crate) fn length_penalty_group<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for groups in [case.groups, case.paired] {
        for (output_weight, input_weight, turn_weight) in [(0.7, 0.3, 0.1), (1.5, 0.0, -0.2)] {
            let sequences = case.scores.len();
            let input = GroupLengthInput {
                scores: case.scores,
                outputs: &LENGTHS[..sequences],
                inputs: &[0, 3, 0, 9, 7, 0, 1, 1, 0][..sequences],
                turns: &[1, 2, 3, 4, 1, 2, 3, 4, 0][..sequences],
            };
            let config = GroupLengthConfig { output_weight, input_weight, turn_weight };
            let result = reward::length_penalty_group(&groups, input, &config, out.sequences);
            out.record(result);
        }
    }
}

pub(crate) fn kl_in_scores<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for beta in [0.05, -0.3] {
        let input = KlInScoresInput {
            scores: case.scores,
            old_log_probs: case.old_log_probs,
            ref_log_probs: case.ref_log_probs,
        };
        let result = reward::kl_in_scores(&case.batch, input, beta, out.sequences);
        out.record(result);
    }
}

pub(crate) fn clipped_rewards<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (low, high) in [(-1.1, 0.7), (f64::NEG_INFINITY, f64::INFINITY), (1.0, -1.0)] {
        for beta in [0.01, -0.3] {
            let input = ClippedRewardsInput { scores: case.scores, kl: case.rewards };
            let config = ClippedRewardsConfig { beta, low, high };
            let result = reward::clipped_rewards(&case.batch, input, &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn stop_properly_penalty<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for coefficient in [0.7, 0.0, -0.3, 1.5] {
        let input = TruncatedInput { scores: case.scores, truncated: &FLAGS[..case.scores.len()] };
        let result = reward::stop_properly_penalty(input, coefficient, out.sequences);
        out.record(result);
    }
}

pub(crate) fn missing_eos_penalty<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for penalty in [0.7, -0.3] {
        let input = MissingEosInput { scores: case.scores, ended: &FLAGS[..case.scores.len()] };
        let result = reward::missing_eos_penalty(input, penalty, out.sequences);
        out.record(result);
    }
}

pub(crate) fn reward_scale_clip<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for scale in [
        RewardScale::Clip { low: -1.1, high: 0.7 },
        RewardScale::ShiftScaleClip { bias: 0.3, scale: 5.5, bound: 9.0 },
        RewardScale::Map { from: (-1.5, 2.5), to: (0.1, 0.9) },
        RewardScale::Map { from: (1.0, 1.0), to: (0.0, 1.0) },
    ] {
        let result = reward::reward_scale_clip(case.scores, &scale, out.sequences);
        out.record(result);
    }
}
