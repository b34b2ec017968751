//! The conventions of verl, TRL and OpenRLHF at a version, as values of the config types; and what becomes of a batch under two of them.
//!
//! A trainer written against one of them takes its configs from here and changes only the numbers it has chosen itself:
//!
//! ```
//! use tokenwise::{advantage::GaeConfig, Profile};
//!
//! let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Profile::OpenRlhf0_11.gae() };
//! ```
//!
//! [`Conventions`] holds everything they differ on, one field each; a [`Profile`] is a name for one value of it. [`compare()`] runs a
//! batch through two of them and names, for each number that comes out differently, the conventions that made it so.

mod chain;
mod compare;
mod configs;
mod conventions;
mod difference;
mod quantity;
mod results;
#[cfg(test)]
mod tests;

pub use chain::{Estimator, ProfileInput};
pub use compare::{compare, CompareConfig, CompareScratch, CompareSizes};
pub use conventions::{Convention, Conventions, DualClipSigns, Empty, ScoreSlots};
pub use difference::{Cause, Difference};
pub use quantity::{Quantity, QuantityShape};

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
pub enum Profile {
    /// The papers: exact counts, no bounds beyond the formula, no second clip.
    #[default]
    Paper,
    /// verl 0.9.1.
    Verl0_9_1,
    /// TRL 1.16.0 (GRPO trainer; PPO trainer where GRPO has no such thing).
    Trl1_16,
    /// OpenRLHF 0.11.2.
    OpenRlhf0_11,
}

use Profile::{OpenRlhf0_11, Paper, Trl1_16, Verl0_9_1};

impl Profile {
    /// All of them.
    pub const ALL: [Self; 4] = [Paper, Verl0_9_1, Trl1_16, OpenRlhf0_11];

    /// The name in golden cases and on the command line.
    #[cfg_attr(compact, inline(never))]
    pub const fn name(self) -> &'static str {
        match self {
            Paper => "paper",
            Verl0_9_1 => "verl-0.9.1",
            Trl1_16 => "trl-1.16",
            OpenRlhf0_11 => "openrlhf-0.11",
        }
    }

    /// The profile of a name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|profile| profile.name() == name)
    }

    /// Its conventions, all of them.
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
    /// What a mean over tokens divides by.
    pub fn divisor(self) -> Divisor {
        self.conventions().divisor
    }

    /// What a dropped token between two kept ones costs a recursion.
    pub fn across(self) -> Across {
        self.conventions().across
    }

    /// How deep the overlong penalty goes.
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

    /// A second clip at `bound`, as this framework understands it.
    pub fn dual_clip(self, bound: f64) -> DualClip {
        self.conventions().dual_clip(bound)
    }
}

/// Where a paper defines no number, the library's default stands.
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
        // always on, unlike anywhere else
        dual_clip_bound: Some(3.0),
        // the token form aggregates as configured, by default the token mean
        gspo_form: GspoForm::Token,
        gspo_log_ratio_cap: Some(10.0),
        gspo_mode: AggregateMode::TokenMean,
        gspo_clip: [0.2, 0.2],
        gmpo_clip: [0.2, 0.2],
        entropy_coefficient: 0.0,
        // what a config built in code holds; the shipped file has the correction off
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
        // its bound is the cap itself; 5 is what its documentation recommends
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
