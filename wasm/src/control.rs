//! **Stage 7 of 7 — control.** The controllers that hold nothing but their price have it go in and come out; the others are objects.

mod machines;

use tokenwise::control as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    config,
    error::Result,
    export::export,
    object::{number, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("control.ts");
#[wasm_bindgen(typescript_custom_section)]
const MACHINES: &str = include_str!("control/machines.ts");

pub use machines::{DualGame, EntropyBudget, LinearKl};

export! {
    #[cfg(feature = "full")]
    REST = 21;
    fixed_kl(beta, kl, samples) => fixedKl;
    adaptive_kl(config, kl, samples) => adaptiveKl;
}

fn fixed_kl(beta: &JsValue, kl: &JsValue, samples: &JsValue) -> Result<JsValue> {
    let mut controller = core::FixedKl::new(number("beta", beta)?)?;
    Ok(controller.update(number("kl", kl)?, size("samples", samples)? as u32)?.into())
}

fn adaptive_kl(config: &JsValue, kl: &JsValue, samples: &JsValue) -> Result<JsValue> {
    let mut controller = core::AdaptiveKl::new(&config::adaptive_kl(config)?)?;
    Ok(controller.update(number("kl", kl)?, size("samples", samples)? as u32)?.into())
}
