//! The sequences of one batch, column by column.

use crate::{
    fault::Fault,
    fields::{Column, COLUMNS},
    texts::TextList,
};

/// Sequences that are processed together: those of one step, or as many as fit.
#[derive(Debug, Default)]
pub struct Rollouts {
    /// Where each sequence begins; one more than there are sequences.
    pub offsets: Vec<u32>,
    pub(crate) keep: Vec<bool>,
    columns: [Vec<f64>; COLUMNS],
    /// The fields that exist once per sequence.
    pub rows: Vec<Row>,
    pub(crate) texts: TextList,
    pub(crate) labels: Vec<Label>,
    /// Letters of the labels.
    pub(crate) label_bytes: usize,
}

/// The labels of a sequence; collected if [`Options::labels`](crate::Options::labels) is set.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Label {
    /// The first characters of its group name, or of its prompt; empty if it has neither.
    pub group: String,
    /// The first characters of its prompt; empty if there is none.
    pub prompt: String,
    /// Texts of padding after the last token that has numbers; they are left out.
    pub padding: u32,
}

/// The fields that exist once per sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// Which of several files, counted from 0.
    pub file: u32,
    /// Line, row or record of the file, counted from 1.
    pub place: u64,
    /// Its task score.
    pub score: Option<f64>,
    /// Training step.
    pub step: Option<u64>,
    /// The same for all samples of a prompt.
    pub group: Option<u64>,
    /// Whether it was cut off at the length limit.
    pub truncated: Option<bool>,
    /// Whether it is of the first update after sampling.
    pub first_update: bool,
    /// Tokens of the response.
    pub length: Option<f64>,
    /// Tokens of the prompt.
    pub prompt_length: Option<f64>,
}

impl Rollouts {
    pub(crate) fn new() -> Self {
        Self { offsets: vec![0], ..Self::default() }
    }

    /// The tokens of its complete sequences; the columns may already hold the next sequence.
    #[must_use]
    pub fn tokens(&self) -> usize {
        self.offsets.last().map_or(0, |end| *end as usize)
    }

    /// A column, if the file has it.
    #[must_use]
    pub fn column(&self, column: Column) -> Option<&[f64]> {
        let numbers = &self.columns[column as usize];
        numbers.get(..self.tokens()).filter(|numbers| !numbers.is_empty())
    }

    /// Which tokens take part.
    #[must_use]
    pub fn kept(&self) -> &[bool] {
        self.keep.get(..self.tokens()).unwrap_or_default()
    }

    /// The text of each token, empty where the file has none; no entries unless labels were requested.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.iter().take(self.tokens())
    }

    /// The memory it takes.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let columns: usize = self.columns.iter().map(Vec::capacity).sum();
        let rows = size_of::<Row>() * self.rows.capacity() + size_of::<Label>() * self.labels.capacity();
        (8 * columns + self.keep.capacity() + rows + 4 * self.offsets.capacity() + self.label_bytes) as u64
            + self.texts.bytes()
    }

    /// The labels of each sequence; no entries unless labels were requested.
    #[must_use]
    pub fn labels(&self) -> &[Label] {
        self.labels.get(..self.rows.len()).unwrap_or_default()
    }

    /// The slots of a sequence.
    #[must_use]
    pub fn slots(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// The column, for appending numbers.
    pub(crate) fn column_mut(&mut self, column: Column) -> &mut Vec<f64> {
        &mut self.columns[column as usize]
    }

    /// Completes sequences of the given lengths, whose numbers were appended; `touched` are the columns that have some.
    pub(crate) fn close(
        &mut self,
        lengths: &[usize],
        touched: &[bool; COLUMNS],
        rows: impl Iterator<Item = Row>,
    ) -> Result<(), Fault> {
        let before = self.offsets.last().map_or(0, |end| *end as usize);
        let mut end = before;
        for length in lengths {
            end += length;
            self.offsets.push(u32::try_from(end).map_err(|_| Fault::TooManyTokens { most: u32::MAX.into() })?);
        }
        for column in Column::ALL {
            let has = self.columns[column as usize].len();
            let field = || column.name().to_string();
            match touched[column as usize] {
                true if has != end => return Err(Fault::NewField { field: field() }),
                false if has > 0 && end > before => return Err(Fault::MissingField { field: field() }),
                _ => {}
            }
        }
        if self.keep.len() != end {
            let (expected, got) = (end - before, self.keep.len() - before);
            return Err(Fault::MaskLength { expected: expected as u64, got: got as u64 });
        }
        self.rows.extend(rows);
        Ok(())
    }

    /// Discards the numbers after the last complete sequence.
    pub(crate) fn forget_open(&mut self) {
        let tokens = self.tokens();
        self.columns.iter_mut().for_each(|column| column.truncate(tokens));
        self.keep.truncate(tokens);
    }

    /// Discards all but the last `rows` sequences.
    pub(crate) fn keep_last(&mut self, rows: usize) {
        let first = self.rows.len() - rows;
        let start = self.offsets[first];
        for column in &mut self.columns {
            if !column.is_empty() {
                column.drain(..start as usize);
            }
        }
        self.keep.drain(..start as usize);
        if !self.labels.is_empty() {
            self.texts.drop_first(start as usize);
            let dropped = self.labels.drain(..first).map(|label| label.group.len() + label.prompt.len());
            self.label_bytes -= dropped.sum::<usize>();
        }
        self.rows.drain(..first);
        self.offsets.drain(..first);
        for offset in &mut self.offsets {
            *offset -= start;
        }
    }
}
