//! What happens at the end of a record and of a file: checks, labels, and handing batches on.

use std::ops::ControlFlow;

use super::{
    record::{lengths, Record},
    Feeder, BATCH_SHARE,
};
use crate::{
    batch::{Label, Row},
    budget::grown,
    fault::{excerpt, listed, Fault},
    fields::{self, Column, Field},
    texts::TextList,
    Options, Summary,
};

impl Feeder<'_> {
    /// Ends a record.
    pub(crate) fn end(&mut self) -> Result<(), Fault> {
        if !self.record.any {
            self.record = Record::default();
            return Ok(());
        }
        if self.counts_records {
            self.place += 1;
        }
        let place = self.place;
        let lengths = lengths(&self.record)?;
        let start = self.batch.tokens();
        let tokens = lengths.iter().try_fold(0_usize, |sum, length| sum.checked_add(*length));
        let tokens = tokens.ok_or(Fault::TooManyTokens { most: u64::from(u32::MAX) })?;
        self.count(lengths.len(), tokens)?;
        if let Some(constant) = self.record.advantage {
            let column = Column::Advantages;
            if tokens > 0 && !self.record.touched[column as usize] {
                self.record.touched[column as usize] = true;
                self.reserve(column, tokens)?;
                let numbers = self.batch.column_mut(column);
                numbers.resize(numbers.len() + tokens, constant);
            }
        }
        if self.record.mask.is_empty() {
            self.reserve_mask(tokens)?;
            self.batch.keep.resize(start + tokens, true);
        }
        let rows = &self.batch.rows;
        if rows.capacity() - rows.len() < lengths.len() {
            let added = grown(rows, lengths.len()) - rows.capacity();
            let length = rows.len();
            self.check((added * (size_of::<Row>() + 4)) as u64)?;
            let capacity = grown(&self.batch.rows, lengths.len());
            self.batch.rows.reserve_exact(capacity - length);
        }
        let record = std::mem::take(&mut self.record);
        let inherited = self.inherited.last().cloned().unwrap_or_default();
        let step = record.step.or(inherited.step);
        let prompt = record.prompt.as_ref().or(inherited.prompt.as_ref());
        let one = |list: &[f64], index: usize| list.get(if list.len() == 1 { 0 } else { index }).copied();
        let file = self.file;
        let rows = (0..lengths.len()).map(|index| Row {
            file,
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
        self.batch.close(&lengths, &record.touched, rows)?;
        self.weight += lengths.iter().map(|length| (*length).max(1) as u64).sum::<u64>();
        if self.options.labels {
            self.label(&record, &lengths, prompt.map_or("", |prompt| &prompt.text))?;
        }
        self.cut(&lengths, step)
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
    fn label(&mut self, record: &Record, lengths: &[usize], prompt: &str) -> Result<(), Fault> {
        for (index, length) in lengths.iter().enumerate() {
            // RLLoggingBoard's texts may end with padding that has no numbers
            let fits = |lists: &'_ [TextList]| lists.get(index)?.without_padding(*length, is_padding);
            let found = fits(&record.texts).or_else(|| fits(&record.ids));
            let (texts, padding) = found.unwrap_or_else(|| (TextList::empty(*length), 0));
            let group = record.group_names.get(if record.group_names.len() == 1 { 0 } else { index });
            let group = group.map_or(prompt, String::as_str).to_string();
            self.check(texts.bytes() + (group.len() + prompt.len() + size_of::<Label>()) as u64)?;
            self.batch.texts.append(&texts);
            self.batch.label_bytes += group.len() + prompt.len();
            self.batch.labels.push(Label { group, prompt: prompt.to_string(), padding });
        }
        Ok(())
    }

    /// Passes the batch on if a new step begins or it is full.
    fn cut(&mut self, lengths: &[usize], step: Option<u64>) -> Result<(), Fault> {
        let before = self.batch.rows.len() - lengths.len();
        let previous = before.checked_sub(1).map(|index| self.batch.rows[index].step);
        if previous.is_none_or(|previous| previous != step) {
            if let Some(step) = step {
                if self.steps.len() == self.steps.capacity() {
                    self.check(64 * self.steps.capacity() as u64)?;
                }
                if !self.steps.insert(step) {
                    return Err(Fault::StepAgain { step });
                }
            }
        }
        if previous.is_some_and(|previous| previous != step) {
            let rows = self.batch.rows.split_off(before);
            let ends = self.batch.offsets.split_off(before + 1);
            let done = self.hand_on();
            self.batch.rows.extend(rows);
            self.batch.offsets.extend(ends);
            self.batch.keep_last(lengths.len());
            self.weight = lengths.iter().map(|length| (*length).max(1) as u64).sum();
            done?;
        }
        let is_full =
            self.weight >= self.options.batch_tokens || self.batch.bytes() > self.options.memory.bytes() / BATCH_SHARE;
        if step.is_none() && is_full {
            self.hand_on()?;
            self.batch.keep_last(0);
            self.weight = 0;
        }
        Ok(())
    }

    /// Called after the last record.
    pub(crate) fn finish(&mut self) -> Result<Summary, Fault> {
        if !self.batch.rows.is_empty() {
            self.hand_on()?;
        }
        if self.sequences == 0 {
            self.check_given()?;
            return Err(Fault::NoRollout { found: listed(&self.ignored) });
        }
        Ok(Summary {
            sequences: self.sequences,
            found: self.found_names(),
            ignored: std::mem::take(&mut self.ignored),
            passed_over: std::mem::take(&mut self.passed_over),
            left_out: self.traces.left_out,
        })
    }

    fn found_names(&self) -> Vec<(Field, String)> {
        let names = &self.options.names;
        let found = fields::all().filter_map(|field| Some((field, self.found[field.index()]?)));
        found.map(|(field, name)| (field, names.text(name).to_string())).collect()
    }

    /// A name that was given must occur in the first batch.
    fn check_given(&mut self) -> Result<(), Fault> {
        if self.given_seen {
            return Ok(());
        }
        self.given_seen = true;
        let missing =
            self.options.names.given().find(|(field, _, id)| self.found[field.index()] != Some(*id) && field.is_data());
        let Some((field, name, _)) = missing else { return Ok(()) };
        let mut found: Vec<String> = self.found_names().into_iter().map(|(_, name)| name).collect();
        found.extend(self.ignored.iter().cloned());
        Err(Fault::NoSuchName { field: field.name().into(), name: excerpt(name), found: listed(&found) })
    }

    fn hand_on(&mut self) -> Result<(), Fault> {
        self.check_given()?;
        match (self.sink)(&self.batch) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(Fault::Stopped {}),
        }
    }
}

/// Whether a text is a tokenizer's padding: `<PAD>`, `[pad]`, `<|endoftext|>`.
fn is_padding(text: &str) -> bool {
    let letters: String = text.chars().filter(|letter| letter.is_alphanumeric()).collect();
    ["pad", "padding", "endoftext"].iter().any(|word| letters.eq_ignore_ascii_case(word))
}
