//! The configs of the advantages.

use tokenwise::advantage::{
    Across, BestOfGroupConfig, Center, DiscountFrom, EpsilonPlace, FactorPrecision, GaeConfig, GaeDecoupledConfig,
    GdpoConfig, GpgConfig, GroupConfig, GroupScale, LeaveOneOutConfig, LeaveOneOutScaledConfig, LengthNormalization,
    LengthWeightedConfig, Level, MaxRlConfig, MeanDivisor, MinillmConfig, NStepConfig, NormalizeConfig, OpdConfig,
    OptimalBaselineConfig, Own, PolicyLambda, PufferConfig, PufferVariant, ReinforcePlusPlusBaselineConfig,
    ReinforcePlusPlusConfig, RetraceConfig, ReturnsConfig, Scale, Singleton, TdLambdaConfig, TraceCoefficient,
    VtraceConfig, WhitenConfig, ZeroTail,
};

use crate::{
    js,
    read::{number, Read},
};

choices! {
    Across { "step-over" => StepOver, "zero-step" => ZeroStep }
    Center { "shift" => Shift, "keep-mean" => KeepMean }
    DiscountFrom { "token" => Token, "start" => Start }
    EpsilonPlace { "inside-root" => InsideRoot, "outside" => Outside, "floor-variance" => FloorVariance }
    FactorPrecision { "exact" => Exact, "single" => Single }
    GroupScale { "standard-deviation" => StandardDeviation, "unit" => Unit, "batch-deviation" => BatchDeviation }
    LengthNormalization { "off" => Off, "kept" => Kept, "kept-and-padding" => KeptAndPadding }
    Level { "batch" => Batch, "group" => Group, "off" => Off }
    MeanDivisor { "plus-epsilon" => PlusEpsilon, "if-positive" => IfPositive }
    Own { "included" => Included, "left-out" => LeftOut }
    PufferVariant { "v3" => V3, "v4" => V4 }
    Scale { "standard-deviation" => StandardDeviation, "unit" => Unit }
    Singleton { "zero" => Zero, "raw" => Raw, "undefined" => Undefined }
    TraceCoefficient {
        "importance" => Importance, "lambda" => Lambda, "tree-backup" => TreeBackup, "retrace" => Retrace
    }
    ZeroTail { "no-baseline" => NoBaseline, "own-return" => OwnReturn }
}

configs! {
    ReturnsConfig { gamma: number, across: Across }
    GaeConfig { gamma: number, lambda: number, across: Across }
    GaeDecoupledConfig { gamma: number, lambda_value: number, lambda_policy: policy_lambda, across: Across }
    WhitenConfig {
        spread: Spread,
        epsilon: number,
        place: EpsilonPlace,
        center: Center,
        scale: Scale,
        divisor: Divisor,
    }
    GroupConfig { scale: GroupScale, spread: Spread, epsilon: number, singleton: Singleton }
    LeaveOneOutConfig { singleton: Singleton }
    LeaveOneOutScaledConfig { epsilon: number }
    LengthWeightedConfig { singleton: Singleton }
    GpgConfig { norm: number, singleton: Singleton, factor: FactorPrecision }
    BestOfGroupConfig { scale: Scale, spread: Spread, epsilon: number }
    OpdConfig { coefficient: number }
    MinillmConfig { gamma: number, from: DiscountFrom, length: LengthNormalization, across: Across }
    GdpoConfig { group: GroupConfig, factors: FactorPrecision, whiten: WhitenConfig }
    MaxRlConfig { divisor: MeanDivisor, epsilon: number, singleton: Singleton }
    NormalizeConfig { mean: Level, own: Own, deviation: Level, spread: Spread, epsilon: number }
    OptimalBaselineConfig { zero_tail: ZeroTail, epsilon: number }
    PufferConfig { gamma: number, lambda: number, rho_bar: number, c_bar: number, variant: PufferVariant }
    ReinforcePlusPlusConfig { gamma: number, across: Across, whiten: WhitenConfig }
    ReinforcePlusPlusBaselineConfig { singleton: Singleton, whiten: WhitenConfig }
    RetraceConfig { gamma: number, lambda: number, coefficient: TraceCoefficient }
    TdLambdaConfig { gamma: number, lambda: number, across: Across }
    NStepConfig { n: size, gamma: number, lambda: number, across: Across }
    VtraceConfig {
        gamma: number,
        lambda: number,
        rho_bar: number,
        c_bar: number,
        rho_bar_pg: number,
        alpha: number,
    }
}

/// A number, or `{ alpha }`.
impl Read for PolicyLambda {
    fn read(usual: Self) -> Self {
        match js::index(u32::MAX) {
            0 => Self::Fixed(number()),
            1 => Self::LengthAdaptive { alpha: number() },
            _ => usual,
        }
    }
}
