//! **Stage 6 of 7 — metric.**

#[cfg(feature = "full")]
pub(crate) mod distribution;
#[cfg(feature = "full")]
pub(crate) mod sets;

use tokenwise::{divergence::KlInput, metric as core};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::Real,
    call::{array, arrays, measure},
    config,
    error::Result,
    export::export,
    object::{numbers, object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("metric.ts");

export! {
    CHAIN = 17;
    mean(batch, values, config) => mean, meanF64;
    variance(batch, values, config) => variance, varianceF64;
    analysis(batch, input) => analysis, analysisF64;
    analysis_sums(batch, input) => analysisSums, analysisSumsF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 18;
    correlation(batch, input) => correlation, correlationF64;
    explained_variance(batch, input, config) => explainedVariance, explainedVarianceF64;
    kl_means(batch, input, config) => klMeans, klMeansF64;
    clip_fractions(batch, input, config) => clipFractions, clipFractionsF64;
    moments(batch, values) => moments, momentsF64;
    moments_merge(a, b) => momentsMerge;
    moments_mean(moments, config) => momentsMean;
    moments_variance(moments, config) => momentsVariance;
    co_moments(batch, input) => coMoments, coMomentsF64;
    co_moments_merge(a, b) => coMomentsMerge;
    co_moments_covariance(moments, config) => coMomentsCovariance;
    co_moments_correlation(moments) => coMomentsCorrelation;
    analysis_merge(a, b) => analysisMerge;
    analysis_entries(sums) => analysisEntries;
}

fn mean<R: Real>(batch: &JsValue, values: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (divisor, mut mean) = (config::divisor(config)?, 0.0);
    measure(batch, array::<R>("values", values)?, &mut |batch, [values], []| {
        mean = core::mean(batch, values, divisor)?;
        Ok(())
    })?;
    Ok(mean.into())
}

fn variance<R: Real>(batch: &JsValue, values: &JsValue, config: &JsValue) -> Result<JsValue> {
    let ((spread, divisor), mut variance) = (config::spread_and_divisor(config)?, 0.0);
    measure(batch, array::<R>("values", values)?, &mut |batch, [values], []| {
        variance = core::variance(batch, values, spread, divisor)?;
        Ok(())
    })?;
    Ok(variance.into())
}

fn correlation<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    let mut correlation = 0.0;
    measure(batch, arrays::<R, 2>(input, ["x", "y"])?, &mut |batch, [x, y], []| {
        correlation = core::correlation(batch, core::PairInput { x, y })?;
        Ok(())
    })?;
    Ok(correlation.into())
}

fn explained_variance<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, mut explained) = (config::explained_variance(config)?, 0.0);
    measure(batch, arrays::<R, 2>(input, ["values", "returns"])?, &mut |batch, [values, returns], []| {
        explained = core::explained_variance(batch, core::ExplainedVarianceInput { values, returns }, &config)?;
        Ok(())
    })?;
    Ok(explained.into())
}

fn kl_means<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (divisor, mut means) = (config::divisor(config)?, core::KlMeans::default());
    let inputs = arrays::<R, 2>(input, ["logProbs", "refLogProbs"])?;
    measure(batch, inputs, &mut |batch, [log_probs, ref_log_probs], []| {
        means = core::kl_means(batch, KlInput { log_probs, ref_log_probs }, divisor)?;
        Ok(())
    })?;
    object([("k1", means.k1.into()), ("abs", means.abs.into()), ("k2", means.k2.into()), ("k3", means.k3.into())])
}

fn clip_fractions<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, mut shares) = (config::clip(config)?, core::ClipFractions::default());
    let inputs = arrays::<R, 3>(input, ["logProbs", "oldLogProbs", "advantages"])?;
    measure(batch, inputs, &mut |batch, [log_probs, old_log_probs, advantages], []| {
        shares = core::clip_fractions(batch, core::RatioInput { log_probs, old_log_probs, advantages }, &config)?;
        Ok(())
    })?;
    object([
        ("clipped", shares.clipped.into()),
        ("low", shares.low.into()),
        ("high", shares.high.into()),
        ("dual", shares.dual.into()),
    ])
}

fn moments<R: Real>(batch: &JsValue, values: &JsValue) -> Result<JsValue> {
    let mut moments = core::Moments::default();
    measure(batch, array::<R>("values", values)?, &mut |batch, [values], []| {
        moments = core::Moments::of(batch, values)?;
        Ok(())
    })?;
    write_moments(&moments)
}

fn moments_merge(a: &JsValue, b: &JsValue) -> Result<JsValue> {
    let mut all = read_moments("a", a)?;
    all.merge(&read_moments("b", b)?);
    write_moments(&all)
}

fn moments_mean(moments: &JsValue, config: &JsValue) -> Result<JsValue> {
    Ok(read_moments("moments", moments)?.mean_by(config::divisor(config)?)?.into())
}

fn moments_variance(moments: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (spread, divisor) = config::spread_and_divisor(config)?;
    Ok(read_moments("moments", moments)?.variance(spread, divisor)?.into())
}

fn co_moments<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    let mut moments = core::CoMoments::default();
    measure(batch, arrays::<R, 2>(input, ["x", "y"])?, &mut |batch, [x, y], []| {
        moments = core::CoMoments::of(batch, x, y)?;
        Ok(())
    })?;
    write_co_moments(&moments)
}

fn co_moments_merge(a: &JsValue, b: &JsValue) -> Result<JsValue> {
    let mut all = read_co_moments("a", a)?;
    all.merge(&read_co_moments("b", b)?);
    write_co_moments(&all)
}

fn co_moments_covariance(moments: &JsValue, config: &JsValue) -> Result<JsValue> {
    Ok(read_co_moments("moments", moments)?.covariance(config::spread(config)?)?.into())
}

fn co_moments_correlation(moments: &JsValue) -> Result<JsValue> {
    Ok(read_co_moments("moments", moments)?.correlation()?.into())
}

fn analysis<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    entries(&sums::<R>(batch, input)?)
}

fn analysis_sums<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    write_analysis(&sums::<R>(batch, input)?)
}

fn analysis_merge(a: &JsValue, b: &JsValue) -> Result<JsValue> {
    let mut all = read_analysis("a", a)?;
    all.merge(&read_analysis("b", b)?);
    write_analysis(&all)
}

fn analysis_entries(sums: &JsValue) -> Result<JsValue> {
    entries(&read_analysis("sums", sums)?)
}

fn sums<R: Real>(batch: &JsValue, input: &JsValue) -> Result<core::Analysis> {
    let mut sums = core::Analysis::default();
    let inputs = arrays::<R, 3>(input, ["oldLogProbs", "advantages", "rewards"])?;
    measure(batch, inputs, &mut |batch, [old_log_probs, advantages, rewards], []| {
        sums = core::analysis(batch, core::AnalysisInput { old_log_probs, advantages, rewards })?;
        Ok(())
    })?;
    Ok(sums)
}

fn entries(analysis: &core::Analysis) -> Result<JsValue> {
    numbers(analysis.entries().into_iter())
}

fn read_moments(parameter: &str, value: &JsValue) -> Result<core::Moments> {
    let fields = Fields::input(parameter, value)?;
    Ok(core::Moments { count: fields.count("count")?, mean: fields.number("mean")?, m2: fields.number("m2")? })
}

fn write_moments(moments: &core::Moments) -> Result<JsValue> {
    object([("count", count(moments.count)), ("mean", moments.mean.into()), ("m2", moments.m2.into())])
}

fn read_co_moments(parameter: &str, value: &JsValue) -> Result<core::CoMoments> {
    let fields = Fields::input(parameter, value)?;
    Ok(core::CoMoments {
        count: fields.count("count")?,
        mean_x: fields.number("meanX")?,
        mean_y: fields.number("meanY")?,
        m2_x: fields.number("m2X")?,
        m2_y: fields.number("m2Y")?,
        co_moment: fields.number("coMoment")?,
    })
}

fn write_co_moments(moments: &core::CoMoments) -> Result<JsValue> {
    object([
        ("count", count(moments.count)),
        ("meanX", moments.mean_x.into()),
        ("meanY", moments.mean_y.into()),
        ("m2X", moments.m2_x.into()),
        ("m2Y", moments.m2_y.into()),
        ("coMoment", moments.co_moment.into()),
    ])
}

fn read_analysis(parameter: &str, value: &JsValue) -> Result<core::Analysis> {
    let fields = Fields::input(parameter, value)?;
    Ok(core::Analysis {
        moments: read_co_moments("moments", &fields.get("moments")?)?,
        entropy_sum: fields.number("entropySum")?,
        wh_sum: fields.number("whSum")?,
        reward_sum: fields.number("rewardSum")?,
        sequences: fields.count("sequences")?,
    })
}

fn write_analysis(analysis: &core::Analysis) -> Result<JsValue> {
    object([
        ("moments", write_co_moments(&analysis.moments)?),
        ("entropySum", analysis.entropy_sum.into()),
        ("whSum", analysis.wh_sum.into()),
        ("rewardSum", analysis.reward_sum.into()),
        ("sequences", count(analysis.sequences)),
    ])
}

/// A count as a number: exact below 2⁵³, and no array is that long.
pub(crate) fn count(count: u64) -> JsValue {
    JsValue::from_f64(count as f64)
}
