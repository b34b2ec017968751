//! The policy losses: log-probabilities, advantages and optional weights in; a loss, its metrics and its gradient out.

use tokenwise::{
    loss::{self as core, PolicyLoss, PolicyLossInput},
    Either, Moments,
};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    error::Result,
    export::export,
    js,
    put::numbers,
    read::{count, number, read, ReadLoss as _},
};

#[wasm_bindgen(typescript_custom_section)]
const CONFIGS: &str = include_str!("config.ts");
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("policy.ts");

export! {
    CHAIN = 13;
    surrogate(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:SurrogateConfig)
        -> (loss, grad:T) => surrogate, surrogateF64;
    ppo_clip(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:PpoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => ppoClip, ppoClipF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 14;
    reinforce(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:ReinforceConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => reinforce, reinforceF64;
    cispo(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:CispoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => cispo, cispoF64;
    tis_loss(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:ReinforceConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => tisLoss, tisLossF64;
    clip_cov(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, selected:flags, config:ClipCovConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => clipCov, clipCovF64;
    clip_cov_selection(batch:batch, input{log_probs, old_log_probs, advantages}, seed:count, config:ClipCovConfig)
        -> (:M) => clipCovSelection, clipCovSelectionF64;
    kl_cov(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:KlCovConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => klCov, klCovF64;
    dppo_tv(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:DppoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => dppoTv, dppoTvF64;
    dppo_kl(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:DppoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => dppoKl, dppoKlF64;
    dro(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:DroConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => dro, droF64;
    gmpo(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:GmpoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => gmpo, gmpoF64;
    gspo(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:GspoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => gspo, gspoF64;
    luspo(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:LuspoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => luspo, luspoF64;
    gvpo(batch:batch, groups:groups, input{log_probs, old_log_probs, advantages, weights?}, config:GvpoConfig)
        -> (loss, grad:T) => gvpo, gvpoF64;
    positive_nll(batch:batch, input{log_probs, scores}, mu:number) -> (loss, grad:T) => positiveNll, positiveNllF64;
    sapo(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:SapoConfig)
        -> (loss, clip_fraction, clip_fraction_lower, kl, grad:T) => sapo, sapoF64;
    topr(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, scores, config:ToprConfig)
        -> (loss, grad:T) => topr, toprF64;
    vespo(batch:batch, input{log_probs, old_log_probs, advantages, weights?}, config:VespoConfig)
        -> (loss, phi_mean, grad:T) => vespo, vespoF64;
}

#[inline(never)]
pub(super) fn input<'a>(call: &mut Call<'a>) -> PolicyLossInput<'a, Either> {
    PolicyLossInput {
        log_probs: call.real(),
        old_log_probs: call.real(),
        advantages: call.real(),
        weights: call.optional_real(),
    }
}

#[inline(never)]
fn with_metrics(result: Result<PolicyLoss>) -> Result {
    let result = result?;
    numbers(&[result.loss, result.clip_fraction, result.clip_fraction_lower, result.kl]);
    Ok(())
}

/// The losses that differ in their config alone: `name by config;`.
macro_rules! plain_losses {
    ($($name:ident by $config:ident;)+) => {$(
        fn $name(call: &mut Call<'_>) -> Result {
            let config = core::$config::read(call);
            let input = input(call);
            with_metrics(core::$name(call.batch, input, &config, call.real()))
        }
    )+};
}

plain_losses! {
    reinforce by ReinforceConfig;
    ppo_clip by PpoConfig;
    cispo by CispoConfig;
    tis_loss by ReinforceConfig;
    kl_cov by KlCovConfig;
    dppo_tv by DppoConfig;
    dppo_kl by DppoConfig;
    dro by DroConfig;
    gspo by GspoConfig;
    sapo by SapoConfig;
}

fn surrogate(call: &mut Call<'_>) -> Result {
    let config = core::SurrogateConfig::read(call);
    let input = input(call);
    js::put(core::surrogate(call.batch, input, &config, call.real())?);
    Ok(())
}

fn gmpo(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = input(call);
    with_metrics(core::gmpo(call.batch, input, &config, call.real()))
}

fn luspo(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = input(call);
    with_metrics(core::luspo(call.batch, input, &config, call.real()))
}

fn clip_cov(call: &mut Call<'_>) -> Result {
    let (config, selected) = (core::ClipCovConfig::read(call), call.flags());
    let input = input(call);
    with_metrics(core::clip_cov(call.batch, input, &config, selected, call.real()))
}

fn clip_cov_selection(call: &mut Call<'_>) -> Result {
    let (config, seed) = (core::ClipCovConfig::read(call), count());
    let input =
        PolicyLossInput { log_probs: call.real(), old_log_probs: call.real(), advantages: call.real(), weights: None };
    core::clip_cov_selection(call.batch, input, &config, seed, call.flags()).map(|_| ())
}

fn gvpo(call: &mut Call<'_>) -> Result {
    let (config, input, groups) = (read(), input(call), call.groups()?);
    let mut scratch = zeros::<Moments>(groups.count());
    js::put(core::gvpo(call.batch, &groups, input, &config, &mut scratch, call.real())?);
    Ok(())
}

fn positive_nll(call: &mut Call<'_>) -> Result {
    let (mu, log_probs, scores) = (number(), call.real(), call.real());
    js::put(core::positive_nll(call.batch, log_probs, scores, mu, call.real())?);
    Ok(())
}

fn topr(call: &mut Call<'_>) -> Result {
    let (config, scores) = (core::ToprConfig::read(call), call.real());
    let input = input(call);
    js::put(core::topr(call.batch, input, scores, &config, call.real())?);
    Ok(())
}

fn vespo(call: &mut Call<'_>) -> Result {
    let config = core::VespoConfig::read(call);
    let input = input(call);
    let result = core::vespo(call.batch, input, &config, call.real())?;
    numbers(&[result.loss, result.phi_mean]);
    Ok(())
}
