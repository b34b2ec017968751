//! Where two formulas meet: the limits that the docs promise.

mod advantage;
mod loss;
mod metric;
