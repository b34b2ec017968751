//! The usual faults of logged rollouts, in codes and numbers: the page has its own words for them.

use alloc::vec::Vec;

use tokenwise::Error;
use tokenwise_lint::{check, Column, Finding, Group, Options, Rule, Sequence, COLUMNS};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    error::{refused, Result},
    export::export,
    js,
    put::{entries, known},
    read::Read,
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("lint.ts");

declare!("config LintConfig tolerance?:number,first_update:truthy,limit?:size");

// the columns in the order of `Column::ALL`
export! {
    #[cfg(feature = "full")]
    REST = 23;
    lint(
        batch:batch, input{
            log_probs?:doubles, old_log_probs?:doubles, ref_log_probs?:doubles, rollout_log_probs?:doubles,
            advantages?:doubles, returns?:doubles, values?:doubles, rewards?:doubles, token_scores?:doubles,
            entropies?:doubles, old_entropies?:doubles, predictions?:doubles, scores?:doubles, scored?:flags,
            first_update?:flags, groups?:words
        }, config:LintConfig) -> (counts*, findings+{rule, sequence, token, field, numbers*, spoilt??*}) => lint;
}

/// The columns under the names JavaScript has for them, in the order of [`Column::ALL`].
const KEYS: [&str; COLUMNS] = [
    "logProbs",
    "oldLogProbs",
    "refLogProbs",
    "rolloutLogProbs",
    "advantages",
    "returns",
    "values",
    "rewards",
    "tokenScores",
    "entropies",
    "oldEntropies",
    "predictions",
];

/// The sequence is in no group.
const NO_GROUP: u32 = u32::MAX;

fn lint(call: &mut Call<'_>) -> Result {
    let options = Options { tolerance: Read::read(Options::default().tolerance), first_update: js::index(0) == 1 };
    let limit = Read::read(usize::MAX);
    let mut columns = [None; COLUMNS];
    for column in &mut columns {
        *column = call.optional_double();
    }
    let (scores, scored, first_update) = (call.optional_double(), call.optional_flags(), call.optional_flags());
    let (scored, first_update) = (scored.map(|flags| &*flags), first_update.map(|flags| &*flags));
    let ids = call.optional_words();
    let batch = call.batch;
    let sequences = batch.sequences();
    for (column, key) in columns.iter().zip(KEYS) {
        fits(key, *column, batch.tokens())?;
    }
    fits("scores", scores, sequences)?;
    fits("scored", scored, sequences)?;
    fits("firstUpdate", first_update, sequences)?;
    fits("groups", ids, sequences)?;
    let mut report = Report { limit, counts: [0; RULES], findings: Vec::new() };
    // by id; each with its first sequence
    let mut groups: Vec<Option<(usize, Group)>> = zeros(ids.map_or(0, |_| sequences));
    for row in 0..sequences {
        let slots = batch.layout().slots(row).unwrap_or_default();
        let mut sequence = Sequence::new(batch.mask().as_slice().get(slots.clone()).unwrap_or_default());
        for (column, array) in Column::ALL.into_iter().zip(&columns) {
            sequence.set(column, array.and_then(|array| array.get(slots.clone())));
        }
        sequence.score = of(scores, row).filter(|_| of(scored, row).unwrap_or(true));
        sequence.first_update = of(first_update, row).unwrap_or(false);
        check(&sequence, &options, &mut |finding| report.add(row, finding));
        match of(ids, row) {
            None | Some(NO_GROUP) => {}
            Some(id) => match groups.get_mut(id as usize) {
                None => return refused(Error::Group { index: row, id, sequences }),
                Some(group) => group.get_or_insert((row, Group::default())).1.add(&sequence),
            },
        }
    }
    for (first, group) in groups.into_iter().flatten() {
        group.judge(options.tolerance, &mut |finding| report.add(first, finding));
    }
    report.put();
    Ok(())
}

/// The entry of a list that need not be there.
fn of<T: Copy>(list: Option<&[T]>, row: usize) -> Option<T> {
    list.and_then(|list| list.get(row)).copied()
}

/// Whether a list is as long as it must be, if it is there.
fn fits<T>(what: &'static str, list: Option<&[T]>, expected: usize) -> Result {
    match list {
        Some(list) if list.len() != expected => refused(Error::Length { what, expected, got: list.len() }),
        _ => Ok(()),
    }
}

const RULES: usize = Rule::ALL.len();

/// What was found: all counted, the first ones told.
struct Report {
    limit: usize,
    counts: [usize; RULES],
    findings: Vec<(usize, Finding)>,
}

impl Report {
    fn add(&mut self, row: usize, finding: Finding) {
        if let Some(count) = self.counts.get_mut(finding.rule() as usize) {
            *count += 1;
        }
        if self.findings.len() < self.limit {
            self.findings.push((row, finding));
        }
    }

    fn put(&self) {
        entries(Rule::ALL.iter().zip(&self.counts).map(|(rule, &count)| (rule.name(), count as f64)));
        js::null();
        for (row, finding) in &self.findings {
            js::put(1.0);
            js::text(finding.rule().name());
            js::put(*row as f64);
            known(finding.token().map(|token| token as f64));
            match finding.column().and_then(|column| KEYS.get(column as usize)) {
                Some(key) => js::text(key),
                None => js::null(),
            }
            put_numbers(finding);
            js::null();
            let Finding::NotANumber { spoilt, .. } = finding else {
                js::put(0.0);
                continue;
            };
            js::put(1.0);
            for column in Column::BY_ORIGIN {
                let index = column as usize;
                if let (Some(key), Some(&count @ 1..)) = (KEYS.get(index), spoilt.get(index)) {
                    js::entry(key, count as f64);
                }
            }
            js::null();
        }
    }
}

/// The numbers of a finding, by name.
fn put_numbers(finding: &Finding) {
    match *finding {
        Finding::NotANumber { value, more, .. } => {
            js::entry("value", value);
            js::entry("more", more as f64);
        }
        Finding::ScoreNotANumber { value } | Finding::RewardOnDroppedSlot { value, .. } => js::entry("value", value),
        Finding::LastTokenHidden { last, .. } => js::entry("last", last as f64),
        Finding::RatioAtFirstUpdate { ratio, tokens, .. } => {
            js::entry("ratio", ratio);
            js::entry("tokens", tokens as f64);
        }
        Finding::ReturnsDisagree { returned, value, advantage, wanted, more, .. } => {
            js::entry("returned", returned);
            js::entry("value", value);
            js::entry("advantage", advantage);
            js::entry("wanted", wanted);
            js::entry("more", more as f64);
        }
        Finding::GroupNotCentred { size, sum } => {
            js::entry("size", size.into());
            js::entry("sum", sum);
        }
        Finding::TiedGroup { size, score } => {
            js::entry("size", size.into());
            js::entry("score", score);
        }
        _ => {}
    }
}
