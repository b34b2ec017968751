//! Policy losses whose tokens share one ratio.

use tokenwise::{
    loss::{
        Aggregate, AggregateMode, Counts, EmptyRows, GmpoConfig, GspoConfig, GspoForm, GvpoConfig, LuspoConfig,
        PolicyLoss, PolicyLossInput, VespoConfig, VespoLoss,
    },
    Divisor, Groups,
};

use super::{
    count,
    loss::weights,
    token_loss::{log_ratio, mean_or_zero, omega, total, Term},
    Tokens,
};

type Input<'a> = PolicyLossInput<'a, f64>;

/// A number for each sequence, found at each of its kept slots.
fn per_sequence(tokens: Tokens<'_>, of: impl Fn(&[usize]) -> f64) -> Vec<f64> {
    let mut out = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let kept = tokens.kept_of(row);
        let value = of(&kept);
        for slot in kept {
            out[slot] = value;
        }
    }
    out
}

/// The clipped surrogate with s = exp(mean d).
pub fn gspo(tokens: Tokens<'_>, input: Input<'_>, config: &GspoConfig<'_>) -> (PolicyLoss, Vec<f64>) {
    let mean =
        per_sequence(tokens, |kept| kept.iter().map(|&slot| log_ratio(&input, slot)).sum::<f64>() / kept.len() as f64);
    let cap = config.log_ratio_cap.unwrap_or(f64::INFINITY);
    let term = |slot: usize| {
        let (s, a) = (mean[slot].min(cap).exp(), input.advantages[slot]);
        let (plain, clipped) = (-a * s, -a * s.max(1.0 - config.clip_low).min(1.0 + config.clip_high));
        Term {
            loss: plain.max(clipped),
            slope: if clipped > plain || mean[slot] > cap { 0.0 } else { plain },
            held: clipped > plain,
            held_below: false,
            kl: -log_ratio(&input, slot),
        }
    };
    let (result, grad) = total(tokens, &input, &config.aggregate, config.divisor, term);
    match config.form {
        GspoForm::Token => (result, grad),
        // ∂s/∂log π_t = s / n: every token has a share in the slope of every other
        GspoForm::Sequence => {
            let shared =
                per_sequence(tokens, |kept| kept.iter().map(|&slot| grad[slot]).sum::<f64>() / kept.len() as f64);
            (result, shared)
        }
    }
}

/// gspo, sequences weighed by their length.
pub fn luspo(tokens: Tokens<'_>, input: Input<'_>, config: &LuspoConfig) -> (PolicyLoss, Vec<f64>) {
    let config = GspoConfig {
        clip_low: config.clip_low,
        clip_high: config.clip_high,
        form: GspoForm::Sequence,
        log_ratio_cap: None,
        aggregate: Aggregate {
            mode: AggregateMode::SequenceMeanTokenSum,
            empty_rows: EmptyRows::Counted,
            ..Default::default()
        },
        divisor: Divisor::Count,
    };
    gspo(tokens, input, &config)
}

/// −A_i exp(mean d*), d* clipped in log space.
pub fn gmpo(tokens: Tokens<'_>, input: Input<'_>, config: &GmpoConfig) -> (PolicyLoss, Vec<f64>) {
    let share = match config.counts {
        Counts::Local => 1.0 / tokens.rows.len() as f64,
        Counts::Global(counts) => counts.ranks as f64 / counts.sequences as f64,
    };
    let clip = |d: f64| d.max(-config.clip_low).min(config.clip_high);
    let held = |slot: usize| {
        let (d, a) = (log_ratio(&input, slot), input.advantages[slot]);
        let sign = if a == 0.0 { 0.0 } else { a.signum() };
        sign * (sign * d).min(sign * clip(d))
    };
    let mut loss = 0.0;
    let mut grad = vec![0.0; tokens.keep.len()];
    for row in tokens.rows {
        let kept = tokens.kept_of(row);
        if kept.is_empty() {
            continue;
        }
        let n = count(kept.len(), config.divisor);
        let mean = |value: &dyn Fn(usize) -> f64| kept.iter().map(|&slot| value(slot)).sum::<f64>() / n;
        let weight = if input.weights.is_some() { mean(&|slot| (omega(&input, slot) + 1e-10).ln()).exp() } else { 1.0 };
        let value = -mean(&|slot| input.advantages[slot]) * mean(&held).exp() * weight * share;
        loss += value;
        for &slot in &kept {
            let free = held(slot) == log_ratio(&input, slot) && input.advantages[slot] != 0.0;
            grad[slot] = if free { value / n } else { 0.0 };
        }
    }
    let outside = |slot: usize| clip(log_ratio(&input, slot)) != log_ratio(&input, slot);
    let fraction = |yes: &dyn Fn(f64) -> bool| {
        mean_or_zero(tokens, config.divisor, |slot| f64::from(u8::from(outside(slot) && yes(input.advantages[slot]))))
    };
    let result = PolicyLoss {
        loss,
        clip_fraction: fraction(&|a| a > 0.0),
        clip_fraction_lower: fraction(&|a| a < 0.0),
        kl: mean_or_zero(tokens, config.divisor, |slot| -log_ratio(&input, slot)),
    };
    (result, grad)
}

/// −sg(φ(w)) A log π with w the ratio of the whole sequence.
pub fn vespo(tokens: Tokens<'_>, input: Input<'_>, config: &VespoConfig<'_>) -> (VespoLoss, Vec<f64>) {
    let least = 1e-8_f64.ln();
    let logs = per_sequence(tokens, |kept| {
        let ratios: f64 = kept.iter().map(|&slot| log_ratio(&input, slot).clamp(-20.0, 20.0)).sum();
        let rollout: f64 = kept.iter().map(|&slot| omega(&input, slot).ln().clamp(least, 20.0)).sum();
        (ratios + rollout).clamp(least, 20.0)
    });
    let phi = |slot: usize| {
        let positive = input.advantages[slot] >= 0.0;
        let (k, lambda) = match positive {
            true => (config.k_positive, config.lambda_positive),
            false => (config.k_negative, config.lambda_negative),
        };
        (lambda + k * logs[slot] - lambda * logs[slot].exp()).exp()
    };
    let weights = weights(tokens, &config.aggregate);
    let slope = |slot: usize| -phi(slot) * input.advantages[slot];
    let firsts: Vec<usize> = tokens.rows.iter().filter_map(|row| tokens.kept_of(row).first().copied()).collect();
    let phis: f64 = firsts.iter().map(|&slot| phi(slot)).sum();
    let result = VespoLoss {
        loss: tokens.sum(|slot| weights[slot] * slope(slot) * input.log_probs[slot]),
        phi_mean: if firsts.is_empty() { 0.0 } else { phis / firsts.len() as f64 },
    };
    (result, tokens.fill(|slot| weights[slot] * slope(slot)))
}

/// ½ ((u − sg ū) − Ā)² / (K − 1), summed.
pub fn gvpo(tokens: Tokens<'_>, groups: &Groups<'_>, input: Input<'_>, config: &GvpoConfig) -> (f64, Vec<f64>) {
    let ids: Vec<usize> = groups.ids().collect();
    let u = |i: usize| {
        config.beta * tokens.kept_of(&tokens.rows[i]).iter().map(|&slot| log_ratio(&input, slot)).sum::<f64>()
    };
    let mean_advantage = |i: usize| {
        let kept = tokens.kept_of(&tokens.rows[i]);
        kept.iter().map(|&slot| input.advantages[slot]).sum::<f64>() / kept.len().max(1) as f64
    };
    let mut loss = 0.0;
    let mut grad = vec![0.0; tokens.keep.len()];
    for (i, row) in tokens.rows.iter().enumerate() {
        let members: Vec<usize> = (0..ids.len()).filter(|&j| ids[j] == ids[i]).collect();
        let center = members.iter().map(|&j| u(j)).sum::<f64>() / members.len() as f64;
        let error = u(i) - center - mean_advantage(i);
        let others = (members.len() - 1) as f64;
        loss += 0.5 * error * error / others;
        for slot in tokens.kept_of(row) {
            grad[slot] = config.beta * error / others;
        }
    }
    (loss, grad)
}
