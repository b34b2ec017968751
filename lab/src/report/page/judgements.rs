//! The judgements: an overview, and each with its numbers.

use super::{
    super::{
        analysis::Task,
        judge::{Judgement, Numbers, Outcome, Verdict},
        text::{number, probability, signed, Text},
    },
    table::{heading, note, plain, table, Cell},
};

fn mark(verdict: Verdict) -> (Text, &'static str) {
    match verdict {
        Verdict::Held => (Text::new("✓ held", "✓ 成立"), "held"),
        Verdict::NotHeld => (Text::new("✗ not held", "✗ 不成立"), "not-held"),
        Verdict::Undecided => (Text::new("? undecided", "? 未定"), "undecided"),
    }
}

pub(super) fn judgements(task: &Task) -> String {
    if task.judgements.is_empty() {
        return String::new();
    }
    let mut html = String::new();
    heading(&mut html, "Judgements and hypotheses", "判定准则与假设");
    note(
        &mut html,
        "A difference holds if it has the claimed direction and the one-sided sign-flip p is at most 0.05: with five \
         seeds, if all five agree. Criteria about single curves must be met by every seed.",
        "差异方向符合且单侧符号翻转 p ≤ 0.05 时成立：五个种子即全部一致。针对单条曲线的准则须所有种子满足。",
    );
    html += &overview(&task.judgements);
    for judgement in &task.judgements {
        html += &judgement_table(judgement);
    }
    html
}

/// One row per judgement, one column per variant and baseline.
fn overview(judgements: &[Judgement]) -> String {
    let mut columns: Vec<&(String, String)> = Vec::new();
    for column in judgements.iter().flat_map(|judgement| &judgement.columns) {
        if !columns.contains(&column) {
            columns.push(column);
        }
    }
    let mut head = vec![Text::default()];
    head.extend(columns.iter().map(|(variant, against)| Text::same(format!("{variant} / {against}"))));
    let row = |judgement: &Judgement| {
        let mut row = vec![(format!("<b>{}</b> {}", judgement.name, claim(judgement).html()), "words")];
        for column in &columns {
            let place = judgement.columns.iter().position(|own| own == *column);
            row.push(place.map_or(plain(""), |place| {
                let (text, class) = mark(judgement.verdicts[place]);
                (text.html(), class)
            }));
        }
        row
    };
    table(&head, &judgements.iter().map(row).collect::<Vec<_>>())
}

/// The claim without its name.
fn claim(judgement: &Judgement) -> Text {
    Text::new(
        judgement.claim.en.trim_start_matches(&format!("{}: ", judgement.name)),
        judgement.claim.zh.trim_start_matches(&format!("{}：", judgement.name)),
    )
}

fn judgement_table(judgement: &Judgement) -> String {
    let alone = judgement.name == "J2";
    let mut html = format!("<details><summary><b>{}</b> {}</summary>", judgement.name, claim(judgement).html());
    let mut head = vec![Text::default()];
    for (variant, against) in &judgement.columns {
        head.push(Text::same(if alone { variant.clone() } else { format!("{variant} / {against}") }));
    }
    let mut overall = vec![(Text::new("overall", "总判定").html(), "")];
    overall.extend(judgement.verdicts.iter().map(|verdict| {
        let (text, class) = mark(*verdict);
        (format!("<b>{}</b>", text.html()), class)
    }));
    let mut rows = vec![overall];
    for check in &judgement.checks {
        let mut row = vec![(check.what.html(), "words")];
        row.extend(check.outcomes.iter().map(outcome));
        rows.push(row);
    }
    html += &table(&head, &rows);
    html += "</details>\n";
    html
}

fn outcome(outcome: &Outcome) -> Cell {
    let (_, class) = mark(outcome.verdict);
    let sign = match outcome.verdict {
        Verdict::Held => "✓",
        Verdict::NotHeld => "✗",
        Verdict::Undecided => "?",
    };
    let against = |value: f64, baseline: f64| {
        let (value, baseline) = (number(value), number(baseline));
        Text::new(format!("{value} against {baseline}"), format!("{value}，对照 {baseline}"))
    };
    let (first, second) = match &outcome.numbers {
        Numbers::Difference(comparison) => {
            // the p of the side on which the difference lies
            let first = comparison.paired.as_ref().map_or(Text::default(), |paired| {
                let p = probability(paired.flip_p_greater.min(paired.flip_p_less));
                Text::same(format!("{} (p {p})", signed(paired.mean)))
            });
            (first, against(comparison.value, comparison.baseline))
        }
        Numbers::Deviations { value, baseline } => (Text::same(signed(value - baseline)), against(*value, *baseline)),
        Numbers::Seeds { meet, of, value } => {
            let mean = number(*value);
            let seeds = Text::new(format!("{meet} of {of} seeds"), format!("{meet}/{of} 个种子"));
            (seeds, Text::new(format!("mean {mean}"), format!("均值 {mean}")))
        }
        Numbers::Missing => (Text::new("not logged", "无记录"), Text::default()),
    };
    (format!("{sign} {}<br><small>{}</small>", first.html(), second.html()), class)
}
