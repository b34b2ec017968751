//! Statistics that go on from batch to batch, and what is made of their sums.

use std::{cell::RefCell, rc::Rc};

use js_sys::Float32Array;
use tokenwise::{
    metric::{self, Analysis, Reduction, VarianceConfig},
    CoMoments, MeanConfig, Moments,
};
use wasm_bindgen::{
    prelude::{wasm_bindgen, JsValue},
    JsCast,
};

use crate::{
    batch::Batch,
    error::{wrong_type, Result},
    read::{count, field, number, object, reals, text},
    value::config,
    write::{entries, Record},
};

/// Counts of values, for quantiles over many batches; clones share them.
#[wasm_bindgen(skip_typescript)]
#[derive(Clone, Default)]
pub struct Histogram(Rc<RefCell<metric::Histogram>>);

#[wasm_bindgen]
impl Histogram {
    /// Without counts.
    #[wasm_bindgen(constructor)]
    pub fn new() -> Histogram {
        Self::default()
    }

    /// Counts the kept tokens of a batch, in either precision.
    pub fn add(&self, batch: &Batch, values: &JsValue) -> Result<()> {
        let (batch, mut counts) = (batch.view()?, self.0.borrow_mut());
        if values.is_instance_of::<Float32Array>() {
            counts.add(&batch, &reals::<f32>("values", values)?)?;
        } else {
            counts.add(&batch, &reals::<f64>("values", values)?)?;
        }
        Ok(())
    }

    /// Joins the counts of another one, which may be this one.
    pub fn merge(&self, other: &Histogram) {
        let other = other.0.borrow().clone();
        self.0.borrow_mut().merge(&other);
    }

    /// A second handle to the same counts.
    #[wasm_bindgen(js_name = clone)]
    pub fn share(&self) -> Histogram {
        self.clone()
    }

    /// How many values were counted.
    #[wasm_bindgen(getter)]
    pub fn count(&self) -> f64 {
        self.0.borrow().count() as f64
    }

    /// The value below which a share of the counts lies.
    pub fn quantile(&self, level: &JsValue) -> Result<f64> {
        Ok(self.0.borrow().quantile(number("level", level)?)?)
    }
}

/// Mean and spread of all scores so far.
#[wasm_bindgen(skip_typescript)]
#[derive(Clone, Default)]
pub struct RunningMoments(metric::RunningMoments);

#[wasm_bindgen]
impl RunningMoments {
    /// Before the first score.
    #[wasm_bindgen(constructor)]
    pub fn new() -> RunningMoments {
        Self::default()
    }

    /// Takes in a batch of scores in either precision; gives its own mean and deviation.
    pub fn update(&mut self, values: &JsValue) -> Result {
        let (mean, std) = if values.is_instance_of::<Float32Array>() {
            self.0.update(&reals::<f32>("values", values)?)?
        } else {
            self.0.update(&reals::<f64>("values", values)?)?
        };
        let record = Record::new();
        record.field("mean", mean)?;
        record.field("std", std)?;
        Ok(record.into())
    }

    /// Another one in the same state.
    #[wasm_bindgen(js_name = clone)]
    pub fn copy(&self) -> RunningMoments {
        self.clone()
    }

    /// How many numbers were taken in.
    #[wasm_bindgen(getter)]
    pub fn count(&self) -> f64 {
        self.0.count()
    }

    /// Their mean.
    #[wasm_bindgen(getter)]
    pub fn mean(&self) -> f64 {
        self.0.mean()
    }

    /// Their variance, divided by `n`.
    #[wasm_bindgen(getter)]
    pub fn variance(&self) -> f64 {
        self.0.variance()
    }

    /// Their standard deviation, divided by `n − 1`.
    #[wasm_bindgen(getter)]
    pub fn std(&self) -> f64 {
        self.0.std()
    }
}

fn moments(name: &str, given: &JsValue) -> Result<Moments> {
    object(name, given)?;
    Ok(Moments {
        count: count("count", &field(given, "count")?)?,
        mean: number("mean", &field(given, "mean")?)?,
        m2: number("m2", &field(given, "m2")?)?,
    })
}

/// The moments of two sets together.
#[wasm_bindgen(js_name = momentsMerge, skip_typescript)]
pub fn moments_merge(a: &JsValue, b: &JsValue) -> Result {
    let mut all = moments("a", a)?;
    all.merge(&moments("b", b)?);
    let record = Record::new();
    record.field("count", all.count as f64)?;
    record.field("mean", all.mean)?;
    record.field("m2", all.m2)?;
    Ok(record.into())
}

/// Their mean.
#[wasm_bindgen(js_name = momentsMean, skip_typescript)]
pub fn moments_mean(given: &JsValue, settings: &JsValue) -> Result<f64> {
    let MeanConfig { divisor } = config(settings)?.0.read("config")?;
    Ok(moments("moments", given)?.mean_by(divisor)?)
}

/// Their variance.
#[wasm_bindgen(js_name = momentsVariance, skip_typescript)]
pub fn moments_variance(given: &JsValue, settings: &JsValue) -> Result<f64> {
    let VarianceConfig { spread, divisor } = config(settings)?.0.read("config")?;
    Ok(moments("moments", given)?.variance(spread, divisor)?)
}

fn co_moments(name: &str, given: &JsValue) -> Result<CoMoments> {
    object(name, given)?;
    let part = |name| number(name, &field(given, name)?);
    Ok(CoMoments {
        count: count("count", &field(given, "count")?)?,
        mean_x: part("mean_x")?,
        mean_y: part("mean_y")?,
        m2_x: part("m2_x")?,
        m2_y: part("m2_y")?,
        co_moment: part("co_moment")?,
    })
}

fn write_co_moments(moments: &CoMoments) -> Result<Record> {
    let record = Record::new();
    record.field("count", moments.count as f64)?;
    record.field("mean_x", moments.mean_x)?;
    record.field("mean_y", moments.mean_y)?;
    record.field("m2_x", moments.m2_x)?;
    record.field("m2_y", moments.m2_y)?;
    record.field("co_moment", moments.co_moment)?;
    Ok(record)
}

/// The moments of two sets of pairs together.
#[wasm_bindgen(js_name = coMomentsMerge, skip_typescript)]
pub fn co_moments_merge(a: &JsValue, b: &JsValue) -> Result {
    let mut all = co_moments("a", a)?;
    all.merge(&co_moments("b", b)?);
    Ok(write_co_moments(&all)?.into())
}

/// Their covariance.
#[wasm_bindgen(js_name = coMomentsCovariance, skip_typescript)]
pub fn co_moments_covariance(given: &JsValue, settings: &JsValue) -> Result<f64> {
    // a covariance has no divisor to choose
    let (settings, _) = config(settings)?;
    if settings.get("divisor").is_some() {
        return Err(tokenwise_catalogue::ConfigError::unknown_key("divisor", "config", &["spread"]).into());
    }
    let VarianceConfig { spread, .. } = settings.read("config")?;
    Ok(co_moments("moments", given)?.covariance(spread)?)
}

/// Their correlation.
#[wasm_bindgen(js_name = coMomentsCorrelation, skip_typescript)]
pub fn co_moments_correlation(given: &JsValue) -> Result<f64> {
    Ok(co_moments("moments", given)?.correlation()?)
}

fn analysis(name: &str, given: &JsValue) -> Result<Analysis> {
    object(name, given)?;
    let mut analysis = Analysis::default();
    analysis.moments = co_moments("moments", &field(given, "moments")?)?;
    analysis.entropy_sum = number("entropy_sum", &field(given, "entropy_sum")?)?;
    analysis.wh_sum = number("wh_sum", &field(given, "wh_sum")?)?;
    analysis.reward_sum = number("reward_sum", &field(given, "reward_sum")?)?;
    analysis.sequences = count("sequences", &field(given, "sequences")?)?;
    Ok(analysis)
}

/// The sums of two batches together.
#[wasm_bindgen(js_name = analysisMerge, skip_typescript)]
pub fn analysis_merge(a: &JsValue, b: &JsValue) -> Result {
    let mut all = analysis("a", a)?;
    all.merge(&analysis("b", b)?);
    let record = Record::new();
    record.field("moments", write_co_moments(&all.moments)?)?;
    record.field("entropy_sum", all.entropy_sum)?;
    record.field("wh_sum", all.wh_sum)?;
    record.field("reward_sum", all.reward_sum)?;
    record.field("sequences", all.sequences as f64)?;
    Ok(record.into())
}

/// Their metrics by key.
#[wasm_bindgen(js_name = analysisEntries, skip_typescript)]
pub fn analysis_entries(sums: &JsValue) -> Result {
    entries(analysis("sums", sums)?.entries())
}

/// One number from a metric of several batches or ranks, as verl reduces it.
#[wasm_bindgen(js_name = reduceMetric, skip_typescript)]
pub fn reduce_metric(key: &JsValue, values: &JsValue, global_counts: &JsValue) -> Result<f64> {
    let global = match global_counts.as_bool() {
        Some(global) => global,
        None if global_counts.is_undefined() => false,
        None => return Err(wrong_type("global_counts", "a boolean", global_counts)),
    };
    Ok(Reduction::of_key(&text("key", key)?, global).of(&reals::<f64>("values", values)?)?)
}
