//! Every formula has all its parts: each test names the formula and the missing part.
//!
//! Formulas are the entries of the catalogue and the few functions that cannot have one.

use std::{
    fs,
    path::{Path, PathBuf},
};

use tokenwise_catalogue::entries;

use crate::case::cases;

/// All but `control`, which exports state machines and no function.
const STAGES: [&str; 8] = ["policy", "divergence", "reward", "advantage", "rollout", "weight", "loss", "metric"];

/// Suffix of the functions that return the length of a scratch slice.
const SIZE: &str = "_scratch_len";

/// In-place variants, compared with the bits of the formula that is listed.
const IN_PLACE: [&str; 1] = ["whiten_in_place"];

/// Functions without an entry, with their stage: they keep a state or read text.
const WITHOUT_ENTRY: [(&str, &str); 3] =
    [("advantage", "role_baseline"), ("rollout", "parse_rejection"), ("rollout", "parse_weight_bound")];

/// Entries for types of the core, which other languages can only call.
const TYPES: [&str; 3] = ["analysis_sums", "moments", "co_moments"];

/// An entry whose function is not in the module of its stage.
const LAYOUT: &str = "shift";

/// Formulas without a golden case, and the reason.
const NO_GOLDEN: &[(&str, &str)] = &[
    ("log_probs_and_entropy", "its outputs are those of token_log_probs and entropy, which have cases"),
    ("missing_eos_penalty", "TRL subtracts it inside a training step, of online DPO; held to the textbook"),
    ("length_penalty_group", "prime-rl is not on PyPI; held to the textbook"),
    (
        "puffer_advantage",
        "PufferLib has no wheel, and its build downloads other software; held to the textbook and to gae",
    ),
    ("gae_decoupled", "NeMo-RL on PyPI is an empty placeholder; held to the textbook and to gae"),
    ("leave_one_out_scaled", "NeMo-RL on PyPI is an empty placeholder; held to the textbook"),
    ("role_baseline", "prime-rl is not on PyPI; held to the textbook"),
    ("opd_advantage", "one subtraction; held to the textbook"),
    ("minillm_advantage", "TRL 1.16 has no MiniLLM trainer any more; held to the textbook"),
    ("kl_mask", "TorchRL masks inside its loss, which wants a language model; held to the textbook"),
    ("pf_ppo_indices", "drawn by a generator of its own; held to the textbook"),
    ("clip_cov_selection", "drawn by a generator of its own; held to the textbook, and to be uniform"),
    ("gvpo", "verl-recipe is not on PyPI; held to the textbook and to finite differences"),
    ("positive_nll", "NeMo-RL on PyPI is an empty placeholder; held to the textbook and to finite differences"),
    ("ref_kl", "prime-rl is not installed with the peers; held to the textbook and to finite differences"),
    ("mixed_kl_topk", "NeMo-RL is not installed with the peers; held to the textbook and to finite differences"),
    (
        "effective_sample_size",
        "verl divides it by the count and adds 1e-8; its key is in rollout_is; held to the textbook",
    ),
    ("shift", "a copy; every golden case is aligned before it is stored"),
];

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
            if !name.ends_with(SIZE)
                && !IN_PLACE.contains(&name)
                && name.chars().all(|c| c.is_lowercase() || c == '_' || c.is_ascii_digit())
            {
                names.push(name.to_string());
            }
        }
    }
    names
}

/// Panics with everything that is missing, not only the first.
fn assert_nothing_missing(missing: Vec<String>) {
    assert!(missing.is_empty(), "missing:\n  {}", missing.join("\n  "));
}

/// Stage and name of every formula.
fn formulas() -> Vec<(&'static str, &'static str)> {
    let entries = entries().filter(|entry| !TYPES.contains(&entry.name)).map(|entry| (entry.stage, entry.name));
    entries.chain(WITHOUT_ENTRY).collect()
}

fn missing(part: &str, has: impl Fn(&str) -> bool) {
    let lacking = formulas().into_iter().filter(|(_, name)| !has(name));
    assert_nothing_missing(lacking.map(|(_, name)| format!("{name}: {part}")).collect());
}

#[test]
fn every_exported_function_has_an_entry() {
    let mut missing = Vec::new();
    for stage in STAGES {
        let names = exported(stage);
        assert!(!names.is_empty(), "{stage} exports no function");
        let listed: Vec<&str> =
            formulas().into_iter().filter(|(of, name)| *of == stage && *name != LAYOUT).map(|(_, name)| name).collect();
        let unlisted = names.iter().filter(|name| !listed.contains(&name.as_str()));
        missing.extend(unlisted.map(|name| format!("{stage}::{name}: an entry in catalogue/src")));
        let unknown = listed.iter().filter(|name| !names.contains(&name.to_string()));
        missing.extend(unknown.map(|name| format!("{stage}::{name}: in the library")));
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
    for (stage, name) in formulas() {
        let source =
            if name == LAYOUT { read("core/src/layout.rs") } else { read_all(&format!("core/src/{stage}"), ".rs") };
        let Some(docs) = docs(&source, name) else {
            lacking.push(format!("{name}: its definition"));
            continue;
        };
        if docs.first().map_or(true, |line| line.is_empty() || line.starts_with(['`', '*', '#'])) {
            lacking.push(format!("{name}: its meaning in the first line"));
        }
        let mut from = 0;
        for part in ["```text", "**Alignment.**", "**Mask.**", "**Errors.**", "**Reference.**", "# Example", "```"] {
            match docs[from..].iter().position(|line| line.starts_with(part)) {
                Some(at) => from += at + 1,
                None => lacking.push(format!("{name}: {part} in its docs, in its place")),
            }
        }
    }
    assert_nothing_missing(lacking);
}

#[test]
fn every_formula_has_a_golden_case() {
    let report = tokenwise_tests::golden::run(&root().join("tests/golden")).unwrap();
    let reason = |name: &str| NO_GOLDEN.iter().any(|(known, why)| *known == name && !why.is_empty());
    missing("a golden case", |name| report.formulas().contains(name) || reason(name) || name.starts_with("parse_"));
    let stale = NO_GOLDEN.iter().filter(|(name, _)| report.formulas().contains(name));
    assert_eq!(stale.count(), 0, "a reason for no golden case, although there is one");
}

#[test]
fn every_formula_has_a_case_with_a_textbook_version() {
    missing("a case in suite", |name| cases().any(|case| case.name == name));
}

#[test]
fn every_formula_without_an_entry_is_exported_to_javascript() {
    // every entry of the catalogue is exported; beside these there is what has a state or reads text
    let script = read_all("wasm/js", ".js");
    for (_, name) in WITHOUT_ENTRY {
        let mut words = name.split('_');
        let mut name = words.next().unwrap_or_default().to_string();
        for word in words {
            name.extend(word.chars().take(1).flat_map(char::to_uppercase).chain(word.chars().skip(1)));
        }
        let exported = |line: &str| line == format!("  {name},") || line.starts_with(&format!("export const {name} ="));
        assert!(script.lines().any(exported), "{name}: an export in wasm");
    }
}

#[test]
fn every_formula_has_its_bits_recorded() {
    let record = read("tests/fingerprint/fingerprints.txt");
    missing("a fingerprint", |name| {
        record.lines().any(|line| line.split([' ', '/']).next() == Some(name) && !line.ends_with(" 0000000000000000"))
    });
}

#[test]
fn every_formula_has_its_accuracy_measured() {
    let versions = read_all("tests/reference/accuracy/textbook", ".py");
    let table = read("docs/accuracy.md");
    let mut missing = Vec::new();
    for entry in entries() {
        if !versions.contains(&format!("@textbook(\"{}\"", entry.name)) {
            missing.push(format!("{}: a version in tests/reference/accuracy/textbook", entry.name));
        }
        if !table.contains(&format!("\n| `{}`", entry.name)) {
            missing.push(format!(
                "{}: a row in docs/accuracy.md, which tests/reference/accuracy_table.py writes",
                entry.name
            ));
        }
    }
    assert_nothing_missing(missing);
}

/// Folders whose files are written by hand, but for [`WRITTEN`].
const FOLDERS: [&str; 8] = ["adapters", "catalogue", "core", "gpu-shim", "python", "tests", "wasm", "www"];

/// What programs write, what is built, and words for readers.
const WRITTEN: [&str; 9] = [
    "/target",
    "/node_modules",
    "/tests/golden",
    "/tests/fingerprint",
    "/python/tokenwise_rl/_formulas.py",
    "/python/tokenwise_rl/configs.py",
    "/www/i18n",
    ".gz",
    ".so",
];

/// The files that name a formula, in any spelling.
fn naming(path: &Path, name: &str, found: &mut Vec<PathBuf>) {
    let text = path.to_string_lossy();
    let hidden = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with('.'));
    if hidden || WRITTEN.iter().any(|part| text.ends_with(part)) {
        return;
    }
    if path.is_dir() {
        fs::read_dir(path).unwrap().for_each(|entry| naming(&entry.unwrap().path(), name, found));
        return;
    }
    // files that are not text name nothing
    let text = fs::read_to_string(path).unwrap_or_default().to_lowercase();
    let named = text.match_indices(name).any(|(at, _)| {
        let before = text[..at].chars().next_back();
        let after = text[at + name.len()..].chars().next();
        // "toPrecision" is no formula; "XConfig", "x_kernel" and "xF64" are one
        let whole = ["config", "columns", "input", "f64", "f32"];
        let rest = &text[at + name.len()..];
        !before.is_some_and(char::is_alphanumeric)
            && (!after.is_some_and(char::is_alphabetic) || whole.iter().any(|end| rest.starts_with(end)))
    });
    if named {
        found.push(path.to_owned());
    }
}

/// "Adding a formula" in ARCHITECTURE.md. A policy loss with an input of its own, so that nothing is shared by chance.
#[test]
fn a_policy_loss_is_named_in_nine_files() {
    let reads = |entry: &tokenwise_catalogue::Entry, name| entry.inputs.iter().any(|column| column.name == name);
    let loss = entries().find(|entry| entry.stage == "loss" && reads(entry, "scores") && reads(entry, "advantages"));
    let mut found = Vec::new();
    FOLDERS.iter().for_each(|folder| naming(&root().join(folder), loss.unwrap().name, &mut found));
    assert!(found.len() <= 9, "{found:#?}");
    assert!(found.iter().any(|path| path.ends_with("catalogue/src/loss.rs")), "{found:#?}");
}
