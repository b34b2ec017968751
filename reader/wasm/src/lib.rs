//! The reader of rollout files for JavaScript: a file in, its columns out.
//!
//! `read(name, file, scoreName)` takes an object that hands out parts of the file when asked (in a worker a `Blob` can,
//! at once), so that a file need not be in memory as a whole. What is refused is thrown as JSON: `code`, `values`,
//! `place`.
#![forbid(unsafe_code)]

mod dataset;
mod file;

use std::ops::ControlFlow;

use serde_json::{json, Map, Value};
use tokenwise_reader::{Budget, Error, Fault, File, Names, Options, Place, Source};
use wasm_bindgen::prelude::*;

pub use dataset::Dataset;
pub use file::JsFile;

/// Beyond this, a table of tokens cannot be scrolled.
const MOST_TOKENS: u64 = 500_000;
const MOST_SEQUENCES: u64 = 200_000;
/// A page may not take the memory of a whole machine.
const MEMORY: Budget = Budget::new(1 << 30);

/// Reads a file of any kind. `score_name` is the name of its score, empty for the usual ones.
///
/// # Errors
///
/// What is wrong with the file, as JSON.
#[wasm_bindgen]
pub fn read(name: &str, file: JsFile, score_name: &str) -> Result<Dataset, String> {
    read_source(name, file::Opened::new(file), score_name).map_err(|error| told(&error))
}

fn read_source(name: &str, source: impl Source, score_name: &str) -> Result<Dataset, Error> {
    let given = if score_name.is_empty() { vec![] } else { vec![format!("score={score_name}")] };
    let names = Names::new(&given).map_err(|reason| Fault::Io { reason })?;
    let options = Options {
        names,
        batch_tokens: u64::MAX,
        labels: true,
        most_tokens: MOST_TOKENS,
        most_sequences: MOST_SEQUENCES,
        memory: MEMORY,
    };
    let file = File::open(name, source, &options)?;
    let mut dataset = Dataset::new(file.kind());
    let summary = file.read(&options, &mut |rollouts| {
        dataset.add(rollouts);
        ControlFlow::Continue(())
    })?;
    dataset.passed_over = summary.passed_over;
    Ok(dataset)
}

fn told(error: &Error) -> String {
    let Error { place, fault } = error;
    let values: Map<String, Value> =
        fault.values().into_iter().map(|(name, value)| (name.into(), value.into())).collect();
    json!({ "code": fault.code(), "values": values, "place": numbers(place) }).to_string()
}

fn numbers(place: &Place) -> Map<String, Value> {
    place.numbers().into_iter().map(|(name, number)| (name.into(), number.into())).collect()
}

#[cfg(test)]
mod tests {
    use tokenwise_reader::Bytes;

    use super::*;

    #[test]
    fn batches_are_laid_end_to_end() {
        let text = "{\"step\": 1, \"prompt\": \"p\", \"values\": [1, 2], \"strings\": [\"é\", \"😀\"]}\n\
                    {\"step\": 2, \"score\": 1, \"values\": [3], \"mask\": [0], \"group\": \"g\"}\n";
        let dataset = read_source("a.jsonl", Bytes::from(text), "").unwrap();
        assert_eq!((dataset.kind().as_str(), dataset.offsets()), ("jsonl", vec![0, 2, 3]));
        assert_eq!((dataset.parts(), dataset.keep(), dataset.places()), (vec![0, 1, 2], vec![1, 1, 0], vec![1, 2]));
        assert_eq!(dataset.column("values"), Some(vec![1.0, 2.0, 3.0]));
        assert_eq!(dataset.column("returns"), None);
        assert_eq!((dataset.text().as_str(), dataset.text_ends()), ("é😀", vec![1, 3, 3]));
        assert_eq!((dataset.group(), dataset.group_names()), (vec![0, 1], vec!["p".to_string(), "g".into()]));
        assert_eq!((dataset.prompt(), dataset.prompts()), (vec![0, u32::MAX], vec!["p".to_string()]));
        assert_eq!((dataset.scored(), dataset.steps()), (vec![0, 1], vec![1.0, 2.0]));
    }

    #[test]
    fn what_is_refused_is_told_as_json() {
        let error = read_source("a.json", Bytes::from_static(b"[{\"values\": [1, \"x\"]}]"), "").err().unwrap();
        let told: Value = serde_json::from_str(&told(&error)).unwrap();
        let values = json!({"field": "values", "found": "x"});
        assert_eq!(told, json!({"code": "notANumber", "values": values, "place": {"line": 1, "column": 19}}));
    }
}
