//! Controllers over tensors.
//!
//! Most controllers take numbers that a loss or metric has returned, so one call of the core is enough:
//!
//! ```
//! use burn::tensor::{Device, Tensor};
//! use tokenwise::{
//!     control::{AdaptiveKl, AdaptiveKlConfig},
//!     Batch, Layout, Mask,
//! };
//! use tokenwise_burn::{call, Inputs};
//!
//! let (batch, device) = (Batch::new(Layout::padded(1, 2)?, Mask::new(&[true; 2]))?, Device::flex());
//! let log_probs = Tensor::<2>::from_floats([[-0.5, -1.0]], &device);
//! let reference = Tensor::<2>::from_floats([[-1.0, -1.5]], &device);
//! let inputs = Inputs::new().with("log_probs", &log_probs).with("ref_log_probs", &reference);
//! let mut controller = AdaptiveKl::new(&AdaptiveKlConfig { target: 0.1, ..Default::default() })?;
//! let before = controller.beta();
//! controller.update(call("kl_means", &batch, &inputs, &())?.number("k1")?, 1)?;
//! assert!(controller.beta() > before); // 0.5 is more than 0.1
//! # Ok::<(), tokenwise_burn::Error>(())
//! ```

use burn::tensor::{DType, Element, Tensor};
use tokenwise::{
    control::{DualGame, DualGameReport, DualGameStep},
    loss::DualGameLoss,
    weight::TokenWeight,
    Batch, Real,
};

use crate::{inputs::read, Result};

/// Which tokens the price of entropy applies to.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Weight<'a, const D: usize> {
    /// [`TokenWeight::Plain`].
    #[default]
    Plain,
    /// [`TokenWeight::KlGated`].
    KlGated,
    /// [`TokenWeight::Structural`] with these weights.
    Structural(&'a Tensor<D>),
}

/// What [`dual_game_step`] measures. All tensors have one entry per token slot.
#[derive(Clone, Copy, Debug)]
pub struct DualGameInput<'a, const D: usize> {
    /// Log-probabilities under the policy that sampled.
    pub old_log_probs: &'a Tensor<D>,
    /// Log-probabilities under the reference, if there is one.
    pub ref_log_probs: Option<&'a Tensor<D>>,
    /// Advantages.
    pub advantages: &'a Tensor<D>,
    /// Rewards.
    pub rewards: &'a Tensor<D>,
    /// Default [`Weight::Plain`].
    pub weight: Weight<'a, D>,
    /// What the last update reported.
    pub last_update: Option<DualGameLoss>,
}

/// [`DualGame::step`]: measures a batch and updates the prices of entropy and of KL.
///
/// # Errors
///
/// Those of the core; [`Error::DType`](crate::Error::DType) if the tensors do not have one type.
pub fn dual_game_step<const D: usize>(
    game: &mut DualGame,
    batch: &Batch<'_>,
    input: DualGameInput<'_, D>,
) -> Result<DualGameReport> {
    match input.old_log_probs.dtype() {
        DType::F64 => step::<f64, D>(game, batch, input),
        _ => step::<f32, D>(game, batch, input),
    }
}

fn step<R: Real + Element, const D: usize>(
    game: &mut DualGame,
    batch: &Batch<'_>,
    input: DualGameInput<'_, D>,
) -> Result<DualGameReport> {
    let numbers = |name, tensor: &Tensor<D>| {
        let len = tensor.shape().num_elements();
        read::<R>(name, &tensor.clone().reshape([len]))
    };
    let old = numbers("old_log_probs", input.old_log_probs)?;
    let advantages = numbers("advantages", input.advantages)?;
    let rewards = numbers("rewards", input.rewards)?;
    let reference = input.ref_log_probs.map(|tensor| numbers("ref_log_probs", tensor)).transpose()?;
    let given = match input.weight {
        Weight::Structural(tensor) => Some(numbers("weight", tensor)?),
        _ => None,
    };
    let mut measured = DualGameStep::new(&old, &advantages, &rewards);
    measured.ref_log_probs = reference.as_deref();
    measured.last_update = input.last_update;
    measured.weight = match (input.weight, given.as_deref()) {
        (Weight::Structural(_), Some(given)) => TokenWeight::Structural(given),
        (Weight::KlGated, _) => TokenWeight::KlGated,
        _ => TokenWeight::Plain,
    };
    Ok(game.step(batch, measured, None)?)
}
