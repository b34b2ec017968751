//! Collects the fields of records, in any order, into batches.

mod end;
mod hash;
mod record;

use std::{collections::HashSet, ops::ControlFlow};

pub(crate) use hash::Hasher;
use record::{Inherited, Prompt, Record};

use crate::{
    batch::{Rollouts, Row},
    budget::grown,
    fault::{excerpt, Fault},
    fields::{self, Column, Field, Match, NameId, FIELDS},
    texts::TextList,
    traces::Traces,
    Options,
};

/// The function that receives each batch.
pub type Sink<'a> = &'a mut dyn FnMut(&Rollouts) -> ControlFlow<()>;

/// Maximum number of unknown names that are kept.
const MOST_NAMES: usize = 40;
/// Unknown names are looked for in so many records.
const NAMED_RECORDS: u64 = 1000;
/// Which part of the memory a batch may take before it is cut, in a file without steps.
const BATCH_SHARE: u64 = 4;
/// Steps up to here are exact in every format.
const LAST_STEP: f64 = (1_u64 << 53) as f64;

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
    sequences: u64,
    tokens: u64,
    /// Tokens of the batch, where a sequence without any counts as one.
    weight: u64,
    /// Which of several files, counted from 0.
    file: u32,
    /// Line, row or record of the file, counted from 1.
    pub(crate) place: u64,
    /// Whether positions are records, which are counted here.
    pub(crate) counts_records: bool,
    /// How many lists of records were read.
    pub(crate) lists: u64,
    /// Bytes that the reader of the format holds at the moment.
    pub(crate) buffered: u64,
    /// The name whose value is read, and how many there were before it.
    key: (NameId, u32),
    found: [Option<NameId>; FIELDS],
    given_seen: bool,
    ignored: Vec<String>,
    passed_over: Vec<String>,
    steps: HashSet<u64>,
    /// Traces that are handed on after the last file.
    pub(crate) traces: Traces,
}

/// Why a parser was stopped.
pub(crate) struct Refused {
    pub(crate) fault: Fault,
    /// Whether it concerns the whole record, not the current value of the parser.
    pub(crate) of_record: bool,
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
            weight: 0,
            file: 0,
            place: 0,
            counts_records: false,
            lists: 0,
            buffered: 0,
            key: (NameId::default(), 0),
            found: [None; FIELDS],
            given_seen: false,
            ignored: Vec::new(),
            passed_over: Vec::new(),
            steps: HashSet::new(),
            traces: Traces::default(),
        }
    }

    /// Begins a file: the number of the file, and the step of its records if they have none.
    pub(crate) fn begin_file(&mut self, file: u32, step: Option<u64>) {
        self.file = file;
        self.place = 0;
        self.counts_records = false;
        self.buffered = 0;
        self.abandon();
        self.inherited = vec![Inherited { step, ..Inherited::default() }];
    }

    /// The field with this name, whose value is read next.
    pub(crate) fn find(&mut self, name: &str) -> Option<Field> {
        let found = self.matching(name)?;
        self.begin(found);
        Some(found.field)
    }

    /// The same without reading it.
    pub(crate) fn matching(&self, name: &str) -> Option<Match> {
        self.options.names.matching(name).or_else(|| fields::label(name).filter(|_| self.options.labels))
    }

    /// The value that is read next belongs to this field.
    pub(crate) fn begin(&mut self, found: Match) {
        self.key = (found.name, self.key.1.wrapping_add(1));
    }

    /// Which of several files is read.
    pub(crate) fn file(&self) -> u32 {
        self.file
    }

    /// Whether the texts of tokens, prompts and groups are requested.
    pub(crate) fn labels(&self) -> bool {
        self.options.labels
    }

    /// How many bytes may still be allocated.
    pub(crate) fn spare(&self) -> u64 {
        self.options.memory.bytes().saturating_sub(self.held())
    }

    /// Bytes of the batch, of the record, and of the reader of the format.
    fn held(&self) -> u64 {
        let record = &self.record;
        let lists = record.lengths.iter().chain([&record.mask]).map(Vec::capacity).sum::<usize>()
            + [&record.scores, &record.truncated, &record.long, &record.prompt_long]
                .map(Vec::capacity)
                .iter()
                .sum::<usize>()
            + 4 * record.groups.capacity();
        let own = self.batch.bytes() + 8 * lists as u64 + record.text_bytes + 32 * self.steps.capacity() as u64;
        own + self.buffered + self.traces.bytes
    }

    fn check(&self, more: u64) -> Result<(), Fault> {
        self.options.memory.check(self.what(), self.held().saturating_add(more))
    }

    /// Refuses the format's next buffer if it does not fit.
    pub(crate) fn check_buffer(&self, what: &str, bytes: u64) -> Result<(), Fault> {
        self.options.memory.check(what, self.held().saturating_add(bytes))
    }

    fn what(&self) -> &'static str {
        match self.batch.rows.is_empty() {
            true => "one record",
            false => "the sequences of one step or batch",
        }
    }

    /// Adds a number to the row of a column; call [`Self::row_added`] after the last one.
    #[inline]
    pub(crate) fn push(&mut self, column: Column, x: f64) -> Result<(), Fault> {
        let numbers = self.batch.column_mut(column);
        if numbers.len() == numbers.capacity() {
            self.reserve(column, 1)?;
        }
        self.batch.column_mut(column).push(x);
        Ok(())
    }

    /// Makes room for numbers of a column.
    pub(crate) fn reserve(&mut self, column: Column, more: usize) -> Result<(), Fault> {
        let numbers = self.batch.column_mut(column);
        if numbers.capacity() - numbers.len() >= more {
            return Ok(());
        }
        let (length, capacity) = (numbers.len(), grown(numbers, more));
        let added = (capacity - numbers.capacity()) as u64;
        self.check(added.saturating_mul(8))?;
        self.batch.column_mut(column).reserve_exact(capacity - length);
        Ok(())
    }

    /// The column, for a caller that stays within [`Self::spare`].
    pub(crate) fn numbers(&mut self, column: Column) -> &mut Vec<f64> {
        self.batch.column_mut(column)
    }

    pub(crate) fn row_added(&mut self, column: Column, length: usize) -> Result<(), Fault> {
        self.named(Field::Column(column))?;
        self.record.any = true;
        self.record.touched[column as usize] = true;
        let lengths = &self.record.lengths[column as usize];
        if lengths.len() == lengths.capacity() && lengths.len() >= 16 {
            // a sequence takes a row, too
            self.check((lengths.capacity() * (8 + size_of::<Row>())) as u64)?;
        }
        self.record.lengths[column as usize].push(length);
        Ok(())
    }

    #[inline]
    pub(crate) fn push_mask(&mut self, keep: bool) -> Result<(), Fault> {
        if self.batch.keep.len() == self.batch.keep.capacity() {
            self.reserve_mask(1)?;
        }
        self.batch.keep.push(keep);
        Ok(())
    }

    pub(crate) fn reserve_mask(&mut self, more: usize) -> Result<(), Fault> {
        let keep = &self.batch.keep;
        if keep.capacity() - keep.len() >= more {
            return Ok(());
        }
        let (length, capacity) = (keep.len(), grown(keep, more));
        self.check((capacity - keep.capacity()) as u64)?;
        self.batch.keep.reserve_exact(capacity - length);
        Ok(())
    }

    /// The mask, for a caller that stays within [`Self::spare`].
    pub(crate) fn mask(&mut self) -> &mut Vec<bool> {
        &mut self.batch.keep
    }

    pub(crate) fn mask_added(&mut self, length: usize) -> Result<(), Fault> {
        self.named(Field::Mask)?;
        self.record.any = true;
        if self.record.mask.len() == self.record.mask.capacity() {
            self.check((self.record.mask.capacity() * (8 + size_of::<Row>())) as u64)?;
        }
        self.record.mask.push(length);
        Ok(())
    }

    /// Adds the texts of the tokens of a sequence.
    pub(crate) fn texts_added(&mut self, field: Field, texts: TextList) -> Result<(), Fault> {
        self.check(texts.bytes())?;
        self.record.text_bytes += texts.bytes();
        match field {
            Field::Id => self.record.ids.push(texts),
            _ => self.record.texts.push(texts),
        }
        Ok(())
    }

    /// A field that has one value in a record: the same field under another name, or the same name again, is an error.
    fn named(&mut self, field: Field) -> Result<(), Fault> {
        let key = self.key;
        match self.record.keys[field.index()] {
            None => {
                self.record.keys[field.index()] = Some(key);
                self.found[field.index()].get_or_insert(key.0);
                Ok(())
            }
            Some(before) if before == key => Ok(()),
            Some((name, _)) => Err(self.twice(field, name)),
        }
    }

    fn twice(&self, field: Field, first: NameId) -> Fault {
        let names = &self.options.names;
        let (first, second) = (names.text(first).to_string(), names.text(self.key.0).to_string());
        if first == second {
            return Fault::Repeated { name: excerpt(&first) };
        }
        Fault::Twice { field: field.name().into(), first: excerpt(&first), second: excerpt(&second) }
    }

    /// Whether names that match no field are collected.
    pub(crate) fn collects_names(&self) -> bool {
        self.ignored.len() < MOST_NAMES && self.sequences < NAMED_RECORDS
    }

    /// A name that matches no field, and whether its value is a number.
    pub(crate) fn ignore(&mut self, name: &str, is_number: bool) {
        if !self.collects_names() || name.is_empty() {
            return;
        }
        let name = excerpt(name);
        if is_number && self.options.labels && !self.passed_over.contains(&name) {
            self.passed_over.push(name.clone());
        }
        if !self.ignored.contains(&name) {
            self.ignored.push(name);
        }
    }

    /// A single number. It may occur under two names if both have the same value.
    pub(crate) fn scalar(&mut self, field: Field, x: f64) -> Result<(), Fault> {
        let record = &self.record;
        let before = match field {
            Field::Column(Column::Advantages) => record.advantage,
            Field::Score => record.scores.first().copied(),
            Field::Step => record.step.map(|step| step as f64),
            Field::Group => record.groups.first().map(|bits| f64::from_bits(*bits)),
            Field::Truncated => record.truncated.first().copied(),
            Field::Length => record.long.first().copied(),
            Field::PromptLength => record.prompt_long.first().copied(),
            _ => None,
        };
        let Some(before) = before else { return self.listed(field, x) };
        if before == x || (before.is_nan() && x.is_nan()) {
            return Ok(());
        }
        Err(match record.keys[field.index()] {
            Some((name, _)) if name != self.key.0 => self.twice(field, name),
            _ => Fault::Differs { field: field.name().into(), first: before.to_string(), second: x.to_string() },
        })
    }

    /// A number of a list with one entry per sequence.
    pub(crate) fn listed(&mut self, field: Field, x: f64) -> Result<(), Fault> {
        if let Field::Column(column) = field {
            if column != Column::Advantages {
                return Err(Fault::NotPerToken { field: column.name().into(), found: x.to_string() });
            }
            // a list of advantages takes precedence over a single one
            self.found[field.index()].get_or_insert(self.key.0);
            self.record.advantage = Some(x);
            self.record.any = true;
            return Ok(());
        }
        self.named(field)?;
        let spare = self.spare();
        let record = &mut self.record;
        let list = match field {
            Field::Score => &mut record.scores,
            Field::Truncated => &mut record.truncated,
            Field::Length => &mut record.long,
            Field::PromptLength => &mut record.prompt_long,
            Field::Step => {
                if !((0.0..=LAST_STEP).contains(&x) && x.fract() == 0.0) {
                    return Err(Fault::NotAStep { found: x.to_string() });
                }
                let step = x as u64;
                return match *record.step.get_or_insert(step) {
                    // a step alone is not a sequence
                    same if same == step => Ok(()),
                    other => Err(Fault::Differs {
                        field: field.name().into(),
                        first: other.to_string(),
                        second: step.to_string(),
                    }),
                };
            }
            Field::FirstUpdate => {
                record.first_update = x != 0.0;
                return Ok(());
            }
            Field::Group => {
                if record.groups.len() == record.groups.capacity() && (record.groups.len() * 128) as u64 > spare {
                    self.check((self.record.groups.len() * 128) as u64)?;
                }
                self.record.groups.push(x.to_bits());
                if self.options.labels {
                    self.record.group_names.push(x.to_string());
                }
                self.record.any = true;
                return Ok(());
            }
            _ => return Ok(()),
        };
        if list.len() == list.capacity() && (list.len() * (8 + size_of::<Row>())) as u64 > spare {
            let more = (list.len() * (8 + size_of::<Row>())) as u64;
            self.check(more)?;
        }
        let record = &mut self.record;
        match field {
            Field::Score => record.scores.push(x),
            Field::Truncated => record.truncated.push(x),
            Field::Length => record.long.push(x),
            _ => record.prompt_long.push(x),
        }
        record.any = true;
        Ok(())
    }

    /// The text of a group or prompt.
    pub(crate) fn text(&mut self, field: Field, text: &str) -> Result<(), Fault> {
        let mut hasher = Hasher::default();
        hasher.add(text);
        self.hashed(field, hasher)
    }

    /// The same, piece by piece.
    pub(crate) fn hashed(&mut self, field: Field, hasher: Hasher) -> Result<(), Fault> {
        self.named(field)?;
        let Hasher { hash, beginning, .. } = hasher;
        let text = if self.options.labels { beginning } else { String::new() };
        match field {
            Field::Group => {
                let groups = &self.record.groups;
                if groups.len() == groups.capacity() {
                    self.check((groups.len() * 128 + text.len()) as u64)?;
                }
                self.record.groups.push(hash);
                if self.options.labels {
                    self.record.group_names.push(text);
                }
            }
            Field::Prompt => self.record.prompt = Some(Prompt { hash, text }),
            _ => {}
        }
        Ok(())
    }

    /// Starts a list inside the record: the fields read so far apply to each of its entries.
    pub(crate) fn enter(&mut self) {
        let outer = self.inherited.last().cloned().unwrap_or_default();
        let record = std::mem::take(&mut self.record);
        // numbers beside a list of records belong to none of them
        self.batch.forget_open();
        self.lists += 1;
        self.inherited.push(Inherited {
            step: record.step.or(outer.step),
            prompt: record.prompt.or(outer.prompt),
            first_update: record.first_update || outer.first_update,
        });
    }

    pub(crate) fn leave(&mut self) {
        self.inherited.pop();
        self.abandon();
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
}
