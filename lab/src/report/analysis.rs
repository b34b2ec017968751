//! Everything the report says, as data: the page and `report.json` print this.

use std::collections::BTreeMap;

use serde::Serialize;
use serde_json::Value;

use super::{
    claims::judge,
    compare::{compare_by, pass_keys, Comparison, Variant},
    curves::{curves, snapshots, Curve, Snapshot},
    explain::{explain, Facts},
    findings::findings,
    judge::Judgement,
    load::{LeftOut, Run, Runs},
    series::REWARD,
    statistics::mean,
    text::{percent, Text},
};

/// The groups of the design, in its order.
pub(crate) const GROUPS: [&str; 5] = ["C0", "C0k", "C1", "C2", "C3"];
/// Rewards whose first passage is reported if at least one run gets there.
const THRESHOLDS: [f64; 5] = [0.2, 0.3, 0.4, 0.5, 0.8];

/// The report of a folder of runs.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) findings: Vec<Text>,
    pub(crate) tasks: Vec<Task>,
    pub(crate) left_out: Vec<LeftOut>,
}

/// All runs of one task.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Task {
    pub(crate) name: String,
    pub(crate) title: Text,
    pub(crate) setup: Text,
    pub(crate) findings: Vec<Text>,
    /// The groups as they are, then those with switches.
    pub(crate) variants: Vec<Variant>,
    /// Differences between groups, by measure.
    pub(crate) comparisons: Vec<Difference>,
    pub(crate) judgements: Vec<Judgement>,
    pub(crate) switches: Vec<Switch>,
    pub(crate) reasons: Vec<Reason>,
    pub(crate) best: Option<Best>,
    pub(crate) curves: Vec<Curve>,
    pub(crate) snapshots: Vec<Snapshot>,
}

/// A measure compared between two groups.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Difference {
    pub(crate) measure: String,
    pub(crate) comparison: Comparison,
}

/// A variant with switches beside its group.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Switch {
    pub(crate) variant: String,
    pub(crate) group: String,
    pub(crate) seeds: usize,
    pub(crate) steps: u64,
    pub(crate) area: Option<Comparison>,
    pub(crate) end: Option<Comparison>,
    /// Against C0 with the same algorithm.
    pub(crate) area_baseline: Option<Comparison>,
    pub(crate) facts: Facts,
}

/// What the controllers of a variant did.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Reason {
    pub(crate) facts: Facts,
    pub(crate) sentences: Vec<Text>,
}

/// The setting whose area under the reward lies furthest above that of C0.
#[derive(Clone, Debug, Serialize)]
pub(crate) struct Best {
    /// Among all variants.
    pub(crate) variant: String,
    /// Among those with the entropy budget.
    pub(crate) with_budget: Option<String>,
    /// How many variants were compared.
    pub(crate) candidates: usize,
    pub(crate) against: Vec<Difference>,
}

impl Report {
    pub(crate) fn of(runs: Runs) -> Self {
        let mut by_task: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        for run in runs.complete {
            by_task.entry(run.about.task.clone()).or_default().push(run);
        }
        let mut tasks: Vec<Task> = by_task.into_iter().map(|(name, runs)| Task::of(name, runs)).collect();
        tasks.sort_by_key(|task| (task.name != "two-digit", task.name.clone()));
        let mut report = Self { findings: Vec::new(), tasks, left_out: runs.left_out };
        for index in 0..report.tasks.len() {
            report.tasks[index].findings = findings(&report.tasks[index]);
        }
        report.findings = super::findings::overall(&report);
        report
    }
}

impl Task {
    fn of(name: String, runs: Vec<Run>) -> Self {
        let keys = pass_keys(&runs);
        let mut by_variant: BTreeMap<String, Vec<Run>> = BTreeMap::new();
        let setup = setup(&runs);
        for run in runs {
            by_variant.entry(run.about.variant.clone()).or_default().push(run);
        }
        let mut variants: Vec<Variant> = by_variant.into_values().filter_map(Variant::of).collect();
        let place = |group: &str| GROUPS.iter().position(|known| *known == group).unwrap_or(GROUPS.len());
        variants.sort_by_key(|variant| (!variant.switches.is_empty(), place(&variant.group), variant.name.clone()));
        let thresholds = thresholds(&variants);
        variants.iter_mut().for_each(|variant| variant.set_thresholds(&thresholds));

        let find = |name: &str| variants.iter().find(|variant| variant.name == name);
        let (baseline, controlled) = (find("C0"), find("C0k"));
        let groups: Vec<&Variant> = variants.iter().filter(|variant| variant.switches.is_empty()).collect();
        let tested: Vec<&Variant> = groups.iter().copied().filter(|variant| !variant.group.starts_with("C0")).collect();
        let judgements = baseline.map(|baseline| judge(&tested, baseline, controlled)).unwrap_or_default();
        let reasons = baseline.map(|baseline| reasons(&variants, baseline, controlled)).unwrap_or_default();
        let title = match &*name {
            "two-digit" => Text::new("Two-digit addition", "两位数加法"),
            "one-digit" => Text::new("One-digit addition", "一位数加法"),
            other => Text::same(other),
        };
        Self {
            title,
            setup,
            findings: Vec::new(),
            comparisons: comparisons(&groups, &keys),
            judgements,
            switches: switches(&variants),
            reasons,
            best: best(&variants),
            curves: curves(&variants),
            snapshots: snapshots(&groups),
            variants,
            name,
        }
    }

    pub(crate) fn variant(&self, name: &str) -> Option<&Variant> {
        self.variants.iter().find(|variant| variant.name == name)
    }

    /// The largest number of steps.
    pub(crate) fn steps(&self) -> u64 {
        self.groups().map(|variant| variant.steps).max().unwrap_or(1)
    }

    /// The switch whose area lies furthest below that of its group.
    pub(crate) fn costly_switch(&self) -> Option<&Switch> {
        let cost = |switch: &Switch| Some(switch.area.as_ref()?.paired.as_ref()?.mean).filter(|mean| *mean < 0.0);
        let costly = self.switches.iter().filter_map(|switch| Some((cost(switch)?, switch)));
        costly.min_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, switch)| switch)
    }

    /// The groups as they are.
    pub(crate) fn groups(&self) -> impl Iterator<Item = &Variant> {
        self.variants.iter().filter(|variant| variant.switches.is_empty())
    }
}

/// Fixed rewards that somebody reaches and not everybody starts above, and 90 % of where C0 ends.
fn thresholds(variants: &[Variant]) -> Vec<f64> {
    let most = |value: fn(&Variant) -> f64| variants.iter().map(value).fold(f64::NEG_INFINITY, f64::max);
    let (start, end) = (most(|variant| variant.start.mean), most(|variant| variant.end.mean));
    let mut thresholds: Vec<f64> = THRESHOLDS.into_iter().filter(|x| *x > start && *x <= end).collect();
    // the highest two say enough
    thresholds.drain(..thresholds.len().saturating_sub(2));
    if let Some(baseline) = variants.iter().find(|variant| variant.name == "C0") {
        thresholds.push(0.9 * baseline.end.mean);
    }
    thresholds.retain(|x| x.is_finite());
    thresholds
}

fn comparisons(groups: &[&Variant], passes: &[String]) -> Vec<Difference> {
    let mut found = Vec::new();
    for against in ["C0", "C0k"] {
        let Some(against) = groups.iter().find(|variant| variant.name == against) else { continue };
        for variant in groups.iter().filter(|variant| variant.name != "C0" && variant.name != against.name) {
            found.extend(measures(variant, against, passes));
        }
    }
    found
}

/// Area and end of the reward and of the largest k.
fn measures(variant: &Variant, against: &Variant, passes: &[String]) -> Vec<Difference> {
    let mut keys = vec![REWARD.to_string()];
    keys.extend(passes.last().cloned());
    let mut found = Vec::new();
    for key in keys {
        let name = if key == REWARD { "reward" } else { &key };
        let area = compare_by(variant, against, |cut| cut.area(&key));
        let end = compare_by(variant, against, |cut| cut.end(&key));
        found.extend(area.map(|comparison| Difference { measure: format!("AUC({name})"), comparison }));
        found.extend(end.map(|comparison| Difference { measure: format!("end({name})"), comparison }));
    }
    found
}

fn switches(variants: &[Variant]) -> Vec<Switch> {
    let find = |name: &str| variants.iter().find(|variant| variant.name == name);
    let of = |variant: &Variant| {
        let group = find(&variant.group);
        let by = |measure: &dyn Fn(super::series::Cut<'_>) -> f64, against: Option<&Variant>| {
            compare_by(variant, against?, measure)
        };
        Switch {
            variant: variant.name.clone(),
            group: variant.group.clone(),
            seeds: variant.runs.len(),
            steps: variant.steps,
            area: by(&|cut| cut.area(REWARD), group),
            end: by(&|cut| cut.end(REWARD), group),
            area_baseline: by(&|cut| cut.area(REWARD), find(&baseline_of(variant))),
            facts: Facts::of(variant),
        }
    };
    variants.iter().filter(|variant| !variant.switches.is_empty()).map(of).collect()
}

/// C0 with the same algorithm.
fn baseline_of(variant: &Variant) -> String {
    let algorithm = variant.switches.iter().find(|switch| switch.starts_with("algorithm="));
    algorithm.map_or("C0".into(), |algorithm| format!("C0+{algorithm}"))
}

fn reasons(variants: &[Variant], baseline: &Variant, controlled: Option<&Variant>) -> Vec<Reason> {
    let explained = |variant: &Variant| {
        let (facts, sentences) = explain(variant, baseline, controlled);
        Reason { facts, sentences }
    };
    variants.iter().map(explained).collect()
}

/// The variant that lies furthest above C0 at the same seeds. Variants with a single seed or fewer steps than the groups
/// do not compete.
fn best(variants: &[Variant]) -> Option<Best> {
    let baseline = variants.iter().find(|variant| variant.name == "C0")?;
    let area = |variant: &Variant, against: &Variant| compare_by(variant, against, |cut| cut.area(REWARD));
    let lead = |variant: &Variant| {
        let fits = variant.steps == baseline.steps && variant.runs.len() >= baseline.runs.len().min(2);
        area(variant, baseline)?.paired.filter(|_| fits).map(|paired| paired.mean)
    };
    let leads: Vec<(f64, &Variant)> = variants.iter().filter_map(|variant| Some((lead(variant)?, variant))).collect();
    let most = |with_budget: bool| {
        let chosen = leads.iter().filter(|(_, variant)| !with_budget || !variant.group.starts_with("C0"));
        chosen.max_by(|a, b| a.0.total_cmp(&b.0)).map(|(_, variant)| *variant)
    };
    let (best, with_budget) = (most(false)?, most(true));
    let mut against = Vec::new();
    for variant in [Some(best), with_budget.filter(|variant| variant.name != best.name)].into_iter().flatten() {
        let others =
            variants.iter().filter(|other| ["C0", "C0k"].contains(&&*other.name) && other.name != variant.name);
        let found = others.filter_map(|other| area(variant, other));
        against.extend(found.map(|comparison| Difference { measure: "AUC(reward)".into(), comparison }));
    }
    let (candidates, with_budget) = (leads.len(), with_budget.map(|variant| variant.name.clone()));
    Some(Best { variant: best.name.clone(), with_budget, candidates, against })
}

/// What was trained: sizes, steps and seeds, as the runs record them.
fn setup(runs: &[Run]) -> Text {
    let Some(first) = runs.iter().find(|run| run.switches().is_empty()).or(runs.first()) else {
        return Text::default();
    };
    let about = &first.about;
    let number = |path: &str| about.settings.pointer(path).and_then(Value::as_f64);
    let (mut en, mut zh) = (Vec::new(), Vec::new());
    let mut add = |english: String, chinese: String| {
        en.push(english);
        zh.push(chinese);
    };
    let algorithm = about.algorithm.to_uppercase();
    if !algorithm.is_empty() {
        add(algorithm.clone(), algorithm);
    }
    if let Some(parameters) = about.policy_parameters.or(about.parameters) {
        add(format!("a policy of {parameters} parameters"), format!("策略 {parameters} 个参数"));
    }
    let steps = about.steps;
    match (number("/size/prompts"), number("/size/samples")) {
        (Some(prompts), Some(samples)) => add(
            format!("{steps} steps of {prompts} prompts × {samples} samples"),
            format!("{steps} 步，每步 {prompts} 题 × {samples} 个样本"),
        ),
        _ => add(format!("{steps} steps"), format!("{steps} 步")),
    }
    let warm_ups: Vec<(f64, f64)> = runs
        .iter()
        .filter(|run| run.about.group == about.group && run.switches().is_empty())
        .filter_map(|run| Some((run.about.warmup.get("steps")?.as_f64()?, run.about.warmup.get("accuracy")?.as_f64()?)))
        .collect();
    let (steps, accuracies): (Vec<f64>, Vec<f64>) = warm_ups.into_iter().unzip();
    let (most, accuracy) = (steps.iter().copied().fold(0.0, f64::max), percent(mean(&accuracies)));
    if most > 0.0 {
        add(
            format!("after a supervised warm-up of up to {most} steps, to {accuracy} right answers"),
            format!("先做至多 {most} 步监督预热，正确率达 {accuracy}"),
        );
    } else {
        add("from random weights".into(), "从随机权重开始".into());
    }
    Text::new(format!("{}.", en.join(", ")), format!("{}。", zh.join("，")))
}
