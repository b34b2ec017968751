use super::{AdaptiveKl, AdaptiveKlConfig, FixedKl, LinearKl, LinearKlConfig};
use crate::error::Result;

/// Which controller of the price of KL.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub enum KlControlConfig {
    /// A [`FixedKl`] at this price.
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

/// One of the controllers of the price of KL, with its state.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[allow(clippy::large_enum_variant, reason = "there is no allocator to put the window behind a pointer")]
pub enum KlControl {
    /// Never moves.
    Fixed(FixedKl),
    /// Moves in proportion to the price.
    Adaptive(AdaptiveKl),
    /// Moves in proportion to the distance from the target.
    Linear(LinearKl),
}

impl KlControl {
    /// The controller at its first price.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting is out of its domain.
    pub fn new(config: &KlControlConfig) -> Result<Self> {
        Ok(match config {
            KlControlConfig::Fixed(beta) => Self::Fixed(FixedKl::new(*beta)?),
            KlControlConfig::Adaptive(config) => Self::Adaptive(AdaptiveKl::new(config)?),
            KlControlConfig::Linear(config) => Self::Linear(LinearKl::new(config)?),
        })
    }

    /// The price now.
    pub const fn beta(&self) -> f64 {
        match self {
            Self::Fixed(controller) => controller.beta(),
            Self::Adaptive(controller) => controller.beta(),
            Self::Linear(controller) => controller.beta(),
        }
    }

    /// Takes the KL of a step over `samples` sequences, gives the price of the next.
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
