//! The calls that golden cases make, for tests of other implementations of the formulas.

use std::{cell::RefCell, io, path::Path};

use serde_json::{json, Map, Value as Json};
use tokenwise::{Batch, Groups, Layout, Mask};
use tokenwise_catalogue::{find, Array, Call, Columns, Entry, Number, Value};

/// Returned numbers, by name.
type Numbers = Vec<(String, f64)>;

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

impl RecordedCall {
    /// The call as JSON, with what the core returns for it in `f64`, or its error.
    pub fn to_json(&self) -> Json {
        let mut call = Map::new();
        call.insert("name".into(), self.name.into());
        call.insert("rows".into(), self.rows.into());
        call.insert("mask".into(), self.keep.clone().into());
        call.insert("groups".into(), self.groups.clone().into());
        call.insert("inputs".into(), columns_json(&self.inputs));
        let columns = find(self.name).map_or(&[][..], |entry| entry.inputs);
        let kinds = columns.iter().map(|column| (column.name.to_owned(), format!("{:?}", column.kind).into()));
        call.insert("kinds".into(), Json::Object(kinds.collect()));
        call.insert("config".into(), config_json(&self.config));
        match self.run() {
            Ok((outputs, numbers)) => {
                // lists of pairs, because the order counts
                let outputs: Vec<Json> =
                    outputs.iter().map(|(name, column)| json!([name, column_json(column)])).collect();
                call.insert("outputs".into(), outputs.into());
                let numbers: Vec<Json> =
                    numbers.iter().map(|(name, number)| json!([name, number_json(*number)])).collect();
                call.insert("numbers".into(), numbers.into());
            }
            Err(error) => {
                call.insert("error".into(), error.into());
            }
        }
        Json::Object(call)
    }

    fn run(&self) -> Result<(Columns<f64>, Numbers), String> {
        let words = |error: tokenwise::Error| error.to_string();
        let entry = find(self.name).ok_or("not a formula of the catalogue")?;
        let width = self.keep.len().checked_div(self.rows).unwrap_or(0);
        let layout = Layout::padded(self.rows, width).map_err(words)?;
        let batch = Batch::new(layout, Mask::new(&self.keep)).map_err(words)?;
        let groups = self.groups.as_deref().map(Groups::from_ids).transpose().map_err(words)?;
        let mut outputs = entry.outputs_for(Some(&batch), groups.as_ref(), &self.inputs);
        let mut call = Call::new(Some(batch), groups, &self.inputs, &self.config, &mut outputs);
        entry.call(&mut call).map_err(|refusal| refusal.to_string())?;
        let numbers = call.numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Ok((outputs, numbers))
    }
}

fn number_json(number: f64) -> Json {
    if number.is_finite() {
        number.into()
    } else {
        number.to_string().to_lowercase().into()
    }
}

fn columns_json(columns: &Columns<f64>) -> Json {
    Json::Object(columns.iter().map(|(name, column)| (name.to_owned(), column_json(column))).collect())
}

fn column_json(column: &Array<f64>) -> Json {
    match column {
        Array::Real(numbers) | Array::Double(numbers) => numbers.iter().copied().map(number_json).collect(),
        Array::Index(numbers) => json!(numbers),
        Array::Count(numbers) => json!(numbers),
        Array::Flag(flags) => json!(flags),
        Array::Size(size) => json!(size),
        Array::Number(number) => number_json(*number),
        Array::Text(text) => json!(text),
        _ => Json::Null,
    }
}

fn config_json(config: &Value) -> Json {
    match config {
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number_json(*number),
        Value::Text(text) => text.as_str().into(),
        Value::List(items) => items.iter().map(config_json).collect(),
        Value::Map(pairs) => Json::Object(pairs.iter().map(|(key, value)| (key.clone(), config_json(value))).collect()),
        _ => Json::Null,
    }
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
