//! Controllers over tensors.
//!
//! Most controllers take numbers that a loss or metric has returned, so one call of the core is enough:
//!
//! ```
//! use candle_core::{Device, Tensor};
//! use tokenwise::{
//!     control::{AdaptiveKl, AdaptiveKlConfig},
//!     Batch, Layout, Mask,
//! };
//! use tokenwise_candle::{call, Inputs};
//!
//! let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true; 2]))?;
//! let log_probs = Tensor::new(&[[-0.5_f32, -1.0]], &Device::Cpu)?;
//! let reference = Tensor::new(&[[-1.0_f32, -1.5]], &Device::Cpu)?;
//! let inputs = Inputs::new().with("log_probs", &log_probs).with("ref_log_probs", &reference);
//! let mut controller = AdaptiveKl::new(&AdaptiveKlConfig { target: 0.1, ..Default::default() })?;
//! let before = controller.beta();
//! controller.update(call("kl_means", &batch, &inputs, &())?.number("k1")?, 1)?;
//! assert!(controller.beta() > before); // 0.5 is more than 0.1
//! # Ok::<(), tokenwise_candle::Error>(())
//! ```

use candle_core::{DType, Tensor, WithDType};
use tokenwise::{
    control::{DualGame, DualGameReport, DualGameStep},
    loss::DualGameLoss,
    weight::TokenWeight,
    Batch, Real,
};

use crate::{
    read::{computed, Numbers},
    Error, Result,
};

/// Which tokens the price of entropy applies to.
#[derive(Clone, Copy, Debug, Default)]
#[non_exhaustive]
pub enum Weight<'a> {
    /// [`TokenWeight::Plain`].
    #[default]
    Plain,
    /// [`TokenWeight::KlGated`].
    KlGated,
    /// [`TokenWeight::Structural`] with these weights.
    Structural(&'a Tensor),
}

/// What [`dual_game_step`] measures. All tensors have one entry per token slot.
#[derive(Clone, Copy, Debug)]
pub struct DualGameInput<'a> {
    /// Log-probabilities under the policy that sampled.
    pub old_log_probs: &'a Tensor,
    /// Log-probabilities under the reference, if there is one.
    pub ref_log_probs: Option<&'a Tensor>,
    /// Advantages.
    pub advantages: &'a Tensor,
    /// Rewards.
    pub rewards: &'a Tensor,
    /// Default [`Weight::Plain`].
    pub weight: Weight<'a>,
    /// What the last update reported.
    pub last_update: Option<DualGameLoss>,
}

/// [`DualGame::step`]: measures a batch and updates the prices of entropy and of KL.
///
/// # Errors
///
/// Those of the core; [`Error::DType`] if the tensors do not have one type.
pub fn dual_game_step(game: &mut DualGame, batch: &Batch<'_>, input: DualGameInput<'_>) -> Result<DualGameReport> {
    match input.old_log_probs.dtype() {
        DType::F64 => step::<f64>(game, batch, input),
        _ => step::<f32>(game, batch, input),
    }
}

fn step<R: Real + WithDType>(
    game: &mut DualGame,
    batch: &Batch<'_>,
    input: DualGameInput<'_>,
) -> Result<DualGameReport> {
    let given = if let Weight::Structural(tensor) = input.weight { Some(tensor) } else { None };
    let old = typed::<R>("old_log_probs", input.old_log_probs)?;
    let advantages = typed::<R>("advantages", input.advantages)?;
    let rewards = typed::<R>("rewards", input.rewards)?;
    let reference = input.ref_log_probs.map(|tensor| typed::<R>("ref_log_probs", tensor)).transpose()?;
    let given = given.map(|tensor| typed::<R>("weight", tensor)).transpose()?;

    let [old, advantages, rewards] = [&old, &advantages, &rewards].map(Numbers::<R>::of);
    let (old, advantages, rewards) = (old?, advantages?, rewards?);
    let reference = reference.as_ref().map(Numbers::<R>::of).transpose()?;
    let given = given.as_ref().map(Numbers::<R>::of).transpose()?;
    let mut measured = DualGameStep::new(old.slice()?, advantages.slice()?, rewards.slice()?);
    measured.ref_log_probs = reference.as_ref().map(Numbers::slice).transpose()?;
    measured.last_update = input.last_update;
    measured.weight = match (input.weight, &given) {
        (Weight::Structural(_), Some(given)) => TokenWeight::Structural(given.slice()?),
        (Weight::KlGated, _) => TokenWeight::KlGated,
        _ => TokenWeight::Plain,
    };
    Ok(game.step(batch, measured, None)?)
}

fn typed<R: WithDType>(input: &'static str, tensor: &Tensor) -> Result<Tensor> {
    let computed = computed(input, tensor)?;
    if computed.dtype() == R::DTYPE {
        Ok(computed)
    } else {
        Err(Error::DType { input, expected: R::DTYPE.as_str().into(), got: tensor.dtype() })
    }
}
