//! The native part of the Python package `tokenwise_rl`: one call for every formula of the catalogue, and classes for
//! what has a state. `python/tokenwise_rl` gives each formula its own function.

mod call;
mod columns;
mod control;
mod dlpack;
mod domain;
mod error;
mod exact;
mod half;
mod inputs;
mod profile;
mod read;
mod recorder;
mod spare;
mod threads;
mod value;

use pyo3::prelude::*;

/// The native module.
#[pymodule(gil_used = false)]
mod _native {
    #[pymodule_export]
    use super::call::call;
    #[pymodule_export]
    use super::control::{AdaptiveKl, DualGame, EntropyBudget, FixedKl, LinearKl};
    #[pymodule_export]
    use super::dlpack::half_bits_of_dlpack;
    #[pymodule_export]
    use super::exact::{
        ClipCov, ExactAnalysis, ExactClip, ExactCoMoments, ExactCriterion, ExactKl, ExactMoments, ExactOpenRlhf,
        ExactRejection, ExactRolloutWeights, ExactTrl, ExactVarianceProxy, ExactVerl, KlCov, M2po, Selection,
    };
    #[pymodule_export]
    use super::profile::{conventions, profiles, settings};
    #[pymodule_export]
    use super::read::flags;
    #[pymodule_export]
    use super::recorder::{read_history, Recorder};
    #[pymodule_export]
    use super::threads::{get_num_threads, set_num_threads};

    /// The version of the package.
    #[pymodule_export]
    const VERSION: &str = env!("CARGO_PKG_VERSION");

    #[pymodule_init]
    fn init(_module: &pyo3::Bound<'_, pyo3::types::PyModule>) -> pyo3::PyResult<()> {
        super::threads::init();
        Ok(())
    }
}
