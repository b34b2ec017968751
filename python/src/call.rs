//! Any formula of the catalogue, by its name: arguments by the entry's columns in, results by its outputs and numbers
//! out.

use std::panic::{catch_unwind, AssertUnwindSafe};

use numpy::{PyArray1, PyArrayMethods as _};
use pyo3::{
    intern,
    prelude::*,
    types::{PyDict, PyList, PyTuple},
    IntoPyObjectExt as _,
};
use tokenwise::{Batch, Groups};
use tokenwise_catalogue::{self as catalogue, Array, Column, Columns, Element, Entry, Kind, Value};

use crate::{
    domain::{group_ids, groups},
    error::{refusal, wrong},
    half,
    inputs::{parts, read_inputs, Inputs},
    read::{helpers, Precision, Reader, Slice},
    value,
};

/// The column of the prompts' token counts.
const GROUP_TOKENS: &str = "group_tokens";

/// Runs a formula.
///
/// `inputs` has its columns by name, `settings` its config, `result` is the class of a result with several parts.
#[pyfunction]
#[pyo3(signature = (name, inputs, settings, mask, cu_seqlens, group_labels, result))]
#[allow(clippy::too_many_arguments, reason = "the parts of a call of Python")]
pub(crate) fn call<'py>(
    py: Python<'py>,
    name: &str,
    inputs: &Bound<'py, PyDict>,
    settings: Option<&Bound<'py, PyAny>>,
    mask: Option<&Bound<'py, PyAny>>,
    cu_seqlens: Option<&Bound<'py, PyAny>>,
    group_labels: Option<&Bound<'py, PyAny>>,
    result: Option<&Bound<'py, PyAny>>,
) -> PyResult<Py<PyAny>> {
    let Some(entry) = catalogue::find(name) else {
        return Err(wrong(py, "choice", "name", "the name of a formula", name));
    };
    let config = match settings {
        None => Value::EMPTY,
        Some(settings) => match settings.cast::<PyDict>() {
            Ok(settings) => value::config(Some(settings))?,
            Err(_) => value::value("config", settings)?,
        },
    };
    let mut reader = Reader::new(py);
    let given = read_inputs(&mut reader, entry, inputs, mask, cu_seqlens)?;
    let labels = group_labels.map(group_ids).transpose()?;
    let ids = labels.as_ref().map(|labels| labels.as_slice()).transpose()?;
    let context = Context { py, entry, given: &given, config: &config, ids, result };
    match given.precision {
        Precision::Single => context.run::<f32>(&reader),
        Precision::Double => context.run::<f64>(&reader),
    }
}

/// A call whose arguments were read.
struct Context<'a, 'py> {
    py: Python<'py>,
    entry: &'static Entry,
    given: &'a Inputs<'py>,
    config: &'a Value,
    ids: Option<&'a [u32]>,
    result: Option<&'a Bound<'py, PyAny>>,
}

/// Numbers of a result, by name.
type Numbers = Vec<(std::borrow::Cow<'static, str>, f64)>;

impl<'py> Context<'_, 'py> {
    fn run<R: Slice>(&self, reader: &Reader<'py>) -> PyResult<Py<PyAny>> {
        let (py, entry) = (self.py, self.entry);
        let batch = self.given.tokens.as_ref().map(|tokens| tokens.batch(py)).transpose()?;
        let sequences = batch.as_ref().map(Batch::sequences);
        let groups = self.ids.map(|ids| groups(py, ids, sequences)).transpose()?;
        let mut columns = columns::<R>(&self.given.others);
        let mut slices: Vec<(&'static str, &[R])> = Vec::with_capacity(self.given.reals.len());
        for (column, given) in &self.given.reals {
            if let Some(slice) = R::slice(given) {
                slices.push((column.name, slice));
                // the number of sequences comes from the first column where there is no batch
                if batch.is_none() && groups.is_none() && column.name == entry.inputs[0].name {
                    columns.set(column.name, Array::Real(slice.to_vec()));
                }
            }
        }
        let zeros;
        if entry.inputs.iter().any(|column| column.name == "bootstrap")
            && slices.iter().all(|(name, _)| *name != "bootstrap")
        {
            zeros = vec![R::narrow(0.0); sequences.unwrap_or(0)];
            slices.push(("bootstrap", &zeros));
        }
        self.count_group_tokens(batch.as_ref(), groups.as_ref(), &mut columns)?;
        let mut outputs = self.room::<R>(batch.as_ref(), groups.as_ref(), &columns)?;
        let numbers = if self.given.halves.is_empty() {
            let (config, outputs) = (self.config, &mut outputs);
            let (columns, slices) = (&columns, slices.as_slice());
            // the interpreter is free to run other threads meanwhile
            let ran = py.detach(|| {
                catch_unwind(AssertUnwindSafe(|| {
                    let mut call = catalogue::Call::new(batch, groups, columns, config, outputs).with_slices(slices);
                    entry.call(&mut call).map(|()| call.numbers)
                }))
            });
            match ran {
                Ok(result) => result.map_err(|error| refusal(py, &error))?,
                Err(_) => {
                    return Err(wrong(py, "internal", entry.name, "no fault of the library", "one: please report it"))
                }
            }
        } else {
            half::run(py, entry, self.given, batch, self.config, &mut outputs)?;
            Vec::new()
        };
        self.write(reader, numbers, outputs)
    }

    /// An aggregation by prompt needs the tokens of each prompt. Where the caller has no counts over several
    /// micro-batches, they are those of this batch.
    fn count_group_tokens<R: Slice>(
        &self,
        batch: Option<&Batch<'_>>,
        groups: Option<&Groups<'_>>,
        columns: &mut Columns<R>,
    ) -> PyResult<()> {
        let takes = self.entry.inputs.iter().any(|column| column.name == GROUP_TOKENS);
        let (Some(batch), Some(groups)) = (batch, groups) else { return Ok(()) };
        if takes && columns.get(GROUP_TOKENS).is_none() {
            let mut tokens = vec![0; groups.count()];
            tokenwise::loss::group_tokens(batch, groups, &mut tokens)
                .map_err(|error| crate::error::core(self.py, &error))?;
            columns.set(GROUP_TOKENS, tokens);
        }
        Ok(())
    }

    fn room<R: Slice>(
        &self,
        batch: Option<&Batch<'_>>,
        groups: Option<&Groups<'_>>,
        columns: &Columns<R>,
    ) -> PyResult<Columns<R>> {
        let mut outputs = Columns::new();
        for column in self.entry.outputs {
            let len = if self.entry.name == "shift" {
                batch.map_or(0, Batch::tokens).saturating_mul(self.given.rest_len())
            } else {
                self.entry.length(column.kind, batch, groups, columns)
            };
            if len > isize::MAX as usize / 16 {
                return Err(wrong(self.py, "overflow", column.name, "a size that fits into memory", &len.to_string()));
            }
            let room = match column.element {
                Element::Real => R::SPARE.take(len).map_or_else(|| column.element.zeros(len), Array::Real),
                element => element.zeros(len),
            };
            outputs.set(column.name, room);
        }
        Ok(outputs)
    }

    /// The dimensions of an output.
    fn dims(&self, column: &Column, len: usize) -> PyResult<Vec<usize>> {
        let tokens = || self.given.tokens.as_ref().map_or(Ok(vec![len]), |tokens| tokens.shape.dims());
        let row = |size: usize| {
            tokens().map(|mut dims| {
                dims.push(size);
                dims
            })
        };
        Ok(match column.kind {
            _ if self.entry.name == "shift" => {
                let mut dims = tokens()?;
                dims.extend(&self.given.rest);
                dims
            }
            Kind::Token => tokens()?,
            Kind::Logit => row(self.given.sizes[0].unwrap_or(0))?,
            Kind::TopK => row(self.given.sizes[1].unwrap_or(0))?,
            _ => vec![len],
        })
    }

    /// A single number or array as it is, a report as a dict, anything else as a named tuple.
    fn write<R: Slice>(&self, reader: &Reader<'py>, numbers: Numbers, outputs: Columns<R>) -> PyResult<Py<PyAny>> {
        let (py, entry) = (self.py, self.entry);
        let mut arrays = Vec::with_capacity(entry.outputs.len());
        for ((_, output), column) in outputs.into_iter().zip(entry.outputs) {
            let dims = self.dims(column, output.len())?;
            arrays.push(match output {
                Array::Real(memory) => R::array(py, memory)?.reshape(dims)?.into_any(),
                Array::Double(numbers) => PyArray1::from_vec(py, numbers).reshape(dims)?.into_any(),
                Array::Index(numbers) => PyArray1::from_vec(py, numbers).reshape(dims)?.into_any(),
                Array::Count(numbers) => PyArray1::from_vec(py, numbers).reshape(dims)?.into_any(),
                Array::Flag(flags) => PyArray1::from_vec(py, flags).reshape(dims)?.into_any(),
                _ => py.None().into_bound(py),
            });
        }
        if let Some(like) = &reader.like {
            if !arrays.is_empty() {
                let made = helpers(py)?.getattr(intern!(py, "tensors"))?.call1((like, PyList::new(py, &arrays)?))?;
                arrays = made.extract()?;
            }
        }
        match (entry.numbers, entry.outputs) {
            (["*"], []) => return self.report("", &numbers)?.into_py_any(py),
            ([_], []) => return numbers.first().map(|(_, number)| *number).into_py_any(py),
            ([], [_]) => return arrays.remove(0).into_py_any(py),
            _ => (),
        }
        let mut fields: Vec<Bound<'py, PyAny>> = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for name in entry.numbers {
            let (outer, inner) = parts(name);
            if seen.contains(&outer) {
                continue;
            }
            seen.push(outer);
            let field = match inner {
                None => {
                    numbers.iter().find(|(known, _)| known == name).map(|(_, number)| *number).into_bound_py_any(py)?
                }
                Some(_) => {
                    let report = self.report(&format!("{outer}."), &numbers)?;
                    if report.is_empty() {
                        py.None().into_bound(py)
                    } else {
                        report.into_any()
                    }
                }
            };
            fields.push(field);
        }
        fields.extend(arrays);
        let fields = PyTuple::new(py, fields)?;
        match self.result {
            Some(class) => class.call1(fields)?.into_py_any(py),
            None => fields.into_py_any(py),
        }
    }

    /// The numbers whose keys begin with a prefix, without it.
    fn report(&self, prefix: &str, numbers: &Numbers) -> PyResult<Bound<'py, PyDict>> {
        let report = PyDict::new(self.py);
        for (key, number) in numbers {
            if let Some(key) = key.strip_prefix(prefix) {
                report.set_item(self.source_key(key), number)?;
            }
        }
        Ok(report)
    }

    /// `rewards/0/mean` by the name of the source.
    fn source_key(&self, key: &str) -> String {
        let parts = key.strip_prefix("rewards/").and_then(|rest| rest.split_once('/'));
        let named = parts.and_then(|(place, rest)| Some((self.given.sources.get(place.parse::<usize>().ok()?)?, rest)));
        named.map_or_else(|| key.to_owned(), |(source, rest)| format!("rewards/{source}/{rest}"))
    }
}

/// Columns without numbers of a precision are the same in both.
fn columns<R: Slice>(others: &Columns<f64>) -> Columns<R> {
    let mut columns = Columns::new();
    for (name, array) in others.iter() {
        match array {
            Array::Double(numbers) => columns.set(name, Array::Double(numbers.clone())),
            Array::Index(numbers) => columns.set(name, numbers.clone()),
            Array::Count(numbers) => columns.set(name, numbers.clone()),
            Array::Flag(flags) => columns.set(name, flags.clone()),
            Array::Size(size) => columns.set(name, *size),
            Array::Number(number) => columns.set(name, Array::Number(*number)),
            Array::Text(text) => columns.set(name, Array::Text(text.clone())),
            _ => (),
        }
    }
    columns
}
