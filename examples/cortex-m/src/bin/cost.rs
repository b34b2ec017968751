//! Cost of a formula on bare metal. A feature selects the formula, which runs over a batch; the elapsed ticks are
//! printed. Without a feature nothing runs, as the baseline.
#![no_std]
#![no_main]

use core::{hint::black_box, panic::PanicInfo};

use cortex_m::peripheral::{syst::SystClkSource, Peripherals, SYST};
use cortex_m_rt::entry;
use semihosting::{
    println,
    process::{self, ExitCode},
};
use tokenwise::{Batch, Layout, Mask, Result};

const SEQUENCES: usize = 4;
const LEN: usize = 32;
const TOKENS: usize = SEQUENCES * LEN;
/// Maximum of the timer.
const TIMER: u32 = 0x00ff_ffff;

struct Buffers {
    keep: [bool; TOKENS],
    first: [f32; TOKENS],
    second: [f32; TOKENS],
    third: [f32; TOKENS],
    out: [f32; TOKENS],
}

#[cfg(feature = "gae")]
fn formula(batch: &Batch<'_>, buffers: &mut Buffers) -> Result<()> {
    use tokenwise::advantage::{gae, GaeConfig, GaeInput, GaeOutput};
    let input = GaeInput { rewards: &buffers.first, values: &buffers.second, bootstrap: &[0.0; SEQUENCES] };
    let output = GaeOutput { advantages: &mut buffers.out, returns: &mut buffers.third };
    gae(batch, input, &GaeConfig { lambda: 0.95, ..GaeConfig::default() }, output)
}

#[cfg(feature = "whiten")]
fn formula(batch: &Batch<'_>, buffers: &mut Buffers) -> Result<()> {
    use tokenwise::advantage::{whiten, WhitenConfig};
    whiten(batch, &buffers.first, &WhitenConfig::default(), &mut buffers.out)
}

#[cfg(feature = "ppo")]
fn formula(batch: &Batch<'_>, buffers: &mut Buffers) -> Result<()> {
    use tokenwise::loss::{ppo_clip, PolicyLossInput, PpoConfig};
    let input = PolicyLossInput {
        log_probs: &buffers.first,
        old_log_probs: &buffers.second,
        advantages: &buffers.third,
        weights: None,
    };
    black_box(ppo_clip(batch, input, &PpoConfig::default(), &mut buffers.out)?);
    Ok(())
}

#[cfg(not(any(feature = "gae", feature = "whiten", feature = "ppo")))]
fn formula(batch: &Batch<'_>, buffers: &mut Buffers) -> Result<()> {
    black_box((batch, buffers));
    Ok(())
}

fn cost() -> Result<u32> {
    let ramp = |scale: f32, offset: f32| core::array::from_fn(|t| ((t * 37 % 101) as f32 - 50.0) * scale + offset);
    let mut buffers = Buffers {
        keep: [true; TOKENS],
        first: ramp(0.004, -1.0),
        second: ramp(0.0041, -1.0),
        third: ramp(-0.02, 0.1),
        out: [0.0; TOKENS],
    };
    let keep = buffers.keep;
    let batch = Batch::new(Layout::padded(SEQUENCES, LEN)?, Mask::new(black_box(&keep)))?;
    let begin = SYST::get_current();
    formula(&batch, black_box(&mut buffers))?;
    // the timer counts down
    let ticks = begin.wrapping_sub(SYST::get_current()) & TIMER;
    // all buffers are used, so that every program has the same ones
    black_box((&buffers.first, &buffers.second, &buffers.third, &buffers.out));
    Ok(ticks)
}

#[entry]
fn main() -> ! {
    if let Some(mut peripherals) = Peripherals::take() {
        peripherals.SYST.set_clock_source(SystClkSource::Core);
        peripherals.SYST.set_reload(TIMER);
        peripherals.SYST.clear_current();
        peripherals.SYST.enable_counter();
    }
    let status = match cost() {
        Ok(ticks) => {
            println!("{TOKENS} {ticks}");
            ExitCode::SUCCESS
        }
        Err(_) => ExitCode::FAILURE,
    };
    status.exit_process()
}

// no message: it would link the formatting code
#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    process::exit(1)
}
