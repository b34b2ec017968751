//! Any formula of the catalogue, by its name: arguments by the entry's columns in, results by its outputs and numbers
//! out.

use std::borrow::Cow;

use js_sys::{Array, Uint32Array, Uint8Array};
use tokenwise::Mask;
use tokenwise_catalogue::{self as catalogue, Array as Data, Column, Columns, Element, Entry, Kind, Over, Value};
use wasm_bindgen::{
    prelude::{wasm_bindgen, JsValue},
    JsCast,
};

use crate::{
    batch::Batch,
    error::{last, refused, words as element_words, wrong_type, Result},
    read::{
        array_len, closed, counts, field, flags, number, object, reals, size, text, words, zeros, OwnGroups, OwnLayout,
        Precision,
    },
    rows::{independent, Rows},
    spare,
    value::config,
    write::{array, Record},
};

#[cfg(feature = "gpu-shim")]
mod gpu;

/// A returned number and its name.
type Number = (Cow<'static, str>, f64);

/// The column of the prompts' token counts: JavaScript has them in the config.
const GROUP_TOKENS: &str = "group_tokens";
/// The layout of the model's raw output, an object with an alternative.
const RAW_LAYOUT: &str = "raw_layout";

/// A call whose arguments were read. The batch comes last: getters of an input are code of the caller's, which may free
/// it.
#[wasm_bindgen(skip_typescript)]
pub struct Call {
    entry: &'static Entry,
    columns: Either,
    config: Value,
    layout: Option<OwnLayout>,
    groups: Option<OwnGroups>,
    /// What the sources of TRL's rewards are called.
    sources: Vec<String>,
    /// The caller's arrays of logits, for formulas that read them row by row.
    logits: Vec<(&'static str, JsValue)>,
    /// The caller's arrays for the outputs, in the order of the entry; fresh arrays where there are none.
    into: Vec<Option<JsValue>>,
}

/// Columns in the precision of the call.
enum Either {
    Single(Columns<f32>),
    Double(Columns<f64>),
}

#[wasm_bindgen]
impl Call {
    /// Reads the arguments after the batch: layout, groups, input and config, those that the formula has, and the arrays
    /// that results are written into.
    #[wasm_bindgen(constructor)]
    pub fn new(name: &str, double: bool, given: &Array) -> Result<Call> {
        let Some(entry) = catalogue::find(name) else {
            return Err(wrong_type("name", "the name of a formula", &name.into()));
        };
        let mut given = given.iter();
        let mut next = move || given.next().unwrap_or(JsValue::UNDEFINED);
        let layout = (entry.over == Over::Layout).then(|| OwnLayout::read("layout", &next())).transpose()?;
        let grouped = matches!(entry.over, Over::Groups | Over::BatchAndGroups);
        let mut groups = grouped.then(|| OwnGroups::read("groups", &next())).transpose()?;
        let input = if inputs(entry).next().is_some() { next() } else { JsValue::UNDEFINED };
        let (config, prompts) = config(&if entry.config.is_some() { next() } else { JsValue::UNDEFINED })?;
        let (into, mut logits) = (next(), Vec::new());
        let (mut columns, into) = if double {
            (Either::Double(read_columns(entry, &input, &mut logits)?), read_into::<f64>(entry, &into)?)
        } else {
            (Either::Single(read_columns(entry, &input, &mut logits)?), read_into::<f32>(entry, &into)?)
        };
        if let Some(prompts) = prompts {
            groups = Some(OwnGroups::read("groups", &prompts.groups)?);
            let tokens = counts("tokens", &prompts.tokens)?;
            match &mut columns {
                Either::Single(columns) => columns.set(GROUP_TOKENS, tokens),
                Either::Double(columns) => columns.set(GROUP_TOKENS, tokens),
            }
        }
        let mut sources = Vec::new();
        // the two reports whose sequences need not be grouped
        match entry.name {
            "openrlhf_metrics" => groups = optional_groups(&input)?,
            "trl_metrics" => {
                let rewards = field(&input, "rewards")?;
                if !rewards.is_undefined() {
                    groups = Some(OwnGroups::read("groups", &field(&rewards, "groups")?)?);
                    sources = source_names(&rewards)?;
                }
            }
            _ => (),
        }
        Ok(Self { entry, columns, config, layout, groups, sources, logits, into })
    }

    /// Runs it over the tokens of a batch.
    pub fn over(self, batch: &Batch) -> Result {
        self.run(Some(batch.view()?))
    }

    /// Runs it without a batch.
    pub fn alone(self) -> Result {
        let Some(layout) = &self.layout else { return self.run(None) };
        let layout = layout.view()?;
        let mask = zeros(layout.tokens())?;
        self.run(Some(tokenwise::Batch::new(layout, Mask::new(&mask))?))
    }
}

impl Call {
    fn run(&self, batch: Option<tokenwise::Batch<'_>>) -> Result {
        match &self.columns {
            Either::Single(columns) => self.run_in(batch, columns),
            Either::Double(columns) => self.run_in(batch, columns),
        }
    }

    fn run_in<R: Precision>(&self, batch: Option<tokenwise::Batch<'_>>, columns: &Columns<R>) -> Result {
        let groups = self.groups.as_ref().map(OwnGroups::view).transpose()?;
        let mut outputs = self.room_for(batch.as_ref(), groups.as_ref(), columns)?;
        let mut whole = Columns::new();
        let columns = match (&batch, self.logits.as_slice()) {
            (_, []) | (None, _) => columns,
            (Some(batch), logits) => {
                let rows = Rows { entry: self.entry, batch, columns, logits, config: &self.config };
                if rows.fit() {
                    rows.run(&mut outputs)?;
                    return self.write(&[], outputs);
                }
                // the core says what does not fit
                whole.clone_from(columns);
                for (name, array) in logits {
                    whole.set(name, Data::Real(reals(name, array)?));
                }
                &whole
            }
        };
        let mut call = catalogue::Call::new(batch, groups, columns, &self.config, &mut outputs);
        let result = self.entry.call(&mut call);
        let numbers = call.numbers;
        result.map_err(|refusal| refused(refusal, R::ARRAY))?;
        self.write(&numbers, outputs)
    }

    /// The results; the buffers of the outputs are kept.
    fn write<R: Precision>(&self, numbers: &[Number], outputs: Columns<R>) -> Result {
        let written = self.record(numbers, &outputs);
        spare::keep(outputs);
        written
    }

    /// Room for the outputs; an array of the caller's that does not fit is refused.
    fn room_for<R: Precision>(
        &self,
        batch: Option<&tokenwise::Batch<'_>>,
        groups: Option<&tokenwise::Groups<'_>>,
        columns: &Columns<R>,
    ) -> Result<Columns<R>> {
        let mut outputs = Columns::new();
        for (column, into) in self.entry.outputs.iter().zip(&self.into) {
            let len = match self.entry.name {
                // as many numbers per token as the raw output has
                "shift" => {
                    let width = if let Some(Data::Size(width)) = columns.get("width") { *width } else { 0 };
                    batch.map_or(0, tokenwise::Batch::tokens).saturating_mul(width)
                }
                _ => self.entry.length(column.kind, batch, groups, columns),
            };
            let got = into.as_ref().map_or(len, array_len);
            if got != len {
                return Err(tokenwise::Error::Length { what: column.name, expected: len, got }.into());
            }
            outputs.set(column.name, room(column.element, len)?);
        }
        Ok(outputs)
    }

    /// A single number or array as it is, anything else as an object.
    fn record<R: Precision>(&self, numbers: &[Number], outputs: &Columns<R>) -> Result {
        match (self.entry.numbers, self.entry.outputs) {
            ([name], []) if !name.ends_with('*') => {
                return Ok(numbers.first().map_or(JsValue::NULL, |(_, number)| (*number).into()));
            }
            ([], [output]) => {
                let into = self.into.first().and_then(Option::as_ref);
                return Ok(outputs.get(output.name).map_or(JsValue::UNDEFINED, |output| array(output, into)));
            }
            _ => (),
        }
        let record = Record::new();
        for name in self.entry.numbers {
            if let Some(prefix) = name.strip_suffix('*') {
                self.write_report(&record, prefix, numbers)?;
            } else if let Some((_, number)) = numbers.iter().find(|(given, _)| given == name) {
                record.field(name, *number)?;
            } else {
                // a number, or a record of numbers, that this call has none for
                let name = name.split('.').next().unwrap_or(name);
                if !record.has(name)? {
                    record.field(name, JsValue::NULL)?;
                }
            }
        }
        for ((name, output), into) in outputs.iter().zip(&self.into) {
            record.field(name, array(output, into.as_ref()))?;
        }
        Ok(record.into())
    }

    /// The numbers of a report, by their own keys. What all have before the key is the name of an inner object.
    fn write_report(&self, record: &Record, prefix: &str, numbers: &[Number]) -> Result<()> {
        let inner = prefix.strip_suffix('.').map(|name| record.inner(name)).transpose()?;
        for (key, number) in numbers {
            let key = &**key;
            if self.entry.numbers.contains(&key) {
                continue;
            }
            match (&inner, key.strip_prefix(prefix)) {
                (Some(inner), Some(key)) => inner.entry(key, *number)?,
                _ => record.entry(&self.source_key(key), *number)?,
            }
        }
        Ok(())
    }

    /// `rewards/0/mean` by the name of the source.
    fn source_key(&self, key: &str) -> String {
        let parts = key.strip_prefix("rewards/").and_then(|rest| rest.split_once('/'));
        let named = parts.and_then(|(place, rest)| Some((self.sources.get(place.parse::<usize>().ok()?)?, rest)));
        named.map_or_else(|| key.to_owned(), |(source, rest)| format!("rewards/{source}/{rest}"))
    }
}

/// The columns that come with the input.
fn inputs(entry: &Entry) -> impl Iterator<Item = &'static Column> {
    entry.inputs.iter().filter(|column| column.name != GROUP_TOKENS)
}

/// Reads the input: the one column as it is, or an object of several. Logits that are read row by row stay where they are.
fn read_columns<R: Precision>(
    entry: &Entry,
    input: &JsValue,
    logits: &mut Vec<(&'static str, JsValue)>,
) -> Result<Columns<R>> {
    let mut columns = Columns::new();
    let mut all = inputs(entry);
    match (all.next(), all.next()) {
        (None, _) => return Ok(columns),
        (Some(only), None) => {
            columns.set(only.name, read_column(only, input)?);
            return Ok(columns);
        }
        _ => object("input", input)?,
    }
    // where nothing is required, a slip of the pen would leave something out without a word
    if inputs(entry).all(|column| column.optional) {
        let mut names: Vec<_> = inputs(entry).map(|column| first(column.name)).collect();
        if entry.name == "openrlhf_metrics" {
            names.push("groups");
        }
        names.dedup();
        closed("input", input, &names)?;
    }
    for column in inputs(entry) {
        let outer = first(column.name);
        let mut found = field(input, outer)?;
        if outer == RAW_LAYOUT {
            continue;
        }
        if outer != column.name && !found.is_undefined() {
            object(outer, &found)?;
            found = field(&found, last(column.name))?;
        }
        if column.kind == Kind::Logit && independent(entry) {
            if !R::is_array(&found) {
                return Err(wrong_type(column.name, R::ARRAY, &found));
            }
            logits.push((column.name, found));
        } else if !(column.optional && found.is_undefined()) {
            columns.set(column.name, read_column(column, &found)?);
        }
    }
    if inputs(entry).any(|column| first(column.name) == RAW_LAYOUT) {
        match OwnLayout::read(RAW_LAYOUT, &field(input, RAW_LAYOUT)?)? {
            OwnLayout::Padded { batch, len } => {
                columns.set("raw_layout.batch", batch);
                columns.set("raw_layout.len", len);
            }
            OwnLayout::Packed { cu_seqlens } => columns.set("raw_layout.cu_seqlens", cu_seqlens),
        }
    }
    Ok(columns)
}

/// `policy_loss.kl` → `policy_loss`
fn first(column: &'static str) -> &'static str {
    column.split('.').next().unwrap_or(column)
}

fn read_column<R: Precision>(column: &Column, given: &JsValue) -> Result<Data<R>> {
    let name = last(column.name);
    Ok(match column.element {
        Element::Real => Data::Real(reals(name, given)?),
        Element::Double => Data::Double(reals(name, given)?),
        Element::Index => Data::Index(words(name, given)?),
        Element::Count => Data::Count(counts(name, given)?),
        Element::Flag => Data::Flag(flags(column.name, given)?),
        Element::Size => Data::Size(size(name, given)?),
        Element::Number => Data::Number(number(name, given)?),
        _ => Data::Text(text(name, given)?),
    })
}

/// The caller's arrays for the outputs: the one array as it is, or an object of several. Each may be left out.
fn read_into<R: Precision>(entry: &Entry, given: &JsValue) -> Result<Vec<Option<JsValue>>> {
    let alone = entry.numbers.is_empty() && entry.outputs.len() == 1;
    if !(alone || given.is_undefined()) {
        closed("into", given, &entry.outputs.iter().map(|column| column.name).collect::<Vec<_>>())?;
    }
    let read = |column: &Column| {
        let found = if alone || given.is_undefined() { given.clone() } else { field(given, column.name)? };
        if found.is_undefined() {
            return Ok(None);
        }
        let fits = match column.element {
            Element::Real => R::is_array(&found),
            Element::Double => f64::is_array(&found),
            Element::Index | Element::Count => found.has_type::<Uint32Array>(),
            _ => found.has_type::<Uint8Array>(),
        };
        let expected = element_words(column.element, R::ARRAY);
        fits.then_some(Some(found.clone())).ok_or_else(|| wrong_type(column.name, expected, &found))
    };
    entry.outputs.iter().map(read).collect()
}

/// Room for an output.
fn room<R: Precision>(element: Element, len: usize) -> Result<Data<R>> {
    Ok(match element {
        Element::Real => Data::Real(spare::take(len)?),
        Element::Double => Data::Double(zeros(len)?),
        Element::Index => Data::Index(zeros(len)?),
        Element::Count => Data::Count(zeros(len)?),
        Element::Flag => Data::Flag(zeros(len)?),
        other => other.zeros(len),
    })
}

fn optional_groups(input: &JsValue) -> Result<Option<OwnGroups>> {
    let given = field(input, "groups")?;
    (!given.is_undefined()).then(|| OwnGroups::read("groups", &given)).transpose()
}

/// One name per source of TRL's rewards.
fn source_names(rewards: &JsValue) -> Result<Vec<String>> {
    let (given, weights) = (field(rewards, "names")?, field(rewards, "source_weights")?);
    if !Array::is_array(&given) {
        return Err(wrong_type("names", "an array", &given));
    }
    let name = |name: JsValue| name.as_string().ok_or_else(|| wrong_type("names", "an array of strings", &name));
    let names = Array::from(&given).iter().map(name).collect::<Result<Vec<_>>>()?;
    let expected = reals::<f64>("source_weights", &weights)?.len();
    if names.len() != expected {
        return Err(tokenwise::Error::Length { what: "names", expected, got: names.len() }.into());
    }
    Ok(names)
}
