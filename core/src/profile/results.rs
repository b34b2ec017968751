//! Storage for the results of one run.

use super::{
    quantity::{Quantity, QuantityShape},
    Empty,
};
use crate::{
    error::{Error, Result},
    layout::Batch,
    real::Real,
};

/// The status of a result: `None` without its inputs, an error if the batch has too few tokens for it.
pub(super) type Status = Option<Result<()>>;

/// The status and the scalar value of each result.
pub(super) struct Record {
    scalars: [f64; Quantity::COUNT],
    status: [Status; Quantity::COUNT],
}

impl Record {
    /// Records the status of a result; returns errors that do not depend on the batch.
    pub(super) fn done(&mut self, quantity: Quantity, result: Result<()>) -> Result<()> {
        self.note(quantity, result)
    }

    fn note(&mut self, quantity: Quantity, result: Result<()>) -> Result<()> {
        match result {
            Err(error) if !matches!(error, Error::EmptyMask | Error::TooFew { .. }) => Err(error),
            known => {
                self.status[quantity as usize] = Some(known);
                Ok(())
            }
        }
    }

    fn scalar(&mut self, quantity: Quantity, value: Result<f64>) -> Result<()> {
        self.scalars[quantity as usize] = value.unwrap_or(0.0);
        self.note(quantity, value.map(|_| ()))
    }

    pub(super) fn status(&self, quantity: Quantity) -> Status {
        self.status[quantity as usize]
    }

    /// The error of a result that another one depends on.
    pub(super) fn ready(&self, quantity: Quantity) -> Result<()> {
        match self.status(quantity) {
            Some(Err(error)) => Err(error),
            _ => Ok(()),
        }
    }

    /// Records the numbers of a loss or a mean in the order of their names; where a framework defines the mean of an
    /// empty set, that value and zeros.
    pub(super) fn numbers<R: Real>(
        &mut self,
        result: Result<[f64; 4]>,
        empty: Empty,
        grad: &mut [R],
        names: &[Quantity],
        gradient: Option<Quantity>,
    ) -> Result<()> {
        let result = match (result, empty.value()) {
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
    /// Per-token results, concatenated.
    pub(super) tokens: &'a mut [R],
    /// Per-sequence results, concatenated.
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
