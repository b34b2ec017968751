//! Losses of one token at a time.

use serde_json::{json, Value};

use super::{
    cases::{List, GROUPED, WEIGHTS},
    Given,
    Mode::{PromptMean, SequenceMeanTokenMean, SequenceMeanTokenSum, TokenMean, TokenSum},
    Tensor, KEEP, LEN, SLOTS,
};

/// The calls, each with the settings that change its gradient.
pub(super) fn cases<T: Tensor>(list: &mut List<T>) {
    for mode in [TokenMean, TokenSum, SequenceMeanTokenSum, SequenceMeanTokenMean] {
        list.add("aggregate", aggregate, mode, &[], Value::Null);
        list.add("ppo_clip", ppo_clip, mode, &[], json!({ "clip_low": 0.2, "clip_high": 0.28 }));
    }
    list.add("aggregate", aggregate, PromptMean, GROUPED, Value::Null);
    list.add("ppo_clip", ppo_clip, PromptMean, GROUPED, json!({ "clip_low": 0.2, "clip_high": 0.28 }));
    let dual = json!({ "clip_low": 0.2, "clip_high": 0.28, "dual_clip": { "negative_only": 1.3 } });
    list.add("ppo_clip", ppo_clip, TokenMean, WEIGHTS, dual);
    list.add("surrogate", surrogate, TokenMean, WEIGHTS, json!({}));
    list.add("reinforce", reinforce, TokenMean, WEIGHTS, json!({}));
    list.add("cispo", cispo, TokenMean, &[], json!({ "bounds": { "kind": "relative", "low": 0.2, "high": 0.3 } }));
    list.add("cispo", cispo, TokenMean, WEIGHTS, json!({ "bounds": { "kind": "absolute", "high": 1.1 } }));
    list.add("tis_loss", tis_loss, TokenMean, WEIGHTS, json!({}));
    for (name, plain) in [("dppo_tv", dppo_tv as fn(&Given<'_, T>) -> T), ("dppo_kl", dppo_kl)] {
        list.add(name, plain, TokenMean, &[], json!({ "clip_low": 0.05, "clip_high": 0.06, "ratio_cap": 1.25 }));
    }
    list.add("dro", dro, TokenMean, WEIGHTS, json!({ "beta": 0.3, "divisor": "count" }));
    list.add("sapo", sapo, SequenceMeanTokenMean, &[], json!({ "tau_positive": 1.0, "tau_negative": 1.05 }));
    list.add("kl_cov", kl_cov, TokenMean, WEIGHTS, json!({ "ratio": 0.3, "kl_coef": 0.5 }));
    list.add("clip_cov", clip_cov, TokenMean, &[], json!({ "clip_low": 0.2, "clip_high": 0.2 }));
    list.add("topr", topr, SequenceMeanTokenSum, &[], json!({ "positive": 1.0, "negative": 0.5 }));
    list.fixed("positive_nll", positive_nll, TokenMean, &[], json!({ "mu": 0.3 }));
    for factor in ["half", "whole"] {
        list.add("value_loss", value_loss, TokenMean, &[], json!({ "clip": 0.2, "factor": factor }));
    }
    list.add("entropy_bonus", entropy_bonus, SequenceMeanTokenMean, &[], json!({ "coefficient": 0.01 }));
    for gradient in ["detached", "through"] {
        for (weight, with) in [
            ("plain", &["weights", "weight"][..]),
            ("kl-gated", &["ref_log_probs", "weight"]),
            ("structural", &["ref_log_probs", "weight", "structural"]),
        ] {
            let config = json!({
                "gamma": 0.7, "lambda": 0.3, "beta": 0.1, "clip_low": 0.2, "clip_high": 0.25, "gradient": gradient,
            });
            list.add("dual_game", dual_game, TokenMean, with, config);
            if let Some(case) = list.0.last_mut() {
                case.weight = Some(weight);
            }
        }
    }
}

/// −ρ A.
pub(super) fn surrogate<T: Tensor>(given: &Given<'_, T>) -> T {
    given.total(&plain(given))
}

fn plain<T: Tensor>(given: &Given<'_, T>) -> T {
    given.log_ratio().exp().mul(&given.column("advantages")).neg()
}

/// −min(ρ A, clip(ρ) A), and for negative advantages at most c |A| if there is such a bound.
pub(super) fn clipped<T: Tensor>(given: &Given<'_, T>, advantages: &T) -> T {
    let ratio = given.log_ratio().exp();
    let inside = ratio.clamp(1.0 - given.number("clip_low"), 1.0 + given.number("clip_high"));
    let loss = ratio.mul(advantages).neg().max(&inside.mul(advantages).neg());
    match given.case.config["dual_clip"]["negative_only"].as_f64() {
        None => loss,
        Some(c) => {
            let negative = advantages.indicator(|a| a < 0.0);
            let bounded = loss.min(&advantages.scale(-c));
            bounded.mul(&negative).add(&loss.mul(&negative.scale(-1.0).plus(1.0)))
        }
    }
}

fn ppo_clip<T: Tensor>(given: &Given<'_, T>) -> T {
    given.total(&clipped(given, &given.column("advantages")))
}

/// −A log π times a constant.
pub(super) fn imitation<T: Tensor>(given: &Given<'_, T>, factor: &T) -> T {
    given.column("log_probs").mul(&given.column("advantages")).mul(&factor.detach()).neg()
}

pub(super) fn reinforce<T: Tensor>(given: &Given<'_, T>) -> T {
    given.total(&imitation(given, &given.constant(&[1.0; SLOTS])))
}

/// −sg(clip(ρ)) A log π.
fn cispo<T: Tensor>(given: &Given<'_, T>) -> T {
    let (bounds, ratio) = (&given.case.config["bounds"], given.log_ratio().exp());
    let high = bounds["high"].as_f64().unwrap_or(f64::NAN);
    let held = match bounds["low"].as_f64() {
        Some(low) => ratio.clamp(1.0 - low, 1.0 + high),
        None => ratio.at_most(high),
    };
    given.total(&imitation(given, &held))
}

/// −sg(min(ρ, 1)) A log π.
fn tis_loss<T: Tensor>(given: &Given<'_, T>) -> T {
    given.total(&imitation(given, &given.log_ratio().exp().at_most(1.0)))
}

/// −sg(min(ρ, cap)) A log π on the tokens that have not moved too far.
fn dppo<T: Tensor>(given: &Given<'_, T>, distance: impl Fn(f64, f64) -> (f64, f64)) -> T {
    let [new, old, advantages] = ["log_probs", "old_log_probs", "advantages"].map(|name| given.column(name).numbers());
    let near: Vec<f64> = (0..SLOTS)
        .map(|slot| {
            let (up, down) = distance(new[slot], old[slot]);
            let kept =
                if advantages[slot] > 0.0 { up <= given.number("clip_high") } else { down <= given.number("clip_low") };
            f64::from(u8::from(kept))
        })
        .collect();
    let held = given.log_ratio().exp().at_most(given.number("ratio_cap"));
    given.total(&imitation(given, &held.mul(&given.constant(&near))))
}

fn dppo_tv<T: Tensor>(given: &Given<'_, T>) -> T {
    dppo(given, |new, old| (new.exp() - old.exp(), old.exp() - new.exp()))
}

fn dppo_kl<T: Tensor>(given: &Given<'_, T>) -> T {
    dppo(given, |new, old| {
        let (p, q) = (new.exp(), old.exp());
        let kl = q * (old - new) + (1.0 - q) * ((1.0 - q + 1e-8) / (1.0 - p + 1e-8)).ln();
        // moving towards the old policy is always allowed
        (if p <= q { 0.0 } else { kl }, if p >= q { 0.0 } else { kl })
    })
}

/// −A log π + ½ β d².
fn dro<T: Tensor>(given: &Given<'_, T>) -> T {
    let drift = given.log_ratio().square().scale(0.5 * given.number("beta"));
    let gain = given.column("log_probs").mul(&given.column("advantages"));
    given.total(&drift.sub(&gain))
}

/// −(4/τ) σ(τ (ρ − 1)) A.
fn sapo<T: Tensor>(given: &Given<'_, T>) -> T {
    let (up, down) = (given.number("tau_positive"), given.number("tau_negative"));
    let advantages = given.column("advantages");
    let positive = advantages.indicator(|a| a > 0.0);
    let tau = positive.scale(up - down).plus(down);
    let exponent = given.log_ratio().exp().plus(-1.0).mul(&tau).neg();
    let gate = advantages.fill(4.0).div(&tau).div(&exponent.exp().plus(1.0));
    given.total(&gate.mul(&advantages).neg())
}

/// −ρ A, and κ |d| on the tokens of largest covariance.
fn kl_cov<T: Tensor>(given: &Given<'_, T>) -> T {
    let [a, l] = ["advantages", "log_probs"].map(|name| given.column(name).numbers());
    let kept: Vec<usize> = (0..SLOTS).filter(|&slot| KEEP[slot]).collect();
    let mean = |x: &[f64]| kept.iter().map(|&slot| x[slot]).fold(0.0, |a, b| a + b) / kept.len() as f64;
    let cov = |slot: usize| (a[slot] - mean(&a)) * (l[slot] - mean(&l));
    let mut largest = kept.clone();
    largest.sort_by(|&x, &y| cov(y).total_cmp(&cov(x)));
    largest.truncate(((given.number("ratio") * kept.len() as f64) as usize).max(1));
    let chosen: Vec<f64> = (0..SLOTS).map(|slot| f64::from(u8::from(largest.contains(&slot)))).collect();
    let price = given.log_ratio().abs().mul(&given.constant(&chosen)).scale(given.number("kl_coef"));
    given.total(&plain(given).add(&price))
}

/// The clipped loss without the selected tokens.
fn clip_cov<T: Tensor>(given: &Given<'_, T>) -> T {
    let left: Vec<f64> = super::selected().into_iter().map(|selected| f64::from(u8::from(!selected))).collect();
    given.total(&clipped(given, &given.column("advantages")).mul(&given.constant(&left)))
}

/// Good responses imitated, bad ones by min(ρ, 1).
fn topr<T: Tensor>(given: &Given<'_, T>) -> T {
    let good = given.column("scores").repeat(LEN).indicator(|score| score > 0.0);
    let taper = given.log_ratio().exp().at_most(1.0).scale(given.number("negative"));
    let factor = good.scale(given.number("positive")).add(&taper.mul(&good.neg().plus(1.0)));
    given.total(&imitation(given, &factor))
}

/// μ times the mean of −log π over the tokens of good responses.
fn positive_nll<T: Tensor>(given: &Given<'_, T>) -> T {
    let good = given.column("scores").repeat(LEN).indicator(|score| score > 0.0).mul(&given.mask());
    let sum = given.column("log_probs").mul(&good).sum();
    sum.div(&good.sum()).scale(-given.number("mu"))
}

/// ½ max((v − R)², (clip(v) − R)²).
fn value_loss<T: Tensor>(given: &Given<'_, T>) -> T {
    let [v, old, target] = ["predictions", "values", "returns"].map(|name| given.column(name));
    let clip = given.number("clip");
    let inside = v.max(&old.plus(-clip)).min(&old.plus(clip));
    let error = v.sub(&target).square().max(&inside.sub(&target).square());
    given.total(&error.scale(if given.case.config["factor"] == "whole" { 1.0 } else { 0.5 }))
}

/// −c H.
fn entropy_bonus<T: Tensor>(given: &Given<'_, T>) -> T {
    given.total(&given.column("entropy").scale(-given.number("coefficient")))
}

/// The losses as they are.
pub(super) fn aggregate<T: Tensor>(given: &Given<'_, T>) -> T {
    given.total(&given.column("losses"))
}

/// A clipped loss whose advantages include the price of entropy and of the KL to the reference.
fn dual_game<T: Tensor>(given: &Given<'_, T>) -> T {
    let (l, a) = (given.column("log_probs"), given.column("advantages"));
    let drift = given.case.with.contains(&"ref_log_probs").then(|| l.sub(&given.column("ref_log_probs")));
    let weight = match given.case.weight {
        Some("structural") => given.column("structural"),
        kind => {
            let p = l.exp();
            let plain = p.mul(&p.neg().plus(1.0)).mul(&a.abs());
            match (&drift, kind) {
                (Some(drift), Some("kl-gated")) => plain.mul(&drift.abs()),
                _ => plain,
            }
        }
    };
    let shaped = a.at_least(0.0).add(&a.at_most(0.0).scale(given.number("gamma")));
    let entropy = weight.mul(&l.neg().plus(-1.0)).scale(given.number("lambda"));
    let price = drift.map_or(l.fill(0.0), |drift| drift.scale(given.number("beta")));
    let advantages = shaped.sub(&entropy).sub(&price);
    let advantages = if given.case.config["gradient"] == "through" { advantages } else { advantages.detach() };
    given.total(&clipped(given, &advantages))
}
