//! **Stage 6 of 7 — metric.**

#[cfg(feature = "full")]
pub(crate) mod distribution;
#[cfg(feature = "full")]
pub(crate) mod sets;

use tokenwise::metric as core;
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::Call,
    divergence::kl_input,
    error::Result,
    export::export,
    js,
    put::{entries, numbers},
    read::{count, number, read},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("metric.ts");

export! {
    CHAIN = 17;
    mean(batch:batch, values, config:DivisorOnly) -> () => mean, meanF64;
    variance(batch:batch, values, config:SpreadAndDivisor) -> () => variance, varianceF64;
    analysis(batch:batch, input{old_log_probs, advantages, rewards}) -> (*) => analysis, analysisF64;
    analysis_sums(batch:batch, input{old_log_probs, advantages, rewards})
        -> (moments{count, mean_x, mean_y, m2_x, m2_y, co_moment}, entropy_sum, wh_sum, reward_sum, sequences)
        => analysisSums, analysisSumsF64;
}

export! {
    #[cfg(feature = "full")]
    REST = 18;
    correlation(batch:batch, input{x, y}) -> () => correlation, correlationF64;
    explained_variance(batch:batch, input{values, returns}, config:ExplainedVarianceConfig) -> ()
        => explainedVariance, explainedVarianceF64;
    kl_means(batch:batch, input{log_probs, ref_log_probs}, config:DivisorOnly) -> (k1, abs, k2, k3)
        => klMeans, klMeansF64;
    clip_fractions(batch:batch, input{log_probs, old_log_probs, advantages}, config:ClipConfig)
        -> (clipped, low, high, dual) => clipFractions, clipFractionsF64;
    moments(batch:batch, values) -> (count, mean, m2) => moments, momentsF64;
    moments_merge(!a{count:count, mean:number, m2:number}, b{count:count, mean:number, m2:number}) -> (count, mean, m2)
        => momentsMerge;
    moments_mean(!moments{count:count, mean:number, m2:number}, config:DivisorOnly) -> () => momentsMean;
    moments_variance(moments{count:count, mean:number, m2:number}, config:SpreadAndDivisor) -> () => momentsVariance;
    co_moments(batch:batch, input{x, y}) -> (count, mean_x, mean_y, m2_x, m2_y, co_moment) => coMoments, coMomentsF64;
    co_moments_merge(
        !a{count:count, mean_x:number, mean_y:number, m2_x:number, m2_y:number, co_moment:number},
        b{count:count, mean_x:number, mean_y:number, m2_x:number, m2_y:number, co_moment:number})
        -> (count, mean_x, mean_y, m2_x, m2_y, co_moment) => coMomentsMerge;
    co_moments_covariance(
        moments{count:count, mean_x:number, mean_y:number, m2_x:number, m2_y:number, co_moment:number},
        config:SpreadOnly) -> () => coMomentsCovariance;
    co_moments_correlation(
        moments{count:count, mean_x:number, mean_y:number, m2_x:number, m2_y:number, co_moment:number}) -> ()
        => coMomentsCorrelation;
    analysis_merge(
        !a{
            moments{count:count, mean_x:number, mean_y:number, m2_x:number, m2_y:number, co_moment:number},
            entropy_sum:number, wh_sum:number, reward_sum:number, sequences:count
        },
        b{
            moments{count:count, mean_x:number, mean_y:number, m2_x:number, m2_y:number, co_moment:number},
            entropy_sum:number, wh_sum:number, reward_sum:number, sequences:count
        })
        -> (moments{count, mean_x, mean_y, m2_x, m2_y, co_moment}, entropy_sum, wh_sum, reward_sum, sequences)
        => analysisMerge;
    analysis_entries(
        sums{
            moments{count:count, mean_x:number, mean_y:number, m2_x:number, m2_y:number, co_moment:number},
            entropy_sum:number, wh_sum:number, reward_sum:number, sequences:count
        }) -> (*) => analysisEntries;
}

fn mean(call: &mut Call<'_>) -> Result {
    let (divisor, values) = (read(), call.real());
    js::put(core::mean(call.batch, values, divisor)?);
    Ok(())
}

fn variance(call: &mut Call<'_>) -> Result {
    let (spread, divisor, values) = (read(), read(), call.real());
    js::put(core::variance(call.batch, values, spread, divisor)?);
    Ok(())
}

fn correlation(call: &mut Call<'_>) -> Result {
    let input = core::PairInput { x: call.real(), y: call.real() };
    js::put(core::correlation(call.batch, input)?);
    Ok(())
}

fn explained_variance(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::ExplainedVarianceInput { values: call.real(), returns: call.real() };
    js::put(core::explained_variance(call.batch, input, &config)?);
    Ok(())
}

fn kl_means(call: &mut Call<'_>) -> Result {
    let (divisor, input) = (read(), kl_input(call));
    let means = core::kl_means(call.batch, input, divisor)?;
    numbers(&[means.k1, means.abs, means.k2, means.k3]);
    Ok(())
}

fn clip_fractions(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::RatioInput { log_probs: call.real(), old_log_probs: call.real(), advantages: call.real() };
    let shares = core::clip_fractions(call.batch, input, &config)?;
    numbers(&[shares.clipped, shares.low, shares.high, shares.dual]);
    Ok(())
}

fn moments(call: &mut Call<'_>) -> Result {
    let values = call.real();
    put_moments(&core::Moments::of(call.batch, values)?);
    Ok(())
}

fn moments_merge(_: &mut Call<'_>) -> Result {
    let mut all = read_moments();
    all.merge(&read_moments());
    put_moments(&all);
    Ok(())
}

fn moments_mean(_: &mut Call<'_>) -> Result {
    let moments = read_moments();
    js::put(moments.mean_by(read())?);
    Ok(())
}

fn moments_variance(_: &mut Call<'_>) -> Result {
    let (spread, divisor) = (read(), read());
    js::put(read_moments().variance(spread, divisor)?);
    Ok(())
}

fn co_moments(call: &mut Call<'_>) -> Result {
    let (x, y) = (call.real(), call.real());
    put_co_moments(&core::CoMoments::of(call.batch, x, y)?);
    Ok(())
}

fn co_moments_merge(_: &mut Call<'_>) -> Result {
    let mut all = read_co_moments();
    all.merge(&read_co_moments());
    put_co_moments(&all);
    Ok(())
}

fn co_moments_covariance(_: &mut Call<'_>) -> Result {
    let spread = read();
    js::put(read_co_moments().covariance(spread)?);
    Ok(())
}

fn co_moments_correlation(_: &mut Call<'_>) -> Result {
    js::put(read_co_moments().correlation()?);
    Ok(())
}

fn analysis(call: &mut Call<'_>) -> Result {
    entries(sums(call)?.entries().into_iter());
    Ok(())
}

fn analysis_sums(call: &mut Call<'_>) -> Result {
    put_analysis(&sums(call)?);
    Ok(())
}

fn analysis_merge(_: &mut Call<'_>) -> Result {
    let mut all = read_analysis();
    all.merge(&read_analysis());
    put_analysis(&all);
    Ok(())
}

fn analysis_entries(_: &mut Call<'_>) -> Result {
    entries(read_analysis().entries().into_iter());
    Ok(())
}

#[inline(never)]
fn sums(call: &mut Call<'_>) -> Result<core::Analysis> {
    let input = core::AnalysisInput { old_log_probs: call.real(), advantages: call.real(), rewards: call.real() };
    core::analysis(call.batch, input)
}

#[inline(never)]
fn read_moments() -> core::Moments {
    core::Moments { count: count(), mean: number(), m2: number() }
}

#[inline(never)]
fn put_moments(moments: &core::Moments) {
    numbers(&[moments.count as f64, moments.mean, moments.m2]);
}

#[inline(never)]
fn read_co_moments() -> core::CoMoments {
    core::CoMoments {
        count: count(),
        mean_x: number(),
        mean_y: number(),
        m2_x: number(),
        m2_y: number(),
        co_moment: number(),
    }
}

#[inline(never)]
fn put_co_moments(moments: &core::CoMoments) {
    let core::CoMoments { count, mean_x, mean_y, m2_x, m2_y, co_moment } = *moments;
    numbers(&[count as f64, mean_x, mean_y, m2_x, m2_y, co_moment]);
}

#[inline(never)]
fn read_analysis() -> core::Analysis {
    core::Analysis {
        moments: read_co_moments(),
        entropy_sum: number(),
        wh_sum: number(),
        reward_sum: number(),
        sequences: count(),
    }
}

#[inline(never)]
fn put_analysis(analysis: &core::Analysis) {
    put_co_moments(&analysis.moments);
    numbers(&[analysis.entropy_sum, analysis.wh_sum, analysis.reward_sum, analysis.sequences as f64]);
}
