//! How values and weights are distributed: over the batch, over each sequence.

use tokenwise::metric as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::Real,
    call::{array, arrays, call_one, measure, Size},
    config,
    error::Result,
    export::export,
    object::{number, numbers, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("distribution.ts");

export! {
    #[cfg(feature = "full")]
    REST = 19;
    effective_sample_size(batch, weights) => effectiveSampleSize, effectiveSampleSizeF64;
    quantile(batch, values, level) => quantile, quantileF64;
    row_sums(batch, values) => rowSums, rowSumsF64;
    row_means(batch, values, config) => rowMeans, rowMeansF64;
    row_normalize(batch, values, floor) => rowNormalize, rowNormalizeF64;
    variance_proxy(batch, input, gradient_norm, config) => varianceProxy, varianceProxyF64;
}

fn effective_sample_size<R: Real>(batch: &JsValue, weights: &JsValue) -> Result<JsValue> {
    let mut size = 0.0;
    measure(batch, array::<R>("weights", weights)?, &mut |batch, [weights], []| {
        size = core::effective_sample_size(batch, weights)?;
        Ok(())
    })?;
    Ok(size.into())
}

fn quantile<R: Real>(batch: &JsValue, values: &JsValue, level: &JsValue) -> Result<JsValue> {
    let (level, mut quantile) = (number("level", level)?, 0.0);
    measure(batch, array::<R>("values", values)?, &mut |batch, [values], []| {
        quantile = core::quantile(batch, values, level)?;
        Ok(())
    })?;
    Ok(quantile.into())
}

fn row_sums<R: Real>(batch: &JsValue, values: &JsValue) -> Result<JsValue> {
    call_one::<R, 1>(batch, array("values", values)?, Size::Sequences, &mut |batch, [values], [out]| {
        core::row_sums(batch, values, out)
    })
}

fn row_means<R: Real>(batch: &JsValue, values: &JsValue, config: &JsValue) -> Result<JsValue> {
    let divisor = config::divisor(config)?;
    call_one::<R, 1>(batch, array("values", values)?, Size::Sequences, &mut |batch, [values], [out]| {
        core::row_means(batch, values, divisor, out)
    })
}

fn row_normalize<R: Real>(batch: &JsValue, values: &JsValue, floor: &JsValue) -> Result<JsValue> {
    let floor = number("floor", floor)?;
    call_one::<R, 1>(batch, array("values", values)?, Size::Tokens, &mut |batch, [values], [out]| {
        core::row_normalize(batch, values, floor, out)
    })
}

fn variance_proxy<R: Real>(
    batch: &JsValue,
    input: &JsValue,
    gradient_norm: &JsValue,
    config: &JsValue,
) -> Result<JsValue> {
    let (norm, divisor) = (number("gradientNorm", gradient_norm)?, config::divisor(config)?);
    let weights = Fields::input("input", input)?.optional_array::<R>("weights")?;
    let inputs = arrays::<R, 3>(input, ["oldLogProbs", "sumPiSquared", "advantages"])?;
    let mut proxy = core::VarianceProxy::default();
    measure(batch, inputs, &mut |batch, [old_log_probs, sum_pi_squared, advantages], []| {
        let weights = weights.as_deref();
        let input = core::VarianceProxyInput { old_log_probs, sum_pi_squared, advantages, weights };
        proxy = core::variance_proxy(batch, input, norm, divisor)?;
        Ok(())
    })?;
    numbers(proxy.entries().into_iter())
}
