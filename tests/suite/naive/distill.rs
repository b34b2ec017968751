//! Distillation losses that use the sampled token alone.

use tokenwise::{
    loss::{
        BypassForm, IwOpdConfig, IwOpdLoss, KlLoss, KlLossConfig, OpdLoss, OpdLossConfig, OpdRoute, PolicyLoss,
        PolicyLossInput, PpoConfig, RefKlConfig, RefKlLoss, ReinforceConfig, SurrogateConfig,
    },
    rollout::{Criterion, RolloutConfig},
    Divisor,
};

use super::{
    divergence::{kl_slope, kl_value},
    loss::{aggregate, ppo_clip, surrogate},
    rollout,
    token_loss::{mean_or_zero, reinforce},
    Tokens,
};

/// β times the aggregated estimate.
pub(crate) fn kl_loss(
    tokens: Tokens<'_>,
    log_probs: &[f64],
    reference: &[f64],
    config: &KlLossConfig<'_>,
) -> (KlLoss, Vec<f64>) {
    let d = |slot: usize| log_probs[slot] - reference[slot];
    let losses = tokens.fill(|slot| kl_value(&config.kl, d(slot)));
    let (aggregated, weights) = aggregate(tokens, &losses, &config.aggregate);
    let grad = tokens.fill(|slot| config.coefficient * weights[slot] * kl_slope(&config.kl, d(slot)));
    let mean = mean_or_zero(tokens, Divisor::Count, |slot| losses[slot]);
    let mut result = KlLoss::default();
    result.loss = config.coefficient * aggregated;
    result.aggregated = aggregated;
    result.mean = mean;
    (result, grad)
}

/// 0 if there are none.
pub(crate) fn smallest_and_largest(tokens: Tokens<'_>, value: impl Fn(usize) -> f64) -> (f64, f64) {
    let values: Vec<f64> = tokens.kept().into_iter().map(value).collect();
    if values.is_empty() {
        return (0.0, 0.0);
    }
    (values.iter().copied().fold(f64::INFINITY, f64::min), values.iter().copied().fold(f64::NEG_INFINITY, f64::max))
}

/// The distance as a reward or as a loss; `input.advantages` are the teacher's log-probabilities.
pub(crate) fn opd_loss(
    tokens: Tokens<'_>,
    input: PolicyLossInput<'_, f64>,
    config: &OpdLossConfig<'_>,
) -> (OpdLoss, Vec<f64>) {
    let most = config.max_loss.unwrap_or(f64::INFINITY);
    let d = |slot: usize| input.log_probs[slot] - input.advantages[slot];
    let estimates = tokens.fill(|slot| kl_value(&config.kl, d(slot)));
    let advantages = tokens.fill(|slot| -estimates[slot].min(most).max(-most));
    let fed = PolicyLossInput { advantages: &advantages, ..input };
    let &OpdLossConfig { clip_low, clip_high, dual_clip, log_ratio_bound, aggregate: how, divisor, .. } = config;
    let (policy, mut grad) = match config.route {
        OpdRoute::Clipped => {
            let config = PpoConfig {
                clip_low,
                clip_high,
                dual_clip,
                log_ratio_bound,
                divisor,
                aggregate: how,
                ..Default::default()
            };
            ppo_clip(tokens, fed, &config)
        }
        OpdRoute::Surrogate => {
            let (loss, grad) = surrogate(tokens, fed, &SurrogateConfig { log_ratio_bound, aggregate: how });
            let mut result = PolicyLoss::default();
            result.loss = loss;
            (result, grad)
        }
        OpdRoute::Reinforce => reinforce(tokens, fed, &ReinforceConfig { aggregate: how, divisor }),
        OpdRoute::Supervised => {
            let omega = |slot: usize| input.weights.map_or(1.0, |weights| weights[slot]);
            let losses = tokens.fill(|slot| -advantages[slot] * omega(slot));
            let (loss, weights) = aggregate(tokens, &losses, &how);
            let slope = |slot: usize| if estimates[slot].abs() > most { 0.0 } else { kl_slope(&config.kl, d(slot)) };
            let grad = tokens.fill(|slot| weights[slot] * omega(slot) * slope(slot));
            let mut result = PolicyLoss::default();
            result.loss = loss;
            (result, grad)
        }
        _ => panic!("no textbook version of this variant"),
    };
    let bound = match config.route {
        OpdRoute::Clipped | OpdRoute::Surrogate => log_ratio_bound.unwrap_or(f64::INFINITY),
        _ => f64::INFINITY,
    };
    let kl = mean_or_zero(tokens, divisor, |slot| {
        -(input.log_probs[slot] - input.old_log_probs[slot]).max(-bound).min(bound)
    });
    grad.iter_mut().for_each(|slope| *slope *= config.coefficient);
    let (loss_min, loss_max) = smallest_and_largest(tokens, |slot| estimates[slot]);
    let empty = tokens.kept().is_empty();
    let mut result = OpdLoss::default();
    result.loss = config.coefficient * policy.loss;
    result.clip_fraction = if empty { 0.0 } else { policy.clip_fraction };
    result.clip_fraction_lower = if empty { 0.0 } else { policy.clip_fraction_lower };
    result.kl = kl;
    result.abs_loss = mean_or_zero(tokens, Divisor::Count, |slot| estimates[slot].abs());
    result.loss_min = loss_min;
    result.loss_max = loss_max;
    (result, grad)
}

/// The teacher's gain as advantage; `input.advantages` are the teacher's log-probabilities.
pub(crate) fn ref_kl(
    tokens: Tokens<'_>,
    input: PolicyLossInput<'_, f64>,
    config: &RefKlConfig<'_>,
) -> (RefKlLoss, Vec<f64>) {
    let d = |slot: usize| input.log_probs[slot] - input.old_log_probs[slot];
    let gap = |slot: usize| input.advantages[slot] - input.log_probs[slot];
    let fallen = |slot: usize| input.log_probs[slot].exp() - input.old_log_probs[slot].exp() < -config.fall;
    let omega = |slot: usize| input.weights.map_or(1.0, |weights| weights[slot]);
    let gain = |slot: usize| if fallen(slot) { 0.0 } else { d(slot).exp() * gap(slot) };
    let losses = tokens.fill(|slot| (config.drift * d(slot).powi(2) - gain(slot)) * omega(slot));
    let (loss, weights) = aggregate(tokens, &losses, &config.aggregate);
    let grad = tokens.fill(|slot| weights[slot] * omega(slot) * (2.0 * config.drift * d(slot) - gain(slot)));
    let mean_where = |chosen: &dyn Fn(usize) -> bool, value: &dyn Fn(usize) -> f64| {
        let slots: Vec<usize> = tokens.kept().into_iter().filter(|&slot| chosen(slot)).collect();
        slots.iter().map(|&slot| value(slot)).sum::<f64>() / slots.len().max(1) as f64
    };
    let mismatch = |slot: usize| d(slot).exp() - 1.0 - d(slot);
    let mut result = RefKlLoss::default();
    result.loss = loss;
    result.ref_kl = mean_where(&|_| true, &gap);
    result.fallen = mean_where(&|_| true, &|slot| f64::from(u8::from(fallen(slot))));
    result.mismatch_fallen = mean_where(&fallen, &mismatch);
    result.mismatch_kept = mean_where(&|slot| !fallen(slot), &mismatch);
    (result, grad)
}

/// Early tokens have more weight; `teacher` and `old` make the advantage.
pub(crate) fn iw_opd(
    tokens: Tokens<'_>,
    [log_probs, old, teacher]: [&[f64]; 3],
    config: &IwOpdConfig<'_>,
) -> (IwOpdLoss, Vec<f64>) {
    let mut weights = vec![0.0; tokens.keep.len()];
    let a = |slot: usize| teacher[slot] - old[slot];
    for row in tokens.rows {
        let kept = tokens.kept_of(row);
        let total = kept.iter().map(|&slot| a(slot).abs()).sum::<f64>().max(config.epsilon);
        for (t, &slot) in kept.iter().enumerate() {
            let before: f64 = kept[..t].iter().map(|&slot| a(slot).abs()).sum();
            weights[slot] = 1.0 + config.gamma * (1.0 - before / total);
        }
    }
    let losses = tokens.fill(|slot| -log_probs[slot] * weights[slot] * a(slot));
    let (loss, shares) = aggregate(tokens, &losses, &config.aggregate);
    let grad = tokens.fill(|slot| -shares[slot] * weights[slot] * a(slot));
    let mean = |value: &dyn Fn(usize) -> f64| mean_or_zero(tokens, Divisor::Count, value);
    let (min_weight, max_weight) = smallest_and_largest(tokens, |slot| weights[slot]);
    let mut result = IwOpdLoss::default();
    result.loss = loss;
    result.mean_advantage = mean(&|slot| weights[slot] * a(slot));
    result.mean_abs_advantage = mean(&|slot| a(slot).abs());
    result.mean_weight = mean(&|slot| weights[slot]);
    result.min_weight = min_weight;
    result.max_weight = max_weight;
    (result, grad)
}

/// Weights, the tokens left after rejection, policy loss and gradient.
pub(crate) fn bypass_loss(
    tokens: Tokens<'_>,
    input: PolicyLossInput<'_, f64>,
    weights: Option<&RolloutConfig>,
    (criteria, divisor): (&[Criterion], Divisor),
    form: &BypassForm<'_>,
) -> (PolicyLoss, [Vec<f64>; 3]) {
    let (new, old) = (input.log_probs, input.old_log_probs);
    let omega = weights.map_or(tokens.fill(|_| 1.0), |config| rollout::rollout_weights(tokens, new, old, config).0);
    let left = rollout::rollout_rejection(tokens, new, old, criteria, divisor);
    let keep: Vec<bool> = left.iter().map(|&left| left == 1.0).collect();
    let rest = Tokens { rows: tokens.rows, keep: &keep };
    let (policy, grad) = if rest.kept().is_empty() {
        (PolicyLoss::default(), vec![0.0; keep.len()])
    } else {
        match form {
            BypassForm::PpoClip(config) => ppo_clip(rest, input, config),
            BypassForm::Reinforce(config) => {
                reinforce(rest, PolicyLossInput { weights: Some(&omega), ..input }, config)
            }
            _ => panic!("no textbook version of this variant"),
        }
    };
    (policy, [omega, left, grad])
}
