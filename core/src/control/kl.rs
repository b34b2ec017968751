use crate::{
    error::{check_finite, check_not_negative, check_positive, Result},
    math::clamp,
};

/// A KL coefficient that never changes.
///
/// ```text
/// β ← β
/// ```
///
/// **Alignment.** None: one number per step.
///
/// **Mask.** None.
///
/// **Errors.** [`Error::Config`](crate::Error::Config) if β is negative or not finite, or a measured KL is not finite.
///
/// **Reference.** verl 0.9.1 `FixedKLController`, its default, at 0.001.
///
/// # Example
///
/// ```
/// use tokenwise::control::FixedKl;
///
/// let mut controller = FixedKl::new(0.5)?;
/// assert_eq!(controller.update(3.0, 64)?, 0.5);
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct FixedKl {
    beta: f64,
}

impl FixedKl {
    /// A controller with the coefficient `beta`.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if `beta` is negative or not finite.
    pub fn new(beta: f64) -> Result<Self> {
        check_not_negative::<f64>("beta", beta)?;
        Ok(Self { beta })
    }

    /// The coefficient.
    pub const fn beta(&self) -> f64 {
        self.beta
    }

    /// Takes the KL of a step over `samples` sequences; the coefficient does not change.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if `kl` is not finite.
    pub fn update(&mut self, kl: f64, samples: u32) -> Result<f64> {
        check_finite::<f64>("kl", kl)?;
        let _ = samples;
        Ok(self.beta)
    }
}

/// Start, target and horizon of [`AdaptiveKl`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct AdaptiveKlConfig {
    /// The initial coefficient; not negative, default 0.001.
    pub beta: f64,
    /// The target KL; positive, default 0.1.
    pub target: f64,
    /// The number of samples over which the coefficient may change by its full step; positive, default 10 000.
    pub horizon: f64,
}

impl Default for AdaptiveKlConfig {
    fn default() -> Self {
        Self { beta: 1e-3, target: 0.1, horizon: 10_000.0 }
    }
}

/// A KL coefficient that rises while the KL is above its target and falls while it is below.
///
/// ```text
/// β ← β · (1 + clip(KL / target − 1, −0.2, 0.2) · n / horizon)
/// ```
///
/// A coefficient of 0 never changes. If `n` is more than five times the horizon, a low KL flips the sign of β, as it
/// does in the reference.
///
/// **Alignment.** None: one number per step.
///
/// **Mask.** None. The KL is a mean over kept tokens, such as the one
/// [`kl_in_reward`](crate::reward::kl_in_reward) returns.
///
/// **Errors.** [`Error::Config`](crate::Error::Config) if a setting is outside its domain or a measured KL is not
/// finite; the coefficient is then unchanged.
///
/// **Reference.** Ziegler et al. 2019, arXiv:1909.08593, §2.2; verl 0.9.1 `AdaptiveKLController`, `n` the number of
/// sequences, the reward penalised *before* the update; OpenRLHF 0.11 with β 0.01.
///
/// # Example
///
/// ```
/// use tokenwise::control::*;
///
/// let mut controller = AdaptiveKl::new(&AdaptiveKlConfig { beta: 0.5, target: 0.25, horizon: 100.0 })?;
/// assert_eq!(controller.update(0.25, 100)?, 0.5);       // on target
/// assert_eq!(controller.update(9.0, 100)?, 0.6);        // far above: a full step of a fifth
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct AdaptiveKl {
    beta: f64,
    target: f64,
    horizon: f64,
}

impl AdaptiveKl {
    /// A controller with its initial coefficient.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if the coefficient is negative, the target or the horizon not positive,
    /// or one of them not finite.
    pub fn new(config: &AdaptiveKlConfig) -> Result<Self> {
        check_not_negative::<f64>("beta", config.beta)?;
        check_positive::<f64>("target", config.target)?;
        check_positive::<f64>("horizon", config.horizon)?;
        Ok(Self { beta: config.beta, target: config.target, horizon: config.horizon })
    }

    /// The current coefficient.
    pub const fn beta(&self) -> f64 {
        self.beta
    }

    /// Takes the KL of a step over `samples` sequences, returns the coefficient of the next step.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if `kl` is not finite.
    pub fn update(&mut self, kl: f64, samples: u32) -> Result<f64> {
        check_finite::<f64>("kl", kl)?;
        let error = clamp(kl / self.target - 1.0, -0.2, 0.2);
        self.beta *= 1.0 + error * f64::from(samples) / self.horizon;
        Ok(self.beta)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_clipped_on_both_sides_and_bad_numbers_change_nothing() {
        let mut controller = AdaptiveKl::new(&AdaptiveKlConfig::default()).unwrap();
        assert_eq!(controller.update(0.11, 1000), Ok(1e-3 * (1.0 + (0.11 / 0.1 - 1.0) * 1000.0 / 10_000.0)));
        let before = controller.beta();
        assert_eq!(controller.update(0.0, 10_000), Ok(before * 0.8));
        let before = controller;
        assert!(controller.update(f64::NAN, 1).is_err());
        assert_eq!(controller, before);
        for config in [
            AdaptiveKlConfig { target: 0.0, ..Default::default() },
            AdaptiveKlConfig { horizon: -1.0, ..Default::default() },
            AdaptiveKlConfig { beta: f64::INFINITY, ..Default::default() },
        ] {
            assert!(AdaptiveKl::new(&config).is_err());
        }
        assert!(FixedKl::new(-1.0).is_err());
    }
}
