//! The findings in sentences, each made from the numbers.

use super::{
    analysis::{Report, Task},
    compare::{Cost, Variant},
    explain::Facts,
    judge::{Judgement, Verdict, LEAST_PAIRS, SIGNIFICANT},
    statistics::Paired,
    text::{number, percent, plus_minus, seeds, signed, Text},
};

/// What the task shows, most important first.
pub(crate) fn findings(task: &Task) -> Vec<Text> {
    let mut found = Vec::new();
    if let Some(baseline) = task.variant("C0") {
        found.push(learning(baseline));
        found.extend(collapse(baseline));
    }
    found.extend(groups(task));
    found.extend(worst_switch(task));
    found.extend(best(task));
    found.extend(held(task));
    found.extend(formulas(task));
    found
}

/// One line per task for the head of the page.
pub(crate) fn overall(report: &Report) -> Vec<Text> {
    let line = |task: &Task| {
        let mut text = Text::new(format!("{}:", task.title.en), format!("{}：", task.title.zh));
        for part in worst_switch(task).iter().chain(&best(task)).chain(&held_in_short(task)) {
            text = text.then(part);
        }
        text
    };
    report.tasks.iter().map(line).collect()
}

fn learning(baseline: &Variant) -> Text {
    let (start, end) = (number(baseline.start.mean), plus_minus(baseline.end.mean, baseline.end.deviation));
    let (of, reach) = (baseline.runs.len(), baseline.end.values.iter().filter(|x| **x >= 0.8).count());
    let least = number(baseline.end.values.iter().copied().fold(f64::INFINITY, f64::min));
    Text::new(
        format!(
            "C0 learns from a mean reward of {start} to {end} over {}; {reach} of {of} end at 0.8 or above, the \
             lowest at {least}.",
            seeds(of)
        ),
        format!("C0 的平均奖励从 {start} 升到 {end}（{of} 个种子）；{reach}/{of} 个终值不低于 0.8，最低为 {least}。"),
    )
}

fn collapse(baseline: &Variant) -> Option<Text> {
    let facts = Facts::of(baseline);
    let entropy = facts.entropy?;
    let (start, end, of) = (number(entropy.start), number(entropy.end), baseline.runs.len());
    Some(match facts.collapse_step {
        Some(step) => {
            let (collapsed, step) = (facts.collapsed, format!("{step:.0}"));
            Text::new(
                format!(
                    "The entropy proxy of C0 falls from {start} to {end}, below a fifth of its start in {collapsed} of \
                     {of} seeds (median step {step})."
                ),
                format!(
                    "C0 的熵近似从 {start} 降到 {end}，{collapsed}/{of} 个种子降到初值五分之一以下（步数中位数 {step}）。"
                ),
            )
        }
        None => Text::new(
            format!("The entropy proxy of C0 goes from {start} to {end}; no seed falls below a fifth of its start."),
            format!("C0 的熵近似从 {start} 到 {end}；没有种子降到初值五分之一以下。"),
        ),
    })
}

/// Whether the seeds agree about the sign of a difference: 1, −1, or 0 if they do not.
fn clear_sign(paired: &Paired) -> i8 {
    if paired.flip_p_greater <= SIGNIFICANT {
        1
    } else if paired.flip_p_less <= SIGNIFICANT {
        -1
    } else {
        0
    }
}

/// The groups above, below and not clearly different from C0, and from C0k, by the area under the reward.
fn groups(task: &Task) -> Vec<Text> {
    let of = |against: &str| {
        let differences = task.comparisons.iter().map(|difference| (&difference.measure, &difference.comparison));
        let areas: Vec<(&str, &Paired)> = differences
            .filter(|(measure, comparison)| *measure == "AUC(reward)" && comparison.against == against)
            .filter_map(|(_, comparison)| Some((&*comparison.variant, comparison.paired.as_ref()?)))
            .collect();
        let named = |sign: i8| {
            let chosen = areas.iter().filter(|(_, paired)| clear_sign(paired) == sign);
            chosen.map(|(name, paired)| format!("{name} ({})", signed(paired.mean))).collect::<Vec<_>>()
        };
        let kinds = [(1, "above it", "高于"), (-1, "below it", "低于"), (0, "no clear difference", "无明显差异")];
        let parts: Vec<(String, String)> = kinds
            .into_iter()
            .map(|(sign, en, zh)| (named(sign), en, zh))
            .filter(|(names, ..)| !names.is_empty())
            .map(|(names, en, zh)| (format!("{en} {}", names.join(", ")), format!("{zh} {}", names.join("、"))))
            .collect();
        let (en, zh): (Vec<String>, Vec<String>) = parts.into_iter().unzip();
        (!en.is_empty()).then(|| {
            Text::new(
                format!("AUC of the reward against {against}: {}.", en.join("; ")),
                format!("奖励 AUC 与 {against} 相比：{}。", zh.join("；")),
            )
        })
    };
    ["C0", "C0k"].into_iter().filter_map(of).collect()
}

/// The switch that costs most.
fn worst_switch(task: &Task) -> Option<Text> {
    let worst = task.costly_switch()?;
    let comparison = worst.area.as_ref()?;
    let (difference, value, baseline) =
        (signed(comparison.paired.as_ref()?.mean), number(comparison.value), number(comparison.baseline));
    let beta = worst.facts.beta.map_or_else(Text::default, |beta| {
        let (end, rises) = (number(beta.end), percent(worst.facts.beta_rises));
        Text::new(
            format!("; beta ends at {end} and rises in {rises} of the steps"),
            format!("；beta 终值 {end}，在 {rises} 的步中上升"),
        )
    });
    let (name, group, count) = (&worst.variant, &worst.group, worst.seeds);
    Some(Text::new(
        format!(
            "Of all switches {name} costs most: AUC {value} against {baseline} of {group} ({difference}, {}){}.",
            seeds(count),
            beta.en
        ),
        format!(
            "所有开关中 {name} 代价最大：AUC {value}，而 {group} 为 {baseline}（{difference}，{count} 个种子）{}。",
            beta.zh
        ),
    ))
}

fn best(task: &Task) -> Option<Text> {
    let best = task.best.as_ref()?;
    let described = |name: &str| {
        let variant = task.variant(name)?;
        let (area, end) = (number(variant.area.mean), number(variant.end.mean));
        let count = variant.runs.len();
        Some((
            format!("{name} (AUC {area}, end {end}, {})", seeds(count)),
            format!("{name}（AUC {area}，终值 {end}，{count} 个种子）"),
        ))
    };
    let ((en, zh), settings) = (described(&best.variant)?, best.candidates);
    let mut text = Text::new(
        format!(
            "By AUC at the same seeds, {en} works best of {settings} settings; the lead of a winner is partly luck."
        ),
        format!("按同种子 AUC，{settings} 个设置中效果最好的是 {zh}；胜者的领先部分出于偶然。"),
    );
    if let Some(with_budget) = best.with_budget.as_ref().filter(|name| **name != best.variant) {
        let (en, zh) = described(with_budget)?;
        text = text.then(&Text::new(
            format!("Of those with the entropy budget it is {en}."),
            format!("带熵预算的设置中是 {zh}。"),
        ));
    }
    for difference in &best.against {
        let comparison = &difference.comparison;
        let Some(paired) = &comparison.paired else { continue };
        let (name, against, mean) = (&comparison.variant, &comparison.against, signed(paired.mean));
        let pairs = paired.pairs;
        let (en, zh) = match (clear_sign(paired) != 0, pairs < LEAST_PAIRS) {
            (true, _) => ("a clear difference", "差异明显"),
            (false, true) => ("too few seeds for the test", "种子太少，无法检验"),
            (false, false) => ("not a clear difference", "差异不明显"),
        };
        text = text.then(&Text::new(
            format!("{name} − {against}: {mean} over {}, {en}.", seeds(pairs)),
            format!("{name} − {against}：{mean}（{pairs} 个种子），{zh}。"),
        ));
    }
    Some(text)
}

fn held(task: &Task) -> Option<Text> {
    let verdicts = || task.judgements.iter().flat_map(|judgement| &judgement.verdicts);
    let count = |wanted: Verdict| verdicts().filter(|verdict| **verdict == wanted).count();
    let (held, not_held, undecided) = (count(Verdict::Held), count(Verdict::NotHeld), count(Verdict::Undecided));
    if held + not_held + undecided == 0 {
        return None;
    }
    let names: Vec<String> = task.judgements.iter().flat_map(held_columns).collect();
    let (en, zh) = if names.is_empty() { ("none".into(), "无".into()) } else { (names.join(", "), names.join("、")) };
    Some(Text::new(
        format!("Judgements and hypotheses: {held} held, {not_held} not held, {undecided} undecided. Held: {en}."),
        format!("判定与假设：成立 {held} 项，不成立 {not_held} 项，未定 {undecided} 项。成立：{zh}。"),
    ))
}

/// The variants and baselines for which a judgement held.
fn held_columns(judgement: &Judgement) -> Vec<String> {
    let columns = judgement.columns.iter().zip(&judgement.verdicts);
    let held = columns.filter(|(_, verdict)| **verdict == Verdict::Held);
    let named = held.map(|((variant, against), _)| match &*judgement.name {
        "J2" => format!("{} ({variant})", judgement.name),
        _ => format!("{} ({variant} / {against})", judgement.name),
    });
    named.collect()
}

/// The three hypotheses, for the variants against their baselines.
fn held_in_short(task: &Task) -> Option<Text> {
    let hypotheses = task.judgements.iter().filter(|judgement| judgement.name.starts_with('H'));
    let (mut en, mut zh) = (Vec::new(), Vec::new());
    for judgement in hypotheses {
        let of = judgement.verdicts.len();
        let held = judgement.verdicts.iter().filter(|verdict| **verdict == Verdict::Held).count();
        en.push(format!("{} in {held} of {of} comparisons", judgement.name));
        zh.push(format!("{} 在 {of} 组比较中成立 {held} 组", judgement.name));
    }
    (!en.is_empty()).then(|| {
        Text::new(format!("Hypotheses held: {}.", en.join(", ")), format!("假设成立情况：{}。", zh.join("，")))
    })
}

fn formulas(task: &Task) -> Option<Text> {
    let costs: Vec<_> = task.variants.iter().filter_map(|variant| variant.cost.as_ref()).collect();
    let most =
        |share: fn(&Cost) -> f64| percent(costs.iter().map(|cost| share(cost)).fold(f64::NEG_INFINITY, f64::max));
    let (most, of_all) = (most(|cost| cost.formulas), most(|cost| cost.formulas_of_all));
    let step = super::statistics::median(&costs.iter().map(|cost| cost.seconds_per_step).collect::<Vec<_>>());
    if costs.is_empty() {
        return None;
    }
    let step = number(step);
    let (en, zh) = match costs.iter().any(|cost| cost.with_pauses) {
        true => (
            " A pause of the process counts where it happens: these runs do not say when they had a processor.",
            "进程暂停计入其发生之处：这些运行未记录占用处理器的时间。",
        ),
        false => ("", ""),
    };
    Some(Text::new(
        format!(
            "A step takes {step} s (median). Token-level formulas take {most} of its computing time in the variant \
             where they take most (median over steps); of that of all steps together, up to {of_all}.{en}"
        ),
        format!(
            "每步 {step} 秒（中位数）。token 级公式在占比最高的变体中占每步计算时间的 {most}（各步中位数）；\
             按全部步的总计算时间计，最多 {of_all}。{zh}"
        ),
    ))
}
