use super::{AdaptiveKl, AdaptiveKlConfig, FixedKl, LinearKl, LinearKlConfig};
use crate::error::Result;

/// The choice of the KL controller.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(untagged, try_from = "crate::spelling::control::GivenKlControl"))]
pub enum KlControlConfig {
    /// A [`FixedKl`] with this coefficient.
    Fixed(f64),
    /// An [`AdaptiveKl`].
    Adaptive(AdaptiveKlConfig),
    /// A [`LinearKl`].
    Linear(LinearKlConfig),
}

impl Default for KlControlConfig {
    fn default() -> Self {
        Self::Linear(LinearKlConfig::default())
    }
}

/// One of the KL controllers, with its state.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(clippy::large_enum_variant, reason = "there is no allocator to put the window behind a pointer")]
pub enum KlControl {
    /// Never changes.
    Fixed(FixedKl),
    /// Changes in proportion to the coefficient.
    Adaptive(AdaptiveKl),
    /// Changes in proportion to the distance from the target.
    Linear(LinearKl),
}

impl KlControl {
    /// The controller with its initial coefficient.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting is outside its domain.
    pub fn new(config: &KlControlConfig) -> Result<Self> {
        Ok(match config {
            KlControlConfig::Fixed(beta) => Self::Fixed(FixedKl::new(*beta)?),
            KlControlConfig::Adaptive(config) => Self::Adaptive(AdaptiveKl::new(config)?),
            KlControlConfig::Linear(config) => Self::Linear(LinearKl::new(config)?),
        })
    }

    /// The current coefficient.
    pub const fn beta(&self) -> f64 {
        match self {
            Self::Fixed(controller) => controller.beta(),
            Self::Adaptive(controller) => controller.beta(),
            Self::Linear(controller) => controller.beta(),
        }
    }

    /// Takes the KL of a step over `samples` sequences, returns the coefficient of the next step.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if `kl` is not finite.
    pub fn update(&mut self, kl: f64, samples: u32) -> Result<f64> {
        match self {
            Self::Fixed(controller) => controller.update(kl, samples),
            Self::Adaptive(controller) => controller.update(kl, samples),
            Self::Linear(controller) => controller.update(kl),
        }
    }
}
