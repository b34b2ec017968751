//! The policy losses: log-probabilities, advantages and optional weights in; a loss, its metrics and its gradient out.

use tokenwise::{
    loss::{self as core, PolicyLoss, PolicyLossInput},
    Batch,
};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{flags, read, zeros, Real},
    batch::OwnedGroups,
    call::{arrays, call, call_mask, Size},
    config::{self, nested_aggregate, SEQUENCE_MEAN_TOKEN_MEAN, TOKEN_MEAN},
    error::Result,
    export::export,
    object::{count, number, object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const CONFIGS: &str = include_str!("config.ts");
#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("policy.ts");

export! {
    CHAIN = 13;
    surrogate(batch, input, config) => surrogate, surrogateF64;
    ppo_clip(batch, input, config) => ppoClip, ppoClipF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 14;
    reinforce(batch, input, config) => reinforce, reinforceF64;
    cispo(batch, input, config) => cispo, cispoF64;
    tis_loss(batch, input, config) => tisLoss, tisLossF64;
    clip_cov(batch, input, selected, config) => clipCov, clipCovF64;
    clip_cov_selection(batch, input, seed, config) => clipCovSelection, clipCovSelectionF64;
    kl_cov(batch, input, config) => klCov, klCovF64;
    dppo_tv(batch, input, config) => dppoTv, dppoTvF64;
    dppo_kl(batch, input, config) => dppoKl, dppoKlF64;
    dro(batch, input, config) => dro, droF64;
    gmpo(batch, input, config) => gmpo, gmpoF64;
    gspo(batch, input, config) => gspo, gspoF64;
    luspo(batch, input, config) => luspo, luspoF64;
    gvpo(batch, groups, input, config) => gvpo, gvpoF64;
    positive_nll(batch, input, mu) => positiveNll, positiveNllF64;
    sapo(batch, input, config) => sapo, sapoF64;
    topr(batch, input, scores, config) => topr, toprF64;
    vespo(batch, input, config) => vespo, vespoF64;
}

/// The losses that differ in their config alone: `name by config, default aggregation;`.
macro_rules! plain_losses {
    ($($name:ident by $config:ident, $default:ident;)+) => {$(
        fn $name<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
            let aggregate = nested_aggregate(config, $default)?;
            let config = config::$config(config, aggregate.view()?)?;
            with_metrics::<R>(batch, input, &mut |batch, input, grad| core::$name(batch, input, &config, grad))
        }
    )+};
}

plain_losses! {
    reinforce by reinforce, TOKEN_MEAN;
    ppo_clip by ppo, TOKEN_MEAN;
    cispo by cispo, TOKEN_MEAN;
    tis_loss by reinforce, TOKEN_MEAN;
    kl_cov by kl_cov, TOKEN_MEAN;
    dppo_tv by dppo, TOKEN_MEAN;
    dppo_kl by dppo, TOKEN_MEAN;
    dro by dro, TOKEN_MEAN;
    gspo by gspo, SEQUENCE_MEAN_TOKEN_MEAN;
    sapo by sapo, SEQUENCE_MEAN_TOKEN_MEAN;
}

fn surrogate<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = nested_aggregate(config, TOKEN_MEAN)?;
    let config = config::surrogate(config, aggregate.view()?)?;
    with_loss::<R>(batch, input, &mut |batch, input, grad| core::surrogate(batch, input, &config, grad))
}

fn gmpo<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::gmpo(config)?;
    with_metrics::<R>(batch, input, &mut |batch, input, grad| core::gmpo(batch, input, &config, grad))
}

fn luspo<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::luspo(config)?;
    with_metrics::<R>(batch, input, &mut |batch, input, grad| core::luspo(batch, input, &config, grad))
}

fn clip_cov<R: Real>(batch: &JsValue, input: &JsValue, selected: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, selected) = (nested_aggregate(config, TOKEN_MEAN)?, flags("selected", selected)?);
    let config = config::clip_cov(config, aggregate.view()?)?;
    with_metrics::<R>(batch, input, &mut |batch, input, grad| core::clip_cov(batch, input, &config, &selected, grad))
}

fn clip_cov_selection<R: Real>(batch: &JsValue, input: &JsValue, seed: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, seed) = (nested_aggregate(config, TOKEN_MEAN)?, count("seed", seed)?);
    let config = config::clip_cov(config, aggregate.view()?)?;
    let inputs = arrays::<R, 3>(input, KEYS)?;
    call_mask(batch, inputs, &mut |batch, [log_probs, old_log_probs, advantages], selected| {
        let input = PolicyLossInput { log_probs, old_log_probs, advantages, weights: None };
        core::clip_cov_selection(batch, input, &config, seed, selected).map(|_| ())
    })
}

fn gvpo<R: Real>(batch: &JsValue, groups: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::gvpo(config)?);
    let groups = groups.view()?;
    let mut scratch = zeros(groups.count())?;
    with_loss::<R>(batch, input, &mut |batch, input, grad| {
        core::gvpo(batch, &groups, input, &config, &mut scratch, grad)
    })
}

fn positive_nll<R: Real>(batch: &JsValue, input: &JsValue, mu: &JsValue) -> Result<JsValue> {
    let (mu, mut loss) = (number("mu", mu)?, 0.0);
    let inputs = arrays::<R, 2>(input, ["logProbs", "scores"])?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [log_probs, scores], [grad]| {
        loss = core::positive_nll(batch, log_probs, scores, mu, grad)?;
        Ok(())
    })?;
    object([("loss", loss.into()), ("grad", grad)])
}

fn topr<R: Real>(batch: &JsValue, input: &JsValue, scores: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (aggregate, scores) = (nested_aggregate(config, TOKEN_MEAN)?, read::<R>("scores", scores)?);
    let config = config::topr(config, aggregate.view()?)?;
    with_loss::<R>(batch, input, &mut |batch, input, grad| core::topr(batch, input, &scores, &config, grad))
}

fn vespo<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = nested_aggregate(config, TOKEN_MEAN)?;
    let (config, mut result) = (config::vespo(config, aggregate.view()?)?, core::VespoLoss::default());
    let grad = with_grad::<R>(batch, input, &mut |batch, input, grad| {
        result = core::vespo(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([("loss", result.loss.into()), ("phiMean", result.phi_mean.into()), ("grad", grad)])
}

const KEYS: [&str; 3] = ["logProbs", "oldLogProbs", "advantages"];

/// A policy loss: the batch, the inputs, the gradient.
type Loss<'k, R, T> = &'k mut dyn FnMut(&Batch<'_>, PolicyLossInput<'_, R>, &mut [R]) -> tokenwise::Result<T>;

/// Runs a policy loss and gives its gradient.
#[inline(never)]
fn with_grad<R: Real>(batch: &JsValue, input: &JsValue, loss: Loss<'_, R, ()>) -> Result<JsValue> {
    let weights = Fields::input("input", input)?.optional_array::<R>("weights")?;
    let inputs = arrays::<R, 3>(input, KEYS)?;
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [log_probs, old_log_probs, advantages], [grad]| {
        loss(batch, PolicyLossInput { log_probs, old_log_probs, advantages, weights: weights.as_deref() }, grad)
    })?;
    Ok(grad)
}

/// Runs a policy loss that is one number.
#[inline(never)]
fn with_loss<R: Real>(batch: &JsValue, input: &JsValue, loss: Loss<'_, R, f64>) -> Result<JsValue> {
    let mut result = 0.0;
    let grad = with_grad::<R>(batch, input, &mut |batch, input, grad| {
        result = loss(batch, input, grad)?;
        Ok(())
    })?;
    object([("loss", result.into()), ("grad", grad)])
}

/// Runs a policy loss that has metrics.
#[inline(never)]
fn with_metrics<R: Real>(batch: &JsValue, input: &JsValue, loss: Loss<'_, R, PolicyLoss>) -> Result<JsValue> {
    let mut result = PolicyLoss::default();
    let grad = with_grad::<R>(batch, input, &mut |batch, input, grad| {
        result = loss(batch, input, grad)?;
        Ok(())
    })?;
    object([
        ("loss", result.loss.into()),
        ("clipFraction", result.clip_fraction.into()),
        ("clipFractionLower", result.clip_fraction_lower.into()),
        ("kl", result.kl.into()),
        ("grad", grad),
    ])
}
