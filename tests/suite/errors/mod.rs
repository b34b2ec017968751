//! Every wrong input of every function gives its own error and leaves the outputs unchanged.
//!
//! `formulas.rs` calls every formula of the catalogue, with one column or number wrong at a time. What the catalogue
//! does not call is in `calls.rs`: there a [`Call`] hands out slices and numbers by the names of the signature. A first
//! valid call collects the names; then each of them is made wrong in turn.

mod aggregation;
mod calls;
pub(crate) mod domains;
mod entries;
mod estimators;
mod formulas;
mod layouts;
mod rollout;

use tokenwise::{Batch, Error, Layout, Mask, Moments, Result};

/// Two sequences of three slots, five of them kept.
pub(crate) const SEQUENCES: usize = 2;
pub(crate) const TOKENS: usize = 6;

/// The numbers a config field may and may not have.
#[derive(Debug)]
pub(crate) struct Domain {
    must_be: &'static str,
    good: &'static [f64],
    bad: &'static [f64],
}

const NAN: f64 = f64::NAN;
const INF: f64 = f64::INFINITY;

pub(crate) const UNIT: &Domain =
    &Domain { must_be: "in [0, 1]", good: &[0.0, -0.0, 0.5, 1.0], bad: &[-1e-9, 1.000_000_1, NAN, INF, -INF] };
pub(crate) const NOT_NEGATIVE: &Domain =
    &Domain { must_be: "finite and not negative", good: &[0.0, -0.0, 2.5], bad: &[-1e-300, NAN, INF, -INF] };
pub(crate) const POSITIVE: &Domain =
    &Domain { must_be: "finite and positive", good: &[1e-3, 1.0, 1e3], bad: &[0.0, -0.0, -1.0, NAN, INF, -INF] };
pub(crate) const CAP: &Domain =
    &Domain { must_be: "positive", good: &[1e-3, INF, 2.0], bad: &[0.0, -0.0, -1.0, NAN, -INF] };
pub(crate) const FINITE: &Domain = &Domain { must_be: "finite", good: &[0.0, -3.0, 1e9], bad: &[NAN, INF, -INF] };
pub(crate) const AT_LEAST_1: &Domain = &Domain { must_be: "at least 1", good: &[1.0], bad: &[0.0] };
pub(crate) const ABOVE_1: &Domain =
    &Domain { must_be: "above 1 and finite", good: &[1.000_1, 3.0], bad: &[1.0, 0.5, -3.0, NAN, INF, -INF] };

/// What is wrong with a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wrong {
    Nothing,
    Length(&'static str, usize),
    Number(&'static str, f64),
}

#[derive(Clone, Copy, Debug)]
enum Parameter {
    Slice(&'static str, usize),
    Number(&'static str, &'static Domain),
}

/// A call under construction.
pub(crate) struct Call {
    wrong: Wrong,
    parameters: Vec<Parameter>,
}

impl Call {
    fn new(wrong: Wrong) -> Self {
        Self { wrong, parameters: Vec::new() }
    }

    fn len(&mut self, name: &'static str, len: usize) -> usize {
        self.parameters.push(Parameter::Slice(name, len));
        match self.wrong {
            Wrong::Length(wrong, got) if wrong == name => got,
            _ => len,
        }
    }

    /// An input slice.
    pub(crate) fn input(&mut self, name: &'static str, len: usize) -> Vec<f64> {
        (0..self.len(name, len)).map(|i| 0.25 + i as f64 / 16.0).collect()
    }

    /// An output or scratch slice.
    pub(crate) fn output<T: Unwritten>(&mut self, name: &'static str, len: usize) -> Vec<T> {
        vec![T::UNWRITTEN; self.len(name, len)]
    }

    /// A config field.
    pub(crate) fn number(&mut self, name: &'static str, domain: &'static Domain) -> f64 {
        self.parameters.push(Parameter::Number(name, domain));
        match self.wrong {
            Wrong::Number(wrong, got) if wrong == name => got,
            _ => domain.good[domain.good.len() - 1],
        }
    }

    pub(crate) fn batch(&self) -> Batch<'static> {
        let mask = Mask::new(&[true, true, false, true, true, true]);
        Batch::new(Layout::padded(SEQUENCES, TOKENS / SEQUENCES).unwrap(), mask).unwrap()
    }
}

/// A value no formula writes, to see whether an output was touched.
pub(crate) trait Unwritten: Copy {
    const UNWRITTEN: Self;
    fn is_unwritten(&self) -> bool;
}

impl Unwritten for f64 {
    // a number rather than a NaN: with a payload it is not a constant expression in older compilers
    const UNWRITTEN: Self = -1.234_567_890_123_456_7e-289;
    fn is_unwritten(&self) -> bool {
        self.to_bits() == Self::UNWRITTEN.to_bits()
    }
}

impl Unwritten for u64 {
    const UNWRITTEN: Self = 0x0bad_0bad_0bad_0bad;
    fn is_unwritten(&self) -> bool {
        *self == Self::UNWRITTEN
    }
}

/// For outputs that end up all false.
impl Unwritten for bool {
    const UNWRITTEN: Self = true;
    fn is_unwritten(&self) -> bool {
        *self
    }
}

impl Unwritten for Moments {
    const UNWRITTEN: Self = Self { count: u64::UNWRITTEN, mean: f64::UNWRITTEN, m2: f64::UNWRITTEN };
    fn is_unwritten(&self) -> bool {
        self.count.is_unwritten() && self.mean.is_unwritten() && self.m2.is_unwritten()
    }
}

/// The result of a call, and how many entries of its outputs are unchanged.
pub(crate) struct Ended {
    result: Result<()>,
    untouched: usize,
    entries: usize,
}

impl Ended {
    pub(crate) fn new<T>(result: Result<T>) -> Self {
        Self { result: result.map(|_| ()), untouched: 0, entries: 0 }
    }

    pub(crate) fn with<T: Unwritten>(self, output: &[T]) -> Self {
        let untouched = output.iter().filter(|entry| entry.is_unwritten()).count();
        Self { untouched: self.untouched + untouched, entries: self.entries + output.len(), ..self }
    }

    /// Asserts that it was rejected with this error before anything was written.
    pub(crate) fn refused(self, what: &str, want: Error) {
        // Debug rather than ==: the offending number may be NaN
        assert_eq!(format!("{:?}", self.result), format!("{:?}", Err::<(), _>(want)), "{what}");
        assert_eq!(self.untouched, self.entries, "{what}: outputs were touched");
    }

    /// Asserts that it succeeded and wrote every entry.
    pub(crate) fn accepted(self, what: &str) {
        assert_eq!(self.result, Ok(()), "{what}");
        assert_eq!(self.untouched, 0, "{what}: outputs were left unwritten");
    }
}

/// One function.
pub(crate) struct Function {
    pub(crate) name: &'static str,
    pub(crate) run: fn(&mut Call) -> Ended,
}

fn parameters(function: &Function) -> Vec<Parameter> {
    let mut call = Call::new(Wrong::Nothing);
    (function.run)(&mut call).accepted(function.name);
    call.parameters
}

fn run(function: &Function, wrong: Wrong) -> (String, Ended) {
    (format!("{} with {wrong:?}", function.name), (function.run)(&mut Call::new(wrong)))
}

#[test]
fn every_wrong_length_is_named() {
    for function in calls::FUNCTIONS {
        for parameter in parameters(function) {
            let Parameter::Slice(what, expected) = parameter else { continue };
            for got in [expected - 1, expected + 1, 0] {
                let (name, ended) = run(function, Wrong::Length(what, got));
                ended.refused(&name, Error::Length { what, expected, got });
            }
        }
    }
}

#[test]
fn every_wrong_number_is_named() {
    for function in calls::FUNCTIONS {
        for parameter in parameters(function) {
            let Parameter::Number(what, domain) = parameter else { continue };
            for &good in domain.good {
                let (name, ended) = run(function, Wrong::Number(what, good));
                ended.accepted(&name);
            }
            for &got in domain.bad {
                let (name, ended) = run(function, Wrong::Number(what, got));
                ended.refused(&name, Error::Config { what, must_be: domain.must_be, got });
            }
        }
    }
}
