//! Losses towards a reference or a teacher that use the sampled token alone.

use super::{token::clipped, Given, Tensor};

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
pub(super) fn kl_loss<T: Tensor>(given: &Given<'_, T>) -> T {
    let d = given.column("log_probs").sub(&given.column("ref_log_probs"));
    given.total(&estimate(given, &d)).scale(given.number("coefficient"))
}

/// The distance to the teacher as a reward or as a loss.
pub(super) fn opd_loss<T: Tensor>(given: &Given<'_, T>) -> T {
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
pub(super) fn ref_kl<T: Tensor>(given: &Given<'_, T>) -> T {
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
