//! **Stage 7 of 7 — control.** The controllers that hold nothing but their price have it go in and come out; the others are
//! objects, see [`crate::state`].

use tokenwise::control as core;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::Call,
    error::Result,
    export::export,
    js,
    read::{number, read, size},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("control.ts");
#[wasm_bindgen(typescript_custom_section)]
const MACHINES: &str = include_str!("control/machines.ts");

export! {
    #[cfg(feature = "full")]
    REST = 21;
    fixed_kl(!beta:number, kl:number, samples:size) -> () => fixedKl;
    adaptive_kl(!config:AdaptiveKlConfig, kl:number, samples:size) -> () => adaptiveKl;
}

fn fixed_kl(_: &mut Call<'_>) -> Result {
    let (beta, kl, samples) = (number(), number(), size() as u32);
    js::put(core::FixedKl::new(beta)?.update(kl, samples)?);
    Ok(())
}

fn adaptive_kl(_: &mut Call<'_>) -> Result {
    let (config, kl, samples) = (read(), number(), size() as u32);
    js::put(core::AdaptiveKl::new(&config)?.update(kl, samples)?);
    Ok(())
}
