//! One update on bare metal: advantages, whitening, loss and gradient of two sequences of eight tokens.
//!
//! Nothing is printed, so that the image contains only the formulas.
#![no_std]
#![no_main]

use core::{hint::black_box, panic::PanicInfo};

use cortex_m_rt::entry;
use semihosting::process::{self, ExitCode};
use tokenwise::{
    advantage::{gae, whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    loss::{ppo_clip, PolicyLossInput, PpoConfig},
    Batch, Layout, Mask, Result,
};

const SEQUENCES: usize = 2;
const LEN: usize = 8;
const TOKENS: usize = SEQUENCES * LEN;

/// The third token of the first sequence came from a tool; the second sequence ended early.
const KEEP: [bool; TOKENS] = [
    true, true, false, true, true, true, true, true, //
    true, true, true, true, true, false, false, false,
];
const REWARDS: [f32; TOKENS] = [
    0.0,
    0.0,
    f32::NAN,
    0.0,
    0.0,
    0.0,
    0.0,
    1.0, //
    0.0,
    0.0,
    0.0,
    0.0,
    -1.0,
    f32::NAN,
    f32::NAN,
    f32::NAN,
];
const VALUES: [f32; TOKENS] = [
    0.1,
    0.2,
    f32::NAN,
    0.2,
    0.4,
    0.5,
    0.7,
    0.8, //
    0.1,
    0.0,
    -0.2,
    -0.3,
    -0.6,
    f32::NAN,
    f32::NAN,
    f32::NAN,
];

const OLD_LOG_PROBS: [f32; TOKENS] = [
    -1.5,
    -0.25,
    f32::NAN,
    -2.0,
    -0.5,
    -0.125,
    -3.0,
    -0.75, //
    -0.5,
    -1.0,
    -4.0,
    -0.25,
    -1.5,
    f32::NAN,
    f32::NAN,
    f32::NAN,
];
/// Log-probabilities after an update; two ratios are beyond the clip range.
const LOG_PROBS: [f32; TOKENS] = [
    -1.4,
    -0.25,
    f32::NAN,
    -1.5,
    -0.5,
    -0.25,
    -2.9,
    -0.75, //
    -0.6,
    -1.0,
    -4.5,
    -0.25,
    -1.5,
    f32::NAN,
    f32::NAN,
    f32::NAN,
];

/// Returns the loss and writes its gradient, which a network would propagate.
fn training_step(gradient: &mut [f32; TOKENS]) -> Result<f64> {
    // without the black boxes the compiler would compute the result at build time
    let batch = Batch::new(Layout::padded(SEQUENCES, LEN)?, Mask::new(black_box(&KEEP)))?;
    let [mut raw, mut returns, mut advantages] = [[0.0; TOKENS]; 3];
    let input = GaeInput { rewards: black_box(&REWARDS), values: black_box(&VALUES), bootstrap: &[0.0; SEQUENCES] };
    let output = GaeOutput { advantages: &mut raw, returns: &mut returns };
    gae(&batch, input, &GaeConfig { lambda: 0.95, ..GaeConfig::default() }, output)?;
    whiten(&batch, &raw, &WhitenConfig::default(), &mut advantages)?;
    let input = PolicyLossInput {
        log_probs: black_box(&LOG_PROBS),
        old_log_probs: black_box(&OLD_LOG_PROBS),
        advantages: &advantages,
        weights: None,
    };
    Ok(ppo_clip(&batch, input, &PpoConfig::default(), gradient)?.loss)
}

#[entry]
fn main() -> ! {
    let mut gradient = [0.0; TOKENS];
    let status = match training_step(&mut gradient) {
        Ok(loss) if loss.is_finite() && black_box(&gradient).iter().all(|slope| slope.is_finite()) => ExitCode::SUCCESS,
        _ => ExitCode::FAILURE,
    };
    status.exit_process()
}

// no message: it would link the formatting code
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    process::exit(1)
}
