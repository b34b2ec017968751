use pyo3::{prelude::*, types::PyDict};
use tokenwise::{
    exact::Partial as _,
    metric::{VarianceProxyConfig, VarianceProxyInput},
    Divisor,
};

use super::{entries, state};
use crate::{
    columns::{in_precision, TokenColumns},
    error::OrRaise as _,
    read::Reader,
    value::{config, value},
};

state! {
    /// The sums behind the proxies of gradient noise, not rounded.
    ExactVarianceProxy, {
        /// Adds a batch: the arrays of ``tokenwise_rl.variance_proxy``.
        #[pyo3(signature = (
            *, old_log_probs, sum_pi_squared, advantages, weights = None, mask = None, cu_seqlens = None, divisor = None
        ))]
        #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
        fn update<'py>(
            &mut self,
            py: Python<'py>,
            old_log_probs: &Bound<'py, PyAny>,
            sum_pi_squared: &Bound<'py, PyAny>,
            advantages: &Bound<'py, PyAny>,
            weights: Option<&Bound<'py, PyAny>>,
            mask: Option<&Bound<'py, PyAny>>,
            cu_seqlens: Option<&Bound<'py, PyAny>>,
            divisor: Option<&Bound<'py, PyAny>>,
        ) -> PyResult<()> {
            let divisor: Divisor = match divisor {
                Some(divisor) => value("divisor", divisor)?.read("divisor").or_raise(py)?,
                None => Divisor::Count,
            };
            let given = [
                ("old_log_probs", Some(old_log_probs)),
                ("sum_pi_squared", Some(sum_pi_squared)),
                ("advantages", Some(advantages)),
                ("weights", weights),
            ];
            let columns = TokenColumns::read(&mut Reader::new(py), given, mask, cu_seqlens)?;
            let batch = columns.tokens.batch(py)?;
            in_precision!(columns, {
                let input = VarianceProxyInput {
                    old_log_probs: columns.required::<R>("old_log_probs"),
                    sum_pi_squared: columns.required("sum_pi_squared"),
                    advantages: columns.required("advantages"),
                    weights: columns.optional("weights"),
                };
                py.detach(|| self.0.update(&batch, input, divisor)).or_raise(py)
            })
        }

        /// ``tokenwise_rl.variance_proxy`` of all batches together, as a dict; the norm is that of all of them.
        #[pyo3(signature = (**settings))]
        fn proxy<'py>(&self, py: Python<'py>, settings: Option<&Bound<'py, PyDict>>) -> PyResult<Bound<'py, PyDict>> {
            let settings: VarianceProxyConfig = config(settings)?.read("config").or_raise(py)?;
            entries(py, self.0.proxy(&settings).or_raise(py)?.entries())
        }
    }
}
