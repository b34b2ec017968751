use super::{Conventions, DualClipSigns, Empty, ScoreSlots};
use crate::{
    advantage::{Across, DiscountFrom, EpsilonPlace, FactorPrecision, LengthNormalization, Singleton},
    divergence::{KlBounds, KlEstimator},
    loss::{Aggregate, AggregateMode, CispoBounds, DualClip, EmptyRows, GspoForm, ReportedKl},
    reward::OverlongFloor,
    rollout::{LogBound, RolloutLevel, Unscored, WeightBound},
    statistics::{Divisor, Spread},
};

/// Whose conventions to follow.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Profile {
    /// The papers: exact counts, no bounds beyond the formula, no second clip.
    #[default]
    Paper,
    /// verl 0.9.1.
    #[cfg_attr(feature = "serde", serde(rename = "verl-0.9.1"))]
    Verl0_9_1,
    /// TRL 1.16.0 (GRPO trainer; PPO trainer for settings that GRPO does not have).
    #[cfg_attr(feature = "serde", serde(rename = "trl-1.16"))]
    Trl1_16,
    /// OpenRLHF 0.11.2.
    #[cfg_attr(feature = "serde", serde(rename = "openrlhf-0.11"))]
    OpenRlhf0_11,
}

use Profile::{OpenRlhf0_11, Paper, Trl1_16, Verl0_9_1};

impl Profile {
    /// All of them.
    pub const ALL: [Self; 4] = [Paper, Verl0_9_1, Trl1_16, OpenRlhf0_11];

    /// The name in golden cases and on the command line.
    pub const fn name(self) -> &'static str {
        match self {
            Paper => "paper",
            Verl0_9_1 => "verl-0.9.1",
            Trl1_16 => "trl-1.16",
            OpenRlhf0_11 => "openrlhf-0.11",
        }
    }

    /// The profile with this name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// All of its conventions.
    pub fn conventions(self) -> Conventions {
        match self {
            Paper => paper(),
            Verl0_9_1 => verl(),
            Trl1_16 => trl(),
            OpenRlhf0_11 => openrlhf(),
        }
    }
}

impl Profile {
    /// The divisor of a mean over tokens.
    pub fn divisor(self) -> Divisor {
        self.conventions().divisor
    }

    /// How a recursion treats a dropped token between two kept ones.
    pub fn across(self) -> Across {
        self.conventions().across
    }

    /// Whether the overlong penalty has a lower bound.
    pub fn overlong_floor(self) -> OverlongFloor {
        self.conventions().overlong_floor
    }

    /// The bound on log-ratios.
    pub fn log_ratio_bound(self) -> Option<f64> {
        self.conventions().log_ratio_bound
    }

    /// Aggregation in a mode.
    pub fn aggregate(self, mode: AggregateMode<'_>) -> Aggregate<'_> {
        self.conventions().aggregate(mode)
    }

    /// A second clip at `bound`, in the form this framework uses.
    pub fn dual_clip(self, bound: f64) -> DualClip {
        self.conventions().dual_clip(bound)
    }
}

/// Where a paper defines no number, the library's default is used.
fn paper() -> Conventions {
    Conventions {
        group_epsilon: 0.0,
        kl_loss_estimator: KlEstimator::K3,
        reward_clip: f64::INFINITY,
        overlong_floor: OverlongFloor::Factor,
        log_ratio_bound: None,
        rollout_log_bound: LogBound::Unbounded,
        ..Default::default()
    }
}

fn verl() -> Conventions {
    Conventions {
        divisor: Divisor::CountPlusEpsilon,
        group_epsilon: 1e-6,
        singleton: Singleton::Raw,
        baseline_singleton: Singleton::Raw,
        factor_precision: FactorPrecision::Single,
        score_slots: ScoreSlots::All,
        kl_bounds: KlBounds::K3Only,
        overlong_floor: OverlongFloor::Unlimited,
        aggregate_divisor: Divisor::CountPlusEpsilon,
        log_ratio_bound: Some(20.0),
        // always on, unlike in the other frameworks
        dual_clip_bound: Some(3.0),
        // the token form aggregates as configured, by default the token mean
        gspo_form: GspoForm::Token,
        gspo_log_ratio_cap: Some(10.0),
        gspo_mode: AggregateMode::TokenMean,
        gspo_clip: [0.2, 0.2],
        gmpo_clip: [0.2, 0.2],
        entropy_coefficient: 0.0,
        // the default of a config built in code; the shipped file turns the correction off
        rollout_level: RolloutLevel::Sequence,
        rollout_log_bound: LogBound::At(20.0),
        empty_mean: Empty::Zero,
        empty_loss: Empty::Nan,
        ..paper()
    }
}

fn trl() -> Conventions {
    Conventions {
        across: Across::ZeroStep,
        lambda: 0.95,
        group_epsilon: 1e-4,
        score_slots: ScoreSlots::All,
        kl_reward_beta: 0.05,
        overlong_floor: OverlongFloor::Unlimited,
        empty_rows: EmptyRows::Counted,
        dual_clip_signs: DualClipSigns::Both,
        gspo_clip: [0.2, 0.2],
        // its bound is the cap itself; its documentation recommends 5
        cispo_bounds: CispoBounds::Absolute { high: 5.0 },
        value_clip: Some(0.2),
        entropy_coefficient: 0.0,
        rollout_level: RolloutLevel::Sequence,
        rollout_bound: WeightBound::Zero { lower: 0.0, upper: 3.0 },
        unscored: Unscored::Ignore,
        minillm_from: DiscountFrom::Start,
        minillm_length: LengthNormalization::KeptAndPadding,
        empty_mean: Empty::Nan,
        empty_loss: Empty::Zero,
        ..paper()
    }
}

fn openrlhf() -> Conventions {
    Conventions {
        across: Across::ZeroStep,
        whiten_spread: Spread::Population,
        whiten_place: EpsilonPlace::FloorVariance,
        group_epsilon: 1e-9,
        singleton: Singleton::Undefined,
        score_slots: ScoreSlots::All,
        kl_bounds: KlBounds::Every,
        kl_loss_estimator: KlEstimator::K1,
        kl_reward_beta: 0.01,
        reward_clip: 10.0,
        aggregate_divisor: Divisor::CountPlusEpsilon,
        log_ratio_bound: Some(20.0),
        reported_kl: ReportedKl::Unbounded,
        gspo_clip: [0.2, 0.2],
        entropy_coefficient: 0.0,
        rollout_bound: WeightBound::Zero { lower: 0.5, upper: 5.0 },
        empty_mean: Empty::Nan,
        empty_loss: Empty::Nan,
        ..paper()
    }
}
