//! The formulas that most trainers use, with inputs and configs as structs instead of names.
//!
//! Each is [`loss()`](crate::loss()) or [`call`](crate::call()) with the names filled in. Aggregation by prompt
//! (`AggregateMode::PromptMean`) needs groups and counts, which are given by name: use [`loss()`](crate::loss()) for
//! it.

use burn::tensor::Tensor;
use tokenwise::{
    advantage::{GaeConfig, GroupConfig, WhitenConfig},
    loss::{
        CispoConfig, DppoConfig, DroConfig, EntropyBonusConfig, GmpoConfig, GspoConfig, KlCovConfig, KlLossConfig,
        LuspoConfig, PpoConfig, ReinforceConfig, SapoConfig, SurrogateConfig, TisLossConfig, ValueConfig, VespoConfig,
    },
    Batch, Groups,
};

use crate::{call, Error, Inputs, Loss, Result, Results};

/// What a policy loss reads. All tensors have one entry per token slot.
#[derive(Clone, Copy, Debug)]
pub struct PolicyInput<'a, const D: usize> {
    /// Log-probabilities under the policy being trained; the gradient goes here.
    pub log_probs: &'a Tensor<D>,
    /// Log-probabilities under the policy that sampled.
    pub old_log_probs: &'a Tensor<D>,
    /// Advantages.
    pub advantages: &'a Tensor<D>,
    /// Rollout weights.
    pub weights: Option<&'a Tensor<D>>,
}

impl<'a, const D: usize> PolicyInput<'a, D> {
    /// Without rollout weights.
    pub const fn new(log_probs: &'a Tensor<D>, old_log_probs: &'a Tensor<D>, advantages: &'a Tensor<D>) -> Self {
        Self { log_probs, old_log_probs, advantages, weights: None }
    }

    /// By name, for losses that need further inputs.
    pub fn named(self) -> Inputs<'a> {
        Inputs::new()
            .with("log_probs", self.log_probs)
            .with("old_log_probs", self.old_log_probs)
            .with("advantages", self.advantages)
            .with_some("weights", self.weights)
    }
}

macro_rules! policy_losses {
    ($($name:ident $config:ty;)*) => {$(
        #[doc = concat!(
            "[`tokenwise::loss::", stringify!($name), "`] as a scalar, with its gradient to the log-probabilities."
        )]
        ///
        /// # Errors
        ///
        /// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
        pub fn $name<const D: usize>(
            batch: &Batch<'_>,
            input: PolicyInput<'_, D>,
            config: &$config,
        ) -> Result<Loss> {
            crate::loss(stringify!($name), batch, &input.named(), config)
        }
    )*

    #[cfg(feature = "wgpu")]
    impl crate::wgpu::OnDevice {$(
        #[doc = concat!("[`", stringify!($name), "()`](crate::typed::", stringify!($name), "()) on the device.")]
        ///
        /// # Errors
        ///
        /// As [`Self::call`].
        pub fn $name<const D: usize>(
            &self,
            batch: &Batch<'_>,
            input: PolicyInput<'_, D>,
            config: &$config,
        ) -> Result<Loss> {
            self.loss(stringify!($name), batch, &input.named(), config)
        }
    )*}
    };
}
policy_losses! {
    surrogate SurrogateConfig<'_>;
    ppo_clip PpoConfig<'_>;
    reinforce ReinforceConfig<'_>;
    cispo CispoConfig<'_>;
    tis_loss TisLossConfig<'_>;
    kl_cov KlCovConfig<'_>;
    dppo_tv DppoConfig<'_>;
    dppo_kl DppoConfig<'_>;
    dro DroConfig<'_>;
    gspo GspoConfig<'_>;
    sapo SapoConfig<'_>;
    gmpo GmpoConfig;
    luspo LuspoConfig;
    vespo VespoConfig<'_>;
}

/// What [`value_loss`] reads.
#[derive(Clone, Copy, Debug)]
pub struct ValueInput<'a, const D: usize> {
    /// The critic's predictions; the gradient goes here.
    pub predictions: &'a Tensor<D>,
    /// Its predictions when the batch was sampled.
    pub values: &'a Tensor<D>,
    /// The targets.
    pub returns: &'a Tensor<D>,
}

impl<'a, const D: usize> ValueInput<'a, D> {
    /// By name.
    pub fn named(self) -> Inputs<'a> {
        Inputs::new().with("predictions", self.predictions).with("values", self.values).with("returns", self.returns)
    }
}

/// [`tokenwise::loss::value_loss`] as a scalar, with its gradient to the predictions.
///
/// # Errors
///
/// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
pub fn value_loss<const D: usize>(
    batch: &Batch<'_>,
    input: ValueInput<'_, D>,
    config: &ValueConfig<'_>,
) -> Result<Loss> {
    crate::loss("value_loss", batch, &input.named(), config)
}

/// What [`kl_loss`] reads.
#[derive(Clone, Copy, Debug)]
pub struct KlInput<'a, const D: usize> {
    /// Log-probabilities under the policy being trained; the gradient goes here.
    pub log_probs: &'a Tensor<D>,
    /// Log-probabilities under the reference.
    pub ref_log_probs: &'a Tensor<D>,
}

impl<'a, const D: usize> KlInput<'a, D> {
    /// By name.
    pub fn named(self) -> Inputs<'a> {
        Inputs::new().with("log_probs", self.log_probs).with("ref_log_probs", self.ref_log_probs)
    }
}

/// [`tokenwise::loss::kl_loss`] as a scalar, with its gradient to the log-probabilities.
///
/// # Errors
///
/// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
pub fn kl_loss<const D: usize>(batch: &Batch<'_>, input: KlInput<'_, D>, config: &KlLossConfig<'_>) -> Result<Loss> {
    crate::loss("kl_loss", batch, &input.named(), config)
}

/// [`tokenwise::loss::entropy_bonus`] as a scalar, with its gradient to the entropies.
///
/// # Errors
///
/// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
pub fn entropy_bonus<const D: usize>(
    batch: &Batch<'_>,
    entropy: &Tensor<D>,
    config: &EntropyBonusConfig<'_>,
) -> Result<Loss> {
    crate::loss("entropy_bonus", batch, &Inputs::new().with("entropy", entropy), config)
}

/// What [`gae`] reads.
#[derive(Clone, Copy, Debug)]
pub struct GaeInput<'a, const D: usize> {
    /// Rewards, per token.
    pub rewards: &'a Tensor<D>,
    /// The critic's values, per token.
    pub values: &'a Tensor<D>,
    /// The value of the state after each sequence; 0 if it ended.
    pub bootstrap: &'a Tensor<1>,
}

impl<'a, const D: usize> GaeInput<'a, D> {
    /// By name.
    pub fn named(self) -> Inputs<'a> {
        Inputs::new().with("rewards", self.rewards).with("values", self.values).with("bootstrap", self.bootstrap)
    }
}

/// What [`gae`] returns.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Gae<const D: usize> {
    /// Advantages, per token.
    pub advantages: Tensor<D>,
    /// Returns, per token: the critic's targets.
    pub returns: Tensor<D>,
}

impl<const D: usize> TryFrom<Results> for Gae<D> {
    type Error = Error;

    fn try_from(results: Results) -> Result<Self> {
        Ok(Self { advantages: results.tensor("advantages")?, returns: results.tensor("returns")? })
    }
}

/// [`tokenwise::advantage::gae`].
///
/// # Errors
///
/// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
pub fn gae<const D: usize>(batch: &Batch<'_>, input: GaeInput<'_, D>, config: &GaeConfig) -> Result<Gae<D>> {
    call("gae", batch, &input.named(), config)?.try_into()
}

/// [`tokenwise::advantage::group_relative`]: the scores of a prompt's responses against each other, as in GRPO.
///
/// # Errors
///
/// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
pub fn group_relative(groups: &Groups<'_>, scores: &Tensor<1>, config: &GroupConfig) -> Result<Tensor<1>> {
    call("group_relative", groups, &Inputs::new().with("scores", scores), config)?.tensor("out")
}

/// [`tokenwise::advantage::broadcast`]: a number per sequence to each of its kept tokens, as a flat tensor.
///
/// # Errors
///
/// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
pub fn broadcast(batch: &Batch<'_>, values: &Tensor<1>) -> Result<Tensor<1>> {
    call("broadcast", batch, &Inputs::new().with("values", values), &())?.tensor("out")
}

/// [`tokenwise::advantage::whiten`].
///
/// # Errors
///
/// Those of the core, and [`Error`](crate::Error) for tensors of the wrong type.
pub fn whiten<const D: usize>(batch: &Batch<'_>, values: &Tensor<D>, config: &WhitenConfig) -> Result<Tensor<D>> {
    call("whiten", batch, &Inputs::new().with("values", values), config)?.tensor("out")
}
