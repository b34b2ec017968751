//! How values and weights are distributed: over the batch, over each sequence.

use tokenwise::metric as core;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::Call,
    error::Result,
    export::export,
    js,
    put::entries,
    read::{number, read},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("distribution.ts");

export! {
    #[cfg(feature = "full")]
    REST = 19;
    effective_sample_size(batch:batch, weights) -> () => effectiveSampleSize, effectiveSampleSizeF64;
    quantile(batch:batch, values, level:number) -> () => quantile, quantileF64;
    row_sums(batch:batch, values) -> (:S) => rowSums, rowSumsF64;
    row_means(batch:batch, values, config:DivisorOnly) -> (:S) => rowMeans, rowMeansF64;
    row_normalize(batch:batch, values, floor:number) -> (:T) => rowNormalize, rowNormalizeF64;
    variance_proxy(
        batch:batch, input{old_log_probs, sum_pi_squared, advantages, weights?}, gradient_norm:number,
        config:DivisorOnly) -> (*) => varianceProxy, varianceProxyF64;
}

fn effective_sample_size(call: &mut Call<'_>) -> Result {
    let weights = call.real();
    js::put(core::effective_sample_size(call.batch, weights)?);
    Ok(())
}

fn quantile(call: &mut Call<'_>) -> Result {
    let (level, values) = (number(), call.real());
    js::put(core::quantile(call.batch, values, level)?);
    Ok(())
}

fn row_sums(call: &mut Call<'_>) -> Result {
    let values = call.real();
    core::row_sums(call.batch, values, call.real())
}

fn row_means(call: &mut Call<'_>) -> Result {
    let (divisor, values) = (read(), call.real());
    core::row_means(call.batch, values, divisor, call.real())
}

fn row_normalize(call: &mut Call<'_>) -> Result {
    let (floor, values) = (number(), call.real());
    core::row_normalize(call.batch, values, floor, call.real())
}

fn variance_proxy(call: &mut Call<'_>) -> Result {
    let (divisor, norm) = (read(), number());
    let input = core::VarianceProxyInput {
        old_log_probs: call.real(),
        sum_pi_squared: call.real(),
        advantages: call.real(),
        weights: call.optional_real(),
    };
    entries(core::variance_proxy(call.batch, input, norm, divisor)?.entries().into_iter());
    Ok(())
}
