//! The calls that golden cases make, for tests of other implementations of the formulas.

use std::{cell::RefCell, io, path::Path};

use tokenwise::{Batch, Groups};
use tokenwise_catalogue::{Array, Columns, Entry, Number, Value};

/// A call of one formula. All golden cases are padded.
#[derive(Clone, Debug)]
pub struct RecordedCall {
    /// The name of the formula.
    pub name: &'static str,
    /// Sequences.
    pub rows: usize,
    /// The mask.
    pub keep: Vec<bool>,
    /// The group of each sequence.
    pub groups: Option<Vec<u32>>,
    /// The inputs, in `f64`.
    pub inputs: Columns<f64>,
    /// The config.
    pub config: Value,
}

thread_local! {
    static RECORDED: RefCell<Option<Vec<RecordedCall>>> = const { RefCell::new(None) };
}

/// Runs the golden cases of a folder and returns every call that they made.
///
/// # Errors
///
/// As [`run`](super::run).
pub fn calls(path: &Path) -> io::Result<Vec<RecordedCall>> {
    let (ran, calls) = recorded(|| super::run(path));
    ran.map(|_| calls)
}

/// Runs the golden cases of a text, for targets without files, and returns every call that they made.
pub fn calls_of(name: &str, text: &str) -> Vec<RecordedCall> {
    recorded(|| super::run_text(name, text, &mut Vec::new())).1
}

fn recorded<T>(run: impl FnOnce() -> T) -> (T, Vec<RecordedCall>) {
    RECORDED.with(|recorded| *recorded.borrow_mut() = Some(Vec::new()));
    let ran = run();
    (ran, RECORDED.with(RefCell::take).unwrap_or_default())
}

pub(super) fn record<R: Number>(
    entry: &'static Entry,
    batch: &Batch<'_>,
    groups: Option<&Groups<'_>>,
    inputs: &Columns<R>,
    config: &Value,
) {
    RECORDED.with(|recorded| {
        let Some(calls) = &mut *recorded.borrow_mut() else { return };
        calls.push(RecordedCall {
            name: entry.name,
            rows: batch.sequences(),
            keep: batch.mask().as_slice().to_vec(),
            groups: groups.map(|groups| groups.ids().map(|group| group as u32).collect()),
            inputs: wide(inputs),
            config: config.clone(),
        });
    });
}

#[allow(clippy::panic, reason = "a column of a new type must not be lost")]
fn wide<R: Number>(inputs: &Columns<R>) -> Columns<f64> {
    let mut wide = Columns::new();
    for (name, array) in inputs.iter() {
        match array {
            Array::Real(numbers) => wide.set(name, Array::Real(numbers.iter().map(|x| x.widen()).collect())),
            Array::Double(numbers) => wide.set(name, Array::Double(numbers.clone())),
            Array::Index(numbers) => wide.set(name, numbers.clone()),
            Array::Count(numbers) => wide.set(name, numbers.clone()),
            Array::Flag(flags) => wide.set(name, flags.clone()),
            Array::Size(size) => wide.set(name, *size),
            Array::Number(number) => wide.set(name, Array::Number(*number)),
            Array::Text(text) => wide.set(name, Array::Text(text.clone())),
            other => panic!("{name}: {other:?}"),
        }
    }
    wide
}
