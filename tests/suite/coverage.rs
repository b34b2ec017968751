//! No formula is without its parts: each test names the formula and what it lacks.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tokenwise_tests::formulas::{Golden, Shader, FORMULAS};

/// All but `control`, which exports state machines and no function.
const STAGES: [&str; 7] = ["policy", "divergence", "reward", "advantage", "rollout", "loss", "metric"];

/// Functions that say how long a scratch slice has to be, and compute nothing else.
const SIZES: [&str; 1] = ["optimal_baseline_columns"];

/// Formulas into their own input, held to the bits of the one that is listed.
const IN_PLACE: [&str; 1] = ["whiten_in_place"];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|error| panic!("{path}: {error}"))
}

/// All files with this ending below a folder, one after the other.
fn read_all(folder: &str, ending: &str) -> String {
    fn walk(folder: &Path, ending: &str, text: &mut String) {
        let mut entries: Vec<PathBuf> =
            fs::read_dir(folder).into_iter().flatten().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                walk(&path, ending, text);
            } else if path.to_string_lossy().ends_with(ending) {
                text.push_str(&fs::read_to_string(&path).unwrap());
            }
        }
    }
    let mut text = String::new();
    walk(&root().join(folder), ending, &mut text);
    text
}

/// The functions a stage exports: the lower-case names of its `pub use`, hidden ones left out.
fn exported(stage: &str) -> Vec<String> {
    let text = read(&format!("core/src/{stage}/mod.rs"));
    let mut names = Vec::new();
    for statement in text.split(';') {
        let hidden = statement.contains("#[doc(hidden)]");
        let Some(at) = statement.find("pub use ") else { continue };
        let items = &statement[at + "pub use ".len()..];
        let items =
            items.split_once("::{").map_or_else(|| items.rsplit("::").next().unwrap_or(items), |(_, list)| list);
        for name in items.split([',', '{', '}']).map(str::trim).filter(|name| !hidden && !name.is_empty()) {
            if !SIZES.contains(&name)
                && !IN_PLACE.contains(&name)
                && name.chars().all(|c| c.is_lowercase() || c == '_' || c.is_ascii_digit())
            {
                names.push(name.to_string());
            }
        }
    }
    names
}

/// Panics with all that is missing, not only the first.
fn assert_nothing_missing(missing: Vec<String>) {
    assert!(missing.is_empty(), "missing:\n  {}", missing.join("\n  "));
}

fn missing(part: &str, has: impl Fn(&tokenwise_tests::formulas::Entry) -> bool) {
    let lacking = FORMULAS.iter().filter(|entry| !has(entry));
    assert_nothing_missing(lacking.map(|entry| format!("{}: {part}", entry.name)).collect());
}

#[test]
fn every_exported_function_is_listed() {
    let mut missing = Vec::new();
    for stage in STAGES {
        let names = exported(stage);
        assert!(!names.is_empty(), "{stage} exports no function");
        let listed: Vec<&str> = FORMULAS.iter().filter(|entry| entry.stage == stage).map(|entry| entry.name).collect();
        missing.extend(
            names
                .iter()
                .filter(|name| !listed.contains(&name.as_str()))
                .map(|name| format!("{stage}::{name}: in formulas.rs")),
        );
        missing.extend(
            listed
                .iter()
                .filter(|name| !names.contains(&name.to_string()))
                .map(|name| format!("{stage}::{name}: in the library")),
        );
    }
    assert_nothing_missing(missing);
}

/// The doc comment above a public function.
fn docs(source: &str, name: &str) -> Option<Vec<String>> {
    let lines: Vec<&str> = source.lines().collect();
    let at = lines.iter().position(|line| {
        let rest = line.strip_prefix("pub fn ").and_then(|rest| rest.strip_prefix(name));
        rest.is_some_and(|rest| rest.starts_with(['<', '(']))
    })?;
    let first = lines[..at].iter().rposition(|line| !line.starts_with("///")).map_or(0, |line| line + 1);
    Some(lines[first..at].iter().map(|line| line.trim_start_matches("///").trim().to_string()).collect())
}

#[test]
fn every_doc_has_its_seven_parts() {
    let mut lacking = Vec::new();
    for entry in FORMULAS {
        let source = if entry.stage == "layout" {
            read("core/src/layout.rs")
        } else {
            read_all(&format!("core/src/{}", entry.stage), ".rs")
        };
        let Some(docs) = docs(&source, entry.name) else {
            lacking.push(format!("{}: its definition", entry.name));
            continue;
        };
        if docs.first().map_or(true, |line| line.is_empty() || line.starts_with(['`', '*', '#'])) {
            lacking.push(format!("{}: its meaning in the first line", entry.name));
        }
        let mut from = 0;
        for part in ["```text", "**Alignment.**", "**Mask.**", "**Errors.**", "**Reference.**", "# Example", "```"] {
            match docs[from..].iter().position(|line| line.starts_with(part)) {
                Some(at) => from += at + 1,
                None => lacking.push(format!("{}: {part} in its docs, in its place", entry.name)),
            }
        }
    }
    assert_nothing_missing(lacking);
}

#[test]
fn every_formula_has_a_golden_case() {
    let cases = read_all("tests/golden", ".json");
    missing("a golden case", |entry| match entry.golden {
        Golden::Ops(ops) => ops.iter().all(|op| cases.contains(&format!("\"op\":\"{op}\""))),
        Golden::None(reason) => !reason.is_empty(),
    });
}

#[test]
fn every_formula_has_a_textbook_version() {
    let naive = read_all("tests/src/naive", ".rs");
    missing("a textbook version", |entry| match entry.name {
        // both of its outputs have one
        "log_probs_and_entropy" => true,
        name => naive.contains(&format!("pub fn {name}(")),
    });
}

#[test]
fn every_formula_has_its_properties_tested() {
    missing("a case in every_case", |entry| crate::properties::TESTED.contains(&entry.formula));
}

#[test]
fn every_formula_is_exported_to_javascript() {
    let (source, script) = (read_all("wasm/src", ".rs"), read_all("wasm/src/js", ".js"));
    missing("an export in wasm", |entry| {
        let mut words = entry.name.split('_');
        let mut name = words.next().unwrap_or_default().to_string();
        for word in words {
            name.extend(word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)));
        }
        let row = [",", ";"].iter().any(|end| source.contains(&format!("=> {name}{end}")));
        // what works on an object of JavaScript
        row || script.contains(&format!("export function {name}("))
    });
}

#[test]
fn every_formula_has_a_shader_or_a_reason() {
    missing("a shader", |entry| match entry.shader {
        Shader::File(path) => root().join("gpu-shim/shaders").join(path).is_file(),
        Shader::None(reason) => !reason.is_empty(),
    });
}

#[test]
fn every_formula_has_its_bits_recorded() {
    let record = read("tests/fingerprint/fingerprints.txt");
    missing("a fingerprint", |entry| record.lines().any(|line| line.split([' ', '/']).next() == Some(entry.name)));
}
