//! The usual faults of logged rollouts, in codes and numbers: the page has its own words for them.

use alloc::vec::Vec;

use tokenwise::Error;
use tokenwise_lint::{check, Column, Finding, Group, Options, Rule, Sequence, COLUMNS};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{flags, zeros},
    batch::Owned,
    error::Result,
    export::export,
    js,
    object::{numbers, object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("lint.ts");

export! {
    #[cfg(feature = "full")]
    REST = 23;
    lint(batch, input, config) => lint;
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

fn lint(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let owned = Owned::read(batch)?;
    let batch = owned.view()?;
    let input = Fields::input("input", input)?;
    let config = Fields::config("config", config, &["tolerance", "firstUpdate", "limit"])?;
    let options = Options {
        tolerance: config.number_or("tolerance", Options::default().tolerance)?,
        first_update: config.get("firstUpdate")?.is_truthy(),
    };
    let sequences = batch.sequences();
    let mut columns: [Option<Vec<f64>>; COLUMNS] = [const { None }; COLUMNS];
    for (column, key) in columns.iter_mut().zip(KEYS) {
        *column = numbers_of(&input, key, batch.tokens())?;
    }
    let scores = numbers_of(&input, "scores", sequences)?;
    let (scored, first_update) = (flags_of(&input, "scored", sequences)?, flags_of(&input, "firstUpdate", sequences)?);
    let ids = input.optional_array::<u32>("groups")?;
    fits("groups", ids.as_ref().map(Vec::len), sequences)?;
    let mut report =
        Report { limit: config.size_or("limit", usize::MAX)?, counts: [0; RULES], findings: js::Array::new() };
    // by id; each with its first sequence
    let mut groups: Vec<Option<(usize, Group)>> = zeros(if ids.is_some() { sequences } else { 0 })?;
    for row in 0..sequences {
        let slots = batch.layout().slots(row).unwrap_or_default();
        let mut sequence = Sequence::new(batch.mask().as_slice().get(slots.clone()).unwrap_or_default());
        for (column, array) in Column::ALL.into_iter().zip(&columns) {
            sequence.set(column, array.as_deref().and_then(|array| array.get(slots.clone())));
        }
        sequence.score = of(&scores, row).filter(|_| of(&scored, row).unwrap_or(true));
        sequence.first_update = of(&first_update, row).unwrap_or(false);
        let mut refused = Ok(());
        check(&sequence, &options, &mut |finding| {
            if let Err(error) = report.add(row, &finding) {
                refused = Err(error);
            }
        });
        refused?;
        match of(&ids, row) {
            None | Some(NO_GROUP) => {}
            Some(id) => match groups.get_mut(id as usize) {
                None => return Err(Error::Group { index: row, id, sequences }.into()),
                Some(group) => group.get_or_insert((row, Group::default())).1.add(&sequence),
            },
        }
    }
    for (first, group) in groups.into_iter().flatten() {
        let mut refused = Ok(());
        group.judge(options.tolerance, &mut |finding| {
            if let Err(error) = report.add(first, &finding) {
                refused = Err(error);
            }
        });
        refused?;
    }
    let counts = numbers(&mut Rule::ALL.iter().map(|rule| (rule.name(), report.counts[*rule as usize] as f64)))?;
    object([("counts", counts), ("findings", report.findings.into())])
}

/// The entry of a list that need not be there.
fn of<T: Copy>(list: &Option<Vec<T>>, row: usize) -> Option<T> {
    list.as_ref().and_then(|list| list.get(row)).copied()
}

#[inline(never)]
fn numbers_of(input: &Fields<'_>, key: &'static str, expected: usize) -> Result<Option<Vec<f64>>> {
    let list = input.optional_array::<f64>(key)?;
    fits(key, list.as_ref().map(Vec::len), expected)?;
    Ok(list)
}

#[inline(never)]
fn flags_of(input: &Fields<'_>, key: &'static str, expected: usize) -> Result<Option<Vec<bool>>> {
    let value = input.get(key)?;
    if value.is_undefined() {
        return Ok(None);
    }
    let list = flags(key, &value)?;
    fits(key, Some(list.len()), expected)?;
    Ok(Some(list))
}

/// Whether a list is as long as it must be, if it is there.
fn fits(what: &'static str, len: Option<usize>, expected: usize) -> Result<()> {
    match len {
        Some(got) if got != expected => Err(Error::Length { what, expected, got }.into()),
        _ => Ok(()),
    }
}

const RULES: usize = Rule::ALL.len();

/// What was found: all counted, the first ones told.
struct Report {
    limit: usize,
    counts: [usize; RULES],
    findings: js::Array,
}

impl Report {
    fn add(&mut self, row: usize, finding: &Finding) -> Result<()> {
        let rule = finding.rule();
        self.counts[rule as usize] += 1;
        if self.findings.len() >= self.limit {
            return Ok(());
        }
        let number = |x: usize| JsValue::from_f64(x as f64);
        let spoilt = match finding {
            Finding::NotANumber { spoilt, .. } => {
                let order = Column::BY_ORIGIN.iter();
                let counts = order.map(|column| (KEYS[*column as usize], spoilt[*column as usize] as f64));
                numbers(&mut counts.filter(|(_, count)| *count > 0.0))?
            }
            _ => JsValue::NULL,
        };
        self.findings.push(&object([
            ("rule", rule.name().into()),
            ("sequence", number(row)),
            ("token", finding.token().map_or(JsValue::NULL, number)),
            ("field", finding.column().map_or(JsValue::NULL, |column| KEYS[column as usize].into())),
            ("numbers", numbers(&mut told(finding).into_iter().filter(|(name, _)| !name.is_empty()))?),
            ("spoilt", spoilt),
        ])?);
        Ok(())
    }
}

/// The numbers of a finding, by name; no name, no number.
fn told(finding: &Finding) -> [(&'static str, f64); 5] {
    let mut all = [("", 0.0); 5];
    let mut set = |numbers: &[(&'static str, f64)]| {
        for (slot, number) in all.iter_mut().zip(numbers) {
            *slot = *number;
        }
    };
    match *finding {
        Finding::NotANumber { value, more, .. } => set(&[("value", value), ("more", more as f64)]),
        Finding::ScoreNotANumber { value } | Finding::RewardOnDroppedSlot { value, .. } => set(&[("value", value)]),
        Finding::LastTokenHidden { last, .. } => set(&[("last", last as f64)]),
        Finding::RatioAtFirstUpdate { ratio, tokens, .. } => set(&[("ratio", ratio), ("tokens", tokens as f64)]),
        Finding::ReturnsDisagree { returned, value, advantage, wanted, more, .. } => set(&[
            ("returned", returned),
            ("value", value),
            ("advantage", advantage),
            ("wanted", wanted),
            ("more", more as f64),
        ]),
        Finding::GroupNotCentred { size, sum } => set(&[("size", size.into()), ("sum", sum)]),
        Finding::TiedGroup { size, score } => set(&[("size", size.into()), ("score", score)]),
        _ => {}
    }
    all
}
