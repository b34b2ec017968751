//! Formulas whose rows of logits are independent, computed a few rows at a time. A copy of all logits would take as much
//! memory again, and a block that was just copied is still in the cache when it is read.

use tokenwise::{Batch, Error, Layout, Mask};
use tokenwise_catalogue::{Array, Call, Columns, Entry, Kind, Refusal, Value};
use wasm_bindgen::prelude::JsValue;

use crate::{
    error::{refused, Result},
    read::{array_len, Precision},
};

/// Logits per block: 256 KB in f32, unless a single row is larger.
const BLOCK: usize = 1 << 16;

/// Whether the rows of a formula are independent: it reads logits and returns no number of the whole batch.
pub(crate) fn independent(entry: &Entry) -> bool {
    entry.numbers.is_empty() && entry.inputs.iter().any(|column| column.kind == Kind::Logit)
}

/// A call of such a formula.
pub(crate) struct Rows<'a, R> {
    pub(crate) entry: &'static Entry,
    pub(crate) batch: &'a Batch<'a>,
    /// All inputs but the logits.
    pub(crate) columns: &'a Columns<R>,
    /// The logits, in arrays of the caller's.
    pub(crate) logits: &'a [(&'static str, JsValue)],
    pub(crate) config: &'a Value,
}

impl<R: Precision> Rows<'_, R> {
    /// Whether every column has the length that the batch requires.
    pub(crate) fn fit(&self) -> bool {
        let fits = |name: &str, len: usize| {
            let column = self.entry.inputs.iter().find(|column| column.name == name);
            column.is_some_and(|column| {
                column.kind == Kind::Single
                    || len == self.entry.length(column.kind, Some(self.batch), None, self.columns)
            })
        };
        self.columns.iter().all(|(name, column)| fits(name, column.len()))
            && self.logits.iter().all(|(name, array)| fits(name, array_len(array)))
    }

    /// Fills the outputs.
    pub(crate) fn run(&self, outputs: &mut Columns<R>) -> Result<()> {
        let (tokens, vocab) = (self.batch.tokens(), self.size("vocab"));
        let rows = (BLOCK / vocab.max(1)).max(1);
        let mut inputs = Columns::new();
        for (name, _) in self.logits {
            inputs.set(name, Array::Real(Vec::new()));
        }
        let mut first = 0;
        loop {
            let mask = &self.batch.mask().as_slice()[first..tokens.min(first + rows)];
            self.read(first, mask, &mut inputs);
            let batch = Batch::new(Layout::padded(1, mask.len())?, Mask::new(mask))?;
            let mut block = self.entry.outputs_for(Some(&batch), None, &inputs);
            let call = &mut Call::new(Some(batch), None, &inputs, self.config, &mut block);
            self.entry.call(call).map_err(|refusal| refused(self.moved(refusal, first), R::ARRAY))?;
            for (name, from) in block {
                if let (Array::Real(from), Some(Array::Real(to))) = (from, outputs.get_mut(name)) {
                    let start = first * self.width(self.entry.outputs, name);
                    to[start..start + from.len()].copy_from_slice(&from);
                }
            }
            first += mask.len();
            // a batch without tokens is one empty block: its config is checked too
            if first == tokens {
                return Ok(());
            }
        }
    }

    /// The inputs of the rows from `first` on; logits of dropped rows are not read.
    fn read(&self, first: usize, mask: &[bool], inputs: &mut Columns<R>) {
        let vocab = self.size("vocab");
        for (name, array) in self.logits {
            let Some(Array::Real(rows)) = inputs.get_mut(name) else { continue };
            rows.resize(mask.len() * vocab, R::default());
            for (index, row) in rows.chunks_exact_mut(vocab.max(1)).enumerate().filter(|(index, _)| mask[*index]) {
                R::copy(array, (first + index) * vocab, row);
            }
        }
        for (name, column) in self.columns.iter() {
            let width = self.width(self.entry.inputs, name);
            let range = first * width..(first + mask.len()) * width;
            let part = match column {
                Array::Real(reals) => Array::Real(reals[range].to_vec()),
                Array::Index(words) => Array::Index(words[range].to_vec()),
                other => other.clone(),
            };
            inputs.set(name, part);
        }
    }

    /// Entries of a column per row.
    fn width(&self, columns: &[tokenwise_catalogue::Column], name: &str) -> usize {
        match columns.iter().find(|column| column.name == name).map(|column| column.kind) {
            Some(Kind::Token) => 1,
            Some(Kind::TopK) => self.size("k"),
            Some(Kind::Logit) => self.size("vocab"),
            _ => 0,
        }
    }

    fn size(&self, name: &str) -> usize {
        if let Some(Array::Size(size)) = self.columns.get(name) {
            *size
        } else {
            0
        }
    }

    /// The refusal of a block, with the index in the whole column.
    fn moved(&self, refusal: Refusal, first: usize) -> Refusal {
        match refusal {
            Refusal::Core(Error::TokenId { index, id, vocab }) => {
                let index = index + first * self.width(self.entry.inputs, "tokens");
                Refusal::Core(Error::TokenId { index, id, vocab })
            }
            other => other,
        }
    }
}
