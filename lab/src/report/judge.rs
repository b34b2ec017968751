//! The judgements and hypotheses of the experiment's design, each as held or not held with its numbers.

use serde::Serialize;

use super::{
    compare::{compare, compare_by, Comparison, Variant},
    series::Cut,
    statistics::{deviation, mean},
    text::Text,
};

/// A difference counts if the exact sign-flip test, one-sided, gives at most this: all five of five seeds agree.
pub(crate) const SIGNIFICANT: f64 = 0.05;
/// With n pairs the smallest p is 2⁻ⁿ: with fewer nothing can be significant.
pub(crate) const LEAST_PAIRS: usize = 5;
/// A curve is smooth if no step changes it by more than this share of its range.
pub(crate) const SMOOTH: f64 = 0.1;

/// Outcome of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Verdict {
    Held,
    NotHeld,
    /// Too few seeds for any outcome of the test, or the runs do not log the numbers.
    Undecided,
}

/// The numbers behind a verdict.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Numbers {
    /// A difference from the baseline, paired by seed.
    Difference(Comparison),
    /// Standard deviations over seeds: one number per variant, so there is no test.
    Deviations {
        value: f64,
        baseline: f64,
    },
    /// A criterion that a run meets by itself: how many seeds do, and the mean of the number that decides.
    Seeds {
        meet: usize,
        of: usize,
        value: f64,
    },
    Missing,
}

/// One check of one variant.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Outcome {
    pub(crate) verdict: Verdict,
    pub(crate) numbers: Numbers,
}

/// A check: its words, and its outcome for each variant and baseline of the table.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Check {
    pub(crate) what: Text,
    /// Checks with the same part are alternatives: one that held is enough.
    pub(crate) part: usize,
    pub(crate) outcomes: Vec<Outcome>,
}

/// A judgement or hypothesis for some variants, each against some baseline.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Judgement {
    pub(crate) name: String,
    pub(crate) claim: Text,
    /// Variant and baseline of each column.
    pub(crate) columns: Vec<(String, String)>,
    pub(crate) verdicts: Vec<Verdict>,
    pub(crate) checks: Vec<Check>,
}

#[derive(Clone, Copy)]
pub(crate) enum Wanted {
    Higher,
    Lower,
}

pub(crate) type Measure<'a> = &'a dyn Fn(Cut<'_>, Cut<'_>) -> (f64, f64);
pub(crate) type Criterion<'a> = &'a dyn Fn(Cut<'_>) -> Option<(bool, f64)>;

/// Collects the checks of one judgement.
pub(crate) struct Builder<'a> {
    pub(crate) columns: Vec<(&'a Variant, &'a Variant)>,
    checks: Vec<Check>,
}

impl<'a> Builder<'a> {
    pub(crate) fn new(columns: Vec<(&'a Variant, &'a Variant)>) -> Self {
        Self { columns, checks: Vec::new() }
    }

    fn add(&mut self, part: usize, what: Text, outcome: impl Fn(&Variant, &Variant) -> Outcome) {
        let outcomes = self.columns.iter().map(|(variant, against)| outcome(variant, against)).collect();
        self.checks.push(Check { what, part, outcomes });
    }

    pub(crate) fn paired(&mut self, part: usize, what: Text, wanted: Wanted, measure: Measure<'_>) {
        self.add(part, what, |variant, against| difference(compare(variant, against, measure), wanted));
    }

    pub(crate) fn by(&mut self, part: usize, what: Text, wanted: Wanted, measure: impl Fn(Cut<'_>) -> f64) {
        self.add(part, what, |variant, against| difference(compare_by(variant, against, &measure), wanted));
    }

    pub(crate) fn every_seed(&mut self, part: usize, what: Text, criterion: Criterion<'_>) {
        self.add(part, what, |variant, _| {
            let found: Option<Vec<(bool, f64)>> = variant.runs.iter().map(|run| criterion(Cut::whole(run))).collect();
            let Some(found) = found else {
                return Outcome { verdict: Verdict::Undecided, numbers: Numbers::Missing };
            };
            let meet = found.iter().filter(|(meets, _)| *meets).count();
            let value = mean(&found.iter().map(|(_, value)| *value).collect::<Vec<_>>());
            let verdict = if meet == found.len() { Verdict::Held } else { Verdict::NotHeld };
            Outcome { verdict, numbers: Numbers::Seeds { meet, of: found.len(), value } }
        });
    }

    pub(crate) fn less_spread(&mut self, part: usize, what: Text, measure: impl Fn(Cut<'_>) -> f64) {
        self.add(part, what, |variant, against| {
            let (values, baselines): (Vec<f64>, Vec<f64>) =
                variant.pairs(against).into_iter().map(|(a, b)| (measure(a), measure(b))).unzip();
            let (Some(value), Some(baseline)) = (deviation(&values), deviation(&baselines)) else {
                return Outcome { verdict: Verdict::Undecided, numbers: Numbers::Missing };
            };
            let verdict = if value < baseline { Verdict::Held } else { Verdict::NotHeld };
            Outcome { verdict, numbers: Numbers::Deviations { value, baseline } }
        });
    }

    pub(crate) fn finish(self, name: &str, claim: Text) -> Judgement {
        let verdicts = (0..self.columns.len()).map(|column| overall(&self.checks, column)).collect();
        let columns = self.columns.iter().map(|(a, b)| (a.name.clone(), b.name.clone())).collect();
        Judgement { name: name.into(), claim, columns, verdicts, checks: self.checks }
    }
}

fn difference(comparison: Option<Comparison>, wanted: Wanted) -> Outcome {
    let Some(comparison) = comparison else {
        return Outcome { verdict: Verdict::Undecided, numbers: Numbers::Missing };
    };
    let verdict = match &comparison.paired {
        None => Verdict::Undecided,
        Some(paired) => {
            let (p, right) = match wanted {
                Wanted::Higher => (paired.flip_p_greater, paired.mean > 0.0),
                Wanted::Lower => (paired.flip_p_less, paired.mean < 0.0),
            };
            let possible = paired.pairs >= LEAST_PAIRS;
            match (right && p <= SIGNIFICANT, possible) {
                (true, _) => Verdict::Held,
                (false, true) => Verdict::NotHeld,
                (false, false) => Verdict::Undecided,
            }
        }
    };
    Outcome { verdict, numbers: Numbers::Difference(comparison) }
}

/// Every part must hold, by any of its checks.
fn overall(checks: &[Check], column: usize) -> Verdict {
    let mut parts: Vec<usize> = checks.iter().map(|check| check.part).collect();
    parts.dedup();
    let of_part = |part: usize| {
        let verdicts = || checks.iter().filter(|check| check.part == part).map(|check| check.outcomes[column].verdict);
        if verdicts().any(|verdict| verdict == Verdict::Held) {
            Verdict::Held
        } else if verdicts().any(|verdict| verdict == Verdict::Undecided) {
            Verdict::Undecided
        } else {
            Verdict::NotHeld
        }
    };
    let verdicts: Vec<Verdict> = parts.into_iter().map(of_part).collect();
    if verdicts.contains(&Verdict::NotHeld) {
        Verdict::NotHeld
    } else if verdicts.contains(&Verdict::Undecided) || verdicts.is_empty() {
        Verdict::Undecided
    } else {
        Verdict::Held
    }
}
