//! The record being read, and how many tokens each of its sequences has.

use crate::{
    fault::Fault,
    fields::{Column, Field, NameId, COLUMNS, FIELDS},
    texts::TextList,
};

#[derive(Clone, Debug, Default)]
pub(super) struct Inherited {
    pub(super) step: Option<u64>,
    pub(super) prompt: Option<Prompt>,
    pub(super) first_update: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Prompt {
    pub(super) hash: u64,
    /// Its first characters, if labels are requested.
    pub(super) text: String,
}

/// The state of the record being read.
#[derive(Debug, Default)]
pub(super) struct Record {
    /// Under which name each field was given.
    pub(super) keys: [Option<(NameId, u32)>; FIELDS],
    /// Lengths of the rows added to each column; one row for a list of numbers.
    pub(super) lengths: [Vec<usize>; COLUMNS],
    pub(super) touched: [bool; COLUMNS],
    /// One advantage for all tokens.
    pub(super) advantage: Option<f64>,
    pub(super) mask: Vec<usize>,
    pub(super) scores: Vec<f64>,
    pub(super) step: Option<u64>,
    pub(super) groups: Vec<u64>,
    /// One per group, if labels are requested.
    pub(super) group_names: Vec<String>,
    pub(super) prompt: Option<Prompt>,
    pub(super) truncated: Vec<f64>,
    pub(super) first_update: bool,
    pub(super) long: Vec<f64>,
    pub(super) prompt_long: Vec<f64>,
    /// The texts of the tokens, a list per sequence, and their ids in case there are no texts.
    pub(super) texts: Vec<TextList>,
    pub(super) ids: Vec<TextList>,
    pub(super) text_bytes: u64,
    pub(super) any: bool,
}

/// How many tokens each sequence of a record has.
pub(super) fn lengths(record: &Record) -> Result<Vec<usize>, Fault> {
    let columns = Column::ALL.iter().filter(|column| record.touched[**column as usize]);
    let mut all = columns.map(|column| (column.name(), &record.lengths[*column as usize]));
    let masked = (!record.mask.is_empty()).then_some((Field::Mask.name(), &record.mask));
    let one_each = |sequences: usize| {
        let lists = [
            (Field::Score, record.scores.len()),
            (Field::Truncated, record.truncated.len()),
            (Field::Length, record.long.len()),
            (Field::PromptLength, record.prompt_long.len()),
            (Field::Group, record.groups.len()),
        ];
        match lists.into_iter().find(|(_, count)| *count > 1 && *count != sequences) {
            Some((Field::Score, got)) => Err(Fault::ScoreCount { got: got as u64, expected: sequences as u64 }),
            Some((field, got)) => Err(Fault::Lengths {
                field: field.name().into(),
                got: got.to_string(),
                first: "sequences".into(),
                expected: sequences.to_string(),
            }),
            None => Ok(()),
        }
    };
    let Some((first, lengths)) = all.next().or(masked) else {
        // nothing per token: as many sequences as scores
        let sequences = record.scores.len().max(1);
        one_each(sequences)?;
        return Ok(vec![0; sequences]);
    };
    for (name, other) in all.chain(masked) {
        if other != lengths {
            let (got, expected) = (told(other), told(lengths));
            return Err(Fault::Lengths { field: name.into(), got, first: first.into(), expected });
        }
    }
    one_each(lengths.len())?;
    Ok(lengths.clone())
}

/// One length, or the first of several.
fn told(lengths: &[usize]) -> String {
    if let [length] = lengths {
        return length.to_string();
    }
    let first: Vec<String> = lengths.iter().take(3).map(usize::to_string).collect();
    let more = if lengths.len() > first.len() { ", …" } else { "" };
    format!("{} × [{}{more}]", lengths.len(), first.join(", "))
}
