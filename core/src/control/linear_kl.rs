use super::window::{Follow, Window};
use crate::error::{check_config, check_finite, check_not_negative, check_positive, Result};

/// Start, target and learning rate of [`LinearKl`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct LinearKlConfig {
    /// The initial coefficient, raised to `beta_min` if below; not negative, default 0.001.
    pub beta: f64,
    /// D, the target KL; not negative, default 0.02.
    pub target: f64,
    /// η_β; positive, default 0.01.
    pub learning_rate: f64,
    /// The lower bound of the coefficient; not negative, default 1e-6.
    pub beta_min: f64,
    /// Whether the target follows the measured KL; default no.
    pub follow: Option<Follow>,
}

impl Default for LinearKlConfig {
    fn default() -> Self {
        Self { beta: 1e-3, target: 0.02, learning_rate: 0.01, beta_min: 1e-6, follow: None }
    }
}

impl LinearKlConfig {
    fn check(&self) -> Result<()> {
        check_not_negative::<f64>("beta", self.beta)?;
        check_not_negative::<f64>("target", self.target)?;
        check_positive::<f64>("learning_rate", self.learning_rate)?;
        check_not_negative::<f64>("beta_min", self.beta_min)?;
        self.follow.map_or(Ok(()), |follow| follow.check())
    }
}

/// The state of a [`LinearKl`] between two steps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct LinearKlState {
    /// The current coefficient.
    pub beta: f64,
    /// The current target KL.
    pub target: f64,
    /// The KL of the last steps, if the target follows it.
    pub window: Window,
}

/// A KL coefficient that changes in proportion to the distance of the KL from its target.
///
/// ```text
/// β ← max(β_min, β + η (KL − D))        with Follow, first: D ← 1.1 · mean of the last 10 KL, including this one
/// ```
///
/// **Alignment.** None: one number per step.
///
/// **Mask.** None. The KL is a mean over kept tokens, such as the `k3` of [`kl_means`](crate::metric::kl_means).
///
/// **Errors.** [`Error::Config`](crate::Error::Config) if a setting is outside its domain or a measured KL is not
/// finite; the state is then unchanged.
///
/// **Reference.** BNTO, `docs/bnto.md` §5.
///
/// # Example
///
/// ```
/// use tokenwise::control::*;
///
/// let config = LinearKlConfig { beta: 0.5, target: 0.25, learning_rate: 0.5, ..Default::default() };
/// let mut controller = LinearKl::new(&config)?;
/// assert_eq!(controller.update(0.75)?, 0.75);
/// assert_eq!(controller.update(-9.0)?, 1e-6);
///
/// // the same controller somewhere else
/// let mut again = LinearKl::restore(&config, controller.state())?;
/// assert_eq!(again.update(0.5), controller.update(0.5));
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "super::Parts<LinearKlConfig, LinearKlState>"))]
pub struct LinearKl {
    config: LinearKlConfig,
    state: LinearKlState,
}

impl LinearKl {
    /// A controller with its initial coefficient.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting is outside its domain.
    pub fn new(config: &LinearKlConfig) -> Result<Self> {
        config.check()?;
        let beta = if config.beta < config.beta_min { config.beta_min } else { config.beta };
        Ok(Self { config: *config, state: LinearKlState { beta, target: config.target, window: Window::default() } })
    }

    /// A controller that continues from a state, with the same numbers as the one the state was taken from.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting or a number of the state is outside its domain.
    pub fn restore(config: &LinearKlConfig, state: LinearKlState) -> Result<Self> {
        config.check()?;
        check_config("beta", "at least beta_min", state.beta, state.beta.is_finite() && state.beta >= config.beta_min)?;
        check_finite::<f64>("target", state.target)?;
        state.window.check()?;
        Ok(Self { config: *config, state })
    }

    /// The current coefficient.
    pub const fn beta(&self) -> f64 {
        self.state.beta
    }

    /// The current target KL.
    pub const fn target(&self) -> f64 {
        self.state.target
    }

    /// Its settings.
    pub const fn config(&self) -> &LinearKlConfig {
        &self.config
    }

    /// Its state.
    pub const fn state(&self) -> LinearKlState {
        self.state
    }

    /// Takes the KL of a step, returns the coefficient of the next step.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if `kl` is not finite.
    pub fn update(&mut self, kl: f64) -> Result<f64> {
        check_finite::<f64>("kl", kl)?;
        if let Some(follow) = self.config.follow {
            if let Some(target) = self.state.window.follow(kl, &follow) {
                self.state.target = target;
            }
        }
        let beta = self.state.beta + self.config.learning_rate * (kl - self.state.target);
        // an overflowed coefficient is discarded: the previous one stays
        let beta = if beta.is_finite() { beta } else { self.state.beta };
        self.state.beta = if beta < self.config.beta_min { self.config.beta_min } else { beta };
        Ok(self.state.beta)
    }
}

#[cfg(feature = "serde")]
impl TryFrom<super::Parts<LinearKlConfig, LinearKlState>> for LinearKl {
    type Error = crate::Error;
    fn try_from(parts: super::Parts<LinearKlConfig, LinearKlState>) -> Result<Self> {
        Self::restore(&parts.config, parts.state)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_target_follows_once_the_window_is_full() {
        let follow = Some(Follow { length: 3, factor: 2.0 });
        let config = LinearKlConfig { beta: 1.0, target: 0.5, learning_rate: 1.0, beta_min: 0.0, follow };
        let mut controller = LinearKl::new(&config).unwrap();
        for (kl, target, beta) in [(0.25, 0.5, 0.75), (0.5, 0.5, 0.75), (0.75, 1.0, 0.5), (4.0, 3.5, 1.0)] {
            assert_eq!(controller.update(kl), Ok(beta));
            assert_eq!(controller.target(), target);
        }
        let before = controller;
        assert!(controller.update(f64::NAN).is_err());
        assert_eq!(controller, before);
    }

    #[test]
    fn bad_settings_and_states_are_refused() {
        let good = LinearKlConfig::default();
        for config in [
            LinearKlConfig { learning_rate: 0.0, ..good },
            LinearKlConfig { beta_min: -1.0, ..good },
            LinearKlConfig { follow: Some(Follow { length: 33, factor: 1.1 }), ..good },
            LinearKlConfig { follow: Some(Follow { length: 0, factor: 1.1 }), ..good },
            LinearKlConfig { follow: Some(Follow { length: 1, factor: f64::NAN }), ..good },
        ] {
            assert!(LinearKl::new(&config).is_err(), "{config:?}");
        }
        let state = LinearKl::new(&good).unwrap().state();
        assert!(LinearKl::restore(&good, LinearKlState { beta: 0.0, ..state }).is_err());
        assert!(LinearKl::restore(&good, LinearKlState { target: f64::NAN, ..state }).is_err());
        assert_eq!(LinearKl::new(&LinearKlConfig { beta: 0.0, ..good }).unwrap().beta(), 1e-6);
    }
}
