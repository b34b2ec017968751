//! Scores and KL as token rewards.

use tokenwise::reward::{KlRewardConfig, OverlongConfig, OverlongFloor};

use super::{count, divergence::kl_value, Tokens};

/// Each score on the last kept token of its sequence.
pub fn place_scores(tokens: Tokens<'_>, scores: &[f64]) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for (row, score) in tokens.rows.iter().zip(scores) {
        if let Some(&last) = tokens.kept_of(row).last() {
            out[last] = *score;
        }
    }
    out
}

/// score − β kl.
pub fn shape_rewards(tokens: Tokens<'_>, scores: &[f64], kl: &[f64], beta: f64) -> Vec<f64> {
    tokens.fill(|slot| scores[slot] - beta * kl[slot])
}

/// score − β kl from log-probabilities, and the mean over sequences of their mean KL.
pub fn kl_in_reward(
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

/// Scores less the penalty for length.
pub fn overlong_penalty(scores: &[f64], lengths: &[u32], config: &OverlongConfig) -> Vec<f64> {
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
