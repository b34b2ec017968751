//! The report in small form, for a repository: pictures, numbers without curves, and a README with the findings.

use std::{fmt::Write, fs, path::Path};

use anyhow::{Context, Result};

use super::{
    analysis::{Report, Task},
    compare::{Cost, TimeTo},
    figures::figures,
    judge::Verdict,
    plot::Place,
    text::{number, percent, plus_minus, probability, signed},
};

/// The command that makes the small form.
const COMMAND: &str = "cargo run --release -p tokenwise-lab -- report RUNS --small";
/// What all pictures together may take.
const MOST_BYTES: usize = 300_000;

/// Writes the small form; pictures of an earlier one are removed.
pub(crate) fn write(report: &Report, out: &Path) -> Result<()> {
    fs::create_dir_all(out).with_context(|| out.display().to_string())?;
    for entry in fs::read_dir(out)? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "svg") {
            fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
    }
    // curves lose points until all pictures fit
    let drawn = (2..=10).map(|thin| pictures(report, thin)).find(|drawn| size(drawn) <= MOST_BYTES);
    let drawn = drawn.with_context(|| format!("the pictures do not fit into {MOST_BYTES} bytes"))?;
    for picture in drawn.iter().flatten() {
        super::save(&out.join(&picture.name), &picture.svg)?;
    }
    let mut numbers = super::json(report)?;
    for task in numbers["tasks"].as_array_mut().into_iter().flatten().filter_map(|task| task.as_object_mut()) {
        task.remove("curves");
        task.remove("snapshots");
    }
    super::save(&out.join("numbers.json"), &(serde_json::to_string_pretty(&numbers)? + "\n"))?;
    super::save(&out.join("README.md"), &readme(report, &drawn))
}

struct Drawn {
    name: String,
    caption: String,
    svg: String,
}

/// The pictures of each task.
fn pictures(report: &Report, thin: usize) -> Vec<Vec<Drawn>> {
    let of_task = |task: &Task| {
        let drawn = figures(task, thin).into_iter().filter_map(|figure| {
            let svg = figure.svg(Place::File)?;
            Some(Drawn { name: format!("{}.svg", figure.name), caption: figure.caption.en, svg })
        });
        drawn.collect()
    };
    report.tasks.iter().map(of_task).collect()
}

fn size(drawn: &[Vec<Drawn>]) -> usize {
    let mut bytes = 0;
    drawn.iter().flatten().for_each(|picture| bytes += picture.svg.len());
    bytes
}

fn readme(report: &Report, pictures: &[Vec<Drawn>]) -> String {
    let mut text = String::from("# The entropy budget experiment\n\n");
    let _ = writeln!(
        text,
        "A small transformer learns to add, with and without the entropy budget and KL controllers of BNTO\n\
         ([docs/bnto.md](../bnto.md)). Every sentence and number below was made from the recorded runs by\n\n\
         ```sh\ncargo run --release -p tokenwise-lab -- run --sweep 0,1 --out RUNS   # both tasks, five groups and seeds; C1's switches\n{COMMAND}\n```\n\n\
         The same command without `--small` writes `report.html`, in English and Chinese, with all curves. All numbers\n\
         are in [numbers.json](numbers.json). The learning rate was chosen on C0, at the same seeds; no setting of the\n\
         other groups was.\n"
    );
    if !report.left_out.is_empty() {
        let count = report.left_out.len();
        let were = if count == 1 { "run was" } else { "runs were" };
        let _ = writeln!(text, "{count} {were} not complete and count in none of the numbers.\n");
    }
    for (task, pictures) in report.tasks.iter().zip(pictures) {
        section(&mut text, task, pictures);
    }
    text
}

fn section(text: &mut String, task: &Task, pictures: &[Drawn]) {
    let _ = writeln!(text, "## {}\n\n{}", task.title.en, wrapped(&task.setup.en));
    for finding in &task.findings {
        text.push_str(&wrapped(&format!("- {}", finding.en)));
    }
    text.push('\n');
    variants(text, task);
    text.push_str("\n| groups | measure | difference | pairs | p (paired t) | p (sign flip) |\n");
    text.push_str("| --- | --- | --- | --- | --- | --- |\n");
    for difference in &task.comparisons {
        let Some(paired) = &difference.comparison.paired else { continue };
        let _ = writeln!(
            text,
            "| {} − {} | {} | {} | {} | {} | {} |",
            difference.comparison.variant,
            difference.comparison.against,
            difference.measure,
            signed(paired.mean),
            paired.pairs,
            paired.t_p.map_or("–".into(), probability),
            probability(paired.flip_p),
        );
    }
    text.push_str("\nJudgements and hypotheses (variant / baseline):\n\n| claim | held | not held | undecided |\n");
    text.push_str("| --- | --- | --- | --- |\n");
    for judgement in &task.judgements {
        let of = |wanted: Verdict| {
            let columns = judgement.columns.iter().zip(&judgement.verdicts);
            let names = columns.filter(|(_, verdict)| **verdict == wanted).map(|((variant, against), _)| {
                if judgement.name == "J2" {
                    variant.clone()
                } else {
                    format!("{variant} / {against}")
                }
            });
            names.collect::<Vec<_>>().join(", ")
        };
        let claim = judgement.claim.en.trim_start_matches(&format!("{}: ", judgement.name));
        let (held, not_held) = (of(Verdict::Held), of(Verdict::NotHeld));
        let _ = writeln!(text, "| {}: {claim} | {held} | {not_held} | {} |", judgement.name, of(Verdict::Undecided));
    }
    text.push_str("\nWhat the controllers did:\n\n");
    for reason in &task.reasons {
        let words: Vec<&str> = reason.sentences.iter().map(|sentence| &*sentence.en).collect();
        if !words.is_empty() {
            text.push_str(&wrapped(&format!("- **{}**: {}", reason.facts.variant, words.join(" "))));
        }
    }
    text.push('\n');
    for Drawn { name, caption, .. } in pictures {
        let _ = writeln!(text, "![{caption}]({name})");
    }
    text.push('\n');
}

fn variants(text: &mut String, task: &Task) {
    let thresholds = task.variants.first().map(|first| &first.time_to[..]).unwrap_or_default();
    let mut head: Vec<String> = ["variant", "seeds", "steps", "AUC(reward)", "end(reward)"].map(String::from).into();
    head.extend(thresholds.iter().map(|time| format!("steps to {}", number(time.threshold))));
    head.extend(["end H_mean", "s per step", "formulas (median step / all)"].map(String::from));
    let mut line = |cells: &[String]| {
        let _ = writeln!(text, "| {} |", cells.join(" | "));
    };
    line(&head);
    line(&vec!["---".into(); head.len()]);
    for variant in &task.variants {
        let cost = variant.cost.as_ref();
        let mut row = vec![
            variant.name.clone(),
            variant.runs.len().to_string(),
            variant.steps.to_string(),
            plus_minus(variant.area.mean, variant.area.deviation),
            plus_minus(variant.end.mean, variant.end.deviation),
        ];
        row.extend(variant.time_to.iter().map(TimeTo::summary));
        row.push(number(variant.entropy_end.mean));
        row.push(cost.map_or("–".into(), |cost| number(cost.seconds_per_step)));
        let share = |cost: &Cost| format!("{} / {}", percent(cost.formulas), percent(cost.formulas_of_all));
        row.push(cost.map_or("–".into(), share));
        line(&row);
    }
    text.push_str("\nSteps to a reward: mean over the seeds that reach it, and how many do.\n");
}

/// Lines of at most 120 characters; further lines of an item are indented.
fn wrapped(text: &str) -> String {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let line = lines.last().map_or(0, |line| line.chars().count());
        if line > 0 && line + 1 + word.chars().count() > 118 {
            lines.push(" ".into());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines.join("\n") + "\n"
}
