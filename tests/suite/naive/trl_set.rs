//! Everything TRL logs for a batch, by key.

use tokenwise::{
    divergence::{KlConfig, KlEstimator},
    metric::{ClipConfig, TrlConfig, TrlInput, TrlLevel, TrlRewards, TrlScale},
    Divisor,
};

use super::{
    divergence::kl_value,
    metric,
    sets::{add, deviation, kept, mean, share, summary, Numbers},
    Tokens,
};

fn rewards(input: &TrlRewards<'_, f64>, scale: TrlScale, out: &mut Numbers) {
    let n = input.groups.sequences();
    let score = |k: usize, i: usize| input.sources[k * n + i];
    let scored = |k: usize| (0..n).map(|i| score(k, i)).filter(|x| !x.is_nan()).collect::<Vec<f64>>();
    for k in 0..input.source_weights.len() {
        add(out, &format!("rewards/{k}/mean"), mean(&scored(k)));
        add(out, &format!("rewards/{k}/std"), deviation(&scored(k)));
    }
    let rewards: Vec<Option<f64>> = (0..n)
        .map(|i| {
            let terms = input.source_weights.iter().enumerate().filter(|(k, _)| !score(*k, i).is_nan());
            let terms: Vec<f64> = terms.map(|(k, weight)| weight * score(k, i)).collect();
            (!terms.is_empty()).then(|| terms.iter().sum())
        })
        .collect();
    let all: Vec<f64> = rewards.iter().copied().flatten().collect();
    add(out, "reward", mean(&all));
    add(out, "reward_std", deviation(&all));
    let ids: Vec<usize> = input.groups.ids().collect();
    let flat = |group: usize| match scale {
        TrlScale::Batch => n == 1 || deviation(&all) <= 1e-8,
        TrlScale::Group => {
            let members = ids.iter().zip(&rewards).filter(|(id, _)| **id == group).filter_map(|(_, reward)| *reward);
            input.groups.count() == n || deviation(&members.collect::<Vec<f64>>()) <= 1e-8
        }
        _ => panic!("no textbook version of this variant"),
    };
    add(out, "frac_reward_zero_std", share(&ids, |&group| flat(group)));
}

/// The metrics of TRL; a reward function is named by its number.
pub(crate) fn trl_metrics(tokens: Tokens<'_>, input: &TrlInput<'_, f64>, config: &TrlConfig) -> Numbers {
    let mut out = Numbers::new();
    input.rewards.iter().for_each(|scores| rewards(scores, config.scale, &mut out));
    if let Some(lengths) = input.completion_lengths {
        let names = ["mean", "max", "min"];
        let lengths: Vec<f64> = lengths.iter().map(|&n| f64::from(n)).collect();
        for (name, value) in names.into_iter().zip(summary(&lengths)) {
            add(&mut out, &format!("completions/{name}_length"), value);
        }
        if let Some(flags) = input.truncated {
            add(&mut out, "completions/clipped_ratio", share(flags, |&flag| flag));
            let whole: Vec<f64> = lengths.iter().zip(flags).filter(|(_, &flag)| !flag).map(|(&n, _)| n).collect();
            let found = if whole.is_empty() { [0.0; 3] } else { summary(&whole) };
            for (name, value) in names.into_iter().zip(found) {
                add(&mut out, &format!("completions/{name}_terminated_length"), value);
            }
        }
        if let Some(prompts) = input.prompt_lengths {
            let total = lengths.iter().sum::<f64>() + f64::from(prompts.iter().sum::<u32>());
            add(&mut out, "num_tokens", config.tokens_seen as f64 + total);
        }
    }
    let n = tokens.kept().len();
    let token_mean = |value: &dyn Fn(usize) -> f64| if n == 0 { 0.0 } else { tokens.mean(Divisor::Count, value) };
    input.entropies.into_iter().for_each(|slice| add(&mut out, "entropy", token_mean(&|slot| slice[slot])));
    if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
        let k3 = KlConfig { estimator: KlEstimator::K3, ..Default::default() };
        add(&mut out, "kl", token_mean(&|slot| kl_value(&k3, policy[slot] - reference[slot])));
    }
    if let (Some(new), Some(advantages), true) = (input.log_probs, input.advantages, input.loss.is_none()) {
        let old = input.old_log_probs.unwrap_or(new);
        let clip = ClipConfig {
            clip_low: config.clip_low,
            clip_high: config.clip_high,
            dual_clip: config.dual_clip,
            divisor: Divisor::Count,
        };
        // per sequence, the shares of its units (tokens, or itself) held below and above
        let (mut lows, mut highs, mut weights) = (Vec::new(), Vec::new(), Vec::new());
        for row in tokens.rows {
            let slots = tokens.kept_of(row);
            match config.level {
                TrlLevel::Token if slots.is_empty() => continue,
                TrlLevel::Sequence if slots.is_empty() => {
                    lows.push(0.0);
                    highs.push(0.0);
                    weights.push(1.0);
                    continue;
                }
                _ => {}
            }
            let ratio: Vec<f64> = match config.level {
                TrlLevel::Token => slots.iter().map(|&slot| new[slot] - old[slot]).collect(),
                TrlLevel::Sequence => {
                    vec![slots.iter().map(|&slot| new[slot] - old[slot]).sum::<f64>() / slots.len() as f64]
                }
                _ => panic!("no textbook version of this variant"),
            };
            let a: Vec<f64> = slots.iter().take(ratio.len()).map(|&slot| advantages[slot]).collect();
            let (all, keep) = (0..ratio.len(), vec![true; ratio.len()]);
            let unit = Tokens { rows: std::slice::from_ref(&all), keep: &keep };
            let found = metric::clip_fractions(unit, &ratio, &vec![0.0; ratio.len()], &a, &clip);
            lows.push(found.low);
            highs.push(found.high);
            weights.push(ratio.len() as f64);
        }
        let total: f64 = weights.iter().sum();
        let weighed = |shares: &[f64]| {
            let sum: f64 = shares.iter().zip(&weights).map(|(share, weight)| share * weight).sum();
            if total == 0.0 {
                0.0
            } else {
                sum / total
            }
        };
        add(&mut out, "clip_ratio/low_mean", weighed(&lows));
        add(&mut out, "clip_ratio/high_mean", weighed(&highs));
        add(&mut out, "clip_ratio/region_mean", weighed(&lows) + weighed(&highs));
        add(&mut out, "clip_ratio/low_min", summary(&lows)[2]);
        add(&mut out, "clip_ratio/high_max", summary(&highs)[1]);
    }
    if let (Some(old), Some(rollout)) = (input.old_log_probs, input.rollout_log_probs) {
        let gaps = tokens.kept().into_iter().map(|slot| (old[slot] - rollout[slot]).abs());
        let gaps: Vec<f64> = gaps.filter(|gap| !gap.is_nan()).collect();
        let [mean, max, _] = if gaps.is_empty() { [0.0; 3] } else { summary(&gaps) };
        add(&mut out, "sampling/sampling_logp_difference/mean", mean);
        add(&mut out, "sampling/sampling_logp_difference/max", max);
    }
    if let Some(weights) = input.weights {
        let of: Vec<f64> = match config.weight_level {
            TrlLevel::Token => kept(tokens, weights),
            TrlLevel::Sequence => {
                let first = tokens.rows.iter().filter_map(|row| tokens.kept_of(row).first().copied());
                first.map(|slot| weights[slot]).collect()
            }
            _ => panic!("no textbook version of this variant"),
        };
        let [mean, max, min] = if of.is_empty() { [0.0; 3] } else { summary(&of) };
        add(&mut out, "sampling/importance_sampling_ratio/mean", mean);
        add(&mut out, "sampling/importance_sampling_ratio/max", max);
        add(&mut out, "sampling/importance_sampling_ratio/min", min);
    }
    config.entropy_coefficient.into_iter().for_each(|c| add(&mut out, "entropy_coef", c));
    out
}
