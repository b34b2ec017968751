//! States that merge without rounding: what ranks and files exchange.

mod analysis;
mod clip;
mod clip_cov;
mod co_moments;
mod kl;
mod kl_cov;
mod m2po;
mod moments;
mod openrlhf;
mod rollout;
mod selection;
mod trl;
mod variance_proxy;
mod verl;

use std::collections::HashMap;

use numpy::{PyArray1, PyReadonlyArray1, PyReadonlyArrayDyn};
use pyo3::{prelude::*, types::PyDict};
use tokenwise::metric::Lengths;

pub(crate) use self::{
    analysis::ExactAnalysis, clip::ExactClip, clip_cov::ClipCov, co_moments::ExactCoMoments, kl::ExactKl,
    kl_cov::KlCov, m2po::M2po, moments::ExactMoments, openrlhf::ExactOpenRlhf, rollout::ExactCriterion,
    rollout::ExactRejection, rollout::ExactRolloutWeights, selection::Selection, trl::ExactTrl,
    variance_proxy::ExactVarianceProxy, verl::ExactVerl,
};
use crate::{
    columns::TokenColumns,
    error::wrong,
    read::{Given, Precision, Reader, Slice},
};

/// Limbs or peaks as an array of NumPy.
pub(crate) fn array<'py>(py: Python<'py>, numbers: &[i64]) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_slice(py, numbers)
}

pub(crate) fn slice<'a>(name: &str, given: &'a PyReadonlyArray1<'_, i64>, py: Python<'_>) -> PyResult<&'a [i64]> {
    given.as_slice().map_err(|_| wrong(py, "layout", name, "a contiguous array", "one with steps"))
}

/// Adds token columns, given by name, to a state: reads them, and computes with the slices of those names while the
/// interpreter is free to run other threads.
macro_rules! update {
    ($py:ident, [$($column:ident),+], $mask:ident, $cu_seqlens:ident, |$batch:ident| $update:expr) => {{
        let given = [$((stringify!($column), Some($column))),+];
        let mut reader = $crate::read::Reader::new($py);
        let columns = $crate::columns::TokenColumns::read(&mut reader, given, $mask, $cu_seqlens)?;
        let $batch = columns.tokens.batch($py)?;
        $crate::columns::in_precision!(columns, {
            let ($($column,)+) = ($(columns.required::<R>(stringify!($column)),)+);
            $crate::error::OrRaise::or_raise($py.detach(|| $update), $py)
        })
    }};
}

/// The token columns of a framework's metrics: `COLUMNS`, their names, and `input`, which fills them in where they were
/// given.
macro_rules! token_columns {
    ($input:ident: $($name:ident),+ $(,)?) => {
        const COLUMNS: &[&str] = &[$(stringify!($name)),+];

        fn input<'a, R: $crate::read::Slice>(columns: &'a $crate::columns::TokenColumns<'_>) -> $input<'a, R> {
            $input { $($name: columns.optional(stringify!($name)),)+ ..Default::default() }
        }
    };
}

/// What every state has: merging, limbs, bytes, pickling. `metrics: Config` adds the method of that name.
macro_rules! state {
    ($(#[$doc:meta])* $name:ident, metrics: $config:ty, { $($methods:tt)* }) => {
        $crate::exact::state! {
            $(#[$doc])* $name, {
                /// The keys of all batches together, as a dict; the settings are those of the plain function.
                #[pyo3(signature = (**settings))]
                fn metrics<'py>(
                    &self,
                    py: Python<'py>,
                    settings: Option<&Bound<'py, pyo3::types::PyDict>>,
                ) -> PyResult<Bound<'py, pyo3::types::PyDict>> {
                    let settings = $crate::value::config(settings)?;
                    let settings: $config = settings.read("config").or_raise(py)?;
                    $crate::exact::entries(py, self.0.metrics(&settings).or_raise(py)?.entries())
                }

                $($methods)*
            }
        }
    };
    ($(#[$doc:meta])* $name:ident, { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(module = "tokenwise_rl")]
        #[derive(Clone, Default)]
        pub(crate) struct $name(pub(super) tokenwise::exact::$name);

        #[pymethods]
        impl $name {
            #[new]
            fn new() -> Self {
                Self::default()
            }

            /// Joins the state of other data to this one.
            fn merge(&mut self, other: PyRef<'_, Self>) {
                self.0.merge(&other.0);
            }

            /// What ranks exchange: a sum over them is a merge.
            fn limbs<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<i64>> {
                $crate::exact::array(py, self.0.limbs())
            }

            /// What ranks exchange besides: a maximum over them is a merge. Empty in most states.
            fn peaks<'py>(&self, py: Python<'py>) -> Bound<'py, numpy::PyArray1<i64>> {
                $crate::exact::array(py, self.0.peaks())
            }

            /// The state whose limbs were summed, and whose peaks were maximised, over ranks.
            #[classmethod]
            #[pyo3(signature = (limbs, peaks = None))]
            fn from_limbs(
                _class: &Bound<'_, pyo3::types::PyType>,
                py: Python<'_>,
                limbs: numpy::PyReadonlyArray1<'_, i64>,
                peaks: Option<numpy::PyReadonlyArray1<'_, i64>>,
            ) -> PyResult<Self> {
                let peaks = peaks.as_ref().map(|peaks| $crate::exact::slice("peaks", peaks, py));
                let peaks = peaks.transpose()?.unwrap_or_default();
                let limbs = $crate::exact::slice("limbs", &limbs, py)?;
                tokenwise::exact::$name::from_limbs(limbs, peaks).map(Self).or_raise(py)
            }

            /// The state as bytes, with a version: the same for the same data, however it was split.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, pyo3::types::PyBytes>> {
                let mut bytes = vec![0; tokenwise::exact::$name::bytes_len()];
                self.0.write_bytes(&mut bytes).or_raise(py)?;
                Ok(pyo3::types::PyBytes::new(py, &bytes))
            }

            /// The state that :meth:`to_bytes` gave.
            #[classmethod]
            fn from_bytes(_class: &Bound<'_, pyo3::types::PyType>, py: Python<'_>, data: &[u8]) -> PyResult<Self> {
                tokenwise::exact::$name::from_bytes(data).map(Self).or_raise(py)
            }

            fn __eq__(&self, other: PyRef<'_, Self>) -> bool {
                self.0 == other.0
            }

            fn __copy__(&self) -> Self {
                self.clone()
            }

            fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
                self.clone()
            }

            fn __reduce__<'py>(
                slf: &Bound<'py, Self>,
            ) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, pyo3::types::PyBytes>,))> {
                let restore = slf.get_type().getattr("from_bytes")?;
                Ok((restore, (slf.borrow().to_bytes(slf.py())?,)))
            }

            $($methods)*
        }
    };
}
pub(crate) use {state, token_columns, update};

fn entries<'py>(
    py: Python<'py>,
    entries: impl IntoIterator<Item = (&'static str, f64)>,
) -> PyResult<Bound<'py, PyDict>> {
    let dict = PyDict::new(py);
    for (key, number) in entries {
        dict.set_item(key, number)?;
    }
    Ok(dict)
}

/// The token columns of a call, by name, of which any may be missing.
fn read_some<'py>(
    reader: &mut Reader<'py>,
    names: &[&'static str],
    columns: Option<&Bound<'py, PyDict>>,
    mask: Option<&Bound<'py, PyAny>>,
    cu_seqlens: Option<&Bound<'py, PyAny>>,
) -> PyResult<TokenColumns<'py>> {
    let given: HashMap<String, Bound<'py, PyAny>> =
        columns.map(|columns| columns.extract()).transpose()?.unwrap_or_default();
    if let Some(unknown) = given.keys().find(|name| !names.contains(&name.as_str())) {
        return Err(wrong(reader.py, "choice", unknown, &format!("one of {}", names.join(", ")), unknown));
    }
    TokenColumns::read(reader, names.iter().map(|name| (*name, given.get(*name))), mask, cu_seqlens)
}

/// What was given, unless it is None.
fn some<'a, 'py>(given: Option<&'a Bound<'py, PyAny>>) -> Option<&'a Bound<'py, PyAny>> {
    given.filter(|given| !given.is_none())
}

/// One whole number per sequence, and a limit for them, given as ``{"tokens": …, "limit": …}``.
struct LengthsGiven<'py>(Option<(PyReadonlyArrayDyn<'py, u32>, u32)>);

impl<'py> LengthsGiven<'py> {
    fn read(reader: &mut Reader<'py>, name: &str, given: Option<&Bound<'py, PyAny>>) -> PyResult<Self> {
        let read = |given: &Bound<'py, PyAny>| {
            Ok((reader.indices(name, &given.get_item("tokens")?, None)?, given.get_item("limit")?.extract()?))
        };
        some(given).map(read).transpose().map(Self)
    }

    fn lengths(&self) -> PyResult<Option<Lengths<'_>>> {
        self.0.as_ref().map(|(tokens, limit)| Ok(Lengths { tokens: tokens.as_slice()?, limit: *limit })).transpose()
    }
}

/// The entries of an array that may not have been given.
fn slice_of<'a, T: numpy::Element>(given: &'a Option<PyReadonlyArrayDyn<'_, T>>) -> PyResult<Option<&'a [T]>> {
    Ok(given.as_ref().map(|given| given.as_slice()).transpose()?)
}

/// Numbers of which there is one per sequence, in the precision of the tokens; single precision may become double.
fn reals_of<'py, R: Slice>(
    reader: &mut Reader<'py>,
    name: &str,
    given: &Bound<'py, PyAny>,
    precision: Precision,
) -> PyResult<PyReadonlyArrayDyn<'py, R>> {
    let array = match reader.reals(name, given, false)? {
        Given::Double(_) if precision == Precision::Single => {
            return Err(wrong(reader.py, "dtype", name, precision.name(), Precision::Double.name()));
        }
        Given::Single(array) => array.as_any().clone(),
        Given::Double(array) => array.as_any().clone(),
        Given::Weak(array) => array,
    };
    reader.cast(name, &array, precision)
}
