//! Curves and histograms of the figures, averaged over seeds.

use serde::Serialize;

use super::{
    compare::Variant,
    load::Histogram,
    series::{
        BETA, BUDGET, CLIP_LOWER, CLIP_UPPER, CORRELATION, COVARIANCE, ENTROPY, KL, LAMBDA, REWARD, USAGE, WEIGHTED,
    },
    statistics::{deviation, mean},
};

/// Points of a curve; each is the mean over the steps around it.
pub(crate) const POINTS: usize = 100;
/// Bins of a drawn histogram.
const BINS: usize = 40;

/// A metric of one variant over the steps.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Curve {
    pub(crate) variant: String,
    pub(crate) key: String,
    pub(crate) seeds: usize,
    /// The middle of the steps of each point.
    pub(crate) steps: Vec<f64>,
    pub(crate) mean: Vec<f64>,
    /// Standard deviation over seeds of the means of a point; empty for one seed.
    pub(crate) deviation: Vec<f64>,
}

/// Histograms of one quantity at one step, one per group.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Snapshot {
    /// `H` or `cov`.
    pub(crate) quantity: String,
    pub(crate) step: u64,
    pub(crate) edges: Vec<f64>,
    /// Share of tokens in each bin, by variant.
    pub(crate) shares: Vec<(String, Vec<f64>)>,
}

/// The metrics that are drawn.
pub(crate) fn keys(variants: &[Variant]) -> Vec<String> {
    let mut keys: Vec<String> =
        [REWARD, ENTROPY, WEIGHTED, BUDGET, USAGE, LAMBDA, BETA, KL, COVARIANCE, CORRELATION, CLIP_UPPER, CLIP_LOWER]
            .map(String::from)
            .into();
    for key in variants.iter().flat_map(|variant| variant.pass_area.keys()) {
        if !keys.contains(key) {
            keys.push(key.clone());
        }
    }
    keys
}

pub(crate) fn curves(variants: &[Variant]) -> Vec<Curve> {
    let keys = keys(variants);
    variants.iter().flat_map(|variant| keys.iter().filter_map(|key| curve(variant, key))).collect()
}

/// `None` if a seed does not have the metric.
fn curve(variant: &Variant, key: &str) -> Option<Curve> {
    let columns: Vec<&[f64]> = variant.runs.iter().map(|run| run.column(key)).collect::<Option<_>>()?;
    let steps = columns.iter().map(|column| column.len()).min().filter(|steps| *steps > 0)?;
    let points = steps.min(POINTS);
    let mut curve = Curve {
        variant: variant.name.clone(),
        key: key.into(),
        seeds: columns.len(),
        steps: Vec::new(),
        mean: Vec::new(),
        deviation: Vec::new(),
    };
    for point in 0..points {
        let (from, to) = (point * steps / points, (point + 1) * steps / points);
        let of_seed = |column: &&[f64]| {
            let known: Vec<f64> = column[from..to].iter().copied().filter(|x| x.is_finite()).collect();
            mean(&known)
        };
        let means: Vec<f64> = columns.iter().map(of_seed).filter(|x| x.is_finite()).collect();
        if means.len() < columns.len() {
            continue;
        }
        curve.steps.push((from + to) as f64 / 2.0);
        curve.mean.push(mean(&means));
        curve.deviation.extend(deviation(&means));
    }
    (!curve.mean.is_empty()).then_some(curve)
}

/// First, middle and last step with distributions, for both quantities.
pub(crate) fn snapshots(groups: &[&Variant]) -> Vec<Snapshot> {
    let mut steps: Vec<u64> =
        groups.iter().flat_map(|variant| &variant.runs).flat_map(|run| &run.distributions).map(|at| at.step).collect();
    steps.sort_unstable();
    steps.dedup();
    let mut chosen: Vec<u64> = match steps.len() {
        0 => return Vec::new(),
        n => vec![steps[0], steps[n / 2], steps[n - 1]],
    };
    chosen.dedup();
    let mut found = Vec::new();
    for quantity in ["H", "cov"] {
        found.extend(chosen.iter().filter_map(|&step| snapshot(groups, quantity, step)));
    }
    found
}

/// Bins of equal width; one token in ten thousand on either side may lie outside.
fn even_edges<'a>(histograms: impl Iterator<Item = &'a Histogram>) -> Option<Vec<f64>> {
    let ends = histograms.map(|histogram| (histogram.quantile(1e-4), histogram.quantile(1.0 - 1e-4)));
    let (low, high) = ends.fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), (a, b)| (low.min(a), high.max(b)));
    (low < high).then(|| (0..=BINS).map(|k| low + (high - low) * k as f64 / BINS as f64).collect())
}

fn snapshot(groups: &[&Variant], quantity: &str, step: u64) -> Option<Snapshot> {
    let of = |variant: &&Variant| -> (String, Vec<Histogram>) {
        let at = variant.runs.iter().flat_map(|run| &run.distributions).filter(|at| at.step == step);
        let histograms = at.map(|at| if quantity == "H" { &at.entropy } else { &at.covariance });
        (variant.name.clone(), histograms.filter(|histogram| histogram.is_valid()).cloned().collect())
    };
    let all: Vec<(String, Vec<Histogram>)> = groups.iter().map(of).filter(|(_, found)| !found.is_empty()).collect();
    let each = || all.iter().flat_map(|(_, histograms)| histograms);
    let first = each().next()?;
    let edges =
        if each().all(|histogram| histogram.edges == first.edges) { first.edges.clone() } else { even_edges(each())? };
    let shares = all.iter().map(|(name, histograms)| {
        let share = |edge: &[f64]| {
            mean(&histograms.iter().map(|found| found.between(edge[0], edge[1]) / found.total()).collect::<Vec<_>>())
        };
        (name.clone(), edges.windows(2).map(share).collect())
    });
    Some(Snapshot { quantity: quantity.into(), step, shares: shares.collect(), edges: edges.clone() })
}
