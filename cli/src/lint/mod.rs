//! `tokenwise lint`: common faults of rollout files.

mod rows;
mod words;

use std::collections::BTreeMap;

use serde_json::json;
use tokenwise_lint::{check, Finding, Options, Rule};
use tokenwise_reader::Budget;

pub(crate) use rows::{sequence, Groups};
pub(crate) use words::message;

use crate::{
    args::Lint,
    failure::{Failure, Result},
    output::{count, print, wrapped},
    rollout::{Column, Field, Files, Row, Summary},
};

/// Collects findings.
struct Findings<'a> {
    options: &'a Lint,
    files: &'a Files,
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
        let (token, message) = (finding.token().map(|token| token + 1), message(finding));
        let path = self.files.path(row);
        let text = if self.options.json {
            let finding = json!({
                "rule": rule.name(), "file": path, "place": row.place, "step": row.step, "token": token,
                "message": message,
            });
            format!("{finding}\n")
        } else {
            let token = token.map_or(String::new(), |token| format!(", token {token}"));
            wrapped(&format!("{path}:{}{token}: {}: {message}", row.place, rule.name()), "    ")
        };
        self.failure = print(&text).err();
    }
}

/// Whether there are findings.
pub(crate) fn run(options: &Lint, memory: Budget) -> Result<bool> {
    if !(options.tolerance.is_finite() && options.tolerance >= 0.0) {
        return Err(Failure::usage(format!("--tolerance: expected a number of at least 0, got {}", options.tolerance)));
    }
    let files = Files::new(&options.reading, memory)?;
    let rules = Options { tolerance: options.tolerance, first_update: options.first_step };
    let mut findings =
        Findings { options, files: &files, counts: BTreeMap::new(), total: 0, printed: 0, failure: None };
    let mut groups = Groups::default();
    let (mut sequences, mut scores, mut tokens, mut first_updates) = (0_u64, false, false, options.first_step);
    // sequences without a score or tokens before the first that has one
    let (mut unscored, mut empty): (Vec<Row>, Vec<Row>) = (Vec::new(), Vec::new());
    let summary = files.read(&mut |rollouts| {
        files.check_memory("the groups of a file", rollouts, groups.bytes())?;
        sequences += rollouts.rows.len() as u64;
        for (row, about) in rollouts.rows.iter().enumerate() {
            let mut sequence = sequence(rollouts, row);
            scores |= about.score.is_some();
            tokens |= !rollouts.slots(row).is_empty();
            first_updates |= about.first_update;
            (sequence.expects_score, sequence.expects_tokens) = (scores, tokens);
            for (list, missing) in [(&mut unscored, !scores), (&mut empty, !tokens && rollouts.slots(row).is_empty())] {
                if missing && list.len() < KEPT {
                    list.push(*about);
                }
            }
            check(&sequence, &rules, &mut |finding| findings.add(about, &finding));
            groups.add(*about, &sequence);
        }
        findings.failure.take().map_or(Ok(()), Err)
    })?;
    if scores {
        unscored.iter().for_each(|row| findings.add(row, &Finding::ScoreMissing));
    }
    if tokens {
        empty.iter().for_each(|row| findings.add(row, &Finding::EmptySequence));
    } else {
        // lists without a single entry; one advantage for a sequence is no list
        let is_list = |field: &Field| match field {
            Field::Column(column) => *column != Column::Advantages,
            field => *field == Field::Mask,
        };
        let has_lists = summary.found.iter().any(|(field, _)| is_list(field));
        let first = empty.first().copied().filter(|_| has_lists);
        first.iter().for_each(|row| findings.add(row, &Finding::EmptySequence));
    }
    let grouped = groups.judge(options.tolerance, &mut |first, finding| findings.add(first, &finding));
    findings.failure.take().map_or(Ok(()), Err)?;
    let total = findings.total;
    let idle = idle(&summary, first_updates, grouped, tokens);
    print(&report(&findings, &summary, sequences, &idle))?;
    Ok(total > 0)
}

/// Rows that are remembered in case that others have what they lack.
const KEPT: usize = 10_000;

/// The rules that had nothing to look at, with what they need.
fn idle(summary: &Summary, first_updates: bool, grouped: bool, tokens: bool) -> Vec<(Rule, &'static str)> {
    let has = |field: Field| summary.found.iter().any(|(found, _)| *found == field);
    let column = |column: Column| has(Field::Column(column)) && tokens;
    let log_probs = [Column::LogProbs, Column::OldLogProbs, Column::RolloutLogProbs].into_iter().any(column);
    let scores = has(Field::Score) || column(Column::Scores);
    let all = [
        (Rule::NotANumber, tokens || scores, "a field with numbers"),
        (
            Rule::RewardOnDroppedSlot,
            has(Field::Mask) && (column(Column::Rewards) || column(Column::Scores)),
            "mask, rewards",
        ),
        (Rule::LastTokenHidden, has(Field::Mask) && (log_probs || has(Field::Length)), "mask, log-probabilities"),
        (Rule::NothingKept, has(Field::Mask), "mask"),
        (
            Rule::RatioAtFirstUpdate,
            first_updates && column(Column::LogProbs) && column(Column::OldLogProbs),
            "log_probs, old_log_probs, --first-step",
        ),
        (
            Rule::ReturnsDisagree,
            column(Column::Returns) && column(Column::Values) && column(Column::Advantages),
            "returns, values, advantages",
        ),
        (Rule::GroupNotCentred, grouped && column(Column::Advantages), "advantages, groups of two or more"),
        (Rule::TiedGroup, grouped && scores, "scores, groups of two or more"),
        (Rule::LogProbAboveZero, log_probs || column(Column::RefLogProbs), "log-probabilities"),
        (Rule::ScoreMissing, scores, "scores"),
        (Rule::EmptySequence, tokens, "fields per token"),
    ];
    all.into_iter().filter(|(_, ran, _)| !ran).map(|(rule, _, needs)| (rule, needs)).collect()
}

fn report(findings: &Findings<'_>, summary: &Summary, sequences: u64, idle: &[(Rule, &'static str)]) -> String {
    let counts = findings.counts.iter().map(|(rule, count)| (rule.name(), *count));
    let total = findings.total;
    let name = findings.files.name();
    if findings.options.json {
        let counts: BTreeMap<_, _> = counts.collect();
        let found: BTreeMap<&str, &str> =
            summary.found.iter().map(|(field, name)| (field.name(), name.as_str())).collect();
        let idle: BTreeMap<&str, &str> = idle.iter().map(|(rule, needs)| (rule.name(), *needs)).collect();
        let all = json!({
            "file": name, "sequences": sequences, "findings": total, "by_rule": counts, "found": found,
            "ignored": summary.ignored, "not_run": idle,
        });
        return format!("{all}\n");
    }
    let told = |(field, name): &(Field, String)| match field.name() == name {
        true => name.clone(),
        false => format!("{} ({name})", field.name()),
    };
    let found: Vec<String> = summary.found.iter().map(told).collect();
    let mut text = wrapped(&format!("found: {}", found.join(", ")), "    ");
    if !summary.ignored.is_empty() {
        text += &wrapped(&format!("ignored: {}", summary.ignored.join(", ")), "    ");
    }
    if !idle.is_empty() {
        let idle: Vec<String> = idle.iter().map(|(rule, needs)| format!("{} (needs {needs})", rule.name())).collect();
        text += &wrapped(&format!("not checked: {}", idle.join("; ")), "    ");
    }
    let sequences = count(sequences, "sequence");
    if total == 0 {
        let rules = Rule::ALL.len() - idle.len();
        return text
            + &wrapped(
                &format!("{name}: {sequences}, {} checked, nothing found", count(rules as u64, "rule")),
                "    ",
            );
    }
    let counts: Vec<String> = counts.map(|(rule, count)| format!("{count} {rule}")).collect();
    let hidden = total - findings.printed as u64;
    let more = if hidden > 0 { format!(" ({hidden} not shown; see --limit)") } else { String::new() };
    let total = count(total, "finding");
    text + &wrapped(&format!("{name}: {sequences}, {total}: {}{more}", counts.join(", ")), "    ")
}
