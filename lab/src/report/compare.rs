//! Variants and their comparison, seed by seed.

use std::collections::BTreeMap;

use serde::Serialize;

use super::{
    load::{Run, Timing},
    series::{Cut, ENTROPY, REWARD},
    statistics::{deviation, mean, median, paired, sum, Paired},
};

/// One number per seed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Spread {
    pub(crate) mean: f64,
    /// Standard deviation over seeds, divisor n − 1.
    pub(crate) deviation: Option<f64>,
    pub(crate) values: Vec<f64>,
}

impl Spread {
    pub(crate) fn of(values: Vec<f64>) -> Self {
        Self { mean: mean(&values), deviation: deviation(&values), values }
    }
}

/// Steps until the reward reaches a threshold.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct TimeTo {
    pub(crate) threshold: f64,
    /// Seeds that reach it.
    pub(crate) reached: usize,
    /// Mean over those.
    pub(crate) mean: Option<f64>,
    /// One per seed.
    pub(crate) steps: Vec<Option<usize>>,
}

impl TimeTo {
    /// The mean, and how many seeds of how many reach the threshold.
    pub(crate) fn summary(&self) -> String {
        let mean = self.mean.map_or("–".into(), |mean| format!("{mean:.0}"));
        format!("{mean} ({}/{})", self.reached, self.steps.len())
    }
}

/// What a run costs.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Cost {
    /// Seconds of a whole run.
    pub(crate) seconds: Spread,
    /// Median over all steps.
    pub(crate) seconds_per_step: f64,
    /// Share of token-level formulas in the computing time of a step, median over steps.
    pub(crate) formulas: f64,
    /// Share of token-level formulas in the computing time of all steps.
    pub(crate) formulas_of_all: f64,
    /// Whether the two are shares of the time that passed, because the runs do not say when they had a processor.
    pub(crate) with_pauses: bool,
    /// Shares of the stages, in their order.
    pub(crate) stages: Vec<(String, f64)>,
}

/// All complete runs of one variant on one task.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Variant {
    pub(crate) name: String,
    pub(crate) group: String,
    /// `name=value`; empty for a group as it is.
    pub(crate) switches: Vec<String>,
    pub(crate) algorithm: String,
    pub(crate) seeds: Vec<u64>,
    pub(crate) steps: u64,
    pub(crate) area: Spread,
    pub(crate) end: Spread,
    pub(crate) start: Spread,
    pub(crate) entropy_end: Spread,
    /// Area under each `pass@k`.
    pub(crate) pass_area: BTreeMap<String, Spread>,
    pub(crate) pass_end: BTreeMap<String, Spread>,
    pub(crate) time_to: Vec<TimeTo>,
    pub(crate) cost: Option<Cost>,
    #[serde(skip)]
    pub(crate) runs: Vec<Run>,
}

impl Variant {
    pub(crate) fn of(runs: Vec<Run>) -> Option<Self> {
        let about = runs.first()?.about.clone();
        let spread =
            |measure: &dyn Fn(Cut<'_>) -> f64| Spread::of(runs.iter().map(|run| measure(Cut::whole(run))).collect());
        let keys = pass_keys(&runs);
        let each = |measure: &dyn Fn(Cut<'_>, &str) -> f64| -> BTreeMap<String, Spread> {
            keys.iter().map(|key| (key.clone(), spread(&|cut| measure(cut, key)))).collect()
        };
        Some(Self {
            switches: runs[0].switches().iter().map(ToString::to_string).collect(),
            seeds: runs.iter().map(|run| run.about.seed).collect(),
            area: spread(&|cut| cut.area(REWARD)),
            end: spread(&|cut| cut.end(REWARD)),
            start: spread(&|cut| mean(&cut.part(REWARD, 0.0, 0.02))),
            entropy_end: spread(&|cut| cut.end(ENTROPY)),
            pass_area: each(&|cut, key| cut.area(key)),
            pass_end: each(&|cut, key| cut.end(key)),
            time_to: Vec::new(),
            cost: cost(&runs),
            name: about.variant,
            group: about.group,
            algorithm: about.algorithm,
            steps: runs.iter().map(|run| run.about.steps).min().unwrap_or(0),
            runs,
        })
    }

    /// Fills in the steps to each threshold.
    pub(crate) fn set_thresholds(&mut self, thresholds: &[f64]) {
        let time_to = |&threshold: &f64| {
            let steps: Vec<Option<usize>> =
                self.runs.iter().map(|run| Cut::whole(run).time_to(REWARD, threshold)).collect();
            let reached: Vec<f64> = steps.iter().flatten().map(|&step| step as f64).collect();
            let mean = (!reached.is_empty()).then(|| mean(&reached));
            TimeTo { threshold, reached: reached.len(), mean, steps }
        };
        self.time_to = thresholds.iter().map(time_to).collect();
    }

    /// A measure of every run.
    pub(crate) fn each(&self, measure: impl Fn(Cut<'_>) -> f64) -> Vec<f64> {
        self.runs.iter().map(|run| measure(Cut::whole(run))).collect()
    }

    /// Pairs of runs with the same seed, over the steps that both have.
    pub(crate) fn pairs<'a>(&'a self, other: &'a Self) -> Vec<(Cut<'a>, Cut<'a>)> {
        let same = |run: &Run| other.runs.iter().find(|other| other.about.seed == run.about.seed);
        self.runs.iter().filter_map(|run| Some(Cut::common(run, same(run)?))).collect()
    }
}

/// The keys `pass@2`, `pass@8` … of the runs, in the order of k, without those that only repeat the reward.
pub(crate) fn pass_keys(runs: &[Run]) -> Vec<String> {
    let mut keys: Vec<(u64, String)> = Vec::new();
    for key in runs.iter().flat_map(|run| run.columns.keys()) {
        let Some(k) = key.rsplit('/').next().and_then(|name| name.strip_prefix("pass@")?.parse().ok()) else {
            continue;
        };
        let repeats = runs.iter().all(|run| run.columns.get(key) == run.columns.get(REWARD));
        if !repeats && !keys.iter().any(|(_, known)| known == key) {
            keys.push((k, key.clone()));
        }
    }
    keys.sort();
    keys.into_iter().map(|(_, key)| key).collect()
}

fn cost(runs: &[Run]) -> Option<Cost> {
    let steps = || runs.iter().flat_map(|run| &run.timing);
    let all: Vec<f64> = steps().map(|step| step.seconds).collect();
    let total = sum(all.iter().copied());
    if total <= 0.0 {
        return None;
    }
    let mut stages: Vec<(String, f64)> = Vec::new();
    for (name, seconds) in steps().flat_map(|step| &step.stages) {
        let share = seconds.as_f64().unwrap_or(0.0) / total;
        match stages.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += share,
            None => stages.push((name.clone(), share)),
        }
    }
    let of_run = |run: &Run| sum(run.timing.iter().map(|step| step.seconds));
    Some(Cost {
        seconds: Spread::of(runs.iter().map(of_run).collect()),
        seconds_per_step: median(&all),
        formulas: median(&steps().map(|step| step.formulas / step.computing()).collect::<Vec<_>>()),
        formulas_of_all: sum(steps().map(|step| step.formulas)) / sum(steps().map(Timing::computing)),
        with_pauses: steps().any(|step| step.computing.is_none()),
        stages,
    })
}

/// A measure of two variants and the tests of its differences.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Comparison {
    pub(crate) variant: String,
    pub(crate) against: String,
    /// Mean of the variant over the pairs.
    pub(crate) value: f64,
    /// Mean of the other over the pairs.
    pub(crate) baseline: f64,
    pub(crate) paired: Option<Paired>,
}

/// Compares two variants by a measure that may look at both runs of a pair.
pub(crate) fn compare(
    variant: &Variant,
    against: &Variant,
    measure: impl Fn(Cut<'_>, Cut<'_>) -> (f64, f64),
) -> Option<Comparison> {
    let both: Vec<(f64, f64)> = variant.pairs(against).into_iter().map(|(a, b)| measure(a, b)).collect();
    if both.is_empty() || both.iter().any(|(a, b)| !a.is_finite() || !b.is_finite()) {
        return None;
    }
    let (values, baselines): (Vec<f64>, Vec<f64>) = both.iter().copied().unzip();
    let differences: Vec<f64> = both.iter().map(|(a, b)| a - b).collect();
    Some(Comparison {
        variant: variant.name.clone(),
        against: against.name.clone(),
        value: mean(&values),
        baseline: mean(&baselines),
        paired: paired(&differences),
    })
}

/// Compares by a measure of one run.
pub(crate) fn compare_by(variant: &Variant, against: &Variant, measure: impl Fn(Cut<'_>) -> f64) -> Option<Comparison> {
    compare(variant, against, |a, b| (measure(a), measure(b)))
}
