//! Where the results of one run lie.

use super::{
    quantity::{Quantity, QuantityShape},
    Empty,
};
use crate::{
    error::{kept, refused, Error, Kept, Result},
    layout::Batch,
    real::Real,
};

/// Whether a result is there: not without its inputs, and not where the batch has too little for it.
pub(super) type Status = Option<Kept<()>>;

/// What is known of each result beside its entries.
pub(super) struct Record {
    scalars: [f64; Quantity::COUNT],
    status: [Status; Quantity::COUNT],
}

impl Record {
    /// Notes how a result came out; refuses what no batch makes right.
    pub(super) fn done(&mut self, quantity: Quantity, result: Result<()>) -> Result<()> {
        self.note(quantity, kept(result))
    }

    fn note(&mut self, quantity: Quantity, result: Kept<()>) -> Result<()> {
        match result {
            Err(error) if !matches!(error, Error::EmptyMask | Error::TooFew { .. }) => refused(error),
            known => {
                self.status[quantity as usize] = Some(known);
                Ok(())
            }
        }
    }

    fn scalar(&mut self, quantity: Quantity, value: Kept<f64>) -> Result<()> {
        self.scalars[quantity as usize] = value.unwrap_or(0.0);
        self.note(quantity, value.map(|_| ()))
    }

    pub(super) fn status(&self, quantity: Quantity) -> Status {
        self.status[quantity as usize]
    }

    /// Whether there is what another result is made of.
    pub(super) fn ready(&self, quantity: Quantity) -> Result<()> {
        match self.status(quantity) {
            Some(Err(error)) => refused(error),
            _ => Ok(()),
        }
    }

    /// Notes the numbers of a loss or a mean in the order of their names; where a framework makes something of nothing, that and zeros.
    pub(super) fn numbers<R: Real>(
        &mut self,
        result: Result<[f64; 4]>,
        empty: Empty,
        grad: &mut [R],
        names: &[Quantity],
        gradient: Option<Quantity>,
    ) -> Result<()> {
        let result = match (kept(result), empty.value()) {
            (Err(Error::EmptyMask), Some(value)) => {
                grad.fill(R::zero());
                Ok([value, 0.0, 0.0, 0.0])
            }
            (result, _) => result,
        };
        for (index, &name) in names.iter().enumerate() {
            self.scalar(name, result.map(|numbers| numbers[index]))?;
        }
        gradient.map_or(Ok(()), |gradient| self.note(gradient, result.map(|_| ())))
    }
}

/// All results under one set of conventions.
pub(super) struct Results<'a, R> {
    /// Those per token, one after the other.
    pub(super) tokens: &'a mut [R],
    /// Those per sequence, one after the other.
    pub(super) sequences: &'a mut [R],
    pub(super) record: Record,
    lengths: (usize, usize),
}

impl<'a, R: Real> Results<'a, R> {
    pub(super) fn new(batch: &Batch<'_>, tokens: &'a mut [R], sequences: &'a mut [R]) -> Self {
        let record = Record { scalars: [0.0; Quantity::COUNT], status: [None; Quantity::COUNT] };
        Self { tokens, sequences, record, lengths: (batch.tokens(), batch.sequences()) }
    }

    /// How many entries a result has.
    pub(super) fn len(&self, quantity: Quantity) -> usize {
        match quantity.shape() {
            QuantityShape::Tokens => self.lengths.0,
            QuantityShape::Sequences => self.lengths.1,
            QuantityShape::Scalar => 1,
        }
    }

    /// Its entry at an index.
    pub(super) fn entry(&self, quantity: Quantity, index: usize) -> f64 {
        let at = quantity.place() * self.len(quantity) + index;
        match quantity.shape() {
            QuantityShape::Tokens => self.tokens[at].widen(),
            QuantityShape::Sequences => self.sequences[at].widen(),
            QuantityShape::Scalar => self.record.scalars[quantity as usize],
        }
    }
}
