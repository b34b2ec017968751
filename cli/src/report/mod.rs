//! `tokenwise report`: rollout files as one HTML page that needs nothing else.

use serde_json::{json, Map, Value};
use tokenwise_lint::{check, Options as Rules};
use tokenwise_reader::Budget;

use crate::{
    args::{Language, Report},
    failure::{Failure, Result},
    input::check_output,
    lint::{message, sequence, Groups},
    output::{count, print, write_whole},
    rollout::{Column, Files, Rollouts},
};

/// The page; `DATA` and `LANGUAGE` are filled in.
const PAGE: &str = include_str!("page.html");
/// Findings that are listed.
const LISTED: usize = 500;
/// Bytes of a number in the page, and in the memory of who makes it.
const PER_NUMBER: u64 = 40;

pub(crate) fn run(options: &Report, memory: Budget) -> Result<()> {
    let files = Files::new(&options.reading, memory)?.with_labels();
    check_output(&options.output, &files.paths)?;
    if options.sequences == 0 {
        return Err(Failure::usage("--sequences: expected at least 1"));
    }
    let (mut shown, mut findings) = (Vec::new(), Vec::new());
    let (mut sequences, mut tokens, mut found, mut bytes) = (0_u64, 0_u64, 0_u64, 0_u64);
    let mut groups = Groups::default();
    let summary = files.read(&mut |rollouts| {
        sequences += rollouts.rows.len() as u64;
        tokens += rollouts.tokens() as u64;
        let texts: Vec<&str> = rollouts.texts().collect();
        for (row, about) in rollouts.rows.iter().enumerate() {
            let sequence = sequence(rollouts, row);
            check(&sequence, &Rules::default(), &mut |finding| {
                found += 1;
                if findings.len() < LISTED {
                    findings.push(told(&files, about, &finding));
                }
            });
            groups.add(*about, &sequence);
            if shown.len() < options.sequences {
                let columns = Column::ALL.iter().filter(|column| rollouts.column(**column).is_some()).count();
                bytes += PER_NUMBER * (rollouts.slots(row).len() * (columns + 2)) as u64 + 1000;
                files.check_memory("the sequences of the page (see --sequences)", rollouts, bytes + groups.bytes())?;
                shown.push(of_row(&files, rollouts, row, &texts));
            }
        }
        Ok(())
    })?;
    groups.judge(Rules::default().tolerance, &mut |first, finding| {
        found += 1;
        if findings.len() < LISTED {
            findings.push(told(&files, first, &finding));
        }
    });
    let fields: Vec<String> = summary.found.iter().map(|(_, name)| name.clone()).collect();
    let data = json!({
        "name": files.name(), "sequences": sequences, "tokens": tokens, "found": found, "fields": fields,
        "ignored": summary.ignored, "shown": shown, "findings": findings,
    });
    // no text of a file can end the script
    let data = data.to_string().replace('<', "\\u003c");
    let language = match options.lang {
        Language::En => "en",
        Language::Zh => "zh",
    };
    let page = PAGE.replacen("LANGUAGE", language, 1).replacen("\"DATA\"", &data, 1);
    write_whole(&options.output, page.as_bytes())?;
    let told = format!(
        "{}: {}, {}, {}\n",
        options.output.display(),
        count(sequences, "sequence"),
        count(tokens, "token"),
        count(found, "finding")
    );
    print(&told)
}

fn told(files: &Files, row: &crate::rollout::Row, finding: &tokenwise_lint::Finding) -> Value {
    json!({
        "rule": finding.rule().name(), "file": files.path(row), "place": row.place, "step": row.step,
        "token": finding.token().map(|token| token + 1), "message": message(finding),
    })
}

/// A sequence with its texts, mask and numbers; what is not finite is a text, because JSON has no number for it.
fn of_row(files: &Files, rollouts: &Rollouts, row: usize, texts: &[&str]) -> Value {
    let slots = rollouts.slots(row);
    let about = &rollouts.rows[row];
    let number = |x: &f64| if x.is_finite() { json!(x) } else { json!(x.to_string()) };
    let mut columns = Map::new();
    for column in Column::ALL {
        if let Some(numbers) = rollouts.column(column) {
            columns.insert(column.name().into(), numbers[slots.clone()].iter().map(number).collect());
        }
    }
    let keep: Vec<u8> = rollouts.kept()[slots.clone()].iter().map(|keep| u8::from(*keep)).collect();
    json!({
        "file": files.path(about), "place": about.place, "step": about.step, "score": about.score.as_ref().map(number),
        "prompt": rollouts.labels().get(row).map_or("", |label| label.prompt.as_str()),
        "texts": texts.get(slots).unwrap_or_default(), "keep": keep, "columns": columns,
    })
}
