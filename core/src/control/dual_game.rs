use super::{
    measure::{distribute, kl_sum, weighted_entropy_sum},
    report::DualGameReport,
    BudgetObservation, BudgetSchedule, CollapseGuard, EntropyBudget, EntropyBudgetConfig, EntropyBudgetState,
    KlControl, KlControlConfig,
};
use crate::{
    error::{check_finite, check_len, Result},
    layout::Batch,
    loss::DualGameLoss,
    math::sqrt,
    metric::{analysis, AnalysisInput, Histogram},
    real::Real,
    statistics::{Divisor, Moments, Spread},
    weight::TokenWeight,
};

/// The settings of [`DualGame`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct DualGameRules {
    /// The controller of the KL price; default [`LinearKl`](super::LinearKl).
    pub kl: KlControlConfig,
    /// The controller of the entropy price.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "crate::spelling::control::BudgetOfGame::deserialize"))]
    pub budget: EntropyBudgetConfig,
}

impl Default for DualGameRules {
    /// Group C1 over 1000 steps: B0 by warm-up, `RewardStdUsage`, λ at most 10, the guard on.
    fn default() -> Self {
        let budget = EntropyBudgetConfig {
            lambda_max: Some(10.0),
            schedule: BudgetSchedule::reward_std_usage(1000),
            guard: CollapseGuard::On,
            ..Default::default()
        };
        Self { kl: KlControlConfig::default(), budget }
    }
}

/// What [`DualGame::step`] reads, all per-token slices action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct DualGameStep<'a, R> {
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: &'a [R],
    /// Log-probabilities of the reference; without them there is no KL and its price does not change.
    pub ref_log_probs: Option<&'a [R]>,
    /// Advantages.
    pub advantages: &'a [R],
    /// Token rewards.
    pub rewards: &'a [R],
    /// The `w` of the budget; the `analysis/…` keys always use the plain one.
    pub weight: TokenWeight<'a, R>,
    /// What the last update of the policy returned; only reported.
    pub last_update: Option<DualGameLoss>,
}

impl<'a, R> DualGameStep<'a, R> {
    /// [`TokenWeight::Plain`], without a reference and before the first update.
    pub const fn new(old_log_probs: &'a [R], advantages: &'a [R], rewards: &'a [R]) -> Self {
        Self { old_log_probs, ref_log_probs: None, advantages, rewards, weight: TokenWeight::Plain, last_update: None }
    }
}

/// The outputs for the distributions of H and of the covariance terms.
#[derive(Debug)]
pub struct DualGameDistribution<'a, R> {
    /// Scratch, [`dual_game_scratch_len`] entries.
    pub scratch: &'a mut [R],
    /// Counts H of every kept token.
    pub entropy: &'a mut Histogram,
    /// Counts `(A − Ā)(log p − mean log p)` of every kept token.
    pub covariance: &'a mut Histogram,
}

/// Entries of [`DualGameDistribution::scratch`]: one per token slot.
pub const fn dual_game_scratch_len(batch: &Batch<'_>) -> usize {
    batch.tokens()
}

/// The state of a [`DualGame`] between two steps.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
pub struct DualGameState {
    /// Steps so far.
    pub step: u64,
    /// The controller of β with its own state.
    pub kl: KlControl,
    /// The state of the budget.
    pub budget: EntropyBudgetState,
}

/// Both controllers of the dual game: the prices of entropy and of KL, updated once per batch from its measurements.
///
/// ```text
/// λ by EntropyBudget from Σ w H, N and the rewards        β by KlControl from the mean of k3(log π_old, log π_ref)
/// H = −p log p      w by TokenWeight, p and log p of the policy that sampled
/// ```
///
/// Call it after the advantages are known and before the update, whose [`DualGameConfig`](crate::loss::DualGameConfig)
/// takes λ and β.
///
/// **Alignment.** Action-aligned.
///
/// **Mask.** Dropped slots are never read and not counted.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit the batch;
/// [`Error::EmptyMask`](crate::Error::EmptyMask) without kept tokens; [`Error::Config`](crate::Error::Config) if a
/// setting is outside its domain or a measurement not finite. The state is then unchanged.
///
/// **Reference.** BNTO, `docs/bnto.md` §8; the keys §2. `reward_std` divides by n, not n − 1.
///
/// # Example
///
/// ```
/// use tokenwise::{control::*, weight::TokenWeight, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let rules = DualGameRules {
///     kl: KlControlConfig::Linear(LinearKlConfig { beta: 0.5, target: 0.0, ..Default::default() }),
///     budget: EntropyBudgetConfig { source: BudgetSource::Given(0.0), learning_rate: 0.5, ..Default::default() },
/// };
/// let mut game = DualGame::new(&rules)?;
/// let report = game.step(
///     &batch,
///     DualGameStep {
///         old_log_probs: &[-0.5, f64::NAN, -0.5],
///         ref_log_probs: Some(&[-0.5, f64::NAN, -0.5]),
///         advantages: &[1.0, f64::NAN, -1.0],
///         rewards: &[0.0, f64::NAN, 1.0],
///         weight: TokenWeight::Plain,
///         last_update: None,
///     },
///     None,
/// )?;
/// assert_eq!((report.kl_per_token, report.beta), (Some(0.0), 0.5));
/// // a budget of 0: all of the usage exceeds it
/// assert_eq!(report.lambda(), 0.5 * report.budget.wh_per_token);
/// assert!(report.entries().any(|(key, value)| key == "dual_game/lambda" && value == report.lambda()));
/// # Ok::<(), tokenwise::Error>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "super::Parts<DualGameRules, DualGameState>"))]
pub struct DualGame {
    config: DualGameRules,
    state: DualGameState,
}

impl DualGame {
    /// A game before its first step.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting is outside its domain.
    pub fn new(config: &DualGameRules) -> Result<Self> {
        let budget = EntropyBudget::new(&config.budget)?.state();
        Ok(Self { config: *config, state: DualGameState { step: 0, kl: KlControl::new(&config.kl)?, budget } })
    }

    /// A game that continues from a state, with the same numbers as the one the state was taken from.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if a setting or a number of the state is outside its domain.
    pub fn restore(config: &DualGameRules, state: DualGameState) -> Result<Self> {
        KlControl::new(&config.kl)?;
        EntropyBudget::restore(&config.budget, state.budget)?;
        Ok(Self { config: *config, state })
    }

    /// The current price of entropy.
    pub const fn lambda(&self) -> f64 {
        self.state.budget.lambda
    }

    /// The current price of KL.
    pub const fn beta(&self) -> f64 {
        self.state.kl.beta()
    }

    /// Its settings.
    pub const fn config(&self) -> &DualGameRules {
        &self.config
    }

    /// Its state.
    pub const fn state(&self) -> DualGameState {
        self.state
    }

    /// Measures a batch, updates both prices, and reports all measurements.
    ///
    /// # Errors
    ///
    /// See the type.
    pub fn step<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: DualGameStep<'_, R>,
        distribution: Option<DualGameDistribution<'_, R>>,
    ) -> Result<DualGameReport> {
        if let Some(ref_log_probs) = input.ref_log_probs {
            check_len("ref_log_probs", ref_log_probs, batch.tokens())?;
        }
        input.weight.check(batch)?;
        if let Some(distribution) = &distribution {
            check_len("scratch", distribution.scratch, batch.tokens())?;
        }
        let DualGameStep { old_log_probs, advantages, rewards, .. } = input;
        let measured = analysis(batch, AnalysisInput { old_log_probs, advantages, rewards })?;
        let kl_per_token =
            input.ref_log_probs.map(|reference| kl_sum(batch, input.old_log_probs, reference) / batch.kept() as f64);
        let wh_sum = match input.weight {
            TokenWeight::Plain => measured.wh_sum,
            _ => weighted_entropy_sum(batch, &input),
        };
        let reward_std = sqrt(Moments::of(batch, rewards)?.variance(Spread::Population, Divisor::Count)?);
        check_finite::<f64>("rewards", reward_std)?;

        // everything that can fail comes before the state changes
        let mut budget = EntropyBudget::restore(&self.config.budget, self.state.budget)?;
        let spent = budget.update(&BudgetObservation {
            step: self.state.step,
            wh_sum,
            token_count: batch.kept() as u64,
            reward_std,
            reward_sum_mean: measured.reward_sum_mean(),
        })?;
        let mut kl = self.state.kl;
        if let Some(value) = kl_per_token {
            kl.update(value, u32::try_from(batch.sequences()).unwrap_or(u32::MAX))?;
        }
        let (entropy, covariance) = match distribution {
            Some(distribution) => distribute(batch, &input, &measured, distribution)?,
            None => (None, None),
        };
        let step = self.state.step;
        self.state = DualGameState { step: step + 1, kl, budget: budget.state() };
        let last_update = input.last_update;
        Ok(DualGameReport {
            step,
            analysis: measured,
            beta: kl.beta(),
            budget: spent,
            kl_per_token,
            reward_std,
            entropy,
            covariance,
            last_update,
        })
    }
}

#[cfg(feature = "serde")]
impl TryFrom<super::Parts<DualGameRules, DualGameState>> for DualGame {
    type Error = crate::Error;
    fn try_from(parts: super::Parts<DualGameRules, DualGameState>) -> Result<Self> {
        Self::restore(&parts.config, parts.state)
    }
}
