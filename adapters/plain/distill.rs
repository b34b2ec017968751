//! Losses towards a reference or a teacher that use the sampled token alone.

use serde_json::json;

use super::{
    cases::{List, WEIGHTS},
    token::clipped,
    Given,
    Mode::TokenMean,
    Tensor,
};

/// The calls, each with the settings that change its gradient.
pub(super) fn cases<T: Tensor>(list: &mut List<T>) {
    for estimator in ["k1", "abs", "k2", "k3"] {
        for gradient in ["own", "straight-through"] {
            let config = json!({ "coefficient": 0.3, "kl": { "estimator": estimator, "gradient": gradient } });
            list.add("kl_loss", kl_loss, TokenMean, &[], config);
        }
    }
    // K1 as a supervised loss is refused: its gradient is that of nothing
    for (route, estimators) in [
        ("clipped", ["k1", "k3"]),
        ("surrogate", ["k1", "k3"]),
        ("reinforce", ["k1", "k3"]),
        ("supervised", ["k2", "k3"]),
    ] {
        for estimator in estimators {
            let config = json!({
                "route": route, "max_loss": 0.3, "coefficient": 0.7, "clip_low": 0.2, "clip_high": 0.2,
                "kl": { "estimator": estimator },
            });
            list.add("opd_loss", opd_loss, TokenMean, WEIGHTS, config);
        }
    }
    list.add("ref_kl", ref_kl, TokenMean, WEIGHTS, json!({ "fall": 0.05, "drift": 0.1 }));
    list.add("bypass_loss", bypass_loss, TokenMean, &[], json!({ "form": "ppo-clip" }));
    let truncated = json!({ "form": "reinforce", "weights": { "bound": { "kind": "truncate", "upper": 1.1 } } });
    list.add("bypass_loss", bypass_loss, TokenMean, &[], truncated);
}

/// The estimate of d = log π − log π_ref; the straight-through form has its own gradient.
fn estimate<T: Tensor>(given: &Given<'_, T>, d: &T) -> T {
    let kl = &given.case.config["kl"];
    let half_square = d.square().scale(0.5);
    let value = match kl["estimator"].as_str() {
        Some("k3") => d.neg().exp().plus(-1.0).add(d),
        Some("k2") => half_square.clone(),
        Some("abs") => d.abs(),
        _ => d.clone(),
    };
    match kl["gradient"].as_str() {
        Some("straight-through") => value.detach().add(&half_square).sub(&half_square.detach()),
        _ => value,
    }
}

/// β times the aggregated estimate.
fn kl_loss<T: Tensor>(given: &Given<'_, T>) -> T {
    let d = given.column("log_probs").sub(&given.column("ref_log_probs"));
    given.total(&estimate(given, &d)).scale(given.number("coefficient"))
}

/// The distance to the teacher as a reward or as a loss.
fn opd_loss<T: Tensor>(given: &Given<'_, T>) -> T {
    let most = given.number("max_loss");
    let log_probs = given.column("log_probs");
    let held = estimate(given, &log_probs.sub(&given.column("teacher_log_probs"))).clamp(-most, most);
    let advantages = held.detach().neg();
    let losses = match given.case.config["route"].as_str() {
        Some("clipped") => clipped(given, &advantages),
        Some("surrogate") => given.log_ratio().exp().mul(&advantages).neg(),
        Some("reinforce") => log_probs.mul(&advantages).neg(),
        _ => held,
    };
    given.total(&losses).scale(given.number("coefficient"))
}

/// −ρ (log π_ref − log π), both factors of which the gradient of the core holds constant but for ρ; and a price for d².
fn ref_kl<T: Tensor>(given: &Given<'_, T>) -> T {
    let (log_probs, d) = (given.column("log_probs"), given.log_ratio());
    let gap = given.column("ref_log_probs").sub(&log_probs).detach();
    let fallen = log_probs.exp().sub(&given.column("old_log_probs").exp()).indicator(|x| x < -given.number("fall"));
    let gain = d.exp().mul(&gap).mul(&fallen.neg().plus(1.0));
    given.total(&d.square().scale(given.number("drift")).sub(&gain))
}

/// verl's bypass mode: the clipped loss, or −A log π with truncated weights.
pub(super) fn bypass_loss<T: Tensor>(given: &Given<'_, T>) -> T {
    let config = &given.case.config;
    match config["form"].as_str() {
        Some("reinforce") => {
            let cap = config["weights"]["bound"]["upper"].as_f64().unwrap_or(f64::NAN);
            let weights = given.log_ratio().exp().at_most(cap);
            given.total(&super::token::imitation(given, &weights))
        }
        _ => {
            let (ratio, advantages) = (given.log_ratio().exp(), given.column("advantages"));
            let inside = ratio.clamp(0.8, 1.2);
            given.total(&ratio.mul(&advantages).neg().max(&inside.mul(&advantages).neg()))
        }
    }
}
