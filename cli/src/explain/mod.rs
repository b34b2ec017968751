//! `tokenwise explain`: the chain of one response, number by number.

mod chain;
mod words;

use std::{fs, path::Path};

use serde_json::{json, Map, Value};

use crate::{
    args::{Explain, Language},
    failure::{Failure, Result},
    output::{number, print, table},
};
use chain::{Chain, Quantity};

pub(crate) fn run(options: &Explain) -> Result<()> {
    let chain = match &options.file {
        Some(path) => from_file(path)?,
        None => Chain::one_plus_one(),
    };
    let found = chain.found().map_err(|error| match &options.file {
        Some(path) => Failure::input(path, error),
        None => Failure::usage(error.to_string()),
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
    rows[1].extend(chain.tokens.iter().map(|token| token.replace(['\n', '\t'], " ")));
    rows.push(vec![words::mask(language).into()]);
    rows[2].extend(chain.mask.iter().map(|keep| if *keep { "●" } else { "○" }.to_string()));
    for quantity in Quantity::ALL {
        let mut row = vec![words::name(quantity, language)];
        let numbers = found.row(chain, quantity).into_iter().zip(&chain.mask);
        row.extend(numbers.map(|(x, keep)| if *keep { number(x) } else { "·".into() }));
        rows.push(row);
    }
    table(&rows)
}

fn from_file(path: &Path) -> Result<Chain> {
    let text = fs::read_to_string(path).map_err(|error| Failure::input(path, error))?;
    let object: Map<String, Value> = serde_json::from_str(&text).map_err(|error| Failure::input(path, error))?;
    Chain::from_json(&object).map_err(|what| Failure::input(path, what))
}
