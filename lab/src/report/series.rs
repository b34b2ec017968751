//! Numbers of one run: windows, areas, first passages, smoothness.

use super::{
    load::{Histogram, Run},
    statistics::{area, line, mean, sum},
};

pub(crate) const REWARD: &str = "analysis/reward_sum_mean";
pub(crate) const ENTROPY: &str = "analysis/entropy_per_token_mean";
pub(crate) const WEIGHTED: &str = "analysis/wH_per_token";
pub(crate) const COVARIANCE: &str = "analysis/covariance_mean";
pub(crate) const CORRELATION: &str = "analysis/corr";
pub(crate) const COVARIANCE_P50: &str = "analysis/cov_p50";
pub(crate) const COVARIANCE_P90: &str = "analysis/cov_p90";
pub(crate) const USAGE: &str = "dual_game/usage_ratio";
pub(crate) const LAMBDA: &str = "dual_game/lambda";
pub(crate) const BETA: &str = "dual_game/beta";
pub(crate) const BUDGET: &str = "dual_game/B_token";
pub(crate) const KL: &str = "dual_game/KL_per_token";
pub(crate) const CLIP_UPPER: &str = "actor/clipfrac_upper";
pub(crate) const CLIP_LOWER: &str = "actor/clipfrac_lower";
/// The last part of a run whose mean is its end value.
pub(crate) const END: f64 = 0.05;
/// The first part of a run that is called early.
pub(crate) const EARLY: f64 = 0.1;

/// The first steps of a run: two runs are compared over the steps that both have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut<'a> {
    pub(crate) run: &'a Run,
    pub(crate) steps: usize,
}

impl<'a> Cut<'a> {
    pub(crate) fn whole(run: &'a Run) -> Self {
        Self { run, steps: run.about.steps as usize }
    }

    /// Both runs up to the last step of the shorter one.
    pub(crate) fn common(a: &'a Run, b: &'a Run) -> (Self, Self) {
        let steps = a.about.steps.min(b.about.steps) as usize;
        (Self { run: a, steps }, Self { run: b, steps })
    }

    /// The numbers of a key; empty if the run has none.
    pub(crate) fn column(&self, key: &str) -> &'a [f64] {
        let column = self.run.column(key).unwrap_or_default();
        &column[..column.len().min(self.steps)]
    }

    /// The part of a column between two shares of the steps, without steps that have no number.
    pub(crate) fn part(&self, key: &str, from: f64, to: f64) -> Vec<f64> {
        let column = self.column(key);
        let place = |share: f64| ((share * column.len() as f64).round() as usize).min(column.len());
        // at least one step, also of a short run
        let (from, to) = (place(from).min(column.len().saturating_sub(1)), place(to).max(1).min(column.len()));
        column.get(from..to).unwrap_or_default().iter().copied().filter(|x| x.is_finite()).collect()
    }

    /// Area under a curve on an axis from 0 to 1.
    pub(crate) fn area(&self, key: &str) -> f64 {
        area(&self.part(key, 0.0, 1.0))
    }

    /// Mean of the last steps.
    pub(crate) fn end(&self, key: &str) -> f64 {
        mean(&self.part(key, 1.0 - END, 1.0))
    }

    /// Mean of the early steps.
    pub(crate) fn early(&self, key: &str) -> f64 {
        mean(&self.part(key, 0.0, EARLY))
    }

    /// How much a curve swings around its trend, between two shares of the steps.
    pub(crate) fn swing(&self, key: &str, from: f64, to: f64) -> f64 {
        line(&self.part(key, from, to)).map_or(f64::NAN, |line| line.residual)
    }

    /// Mean of the absolute values.
    pub(crate) fn size(&self, key: &str) -> f64 {
        let column: Vec<f64> = self.part(key, 0.0, 1.0).iter().map(|x| x.abs()).collect();
        mean(&column)
    }

    /// The share of clipped tokens, both sides together, at each step.
    pub(crate) fn clipped(&self) -> Vec<f64> {
        let (upper, lower) = (self.column(CLIP_UPPER), self.column(CLIP_LOWER));
        upper.iter().zip(lower).map(|(u, l)| u + l).filter(|x| x.is_finite()).collect()
    }

    /// The first step at which the mean of the last fiftieth of all steps reaches a threshold.
    pub(crate) fn time_to(&self, key: &str, threshold: f64) -> Option<usize> {
        let column = self.column(key);
        let window = (self.steps / 50).max(1);
        let smooth = |end: usize| mean(&column[end - window..end]);
        (window..=column.len()).find(|&end| smooth(end) >= threshold)
    }

    /// Means of the ten tenths of a curve.
    pub(crate) fn tenths(&self, key: &str) -> Vec<f64> {
        (0..10).map(|k| mean(&self.part(key, f64::from(k) / 10.0, f64::from(k + 1) / 10.0))).collect()
    }

    /// The largest change in one step as a share of the curve's range; 0 for a constant.
    pub(crate) fn jump(&self, key: &str) -> f64 {
        let column = self.part(key, 0.0, 1.0);
        let (low, high) = range(&column);
        let largest = column.windows(2).fold(0.0_f64, |most, pair| most.max((pair[1] - pair[0]).abs()));
        match column.len() {
            0 => f64::NAN,
            _ if high == low => 0.0,
            _ => largest / (high - low),
        }
    }

    /// The first step from which a curve stays below a share of its start (the mean of the first fiftieth).
    pub(crate) fn collapse(&self, key: &str, share: f64) -> Option<usize> {
        let column = self.part(key, 0.0, 1.0);
        let start = mean(&self.part(key, 0.0, 0.02));
        let above = column.iter().rposition(|x| *x >= share * start)?;
        (above + 1 < column.len()).then_some(above + 2)
    }
}

/// Smallest and largest number.
pub(crate) fn range(values: &[f64]) -> (f64, f64) {
    values.iter().fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), x| (low.min(*x), high.max(*x)))
}

impl Histogram {
    /// Whether edges rise and there is one more than counts, and something was counted.
    pub(crate) fn is_valid(&self) -> bool {
        self.edges.len() == self.counts.len() + 1
            && self.edges.windows(2).all(|pair| pair[0] <= pair[1])
            && self.edges.iter().chain(&self.counts).all(|x| x.is_finite())
            && self.counts.iter().all(|x| *x >= 0.0)
            && self.total() > 0.0
    }

    pub(crate) fn total(&self) -> f64 {
        sum(self.counts.iter().copied())
    }

    /// Counts between two numbers; inside of a bin they are spread evenly.
    pub(crate) fn between(&self, from: f64, to: f64) -> f64 {
        sum(self.counts.iter().zip(self.edges.windows(2)).map(|(count, edge)| {
            let width = edge[1] - edge[0];
            if width <= 0.0 {
                return if edge[0] >= from && edge[0] < to { *count } else { 0.0 };
            }
            count * ((to.min(edge[1]) - from.max(edge[0])) / width).clamp(0.0, 1.0)
        }))
    }

    /// The number below which a share of the counts lies.
    pub(crate) fn quantile(&self, share: f64) -> f64 {
        let wanted = share * self.total();
        let mut below = 0.0;
        for (count, edge) in self.counts.iter().zip(self.edges.windows(2)) {
            if below + count >= wanted && *count > 0.0 {
                return edge[0] + (edge[1] - edge[0]) * ((wanted - below) / count);
            }
            below += count;
        }
        self.edges.last().copied().unwrap_or(f64::NAN)
    }
}
