//! Reads, compares and writes lists of fingerprints.

use std::{collections::BTreeMap, fs, path::Path};

use anyhow::{Context, Result};

/// Fingerprints by name (`gae/f32`).
pub(crate) type Fingerprints = BTreeMap<String, String>;

/// A name whose fingerprints differ; `None` if a list does not contain it.
pub(crate) struct Difference {
    pub(crate) name: String,
    pub(crate) expected: Option<String>,
    pub(crate) found: Option<String>,
}

/// Reads lines of a name and a fingerprint.
pub(crate) fn parse(text: &str) -> Result<Fingerprints> {
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let pairs = lines.map(|line| {
        let (name, fingerprint) = line.split_once(' ').with_context(|| format!("not a fingerprint: {line:?}"))?;
        Ok((name.to_owned(), fingerprint.trim().to_owned()))
    });
    pairs.collect()
}

/// Reads the recorded list; empty if there is none yet.
pub(crate) fn read(path: &Path) -> Result<Fingerprints> {
    if !path.exists() {
        return Ok(Fingerprints::new());
    }
    parse(&fs::read_to_string(path)?).with_context(|| path.display().to_string())
}

/// Writes the list that later runs are compared with.
pub(crate) fn write(path: &Path, fingerprints: &Fingerprints) -> Result<()> {
    let mut text = String::from(
        "# The bits of every formula. Written by `cargo xtask bits --bless`; a change is a changelog entry.\n",
    );
    for (name, fingerprint) in fingerprints {
        text.push_str(&format!("{name} {fingerprint}\n"));
    }
    fs::write(path, text).with_context(|| path.display().to_string())
}

/// All differences, sorted by name.
pub(crate) fn differences(expected: &Fingerprints, found: &Fingerprints) -> Vec<Difference> {
    let mut names: Vec<&String> = expected.keys().chain(found.keys()).collect();
    names.sort();
    names.dedup();
    let pairs = names.into_iter().map(|name| (name, expected.get(name), found.get(name)));
    pairs
        .filter(|(_, expected, found)| expected != found)
        .map(|(name, expected, found)| Difference {
            name: name.clone(),
            expected: expected.cloned(),
            found: found.cloned(),
        })
        .collect()
}

/// The list as a table with a column per number type.
pub(crate) fn table(fingerprints: &Fingerprints) -> String {
    let mut rows: BTreeMap<&str, BTreeMap<&str, &str>> = BTreeMap::new();
    for (name, fingerprint) in fingerprints {
        let (formula, kind) = name.split_once('/').unwrap_or((name, ""));
        rows.entry(formula).or_default().insert(kind, fingerprint);
    }
    let mut kinds: Vec<&str> = rows.values().flat_map(|row| row.keys().copied()).collect();
    kinds.sort_unstable();
    kinds.dedup();
    let width = rows.keys().map(|formula| formula.len()).max().unwrap_or(0).max("formula".len());
    let mut text = format!("{:width$}", "formula");
    kinds.iter().for_each(|kind| text.push_str(&format!("  {kind:16}")));
    for (formula, row) in rows {
        text.push_str(&format!("\n{formula:width$}"));
        kinds.iter().for_each(|kind| text.push_str(&format!("  {:16}", row.get(kind).unwrap_or(&""))));
    }
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_a_missing_and_a_new_name_are_found() {
        let expected = parse("# comment\nexp/f32 01\ngae/f32 02\nln/f32 03\n").unwrap();
        let found = parse("exp/f32 01\ngae/f32 ff\nwhiten/f32 04\n").unwrap();
        let names: Vec<_> = differences(&expected, &found).into_iter().map(|d| (d.name, d.found)).collect();
        let some = |text: &str| Some(text.to_owned());
        assert_eq!(names, [("gae/f32".into(), some("ff")), ("ln/f32".into(), None), ("whiten/f32".into(), some("04"))]);
        assert!(parse("nonsense").is_err());
    }

    #[test]
    fn the_table_has_a_column_per_type() {
        let list = parse("gae/f32 0000000000000001\ngae/f64 0000000000000002\nexp/f64 0000000000000003\n").unwrap();
        let expected = "formula  f32               f64\n\
                        exp                        0000000000000003\n\
                        gae      0000000000000001  0000000000000002";
        assert_eq!(table(&list), expected);
    }
}
