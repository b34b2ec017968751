//! Runs golden cases: files with inputs and the results of a named implementation.
//!
//! The format is documented in `tests/golden/README.md`.

mod calls;
mod case;
mod compare;
mod differences;
mod ops;
mod parse;
mod step;

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt, fs, io,
    path::{Path, PathBuf},
};

use serde_json::Value;

use case::Case;

pub use calls::{calls, calls_of, RecordedCall};

/// The result of one case.
#[derive(Debug)]
pub struct Outcome {
    /// The operation, or `file` where a file could not be read.
    pub op: String,
    /// Where the case stands: file, index and name.
    pub place: String,
    /// Who computed the expected numbers, by the profile; `other` for textbooks, worked examples and plain torch.
    pub framework: String,
    /// Whether the expected numbers are double precision, not rounded for print.
    pub exact: bool,
    /// The largest distance from what was expected (relative where that is above 1), or why it failed.
    pub result: Result<f64, String>,
}

/// The outcome of many cases.
#[derive(Debug, Default)]
pub struct Report {
    outcomes: Vec<Outcome>,
    formulas: BTreeSet<&'static str>,
}

impl Report {
    /// Cases that passed.
    pub fn passed(&self) -> usize {
        self.outcomes.iter().filter(|outcome| outcome.result.is_ok()).count()
    }

    /// Cases that failed, unreadable files included.
    pub fn failed(&self) -> usize {
        self.outcomes.len() - self.passed()
    }

    /// A table in Markdown: operation × framework, number of cases, largest deviation in double precision.
    pub fn coverage(&self) -> String {
        const FRAMEWORKS: [&str; 5] = ["verl-0.9.1", "trl-1.16", "openrlhf-0.11", "paper", "other"];
        let mut cells: BTreeMap<&str, [(usize, f64); FRAMEWORKS.len()]> = BTreeMap::new();
        for outcome in &self.outcomes {
            let column = FRAMEWORKS.iter().position(|name| *name == outcome.framework).unwrap_or(FRAMEWORKS.len() - 1);
            let (cases, largest) = &mut cells.entry(&outcome.op).or_default()[column];
            *cases += 1;
            if let (Ok(deviation), true) = (&outcome.result, outcome.exact) {
                *largest = largest.max(*deviation);
            }
        }
        let mut page =
            format!("| operation | {} |\n| --- |{}\n", FRAMEWORKS.join(" | "), " --- |".repeat(FRAMEWORKS.len()));
        for (op, row) in cells {
            let cells = row.map(|(cases, largest)| match cases {
                0 => String::new(),
                _ => format!("{cases} · {largest:.0e}"),
            });
            page += &format!("| {op} | {} |\n", cells.join(" | "));
        }
        page
    }

    /// The formulas of the catalogue that were called.
    pub const fn formulas(&self) -> &BTreeSet<&'static str> {
        &self.formulas
    }

    /// The operations that were run, each with its number of cases.
    pub fn operations(&self) -> BTreeMap<&str, usize> {
        let mut counts = BTreeMap::new();
        for outcome in &self.outcomes {
            *counts.entry(outcome.op.as_str()).or_default() += 1;
        }
        counts
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut by_op: BTreeMap<&str, (usize, Vec<String>)> = BTreeMap::new();
        for outcome in &self.outcomes {
            let (passed, failures) = by_op.entry(&outcome.op).or_default();
            match &outcome.result {
                Ok(_) => *passed += 1,
                Err(why) => failures.push(format!("{}: {why}", outcome.place)),
            }
        }
        for (op, (passed, failures)) in by_op {
            writeln!(f, "{op}: {passed} passed, {} failed", failures.len())?;
            for failure in failures {
                writeln!(f, "  {failure}")?;
            }
        }
        write!(f, "{} passed, {} failed", self.passed(), self.failed())
    }
}

/// Runs one case; returns its operation and its result.
type RunOne = fn(&Value) -> (String, Result<f64, String>);

/// Runs every `*.json` below a folder (or the one file given), in the order of their names.
///
/// # Errors
///
/// If the folder cannot be read or holds no JSON file. A file that cannot be read or parsed is a failed case.
pub fn run(path: &Path) -> io::Result<Report> {
    let mut files = Vec::new();
    collect(path, &mut files)?;
    if files.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, format!("no *.json file below {}", path.display())));
    }
    files.sort();
    let mut report = Report::default();
    step::called();
    for file in files {
        run_file(&file, &mut report.outcomes);
    }
    report.formulas = step::called();
    Ok(report)
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if !path.is_dir() {
        // an unreadable path must not look like an empty folder
        fs::metadata(path)?;
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|extension| extension == "json") {
            files.push(path);
        }
    }
    Ok(())
}

fn run_file(file: &Path, outcomes: &mut Vec<Outcome>) {
    let name = file.display().to_string();
    match fs::read_to_string(file) {
        Ok(text) => run_text(&name, &text, outcomes),
        Err(error) => outcomes.push(unreadable(&name, error.to_string())),
    }
}

fn unreadable(file: &str, why: String) -> Outcome {
    Outcome { op: "file".into(), place: file.into(), framework: String::new(), exact: false, result: Err(why) }
}

/// Runs the cases of the text of a file.
fn run_text(file: &str, text: &str, outcomes: &mut Vec<Outcome>) {
    let value: Value = match serde_json::from_str(text) {
        Ok(value) => value,
        Err(error) => return outcomes.push(unreadable(file, format!("not JSON: {error}"))),
    };
    let (list, run_one): (_, RunOne) = match value["format"].as_str() {
        Some("tokenwise-golden/1") => ("cases", run_case),
        Some("tokenwise-differences/1") => ("differences", differences::run),
        other => {
            let why = format!("format: expected \"tokenwise-golden/1\", got {}", other.unwrap_or("nothing"));
            return outcomes.push(unreadable(file, why));
        }
    };
    let Some(cases) = value[list].as_array() else {
        return outcomes.push(unreadable(file, format!("{list}: expected a list")));
    };
    for (index, case) in cases.iter().enumerate() {
        let (op, result) = run_one(case);
        let name = case["name"].as_str().or_else(|| case["example"].as_str()).unwrap_or("unnamed");
        let place = format!("{file} case {index} ({name})");
        let framework = case["profile"].as_str().unwrap_or("other").to_owned();
        let exact = case["dtype"] != "f32" && case["atol"].as_f64().map_or(true, |atol| atol < 1e-8);
        outcomes.push(Outcome { op, place, framework, exact, result });
    }
}

fn run_case(value: &Value) -> (String, Result<f64, String>) {
    let op = value["op"].as_str().unwrap_or("unnamed operation").to_owned();
    let result = ops::canonical(value).and_then(|value| Case::parse(&value)?.check());
    (op, result)
}
