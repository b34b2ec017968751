//! The arguments of a call by the entry's columns: which there are, their precision and their shapes.

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods as _};
use pyo3::{prelude::*, types::PyDict};
use tokenwise_catalogue::{Array, Column, Columns, Element, Entry, Kind, Over};

use crate::{
    domain::Tokens,
    error::{words, wrong},
    half,
    read::{number, size, text, Given, Precision, Reader},
};

/// The arguments of a call, read.
pub(crate) struct Inputs<'py> {
    pub(crate) tokens: Option<Tokens<'py>>,
    pub(crate) precision: Precision,
    /// Columns of numbers, borrowed.
    pub(crate) reals: Vec<(&'static Column, Given<'py>)>,
    /// Logits in half precision.
    pub(crate) halves: Vec<(&'static str, PyReadonlyArrayDyn<'py, u16>, String)>,
    /// All other columns.
    pub(crate) others: Columns<f64>,
    /// Further dimensions of the tokens of `shift`.
    pub(crate) rest: Vec<usize>,
    /// The sizes of the vocabulary and of the top-k lists.
    pub(crate) sizes: [Option<usize>; 2],
    /// The names of the sources of TRL's rewards.
    pub(crate) sources: Vec<String>,
}

/// `policy_loss.kl` → (`policy_loss`, `kl`)
pub(crate) fn parts(column: &'static str) -> (&'static str, Option<&'static str>) {
    column.split_once('.').map_or((column, None), |(outer, inner)| (outer, Some(inner)))
}

/// What was given for a column: an argument, or a part of one that has several (a dict or a result with fields).
fn find<'py>(inputs: &Bound<'py, PyDict>, column: &'static str) -> PyResult<Option<Bound<'py, PyAny>>> {
    let (outer, inner) = parts(column);
    let Some(given) = inputs.get_item(outer)?.filter(|given| !given.is_none()) else { return Ok(None) };
    let Some(inner) = inner else { return Ok(Some(given)) };
    let found = match given.cast::<PyDict>() {
        Ok(dict) => dict.get_item(inner)?,
        Err(_) => given.getattr_opt(inner)?,
    };
    Ok(found.filter(|found| !found.is_none()))
}

pub(crate) fn read_inputs<'py>(
    reader: &mut Reader<'py>,
    entry: &'static Entry,
    inputs: &Bound<'py, PyDict>,
    mask: Option<&Bound<'py, PyAny>>,
    cu_seqlens: Option<&Bound<'py, PyAny>>,
) -> PyResult<Inputs<'py>> {
    let py = reader.py;
    let (mut reals, mut halves) = (Vec::new(), Vec::new());
    for column in entry.inputs.iter().filter(|column| column.element == Element::Real) {
        let Some(given) = find(inputs, column.name)? else {
            let zeros = column.name == "bootstrap";
            if column.optional || zeros {
                continue;
            }
            return Err(wrong(py, "missing", column.name, words(column.element), "nothing"));
        };
        let logits = column.kind == Kind::Logit;
        if logits && half::covers(entry) {
            if let Some((bits, kind)) = reader.half_bits(&given)? {
                halves.push((column.name, bits, kind));
                continue;
            }
        }
        reals.push((column, reader.reals(column.name, &given, logits)?));
    }
    let precision = precision(py, &reals, !halves.is_empty())?;
    for (column, given) in &mut reals {
        if let Given::Weak(array) = given {
            *given = match precision {
                Precision::Single => Given::Single(reader.cast(column.name, array, precision)?),
                Precision::Double => Given::Double(reader.cast(column.name, array, precision)?),
            };
        }
    }
    let mut found = Inputs {
        tokens: None,
        precision,
        reals,
        halves,
        others: Columns::new(),
        rest: Vec::new(),
        sizes: [None, None],
        sources: Vec::new(),
    };
    if matches!(entry.over, Over::Batch | Over::BatchAndGroups | Over::Layout) {
        let first = found.first_dims(entry, inputs)?;
        found.tokens = Some(Tokens::read(reader, mask, cu_seqlens, first)?);
    }
    found.check_shapes(py)?;
    found.read_others(reader, entry, inputs)?;
    Ok(found)
}

/// The one precision of a call.
fn precision(py: Python<'_>, reals: &[(&'static Column, Given<'_>)], halves: bool) -> PyResult<Precision> {
    let mut known: Option<(&str, Precision)> = halves.then_some(("logits", Precision::Single));
    for (column, given) in reals {
        let Some(got) = given.precision() else { continue };
        match known {
            None => known = Some((column.name, got)),
            Some((_, expected)) if expected == got => (),
            Some((other, expected)) => {
                let expected = format!("{}, the type of {other}", expected.name());
                return Err(wrong(py, "dtype", column.name, &expected, got.name()));
            }
        }
    }
    Ok(known.map_or(Precision::Double, |(_, precision)| precision))
}

impl<'py> Inputs<'py> {
    /// The dimensions of the tokens, by the first array that has one entry (or one row) per token.
    fn first_dims(
        &self,
        entry: &'static Entry,
        inputs: &Bound<'py, PyDict>,
    ) -> PyResult<Option<(&'static str, Vec<usize>)>> {
        for (column, given) in &self.reals {
            match column.kind {
                Kind::Token => return Ok(Some((column.name, dims(given)))),
                Kind::Logit | Kind::TopK => return Ok(Some((column.name, without_last(&dims(given))))),
                _ => (),
            }
        }
        if let Some((name, bits, _)) = self.halves.first() {
            return Ok(Some((name, without_last(bits.shape()))));
        }
        let tokens = entry.inputs.iter().find(|column| column.kind == Kind::Token);
        let Some(column) = tokens else { return Ok(None) };
        let Some(given) = find(inputs, column.name)? else { return Ok(None) };
        let shape = given.getattr_opt("shape")?.and_then(|shape| shape.extract::<Vec<usize>>().ok());
        Ok(shape.map(|shape| (column.name, shape)))
    }

    /// Checks the shapes of all columns of numbers, and finds the sizes of rows.
    fn check_shapes(&mut self, py: Python<'_>) -> PyResult<()> {
        let tokens = self.tokens.as_ref().map(|tokens| tokens.shape.dims()).transpose()?;
        let sequences = self.tokens.as_ref().map(|tokens| tokens.shape.sequences());
        let halves = self.halves.iter().map(|(name, bits, _)| (*name, Kind::Logit, bits.shape().to_vec()));
        let reals = self.reals.iter().map(|(column, given)| (column.name, column.kind, dims(given)));
        let (mut vocab, mut k) = (None, None);
        for (name, kind, got) in reals.chain(halves) {
            let rows = |size: &mut Option<usize>| {
                let last = *size.get_or_insert(got.last().copied().unwrap_or(0));
                tokens.clone().map(|mut dims| {
                    dims.push(last);
                    dims
                })
            };
            let expected = match kind {
                Kind::Token => tokens.clone(),
                Kind::Logit => rows(&mut vocab),
                Kind::TopK => rows(&mut k),
                Kind::Sequence => sequences.map(|sequences| vec![sequences]),
                _ => None,
            };
            if let Some(expected) = expected.filter(|expected| *expected != got) {
                return Err(wrong(py, "shape", name, &format!("shape {expected:?}"), &format!("{got:?}")));
            }
        }
        self.sizes = [vocab, k];
        Ok(())
    }

    /// Everything that is not numbers of the call's precision.
    fn read_others(
        &mut self,
        reader: &mut Reader<'py>,
        entry: &'static Entry,
        inputs: &Bound<'py, PyDict>,
    ) -> PyResult<()> {
        let py = reader.py;
        let mask = self.tokens.as_ref().and_then(Tokens::mask_array);
        for column in entry.inputs.iter().filter(|column| column.element != Element::Real) {
            let (name, inner) = (column.name, parts(column.name).1.unwrap_or(column.name));
            match name {
                "vocab" | "k" => {
                    let size = self.sizes[usize::from(name == "k")];
                    self.others.set(name, size.unwrap_or(0));
                    continue;
                }
                "width" | "raw_layout.batch" | "raw_layout.len" | "raw_layout.cu_seqlens" => continue,
                _ => (),
            }
            let Some(given) = find(inputs, name)? else {
                if column.optional {
                    continue;
                }
                return Err(wrong(py, "missing", name, words(column.element), "nothing"));
            };
            let per_token = matches!(column.kind, Kind::Token | Kind::TopK);
            let array = match column.element {
                Element::Index => {
                    let mask = mask.as_ref().filter(|_| per_token);
                    let indices = reader.indices(name, &given, mask)?;
                    if column.kind == Kind::TopK && self.sizes[1].is_none() {
                        self.sizes[1] = indices.shape().last().copied();
                    }
                    self.check_other(py, column, indices.shape())?;
                    Array::Index(indices.as_slice()?.to_vec())
                }
                Element::Flag => {
                    let flags = reader.flags(name, &given)?;
                    self.check_other(py, column, flags.shape())?;
                    Array::Flag(flags.as_slice()?.to_vec())
                }
                Element::Count => Array::Count(reader.counts(name, &given)?.as_slice()?.to_vec()),
                Element::Double => Array::Double(doubles(reader, name, &given)?),
                Element::Size => Array::Size(size(inner, &given)?),
                Element::Number => Array::Number(number(inner, &given)?),
                _ => Array::Text(text(inner, &given)?),
            };
            self.others.set(name, array);
        }
        if entry.name == "shift" {
            self.read_raw(reader, inputs)?;
        }
        if entry.name == "trl_metrics" {
            if let Some(names) = find(inputs, "rewards.names")? {
                self.sources = names.extract()?;
            }
        }
        Ok(())
    }

    fn check_other(&self, py: Python<'_>, column: &Column, got: &[usize]) -> PyResult<()> {
        let Some(tokens) = &self.tokens else { return Ok(()) };
        let expected = match column.kind {
            Kind::Token => tokens.shape.dims()?,
            Kind::TopK => {
                let mut dims = tokens.shape.dims()?;
                dims.push(self.sizes[1].unwrap_or_else(|| got.last().copied().unwrap_or(0)));
                dims
            }
            Kind::Sequence => vec![tokens.shape.sequences()],
            _ => return Ok(()),
        };
        if expected == got {
            return Ok(());
        }
        Err(wrong(py, "shape", column.name, &format!("shape {expected:?}"), &format!("{got:?}")))
    }

    /// Numbers per token of `shift`.
    pub(crate) fn rest_len(&self) -> usize {
        self.rest.iter().fold(1, |len, dim| len.saturating_mul(*dim))
    }

    /// The layout of the raw output of `shift`: the shape of `raw`, or offsets of its own.
    fn read_raw(&mut self, reader: &mut Reader<'py>, inputs: &Bound<'py, PyDict>) -> PyResult<()> {
        let Some((_, given)) = self.reals.iter().find(|(column, _)| column.name == "raw") else { return Ok(()) };
        let dims = dims(given);
        let lead = if let Some(offsets) = inputs.get_item("raw_cu_seqlens")?.filter(|given| !given.is_none()) {
            let offsets = reader.indices("raw_cu_seqlens", &offsets, None)?;
            self.others.set("raw_layout.cu_seqlens", offsets.as_slice()?.to_vec());
            1
        } else {
            let [batch, len, ..] = dims[..] else {
                return Err(wrong(reader.py, "shape", "raw", "shape [batch, length, …]", &format!("{dims:?}")));
            };
            self.others.set("raw_layout.batch", batch);
            self.others.set("raw_layout.len", len);
            2
        };
        self.rest = dims.get(lead..).unwrap_or_default().to_vec();
        self.others.set("width", self.rest_len());
        Ok(())
    }
}

fn doubles<'py>(reader: &mut Reader<'py>, name: &str, given: &Bound<'py, PyAny>) -> PyResult<Vec<f64>> {
    Ok(match reader.reals(name, given, false)? {
        Given::Single(array) => array.as_slice()?.iter().map(|number| f64::from(*number)).collect(),
        Given::Double(array) => array.as_slice()?.to_vec(),
        Given::Weak(array) => reader.cast::<f64>(name, &array, Precision::Double)?.as_slice()?.to_vec(),
    })
}

fn dims(given: &Given<'_>) -> Vec<usize> {
    match given {
        Given::Single(array) => array.shape().to_vec(),
        Given::Double(array) => array.shape().to_vec(),
        Given::Weak(_) => Vec::new(),
    }
}

fn without_last(dims: &[usize]) -> Vec<usize> {
    dims[..dims.len().saturating_sub(1)].to_vec()
}
