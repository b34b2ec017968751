//! Scores and KL as token rewards.

use std::collections::HashSet;

use tokenwise::reward::{
    ClippedRewardsConfig, GroupLengthConfig, KlRewardConfig, OverlongConfig, OverlongFloor, RepetitionConfig,
    RewardScaleConfig,
};

use super::{count, divergence::kl_value, Tokens};

/// Each score on the last kept token of its sequence.
pub(crate) fn place_scores(tokens: Tokens<'_>, scores: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for (row, score) in tokens.rows.iter().zip(scores) {
        if let Some(&last) = tokens.kept_of(row).last() {
            out[last] = *score;
        }
    }
    out
}

/// score − β kl.
pub(crate) fn shape_rewards(tokens: Tokens<'_>, scores: &[f64], kl: &[f64], beta: f64) -> Vec<f64> {
    tokens.fill(|slot| scores[slot] - beta * kl[slot])
}

/// score − β kl from log-probabilities, and the mean over sequences of their mean KL.
pub(crate) fn kl_in_reward(
    tokens: Tokens<'_>,
    scores: &[f64],
    old_log_probs: &[f64],
    ref_log_probs: &[f64],
    config: &KlRewardConfig,
) -> (Vec<f64>, f64) {
    let kl = tokens.fill(|slot| kl_value(&config.kl, old_log_probs[slot] - ref_log_probs[slot]));
    let mut mean = 0.0;
    for row in tokens.rows {
        let kept = tokens.kept_of(row);
        if !kept.is_empty() {
            let sum: f64 = kept.iter().map(|&slot| kl[slot]).sum();
            mean += sum / count(kept.len(), config.divisor) / tokens.rows.len() as f64;
        }
    }
    (shape_rewards(tokens, scores, &kl, config.beta), mean)
}

/// Scores minus the penalty for length.
pub(crate) fn overlong_penalty(scores: &[f64], lengths: &[u32], config: &OverlongConfig) -> Vec<f64> {
    let (max_len, buffer) = (f64::from(config.max_len), f64::from(config.buffer));
    let penalised = scores.iter().zip(lengths).map(|(score, &length)| {
        let mut excess = f64::from(length) - (max_len - buffer);
        if config.floor == OverlongFloor::Factor {
            excess = excess.min(buffer);
        }
        score + (-excess / buffer * config.factor).min(0.0)
    });
    penalised.collect()
}

/// Scores minus the penalty on the sum of log-ratios.
pub(crate) fn kl_in_scores(tokens: Tokens<'_>, scores: &[f64], old: &[f64], reference: &[f64], beta: f64) -> Vec<f64> {
    let sum = |row| tokens.kept_of(row).into_iter().map(|slot| old[slot] - reference[slot]).sum::<f64>();
    tokens.rows.iter().zip(scores).map(|(row, score)| score - beta * sum(row)).collect()
}

/// −β kl, and the clipped score on the last kept token.
pub(crate) fn clipped_rewards(
    tokens: Tokens<'_>,
    scores: &[f64],
    kl: &[f64],
    config: &ClippedRewardsConfig,
) -> Vec<f64> {
    let clipped: Vec<f64> = scores.iter().map(|score| score.max(config.low).min(config.high)).collect();
    let placed = place_scores(tokens, &clipped);
    tokens.fill(|slot| -config.beta.max(0.0) * kl[slot] + placed[slot])
}

/// c s or c where truncated.
pub(crate) fn stop_properly_penalty(scores: &[f64], truncated: &[bool], c: f64) -> Vec<f64> {
    let penalised = |score: f64| if c < 0.0 { c } else { c * score };
    scores.iter().zip(truncated).map(|(&score, &cut)| if cut { penalised(score) } else { score }).collect()
}

/// s − penalty where there is no end token.
pub(crate) fn missing_eos_penalty(scores: &[f64], ended: &[bool], penalty: f64) -> Vec<f64> {
    scores.iter().zip(ended).map(|(score, &ended)| if ended { *score } else { score - penalty }).collect()
}

/// Scores clipped to their range, and the share that was outside.
pub(crate) fn reward_scale_clip(scores: &[f64], scale: &RewardScaleConfig) -> (Vec<f64>, f64) {
    let (low, high) = match *scale {
        RewardScaleConfig::Clip { low, high } => (low, high),
        RewardScaleConfig::ShiftScaleClip { bound, .. } => (-bound, bound),
        RewardScaleConfig::Map { from, .. } => from,
        _ => panic!("no textbook version of this variant"),
    };
    let moved = |score: f64| match *scale {
        RewardScaleConfig::ShiftScaleClip { bias, scale, .. } => (score + bias) * scale,
        _ => score,
    };
    let mapped = |x: f64| match *scale {
        RewardScaleConfig::Map { from, to } => to.0 + (x - from.0) / (from.1 - from.0) * (to.1 - to.0),
        _ => x,
    };
    let held = scores.iter().filter(|&&score| moved(score) < low || moved(score) > high).count();
    let out = scores.iter().map(|&score| mapped(moved(score).max(low).min(high))).collect();
    (out, held as f64 / scores.len().max(1) as f64)
}

/// The share of phrases that repeat an earlier one, times the penalty.
pub(crate) fn repetition_penalty(tokens: Tokens<'_>, ids: &[u32], config: &RepetitionConfig) -> Vec<f64> {
    let of_row = |row| {
        let said: Vec<u32> = tokens.kept_of(row).into_iter().map(|slot| ids[slot]).collect();
        let phrases: Vec<&[u32]> = said.windows(config.ngram).collect();
        let distinct: HashSet<&[u32]> = phrases.iter().copied().collect();
        match phrases.len() {
            0 => 0.0,
            total => (1.0 - distinct.len() as f64 / total as f64) * config.penalty,
        }
    };
    tokens.rows.iter().map(of_row).collect()
}

/// Scores minus the group's mean times the weighted shares of the group's greatest lengths.
pub(crate) fn length_penalty_group(
    group_ids: &[u32],
    scores: &[f64],
    lengths: [&[u32]; 3],
    config: &GroupLengthConfig,
) -> Vec<f64> {
    let weights = [config.output_weight, config.input_weight, config.turn_weight];
    let of_sequence = |index: usize| {
        let members: Vec<usize> = (0..scores.len()).filter(|&other| group_ids[other] == group_ids[index]).collect();
        let mean = members.iter().map(|&member| scores[member]).sum::<f64>() / members.len() as f64;
        let mut share = 0.0;
        for (lengths, weight) in lengths.iter().zip(weights) {
            let longest = members.iter().map(|&member| lengths[member]).fold(1, u32::max);
            share += weight * f64::from(lengths[index]) / f64::from(longest);
        }
        scores[index] - mean * share
    };
    (0..scores.len()).map(of_sequence).collect()
}
