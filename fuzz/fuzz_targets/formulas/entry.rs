//! One formula of the catalogue, with columns and a config made of the bytes.

use std::{cell::RefCell, collections::HashMap};

use tokenwise::{Batch, Groups, Real};
use tokenwise_catalogue::{
    entries, Array, Call, Columns, ConfigFault, Element, Entry, Kind, Number, Over, Refusal, Value,
};

use crate::reader::Reader;

/// What an output holds before a call.
const UNTOUCHED: f64 = 1234.5;

pub fn run<R: Number>(reader: &mut Reader<'_>, batch: Batch<'_>) {
    let all: Vec<&Entry> = entries().collect();
    let entry = all[usize::from(reader.byte()) % all.len()];
    let ids = reader.ids(batch.sequences(), 4);
    let groups = Groups::from_ids(&ids).ok();
    let batch = match entry.over {
        Over::Groups | Over::Sequences => None,
        _ => Some(batch),
    };
    let inputs = inputs::<R>(reader, entry, batch.as_ref(), groups.as_ref(), ids.len());
    let config = settings(reader, entry);
    let mut outputs = outputs(reader, entry, batch.as_ref(), groups.as_ref(), &inputs);
    let before = bits(&outputs);
    let mut call = Call::new(batch, groups, &inputs, &config, &mut outputs);
    match entry.call(&mut call) {
        Err(_) => assert_eq!(bits(&outputs), before, "{}: an error wrote something", entry.name),
        Ok(()) => dropped_slots_are_zero(entry, batch.as_ref(), &inputs, &outputs),
    }
}

fn inputs<R: Number>(
    reader: &mut Reader<'_>,
    entry: &Entry,
    batch: Option<&Batch<'_>>,
    groups: Option<&Groups<'_>>,
    sequences: usize,
) -> Columns<R> {
    let mut columns = Columns::new();
    for column in entry.inputs.iter().filter(|column| matches!(column.element, Element::Size)) {
        if !(column.optional && reader.byte() % 2 == 0) {
            columns.set(column.name, Array::Size(usize::from(reader.byte() % 6)));
        }
    }
    for column in entry.inputs {
        if column.optional && reader.byte() % 2 == 0 {
            continue;
        }
        let right = match column.kind {
            Kind::List => usize::from(reader.byte() % 40),
            Kind::Sequence | Kind::Source if batch.is_none() => sequences,
            kind => entry.length(kind, batch, groups, &columns),
        };
        // a product of sizes may be large, no slice is
        let right = right.min(1 << 12);
        let array = match column.element {
            Element::Real => Array::Real(reader.numbers(right).into_iter().map(R::narrow).collect()),
            Element::Double => Array::Double(reader.numbers(right)),
            Element::Index => Array::Index(reader.ids(right, 6)),
            Element::Count => Array::Count(reader.ids(right, 20).into_iter().map(u64::from).collect()),
            Element::Flag => Array::Flag(reader.flags(right)),
            Element::Number => Array::Number(reader.number()),
            Element::Text => {
                Array::Text(reader.pick(&["plain", "kl-gated", "structural", "vespo", "sapo", "?"]).into())
            }
            _ => continue,
        };
        columns.set(column.name, array);
    }
    columns
}

fn outputs<R: Number>(
    reader: &mut Reader<'_>,
    entry: &Entry,
    batch: Option<&Batch<'_>>,
    groups: Option<&Groups<'_>>,
    inputs: &Columns<R>,
) -> Columns<R> {
    let mut columns = Columns::new();
    for column in entry.outputs {
        let right = entry.length(column.kind, batch, groups, inputs).min(1 << 12);
        let len = reader.len(right);
        columns.set(
            column.name,
            match column.element {
                Element::Real => Array::Real(vec![R::narrow(UNTOUCHED); len]),
                Element::Double => Array::Double(vec![UNTOUCHED; len]),
                Element::Index => Array::Index(vec![1234; len]),
                Element::Count => Array::Count(vec![1234; len]),
                _ => Array::Flag(vec![true; len]),
            },
        );
    }
    columns
}

/// All outputs, comparable although NaN is not.
fn bits<R: Real>(columns: &Columns<R>) -> Vec<u64> {
    let mut all = Vec::new();
    for (_, array) in columns.iter() {
        match array {
            Array::Real(array) => all.extend(array.iter().map(|x| x.widen().to_bits())),
            Array::Double(array) => all.extend(array.iter().map(|x| x.to_bits())),
            Array::Index(array) => all.extend(array.iter().map(|&x| u64::from(x))),
            Array::Count(array) => all.extend(array),
            Array::Flag(array) => all.extend(array.iter().map(|&x| u64::from(x))),
            _ => (),
        }
    }
    all
}

fn dropped_slots_are_zero<R: Number>(
    entry: &Entry,
    batch: Option<&Batch<'_>>,
    inputs: &Columns<R>,
    outputs: &Columns<R>,
) {
    // a plain copy of model output, and a mask made from token ids, have no dropped slots
    let Some(batch) = batch.filter(|_| entry.over != Over::Layout && entry.name != "shift") else { return };
    for column in entry.outputs {
        let tokens = batch.tokens();
        let len = entry.length(column.kind, Some(batch), None, inputs);
        if !matches!(column.kind, Kind::Token | Kind::Logit | Kind::TopK) || tokens == 0 {
            continue;
        }
        let width = len / tokens;
        for (slot, _) in batch.mask().as_slice().iter().enumerate().filter(|(_, &keep)| !keep) {
            match outputs.get(column.name) {
                Some(Array::Real(array)) => {
                    let row = &array[slot * width..(slot + 1) * width];
                    assert!(row.iter().all(|x| x.widen().to_bits() == 0), "{}: a dropped slot is not +0", entry.name);
                }
                Some(Array::Flag(array)) => assert!(!array[slot], "{}: a dropped slot is kept", entry.name),
                _ => (),
            }
        }
    }
}

/// The keys of configs, and the choices of a key, as the refusals name them.
#[derive(Clone, Default)]
struct Schema {
    keys: Vec<(String, Schema)>,
    choices: Vec<String>,
}

thread_local! {
    static SCHEMAS: RefCell<HashMap<&'static str, Schema>> = RefCell::default();
}

/// A config: known keys with numbers and choices, sometimes something else.
fn settings(reader: &mut Reader<'_>, entry: &'static Entry) -> Value {
    let schema = SCHEMAS.with(|known| {
        known.borrow_mut().entry(entry.name).or_insert_with(|| discover(entry, &|value| value, 0)).clone()
    });
    value_of(reader, &schema, 0)
}

fn value_of(reader: &mut Reader<'_>, schema: &Schema, depth: usize) -> Value {
    if !schema.keys.is_empty() && (depth == 0 || reader.byte() < 200) {
        let mut config = Value::EMPTY;
        for (key, schema) in &schema.keys {
            if reader.byte() % 2 == 0 {
                config.set(key, value_of(reader, schema, depth + 1));
            }
        }
        if reader.byte() == 255 {
            config.set("unknown", Value::Null);
        }
        return config;
    }
    match reader.byte() {
        0..=9 => Value::Null,
        10..=14 => Value::Bool(true),
        15..=19 => Value::List(vec![Value::Number(reader.number())]),
        20..=40 => Value::Number(f64::from(reader.byte())),
        byte if !schema.choices.is_empty() && byte < 240 => Value::Text(reader.pick(&schema.choices)),
        _ => Value::Number(if reader.byte() < 128 { reader.share() } else { reader.number() }),
    }
}

/// Calls with a wrong key and a wrong name; the errors list the valid ones. Nothing is computed: some formulas read
/// columns before the config, but a call with empty columns is rejected in any case.
fn discover(entry: &'static Entry, within: &dyn Fn(Value) -> Value, depth: usize) -> Schema {
    let ask = |value: Value| -> Option<(ConfigFault, Vec<String>)> {
        let config = within(value);
        let inputs = every_column(entry);
        let mut outputs = Columns::<f64>::new();
        for column in entry.outputs {
            outputs.set(column.name, column.element.zeros(0));
        }
        let batch = Batch::new(tokenwise::Layout::padded(0, 0).ok()?, tokenwise::Mask::new(&[])).ok()?;
        let groups = Groups::from_ids(&[]).ok();
        match entry.call(&mut Call::new(Some(batch), groups, &inputs, &config, &mut outputs)) {
            Err(Refusal::Config(error)) => Some((error.fault, error.expected.split(", ").map(str::to_owned).collect())),
            _ => None,
        }
    };
    let mut schema = Schema::default();
    let mut wrong_key = Value::EMPTY;
    wrong_key.set("?", Value::Null);
    if let Some((ConfigFault::Key, keys)) = ask(wrong_key).filter(|_| depth < 3) {
        for key in keys {
            let inner = |value: Value| {
                let mut config = Value::EMPTY;
                config.set(&key, value);
                within(config)
            };
            let found = discover(entry, &inner, depth + 1);
            schema.keys.push((key.clone(), found));
        }
    }
    if let Some((ConfigFault::Choice, choices)) = ask(Value::Text("?".into())) {
        schema.choices = choices;
    }
    schema
}

/// All columns, empty: enough to get to the config.
fn every_column(entry: &Entry) -> Columns<f64> {
    let mut columns = Columns::new();
    for column in entry.inputs {
        columns.set(
            column.name,
            match column.element {
                Element::Size => Array::Size(1),
                Element::Text => Array::Text("plain".into()),
                element => element.zeros(0),
            },
        );
    }
    columns
}
