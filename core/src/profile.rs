//! The conventions of verl, TRL and OpenRLHF at a version, as values of the config types.
//!
//! A trainer written against one of them takes its configs from here and changes only the numbers it has chosen itself:
//!
//! ```
//! use tokenwise::{advantage::GaeConfig, Profile};
//!
//! let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Profile::OpenRlhf0_11.gae() };
//! ```

use core::fmt::Debug;

use crate::{
    advantage::{
        Across, EpsilonPlace, GaeConfig, GroupConfig, LeaveOneOutConfig, ReturnsConfig, Singleton, WhitenConfig,
    },
    divergence::{KlBounds, KlConfig, KlEstimator},
    loss::{
        Aggregate, AggregateMode, CispoBounds, CispoConfig, DualClip, EmptyRows, GspoConfig, GspoForm, PpoConfig,
        ReportedKl, SapoConfig, ValueConfig,
    },
    reward::{KlRewardConfig, OverlongFloor},
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

    /// What a mean over tokens divides by.
    pub const fn divisor(self) -> Divisor {
        match self {
            Verl0_9_1 => Divisor::CountPlusEpsilon,
            _ => Divisor::Count,
        }
    }

    /// What a dropped token between two kept ones costs a recursion.
    pub const fn across(self) -> Across {
        match self {
            Trl1_16 | OpenRlhf0_11 => Across::ZeroStep,
            _ => Across::StepOver,
        }
    }

    /// Discounted returns; γ = 1 everywhere.
    pub fn returns(self) -> ReturnsConfig {
        ReturnsConfig { across: self.across(), ..Default::default() }
    }

    /// Generalized advantage estimates; TRL's λ is 0.95, that of the others 1.
    pub fn gae(self) -> GaeConfig {
        let lambda = if self == Trl1_16 { 0.95 } else { 1.0 };
        GaeConfig { lambda, across: self.across(), ..Default::default() }
    }

    /// Whitening of advantages.
    pub fn whiten(self) -> WhitenConfig {
        let config = WhitenConfig { divisor: self.divisor(), ..Default::default() };
        match self {
            OpenRlhf0_11 => WhitenConfig { spread: Spread::Population, place: EpsilonPlace::FloorVariance, ..config },
            _ => config,
        }
    }

    const fn singleton(self) -> Singleton {
        match self {
            Verl0_9_1 => Singleton::Raw,
            OpenRlhf0_11 => Singleton::Undefined,
            _ => Singleton::Zero,
        }
    }

    /// Group-relative advantages (GRPO).
    pub fn group(self) -> GroupConfig {
        let epsilon = match self {
            Paper => 0.0,
            Verl0_9_1 => 1e-6,
            Trl1_16 => 1e-4,
            OpenRlhf0_11 => 1e-9,
        };
        GroupConfig { epsilon, singleton: self.singleton(), ..Default::default() }
    }

    /// Leave-one-out advantages (RLOO).
    pub fn leave_one_out(self) -> LeaveOneOutConfig {
        LeaveOneOutConfig { singleton: self.singleton() }
    }

    /// KL estimates: verl and OpenRLHF bound them, each in its own way.
    pub fn kl(self) -> KlConfig {
        let bounds = match self {
            Verl0_9_1 => KlBounds::K3Only,
            OpenRlhf0_11 => KlBounds::Every,
            _ => KlBounds::Unbounded,
        };
        KlConfig { bounds, ..Default::default() }
    }

    /// The estimate each uses as a loss.
    pub fn kl_loss(self) -> KlConfig {
        let estimator = if self == OpenRlhf0_11 { KlEstimator::K1 } else { KlEstimator::K3 };
        KlConfig { estimator, ..self.kl() }
    }

    /// KL in the reward.
    pub fn kl_reward(self) -> KlRewardConfig {
        let beta = match self {
            Trl1_16 => 0.05,
            OpenRlhf0_11 => 0.01,
            _ => 1e-3,
        };
        KlRewardConfig { beta, kl: self.kl(), divisor: self.divisor() }
    }

    /// How deep the overlong penalty goes.
    pub const fn overlong_floor(self) -> OverlongFloor {
        match self {
            Paper | OpenRlhf0_11 => OverlongFloor::Factor,
            _ => OverlongFloor::Unlimited,
        }
    }

    /// Aggregation in a mode.
    pub fn aggregate(self, mode: AggregateMode<'_>) -> Aggregate<'_> {
        Aggregate {
            mode,
            empty_rows: if self == Trl1_16 { EmptyRows::Counted } else { EmptyRows::Excluded },
            divisor: match self {
                Verl0_9_1 | OpenRlhf0_11 => Divisor::CountPlusEpsilon,
                _ => Divisor::Count,
            },
            ..Default::default()
        }
    }

    /// The bound on log-ratios.
    pub const fn log_ratio_bound(self) -> Option<f64> {
        match self {
            Verl0_9_1 | OpenRlhf0_11 => Some(20.0),
            _ => None,
        }
    }

    /// A second clip at `bound`, as this framework understands it.
    pub const fn dual_clip(self, bound: f64) -> DualClip {
        match self {
            Trl1_16 => DualClip::BothSigns(bound),
            _ => DualClip::NegativeOnly(bound),
        }
    }

    /// The clipped surrogate; only verl's dual clip is always on.
    pub fn ppo(self) -> PpoConfig<'static> {
        PpoConfig {
            dual_clip: if self == Verl0_9_1 { self.dual_clip(3.0) } else { DualClip::Off },
            log_ratio_bound: self.log_ratio_bound(),
            aggregate: self.aggregate(AggregateMode::TokenMean),
            divisor: self.divisor(),
            reported_kl: if self == OpenRlhf0_11 { ReportedKl::Unbounded } else { ReportedKl::Bounded },
            ..Default::default()
        }
    }

    /// GSPO: verl's token form aggregates as configured (by default the token mean), the others per sequence.
    pub fn gspo(self) -> GspoConfig<'static> {
        let verl = self == Verl0_9_1;
        let mode = if verl { AggregateMode::TokenMean } else { AggregateMode::SequenceMeanTokenMean };
        GspoConfig {
            form: if verl { GspoForm::Token } else { GspoForm::Sequence },
            log_ratio_cap: verl.then_some(10.0),
            aggregate: self.aggregate(mode),
            divisor: self.divisor(),
            ..Default::default()
        }
    }

    /// CISPO: TRL's bound is the cap itself; 5 is what its documentation recommends.
    pub fn cispo(self) -> CispoConfig<'static> {
        let default = CispoConfig::default();
        CispoConfig {
            bounds: if self == Trl1_16 { CispoBounds::Absolute { high: 5.0 } } else { default.bounds },
            log_ratio_bound: self.log_ratio_bound(),
            aggregate: self.aggregate(AggregateMode::TokenMean),
            divisor: self.divisor(),
        }
    }

    /// SAPO.
    pub fn sapo(self) -> SapoConfig<'static> {
        SapoConfig {
            log_ratio_bound: self.log_ratio_bound(),
            aggregate: self.aggregate(AggregateMode::SequenceMeanTokenMean),
            divisor: self.divisor(),
            ..Default::default()
        }
    }

    /// The critic's loss: verl and OpenRLHF clip at 0.5, TRL at 0.2.
    pub fn value(self) -> ValueConfig<'static> {
        ValueConfig {
            clip: Some(if self == Trl1_16 { 0.2 } else { 0.5 }),
            aggregate: self.aggregate(AggregateMode::TokenMean),
            divisor: self.divisor(),
            ..Default::default()
        }
    }

    /// Tells each config on which two profiles differ: its name here, and both values.
    pub fn differences(self, other: Self, mut tell: impl FnMut(&'static str, &dyn Debug, &dyn Debug)) {
        macro_rules! compare {
            ($($config:ident),* $(,)?) => {$(
                let (mine, theirs) = (self.$config(), other.$config());
                if mine != theirs {
                    tell(stringify!($config), &mine, &theirs);
                }
            )*};
        }
        compare! {
            divisor, across, returns, gae, whiten, group, leave_one_out, kl, kl_loss, kl_reward, overlong_floor,
            log_ratio_bound, ppo, gspo, cispo, sapo, value,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_lead_back() {
        for profile in Profile::ALL {
            assert_eq!(Profile::from_name(profile.name()), Some(profile));
        }
        assert_eq!(Profile::from_name("verl"), None);
    }

    #[test]
    fn a_profile_differs_from_every_other_and_not_from_itself() {
        let count = |a: Profile, b| {
            let mut count = 0;
            a.differences(b, |_, _, _| count += 1);
            count
        };
        for a in Profile::ALL {
            for b in Profile::ALL {
                assert_eq!(count(a, b) == 0, a == b, "{a:?} {b:?}");
                assert_eq!(count(a, b), count(b, a));
            }
        }
    }
}
