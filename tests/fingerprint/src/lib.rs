//! One fingerprint per formula and number type: a hash over the bits of its results on batches made to find differences
//! (holes, padding, empty rows, poison in dropped slots, lengths around the widths of lanes, extreme numbers,
//! infinities and NaN).
//!
//! The same program runs on every target; equal fingerprints mean equal bits. It needs an allocator, which the formulas
//! do not, and less than 64 KiB of stack.
//!
//! Formulas of the catalogue are called by their entries, with the settings in `rows.json`; one that is not mentioned
//! there is called with usual ones. What has a state, no entry, or more to hash than its entry returns is a function
//! here.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

mod cases;
mod control;
mod direct;
mod hash;
mod inputs;
mod layout;
mod math;
mod profile;
mod rows;
mod shapes;
mod statistics;
mod text;

use alloc::format;

use cases::{tokens, vocabulary};
use math::sweep;
use rows::Rows;

/// Takes other numbers, masks and lengths from now on, the same for equal arguments on every machine. 0 are those of
/// the record.
pub fn vary(variation: u32) {
    inputs::vary(variation);
}

/// Calls `report` with the name (`"gae/f32"`) and the fingerprint of every formula, in a fixed order.
pub fn fingerprints(report: &mut dyn FnMut(&str, u64)) {
    // only a bug in this crate can make the construction of a case fail; the 0 shows it
    macro_rules! each {
        ($($name:literal: $run:ident($formula:path),)*) => {$(
            report(concat!($name, "/f32"), $run::<f32>($formula).unwrap_or(0));
            report(concat!($name, "/f64"), $run::<f64>($formula).unwrap_or(0));
        )*};
    }
    each! {
        "exp": sweep(tokenwise::math::exp),
        "ln": sweep(tokenwise::math::ln),
        "sqrt": sweep(tokenwise::math::sqrt),
        "shift": tokens(layout::shift),
        "moments": tokens(statistics::moments),
        "co_moments": tokens(statistics::co_moments),
        "analysis": tokens(statistics::analysis),
        "running_moments": tokens(statistics::running_moments),
        "histogram": vocabulary(statistics::histogram),
        "parse_rejection": tokens(text::parse_rejection),
        "parse_weight_bound": tokens(text::parse_weight_bound),
        "role_baseline": tokens(control::role_baseline),
        "fixed_kl": tokens(control::fixed_kl),
        "adaptive_kl": tokens(control::adaptive_kl),
        "linear_kl": tokens(control::linear_kl),
        "entropy_budget": tokens(control::entropy_budget),
        "dual_game_step": tokens(control::dual_game_step),
        "compare": tokens(profile::compare),
        "pf_ppo_indices": tokens(direct::pf_ppo_indices),
        "rollout_rejection_metrics": tokens(direct::rollout_rejection_metrics),
        "gdpo": tokens(direct::gdpo),
        "optimal_token_baseline": tokens(direct::optimal_token_baseline),
        "tir_optimal_token_baseline": tokens(direct::tir_optimal_token_baseline),
        "clip_cov_selection": tokens(direct::clip_cov_selection),
        "bypass_loss": tokens(direct::bypass_loss),
    }
    let Ok(rows) = Rows::new() else { return };
    for row in rows.rows().unwrap_or_default() {
        report(&format!("{}/f32", row.name), row.fingerprint::<f32>().unwrap_or(0));
        report(&format!("{}/f64", row.name), row.fingerprint::<f64>().unwrap_or(0));
    }
}
