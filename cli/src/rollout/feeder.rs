//! From the fields of records, in whatever order they come, to batches.

use super::{
    batch::{Rollouts, Row},
    fields::{Column, Field, COLUMNS},
};
use crate::failure::Failure;

/// What a batch is handed to.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&Rollouts) -> Result<(), Failure>;

/// Collects records into batches and hands them on, one at a time.
pub(crate) struct Feeder<'a> {
    batch: Rollouts,
    record: Record,
    /// What a record begins with: fields of the objects around it.
    inherited: Vec<Inherited>,
    most_tokens: usize,
    sink: Sink<'a>,
    /// What the sink answered, kept while a parser unwinds.
    pub(super) failure: Option<Failure>,
    pub(super) sequences: u64,
    /// Line, row or record of the file, counted from 1.
    pub(super) place: u64,
    /// Whether places are records: then they are counted here.
    pub(super) counts_records: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Inherited {
    step: Option<u64>,
    prompt: Option<u64>,
    first_update: bool,
}

/// What is known of the record being read.
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
    prompt: Option<u64>,
    truncated: Vec<f64>,
    first_update: bool,
    long: Vec<f64>,
    prompt_long: Vec<f64>,
    any: bool,
}

impl<'a> Feeder<'a> {
    pub(crate) fn new(most_tokens: u64, sink: Sink<'a>) -> Self {
        Self {
            batch: Rollouts::new(),
            record: Record::default(),
            inherited: vec![Inherited::default()],
            most_tokens: most_tokens as usize,
            sink,
            failure: None,
            sequences: 0,
            place: 0,
            counts_records: false,
        }
    }

    /// Where the numbers of a row of a column go; call [`Self::row_added`] after them.
    pub(super) fn numbers(&mut self, column: Column) -> &mut Vec<f64> {
        self.batch.column_mut(column)
    }

    pub(super) fn row_added(&mut self, column: Column, length: usize) {
        self.record.any = true;
        self.record.touched[column as usize] = true;
        self.record.lengths[column as usize].push(length);
    }

    pub(super) fn mask(&mut self) -> &mut Vec<bool> {
        &mut self.batch.keep
    }

    pub(super) fn mask_added(&mut self, length: usize) {
        self.record.any = true;
        self.record.mask.push(length);
    }

    /// A number that stands alone; under two names, the first counts.
    pub(super) fn scalar(&mut self, field: Field, x: f64) {
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

    /// A number of a list with one entry a sequence.
    pub(super) fn listed(&mut self, field: Field, x: f64) {
        let record = &mut self.record;
        match field {
            Field::Column(column) => record.constants[column as usize] = Some(x),
            Field::Score => record.scores.push(x),
            Field::Step => record.steps.push(x),
            Field::Group => record.groups.push(x.to_bits()),
            Field::Truncated => record.truncated.push(x),
            Field::Length => record.long.push(x),
            Field::PromptLength => record.prompt_long.push(x),
            Field::FirstUpdate => record.first_update = x != 0.0,
            _ => return,
        }
        // a step alone is no sequence
        record.any |= !matches!(field, Field::Step | Field::FirstUpdate);
    }

    pub(super) fn text(&mut self, field: Field, text: &str) {
        match field {
            Field::Group => self.record.groups.push(hash(text)),
            Field::Prompt => self.record.prompt = Some(hash(text)),
            _ => {}
        }
    }

    /// Begins a list inside the record: what was read so far holds for each of its entries.
    pub(super) fn enter(&mut self) {
        let outer = self.inherited.last().copied().unwrap_or_default();
        let record = std::mem::take(&mut self.record);
        let step = record.steps.first().map(|step| *step as u64).or(outer.step);
        self.inherited.push(Inherited {
            step,
            prompt: record.prompt.or(outer.prompt),
            first_update: record.first_update || outer.first_update,
        });
    }

    pub(super) fn leave(&mut self) {
        self.inherited.pop();
        self.record = Record::default();
    }

    /// Forgets what was read of the record.
    pub(super) fn abandon(&mut self) {
        self.record = Record::default();
        self.batch.forget_open();
    }

    /// Ends a record.
    pub(super) fn end(&mut self) -> Result<(), String> {
        let record = std::mem::take(&mut self.record);
        if !record.any {
            return Ok(());
        }
        if self.counts_records {
            self.place += 1;
        }
        let place = self.place;
        let lengths = self.lengths(&record)?;
        let mut touched = record.touched;
        let start = self.batch.offsets.last().map_or(0, |end| *end as usize);
        let mut tokens = 0;
        for length in &lengths {
            tokens += length;
        }
        for column in Column::ALL {
            // a list says more than a number
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
        let inherited = self.inherited.last().copied().unwrap_or_default();
        let step = record.steps.first().map(|step| *step as u64).or(inherited.step);
        let prompt = record.prompt.or(inherited.prompt);
        let one = |list: &[f64], index: usize| list.get(if list.len() == 1 { 0 } else { index }).copied();
        let rows = (0..lengths.len()).map(|index| Row {
            place,
            score: one(&record.scores, index),
            step,
            group: record.groups.get(if record.groups.len() == 1 { 0 } else { index }).copied().or(prompt),
            truncated: one(&record.truncated, index).map(|x| x != 0.0),
            first_update: record.first_update || inherited.first_update,
            length: one(&record.long, index),
            prompt_length: one(&record.prompt_long, index),
        });
        self.batch.close(&lengths, &touched, rows)?;
        self.sequences += lengths.len() as u64;
        self.cut(lengths.len(), step)
    }

    /// How many tokens each sequence of the record has.
    fn lengths(&self, record: &Record) -> Result<Vec<usize>, String> {
        let columns = Column::ALL.iter().filter(|column| record.touched[**column as usize]);
        let mut all = columns.map(|column| (column.name(), &record.lengths[*column as usize]));
        let masked = (!record.mask.is_empty()).then_some((Field::Mask.name(), &record.mask));
        let Some((first, lengths)) = all.next().or(masked) else {
            // nothing per token: as many sequences as scores
            return Ok(vec![0; record.scores.len().max(1)]);
        };
        for (name, other) in all.chain(masked) {
            if other != lengths {
                let told = |lengths: &[usize]| match lengths {
                    [length] => format!("{length} entries"),
                    rows => format!("{} rows of {:?} …", rows.len(), &rows[..rows.len().min(3)]),
                };
                return Err(format!("field {name:?} has {}, field {first:?} has {}", told(other), told(lengths)));
            }
        }
        let scores = record.scores.len();
        if scores > 1 && scores != lengths.len() {
            return Err(format!(
                "field {:?} has {scores} entries for {} sequences",
                Field::Score.name(),
                lengths.len()
            ));
        }
        Ok(lengths.clone())
    }

    /// Hands the batch on where a new step begins or it is full.
    fn cut(&mut self, new: usize, step: Option<u64>) -> Result<(), String> {
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
        if step.is_none() && self.batch.tokens() >= self.most_tokens {
            self.hand_on()?;
            self.batch = emptied(std::mem::take(&mut self.batch));
        }
        Ok(())
    }

    /// After the last record.
    pub(super) fn finish(&mut self) -> Result<(), String> {
        if self.batch.rows.is_empty() {
            return Ok(());
        }
        self.hand_on()
    }

    fn hand_on(&mut self) -> Result<(), String> {
        (self.sink)(&self.batch).map_err(|failure| {
            let message = failure.message.clone();
            self.failure = Some(failure);
            message
        })
    }
}

/// Without its sequences, but with its memory.
fn emptied(mut batch: Rollouts) -> Rollouts {
    batch.keep_last(0);
    batch
}

/// Two prompts in 2³² that differ may count as one.
fn hash(text: &str) -> u64 {
    // FNV-1a
    text.bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}
