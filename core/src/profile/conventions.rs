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

/// Which token rewards the score of a sequence adds up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ScoreSlots {
    /// Those of kept tokens.
    #[default]
    Kept,
    /// Those of all slots, dropped ones too: a batch that keeps every slot. verl 0.9.1, TRL 1.16, OpenRLHF 0.11.
    All,
}

/// Whose ratios a second clip holds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DualClipSigns {
    /// Those of negative advantages.
    #[default]
    NegativeOnly,
    /// Those of both signs. TRL 1.16.
    Both,
}

/// What a framework makes of a mean or a loss over no kept token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Empty {
    /// Nothing: [`Error::EmptyMask`](crate::Error::EmptyMask), as here.
    #[default]
    Refused,
    /// 0.
    Zero,
    /// NaN: zero divided by zero.
    Nan,
}

impl Empty {
    /// The number, where there is one.
    pub const fn value(self) -> Option<f64> {
        match self {
            Self::Refused => None,
            Self::Zero => Some(0.0),
            Self::Nan => Some(f64::NAN),
        }
    }
}

macro_rules! conventions {
    ($($(#[$doc:meta])* $variant:ident $name:literal $field:ident: $type:ty,)*) => {
        /// Everything on which the frameworks differ, one field each. Every config follows from it.
        ///
        /// The default is the library's own: what the `Default` of each config holds.
        /// [`Profile::conventions`](crate::Profile::conventions) gives those of a framework, to be changed field by field:
        ///
        /// ```
        /// use tokenwise::{advantage::Singleton, profile::Conventions, Profile};
        ///
        /// let mine = Conventions { singleton: Singleton::Zero, ..Profile::Verl0_9_1.conventions() };
        /// assert_eq!(mine.group().epsilon, 1e-6);
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct Conventions {
            $($(#[$doc])* pub $field: $type,)*
        }

        /// The name of one field of [`Conventions`].
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Convention {
            $($(#[$doc])* $variant,)*
        }

        impl Convention {
            /// All of them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name for people: the config or the family it belongs to, then the field.
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

            /// These, with one convention taken from another.
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
    /// What a mean over tokens divides by.
    Divisor "divisor" divisor: Divisor,
    /// What a dropped token between two kept ones costs a recursion.
    Across "across" across: Across,
    /// λ of the generalized advantage estimate.
    Lambda "gae.lambda" lambda: f64,
    /// Which variance whitening divides by.
    WhitenSpread "whiten.spread" whiten_spread: Spread,
    /// Where the ε of whitening stands.
    WhitenPlace "whiten.place" whiten_place: EpsilonPlace,
    /// The ε beside a group's deviation.
    GroupEpsilon "group.epsilon" group_epsilon: f64,
    /// What the only sample of a prompt gets from GRPO and RLOO.
    Singleton "singleton" singleton: Singleton,
    /// What it gets where only a mean is taken away.
    BaselineSingleton "baseline.singleton" baseline_singleton: Singleton,
    /// In which precision GPG keeps its factor.
    FactorPrecision "gpg.factor" factor_precision: FactorPrecision,
    /// Which token rewards the score of a sequence adds up.
    ScoreSlots "score_slots" score_slots: ScoreSlots,
    /// How KL estimates are kept from running away.
    KlBounds "kl.bounds" kl_bounds: KlBounds,
    /// The estimate used as a loss.
    KlLossEstimator "kl_loss.estimator" kl_loss_estimator: KlEstimator,
    /// The price β of the KL in the reward.
    KlRewardBeta "kl_reward.beta" kl_reward_beta: f64,
    /// Scores are held to ± this before they become rewards; +inf for no bound.
    RewardClip "reward.clip" reward_clip: f64,
    /// How deep the overlong penalty goes.
    OverlongFloor "overlong.floor" overlong_floor: OverlongFloor,
    /// Whether a sequence without kept tokens counts in a mean over sequences.
    EmptyRows "aggregate.empty_rows" empty_rows: EmptyRows,
    /// What an aggregation divides each sequence by.
    AggregateDivisor "aggregate.divisor" aggregate_divisor: Divisor,
    /// The bound on log-ratios.
    LogRatioBound "log_ratio_bound" log_ratio_bound: Option<f64>,
    /// The bound of a second clip; none is off.
    DualClipBound "dual_clip.bound" dual_clip_bound: Option<f64>,
    /// Whose ratios a second clip holds.
    DualClipSigns "dual_clip.signs" dual_clip_signs: DualClipSigns,
    /// Which log-ratio the KL beside the clipped loss averages.
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
    /// Between which bounds CISPO takes the ratio.
    CispoBounds "cispo.bounds" cispo_bounds: CispoBounds,
    /// How far from the old values the critic's predictions are held.
    ValueClip "value.clip" value_clip: Option<f64>,
    /// The price of a nat of entropy.
    EntropyCoefficient "entropy.coefficient" entropy_coefficient: f64,
    /// What one weight of the correction for the sampler stands for.
    RolloutLevel "rollout.level" rollout_level: RolloutLevel,
    /// What happens to such a weight that is too large or too small.
    RolloutBound "rollout.bound" rollout_bound: WeightBound,
    /// How far the log of such a weight may go.
    RolloutLogBound "rollout.log_bound" rollout_log_bound: LogBound,
    /// What a token counts that the sampler could not score.
    Unscored "rollout.unscored" unscored: Unscored,
    /// Where the powers of γ start in MiniLLM.
    MinillmFrom "minillm.from" minillm_from: DiscountFrom,
    /// What MiniLLM divides by.
    MinillmLength "minillm.length" minillm_length: LengthNormalization,
    /// What a mean over nothing is.
    EmptyMean "empty_mean" empty_mean: Empty,
    /// What an aggregated loss over nothing is.
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
