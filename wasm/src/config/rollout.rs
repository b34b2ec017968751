//! The configs of the rollout corrections.

use alloc::vec::Vec;

use tokenwise::rollout::{
    BatchNormalize, Criterion, GateConfig, GateLevel, GateMode, GateStatistic, GroupRule, LogBound, OffPolicyConfig,
    PfPpoRule, RejectionOption, RolloutConfig, RolloutLevel, Unscored, VetoConfig, WeightBound,
};

use crate::{
    call::zeros,
    read::{read, size, Read},
};

choices! {
    BatchNormalize { "off" => Off, "by-level" => ByLevel, "tokens" => Tokens }
    GateLevel { "off" => Off, "token" => Token, "sequence" => Sequence }
    GateMode { "clip" => Clip, "mask" => Mask }
    GateStatistic { "ratio" => Ratio, "binary-kl" => BinaryKl, "total-variation" => TotalVariation }
    RejectionOption {
        "token-k1" => TokenK1, "token-k2" => TokenK2, "token-k3" => TokenK3,
        "seq-sum-k1" => SeqSumK1, "seq-sum-k2" => SeqSumK2, "seq-sum-k3" => SeqSumK3,
        "seq-mean-k1" => SeqMeanK1, "seq-mean-k2" => SeqMeanK2, "seq-mean-k3" => SeqMeanK3,
        "seq-max-k2" => SeqMaxK2, "seq-max-k3" => SeqMaxK3
    }
    RolloutLevel { "token" => Token, "sequence" => Sequence, "geometric" => Geometric }
    Unscored { "nan" => Nan, "ignore" => Ignore }
}

tagged! {
    WeightBound {
        0 "unbounded" () => Self::Unbounded,
        1 "truncate" (upper) => Self::Truncate { upper },
        2 "zero" (lower, upper) => Self::Zero { lower, upper },
        3 "clamp" (lower, upper) => Self::Clamp { lower, upper },
    }
    GroupRule {
        0 "not-constant" () => Self::NotConstant,
        1 "spread" (at_least) => Self::Spread { at_least },
        2 "mean-between" (low, high) => Self::MeanBetween { low, high },
    }
    PfPpoRule {
        0 "power" (power) => Self::Power { power },
        1 "max-min" () => Self::MaxMin,
        2 "max-random" () => Self::MaxRandom,
    }
}

configs! {
    RolloutConfig {
        level: RolloutLevel,
        bound: WeightBound,
        log_bound: nullable,
        normalize: BatchNormalize,
        unscored: Unscored,
        divisor: Divisor,
    }
    GateConfig { level: GateLevel, statistic: GateStatistic, mode: GateMode, lower: number, upper: number }
    VetoConfig { lower: number, upper: number }
    OffPolicyConfig { threshold: number, unscored: Unscored }
    Criterion { option: RejectionOption, lower: number, upper: number }
}

declare!("config RejectionConfig criteria*:Criterion,divisor?:Divisor");

/// What a rejection config borrows; its divisor comes next.
#[inline(never)]
pub(crate) fn criteria() -> Vec<Criterion> {
    let mut criteria = zeros(size());
    criteria.iter_mut().for_each(|criterion| *criterion = read());
    criteria
}

impl Read for LogBound {
    fn read(usual: Self) -> Self {
        let usual = match usual {
            Self::Unbounded => None,
            Self::At(bound) => Some(bound),
        };
        Option::read(usual).map_or(Self::Unbounded, Self::At)
    }
}
