//! The conventions of the frameworks, as settings.

use pyo3::{prelude::*, types::PyDict};
use tokenwise::{profile::Convention, Profile};
use tokenwise_catalogue::{find, ConfigError, Value};

use crate::{
    error::{config as refused_config, OrRaise as _},
    value::to_python,
};

/// A profile by its name.
pub(crate) fn read(py: Python<'_>, name: &str) -> PyResult<Profile> {
    let names = Profile::ALL.map(Profile::name);
    Profile::from_name(name)
        .ok_or_else(|| refused_config(py, &ConfigError::unknown_choice("profile", &names.join(", "), name)))
}

/// The names of all profiles.
#[pyfunction]
pub(crate) fn profiles() -> Vec<&'static str> {
    Profile::ALL.map(Profile::name).to_vec()
}

/// The conventions of a profile: their names, and what they are.
#[pyfunction]
pub(crate) fn conventions<'py>(py: Python<'py>, profile: &str) -> PyResult<Bound<'py, PyDict>> {
    let conventions = read(py, profile)?.conventions();
    let dict = PyDict::new(py);
    for &convention in Convention::ALL {
        dict.set_item(convention.name(), format!("{:?}", conventions.of(convention)))?;
    }
    Ok(dict)
}

/// Names that are reserved in Python with an underscore, as the functions take them, so that a caller who changes one
/// does not give it twice.
fn as_keywords(settings: Value) -> Value {
    let Value::Map(mut pairs) = settings else { return settings };
    for (name, _) in &mut pairs {
        if name == "lambda" {
            name.push('_');
        }
    }
    Value::Map(pairs)
}

/// The settings that follow from a profile, by the name of the formula that takes them.
macro_rules! settings {
    ($($formula:literal => $method:ident,)*) => {
        /// The settings of a formula under a profile, as keyword arguments; none if the frameworks agree on them.
        #[pyfunction]
        pub(crate) fn settings(py: Python<'_>, profile: &str, formula: &str) -> PyResult<Py<PyAny>> {
            let profile = read(py, profile)?;
            let value = match formula {
                $($formula => Value::of(&profile.$method()),)*
                _ if find(formula).is_some() => Ok(Value::EMPTY),
                _ => return Err(refused_config(py, &ConfigError::unknown_choice("formula", "a formula's name", formula))),
            };
            to_python(py, &as_keywords(value.or_raise(py)?))
        }
    };
}
settings! {
    "discounted_returns" => returns,
    "monte_carlo_advantage" => returns,
    "gae" => gae,
    "td_lambda" => td_lambda,
    "n_step_returns" => n_step,
    "gae_decoupled" => gae_decoupled,
    "whiten" => whiten,
    "group_relative" => group,
    "leave_one_out" => leave_one_out,
    "best_of_group" => best_of_group,
    "length_weighted_baseline" => length_weighted,
    "gpg_advantage" => gpg,
    "gdpo" => gdpo,
    "reinforce_plus_plus" => reinforce_plus_plus,
    "reinforce_plus_plus_baseline" => reinforce_plus_plus_baseline,
    "kl_estimate" => kl,
    "kl_gradient" => kl,
    "kl_in_reward" => kl_reward,
    "clipped_rewards" => clipped_rewards,
    "overlong_penalty" => overlong,
    "ppo_clip" => ppo,
    "clip_fractions" => clip_fractions,
    "gspo" => gspo,
    "gmpo" => gmpo,
    "cispo" => cispo,
    "sapo" => sapo,
    "dppo_tv" => dppo,
    "dppo_kl" => dppo,
    "clip_cov" => clip_cov,
    "kl_cov" => kl_cov,
    "reinforce" => reinforce,
    "vespo" => vespo,
    "value_loss" => value,
    "entropy_bonus" => entropy_bonus,
    "rollout_weights" => rollout,
}
