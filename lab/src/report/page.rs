//! The report as a page that stands alone.

use std::fmt::Write;

use super::{
    analysis::{Report, Task},
    figures::figures,
    load::LeftOut,
    plot::{self, Place},
    text::{escape, plus_minus, Text},
};

mod judgements;
mod results;
mod table;

use judgements::judgements;
use results::{comparisons, costs, results, switches};
use table::{glance, heading, note, plain, table, Cell};

const STYLE: &str = include_str!("page/style.css");
const SCRIPT: &str = include_str!("page/script.js");

pub(crate) fn page(report: &Report) -> String {
    let title = Text::new("Entropy budget experiment", "熵预算实验");
    let mut html = format!(
        "<!doctype html>\n<html lang=\"en\" data-language=\"en\">\n<head>\n<meta charset=\"utf-8\">\n<meta \
         name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<meta name=\"color-scheme\" \
         content=\"light dark\">\n<title>{} · {}</title>\n<style>\n{STYLE}{}</style>\n</head>\n<body>\n",
        title.en,
        title.zh,
        plot::STYLE
    );
    let menu: String = report
        .tasks
        .iter()
        .map(|task| format!("<a href=\"#{}\">{}</a>", escape(&task.name), task.title.html()))
        .collect();
    let _ = write!(
        html,
        "<header><strong>tokenwise</strong><nav>{menu}<a href=\"#method\">{}</a></nav><div class=\"switches\">\
         <button type=\"button\" id=\"language\" aria-label=\"中文 / English\">中文</button>\
         <button type=\"button\" id=\"theme\" aria-label=\"light / \
         dark\">◐</button></div></header>\n<main>\n<h1>{}</h1>\n",
        Text::new("method", "方法").html(),
        title.html()
    );
    html += &introduction(report);
    if report.tasks.is_empty() {
        let none = Text::new("No run is complete, so there are no numbers.", "没有已完成的运行，因此没有数字。");
        let _ = write!(html, "<p>{}</p>", none.html());
    }
    html += &incomplete(&report.left_out);
    for task in &report.tasks {
        html += &section(task);
    }
    html += &method();
    let _ = write!(html, "</main>\n<script>\n{SCRIPT}</script>\n</body>\n</html>\n");
    html
}

/// What was compared, and every group at a glance.
fn introduction(report: &Report) -> String {
    let about = Text::new(
        "A small transformer learns to add, from a reward of 1 on the last token of a right answer. The groups share \
         data, initial weights and settings of a seed, and differ in how the loss prices entropy and KL. Everything \
         below is computed from the recorded runs.",
        "一个小型 Transformer 学习加法，仅在答案正确时于最后一个 token 得到奖励 1。各组在同一种子下共享数据、初始权重与设置，\
         区别只在损失中熵与 KL 的计价方式。以下内容全部由记录的运行计算得出。",
    );
    let mut html = format!("<p class=\"lead\">{}</p>\n", about.html());
    let groups = [
        ("C0", Text::new("PPO or GRPO, neither price", "PPO 或 GRPO，两种计价都不用")),
        ("C0k", Text::new("C0 with the KL controller", "C0 加 KL 控制器")),
        (
            "C1",
            Text::new("entropy budget by reward deviation and usage, γ = 1.2", "按奖励标准差与使用率的熵预算，γ = 1.2"),
        ),
        ("C2", Text::new("C1 with a budget that shrinks at plateaus", "C1，但预算在平台期收缩")),
        ("C3", Text::new("C1 with weights gated by |ℓ − ℓ₀|", "C1，但权重由 |ℓ − ℓ₀| 门控")),
    ];
    let mut head = vec![Text::new("group", "组")];
    for task in &report.tasks {
        head.push(Text::new(format!("{}: AUC(reward)", task.title.en), format!("{}：AUC（奖励）", task.title.zh)));
        head.push(Text::new("against C0", "对 C0"));
        head.push(Text::new("end(reward)", "终值（奖励）"));
    }
    let row = |(name, what): &(&str, Text)| {
        let mut row = vec![(format!("<b>{name}</b> {}", what.html()), "words")];
        for task in &report.tasks {
            let variant = task.variant(name);
            row.push(plain(variant.map_or("–".into(), |found| plus_minus(found.area.mean, found.area.deviation))));
            let area = task.comparisons.iter().find(|difference| {
                let comparison = &difference.comparison;
                difference.measure == "AUC(reward)" && comparison.variant == *name && comparison.against == "C0"
            });
            row.push(area.and_then(|area| area.comparison.paired.as_ref()).map_or(plain(""), glance));
            row.push(plain(variant.map_or("–".into(), |found| plus_minus(found.end.mean, found.end.deviation))));
        }
        row
    };
    if !report.tasks.is_empty() {
        html += &table(&head, &groups.iter().map(row).collect::<Vec<_>>());
        note(
            &mut html,
            "Coloured: the sign-flip test finds the difference (one-sided p ≤ 0.05; with five seeds, all five agree).",
            "着色：符号翻转检验可分辨（单侧 p ≤ 0.05；五个种子即全部一致）。",
        );
    }
    paragraphs(&mut html, "findings", &report.findings);
    html
}

fn paragraphs(html: &mut String, class: &str, texts: &[Text]) {
    if texts.is_empty() {
        return;
    }
    let items: String = texts.iter().map(|text| format!("<li>{}</li>", text.html())).collect();
    let _ = writeln!(html, "<ul class=\"{class}\">{items}</ul>");
}

fn incomplete(left_out: &[LeftOut]) -> String {
    if left_out.is_empty() {
        return String::new();
    }
    let mut html = String::from("<section class=\"incomplete\">\n");
    let count = left_out.len();
    let title = Text::new(
        match count {
            1 => "1 run is not complete and is left out of every number".into(),
            _ => format!("{count} runs are not complete and are left out of every number"),
        },
        format!("{count} 个运行未完成，不计入任何数字"),
    );
    let rows: Vec<Vec<Cell>> = left_out
        .iter()
        .map(|run| {
            let steps = match run.of {
                Some(of) => format!("{} / {of}", run.steps),
                None => run.steps.to_string(),
            };
            vec![plain(&run.task), plain(&run.variant), plain(&run.seed), plain(steps), (run.why.html(), "")]
        })
        .collect();
    let head = [
        Text::new("task", "任务"),
        Text::new("variant", "变体"),
        Text::new("seed", "种子"),
        Text::new("steps", "步数"),
        Text::new("why", "原因"),
    ];
    let _ = write!(html, "<details><summary>{}</summary>{}</details>\n</section>\n", title.html(), table(&head, &rows));
    html
}

fn section(task: &Task) -> String {
    let mut html = format!("<section id=\"{}\">\n<h2>{}</h2>\n", escape(&task.name), task.title.html());
    let _ = writeln!(html, "<p class=\"note\">{}</p>", task.setup.html());
    paragraphs(&mut html, "findings", &task.findings);
    heading(&mut html, "Curves", "曲线");
    note(
        &mut html,
        "Lines are means over seeds, bands one standard deviation; each point is the mean over the steps around it.",
        "线为种子均值，带为一个标准差；每个点是其附近若干步的均值。",
    );
    html += "<div class=\"figures\">\n";
    for figure in figures(task, 1) {
        if let Some(svg) = figure.svg(Place::Page) {
            let _ = writeln!(html, "<figure>{svg}<figcaption>{}</figcaption></figure>", figure.caption.html());
        }
    }
    html += "</div>\n";
    html += &results(task);
    html += &comparisons(task);
    html += &judgements(task);
    html += &switches(task);
    html += &reasons(task);
    html += &costs(task);
    html += "</section>\n";
    html
}

fn reasons(task: &Task) -> String {
    if task.reasons.is_empty() {
        return String::new();
    }
    let mut html = String::new();
    heading(&mut html, "Why: what the controllers did", "原因：控制器做了什么");
    note(
        &mut html,
        "How the prices act: the loss uses A − λ·w·(−ℓ − 1) − β·(ℓ − ℓ₀). With λ > 0 the first term lowers the \
         advantage of tokens with p < 1/e and raises that of likelier ones: it lowers entropy that is above the \
         budget. Nothing raises entropy that is below it. β pulls towards the reference policy.",
        "计价如何起作用：损失使用 A − λ·w·(−ℓ − 1) − β·(ℓ − ℓ₀)。λ > 0 时前一项降低 p < 1/e 的 token 的优势、提高更可能 \
         token 的优势：它压低超出预算的熵；没有任何项会抬高低于预算的熵。β 把策略拉向参考策略。",
    );
    for reason in &task.reasons {
        let plain = task.groups().any(|variant| variant.name == reason.facts.variant);
        let words: Vec<String> = reason.sentences.iter().map(|text| format!("<p>{}</p>", text.html())).collect();
        let open = if plain { " open" } else { "" };
        let _ = writeln!(
            html,
            "<details class=\"reason\"{open}><summary>{}</summary>{}</details>",
            escape(&reason.facts.variant),
            words.concat()
        );
    }
    html
}

fn method() -> String {
    let mut html = String::from("<section id=\"method\">\n");
    let _ = writeln!(html, "<h2>{}</h2>", Text::new("Method", "方法").html());
    let rows = [
        Text::new("AUC: area under a curve whose axis runs from 0 to 1, by trapezoids.", "AUC：横轴归一到 0–1 的曲线下面积（梯形法）。"),
        Text::new("Start and end: means over the first 2 % and the last 5 % of the steps.", "初值与终值：前 2 % 与后 5 % 步的均值。"),
        Text::new(
            "Steps to X: the first step at which the mean over the last fiftieth of all steps reaches X.",
            "达到 X 的步数：最近五十分之一步的均值首次达到 X 的步。",
        ),
        Text::new(
            "pass@k where it equals the mean reward (pass@1 if every score is 0 or 1) is not repeated.",
            "pass@k 若与平均奖励相同（得分只取 0 或 1 时的 pass@1）则不重复列出。",
        ),
        Text::new(
            "Swing: standard deviation around a straight line fitted to the curve.",
            "波动：曲线围绕拟合直线的标准差。",
        ),
        Text::new(
            "Tests: differences of two groups at the same seed (same data, same initial weights); Student's t, and the \
             exact sign-flip permutation test over all 2ⁿ signs.",
            "检验：同一种子（同数据、同初始权重）下两组之差；Student t 检验与遍历全部 2ⁿ 种符号的精确置换检验。",
        ),
        Text::new(
            "Runs that are not complete are listed and left out of every mean. Many checks are made: a few of \
             them hold by chance.",
            "未完成的运行单独列出，不计入均值。检验项很多，个别会因偶然而成立。",
        ),
    ];
    paragraphs(&mut html, "method", &rows);
    html += "</section>\n";
    html
}
