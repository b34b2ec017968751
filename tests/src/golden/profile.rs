//! The conventions of each framework, as values of the library's config enums.

use serde_json::Value;
use tokenwise::{
    advantage::{
        Across, EpsilonPlace, FactorPrecision, GpgConfig, GroupConfig, LeaveOneOutConfig, Singleton, WhitenConfig,
    },
    divergence::KlBounds,
    loss::{Aggregate, AggregateMode, CispoBounds, DualClip, EmptyRows, GspoForm, ReportedKl},
    reward::OverlongFloor,
    Divisor, Spread,
};

/// Whose conventions a case follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Profile {
    /// The library's defaults.
    Default,
    Verl,
    Trl,
    OpenRlhf,
    /// The papers: no epsilons in means, no bounds.
    Paper,
}

impl Profile {
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        match value.as_str() {
            None if value.is_null() => Ok(Self::Default),
            Some("verl-0.9.1") => Ok(Self::Verl),
            Some("trl-1.16") => Ok(Self::Trl),
            Some("openrlhf-0.11") => Ok(Self::OpenRlhf),
            Some("paper") => Ok(Self::Paper),
            _ => Err(format!("profile: expected verl-0.9.1, trl-1.16, openrlhf-0.11 or paper, got {value}")),
        }
    }

    pub(super) fn divisor(self) -> Divisor {
        if self == Self::Verl {
            Divisor::CountPlusEpsilon
        } else {
            Divisor::Count
        }
    }

    /// What a mean over nothing is, where it is not an error.
    pub(super) fn empty_mean(self) -> Option<f64> {
        match self {
            Self::Verl => Some(0.0),
            Self::Trl | Self::OpenRlhf => Some(f64::NAN),
            Self::Default | Self::Paper => None,
        }
    }

    /// What an aggregated loss over nothing is, where it is not an error.
    pub(super) fn empty_loss(self) -> Option<f64> {
        match self {
            Self::Trl => Some(0.0),
            Self::Verl | Self::OpenRlhf => Some(f64::NAN),
            Self::Default | Self::Paper => None,
        }
    }

    pub(super) fn whiten(self) -> WhitenConfig {
        let config = WhitenConfig { divisor: self.divisor(), ..Default::default() };
        match self {
            Self::OpenRlhf => WhitenConfig { spread: Spread::Population, place: EpsilonPlace::FloorVariance, ..config },
            _ => config,
        }
    }

    pub(super) fn across(self) -> Across {
        match self {
            Self::OpenRlhf | Self::Trl => Across::ZeroStep,
            _ => Across::StepOver,
        }
    }

    pub(super) fn kl_bounds(self) -> KlBounds {
        match self {
            Self::Verl => KlBounds::K3Only,
            Self::OpenRlhf => KlBounds::Every,
            _ => KlBounds::Unbounded,
        }
    }

    pub(super) fn overlong_floor(self) -> OverlongFloor {
        match self {
            Self::OpenRlhf | Self::Paper => OverlongFloor::Factor,
            _ => OverlongFloor::Unlimited,
        }
    }

    fn singleton(self) -> Singleton {
        match self {
            Self::Verl => Singleton::Raw,
            Self::OpenRlhf => Singleton::Undefined,
            _ => Singleton::Zero,
        }
    }

    pub(super) fn group(self) -> GroupConfig {
        let epsilon = match self {
            Self::Trl => 1e-4,
            Self::OpenRlhf => 1e-9,
            Self::Paper => 0.0,
            _ => 1e-6,
        };
        GroupConfig { epsilon, singleton: self.singleton(), ..Default::default() }
    }

    pub(super) fn leave_one_out(self) -> LeaveOneOutConfig {
        LeaveOneOutConfig { singleton: self.singleton() }
    }

    /// What a score on its own gets where only a mean is taken away.
    pub(super) fn baseline_singleton(self) -> Singleton {
        if self == Self::Verl {
            Singleton::Raw
        } else {
            Singleton::Zero
        }
    }

    pub(super) fn gpg(self) -> GpgConfig {
        let factor = if self == Self::Verl { FactorPrecision::Single } else { FactorPrecision::Exact };
        GpgConfig { singleton: self.baseline_singleton(), factor, ..Default::default() }
    }

    /// Whether a sequence's score counts rewards on dropped slots, as all three frameworks do.
    pub(super) fn scores_count_dropped_slots(self) -> bool {
        matches!(self, Self::Verl | Self::Trl | Self::OpenRlhf)
    }

    pub(super) fn aggregate(self, mode: AggregateMode<'_>) -> Aggregate<'_> {
        Aggregate {
            mode,
            empty_rows: if self == Self::Trl { EmptyRows::Counted } else { EmptyRows::Excluded },
            divisor: match self {
                Self::Verl | Self::OpenRlhf => Divisor::CountPlusEpsilon,
                _ => Divisor::Count,
            },
            ..Default::default()
        }
    }

    pub(super) fn log_ratio_bound(self) -> Option<f64> {
        match self {
            Self::Trl | Self::Paper => None,
            _ => Some(20.0),
        }
    }

    /// The frameworks' one clip for every loss, or the paper's own.
    pub(super) fn default_clip(self, low: f64, high: f64) -> (f64, f64) {
        match self {
            Self::Default | Self::Paper => (low, high),
            _ => (0.2, 0.2),
        }
    }

    pub(super) fn value_clip(self) -> f64 {
        if self == Self::Trl {
            0.2
        } else {
            0.5
        }
    }

    /// The price of KL in the reward.
    pub(super) fn beta(self) -> f64 {
        match self {
            Self::Trl => 0.05,
            Self::OpenRlhf => 0.01,
            _ => 1e-3,
        }
    }

    pub(super) fn default_dual_clip(self) -> Option<f64> {
        (self == Self::Verl).then_some(3.0)
    }

    pub(super) fn dual_clip(self, bound: f64) -> DualClip {
        if self == Self::Trl {
            DualClip::BothSigns(bound)
        } else {
            DualClip::NegativeOnly(bound)
        }
    }

    pub(super) fn reported_kl(self) -> ReportedKl {
        if self == Self::OpenRlhf {
            ReportedKl::Unbounded
        } else {
            ReportedKl::Bounded
        }
    }

    /// In TRL `clip_high` is the cap itself.
    pub(super) fn cispo_bounds(self, low: f64, high: f64) -> CispoBounds {
        if self == Self::Trl {
            CispoBounds::Absolute { high }
        } else {
            CispoBounds::Relative { low, high }
        }
    }

    /// Through which log-probabilities the sequence ratio's gradient flows, and its cap.
    pub(super) fn gspo(self) -> (GspoForm, Option<f64>) {
        if self == Self::Verl {
            (GspoForm::Token, Some(10.0))
        } else {
            (GspoForm::Sequence, None)
        }
    }
}
