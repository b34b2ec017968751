//! The controllers: plain state machines whose state goes in and comes out as a dict.

use pyo3::{
    prelude::*,
    types::{PyDict, PyType},
};
use tokenwise::{
    control::{self, AdaptiveKlConfig, BudgetObservation, BudgetReport, DualGameStep},
    weight::TokenWeight,
};
use tokenwise_catalogue::{Compound, ConfigError, Value};

use crate::{
    columns::TokenColumns,
    error::{config as refused_config, wrong, OrRaise as _},
    read::{Precision, Reader, Slice},
    value::{config, to_python, value},
};

/// The state of a controller as a dict.
fn state<T: serde::Serialize>(py: Python<'_>, machine: &T) -> PyResult<Py<PyAny>> {
    to_python(py, &Value::of(machine).or_raise(py)?)
}

/// A controller from its state.
fn restore<T: for<'de> serde::Deserialize<'de>>(given: &Bound<'_, PyAny>) -> PyResult<T> {
    value("state", given)?.read("state").or_raise(given.py())
}

/// What every controller has: a constructor from settings, `state()`, `from_state(...)`, pickling.
macro_rules! controller {
    ($(#[$doc:meta])* $name:ident, $new:expr, { $($methods:tt)* }) => {
        $(#[$doc])*
        #[pyclass(module = "tokenwise_rl")]
        #[derive(Clone)]
        pub(crate) struct $name(control::$name);

        #[pymethods]
        impl $name {
            #[new]
            #[pyo3(signature = (**settings))]
            fn new(py: Python<'_>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
                let new: fn(Python<'_>, &Value) -> PyResult<control::$name> = $new;
                Ok(Self(new(py, &config(settings)?)?))
            }

            /// Settings and state, as a dict of plain values: for checkpoints.
            fn state(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
                state(py, &self.0)
            }

            /// The controller in a state that :meth:`state` gave.
            #[classmethod]
            fn from_state(_class: &Bound<'_, PyType>, state: &Bound<'_, PyAny>) -> PyResult<Self> {
                Ok(Self(restore(state)?))
            }

            fn __copy__(&self) -> Self {
                self.clone()
            }

            fn __deepcopy__(&self, _memo: &Bound<'_, PyAny>) -> Self {
                self.clone()
            }

            fn __reduce__<'py>(slf: &Bound<'py, Self>) -> PyResult<(Bound<'py, PyAny>, (Py<PyAny>,))> {
                let restore = slf.get_type().getattr("from_state")?;
                Ok((restore, (slf.borrow().state(slf.py())?,)))
            }

            $($methods)*
        }
    };
}

controller! {
    /// A coefficient of the KL penalty that never moves.
    FixedKl, |py, value| {
        let Some(Value::Number(beta)) = value.get("beta") else {
            return Err(wrong(py, "missing", "beta", "a number", "nothing"));
        };
        control::FixedKl::new(*beta).or_raise(py)
    }, {
        /// Takes the KL of a step over so many samples, returns the coefficient of the next.
        fn update(&mut self, py: Python<'_>, kl: f64, samples: u32) -> PyResult<f64> {
            self.0.update(kl, samples).or_raise(py)
        }

        /// The coefficient.
        #[getter]
        fn beta(&self) -> f64 {
            self.0.beta()
        }
    }
}

controller! {
    /// The proportional controller of Ziegler et al. (2019), as verl and TRL have it.
    AdaptiveKl, |py, value| {
        control::AdaptiveKl::new(&value.read::<AdaptiveKlConfig>("config").or_raise(py)?).or_raise(py)
    }, {
        /// Takes the KL of a step over so many samples, returns the coefficient of the next.
        fn update(&mut self, py: Python<'_>, kl: f64, samples: u32) -> PyResult<f64> {
            self.0.update(kl, samples).or_raise(py)
        }

        /// The coefficient.
        #[getter]
        fn beta(&self) -> f64 {
            self.0.beta()
        }
    }
}

controller! {
    /// A coefficient that moves in proportion to the distance of the KL from its target.
    LinearKl, |py, value| control::LinearKl::new(&value.read("config").or_raise(py)?).or_raise(py), {
        /// Takes the KL of a step, returns the coefficient of the next.
        fn update(&mut self, py: Python<'_>, kl: f64) -> PyResult<f64> {
            self.0.update(kl).or_raise(py)
        }

        /// The coefficient.
        #[getter]
        fn beta(&self) -> f64 {
            self.0.beta()
        }

        /// The target, which may adapt.
        #[getter]
        fn target(&self) -> f64 {
            self.0.target()
        }
    }
}

controller! {
    /// The multiplier of the entropy budget: it rises while more is used than the budget allows.
    EntropyBudget, |py, value| control::EntropyBudget::new(&value.read("config").or_raise(py)?).or_raise(py), {
        /// Takes a step, returns what the controller made of it.
        #[pyo3(signature = (*, step, wh_sum, token_count, reward_std = 0.0, reward_sum_mean = 0.0))]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            step: u64,
            wh_sum: f64,
            token_count: u64,
            reward_std: f64,
            reward_sum_mean: f64,
        ) -> PyResult<Bound<'py, PyDict>> {
            let mut seen = BudgetObservation::default();
            (seen.step, seen.wh_sum, seen.token_count) = (step, wh_sum, token_count);
            (seen.reward_std, seen.reward_sum_mean) = (reward_std, reward_sum_mean);
            report(py, &self.0.update(&seen).or_raise(py)?)
        }

        /// The multiplier.
        #[getter]
        fn lambda_(&self) -> f64 {
            self.0.lambda()
        }
    }
}

fn report<'py>(py: Python<'py>, found: &BudgetReport) -> PyResult<Bound<'py, PyDict>> {
    let report = PyDict::new(py);
    report.set_item("lambda", found.lambda)?;
    report.set_item("budget", found.budget)?;
    report.set_item("budget_per_token", found.budget_per_token)?;
    report.set_item("wh_per_token", found.wh_per_token)?;
    report.set_item("usage_ratio", found.usage_ratio)?;
    report.set_item("warm_up_finished", found.warm_up_finished)?;
    report.set_item("plateau", found.plateau)?;
    report.set_item("collapse", found.collapse)?;
    Ok(report)
}

controller! {
    /// The dual game of BNTO: both multipliers, moved once per batch by what the batch shows.
    DualGame, |py, value| control::DualGame::new(&value.read("config").or_raise(py)?).or_raise(py), {
        /// Measures a batch, moves both multipliers, and returns everything that is logged, under its keys.
        #[pyo3(signature = (
            *, old_log_probs, advantages, rewards, mask = None, cu_seqlens = None, ref_log_probs = None,
            weight = "plain", structural = None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn step<'py>(
            &mut self,
            py: Python<'py>,
            old_log_probs: &Bound<'py, PyAny>,
            advantages: &Bound<'py, PyAny>,
            rewards: &Bound<'py, PyAny>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            ref_log_probs: Option<&Bound<'py, PyAny>>,
            weight: &str,
            structural: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<Bound<'py, PyDict>> {
            let mut reader = Reader::new(py);
            let given = [
                ("old_log_probs", Some(old_log_probs)),
                ("advantages", Some(advantages)),
                ("rewards", Some(rewards)),
                ("ref_log_probs", ref_log_probs),
                ("structural", structural),
            ];
            let columns = TokenColumns::read(&mut reader, given, mask, cu_seqlens)?;
            let found = match columns.precision {
                Precision::Single => self.step_in::<f32>(py, &columns, weight)?,
                Precision::Double => self.step_in::<f64>(py, &columns, weight)?,
            };
            let entries = PyDict::new(py);
            for (key, number) in found.entries() {
                entries.set_item(key, number)?;
            }
            Ok(entries)
        }

        /// The multiplier of the entropy budget.
        #[getter]
        fn lambda_(&self) -> f64 {
            self.0.lambda()
        }

        /// The coefficient of the KL.
        #[getter]
        fn beta(&self) -> f64 {
            self.0.beta()
        }
    }
}

impl DualGame {
    fn step_in<R: Slice + Compound>(
        &mut self,
        py: Python<'_>,
        columns: &TokenColumns<'_>,
        weight: &str,
    ) -> PyResult<control::DualGameReport> {
        let required = |name| columns.required(name);
        let mut step = DualGameStep::new(required("old_log_probs"), required("advantages"), required("rewards"));
        step.ref_log_probs = columns.optional("ref_log_probs");
        step.weight = match weight {
            "plain" => TokenWeight::Plain,
            "kl-gated" => TokenWeight::KlGated,
            "structural" => match columns.optional("structural") {
                Some(weights) => TokenWeight::Structural(weights),
                None => return Err(wrong(py, "missing", "structural", "an array", "nothing")),
            },
            other => {
                return Err(refused_config(
                    py,
                    &ConfigError::unknown_choice("weight", "plain, kl-gated, structural", other),
                ))
            }
        };
        R::step(&mut self.0, &columns.tokens.batch(py)?, step).or_raise(py)
    }
}
