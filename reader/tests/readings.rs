//! How files are read; the page is tested against the same table (`www/tests/data-reader.test.js`).

#![allow(missing_docs, reason = "a program of its own")]
#![allow(clippy::unwrap_used, reason = "a test")]

use std::{collections::BTreeSet, fs, ops::ControlFlow, path::Path};

use serde_json::{json, Map, Value};
use tokenwise_reader::{Bytes, Column, Error, File, Names, Options};

/// Numbers added up, and how many are not finite.
#[derive(Default)]
struct Sum(f64, u64);

impl Sum {
    fn add(&mut self, x: f64) {
        match x.is_finite() {
            true => self.0 += x,
            false => self.1 += 1,
        }
    }
}

fn summary(file: &Path, fields: &[String]) -> Result<Value, Error> {
    let bytes = Bytes::from(fs::read(file).unwrap());
    let options = Options { names: Names::new(fields).unwrap(), labels: true, ..Options::default() };
    let (mut sequences, mut tokens, mut kept, mut first_updates) = (0, 0, 0, 0);
    let (mut steps, mut groups) = (Vec::new(), BTreeSet::new());
    let (mut scores, mut scored) = (Sum::default(), 0);
    let mut columns: Vec<Option<Sum>> = Column::ALL.iter().map(|_| None).collect();
    File::open(&file.to_string_lossy(), bytes, &options)?.read(&options, &mut |rollouts| {
        sequences += rollouts.rows.len();
        tokens += rollouts.tokens();
        kept += rollouts.kept().iter().filter(|keep| **keep).count();
        for row in &rollouts.rows {
            first_updates += u64::from(row.first_update);
            groups.extend(row.group);
            if let Some(step) = row.step.filter(|step| !steps.contains(step)) {
                steps.push(step);
            }
            if let Some(score) = row.score {
                scores.add(score);
                scored += 1;
            }
        }
        for (column, sum) in Column::ALL.into_iter().zip(&mut columns) {
            for x in rollouts.column(column).into_iter().flatten() {
                sum.get_or_insert_with(Sum::default).add(*x);
            }
        }
        ControlFlow::Continue(())
    })?;
    let sums = Column::ALL.into_iter().zip(columns).filter_map(|(column, sum)| Some((column.name(), sum?)));
    let columns: Map<String, Value> = sums.map(|(name, Sum(sum, odd))| (name.into(), json!([sum, odd]))).collect();
    Ok(json!({
        "sequences": sequences, "tokens": tokens, "kept": kept, "steps": steps, "groups": groups.len(),
        "first_updates": first_updates, "scores": [scores.0, scores.1, scored], "columns": columns,
    }))
}

/// Equal, numbers up to rounding.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(a), Value::Number(b)) => (a.as_f64().unwrap() - b.as_f64().unwrap()).abs() < 1e-9,
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(key, a)| b.get(key).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

#[test]
fn files_are_read_as_the_table_says() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let table: Map<String, Value> =
        serde_json::from_str(&fs::read_to_string(folder.join("readings.json")).unwrap()).unwrap();
    assert!(table.len() >= 15);
    for (name, expected) in table {
        let mut expected = expected.as_object().unwrap().clone();
        let fields = expected.remove("score").map(|score| format!("score={}", score.as_str().unwrap()));
        let found = summary(&folder.join(&name), fields.as_slice());
        match expected.get("refused") {
            Some(line) => {
                let error = found.expect_err(&name);
                assert_eq!(
                    (error.place.line, error.fault.code()),
                    (line.as_u64(), expected["code"].as_str().unwrap()),
                    "{name}: {error}"
                );
            }
            None => {
                // the lint has a test of its own
                expected.remove("lint");
                let found = found.unwrap_or_else(|message| panic!("{name}: {message}"));
                assert!(same(&found, &Value::Object(expected.clone())), "{name}: {found} is not {expected:?}");
            }
        }
    }
}
