//! Where the results of one run lie.

use super::{
    quantity::{Quantity, QuantityShape},
    Empty,
};
use crate::{
    error::{refused, Error, Kept, Result},
    layout::Batch,
    loss::PolicyLoss,
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
    /// Notes that a result is there, or that the batch has too little for it; any other error is the caller's.
    pub(super) fn note(&mut self, quantity: Quantity, result: Kept<()>) -> Result<()> {
        match result {
            Err(error) if !matches!(error, Error::EmptyMask | Error::TooFew { .. }) => refused(error),
            known => {
                self.status[quantity as usize] = Some(known);
                Ok(())
            }
        }
    }

    pub(super) fn scalar(&mut self, quantity: Quantity, value: Kept<f64>) -> Result<()> {
        self.scalars[quantity as usize] = value.unwrap_or(0.0);
        self.note(quantity, value.map(|_| ()))
    }

    pub(super) fn status(&self, quantity: Quantity) -> Status {
        self.status[quantity as usize]
    }

    /// Notes a policy loss: the loss, its gradient, and what is logged beside it.
    pub(super) fn policy<R: Real>(
        &mut self,
        result: Kept<PolicyLoss>,
        empty: Empty,
        grad: &mut [R],
        [loss, gradient, clip_fraction]: [Quantity; 3],
    ) -> Result<Kept<PolicyLoss>> {
        let result = empty.instead(result, grad, |loss| PolicyLoss { loss, ..Default::default() });
        self.scalar(loss, result.map(|result| result.loss))?;
        self.note(gradient, result.map(|_| ()))?;
        self.scalar(clip_fraction, result.map(|result| result.clip_fraction))?;
        Ok(result)
    }
}

impl Empty {
    /// The result, or what a framework has in place of our error; no token, no gradient.
    pub(super) fn instead<R: Real, T>(self, result: Kept<T>, grad: &mut [R], of: impl FnOnce(f64) -> T) -> Kept<T> {
        match (result, self.value()) {
            (Err(Error::EmptyMask), Some(value)) => {
                grad.fill(R::zero());
                Ok(of(value))
            }
            (result, _) => result,
        }
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
