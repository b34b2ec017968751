//! The sequences of one batch, column by column.

use super::fields::{Column, Field, COLUMNS};

/// Sequences that are judged together: those of one step, or as many as fit.
#[derive(Debug, Default)]
pub(crate) struct Rollouts {
    /// Where each sequence begins; one more than there are sequences.
    pub(crate) offsets: Vec<u32>,
    pub(super) keep: Vec<bool>,
    columns: [Vec<f64>; COLUMNS],
    pub(crate) rows: Vec<Row>,
}

/// What there is once a sequence.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Row {
    /// Line, row or record of the file, counted from 1.
    pub(crate) place: u64,
    pub(crate) score: Option<f64>,
    pub(crate) step: Option<u64>,
    pub(crate) group: Option<u64>,
    pub(crate) truncated: Option<bool>,
    pub(crate) first_update: bool,
    pub(crate) length: Option<f64>,
    pub(crate) prompt_length: Option<f64>,
}

impl Rollouts {
    pub(crate) fn new() -> Self {
        Self { offsets: vec![0], ..Self::default() }
    }

    /// Of the sequences that are in it; the columns may already hold the next one.
    pub(crate) fn tokens(&self) -> usize {
        self.offsets.last().map_or(0, |end| *end as usize)
    }

    /// A column, if the file has it.
    pub(crate) fn column(&self, column: Column) -> Option<&[f64]> {
        let numbers = &self.columns[column as usize];
        numbers.get(..self.tokens()).filter(|numbers| !numbers.is_empty())
    }

    /// Which tokens take part.
    pub(crate) fn kept(&self) -> &[bool] {
        self.keep.get(..self.tokens()).unwrap_or_default()
    }

    /// The slots of a sequence.
    pub(crate) fn slots(&self, row: usize) -> std::ops::Range<usize> {
        self.offsets[row] as usize..self.offsets[row + 1] as usize
    }

    /// Where numbers of a column are added.
    pub(super) fn column_mut(&mut self, column: Column) -> &mut Vec<f64> {
        &mut self.columns[column as usize]
    }

    /// Ends sequences of the given lengths, whose numbers were added; `touched` are the columns that got some.
    pub(super) fn close(
        &mut self,
        lengths: &[usize],
        touched: &[bool; COLUMNS],
        rows: impl Iterator<Item = Row>,
    ) -> Result<(), String> {
        let before = self.offsets.last().map_or(0, |end| *end as usize);
        let mut end = before;
        for length in lengths {
            end += length;
            self.offsets.push(u32::try_from(end).map_err(|_| "one batch has more than 2³² tokens".to_string())?);
        }
        for column in Column::ALL {
            let has = self.columns[column as usize].len();
            let name = column.name();
            match touched[column as usize] {
                true if has != end => return Err(format!("field {name:?} is here, but not in the sequences before")),
                false if has > 0 && end > before => {
                    return Err(format!("field {name:?} is missing, but the sequences before have it"))
                }
                _ => {}
            }
        }
        if self.keep.len() != end {
            return Err(format!(
                "field {:?}: expected {} entries, got {}",
                Field::Mask.name(),
                end - before,
                self.keep.len() - before
            ));
        }
        self.rows.extend(rows);
        Ok(())
    }

    /// Forgets the numbers after the last sequence that was ended.
    pub(super) fn forget_open(&mut self) {
        let tokens = self.tokens();
        self.columns.iter_mut().for_each(|column| column.truncate(tokens));
        self.keep.truncate(tokens);
    }

    /// Forgets all but the last `rows` sequences.
    pub(super) fn keep_last(&mut self, rows: usize) {
        let first = self.rows.len() - rows;
        let start = self.offsets[first];
        for column in &mut self.columns {
            if !column.is_empty() {
                column.drain(..start as usize);
            }
        }
        self.keep.drain(..start as usize);
        self.rows.drain(..first);
        self.offsets.drain(..first);
        for offset in &mut self.offsets {
            *offset -= start;
        }
    }
}
