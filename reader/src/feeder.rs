//! Collects the fields of records, in any order, into batches.

use std::ops::ControlFlow;

use crate::{
    batch::{Label, Rollouts, Row},
    fault::{excerpt, Fault},
    fields::{Column, Field, COLUMNS},
    Options,
};

/// The function that receives each batch.
pub type Sink<'a> = &'a mut dyn FnMut(&Rollouts) -> ControlFlow<()>;

/// Maximum number of unknown names that are kept.
const MOST_NAMES: usize = 40;
/// Maximum characters of a prompt that are kept.
const PROMPT: usize = 300;

/// Collects records into batches and hands them on, one at a time.
pub(crate) struct Feeder<'a> {
    batch: Rollouts,
    record: Record,
    /// The initial fields of a record: those of the enclosing objects.
    inherited: Vec<Inherited>,
    options: &'a Options,
    sink: Sink<'a>,
    /// Why a value was rejected, kept while a parser unwinds.
    refused: Option<Refused>,
    pub(crate) sequences: u64,
    tokens: u64,
    /// Line, row or record of the file, counted from 1.
    pub(crate) place: u64,
    /// Whether positions are records, which are counted here.
    pub(crate) counts_records: bool,
    /// Names with numbers that match no field.
    pub(crate) passed_over: Vec<String>,
}

/// Why a parser was stopped.
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    /// Whether it concerns the whole record, not the current value of the parser.
    pub(crate) of_record: bool,
}

#[derive(Clone, Debug, Default)]
struct Inherited {
    step: Option<u64>,
    prompt: Option<Prompt>,
    first_update: bool,
}

#[derive(Clone, Debug)]
struct Prompt {
    hash: u64,
    /// Its first characters, if labels are requested.
    text: String,
}

/// The state of the record being read.
#[derive(Debug, Default)]
struct Record {
    /// Lengths of the rows added to each column; one row for a list of numbers.
    lengths: [Vec<usize>; COLUMNS],
    touched: [bool; COLUMNS],
    /// One number for all tokens.
    constants: [Option<f64>; COLUMNS],
    mask: Vec<usize>,
    scores: Vec<f64>,
    steps: Vec<f64>,
    groups: Vec<u64>,
    /// One per group, if labels are requested.
    group_names: Vec<String>,
    prompt: Option<Prompt>,
    truncated: Vec<f64>,
    first_update: bool,
    long: Vec<f64>,
    prompt_long: Vec<f64>,
    /// The texts of the tokens, a list per sequence, and their ids in case there are no texts.
    texts: Vec<Vec<String>>,
    ids: Vec<Vec<String>>,
    any: bool,
}

impl<'a> Feeder<'a> {
    pub(crate) fn new(options: &'a Options, sink: Sink<'a>) -> Self {
        Self {
            batch: Rollouts::new(),
            record: Record::default(),
            inherited: vec![Inherited::default()],
            options,
            sink,
            refused: None,
            sequences: 0,
            tokens: 0,
            place: 0,
            counts_records: false,
            passed_over: Vec::new(),
        }
    }

    /// The field with this name.
    pub(crate) fn find(&self, name: &str) -> Option<Field> {
        self.options.find(name)
    }

    /// Whether the texts of tokens, prompts and groups are requested.
    pub(crate) fn labels(&self) -> bool {
        self.options.labels
    }

    /// The column to append the numbers of a row to; call [`Self::row_added`] afterwards.
    pub(crate) fn numbers(&mut self, column: Column) -> &mut Vec<f64> {
        self.batch.column_mut(column)
    }

    pub(crate) fn row_added(&mut self, column: Column, length: usize) {
        self.record.any = true;
        self.record.touched[column as usize] = true;
        self.record.lengths[column as usize].push(length);
    }

    pub(crate) fn mask(&mut self) -> &mut Vec<bool> {
        &mut self.batch.keep
    }

    pub(crate) fn mask_added(&mut self, length: usize) {
        self.record.any = true;
        self.record.mask.push(length);
    }

    /// Adds the texts of the tokens of a sequence.
    pub(crate) fn texts_added(&mut self, field: Field, texts: Vec<String>) {
        match field {
            Field::Id => self.record.ids.push(texts),
            _ => self.record.texts.push(texts),
        }
    }

    /// A number under a name that matches no field.
    pub(crate) fn pass_over(&mut self, name: &str) {
        if !self.options.labels || self.passed_over.len() == MOST_NAMES {
            return;
        }
        let name = excerpt(name);
        if !self.passed_over.contains(&name) {
            self.passed_over.push(name);
        }
    }

    /// A single number; if it occurs under two names, the first counts.
    pub(crate) fn scalar(&mut self, field: Field, x: f64) {
        let record = &self.record;
        let known = match field {
            Field::Score => !record.scores.is_empty(),
            Field::Step => !record.steps.is_empty(),
            Field::Group => !record.groups.is_empty(),
            _ => false,
        };
        if !known {
            self.listed(field, x);
        }
    }

    /// A number of a list with one entry per sequence.
    pub(crate) fn listed(&mut self, field: Field, x: f64) {
        let record = &mut self.record;
        match field {
            Field::Column(column) => record.constants[column as usize] = Some(x),
            Field::Score => record.scores.push(x),
            Field::Step => record.steps.push(x),
            Field::Group => {
                record.groups.push(x.to_bits());
                if self.options.labels {
                    record.group_names.push(x.to_string());
                }
            }
            Field::Truncated => record.truncated.push(x),
            Field::Length => record.long.push(x),
            Field::PromptLength => record.prompt_long.push(x),
            Field::FirstUpdate => record.first_update = x != 0.0,
            _ => return,
        }
        // a step alone is not a sequence
        record.any |= !matches!(field, Field::Step | Field::FirstUpdate);
    }

    pub(crate) fn text(&mut self, field: Field, text: &str) {
        let labels = self.options.labels;
        match field {
            Field::Group => {
                self.record.groups.push(hash(text));
                if labels {
                    self.record.group_names.push(beginning(text));
                }
            }
            Field::Prompt => {
                let beginning = if labels { beginning(text) } else { String::new() };
                self.record.prompt = Some(Prompt { hash: hash(text), text: beginning });
            }
            _ => {}
        }
    }

    /// Starts a list inside the record: the fields read so far apply to each of its entries.
    pub(crate) fn enter(&mut self) {
        let outer = self.inherited.last().cloned().unwrap_or_default();
        let record = std::mem::take(&mut self.record);
        let step = record.steps.first().map(|step| *step as u64).or(outer.step);
        self.inherited.push(Inherited {
            step,
            prompt: record.prompt.or(outer.prompt),
            first_update: record.first_update || outer.first_update,
        });
    }

    pub(crate) fn leave(&mut self) {
        self.inherited.pop();
        self.record = Record::default();
    }

    /// Discards the record read so far.
    pub(crate) fn abandon(&mut self) {
        self.record = Record::default();
        self.batch.forget_open();
    }

    /// Stops a parser; [`Self::refused`] returns the reason once it has unwound.
    pub(crate) fn refuse<E: serde::de::Error>(&mut self, fault: Fault) -> E {
        self.refused = Some(Refused { fault, of_record: false });
        E::custom("refused")
    }

    /// Why a parser was stopped; `None` if it stopped by itself.
    pub(crate) fn refused(&mut self) -> Option<Refused> {
        self.refused.take()
    }

    /// Ends a record inside a parser.
    pub(crate) fn end_inside<E: serde::de::Error>(&mut self) -> Result<(), E> {
        self.end().map_err(|fault| {
            self.refused = Some(Refused { fault, of_record: true });
            E::custom("refused")
        })
    }

    /// Ends a record.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        let record = std::mem::take(&mut self.record);
        if !record.any {
            return Ok(());
        }
        if self.counts_records {
            self.place += 1;
        }
        let place = self.place;
        let lengths = lengths(&record)?;
        let mut touched = record.touched;
        let start = self.batch.offsets.last().map_or(0, |end| *end as usize);
        let mut tokens = 0;
        for length in &lengths {
            tokens += length;
        }
        self.count(lengths.len(), tokens)?;
        for column in Column::ALL {
            // a list takes precedence over a single number
            let constant = record.constants[column as usize].filter(|_| tokens > 0 && !touched[column as usize]);
            if let Some(constant) = constant {
                touched[column as usize] = true;
                let numbers = self.batch.column_mut(column);
                numbers.resize(numbers.len() + tokens, constant);
            }
        }
        if record.mask.is_empty() {
            self.batch.keep.resize(start + tokens, true);
        }
        let inherited = self.inherited.last().cloned().unwrap_or_default();
        let step = record.steps.first().map(|step| *step as u64).or(inherited.step);
        let prompt = record.prompt.as_ref().or(inherited.prompt.as_ref());
        let one = |list: &[f64], index: usize| list.get(if list.len() == 1 { 0 } else { index }).copied();
        let rows = (0..lengths.len()).map(|index| Row {
            place,
            score: one(&record.scores, index),
            step,
            group: record
                .groups
                .get(if record.groups.len() == 1 { 0 } else { index })
                .copied()
                .or(prompt.map(|prompt| prompt.hash)),
            truncated: one(&record.truncated, index).map(|x| x != 0.0),
            first_update: record.first_update || inherited.first_update,
            length: one(&record.long, index),
            prompt_length: one(&record.prompt_long, index),
        });
        self.batch.close(&lengths, &touched, rows)?;
        if self.options.labels {
            self.label(&record, &lengths, prompt.map_or("", |prompt| &prompt.text));
        }
        self.cut(lengths.len(), step)
    }

    fn count(&mut self, sequences: usize, tokens: usize) -> Result<(), Fault> {
        self.sequences += sequences as u64;
        self.tokens += tokens as u64;
        let Options { most_sequences, most_tokens, .. } = *self.options;
        if self.sequences > most_sequences {
            return Err(Fault::TooManySequences { most: most_sequences });
        }
        if self.tokens > most_tokens {
            return Err(Fault::TooManyTokens { most: most_tokens });
        }
        Ok(())
    }

    /// Adds the labels of the sequences of a record and of their tokens.
    fn label(&mut self, record: &Record, lengths: &[usize], prompt: &str) {
        for (index, length) in lengths.iter().enumerate() {
            let fits = |lists: &'_ [Vec<String>]| lists.get(index).filter(|list| list.len() == *length).cloned();
            let texts = fits(&record.texts).or_else(|| fits(&record.ids));
            self.batch.texts.extend(texts.unwrap_or_else(|| vec![String::new(); *length]));
            let group = record.group_names.get(if record.group_names.len() == 1 { 0 } else { index });
            let group = group.map_or(prompt, String::as_str).to_string();
            self.batch.labels.push(Label { group, prompt: prompt.to_string() });
        }
    }

    /// Passes the batch on if a new step begins or it is full.
    fn cut(&mut self, new: usize, step: Option<u64>) -> Result<(), Fault> {
        let before = self.batch.rows.len() - new;
        let previous = before.checked_sub(1).map(|index| self.batch.rows[index].step);
        if previous.is_some_and(|previous| previous != step) {
            let rows = self.batch.rows.split_off(before);
            let ends = self.batch.offsets.split_off(before + 1);
            let done = self.hand_on();
            self.batch.rows.extend(rows);
            self.batch.offsets.extend(ends);
            self.batch.keep_last(new);
            done?;
        }
        if step.is_none() && self.batch.tokens() as u64 >= self.options.batch_tokens {
            self.hand_on()?;
            self.batch = emptied(std::mem::take(&mut self.batch));
        }
        Ok(())
    }

    /// Called after the last record.
    pub(crate) fn finish(&mut self) -> Result<(), Fault> {
        if self.batch.rows.is_empty() {
            return Ok(());
        }
        self.hand_on()
    }

    fn hand_on(&mut self) -> Result<(), Fault> {
        match (self.sink)(&self.batch) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Fault::Stopped {}),
        }
    }
}

/// How many tokens each sequence of a record has.
fn lengths(record: &Record) -> Result<Vec<usize>, Fault> {
    let columns = Column::ALL.iter().filter(|column| record.touched[**column as usize]);
    let mut all = columns.map(|column| (column.name(), &record.lengths[*column as usize]));
    let masked = (!record.mask.is_empty()).then_some((Field::Mask.name(), &record.mask));
    let Some((first, lengths)) = all.next().or(masked) else {
        // nothing per token: as many sequences as scores
        return Ok(vec![0; record.scores.len().max(1)]);
    };
    for (name, other) in all.chain(masked) {
        if other != lengths {
            let (got, expected) = (told(other), told(lengths));
            return Err(Fault::Lengths { field: name.into(), got, first: first.into(), expected });
        }
    }
    let scores = record.scores.len();
    if scores > 1 && scores != lengths.len() {
        return Err(Fault::ScoreCount { got: scores as u64, expected: lengths.len() as u64 });
    }
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

/// Cleared, with its memory kept.
fn emptied(mut batch: Rollouts) -> Rollouts {
    batch.keep_last(0);
    batch
}

fn beginning(text: &str) -> String {
    text.chars().take(PROMPT).collect()
}

/// A 32-bit hash: two different prompts collide with probability 2⁻³².
fn hash(text: &str) -> u64 {
    // FNV-1a
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
