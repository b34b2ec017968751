//! The tables of results, differences, switches and times.

use super::{
    super::{
        analysis::Task,
        compare::{Comparison, Variant},
        text::{escape, number, percent, plus_minus, probability, signed, Text},
    },
    table::{heading, note, plain, sign_class, table, Cell},
};

pub(super) fn results(task: &Task) -> String {
    let mut html = String::new();
    heading(&mut html, "Results", "结果");
    let mut head = vec![
        Text::new("variant", "变体"),
        Text::new("seeds", "种子数"),
        Text::new("steps", "步数"),
        Text::new("start", "初值"),
        Text::new("AUC(reward)", "AUC（奖励）"),
        Text::new("end(reward)", "终值（奖励）"),
    ];
    let passes: Vec<&String> = task.variants.first().map(|first| first.pass_end.keys().collect()).unwrap_or_default();
    for key in &passes {
        head.push(Text::same(format!("AUC({key})")));
        head.push(Text::same(format!("end({key})")));
    }
    for time in task.variants.first().map(|first| &first.time_to[..]).unwrap_or_default() {
        let threshold = number(time.threshold);
        head.push(Text::new(format!("steps to {threshold}"), format!("达到 {threshold} 的步数")));
    }
    head.push(Text::new("end H_mean", "H_mean 终值"));
    let row = |variant: &Variant| {
        let mut row = vec![
            plain(&variant.name),
            plain(variant.runs.len().to_string()),
            plain(variant.steps.to_string()),
            plain(number(variant.start.mean)),
            plain(plus_minus(variant.area.mean, variant.area.deviation)),
            plain(plus_minus(variant.end.mean, variant.end.deviation)),
        ];
        for key in &passes {
            for spreads in [&variant.pass_area, &variant.pass_end] {
                let spread = spreads.get(*key);
                row.push(plain(spread.map_or("–".into(), |spread| plus_minus(spread.mean, spread.deviation))));
            }
        }
        for time in &variant.time_to {
            row.push(plain(time.summary()));
        }
        row.push(plain(plus_minus(variant.entropy_end.mean, variant.entropy_end.deviation)));
        row
    };
    let rows: Vec<Vec<Cell>> = task.variants.iter().map(row).collect();
    html += &table(&head, &rows);
    note(
        &mut html,
        "Mean ± standard deviation over seeds. Steps to a reward: mean over the seeds that reach it, and how many do.",
        "种子均值 ± 标准差。达到某奖励的步数：达到者的均值，括号内为达到的种子数。",
    );
    html
}

pub(super) fn comparisons(task: &Task) -> String {
    if task.comparisons.is_empty() {
        return String::new();
    }
    let mut html = String::new();
    heading(&mut html, "Differences between groups, paired by seed", "组间差异（按种子配对）");
    let head = [
        Text::new("groups", "组"),
        Text::new("measure", "指标"),
        Text::new("difference", "差"),
        Text::new("pairs", "配对数"),
        Text::same("t"),
        Text::new("p (paired t)", "p（配对 t）"),
        Text::new("p (sign flip)", "p（符号翻转）"),
    ];
    let rows: Vec<Vec<Cell>> = task
        .comparisons
        .iter()
        .filter_map(|difference| {
            let (comparison, measure) = (&difference.comparison, plain(&difference.measure));
            let paired = comparison.paired.as_ref()?;
            Some(vec![
                plain(format!("{} − {}", comparison.variant, comparison.against)),
                measure,
                (signed_html(paired.mean, paired.deviation), sign_class(paired.mean)),
                plain(paired.pairs.to_string()),
                plain(paired.t.map_or("–".into(), signed)),
                plain(paired.t_p.map_or("–".into(), probability)),
                plain(probability(paired.flip_p)),
            ])
        })
        .collect();
    html += &table(&head, &rows);
    note(
        &mut html,
        "Two-sided p. With five seeds the exact sign-flip test cannot go below 0.0625 two-sided, 0.031 one-sided.",
        "双侧 p。五个种子时，精确符号翻转检验的最小 p 双侧为 0.0625，单侧为 0.031。",
    );
    html
}

fn signed_html(mean: f64, deviation: Option<f64>) -> String {
    let deviation = deviation.map_or(String::new(), |deviation| format!(" ± {}", number(deviation)));
    escape(&format!("{}{deviation}", signed(mean)))
}

pub(super) fn switches(task: &Task) -> String {
    if task.switches.is_empty() {
        return String::new();
    }
    let mut html = String::new();
    heading(&mut html, "Switches", "开关");
    let head = [
        Text::new("variant", "变体"),
        Text::new("seeds", "种子数"),
        Text::new("steps", "步数"),
        Text::new("AUC of its group", "所属组 AUC"),
        Text::new("AUC", "AUC"),
        Text::new("difference", "差"),
        Text::new("p (sign flip)", "p（符号翻转）"),
        Text::new("against C0", "对 C0"),
        Text::new("difference of the end", "终值差"),
        Text::new("beta at the end", "beta 终值"),
        Text::new("lambda = 0", "lambda = 0"),
        Text::new("mean usage", "平均使用率"),
    ];
    let mean = |comparison: &Option<Comparison>| -> Cell {
        let paired = comparison.as_ref().and_then(|comparison| comparison.paired.as_ref());
        paired.map_or(plain("–"), |paired| (escape(&signed(paired.mean)), sign_class(paired.mean)))
    };
    let rows: Vec<Vec<Cell>> = task
        .switches
        .iter()
        .map(|switch| {
            let area = switch.area.as_ref();
            let p =
                area.and_then(|area| area.paired.as_ref()).map_or("–".into(), |paired| probability(paired.flip_p));
            vec![
                plain(&switch.variant),
                plain(switch.seeds.to_string()),
                plain(switch.steps.to_string()),
                plain(area.map_or("–".into(), |area| number(area.baseline))),
                plain(area.map_or("–".into(), |area| number(area.value))),
                mean(&switch.area),
                plain(p),
                mean(&switch.area_baseline),
                mean(&switch.end),
                plain(switch.facts.beta.map_or("–".into(), |beta| number(beta.end))),
                plain(percent(switch.facts.lambda_zero)),
                plain(number(switch.facts.usage)),
            ]
        })
        .collect();
    html += &table(&head, &rows);
    note(
        &mut html,
        "Each switch beside its own group, over the seeds and steps that both have.",
        "每个开关与其所属组比较，只用双方共有的种子与步数。",
    );
    html
}

pub(super) fn costs(task: &Task) -> String {
    let timed: Vec<&Variant> = task.variants.iter().filter(|variant| variant.cost.is_some()).collect();
    let Some(stages) = timed.first().and_then(|first| first.cost.as_ref()).map(|cost| &cost.stages) else {
        return String::new();
    };
    let mut html = String::new();
    heading(&mut html, "Wall-clock cost", "耗时");
    let mut head = vec![
        Text::new("variant", "变体"),
        Text::new("seconds per run", "每次运行秒数"),
        Text::new("seconds per step (median)", "每步秒数（中位数）"),
        Text::new("formulas, median step", "token 级公式（中位步）"),
        Text::new("formulas, all steps", "token 级公式（全部步）"),
    ];
    head.extend(stages.iter().map(|(name, _)| Text::same(name.clone())));
    let rows: Vec<Vec<Cell>> = timed
        .iter()
        .filter_map(|variant| {
            let cost = variant.cost.as_ref()?;
            let mut row = vec![
                plain(&variant.name),
                plain(plus_minus(cost.seconds.mean, cost.seconds.deviation)),
                plain(number(cost.seconds_per_step)),
                plain(percent(cost.formulas)),
                plain(percent(cost.formulas_of_all)),
            ];
            for (name, _) in stages {
                let share = cost.stages.iter().find(|(known, _)| known == name).map_or(f64::NAN, |(_, share)| *share);
                row.push(plain(percent(share)));
            }
            Some(row)
        })
        .collect();
    html += &table(&head, &rows);
    note(
        &mut html,
        "Shares of stages are shares of the time that passed; several runs at the same time slow each other down. Those \
         of formulas are shares of the time in which a run had a processor, so that pauses of the process do not count.",
        "各阶段的份额按经过的时间计，同时运行多个任务会互相拖慢；公式的份额按占用处理器的时间计，进程暂停不计入。",
    );
    html
}
