//! The usual faults of logged rollouts, in codes and numbers: the page has its own words for them.

use js_sys::Array;
use tokenwise::Error;
use tokenwise_lint::{check, Column, Finding, Group, Options, Rule, Sequence, COLUMNS};
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use crate::{
    batch::Batch,
    error::Result,
    names::camel_case,
    read::{closed, field, flags, number, object, reals, size, words, zeros},
    write::{or_null, Record},
};

/// The sequence is in no group.
const NO_GROUP: u32 = u32::MAX;
const RULES: usize = Rule::ALL.len();

/// A column under the name it has here, in snake_case.
const fn name(column: Column) -> &'static str {
    match column {
        Column::Scores => "token_scores",
        other => other.name(),
    }
}

/// The faults of a batch of rollouts.
#[wasm_bindgen(skip_typescript)]
pub fn lint(batch: &Batch, input: &JsValue, config: &JsValue) -> Result {
    let (options, limit) = settings(config)?;
    object("input", input)?;
    let batch = batch.view()?;
    let (tokens, sequences) = (batch.tokens(), batch.sequences());
    let mut columns: [Option<Vec<f64>>; COLUMNS] = Default::default();
    for (column, array) in Column::ALL.into_iter().zip(&mut columns) {
        *array = optional(input, name(column), tokens, reals::<f64>)?;
    }
    let scores = optional(input, "scores", sequences, reals::<f64>)?;
    let scored = optional(input, "scored", sequences, flags)?;
    let first_update = optional(input, "first_update", sequences, flags)?;
    let ids = optional(input, "groups", sequences, words)?;
    // a batch in which no sequence has a score, or none a slot, was logged without them
    let expects_score = (0..sequences).any(|row| score(&scores, &scored, row).is_some());
    let expects_tokens = tokens > 0;
    let mut report = Report { limit, counts: [0; RULES], findings: Array::new() };
    // by id; each with its first sequence
    let mut groups: Vec<Option<(usize, Group)>> = zeros(ids.as_ref().map_or(0, |_| sequences))?;
    for row in 0..sequences {
        let slots = batch.layout().slots(row).unwrap_or_default();
        let mut sequence = Sequence::new(batch.mask().as_slice().get(slots.clone()).unwrap_or_default());
        for (column, array) in Column::ALL.into_iter().zip(&columns) {
            sequence.set(column, array.as_ref().and_then(|array| array.get(slots.clone())));
        }
        sequence.score = score(&scores, &scored, row);
        (sequence.expects_score, sequence.expects_tokens) = (expects_score, expects_tokens);
        sequence.first_update = of(&first_update, row).unwrap_or(false);
        let mut found = Vec::new();
        check(&sequence, &options, &mut |finding| found.push(finding));
        for finding in &found {
            report.add(row, finding)?;
        }
        match of(&ids, row) {
            None | Some(NO_GROUP) => {}
            Some(id) => match groups.get_mut(id as usize) {
                None => return Err(Error::Group { index: row, id, sequences }.into()),
                Some(group) => group.get_or_insert((row, Group::default())).1.add(&sequence),
            },
        }
    }
    for (first, group) in groups.into_iter().flatten() {
        let mut found = Vec::new();
        group.judge(options.tolerance, &mut |finding| found.push(finding));
        for finding in &found {
            report.add(first, finding)?;
        }
    }
    report.write()
}

/// How it judges, and how many findings are told.
fn settings(config: &JsValue) -> Result<(Options, usize)> {
    let mut options = Options::default();
    if config.is_undefined() {
        return Ok((options, usize::MAX));
    }
    closed("config", config, &["tolerance", "first_update", "limit"])?;
    let (tolerance, limit) = (field(config, "tolerance")?, field(config, "limit")?);
    if !tolerance.is_undefined() {
        options.tolerance = number("tolerance", &tolerance)?;
    }
    options.first_update = field(config, "first_update")?.is_truthy();
    Ok((options, if limit.is_undefined() { usize::MAX } else { size("limit", &limit)? }))
}

/// A list of the input, as long as it must be, if it is there.
fn optional<T>(
    input: &JsValue,
    what: &'static str,
    expected: usize,
    read: impl Fn(&'static str, &JsValue) -> Result<Vec<T>>,
) -> Result<Option<Vec<T>>> {
    let given = field(input, what)?;
    if given.is_undefined() {
        return Ok(None);
    }
    let list = read(what, &given)?;
    if list.len() != expected {
        return Err(Error::Length { what, expected, got: list.len() }.into());
    }
    Ok(Some(list))
}

/// The entry of a list that need not be there.
fn of<T: Copy>(list: &Option<Vec<T>>, row: usize) -> Option<T> {
    list.as_ref().and_then(|list| list.get(row)).copied()
}

/// The score of a sequence, unless it is marked as missing.
fn score(scores: &Option<Vec<f64>>, scored: &Option<Vec<bool>>, row: usize) -> Option<f64> {
    of(scores, row).filter(|_| of(scored, row).unwrap_or(true))
}

/// What was found: all counted, the first ones told.
struct Report {
    limit: usize,
    counts: [usize; RULES],
    findings: Array,
}

impl Report {
    fn add(&mut self, row: usize, finding: &Finding) -> Result<()> {
        if let Some(count) = self.counts.get_mut(finding.rule() as usize) {
            *count += 1;
        }
        if (self.findings.length() as usize) < self.limit {
            self.findings.push(&told(row, finding)?.into());
        }
        Ok(())
    }

    fn write(self) -> Result {
        let (record, counts) = (Record::new(), Record::new());
        for (rule, count) in Rule::ALL.into_iter().zip(self.counts) {
            counts.entry(rule.name(), count as f64)?;
        }
        record.field("counts", counts)?;
        record.field("findings", self.findings)?;
        Ok(record.into())
    }
}

fn told(row: usize, finding: &Finding) -> Result<Record> {
    let record = Record::new();
    record.field("rule", finding.rule().name())?;
    record.field("sequence", row as f64)?;
    record.field("token", or_null(finding.token().map(|token| token as f64)))?;
    record.field("field", or_null(finding.column().map(|column| camel_case(name(column)))))?;
    let numbers = Record::new();
    for (name, number) in numbers_of(finding) {
        numbers.field(name, number)?;
    }
    record.field("numbers", numbers)?;
    let Finding::NotANumber { spoilt, .. } = finding else {
        record.field("spoilt", JsValue::NULL)?;
        return Ok(record);
    };
    let counts = Record::new();
    for column in Column::BY_ORIGIN {
        if let Some(&count @ 1..) = spoilt.get(column as usize) {
            counts.field(name(column), count as f64)?;
        }
    }
    record.field("spoilt", counts)?;
    Ok(record)
}

/// The numbers of a finding, by name.
fn numbers_of(finding: &Finding) -> Vec<(&'static str, f64)> {
    match *finding {
        Finding::NotANumber { value, more, .. } | Finding::LogProbAboveZero { value, more, .. } => {
            vec![("value", value), ("more", more as f64)]
        }
        Finding::ScoreNotANumber { value } | Finding::RewardOnDroppedSlot { value, .. } => vec![("value", value)],
        Finding::LastTokenHidden { last, .. } => vec![("last", last as f64)],
        Finding::RatioAtFirstUpdate { ratio, tokens, .. } => vec![("ratio", ratio), ("tokens", tokens as f64)],
        Finding::ReturnsDisagree { returned, value, advantage, wanted, more, .. } => vec![
            ("returned", returned),
            ("value", value),
            ("advantage", advantage),
            ("wanted", wanted),
            ("more", more as f64),
        ],
        Finding::GroupNotCentred { size, sum } => vec![("size", size.into()), ("sum", sum)],
        Finding::TiedGroup { size, score } => vec![("size", size.into()), ("score", score)],
        _ => Vec::new(),
    }
}
