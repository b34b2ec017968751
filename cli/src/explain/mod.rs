//! `tokenwise explain`: the chain of one response, number by number.

mod chain;
mod words;

use std::{io::Read, path::Path};

use serde_json::{json, Map, Value};
use tokenwise_reader::Budget;

use crate::{
    args::{Explain, Language, Reading},
    failure::{Failure, Result},
    input,
    output::{cell as shortened, number, print, table, warn},
    rollout::{Column, Files, Rollouts},
};
use chain::{Chain, Quantity};
use unicode_width::UnicodeWidthStr;

pub(crate) fn run(options: &Explain, memory: Budget) -> Result<()> {
    let chain = match (&options.file, options.row) {
        (Some(path), Some(row)) => from_rollouts(path, row, options, memory)?,
        (Some(path), None) => from_file(path, memory)?,
        (None, _) => Chain::one_plus_one(),
    };
    let found = chain.found().map_err(|error| match (&options.file, options.row) {
        // with a row, β, γ and λ are options
        (Some(_), Some(_)) => Failure::usage(format!("--{error}")),
        (Some(path), None) => Failure::input(path, error),
        (None, _) => Failure::usage(error.to_string()),
    })?;
    let cell = options
        .cell
        .as_deref()
        .map(|cell| chain::cell(cell, chain.tokens.len()))
        .transpose()
        .map_err(Failure::usage)?;
    if options.json {
        let rows: Map<String, Value> =
            Quantity::ALL.iter().map(|row| (row.name().to_string(), json!(found.row(&chain, *row)))).collect();
        let mut all = json!({
            "tokens": chain.tokens, "mask": chain.mask,
            "beta": chain.beta, "gamma": chain.gamma, "lambda": chain.lambda,
            "rows": rows,
        });
        if let Some((row, token)) = cell {
            let lines = words::explanation(&chain, &found, row, token, options.lang);
            let value = found.row(&chain, row)[token];
            all["cell"] = json!({ "row": row.name(), "token": token + 1, "value": value, "lines": lines });
        }
        return print(&format!("{all}\n"));
    }
    let mut text = words::heading(&chain, options.lang) + "\n\n" + &grid(&chain, &found, options.lang);
    match cell {
        Some((row, token)) => {
            for line in words::explanation(&chain, &found, row, token, options.lang) {
                text += &format!("\n{line}");
            }
            text.push('\n');
        }
        None => text += &format!("\n{}\n", words::hint(options.lang)),
    }
    print(&text)
}

fn grid(chain: &Chain, found: &chain::Found, language: Language) -> String {
    let mut rows = vec![vec![String::new()]];
    rows[0].extend((1..=chain.tokens.len()).map(|token| format!("{token}")));
    rows.push(vec![words::token(language).into()]);
    rows[1].extend(chain.tokens.iter().map(|token| shortened(token, 16)));
    rows.push(vec![words::mask(language).into()]);
    rows[2].extend(chain.mask.iter().map(|keep| if *keep { "●" } else { "○" }.to_string()));
    for quantity in Quantity::ALL {
        let mut row = vec![words::name(quantity, language)];
        let numbers = found.row(chain, quantity).into_iter().zip(&chain.mask);
        row.extend(numbers.map(|(x, keep)| if *keep { number(x) } else { "·".into() }));
        rows.push(row);
    }
    // a response that is wider than a terminal is told in parts
    let wide: Vec<usize> =
        (0..rows[0].len()).map(|column| rows.iter().map(|row| row[column].width()).max().unwrap_or(0) + 2).collect();
    let (mut text, mut from) = (String::new(), 1);
    while from < rows[0].len() {
        let (mut to, mut used) = (from, wide[0]);
        while to < rows[0].len() && (to == from || used + wide[to] <= 82) {
            used += wide[to];
            to += 1;
        }
        let part: Vec<Vec<String>> = rows.iter().map(|row| [&row[..1], &row[from..to]].concat()).collect();
        if from > 1 {
            text.push('\n');
        }
        text += &table(&part);
        from = to;
    }
    text
}

/// A small file: a chain has at most 200 tokens.
const LONGEST: u64 = 1 << 20;

fn from_file(path: &Path, memory: Budget) -> Result<Chain> {
    let failed = |what: &dyn std::fmt::Display| Failure::input(path, what);
    let mut text = String::new();
    let most = LONGEST.min(memory.bytes() / 8);
    let stream = input::open(path, false)?.stream();
    stream.take(most + 1).read_to_string(&mut text).map_err(|error| failed(&error))?;
    if text.len() as u64 > most {
        return Err(failed(&"too long for one response; a row of a rollout file is chosen with --row"));
    }
    let object: Map<String, Value> = serde_json::from_str(&text)
        .map_err(|error| failed(&format!("{error}; a row of a rollout file is chosen with --row")))?;
    Chain::from_json(&object).map_err(|what| failed(&what))
}

/// A row of a rollout file as a chain: its scores, values, and the KL between policy and reference.
fn from_rollouts(path: &Path, row: u64, options: &Explain, memory: Budget) -> Result<Chain> {
    let reading =
        Reading { files: vec![path.into()], fields: options.fields.clone(), batch_tokens: 100_000, follow: false };
    let files = Files::new(&reading, memory)?.with_labels();
    let mut chain = None;
    files.read(&mut |rollouts| {
        if let Some(place) = rollouts.rows.iter().position(|about| about.place == row).filter(|_| chain.is_none()) {
            chain = Some(of_row(rollouts, place, options));
        }
        Ok(())
    })?;
    let chain = chain.ok_or_else(|| files.failure(format!("there is no row {row}")))?;
    chain.map_err(|what| files.failure(format!("row {row}: {what}")))
}

fn of_row(rollouts: &Rollouts, row: usize, options: &Explain) -> std::result::Result<Chain, String> {
    let slots = rollouts.slots(row);
    let n = slots.len();
    if n == 0 || n > chain::MOST_TOKENS {
        return Err(format!("expected 1 to {} tokens, got {n}", chain::MOST_TOKENS));
    }
    let column = |column| rollouts.column(column).map(|numbers| numbers[slots.clone()].to_vec());
    let mask = rollouts.kept()[slots.clone()].to_vec();
    let about = &rollouts.rows[row];
    let log_probs = column(Column::OldLogProbs).or_else(|| column(Column::LogProbs));
    let difference = |ours: Vec<f64>, theirs: Vec<f64>| ours.iter().zip(&theirs).map(|(a, b)| a - b).collect();
    let kl: Option<Vec<f64>> = log_probs.zip(column(Column::RefLogProbs)).map(|(a, b)| difference(a, b));
    let placed = about.score.map(|score| {
        let last = mask.iter().rposition(|keep| *keep);
        (0..n).map(|slot| if Some(slot) == last { score } else { 0.0 }).collect()
    });
    // the rewards of a trainer hold the penalty already
    let (scores, kl) = match column(Column::Scores).or(placed) {
        Some(scores) => (Some(scores), kl),
        None => (column(Column::Rewards), None),
    };
    let values = column(Column::Values);
    let nothing = |name: &str, found: &Option<Vec<f64>>| found.is_none().then(|| name.to_string());
    let assumed: Vec<String> = [nothing("kl", &kl), nothing("value", &values)].into_iter().flatten().collect();
    if scores.is_some() && !assumed.is_empty() {
        warn(&format!("the row has no {}: 0 is assumed", assumed.join(" and no ")));
    }
    let texts: Vec<String> = rollouts.texts().skip(slots.start).take(n).map(String::from).collect();
    let token = |slot: usize| match texts.get(slot) {
        Some(text) if !text.is_empty() => text.clone(),
        _ => format!("a{}", slot + 1),
    };
    Ok(Chain {
        tokens: (0..n).map(token).collect(),
        mask,
        scores: scores.ok_or("it has no score, token_level_scores or rewards")?,
        kl: kl.unwrap_or_else(|| vec![0.0; n]),
        values: values.unwrap_or_else(|| vec![0.0; n]),
        beta: options.beta,
        gamma: options.gamma,
        lambda: options.lambda,
    })
}
