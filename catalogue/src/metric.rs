//! The numbers that a trainer logs.

use tokenwise::metric::{self, Analysis, AnalysisInput};
#[cfg(feature = "full")]
use tokenwise::{
    metric::{ExplainedVarianceInput, RatioInput, VarianceProxyInput},
    CoMoments, Moments, PairInput,
};

#[cfg(feature = "full")]
use crate::{divergence::kl_input, entry::sequence};
use crate::{
    entry::{formulas, token},
    Call, Number, Refusal,
};

fn analysis_of<R: Number>(call: &Call<'_, R>) -> Result<Analysis, Refusal> {
    let input = AnalysisInput {
        old_log_probs: call.real("old_log_probs")?,
        advantages: call.real("advantages")?,
        rewards: call.real("rewards")?,
    };
    Ok(metric::analysis(&call.batch()?, input)?)
}

formulas! { "metric":
    mean(Batch; token("values")) MeanConfig -> () ["mean"] |call| {
        let mean = metric::mean(&call.batch()?, call.real("values")?, &call.config()?)?;
        call.give([("mean", mean)]);
        Ok(())
    }
    variance(Batch; token("values")) VarianceConfig -> () ["variance"] |call| {
        let variance = metric::variance(&call.batch()?, call.real("values")?, &call.config()?)?;
        call.give([("variance", variance)]);
        Ok(())
    }
    analysis(Batch; token("old_log_probs"), token("advantages"), token("rewards")) -> () ["*"] |call| {
        let analysis = analysis_of(call)?;
        for (key, value) in analysis.entries() {
            call.give([(key, value)]);
        }
        Ok(())
    }
    analysis_sums(Batch; token("old_log_probs"), token("advantages"), token("rewards")) -> ()
        [
            "moments.count", "moments.mean_x", "moments.mean_y", "moments.m2_x", "moments.m2_y", "moments.co_moment",
            "entropy_sum", "wh_sum", "reward_sum", "sequences"
        ] |call|
    {
        let analysis = analysis_of(call)?;
        let moments = analysis.moments;
        call.give([
            ("moments.count", moments.count as f64),
            ("moments.mean_x", moments.mean_x),
            ("moments.mean_y", moments.mean_y),
            ("moments.m2_x", moments.m2_x),
            ("moments.m2_y", moments.m2_y),
            ("moments.co_moment", moments.co_moment),
            ("entropy_sum", analysis.entropy_sum),
            ("wh_sum", analysis.wh_sum),
            ("reward_sum", analysis.reward_sum),
            ("sequences", analysis.sequences as f64),
        ]);
        Ok(())
    }
    #[cfg(feature = "full")]
    moments(Batch; token("values")) -> () ["count", "mean", "m2"] |call| {
        let moments = Moments::of(&call.batch()?, call.real("values")?)?;
        call.give([("count", moments.count as f64), ("mean", moments.mean), ("m2", moments.m2)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    co_moments(Batch; token("x"), token("y")) -> ()
        ["count", "mean_x", "mean_y", "m2_x", "m2_y", "co_moment"] |call|
    {
        let moments = CoMoments::of(&call.batch()?, PairInput { x: call.real("x")?, y: call.real("y")? })?;
        call.give([
            ("count", moments.count as f64),
            ("mean_x", moments.mean_x),
            ("mean_y", moments.mean_y),
            ("m2_x", moments.m2_x),
            ("m2_y", moments.m2_y),
            ("co_moment", moments.co_moment),
        ]);
        Ok(())
    }
    #[cfg(feature = "full")]
    correlation(Batch; token("x"), token("y")) -> () ["correlation"] |call| {
        let input = PairInput { x: call.real("x")?, y: call.real("y")? };
        let correlation = metric::correlation(&call.batch()?, input)?;
        call.give([("correlation", correlation)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    explained_variance(Batch; token("values"), token("returns")) ExplainedVarianceConfig
        -> () ["explained_variance"] |call|
    {
        let input = ExplainedVarianceInput { values: call.real("values")?, returns: call.real("returns")? };
        let share = metric::explained_variance(&call.batch()?, input, &call.config()?)?;
        call.give([("explained_variance", share)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    kl_means(Batch; token("log_probs"), token("ref_log_probs")) MeanConfig -> () ["k1", "abs", "k2", "k3"] |call| {
        let means = metric::kl_means(&call.batch()?, kl_input(call)?, &call.config()?)?;
        call.give([("k1", means.k1), ("abs", means.abs), ("k2", means.k2), ("k3", means.k3)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    clip_fractions(Batch; token("log_probs"), token("old_log_probs"), token("advantages")) ClipConfig
        -> () ["clipped", "low", "high", "dual"] |call|
    {
        let input = RatioInput {
            log_probs: call.real("log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
            advantages: call.real("advantages")?,
        };
        let shares = metric::clip_fractions(&call.batch()?, input, &call.config()?)?;
        call.give([("clipped", shares.clipped), ("low", shares.low), ("high", shares.high), ("dual", shares.dual)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    effective_sample_size(Batch; token("weights")) -> () ["effective_sample_size"] |call| {
        let size = metric::effective_sample_size(&call.batch()?, call.real("weights")?)?;
        call.give([("effective_sample_size", size)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    quantile(Batch; token("values")) QuantileConfig -> () ["quantile"] |call| {
        let quantile = metric::quantile(&call.batch()?, call.real("values")?, &call.config()?)?;
        call.give([("quantile", quantile)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    row_means(Batch; token("values")) MeanConfig -> (sequence("out")) [] |call| {
        Ok(metric::row_means(&call.batch()?, call.real("values")?, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    row_normalize(Batch; token("values")) RowNormalizeConfig -> (token("out")) [] |call| {
        let (batch, values, config) = (call.batch()?, call.real("values")?, call.config()?);
        Ok(metric::row_normalize(&batch, values, &config, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    variance_proxy(
        Batch;
        token("old_log_probs"), token("sum_pi_squared"), token("advantages"), token("weights").optional()
    ) VarianceProxyConfig -> () ["*"] |call| {
        let input = VarianceProxyInput {
            old_log_probs: call.real("old_log_probs")?,
            sum_pi_squared: call.real("sum_pi_squared")?,
            advantages: call.real("advantages")?,
            weights: call.optional("weights")?,
        };
        let proxy = metric::variance_proxy(&call.batch()?, input, &call.config()?)?;
        for (key, value) in proxy.entries() {
            call.give([(key, value)]);
        }
        Ok(())
    }
}
