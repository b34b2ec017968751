//! The conventions themselves: one field each, and a name for each field.

use core::fmt::Debug;

use crate::{
    advantage::{Across, DiscountFrom, EpsilonPlace, FactorPrecision, LengthNormalization, Singleton},
    divergence::{KlBounds, KlEstimator},
    loss::{AggregateMode, CispoBounds, EmptyRows, GspoForm, ReportedKl},
    reward::OverlongFloor,
    rollout::{LogBound, RolloutLevel, Unscored, WeightBound},
    statistics::{Divisor, Spread},
};

/// Which token rewards are summed into the score of a sequence.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum ScoreSlots {
    /// Those of kept tokens.
    #[default]
    Kept,
    /// Those of all slots, including dropped ones, as if every slot were kept. verl 0.9.1, TRL 1.16, OpenRLHF 0.11.
    All,
}

/// Which ratios a second clip bounds.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum DualClipSigns {
    /// Those of negative advantages.
    #[default]
    NegativeOnly,
    /// Those of both signs. TRL 1.16.
    Both,
}

/// The value a framework gives to a mean or a loss without kept tokens.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Empty {
    /// None: [`Error::EmptyMask`](crate::Error::EmptyMask), as in this library.
    #[default]
    Refused,
    /// 0.
    Zero,
    /// NaN: zero divided by zero.
    Nan,
}

impl Empty {
    /// The number, if there is one.
    pub const fn value(self) -> Option<f64> {
        match self {
            Self::Refused => None,
            Self::Zero => Some(0.0),
            Self::Nan => Some(f64::NAN),
        }
    }
}

macro_rules! conventions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $field:ident: $type:ty $(as $serde:literal)?,)*) => {
        /// Everything on which the frameworks differ, one field each. Every config is derived from it.
        ///
        /// The default is the library's own: what the `Default` of each config holds.
        /// [`Profile::conventions`](crate::Profile::conventions) gives those of a framework, to be changed field by
        /// field:
        ///
        /// ```
        /// use tokenwise::{advantage::Singleton, profile::Conventions, Profile};
        ///
        /// let mine = Conventions { singleton: Singleton::Zero, ..Profile::Verl0_9_1.conventions() };
        /// assert_eq!(mine.group().epsilon, 1e-6);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        #[cfg_attr(feature = "serde", serde(default, deny_unknown_fields))]
        pub struct Conventions {
            $($(#[$doc])* $(#[cfg_attr(feature = "serde", serde(with = $serde))])? pub $field: $type,)*
        }

        /// The name of one field of [`Conventions`].
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
        pub enum Convention {
            $($(#[$doc])* #[cfg_attr(feature = "serde", serde(rename = $name))] $variant,)*
        }

        impl Convention {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The human-readable name: the config or the family it belongs to, then the field.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }
        }

        impl Conventions {
            /// The value of one convention.
            pub fn of(&self, convention: Convention) -> &dyn Debug {
                match convention {
                    $(Convention::$variant => &self.$field,)*
                }
            }

            /// Whether both hold the same value of one convention.
            pub fn agree(&self, other: &Self, convention: Convention) -> bool {
                match convention {
                    $(Convention::$variant => self.$field == other.$field,)*
                }
            }

            /// These conventions, with one of them taken from another set.
            #[must_use]
            pub fn exchanged(mut self, convention: Convention, other: &Self) -> Self {
                match convention {
                    $(Convention::$variant => self.$field = other.$field,)*
                }
                self
            }
        }
    };
}

conventions! {
    /// The divisor of a mean over tokens.
    Divisor "divisor" divisor: Divisor,
    /// How a recursion treats a dropped token between two kept ones.
    Across "across" across: Across,
    /// λ of the generalized advantage estimate.
    Lambda "gae.lambda" lambda: f64,
    /// Which variance whitening divides by.
    WhitenSpread "whiten.spread" whiten_spread: Spread,
    /// Where the ε of whitening is added.
    WhitenPlace "whiten.place" whiten_place: EpsilonPlace,
    /// The ε added to a group's deviation.
    GroupEpsilon "group.epsilon" group_epsilon: f64,
    /// The advantage of the only sample of a prompt in GRPO and RLOO.
    Singleton "singleton" singleton: Singleton,
    /// Its advantage where only a mean is subtracted.
    BaselineSingleton "baseline.singleton" baseline_singleton: Singleton,
    /// In which precision GPG keeps its factor.
    FactorPrecision "gpg.factor" factor_precision: FactorPrecision,
    /// Which token rewards are summed into the score of a sequence.
    ScoreSlots "score_slots" score_slots: ScoreSlots,
    /// How KL estimates are bounded.
    KlBounds "kl.bounds" kl_bounds: KlBounds,
    /// The estimate used as a loss.
    KlLossEstimator "kl_loss.estimator" kl_loss_estimator: KlEstimator,
    /// The coefficient β of the KL in the reward.
    KlRewardBeta "kl_reward.beta" kl_reward_beta: f64,
    /// Scores are clipped to ± this before they become rewards; +inf for no bound.
    RewardClip "reward.clip" reward_clip: f64 as "crate::spelling::number",
    /// Whether the overlong penalty has a lower bound.
    OverlongFloor "overlong.floor" overlong_floor: OverlongFloor,
    /// Whether a sequence without kept tokens counts in a mean over sequences.
    EmptyRows "aggregate.empty_rows" empty_rows: EmptyRows,
    /// The divisor of each sequence in an aggregation.
    AggregateDivisor "aggregate.divisor" aggregate_divisor: Divisor,
    /// The bound on log-ratios.
    LogRatioBound "log_ratio_bound" log_ratio_bound: Option<f64>,
    /// The bound of a second clip; `None` for no second clip.
    DualClipBound "dual_clip.bound" dual_clip_bound: Option<f64>,
    /// Which ratios a second clip bounds.
    DualClipSigns "dual_clip.signs" dual_clip_signs: DualClipSigns,
    /// Which log-ratio the KL reported with the clipped loss averages.
    ReportedKl "reported_kl" reported_kl: ReportedKl,
    /// Through which log-probabilities the gradient of a sequence's ratio flows.
    GspoForm "gspo.form" gspo_form: GspoForm,
    /// The cap on the log of a sequence's ratio.
    GspoCap "gspo.log_ratio_cap" gspo_log_ratio_cap: Option<f64>,
    /// How GSPO aggregates.
    GspoMode "gspo.mode" gspo_mode: AggregateMode<'static>,
    /// ε⁻ and ε⁺ of GSPO.
    GspoClip "gspo.clip" gspo_clip: [f64; 2],
    /// ε⁻ and ε⁺ of GMPO, on the log of the ratio.
    GmpoClip "gmpo.clip" gmpo_clip: [f64; 2],
    /// The bounds of the ratio in CISPO.
    CispoBounds "cispo.bounds" cispo_bounds: CispoBounds,
    /// How far from the old values the critic's predictions are held.
    ValueClip "value.clip" value_clip: Option<f64>,
    /// The coefficient of the entropy bonus.
    EntropyCoefficient "entropy.coefficient" entropy_coefficient: f64,
    /// The level of the weights that correct for the sampler.
    RolloutLevel "rollout.level" rollout_level: RolloutLevel,
    /// How such weights are treated that are too large or too small.
    RolloutBound "rollout.bound" rollout_bound: WeightBound,
    /// The bound on the log of such a weight.
    RolloutLogBound "rollout.log_bound" rollout_log_bound: LogBound,
    /// How a token is treated that the sampler could not score.
    Unscored "rollout.unscored" unscored: Unscored,
    /// Where the powers of γ start in MiniLLM.
    MinillmFrom "minillm.from" minillm_from: DiscountFrom,
    /// The divisor of MiniLLM.
    MinillmLength "minillm.length" minillm_length: LengthNormalization,
    /// The value of an empty mean.
    EmptyMean "empty_mean" empty_mean: Empty,
    /// The value of an aggregated loss without kept tokens.
    EmptyLoss "empty_loss" empty_loss: Empty,
}

impl Default for Conventions {
    fn default() -> Self {
        Self {
            divisor: Divisor::Count,
            across: Across::StepOver,
            lambda: 1.0,
            whiten_spread: Spread::Sample,
            whiten_place: EpsilonPlace::InsideRoot,
            group_epsilon: 1e-6,
            singleton: Singleton::Zero,
            baseline_singleton: Singleton::Zero,
            factor_precision: FactorPrecision::Exact,
            score_slots: ScoreSlots::Kept,
            kl_bounds: KlBounds::Unbounded,
            kl_loss_estimator: KlEstimator::K1,
            kl_reward_beta: 1e-3,
            reward_clip: 10.0,
            overlong_floor: OverlongFloor::Unlimited,
            empty_rows: EmptyRows::Excluded,
            aggregate_divisor: Divisor::Count,
            log_ratio_bound: Some(20.0),
            dual_clip_bound: None,
            dual_clip_signs: DualClipSigns::NegativeOnly,
            reported_kl: ReportedKl::Bounded,
            gspo_form: GspoForm::Sequence,
            gspo_log_ratio_cap: None,
            gspo_mode: AggregateMode::SequenceMeanTokenMean,
            gspo_clip: [3e-4, 4e-4],
            gmpo_clip: [0.4, 0.4],
            cispo_bounds: CispoBounds::Relative { low: 0.2, high: 0.2 },
            value_clip: Some(0.5),
            entropy_coefficient: 0.01,
            rollout_level: RolloutLevel::Token,
            rollout_bound: WeightBound::Truncate { upper: 2.0 },
            rollout_log_bound: LogBound::At(20.0),
            unscored: Unscored::Nan,
            minillm_from: DiscountFrom::Token,
            minillm_length: LengthNormalization::Kept,
            empty_mean: Empty::Refused,
            empty_loss: Empty::Refused,
        }
    }
}
