//! From conventions to configs.

use core::fmt::Debug;

use super::{Conventions, DualClipSigns, Profile};
use crate::{
    advantage::{
        BestOfGroupConfig, GaeConfig, GaeDecoupledConfig, GdpoConfig, GpgConfig, GroupConfig, LeaveOneOutConfig,
        LengthWeightedConfig, MinillmConfig, NStepConfig, ReinforcePlusPlusBaselineConfig, ReinforcePlusPlusConfig,
        ReturnsConfig, TdLambdaConfig, WhitenConfig,
    },
    control::AdaptiveKlConfig,
    divergence::{KlConfig, KlEstimator, KlWeightedConfig},
    loss::{
        Aggregate, AggregateMode, CispoBounds, CispoConfig, ClipCovConfig, DppoConfig, DroConfig, DualClip,
        EntropyBonusConfig, GmpoConfig, GspoConfig, KlCovConfig, PpoConfig, ReinforceConfig, SapoConfig, ValueConfig,
        VespoConfig,
    },
    metric::ClipConfig,
    reward::{ClippedRewardsConfig, KlRewardConfig, OverlongConfig},
    rollout::{Criterion, RejectionConfig, RolloutConfig},
};

/// The configs that follow from conventions alone: each as a method of [`Conventions`], and as a shortcut of
/// [`Profile`].
macro_rules! configs {
    ($($(#[$doc:meta])* $name:ident($c:ident) -> $type:ty $body:block)*) => {
        impl Conventions {
            $($(#[$doc])* pub fn $name(&self) -> $type { let $c = self; $body })*

            /// Reports each config in which two sets of conventions differ: the name of its method, and both values.
            pub fn differences(&self, other: &Self, mut tell: impl FnMut(&'static str, &dyn Debug, &dyn Debug)) {
                $(
                    let (mine, theirs) = (self.$name(), other.$name());
                    if mine != theirs {
                        tell(stringify!($name), &mine, &theirs);
                    }
                )*
            }
        }

        impl Profile {
            $($(#[$doc])* pub fn $name(self) -> $type { self.conventions().$name() })*

            /// Reports each config in which two profiles differ: its name here, and both values.
            pub fn differences(self, other: Self, tell: impl FnMut(&'static str, &dyn Debug, &dyn Debug)) {
                self.conventions().differences(&other.conventions(), tell);
            }
        }
    };
}

configs! {
    /// Discounted returns; γ = 1 everywhere.
    returns(c) -> ReturnsConfig { ReturnsConfig { across: c.across, ..Default::default() } }

    /// Generalized advantage estimates; TRL's λ is 0.95, that of the others 1.
    gae(c) -> GaeConfig { GaeConfig { lambda: c.lambda, across: c.across, ..Default::default() } }

    /// TD(λ) returns, with the λ of [`Self::gae`].
    td_lambda(c) -> TdLambdaConfig { TdLambdaConfig { lambda: c.lambda, across: c.across, ..Default::default() } }

    /// n-step returns.
    n_step(c) -> NStepConfig { NStepConfig { across: c.across, ..Default::default() } }

    /// Advantages and returns with a λ each.
    gae_decoupled(c) -> GaeDecoupledConfig { GaeDecoupledConfig { across: c.across, ..Default::default() } }

    /// Whitening of advantages.
    whiten(c) -> WhitenConfig {
        WhitenConfig { spread: c.whiten_spread, place: c.whiten_place, divisor: c.divisor, ..Default::default() }
    }

    /// Group-relative advantages (GRPO).
    group(c) -> GroupConfig {
        GroupConfig { epsilon: c.group_epsilon, singleton: c.singleton, ..Default::default() }
    }

    /// Leave-one-out advantages (RLOO).
    leave_one_out(c) -> LeaveOneOutConfig { LeaveOneOutConfig { singleton: c.singleton } }

    /// Only the best of a group, against the second (pass@k).
    best_of_group(c) -> BestOfGroupConfig { BestOfGroupConfig { epsilon: c.group_epsilon, ..Default::default() } }

    /// The mean score per token as the baseline (OPO).
    length_weighted(c) -> LengthWeightedConfig { LengthWeightedConfig { singleton: c.baseline_singleton } }

    /// GPG's advantages.
    gpg(c) -> GpgConfig {
        GpgConfig { singleton: c.baseline_singleton, factor: c.factor_precision, ..Default::default() }
    }

    /// Several sources of reward, each compared within its prompt (GDPO).
    gdpo(c) -> GdpoConfig { GdpoConfig { group: c.group(), whiten: c.whiten(), ..Default::default() } }

    /// REINFORCE++.
    reinforce_plus_plus(c) -> ReinforcePlusPlusConfig {
        ReinforcePlusPlusConfig { across: c.across, whiten: c.whiten(), ..Default::default() }
    }

    /// REINFORCE++ with the mean of the group as its baseline.
    reinforce_plus_plus_baseline(c) -> ReinforcePlusPlusBaselineConfig {
        ReinforcePlusPlusBaselineConfig { singleton: c.baseline_singleton, whiten: c.whiten() }
    }

    /// MiniLLM's advantages.
    minillm(c) -> MinillmConfig {
        MinillmConfig { from: c.minillm_from, length: c.minillm_length, across: c.across, ..Default::default() }
    }

    /// KL estimates: verl and OpenRLHF bound them, each in its own way.
    kl(c) -> KlConfig { KlConfig { bounds: c.kl_bounds, ..Default::default() } }

    /// The estimate each uses as a loss.
    kl_loss(c) -> KlConfig { KlConfig { estimator: c.kl_loss_estimator, ..c.kl() } }

    /// The same, weighted by the importance ratio; K3 in every framework that has it.
    kl_weighted(c) -> KlWeightedConfig {
        KlWeightedConfig { kl: KlConfig { estimator: KlEstimator::K3, ..c.kl() }, ..Default::default() }
    }

    /// KL in the reward.
    kl_reward(c) -> KlRewardConfig { KlRewardConfig { beta: c.kl_reward_beta, kl: c.kl(), divisor: c.divisor } }

    /// The controller of its coefficient.
    adaptive_kl(c) -> AdaptiveKlConfig { AdaptiveKlConfig { beta: c.kl_reward_beta, ..Default::default() } }

    /// Clipped scores, on the last token.
    clipped_rewards(c) -> ClippedRewardsConfig {
        ClippedRewardsConfig { low: -c.reward_clip, high: c.reward_clip, ..Default::default() }
    }

    /// The penalty of overlong responses.
    overlong(c) -> OverlongConfig { OverlongConfig { floor: c.overlong_floor, ..Default::default() } }

    /// The clipped surrogate; only verl's dual clip is always on.
    ppo(c) -> PpoConfig<'static> {
        PpoConfig {
            dual_clip: c.dual_clip_bound.map_or(DualClip::Off, |bound| c.dual_clip(bound)),
            log_ratio_bound: c.log_ratio_bound,
            aggregate: c.aggregate(AggregateMode::TokenMean),
            divisor: c.divisor,
            reported_kl: c.reported_kl,
            ..Default::default()
        }
    }

    /// The shares of tokens that [`Self::ppo`] clips.
    clip_fractions(c) -> ClipConfig {
        ClipConfig { dual_clip: c.ppo().dual_clip, divisor: c.divisor, ..Default::default() }
    }

    /// GSPO.
    gspo(c) -> GspoConfig<'static> {
        let [clip_low, clip_high] = c.gspo_clip;
        GspoConfig {
            clip_low,
            clip_high,
            form: c.gspo_form,
            log_ratio_cap: c.gspo_log_ratio_cap,
            aggregate: c.aggregate(c.gspo_mode),
            divisor: c.divisor,
        }
    }

    /// GMPO.
    gmpo(c) -> GmpoConfig {
        let [clip_low, clip_high] = c.gmpo_clip;
        GmpoConfig { clip_low, clip_high, divisor: c.divisor, ..Default::default() }
    }

    /// CISPO.
    cispo(c) -> CispoConfig<'static> {
        CispoConfig {
            bounds: c.cispo_bounds,
            log_ratio_bound: c.log_ratio_bound,
            aggregate: c.aggregate(AggregateMode::TokenMean),
            divisor: c.divisor,
        }
    }

    /// SAPO.
    sapo(c) -> SapoConfig<'static> {
        SapoConfig {
            log_ratio_bound: c.log_ratio_bound,
            aggregate: c.aggregate(AggregateMode::SequenceMeanTokenMean),
            divisor: c.divisor,
            ..Default::default()
        }
    }

    /// DPPO, by either divergence.
    dppo(c) -> DppoConfig<'static> {
        DppoConfig {
            log_ratio_bound: c.log_ratio_bound,
            aggregate: c.aggregate(AggregateMode::TokenMean),
            divisor: c.divisor,
            ..Default::default()
        }
    }

    /// The surrogate without the tokens of large covariance.
    clip_cov(c) -> ClipCovConfig<'static> {
        let aggregate = c.aggregate(AggregateMode::TokenMean);
        ClipCovConfig { aggregate, divisor: c.divisor, ..Default::default() }
    }

    /// The surrogate with a penalty on the tokens of large covariance.
    kl_cov(c) -> KlCovConfig<'static> {
        let aggregate = c.aggregate(AggregateMode::TokenMean);
        KlCovConfig { aggregate, divisor: c.divisor, ..Default::default() }
    }

    /// The plain policy gradient.
    reinforce(c) -> ReinforceConfig<'static> {
        ReinforceConfig { aggregate: c.aggregate(AggregateMode::TokenMean), divisor: c.divisor }
    }

    /// VESPO.
    vespo(c) -> VespoConfig<'static> {
        VespoConfig { aggregate: c.aggregate(AggregateMode::TokenMean), ..Default::default() }
    }

    /// The critic's loss: verl and OpenRLHF clip at 0.5, TRL at 0.2.
    value(c) -> ValueConfig<'static> {
        ValueConfig {
            clip: c.value_clip,
            aggregate: c.aggregate(AggregateMode::TokenMean),
            divisor: c.divisor,
            ..Default::default()
        }
    }

    /// The entropy bonus: off by default in every framework.
    entropy_bonus(c) -> EntropyBonusConfig<'static> {
        EntropyBonusConfig { coefficient: c.entropy_coefficient, aggregate: c.aggregate(AggregateMode::TokenMean) }
    }

    /// The correction for the mismatch of sampler and trainer, when it is enabled.
    rollout(c) -> RolloutConfig {
        RolloutConfig {
            level: c.rollout_level,
            bound: c.rollout_bound,
            log_bound: c.rollout_log_bound,
            unscored: c.unscored,
            divisor: c.divisor,
            ..Default::default()
        }
    }
}

impl Conventions {
    /// Aggregation in a mode.
    pub fn aggregate<'a>(&self, mode: AggregateMode<'a>) -> Aggregate<'a> {
        Aggregate { mode, empty_rows: self.empty_rows, divisor: self.aggregate_divisor, ..Default::default() }
    }

    /// A second clip at `bound`, in the form this framework uses.
    pub const fn dual_clip(&self, bound: f64) -> DualClip {
        match self.dual_clip_signs {
            DualClipSigns::NegativeOnly => DualClip::NegativeOnly(bound),
            DualClipSigns::Both => DualClip::BothSigns(bound),
        }
    }

    /// CISPO's bounds with these numbers; no lower bound if `high` is the cap itself.
    pub const fn cispo_bounds_at(&self, low: f64, high: f64) -> CispoBounds {
        match self.cispo_bounds {
            CispoBounds::Relative { .. } => CispoBounds::Relative { low, high },
            CispoBounds::Absolute { .. } => CispoBounds::Absolute { high },
        }
    }

    /// DRO; β has no customary value.
    pub fn dro(&self, beta: f64) -> DroConfig<'static> {
        DroConfig { beta, aggregate: self.aggregate(AggregateMode::TokenMean), divisor: self.divisor }
    }

    /// Rejection by these criteria.
    pub const fn rejection<'a>(&self, criteria: &'a [Criterion]) -> RejectionConfig<'a> {
        RejectionConfig { criteria, divisor: self.divisor }
    }
}
