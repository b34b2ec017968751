//! Everything a framework logs for a batch, by key.

use std::collections::BTreeMap;

use tokenwise::{
    metric::{KlUse, OpenRlhfConfig, OpenRlhfInput, VerlConfig, VerlInput},
    Divisor, Spread,
};

use super::{
    advantage::sequence_sums,
    divergence::kl_value,
    loss,
    masks::{probability_difference, rollout_mismatch},
    mean_and_variance, metric, Tokens,
};

/// By key.
pub(crate) type Numbers = BTreeMap<String, f64>;

pub(super) fn add(numbers: &mut Numbers, key: &str, value: f64) {
    assert!(numbers.insert(key.to_string(), value).is_none(), "{key} twice");
}

/// Mean, largest, smallest; NaN if there are none.
pub(super) fn summary(values: &[f64]) -> [f64; 3] {
    let pick = |f: fn(f64, f64) -> f64| values.iter().copied().reduce(f).unwrap_or(f64::NAN);
    [values.iter().sum::<f64>() / values.len() as f64, pick(f64::max), pick(f64::min)]
}

pub(super) fn mean(values: &[f64]) -> f64 {
    summary(values)[0]
}

fn add_summary(numbers: &mut Numbers, prefix: &str, values: &[f64]) {
    for (name, value) in ["mean", "max", "min"].into_iter().zip(summary(values)) {
        add(numbers, &format!("{prefix}/{name}"), value);
    }
}

pub(super) fn share<T>(values: &[T], yes: impl Fn(&T) -> bool) -> f64 {
    mean(&values.iter().map(|value| f64::from(u8::from(yes(value)))).collect::<Vec<f64>>())
}

pub(super) fn kept(tokens: Tokens<'_>, values: &[f64]) -> Vec<f64> {
    tokens.kept().into_iter().map(|slot| values[slot]).collect()
}

/// NaN for fewer than two.
pub(super) fn deviation(values: &[f64]) -> f64 {
    if values.len() < 2 {
        return f64::NAN;
    }
    mean_and_variance(values, Spread::Sample, Divisor::Count).1.sqrt()
}

/// The metrics of verl, without those of rejection and weights, which have their own textbook versions.
pub(crate) fn verl_metrics(tokens: Tokens<'_>, input: &VerlInput<'_, f64>, config: &VerlConfig<'_>) -> Numbers {
    let mut out = Numbers::new();
    if let Some(responses) = input.response_lengths {
        let lengths: Vec<f64> = responses.tokens.iter().map(|&n| f64::from(n)).collect();
        let whole: Vec<f64> = lengths.iter().copied().filter(|&n| n > 0.0).collect();
        for (prefix, lengths) in [("response_length", &lengths), ("response_length_non_aborted", &whole)] {
            add_summary(&mut out, prefix, lengths);
            let limit = f64::from(responses.limit);
            add(&mut out, &format!("{prefix}/clip_ratio"), share(lengths, |&n| n == limit));
        }
        add(&mut out, "response/aborted_ratio", share(&lengths, |&n| n == 0.0));
        for (prefix, slice) in [("critic/score", input.scores), ("critic/rewards", input.rewards)] {
            if let Some(slice) = slice {
                let sums = sequence_sums(tokens, slice).into_iter().zip(&lengths).filter(|(_, &n)| n > 0.0);
                add_summary(&mut out, prefix, &sums.map(|(sum, _)| sum).collect::<Vec<f64>>());
            }
        }
        if let Some(prompts) = input.prompt_lengths {
            let total: u32 = responses.tokens.iter().chain(prompts.tokens).sum();
            add(&mut out, "perf/total_num_tokens", f64::from(total));
        }
    }
    if let Some(prompts) = input.prompt_lengths {
        let lengths: Vec<f64> = prompts.tokens.iter().map(|&n| f64::from(n)).collect();
        add_summary(&mut out, "prompt_length", &lengths);
        add(&mut out, "prompt_length/clip_ratio", share(&lengths, |&n| n == f64::from(prompts.limit)));
    }
    for (prefix, slice) in
        [("critic/advantages", input.advantages), ("critic/returns", input.returns), ("critic/values", input.values)]
    {
        slice.into_iter().for_each(|slice| add_summary(&mut out, prefix, &kept(tokens, slice)));
    }
    if let (Some(values), Some(returns)) = (input.values, input.returns) {
        let explained = match tokens.kept().len() {
            0 | 1 => f64::NAN,
            _ => metric::explained_variance(tokens, values, returns, &Default::default()),
        };
        add(&mut out, "critic/vf_explained_var", explained);
    }
    let aggregate = |values: &[f64]| match tokens.kept().len() {
        0 => f64::NAN,
        _ => loss::aggregate(tokens, values, &config.aggregate).0,
    };
    input.old_entropies.into_iter().for_each(|slice| add(&mut out, "actor/entropy", aggregate(slice)));
    let entropy = input.entropies.map(&aggregate);
    let kl = input.log_probs.zip(input.ref_log_probs).map(|(policy, reference)| {
        aggregate(&tokens.fill(|slot| kl_value(&config.kl, policy[slot] - reference[slot])))
    });
    entropy.into_iter().for_each(|entropy| add(&mut out, "actor/entropy_loss", entropy));
    if let Some(kl) = kl {
        add(&mut out, "actor/kl_loss", kl);
        add(&mut out, "actor/kl_coef", config.kl_coefficient);
    }
    if let Some(policy) = input.policy_loss {
        add(&mut out, "actor/pg_loss", policy.loss);
        add(&mut out, "actor/pg_clipfrac", policy.clip_fraction);
        add(&mut out, "actor/pg_clipfrac_lower", policy.clip_fraction_lower);
        add(&mut out, "actor/ppo_kl", policy.kl);
        let bonus = config.entropy_coefficient * entropy.unwrap_or(0.0);
        add(&mut out, "actor/loss", policy.loss - bonus + config.kl_coefficient * kl.unwrap_or(0.0));
    }
    if let Some(value) = input.value_loss {
        add(&mut out, "critic/vf_loss", value.loss);
        add(&mut out, "critic/loss", value.loss);
        add(&mut out, "critic/vf_clipfrac", value.clip_fraction);
    }
    if let Some(kl) = input.reward_kl {
        add(&mut out, "actor/reward_kl_penalty", kl.kl);
        add(&mut out, "actor/reward_kl_penalty_coeff", kl.coefficient);
    }
    if let Some(predictions) = input.predictions {
        add(&mut out, "critic/vpred_mean", tokens.mean(config.divisor, |slot| predictions[slot]));
    }
    if let (Some(old), Some(rollout)) = (input.old_log_probs, input.rollout_log_probs) {
        let names = ["diff_max", "diff_mean", "diff_std"].map(|name| format!("training/rollout_probs_{name}"));
        let keys = names.into_iter().chain(["training/rollout_actor_probs_pearson_corr".to_string()]);
        for (key, value) in keys.zip(probability_difference(tokens, old, rollout)) {
            add(&mut out, &key, value);
        }
        add(&mut out, "training/rollout_probs_diff_valid", 1.0);
        let names = tokenwise::rollout::RolloutMismatch::default().entries().map(|(key, _)| key);
        for (key, value) in names.into_iter().zip(rollout_mismatch(tokens, old, rollout, config.divisor)) {
            add(&mut out, key, value);
        }
    }
    if let (Some(old), Some(squares), Some(advantages), Some(norm)) =
        (input.old_log_probs, input.sum_pi_squared, input.advantages, input.gradient_norm)
    {
        let names = tokenwise::metric::VarianceProxy::default().entries().map(|(key, _)| key);
        let columns = [old, squares, advantages];
        let found = metric::variance_proxy(tokens, columns, input.weights, norm, config.divisor);
        names.into_iter().zip(found).for_each(|(key, value)| add(&mut out, key, value));
    }
    out
}

/// The metrics of OpenRLHF.
pub(crate) fn openrlhf_metrics(
    tokens: Tokens<'_>,
    input: &OpenRlhfInput<'_, f64>,
    config: &OpenRlhfConfig<'_>,
) -> Numbers {
    let mut out = Numbers::new();
    let aggregate = |values: &[f64]| match tokens.kept().len() {
        0 => f64::NAN,
        _ => loss::aggregate(tokens, values, &config.aggregate).0,
    };
    let row_means = |values: &[f64]| {
        let sums = sequence_sums(tokens, values).into_iter().zip(tokens.rows);
        mean(&sums.map(|(sum, row)| sum / tokens.kept_of(row).len() as f64).collect::<Vec<f64>>())
    };
    let token_mean = |values: &[f64]| tokens.mean(Divisor::Count, |slot| values[slot]);
    if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
        let differences = tokens.fill(|slot| policy[slot] - reference[slot]);
        let kl = tokens.fill(|slot| kl_value(&config.kl, differences[slot]));
        let (kl, difference) = match config.kl_use {
            KlUse::Reward => (row_means(&kl), row_means(&differences)),
            KlUse::Loss => (aggregate(&kl), token_mean(&differences)),
            _ => panic!("no textbook version of this variant"),
        };
        add(&mut out, "train/kl", kl);
        add(&mut out, "train/logprobs_diff", difference);
    }
    input.entropies.into_iter().for_each(|slice| add(&mut out, "train/entropy_loss", aggregate(slice)));
    input.rewards.into_iter().for_each(|slice| add(&mut out, "train/return", mean(&sequence_sums(tokens, slice))));
    input.predictions.into_iter().for_each(|slice| add(&mut out, "train/values", token_mean(slice)));
    let spans = tokens.rows.iter().map(|row| match tokens.kept_of(row)[..] {
        [first, .., last] => (last - first + 1) as f64,
        ref few => few.len() as f64,
    });
    add(&mut out, "train/response_length", mean(&spans.collect::<Vec<f64>>()));
    if let Some(scores) = input.scores {
        add(&mut out, "train/reward", mean(scores));
        if let Some(groups) = input.groups {
            let ids: Vec<usize> = groups.ids().collect();
            let of = |group: usize| {
                let members = ids.iter().zip(scores).filter(|(id, _)| **id == group).map(|(_, &score)| score);
                deviation(&members.collect::<Vec<f64>>())
            };
            add(&mut out, "train/group_reward_std", mean(&ids.iter().map(|&group| of(group)).collect::<Vec<f64>>()));
        }
    }
    if let Some(lengths) = input.total_lengths {
        add(&mut out, "train/total_length", mean(&lengths.tokens.iter().map(|&n| f64::from(n)).collect::<Vec<f64>>()));
        add(&mut out, "train/response_clip_ratio", share(lengths.tokens, |&n| n >= lengths.limit));
    }
    input.truncated.into_iter().for_each(|flags| add(&mut out, "train/truncated", share(flags, |&flag| flag)));
    if let Some(policy) = input.policy_loss {
        add(&mut out, "train/policy_loss", policy.loss);
        add(&mut out, "train/ppo_clip_ratio", policy.clip_fraction);
        add(&mut out, "train/ppo_kl", policy.kl);
    }
    if let Some(gate) = input.gate {
        add(&mut out, "train/vllm_kl", gate.kl);
        add(&mut out, "train/is_filter_ratio", gate.filtered);
    }
    input.value_loss.into_iter().for_each(|value| add(&mut out, "train/critic_loss", value.loss));
    out
}
