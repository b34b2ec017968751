//! States that merge without rounding: what ranks and files exchange.

use std::collections::HashMap;

use numpy::{PyArray1, PyArrayMethods as _, PyReadonlyArray1};
use pyo3::{
    intern,
    prelude::*,
    types::{PyBytes, PyDict, PyType},
};
use tokenwise::{
    advantage::WhitenConfig,
    divergence::KlInput,
    exact::{self, Partial as _},
    metric::{
        AnalysisInput, ClipConfig, ExplainedVarianceConfig, Lengths, RatioInput, VarianceConfig, VerlConfig, VerlInput,
    },
    Mask, MeanConfig, PairInput, Spread,
};

use crate::{
    columns::{in_precision, TokenColumns},
    error::{wrong, OrRaise as _},
    read::{helpers, Reader, Slice},
    value::config,
};

/// Limbs or peaks as an array of NumPy.
pub(crate) fn array<'py>(py: Python<'py>, numbers: &[i64]) -> Bound<'py, PyArray1<i64>> {
    PyArray1::from_slice(py, numbers)
}

pub(crate) fn slice<'a>(name: &str, given: &'a PyReadonlyArray1<'_, i64>, py: Python<'_>) -> PyResult<&'a [i64]> {
    given.as_slice().map_err(|_| wrong(py, "layout", name, "a contiguous array", "one with steps"))
}

/// What every state has: merging, limbs, bytes, pickling.
macro_rules! state {
    ($(#[$doc:meta])* $name:ident, { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(module = "tokenwise_rl")]
        #[derive(Clone, Default)]
        pub(crate) struct $name(exact::$name);

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
            fn limbs<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
                array(py, self.0.limbs())
            }

            /// What ranks exchange besides: a maximum over them is a merge. Empty in most states.
            fn peaks<'py>(&self, py: Python<'py>) -> Bound<'py, PyArray1<i64>> {
                array(py, self.0.peaks())
            }

            /// The state whose limbs were summed, and whose peaks were maximised, over ranks.
            #[classmethod]
            #[pyo3(signature = (limbs, peaks = None))]
            fn from_limbs(
                _class: &Bound<'_, PyType>,
                py: Python<'_>,
                limbs: PyReadonlyArray1<'_, i64>,
                peaks: Option<PyReadonlyArray1<'_, i64>>,
            ) -> PyResult<Self> {
                let peaks = peaks.as_ref().map(|peaks| slice("peaks", peaks, py)).transpose()?.unwrap_or_default();
                exact::$name::from_limbs(slice("limbs", &limbs, py)?, peaks).map(Self).or_raise(py)
            }

            /// The state as bytes, with a version: the same for the same data, however it was split.
            fn to_bytes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyBytes>> {
                let mut bytes = vec![0; exact::$name::bytes_len()];
                self.0.write_bytes(&mut bytes).or_raise(py)?;
                Ok(PyBytes::new(py, &bytes))
            }

            /// The state that :meth:`to_bytes` gave.
            #[classmethod]
            fn from_bytes(_class: &Bound<'_, PyType>, py: Python<'_>, data: &[u8]) -> PyResult<Self> {
                exact::$name::from_bytes(data).map(Self).or_raise(py)
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

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
                let restore = slf.get_type().getattr("from_bytes")?;
                Ok((restore, (slf.borrow().to_bytes(slf.py())?,)))
            }

            $($methods)*
        }
    };
}

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

state! {
    /// Count, sum and sum of squares of some numbers, not rounded.
    ExactMoments, {
        /// Adds the sums of the sequences: the same bytes for any split by sequences.
        #[pyo3(signature = (values, *, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            values: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let given = [("values", Some(values))];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let values = columns.required::<R>("values");
                py.detach(|| self.0.update(&batch, values)).or_raise(py)
            })
        }

        /// Adds every kept entry by itself, for sequences that are cut: the same bytes for any split.
        #[pyo3(signature = (values, *, mask = None, cu_seqlens = None))]
        fn update_by_number<'py>(
            &mut self,
            py: Python<'py>,
            values: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let given = [("values", Some(values))];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let values = columns.required::<R>("values");
                py.detach(|| self.0.update_by_number(&batch, values)).or_raise(py)
            })
        }

        /// How many numbers were added.
        #[getter]
        fn count(&self) -> u64 {
            self.0.len()
        }

        /// The mean, rounded once.
        #[pyo3(signature = (**settings))]
        fn mean(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
            let settings: MeanConfig = config(settings)?.read("config").or_raise(py)?;
            self.0.moments().mean_by(settings.divisor).or_raise(py)
        }

        /// The variance, as ``tokenwise_rl.variance`` gives it.
        #[pyo3(signature = (**settings))]
        fn variance(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
            let settings: VarianceConfig = config(settings)?.read("config").or_raise(py)?;
            self.0.moments().variance(settings.spread, settings.divisor).or_raise(py)
        }

        /// ``(Σ x)² / Σ x²``, for numbers that are weights.
        fn effective_sample_size(&self, py: Python<'_>) -> PyResult<f64> {
            self.0.effective_sample_size().or_raise(py)
        }

        /// ``tokenwise_rl.whiten`` by the mean and spread of this state.
        #[pyo3(signature = (values, *, mask = None, cu_seqlens = None, **settings))]
        fn whiten<'py>(
            &self,
            py: Python<'py>,
            values: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyAny>> {
            let mut reader = Reader::new(py);
            let columns = TokenColumns::read(&mut reader, [("values", Some(values))], mask, cu_seqlens)?;
            let settings: WhitenConfig = config(settings)?.read("config").or_raise(py)?;
            let whitened = in_precision!(columns, self.whitened::<R>(py, &columns, &settings)?);
            match &reader.like {
                Some(like) => helpers(py)?.getattr(intern!(py, "tensors"))?.call1((like, vec![whitened]))?.get_item(0),
                None => Ok(whitened),
            }
        }
    }
}

impl ExactMoments {
    fn whitened<'py, R: Slice>(
        &self,
        py: Python<'py>,
        columns: &TokenColumns<'py>,
        settings: &WhitenConfig,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (batch, values) = (columns.tokens.batch(py)?, columns.required::<R>("values"));
        let mut out = R::SPARE.take(values.len()).unwrap_or_else(|| vec![R::narrow(0.0); values.len()]);
        py.detach(|| self.0.whiten(&batch, values, settings, &mut out)).or_raise(py)?;
        Ok(R::array(py, out)?.reshape(columns.tokens.shape.dims()?)?.into_any())
    }
}

state! {
    /// Count, sums, and sums of squares and products of pairs of numbers, not rounded.
    ExactCoMoments, {
        /// Adds the sums of the sequences: the same bytes for any split by sequences.
        #[pyo3(signature = (x, y, *, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            x: &Bound<'py, PyAny>,
            y: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let given = [("x", Some(x)), ("y", Some(y))];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let input = PairInput::<R> { x: columns.required("x"), y: columns.required("y") };
                py.detach(|| self.0.update(&batch, input)).or_raise(py)
            })
        }

        /// Adds every kept pair by itself, for sequences that are cut: the same bytes for any split.
        #[pyo3(signature = (x, y, *, mask = None, cu_seqlens = None))]
        fn update_by_number<'py>(
            &mut self,
            py: Python<'py>,
            x: &Bound<'py, PyAny>,
            y: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let given = [("x", Some(x)), ("y", Some(y))];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let input = PairInput::<R> { x: columns.required("x"), y: columns.required("y") };
                py.detach(|| self.0.update_by_number(&batch, input)).or_raise(py)
            })
        }

        /// How many pairs were added.
        #[getter]
        fn count(&self) -> u64 {
            self.0.len()
        }

        /// Count, means, sums of squared deviations and of their products, each rounded once.
        fn co_moments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            let found = self.0.co_moments();
            let dict = entries(py, [
                ("mean_x", found.mean_x),
                ("mean_y", found.mean_y),
                ("m2_x", found.m2_x),
                ("m2_y", found.m2_y),
                ("co_moment", found.co_moment),
            ])?;
            dict.set_item("count", found.count)?;
            Ok(dict)
        }

        /// The covariance, divided by ``n − 1`` or (``population=True``) by ``n``.
        #[pyo3(signature = (*, population = false))]
        fn covariance(&self, py: Python<'_>, population: bool) -> PyResult<f64> {
            let spread = if population { Spread::Population } else { Spread::Sample };
            self.0.co_moments().covariance(spread).or_raise(py)
        }

        /// Pearson's correlation.
        fn correlation(&self, py: Python<'_>) -> PyResult<f64> {
            self.0.co_moments().correlation().or_raise(py)
        }

        /// ``tokenwise_rl.explained_variance`` with the returns as ``x`` and the values as ``y``.
        #[pyo3(signature = (**settings))]
        fn explained_variance(&self, py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<f64> {
            let settings: ExplainedVarianceConfig = config(settings)?.read("config").or_raise(py)?;
            self.0.explained_variance(&settings).or_raise(py)
        }
    }
}

state! {
    /// The sums behind the five ``analysis/…`` keys, not rounded.
    ExactAnalysis, {
        /// Adds the kept tokens of a batch.
        #[pyo3(signature = (*, old_log_probs, advantages, rewards, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            old_log_probs: &Bound<'py, PyAny>,
            advantages: &Bound<'py, PyAny>,
            rewards: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let given =
                [("old_log_probs", Some(old_log_probs)), ("advantages", Some(advantages)), ("rewards", Some(rewards))];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let input = AnalysisInput::<R> {
                    old_log_probs: columns.required("old_log_probs"),
                    advantages: columns.required("advantages"),
                    rewards: columns.required("rewards"),
                };
                py.detach(|| self.0.update(&batch, input)).or_raise(py)
            })
        }

        /// The five keys of all batches together.
        fn analysis<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
            entries(py, self.0.analysis().or_raise(py)?.entries())
        }
    }
}

state! {
    /// The sums of every KL estimate, not rounded.
    ExactKl, {
        /// Adds the kept tokens of a batch.
        #[pyo3(signature = (*, log_probs, ref_log_probs, mask = None, cu_seqlens = None))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            log_probs: &Bound<'py, PyAny>,
            ref_log_probs: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let given = [("log_probs", Some(log_probs)), ("ref_log_probs", Some(ref_log_probs))];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let (log_probs, ref_log_probs) = (columns.required("log_probs"), columns.required("ref_log_probs"));
                let input = KlInput::<R> { log_probs, ref_log_probs };
                py.detach(|| self.0.update(&batch, input)).or_raise(py)
            })
        }

        /// ``tokenwise_rl.kl_means`` of all batches together, as a dict.
        #[pyo3(signature = (**settings))]
        fn means<'py>(&self, py: Python<'py>, settings: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
            let settings: MeanConfig = config(settings)?.read("config").or_raise(py)?;
            let found = self.0.means(&settings).or_raise(py)?;
            entries(py, [("k1", found.k1), ("abs", found.abs), ("k2", found.k2), ("k3", found.k3)])
        }
    }
}

state! {
    /// How many tokens the clip holds, on which side, and of how many.
    ExactClip, {
        /// Adds the kept tokens of a batch; the settings are those of ``tokenwise_rl.clip_fractions``.
        #[pyo3(signature = (*, log_probs, old_log_probs, advantages, mask = None, cu_seqlens = None, **settings))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            log_probs: &Bound<'py, PyAny>,
            old_log_probs: &Bound<'py, PyAny>,
            advantages: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<()> {
            let settings: ClipConfig = config(settings)?.read("config").or_raise(py)?;
            let given = [
                ("log_probs", Some(log_probs)),
                ("old_log_probs", Some(old_log_probs)),
                ("advantages", Some(advantages)),
            ];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let input = RatioInput::<R> {
                    log_probs: columns.required("log_probs"),
                    old_log_probs: columns.required("old_log_probs"),
                    advantages: columns.required("advantages"),
                };
                py.detach(|| self.0.update(&batch, input, &settings)).or_raise(py)
            })
        }

        /// ``tokenwise_rl.clip_fractions`` of all batches together, as a dict.
        #[pyo3(signature = (**settings))]
        fn fractions<'py>(
            &self,
            py: Python<'py>,
            settings: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<Bound<'py, PyDict>> {
            let settings: ClipConfig = config(settings)?.read("config").or_raise(py)?;
            let found = self.0.fractions(&settings).or_raise(py)?;
            entries(
                py,
                [("clipped", found.clipped), ("low", found.low), ("high", found.high), ("dual", found.dual)],
            )
        }
    }
}

/// The columns of [`ExactVerl`].
const VERL: [&str; 12] = [
    "scores",
    "rewards",
    "advantages",
    "returns",
    "values",
    "predictions",
    "log_probs",
    "ref_log_probs",
    "old_log_probs",
    "rollout_log_probs",
    "old_entropies",
    "entropies",
];

state! {
    /// The sums and extremes behind the keys that verl logs for a batch, not rounded.
    ExactVerl, {
        /// Adds a batch: the arrays of ``tokenwise_rl.verl_metrics``, by name. Lengths are given as
        /// ``{"tokens": …, "limit": …}``.
        #[pyo3(signature = (
            *, mask = None, cu_seqlens = None, response_lengths = None, prompt_lengths = None,
            mask_before_rejection = None, config = None, **columns
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            response_lengths: Option<&Bound<'py, PyAny>>,
            prompt_lengths: Option<&Bound<'py, PyAny>>,
            mask_before_rejection: Option<&Bound<'py, PyAny>>,
            config: Option<&Bound<'py, PyDict>>,
            columns: Option<&Bound<'py, PyDict>>,
        ) -> PyResult<()> {
            let settings = self::config(config)?;
            let settings: VerlConfig<'_> = settings.read("config").or_raise(py)?;
            let given: HashMap<String, Bound<'py, PyAny>> =
                columns.map(|columns| columns.extract()).transpose()?.unwrap_or_default();
            if let Some(unknown) = given.keys().find(|name| !VERL.contains(&name.as_str())) {
                return Err(wrong(py, "choice", unknown, &format!("one of {}", VERL.join(", ")), unknown));
            }
            let mut reader = Reader::new(py);
            let columns =
                TokenColumns::read(&mut reader, VERL.map(|name| (name, given.get(name))), mask, cu_seqlens)?;
            let mut lengths = |name, given: Option<&Bound<'py, PyAny>>| {
                given.filter(|given| !given.is_none()).map(|given| {
                    let tokens = reader.indices(name, &given.get_item("tokens")?, None)?;
                    Ok::<_, PyErr>((tokens, given.get_item("limit")?.extract::<u32>()?))
                }).transpose()
            };
            let responses = lengths("response_lengths", response_lengths)?;
            let prompts = lengths("prompt_lengths", prompt_lengths)?;
            let before = mask_before_rejection.map(|mask| reader.flags("mask_before_rejection", mask)).transpose()?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let optional = |name| columns.optional::<R>(name);
                let mut input = VerlInput::<R> {
                    scores: optional("scores"),
                    rewards: optional("rewards"),
                    advantages: optional("advantages"),
                    returns: optional("returns"),
                    values: optional("values"),
                    predictions: optional("predictions"),
                    log_probs: optional("log_probs"),
                    ref_log_probs: optional("ref_log_probs"),
                    old_log_probs: optional("old_log_probs"),
                    rollout_log_probs: optional("rollout_log_probs"),
                    old_entropies: optional("old_entropies"),
                    entropies: optional("entropies"),
                    ..Default::default()
                };
                if let Some((tokens, limit)) = &responses {
                    input.response_lengths = Some(Lengths { tokens: tokens.as_slice()?, limit: *limit });
                }
                if let Some((tokens, limit)) = &prompts {
                    input.prompt_lengths = Some(Lengths { tokens: tokens.as_slice()?, limit: *limit });
                }
                if let Some(before) = &before {
                    input.mask_before_rejection = Some(Mask::new(before.as_slice()?));
                }
                py.detach(|| self.0.update(&batch, &input, &settings)).or_raise(py)
            })
        }

        /// The keys of all batches together, as a dict; the settings are those of ``tokenwise_rl.verl_metrics``.
        #[pyo3(signature = (**settings))]
        fn metrics<'py>(&self, py: Python<'py>, settings: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
            let settings = config(settings)?;
            let settings: VerlConfig<'_> = settings.read("config").or_raise(py)?;
            entries(py, self.0.metrics(&settings).or_raise(py)?.entries())
        }
    }
}
