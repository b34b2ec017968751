//! Returns and advantages with a critic, each as the sum it stands for.

use tokenwise::advantage::{
    Across, GaeConfig, GaeDecoupledConfig, NStepConfig, PolicyLambda, PufferConfig, PufferInput, PufferVariant,
    RetraceConfig, RetraceInput, TdInput, TdLambdaConfig, TraceCoefficient, VtraceConfig, VtraceInput,
};

use super::{
    advantage::{gae, steps},
    Tokens,
};

/// One sequence as its steps: a dropped step has reward and value 0.
struct Episode {
    slots: Vec<usize>,
    rewards: Vec<f64>,
    /// One more than there are steps: the last is the bootstrap.
    values: Vec<f64>,
}

fn episodes(tokens: Tokens<'_>, input: &TdInput<'_, f64>, across: Across) -> Vec<Episode> {
    let of = |numbers: &[f64], slot: usize| if tokens.keep[slot] { numbers[slot] } else { 0.0 };
    let episode = |(row, &after): (&std::ops::Range<usize>, &f64)| {
        let slots = steps(tokens, row, across);
        Episode {
            rewards: slots.iter().map(|&slot| of(input.rewards, slot)).collect(),
            values: slots.iter().map(|&slot| of(input.values, slot)).chain([after]).collect(),
            slots,
        }
    };
    tokens.rows.iter().zip(input.bootstrap).map(episode).collect()
}

/// A number for each kept step, from its episode and its position there.
fn by_step(tokens: Tokens<'_>, episodes: &[Episode], step: impl Fn(&Episode, usize) -> f64) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for episode in episodes {
        for (t, &slot) in episode.slots.iter().enumerate().filter(|(_, &slot)| tokens.keep[slot]) {
            out[slot] = step(episode, t);
        }
    }
    out
}

/// n rewards, then the value; if fewer are left, all rewards and the bootstrap.
fn n_steps(episode: &Episode, t: usize, n: usize, gamma: f64) -> f64 {
    let end = episode.rewards.len().min(t.saturating_add(n));
    let mut discount = 1.0;
    let mut total = 0.0;
    for reward in &episode.rewards[t..end] {
        total += discount * reward;
        discount *= gamma;
    }
    total + discount * episode.values[end]
}

/// The mixture of all n-step returns up to `most`: (1 − λ) Σ λ^{n−1} G^(n), the rest of the weight on the longest.
fn mixed(episode: &Episode, t: usize, most: usize, gamma: f64, lambda: f64) -> f64 {
    let longest = most.min(episode.rewards.len() - t);
    let (mut total, mut weight) = (0.0, 1.0);
    for n in 1..longest {
        total += (1.0 - lambda) * weight * n_steps(episode, t, n, gamma);
        weight *= lambda;
    }
    total + weight * n_steps(episode, t, longest, gamma)
}

/// The forward view.
pub(crate) fn td_lambda(tokens: Tokens<'_>, input: TdInput<'_, f64>, config: &TdLambdaConfig) -> Vec<f64> {
    let episodes = episodes(tokens, &input, config.across);
    by_step(tokens, &episodes, |episode, t| mixed(episode, t, usize::MAX, config.gamma, config.lambda))
}

/// The forward view, cut off after n steps.
pub(crate) fn n_step_returns(tokens: Tokens<'_>, input: TdInput<'_, f64>, config: &NStepConfig) -> Vec<f64> {
    let episodes = episodes(tokens, &input, config.across);
    by_step(tokens, &episodes, |episode, t| mixed(episode, t, config.n, config.gamma, config.lambda))
}

/// Rewards summed until a token falls short of its value.
pub(crate) fn upgo(tokens: Tokens<'_>, input: TdInput<'_, f64>) -> Vec<f64> {
    let episodes = episodes(tokens, &input, Across::StepOver);
    by_step(tokens, &episodes, |Episode { rewards, values, .. }, t| {
        let mut total = rewards[t];
        for later in t + 1..rewards.len() {
            if rewards[later] + values[later + 1] < values[later] {
                return total + values[later];
            }
            total += rewards[later];
        }
        total + values[rewards.len()]
    })
}

/// Each output of `gae` with its own λ.
pub(crate) fn gae_decoupled(
    tokens: Tokens<'_>,
    input: TdInput<'_, f64>,
    config: &GaeDecoupledConfig,
) -> (Vec<f64>, Vec<f64>) {
    let TdInput { rewards, values, bootstrap } = input;
    let with = |lambda| {
        let config = GaeConfig { gamma: config.gamma, lambda, across: config.across };
        gae(tokens, rewards, values, bootstrap, &config)
    };
    let (_, returns) = with(config.lambda_value);
    let mut advantages = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let lambda = match config.lambda_policy {
            PolicyLambda::Fixed(lambda) => lambda,
            PolicyLambda::LengthAdaptive { alpha } => 1.0 - 1.0 / (alpha * tokens.kept_of(row).len() as f64).max(1.0),
            _ => panic!("no textbook version of this variant"),
        };
        advantages[row.clone()].copy_from_slice(&with(lambda).0[row.clone()]);
    }
    (advantages, returns)
}

/// Σ_k (γλ)^k c_t … c_{t+k−1} δ_{t+k}, from the c and δ of each slot.
fn traced(episode: &Episode, t: usize, decay: f64, c: impl Fn(usize) -> f64, delta: impl Fn(usize) -> f64) -> f64 {
    let (mut total, mut weight) = (0.0, 1.0);
    for later in t..episode.slots.len() {
        total += weight * delta(later);
        weight *= decay * c(episode.slots[later]);
    }
    total
}

/// Targets and advantages.
pub(crate) fn vtrace(tokens: Tokens<'_>, input: VtraceInput<'_, f64>, config: &VtraceConfig) -> (Vec<f64>, Vec<f64>) {
    let VtraceInput { rewards, values, bootstrap, log_probs, old_log_probs } = input;
    let VtraceConfig { gamma, lambda, alpha, .. } = *config;
    let capped = |slot: usize, cap: f64| {
        let ratio = (log_probs[slot] - old_log_probs[slot]).exp();
        (1.0 - alpha) * ratio + alpha * ratio.min(cap)
    };
    let episodes = episodes(tokens, &TdInput { rewards, values, bootstrap }, Across::StepOver);
    let error = |episode: &Episode, t: usize| {
        let Episode { slots, rewards, values } = episode;
        let delta = |k: usize| capped(slots[k], config.rho_bar) * (rewards[k] + gamma * values[k + 1] - values[k]);
        traced(episode, t, gamma * lambda, |slot| capped(slot, config.c_bar), delta)
    };
    let target = |episode: &Episode, t: usize| episode.values[t] + error(episode, t);
    let advantage = |episode: &Episode, t: usize| {
        let Episode { slots, rewards, values } = episode;
        // past the last token the target is the bootstrap, with error 0
        let ahead = lambda * target(episode, t + 1) + (1.0 - lambda) * values[t + 1];
        capped(slots[t], config.rho_bar_pg) * (rewards[t] + gamma * ahead - values[t])
    };
    (by_step(tokens, &episodes, target), by_step(tokens, &episodes, advantage))
}

/// Like the error of `vtrace`, with the ratios given.
pub(crate) fn puffer_advantage(tokens: Tokens<'_>, input: PufferInput<'_, f64>, config: &PufferConfig) -> Vec<f64> {
    let PufferInput { rewards, values, bootstrap, ratios } = input;
    let episodes = episodes(tokens, &TdInput { rewards, values, bootstrap }, Across::StepOver);
    by_step(tokens, &episodes, |episode, t| {
        let Episode { slots, rewards, values } = episode;
        let delta = |k: usize| {
            let rho = ratios[slots[k]].min(config.rho_bar);
            match config.variant {
                PufferVariant::V3 => rho * (rewards[k] + config.gamma * values[k + 1] - values[k]),
                PufferVariant::V4 => rho * rewards[k] + config.gamma * values[k + 1] - values[k],
                _ => panic!("no textbook version of this variant"),
            }
        };
        traced(episode, t, config.gamma * config.lambda, |slot| ratios[slot].min(config.c_bar), delta)
    })
}

/// Q_t + Σ_k γ^k c_{t+1} … c_{t+k} (r + γ V' − Q): eq. 3 of the paper.
pub(crate) fn retrace(tokens: Tokens<'_>, input: RetraceInput<'_, f64>, config: &RetraceConfig) -> Vec<f64> {
    let RetraceInput { rewards, values, action_values, bootstrap, log_probs, old_log_probs } = input;
    let c = |slot: usize| {
        let ratio = (log_probs[slot] - old_log_probs[slot]).exp();
        match config.coefficient {
            TraceCoefficient::Importance => ratio,
            TraceCoefficient::Lambda => config.lambda,
            TraceCoefficient::TreeBackup => config.lambda * log_probs[slot].exp(),
            TraceCoefficient::Retrace => config.lambda * ratio.min(1.0),
            _ => panic!("no textbook version of this variant"),
        }
    };
    let episodes = episodes(tokens, &TdInput { rewards, values, bootstrap }, Across::StepOver);
    by_step(tokens, &episodes, |Episode { slots, rewards, values }, t| {
        let mut total = action_values[slots[t]];
        let mut weight = 1.0;
        for later in t..slots.len() {
            if later > t {
                weight *= config.gamma * c(slots[later]);
            }
            total += weight * (rewards[later] + config.gamma * values[later + 1] - action_values[slots[later]]);
        }
        total
    })
}
