//! The names of values.

use serde_json::{json, to_value};
use tokenwise::{
    advantage::*, control::*, divergence::*, loss::*, metric::*, profile::*, reward::*, rollout::*, weight::*, Divisor,
    Profile, Spread,
};

use super::read;

macro_rules! spelled {
    ($($type:ident { $($variant:ident $name:literal),+ })+) => {
        /// The enums below.
        pub(super) const NAMES: &[&str] = &[$(stringify!($type)),+];

        #[test]
        fn of_values() {
            $($(
                assert_eq!(to_value($type::$variant).unwrap(), json!($name));
                assert_eq!(read::<$type>(&json!($name)).unwrap(), $type::$variant);
            )+
            let error = read::<$type>(&json!("surely-not")).unwrap_err().to_string();
            let last = [$($name),+].last().copied().unwrap_or_default();
            assert!(error.contains("unknown variant `surely-not`") && error.contains(last), "{error}");)+
        }
    };
}

spelled! {
    Divisor { Count "count", CountPlusEpsilon "count-plus-epsilon" }
    Spread { Population "population", Sample "sample" }
    KlBounds { Unbounded "unbounded", K3Only "k3-only", Every "every" }
    KlEstimator { K1 "k1", Abs "abs", K2 "k2", K3 "k3" }
    KlGradient { Own "own", StraightThrough "straight-through" }
    KlWeight {
        Token "token", Sequence "sequence", TokenBounded "token-bounded", TokenFinite "token-finite",
        ScoreFunction "score-function"
    }
    OverlongFloor { Unlimited "unlimited", Factor "factor" }
    Across { StepOver "step-over", ZeroStep "zero-step" }
    Center { Shift "shift", KeepMean "keep-mean" }
    DiscountFrom { Token "token", Start "start" }
    EpsilonPlace { InsideRoot "inside-root", Outside "outside", FloorVariance "floor-variance" }
    FactorPrecision { Exact "exact", Single "single" }
    GroupScale { StandardDeviation "standard-deviation", Unit "unit", BatchDeviation "batch-deviation" }
    LengthNormalization { Off "off", Kept "kept", KeptAndPadding "kept-and-padding" }
    Level { Batch "batch", Group "group", Off "off" }
    MeanDivisor { PlusEpsilon "plus-epsilon", IfPositive "if-positive" }
    Own { Included "included", LeftOut "left-out" }
    PufferVariant { V3 "v3", V4 "v4" }
    Scale { StandardDeviation "standard-deviation", Unit "unit" }
    Singleton { Zero "zero", Raw "raw", Undefined "undefined" }
    TraceCoefficient { Importance "importance", Lambda "lambda", TreeBackup "tree-backup", Retrace "retrace" }
    ZeroTail { NoBaseline "no-baseline", OwnReturn "own-return" }
    BatchNormalize { Off "off", ByLevel "by-level", Tokens "tokens" }
    GateLevel { Off "off", Token "token", Sequence "sequence" }
    GateMode { Clip "clip", Mask "mask" }
    GateStatistic { Ratio "ratio", BinaryKl "binary-kl", TotalVariation "total-variation" }
    RejectionOption {
        TokenK1 "token-k1", TokenK2 "token-k2", TokenK3 "token-k3", SeqSumK1 "seq-sum-k1", SeqSumK2 "seq-sum-k2",
        SeqSumK3 "seq-sum-k3", SeqMeanK1 "seq-mean-k1", SeqMeanK2 "seq-mean-k2", SeqMeanK3 "seq-mean-k3",
        SeqMaxK2 "seq-max-k2", SeqMaxK3 "seq-max-k3"
    }
    RolloutLevel { Token "token", Sequence "sequence", Geometric "geometric" }
    SamplerMode {
        TokenTruncate "token-truncate", TokenMask "token-mask", SequenceTruncate "sequence-truncate",
        SequenceMask "sequence-mask"
    }
    Unscored { Nan "nan", Ignore "ignore" }
    BranchSpread { Variance "variance", InterQuartileRange "inter-quartile-range", Range "range" }
    BranchValue { Mean "mean", Median "median" }
    DualGradient { Detached "detached", Through "through" }
    EmptyRows { Excluded "excluded", Counted "counted" }
    GspoForm { Sequence "sequence", Token "token" }
    OpdRoute { Clipped "clipped", Surrogate "surrogate", Reinforce "reinforce", Supervised "supervised" }
    ReportedKl { Bounded "bounded", Unbounded "unbounded" }
    ScoreScope { Batch "batch", Sequence "sequence" }
    TopKRest { Tail "tail", Renormalize "renormalize" }
    TriePrefix { Any "any", Same "same" }
    ValueFactor { Half "half", Whole "whole" }
    KlUse { Reward "reward", Loss "loss" }
    Reduction { Mean "mean", Sum "sum", Min "min", Max "max" }
    TrlLevel { Token "token", Sequence "sequence" }
    TrlScale { Group "group", Batch "batch" }
    CollapseGuard { Off "off", On "on" }
    DualClipSigns { NegativeOnly "negative-only", Both "both" }
    Empty { Refused "refused", Zero "zero", Nan "nan" }
    Estimator { GroupRelative "group-relative", LeaveOneOut "leave-one-out", Whitened "whitened" }
    Profile { Paper "paper", Verl0_9_1 "verl-0.9.1", Trl1_16 "trl-1.16", OpenRlhf0_11 "openrlhf-0.11" }
    ScoreSlots { Kept "kept", All "all" }
}

#[test]
fn of_conventions() {
    for &convention in Convention::ALL {
        assert_eq!(to_value(convention).unwrap(), json!(convention.name()));
        assert_eq!(read::<Convention>(&json!(convention.name())).unwrap(), convention);
    }
    for profile in Profile::ALL {
        assert_eq!(to_value(profile).unwrap(), json!(profile.name()));
        let conventions = profile.conventions();
        assert_eq!(super::copied(&conventions), conventions);
    }
}
