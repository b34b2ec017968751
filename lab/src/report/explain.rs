//! Why a variant did what it did: which controller moved when, in sentences made from the numbers.

use serde::Serialize;
use tokenwise::control::{DualGameRules, KlControlConfig};

use super::{
    compare::{compare_by, Variant},
    judge::SIGNIFICANT,
    series::{range, Cut, BETA, BUDGET, END, ENTROPY, KL, LAMBDA, REWARD, USAGE},
    statistics::{mean, median},
    text::{number, percent, seeds, signed, Text},
};

/// Entropy below this share of its start counts as collapsed.
pub(crate) const COLLAPSED: f64 = 0.2;
/// The largest value of p (1 − p) |1 + ln p| for p in 0 … 1, at p = 0.715.
const PLAIN_BOUND: f64 = 0.135_414;
/// A term below this share of an advantage is called small.
const SMALL: f64 = 0.05;
/// A controller that does nothing in this share of the steps is called idle.
const IDLE: f64 = 0.95;

/// What the controllers of a variant did; means over seeds.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Facts {
    pub(crate) variant: String,
    pub(crate) beta: Option<Course>,
    /// Share of steps at which beta rises.
    pub(crate) beta_rises: f64,
    pub(crate) lambda: Option<Course>,
    /// Share of steps with lambda = 0.
    pub(crate) lambda_zero: f64,
    pub(crate) budget: Option<Course>,
    pub(crate) usage: f64,
    /// Share of steps with usage above 1: only there lambda rises.
    pub(crate) usage_above: f64,
    pub(crate) kl: Option<Course>,
    pub(crate) entropy: Option<Course>,
    /// Seeds whose entropy falls below a fifth of its start for good, and the median step.
    pub(crate) collapsed: usize,
    pub(crate) collapse_step: Option<f64>,
    pub(crate) beta_median: f64,
    pub(crate) kl_median: f64,
    /// β·√(2·KL) of the medians: about how much the KL term moves the advantage of a token.
    pub(crate) pull: f64,
    /// First and last step with lambda above 0, if there is one.
    pub(crate) lambda_active: Option<(f64, f64)>,
    /// Steps at which lambda falls to about a tenth at once, as the collapse guard does; mean per run.
    pub(crate) guarded: f64,
    /// Seeds in which the largest beta comes within 20 steps of the largest KL.
    pub(crate) spikes_together: usize,
    /// Change of the reward in the second half of the run.
    pub(crate) late_gain: f64,
}

/// A curve in four numbers.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub(crate) struct Course {
    /// Median of the first fiftieth of the steps: KL and beta spike.
    pub(crate) start: f64,
    /// Median of the last twentieth.
    pub(crate) end: f64,
    pub(crate) most: f64,
    /// Step of the largest value.
    pub(crate) most_at: f64,
}

impl Course {
    fn of(variant: &Variant, key: &str) -> Option<Self> {
        let all: Vec<[f64; 4]> = variant.runs.iter().filter_map(|run| of_run(Cut::whole(run), key)).collect();
        if all.is_empty() {
            return None;
        }
        let [start, end, most, most_at] = [0, 1, 2, 3].map(|k| mean(&all.iter().map(|run| run[k]).collect::<Vec<_>>()));
        Some(Self { start, end, most, most_at })
    }
}

fn of_run(cut: Cut<'_>, key: &str) -> Option<[f64; 4]> {
    let column = cut.column(key);
    let (_, most) = range(&cut.part(key, 0.0, 1.0));
    let at = column.iter().position(|x| *x == most)?;
    Some([median(&cut.part(key, 0.0, 0.02)), median(&cut.part(key, 1.0 - END, 1.0)), most, (at + 1) as f64])
}

/// How often the collapse guard acted: it divides lambda by ten.
fn guarded(cut: Cut<'_>) -> f64 {
    let column = cut.part(LAMBDA, 0.0, 1.0);
    column.windows(2).filter(|pair| pair[0] > 1e-3 && pair[1] < 0.12 * pair[0]).count() as f64
}

/// First and last step with lambda above 0, means over the runs that have one.
fn lambda_active(variant: &Variant) -> Option<(f64, f64)> {
    let of = |run| {
        let column = Cut::whole(run).column(LAMBDA);
        let above = |x: &f64| *x > 0.0;
        Some((column.iter().position(above)? as f64, column.iter().rposition(above)? as f64))
    };
    let (first, last): (Vec<f64>, Vec<f64>) = variant.runs.iter().filter_map(of).unzip();
    (!first.is_empty()).then(|| (mean(&first), mean(&last)))
}

/// Mean over the runs of the share of steps that meet a condition.
fn share(variant: &Variant, key: &str, condition: impl Fn(f64) -> bool) -> f64 {
    let of = |cut: Cut<'_>| {
        let column = cut.part(key, 0.0, 1.0);
        column.iter().filter(|x| condition(**x)).count() as f64 / column.len() as f64
    };
    mean(&variant.each(of))
}

impl Facts {
    pub(crate) fn of(variant: &Variant) -> Self {
        let rises = |cut: Cut<'_>| {
            let column = cut.part(BETA, 0.0, 1.0);
            column.windows(2).filter(|pair| pair[1] > pair[0]).count() as f64
                / column.len().max(2).saturating_sub(1) as f64
        };
        let steps: Vec<f64> = variant
            .runs
            .iter()
            .filter_map(|run| Cut::whole(run).collapse(ENTROPY, COLLAPSED))
            .map(|step| step as f64)
            .collect();
        let (beta, kl) = (Course::of(variant, BETA), Course::of(variant, KL));
        let median_of = |key: &str| mean(&variant.each(|cut| median(&cut.part(key, 0.0, 1.0))));
        let (beta_median, kl_median) = (median_of(BETA), median_of(KL));
        let near = |cut: Cut<'_>| {
            let [beta, kl] = [BETA, KL].map(|key| of_run(cut, key).map_or(f64::NAN, |run| run[3]));
            beta >= kl && beta <= kl + 20.0
        };
        Self {
            variant: variant.name.clone(),
            beta_rises: mean(&variant.each(rises)),
            lambda: Course::of(variant, LAMBDA),
            lambda_zero: share(variant, LAMBDA, |x| x == 0.0),
            budget: Course::of(variant, BUDGET),
            usage: mean(&variant.each(|cut| mean(&cut.part(USAGE, 0.0, 1.0)))),
            usage_above: share(variant, USAGE, |x| x > 1.0),
            entropy: Course::of(variant, ENTROPY),
            collapsed: steps.len(),
            collapse_step: (!steps.is_empty()).then(|| median(&steps)),
            pull: beta_median * tokenwise::math::sqrt(2.0 * kl_median.max(0.0)),
            beta_median,
            kl_median,
            lambda_active: lambda_active(variant),
            guarded: mean(&variant.each(guarded)),
            spikes_together: variant.runs.iter().filter(|run| near(Cut::whole(run))).count(),
            late_gain: mean(&variant.each(|cut| cut.end(REWARD) - mean(&cut.part(REWARD, 0.45, 0.55)))),
            beta,
            kl,
        }
    }
}

/// The sentences about one variant, beside C0 and C0k.
pub(crate) fn explain(variant: &Variant, baseline: &Variant, controlled: Option<&Variant>) -> (Facts, Vec<Text>) {
    let (facts, base) = (Facts::of(variant), Facts::of(baseline));
    let mut sentences = Vec::new();
    sentences.extend(about_beta(&facts, &base, variant));
    sentences.extend(about_lambda(&facts, variant));
    if !variant.group.starts_with("C0") {
        sentences.extend(about_budget(&facts));
    }
    sentences.extend(about_entropy(&facts, &base, variant, baseline));
    sentences.extend(about_result(&facts, &base, variant, baseline));
    if let Some(controlled) = controlled.filter(|controlled| controlled.name != variant.name) {
        sentences.extend(about_control(variant, controlled));
    }
    (facts, sentences)
}

fn about_beta(facts: &Facts, base: &Facts, variant: &Variant) -> Option<Text> {
    let (beta, kl) = (facts.beta.filter(|beta| beta.most > 0.0)?, facts.kl?);
    let [start, end, most, middle] = [beta.start, beta.end, beta.most, facts.beta_median].map(number);
    let (rises, pull) = (percent(facts.beta_rises), number(facts.pull));
    let mut text = Text::new(
        format!("beta goes from {start} to {end} (median {middle}, largest {most}) and rises in {rises} of the steps."),
        format!("beta 从 {start} 到 {end}（中位数 {middle}，最大 {most}），在 {rises} 的步中上升。"),
    );
    if let Some(target) = target(variant) {
        let (above, target) = (percent(share(variant, KL, |x| x > target)), number(target));
        text = text.then(&Text::new(
            format!("KL_per_token is above the fixed target {target} in {above} of the steps."),
            format!("KL_per_token 在 {above} 的步中高于固定目标 {target}。"),
        ));
    }
    if facts.beta_rises > 0.7 && beta.end > 2.0 * beta.start.max(1e-6) {
        text = text.then(&Text::new(
            "The controller integrates: every step with KL above the target adds to beta, and few take from it.",
            "控制器持续积分：每个 KL 高于目标的步都抬高 beta，很少有步将其拉低。",
        ));
    }
    let [kl_end, kl_middle, kl_most] = [kl.end, facts.kl_median, kl.most].map(number);
    let beside = base.kl.map_or_else(Text::default, |kl| {
        Text::new(format!(" ({} in C0)", number(kl.end)), format!("（C0 为 {}）", number(kl.end)))
    });
    text = text.then(&Text::new(
        format!("KL_per_token ends at {kl_end}{}.", beside.en),
        format!("KL_per_token 终值 {kl_end}{}。", beside.zh),
    ));
    if kl.most > 5.0 * facts.kl_median {
        let (together, of) = (facts.spikes_together, variant.runs.len());
        text = text.then(&Text::new(
            format!(
                "It spikes to {kl_most} (median {kl_middle}); in {together} of {of} seeds the largest beta follows the \
                 largest KL within 20 steps."
            ),
            format!(
                "其尖峰达 {kl_most}（中位数 {kl_middle}）；{together}/{of} 个种子中 beta 的最大值在 KL 最大值之后 20 步内出现。"
            ),
        ));
    }
    let size = if facts.pull < SMALL {
        Text::new("so in most steps the KL term hardly matters", "因此大多数步中 KL 项几乎不起作用")
    } else {
        Text::new("which is not small", "不可忽略")
    };
    Some(text.then(&Text::new(
        format!(
            "At the medians the KL term moves the advantage of a token by about β·√(2·KL) = {pull}, where \
             advantages have a deviation of 1: {}.",
            size.en
        ),
        format!("按中位数，KL 项对单个 token 优势的影响约为 β·√(2·KL) = {pull}（优势的标准差为 1）：{}。", size.zh),
    )))
}

fn about_lambda(facts: &Facts, variant: &Variant) -> Option<Text> {
    let lambda = facts.lambda?;
    if variant.group.starts_with("C0") {
        return None;
    }
    let (zero, most, at, end) =
        (percent(facts.lambda_zero), number(lambda.most), format!("{:.0}", lambda.most_at), number(lambda.end));
    let mut text = Text::new(
        format!("lambda is 0 in {zero} of the steps; its largest value is {most} (step {at}), its end value {end}."),
        format!("lambda 在 {zero} 的步中为 0；最大值 {most}（第 {at} 步），终值 {end}。"),
    );
    if let Some((first, last)) = facts.lambda_active {
        text = text.then(&Text::new(
            format!("It is above 0 from step {first:.0} to step {last:.0}."),
            format!("第 {first:.0} 步到第 {last:.0} 步大于 0。"),
        ));
    }
    if facts.guarded > 0.0 {
        let times = format!("{:.1}", facts.guarded);
        text = text.then(&Text::new(
            format!("It falls to a tenth in a single step {times} times per run: the collapse guard."),
            format!("每次运行中有 {times} 次单步降至十分之一：崩塌保护触发。"),
        ));
    }
    let plain = variant.runs.iter().all(|run| run.about.weight == "plain");
    if facts.lambda_zero > IDLE {
        text = text.then(&Text::new(
            "The entropy term is therefore absent from nearly every update: what is left of the variant is gamma and \
             the KL term.",
            "因此几乎所有更新中都没有熵项：该变体只剩 gamma 与 KL 项。",
        ));
    } else if plain {
        let bound = percent(PLAIN_BOUND * lambda.most);
        let size = if PLAIN_BOUND * lambda.most < SMALL {
            Text::new("the entropy term hardly matters", "熵项几乎不起作用")
        } else {
            Text::new("the entropy term can matter", "熵项可以起作用")
        };
        text = text.then(&Text::new(
            format!(
                "With w = p(1 − p)|A| the entropy term λ·w·(−ℓ − 1) is at most 0.135·λ·|A|, that is {bound} of an \
                 advantage at the largest lambda: {}.",
                size.en
            ),
            format!(
                "因 w = p(1 − p)|A|，熵项 λ·w·(−ℓ − 1) 至多为 0.135·λ·|A|，在 lambda 最大处也只占优势的 {bound}：{}。",
                size.zh
            ),
        ));
    }
    Some(text)
}

fn about_budget(facts: &Facts) -> Option<Text> {
    let budget = facts.budget.filter(|budget| budget.most > 0.0)?;
    let (start, end) = (number(budget.start), number(budget.end));
    let (usage, above) = (number(facts.usage), percent(facts.usage_above));
    let first = Text::new(
        format!(
            "The budget B_token goes from {start} to {end}. Mean usage is {usage}; it is above 1, where lambda rises, \
             in {above} of the steps."
        ),
        format!(
            "预算 B_token 从 {start} 到 {end}。平均使用率 {usage}；使用率高于 1（此时 lambda 上升）的步占 {above}。"
        ),
    );
    let sense = if facts.usage_above < 1.0 - IDLE {
        Text::new("The budget hardly ever binds.", "预算几乎从不起约束作用。")
    } else if facts.usage_above > IDLE {
        Text::new(
            "The budget is exceeded nearly always: it follows usage down and never becomes a limit that holds.",
            "预算几乎一直被超出：它随使用率一起下降，从未成为有效的上限。",
        )
    } else {
        return Some(first);
    };
    Some(first.then(&sense))
}

fn about_entropy(facts: &Facts, base: &Facts, variant: &Variant, baseline: &Variant) -> Option<Text> {
    let entropy = facts.entropy?;
    let (start, end, of) = (number(entropy.start), number(entropy.end), variant.runs.len());
    let fifth = |facts: &Facts, of: usize| match facts.collapse_step {
        None => Text::new("it stays above a fifth of its start in every seed", "所有种子都保持在初值的五分之一以上"),
        Some(step) => {
            let (collapsed, step) = (facts.collapsed, format!("{step:.0}"));
            Text::new(
                format!("it falls below a fifth of its start in {collapsed} of {of} seeds (median step {step})"),
                format!("{of} 个种子中有 {collapsed} 个降到初值的五分之一以下（步数中位数 {step}）"),
            )
        }
    };
    let own = fifth(facts, of);
    let mut text = Text::new(
        format!("H_mean goes from {start} to {end}; {}.", own.en),
        format!("H_mean 从 {start} 到 {end}；{}。", own.zh),
    );
    if facts.variant != base.variant {
        let other = fifth(base, baseline.runs.len());
        text = text.then(&Text::new(format!("In C0 {}.", other.en), format!("C0 中，{}。", other.zh)));
    }
    Some(text)
}

fn about_result(facts: &Facts, base: &Facts, variant: &Variant, baseline: &Variant) -> Option<Text> {
    if variant.name == baseline.name {
        return None;
    }
    let area = compare_by(variant, baseline, |cut| cut.area(REWARD))?;
    let paired = area.paired?;
    let (difference, pairs) = (signed(paired.mean), paired.pairs);
    let (gain, base_gain) = (signed(facts.late_gain), signed(base.late_gain));
    Some(Text::new(
        format!(
            "AUC of the reward differs from C0 by {difference} ({}). From the middle to the end the reward \
             changes by {gain} (C0: {base_gain}).",
            seeds(pairs)
        ),
        format!("奖励 AUC 与 C0 相差 {difference}（{pairs} 个种子）。从中段到结束奖励变化 {gain}（C0：{base_gain}）。"),
    ))
}

fn about_control(variant: &Variant, controlled: &Variant) -> Option<Text> {
    if variant.name == "C0" {
        return None;
    }
    let paired = compare_by(variant, controlled, |cut| cut.area(REWARD))?.paired?;
    let (difference, name) = (signed(paired.mean), &controlled.name);
    let clear = paired.flip_p_greater.min(paired.flip_p_less) <= SIGNIFICANT;
    let (en, zh) = if clear { ("clear", "明显") } else { ("not clear", "不明显") };
    Some(Text::new(
        format!(
            "Against {name}, which has the same KL controller without the entropy budget, AUC differs by {difference} \
             ({en}): that is what lambda and gamma add."
        ),
        format!(
            "与 {name}（同样的 KL 控制器、无熵预算）相比 AUC 相差 {difference}（{zh}）：这是 lambda 与 gamma 带来的部分。"
        ),
    ))
}

/// The target of a KL controller that does not move it.
fn target(variant: &Variant) -> Option<f64> {
    let rules: DualGameRules = serde_json::from_value(variant.runs.first()?.about.controllers.clone()).ok()?;
    match rules.kl {
        KlControlConfig::Linear(linear) if linear.follow.is_none() => Some(linear.target),
        _ => None,
    }
}
