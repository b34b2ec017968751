//! `tokenwise lint`: the usual faults of rollout files.

mod groups;
mod rules;

use std::{collections::BTreeMap, path::Path};

use serde_json::json;

use crate::{
    args::Lint,
    failure::{Failure, Result},
    output::{count, print},
    rollout::{read, Row},
};

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Rule {
    NotANumber,
    RewardOnDroppedSlot,
    LastTokenHidden,
    NothingKept,
    RatioAtFirstUpdate,
    ReturnsDisagree,
    GroupNotCentred,
    TiedGroup,
}

impl Rule {
    const fn name(self) -> &'static str {
        match self {
            Self::NotANumber => "not-a-number",
            Self::RewardOnDroppedSlot => "reward-on-dropped-slot",
            Self::LastTokenHidden => "last-token-hidden",
            Self::NothingKept => "nothing-kept",
            Self::RatioAtFirstUpdate => "ratio-at-first-update",
            Self::ReturnsDisagree => "returns-disagree",
            Self::GroupNotCentred => "group-not-centred",
            Self::TiedGroup => "tied-group",
        }
    }
}

/// Collects what the rules find.
pub(crate) struct Findings<'a> {
    options: &'a Lint,
    counts: BTreeMap<Rule, u64>,
    total: u64,
    printed: usize,
    failure: Option<Failure>,
}

impl Findings<'_> {
    /// Notes a fault of a sequence, at a token counted from 1 where it has one.
    pub(crate) fn add(&mut self, rule: Rule, row: &Row, token: Option<usize>, message: &str) {
        *self.counts.entry(rule).or_default() += 1;
        self.total += 1;
        if self.printed == self.options.limit || self.failure.is_some() {
            return;
        }
        self.printed += 1;
        let path = &self.options.reading.file;
        let text = if self.options.json {
            let finding = json!({
                "rule": rule.name(), "file": path, "place": row.place, "step": row.step, "token": token, "message": message,
            });
            format!("{finding}\n")
        } else {
            let token = token.map_or(String::new(), |token| format!(", token {token}"));
            format!("{}:{}{token}: {}: {message}\n", path.display(), row.place, rule.name())
        };
        self.failure = print(&text).err();
    }
}

/// Whether anything was found.
pub(crate) fn run(options: &Lint) -> Result<bool> {
    if !(options.tolerance.is_finite() && options.tolerance >= 0.0) {
        return Err(Failure::usage(format!("--tolerance: expected a number of at least 0, got {}", options.tolerance)));
    }
    let mut findings = Findings { options, counts: BTreeMap::new(), total: 0, printed: 0, failure: None };
    let mut groups = groups::Groups::default();
    let mut sequences = 0_u64;
    read(&options.reading, &mut |rollouts| {
        sequences += rollouts.rows.len() as u64;
        for row in 0..rollouts.rows.len() {
            rules::sequence(rollouts, row, options, &mut findings);
            groups.add(rollouts, row);
        }
        findings.failure.take().map_or(Ok(()), Err)
    })?;
    groups.judge(options.tolerance, &mut findings);
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
