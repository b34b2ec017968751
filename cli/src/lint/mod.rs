//! `tokenwise lint`: common faults of rollout files.

mod rows;
mod words;

use std::{collections::BTreeMap, path::Path};

use serde_json::json;
use tokenwise_lint::{check, Finding, Options, Rule};

use crate::{
    args::Lint,
    failure::{Failure, Result},
    output::{count, print},
    rollout::{read, Row},
};

/// Collects findings.
struct Findings<'a> {
    options: &'a Lint,
    counts: BTreeMap<Rule, u64>,
    total: u64,
    printed: usize,
    failure: Option<Failure>,
}

impl Findings<'_> {
    /// Records a finding of a sequence.
    fn add(&mut self, row: &Row, finding: &Finding) {
        let rule = finding.rule();
        *self.counts.entry(rule).or_default() += 1;
        self.total += 1;
        if self.printed == self.options.limit || self.failure.is_some() {
            return;
        }
        self.printed += 1;
        // users count from 1
        let (token, message) = (finding.token().map(|token| token + 1), words::message(finding));
        let path = &self.options.reading.file;
        let text = if self.options.json {
            let finding = json!({
                "rule": rule.name(), "file": path, "place": row.place, "step": row.step, "token": token,
                "message": message,
            });
            format!("{finding}\n")
        } else {
            let token = token.map_or(String::new(), |token| format!(", token {token}"));
            format!("{}:{}{token}: {}: {message}\n", path.display(), row.place, rule.name())
        };
        self.failure = print(&text).err();
    }
}

/// Whether there are findings.
pub(crate) fn run(options: &Lint) -> Result<bool> {
    if !(options.tolerance.is_finite() && options.tolerance >= 0.0) {
        return Err(Failure::usage(format!("--tolerance: expected a number of at least 0, got {}", options.tolerance)));
    }
    let rules = Options { tolerance: options.tolerance, first_update: options.first_step };
    let mut findings = Findings { options, counts: BTreeMap::new(), total: 0, printed: 0, failure: None };
    let mut groups = rows::Groups::default();
    let mut sequences = 0_u64;
    read(&options.reading, &mut |rollouts| {
        sequences += rollouts.rows.len() as u64;
        for (row, about) in rollouts.rows.iter().enumerate() {
            let sequence = rows::sequence(rollouts, row);
            check(&sequence, &rules, &mut |finding| findings.add(about, &finding));
            groups.add(*about, &sequence);
        }
        findings.failure.take().map_or(Ok(()), Err)
    })?;
    groups.judge(options.tolerance, &mut |first, finding| findings.add(first, &finding));
    findings.failure.take().map_or(Ok(()), Err)?;
    let total = findings.total;
    print(&summary(&findings, total, sequences, &options.reading.file))?;
    Ok(total > 0)
}

fn summary(findings: &Findings<'_>, total: u64, sequences: u64, path: &Path) -> String {
    let counts = findings.counts.iter().map(|(rule, count)| (rule.name(), *count));
    if findings.options.json {
        let counts: BTreeMap<_, _> = counts.collect();
        return format!("{}\n", json!({ "file": path, "sequences": sequences, "findings": total, "by_rule": counts }));
    }
    if total == 0 {
        return format!("{}: {}, nothing found\n", path.display(), count(sequences, "sequence"));
    }
    let counts: Vec<String> = counts.map(|(rule, count)| format!("{count} {rule}")).collect();
    let hidden = total - findings.printed as u64;
    let more = if hidden > 0 { format!(" ({hidden} not shown; see --limit)") } else { String::new() };
    let (sequences, total) = (count(sequences, "sequence"), count(total, "finding"));
    format!(
        "{}: {sequences}, {total}: {}{more}
",
        path.display(),
        counts.join(", ")
    )
}
