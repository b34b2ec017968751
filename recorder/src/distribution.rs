//! Distribution of the values of one step.

use serde_json::{json, Value};
use tokenwise::{
    metric::{quantile, QuantileConfig},
    Batch, Layout, Mask, Moments, Spread,
};

/// Equal-width bins between minimum and maximum.
const BINS: usize = 20;

/// Quantiles and a histogram of the values of one step, small enough for a line of a log.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// Number of finite values.
    pub count: usize,
    /// Number of other values.
    pub not_finite: usize,
    /// Mean.
    pub mean: f64,
    /// Standard deviation, divisor n.
    pub std: f64,
    /// Minimum, 10th, 50th and 90th percentile, maximum.
    pub quantiles: [f64; 5],
    /// Counts of 20 equal-width bins between minimum and maximum.
    pub bins: [u64; BINS],
}

impl Distribution {
    /// Summarises `values`; `None` if none is finite.
    pub fn of(values: &[f64]) -> Option<Self> {
        let finite: Vec<f64> = values.iter().copied().filter(|x| x.is_finite()).collect();
        if finite.is_empty() {
            return None;
        }
        let keep = vec![true; finite.len()];
        let batch = Batch::new(Layout::padded(1, finite.len()).ok()?, Mask::new(&keep)).ok()?;
        let moments = Moments::of(&batch, &finite).ok()?;
        let quantiles = [0.0, 0.1, 0.5, 0.9, 1.0]
            .map(|level| quantile(&batch, &finite, &QuantileConfig { level }).unwrap_or(f64::NAN));
        let (low, high) = (quantiles[0], quantiles[4]);
        let mut bins = [0; BINS];
        for &x in &finite {
            // halves, so that the difference of two finite numbers stays finite
            let place = (x / 2.0 - low / 2.0) / (high / 2.0 - low / 2.0) * BINS as f64;
            bins[(place as usize).min(BINS - 1)] += 1;
        }
        let variance = moments.variance(Spread::Population, tokenwise::Divisor::Count).unwrap_or(0.0);
        Some(Self {
            count: finite.len(),
            not_finite: values.len() - finite.len(),
            mean: moments.mean,
            std: tokenwise::math::sqrt(variance),
            quantiles,
            bins,
        })
    }

    /// The JSON object of the log.
    pub fn to_json(&self) -> Value {
        let [min, p10, p50, p90, max] = self.quantiles;
        json!({
            "count": self.count, "not_finite": self.not_finite, "mean": self.mean, "std": self.std,
            "min": min, "p10": p10, "p50": p50, "p90": p90, "max": max, "bins": self.bins,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_counted_where_they_lie() {
        let values: Vec<f64> = (0..=100).map(f64::from).chain([f64::NAN, f64::INFINITY]).collect();
        let got = Distribution::of(&values).unwrap();
        assert_eq!((got.count, got.not_finite, got.mean), (101, 2, 50.0));
        assert_eq!(got.quantiles, [0.0, 10.0, 50.0, 90.0, 100.0]);
        assert_eq!((got.bins[0], got.bins[19]), (5, 6));
        assert_eq!(Distribution::of(&[f64::NAN]), None);
        assert_eq!(Distribution::of(&[2.0, 2.0]).unwrap().bins[0], 2);
    }
}
