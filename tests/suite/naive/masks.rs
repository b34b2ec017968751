//! Gates, masks and draws around a rollout.

use tokenwise::{
    rollout::{
        GateConfig, GateLevel, GateMode, GateStatistic, GroupRule, OffPolicyConfig, PfPpoRule, Unscored, VetoConfig,
    },
    Divisor, Spread,
};

use super::{count, mean_and_variance, metric, Tokens};

fn one_if(yes: bool) -> f64 {
    f64::from(u8::from(yes))
}

/// The thirteen numbers under verl's keys, in their order.
pub(crate) fn rollout_mismatch(tokens: Tokens<'_>, old: &[f64], rollout: &[f64], divisor: Divisor) -> [f64; 13] {
    let delta = |slot: usize| old[slot] - rollout[slot];
    let row_sum = |values: &dyn Fn(usize) -> f64, row: &std::ops::Range<usize>| -> f64 {
        tokens.kept_of(row).into_iter().map(values).sum()
    };
    let means = |values: &[f64]| -> Vec<f64> {
        let mean = |row| row_sum(&|slot| values[slot], row) / count(tokens.kept_of(row).len(), divisor);
        tokens.rows.iter().map(|row| if tokens.kept_of(row).is_empty() { 0.0 } else { mean(row) }).collect()
    };
    let (of_old, of_rollout) = (means(old), means(rollout));
    let gaps: Vec<f64> = of_rollout.iter().zip(&of_old).map(|(rollout, old)| rollout - old).collect();
    let average =
        |numbers: &[f64], f: &dyn Fn(f64) -> f64| numbers.iter().map(|&x| f(x)).sum::<f64>() / numbers.len() as f64;
    let sums: Vec<f64> = tokens.rows.iter().map(|row| row_sum(&delta, row)).collect();
    [
        average(&of_old, &|x| (-x).exp()),
        average(&of_old, &|x| -x),
        tokens.mean(divisor, |slot| -delta(slot)),
        tokens.mean(divisor, |slot| delta(slot).exp_m1() - delta(slot)),
        average(&of_rollout, &|x| (-x).exp()),
        average(&of_rollout, &|x| -x),
        average(&gaps, &|x| x),
        average(&gaps, &f64::abs),
        gaps.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b)),
        gaps.iter().fold(f64::INFINITY, |a, &b| a.min(b)),
        average(&gaps, &f64::exp),
        tokens.mean(divisor, |slot| (2.0 * delta(slot).clamp(-20.0, 20.0)).exp()) - 1.0,
        average(&sums, &|x| (2.0 * x.clamp(-20.0, 20.0)).exp()) - 1.0,
    ]
}

/// The weights, the share outside the band, and the KL.
pub(crate) fn rollout_gate(
    tokens: Tokens<'_>,
    old: &[f64],
    rollout: &[f64],
    config: &GateConfig,
) -> (Vec<f64>, f64, f64) {
    let p = |log: f64| log.exp().clamp(1e-6, 1.0 - 1e-6);
    let statistic = |slots: &[usize]| {
        let of_token = |&slot: &usize| {
            let (p, q) = (p(rollout[slot]), p(old[slot]));
            match config.statistic {
                GateStatistic::Ratio => old[slot] - rollout[slot],
                GateStatistic::BinaryKl => p * (p / q).ln() + (1.0 - p) * ((1.0 - p) / (1.0 - q)).ln(),
                GateStatistic::TotalVariation => (p - q).abs(),
                _ => panic!("no textbook version of this variant"),
            }
        };
        let mean = slots.iter().map(of_token).sum::<f64>() / slots.len() as f64;
        if config.statistic == GateStatistic::Ratio {
            mean.exp()
        } else {
            mean
        }
    };
    let (mut out, mut units, mut outside) = (vec![0.0; tokens.keep.len()], 0.0, 0.0);
    for row in tokens.rows {
        let slots = tokens.kept_of(row);
        let parts: Vec<&[usize]> = match config.level {
            GateLevel::Sequence if slots.is_empty() => Vec::new(),
            GateLevel::Sequence => vec![&slots],
            _ => slots.chunks(1).collect(),
        };
        for part in parts {
            let s = statistic(part);
            let above = config.statistic != GateStatistic::Ratio || config.lower <= s;
            let inside = above && s <= config.upper;
            units += 1.0;
            outside += one_if(!inside && config.level != GateLevel::Off);
            for &slot in part {
                out[slot] = match (config.level, config.mode) {
                    (GateLevel::Off, _) => 1.0,
                    (_, GateMode::Clip) => s.max(config.lower).min(config.upper),
                    (_, GateMode::Mask) => one_if(inside) * (old[slot] - rollout[slot]).exp(),
                    _ => panic!("no textbook version of this variant"),
                };
            }
        }
    }
    (out, outside / units, tokens.mean(Divisor::Count, |slot| rollout[slot] - old[slot]))
}

/// 1 where the advantage is not negative, or the sequence's mean KL is low.
pub(crate) fn off_policy_sequence_mask(
    tokens: Tokens<'_>,
    log_probs: &[f64],
    old: &[f64],
    advantages: &[f64],
    config: &OffPolicyConfig,
) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let slots = tokens.kept_of(row);
        let k = |&slot: &usize| {
            let k = old[slot] - log_probs[slot];
            if k.is_nan() && config.unscored == Unscored::Ignore {
                0.0
            } else {
                k
            }
        };
        let mean = slots.iter().map(k).sum::<f64>() / slots.len() as f64;
        for slot in slots {
            out[slot] = one_if(advantages[slot] >= 0.0 || mean <= config.threshold);
        }
    }
    out
}

/// 1 where half the squared log-ratio is at most τ.
pub(crate) fn kl_mask(tokens: Tokens<'_>, old: &[f64], rollout: &[f64], tau: f64) -> Vec<f64> {
    tokens.fill(|slot| one_if((old[slot] - rollout[slot]).powi(2) / 2.0 <= tau))
}

/// 1 in sequences all of whose ratios are in the band.
pub(crate) fn sequence_veto(tokens: Tokens<'_>, old: &[f64], rollout: &[f64], config: &VetoConfig) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let slots = tokens.kept_of(row);
        let ratio = |&slot: &usize| (old[slot] - rollout[slot]).exp();
        let outside = slots.iter().map(ratio).any(|x| !(config.lower..=config.upper).contains(&x));
        for slot in slots {
            out[slot] = one_if(!outside);
        }
    }
    out
}

/// Drops the largest squared log-ratio repeatedly until the mean is below τ or one is left.
pub(crate) fn m2po_mask(tokens: Tokens<'_>, old: &[f64], rollout: &[f64], tau: f64) -> Vec<f64> {
    let square = |slot: usize| (old[slot] - rollout[slot]).powi(2);
    let mut left = tokens.kept();
    while left.len() > 1 && left.iter().map(|&slot| square(slot)).sum::<f64>() / left.len() as f64 >= tau {
        let mut worst = 0;
        for place in 1..left.len() {
            if square(left[place]) > square(left[worst]) {
                worst = place;
            }
        }
        left.remove(worst);
    }
    tokens.fill(|slot| one_if(left.contains(&slot)))
}

/// 1 for the share of tokens with the largest entropies.
pub(crate) fn high_entropy_mask(tokens: Tokens<'_>, entropies: &[f64], share: f64) -> Vec<f64> {
    if tokens.kept().is_empty() {
        return vec![0.0; tokens.keep.len()];
    }
    let bound = metric::quantile(tokens, entropies, 1.0 - share);
    tokens.fill(|slot| one_if(entropies[slot] >= bound))
}

/// Largest, mean and deviation of the gaps between probabilities, and their correlation.
pub(crate) fn probability_difference(tokens: Tokens<'_>, old: &[f64], rollout: &[f64]) -> [f64; 4] {
    let (p, q) = (tokens.fill(|slot| old[slot].exp()), tokens.fill(|slot| rollout[slot].exp()));
    let gaps: Vec<f64> = tokens.kept().into_iter().map(|slot| (p[slot] - q[slot]).abs()).collect();
    let (mean, variance) = mean_and_variance(&gaps, Spread::Sample, Divisor::Count);
    let one = gaps.len() == 1;
    [
        gaps.iter().fold(0.0, |a, &b| f64::max(a, b)),
        mean,
        if one { f64::NAN } else { variance.sqrt() },
        if one { f64::NAN } else { metric::correlation(tokens, &p, &q) },
    ]
}

/// 1 up to the first end of each row.
pub(crate) fn response_mask_from_eos(tokens: Tokens<'_>, ids: &[u32], eos: &[u32]) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        for slot in row.clone() {
            out[slot] = 1.0;
            if eos.contains(&ids[slot]) {
                break;
            }
        }
    }
    out
}

/// 1 for each group whose scores differ enough.
pub(crate) fn dynamic_sampling_filter(group_ids: &[u32], scores: &[f64], groups: usize, rule: &GroupRule) -> Vec<f64> {
    let keep = |group: usize| {
        let members = group_ids.iter().zip(scores).filter(|(id, _)| **id as usize == group);
        let own: Vec<f64> = members.map(|(_, &score)| score).collect();
        let (mean, variance) = mean_and_variance(&own, Spread::Sample, Divisor::Count);
        match *rule {
            GroupRule::NotConstant => own.len() == 1 || own.windows(2).any(|pair| pair[0] != pair[1]),
            GroupRule::Spread { at_least } => own.len() > 1 && variance.sqrt() > at_least,
            GroupRule::MeanBetween { low, high } => low < mean && mean < high,
            _ => panic!("no textbook version of this variant"),
        }
    };
    (0..groups).map(|group| one_if(keep(group))).collect()
}

/// A weight for each score.
pub(crate) fn pf_ppo_weights(scores: &[f64], rule: &PfPpoRule) -> Vec<f64> {
    let max = scores.iter().fold(f64::NEG_INFINITY, |a, &b| a.max(b));
    let min = scores.iter().fold(f64::INFINITY, |a, &b| a.min(b));
    let raw = |score: f64| match *rule {
        PfPpoRule::Power { power } => score.abs().powf(power),
        PfPpoRule::MaxMin => one_if(score == max || score == min),
        PfPpoRule::MaxRandom => 0.1 + 0.3 * one_if(score == max),
        _ => panic!("no textbook version of this variant"),
    };
    scores.iter().map(|&score| raw(score) + 1e-8).collect()
}

/// Draws by walking along the weights until the random number is used up.
pub(crate) fn pf_ppo_indices(weights: &[f64], seed: u64, draws: usize) -> Vec<f64> {
    let total: f64 = weights.iter().sum();
    let mut random = tokenwise_tests::generate::Random::new(seed);
    let mut draw = || {
        let mut left = random.between(0.0, total);
        for (index, weight) in weights.iter().enumerate() {
            if left < *weight {
                return index as f64;
            }
            left -= weight;
        }
        weights.len() as f64 - 1.0
    };
    (0..draws).map(|_| draw()).collect()
}
