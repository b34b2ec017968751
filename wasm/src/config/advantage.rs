//! The configs of the advantages.

use tokenwise::advantage::{
    Across, BestOfGroupConfig, Center, DiscountFrom, EpsilonPlace, FactorPrecision, GaeConfig, GaeDecoupledConfig,
    GdpoConfig, GpgConfig, GroupConfig, GroupScale, LeaveOneOutConfig, LeaveOneOutScaledConfig, LengthNormalization,
    LengthWeightedConfig, Level, MaxRlConfig, MeanDivisor, MinillmConfig, NStepConfig, NormalizeConfig, OpdConfig,
    OptimalBaselineConfig, Own, PolicyLambda, PufferConfig, PufferVariant, ReinforcePlusPlusBaselineConfig,
    ReinforcePlusPlusConfig, RetraceConfig, ReturnsConfig, Scale, Singleton, TdLambdaConfig, TraceCoefficient,
    VtraceConfig, WhitenConfig, ZeroTail,
};
use wasm_bindgen::JsValue;

use crate::{
    error::Result,
    object::{Choice, Fields},
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

plain_config! {
    returns -> ReturnsConfig { "gamma" => gamma by number_or, "across" => across by choice_or }
    gae -> GaeConfig {
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
        "across" => across by choice_or,
    }
    gae_decoupled -> GaeDecoupledConfig {
        "gamma" => gamma by number_or,
        "lambdaValue" => lambda_value by number_or,
        "lambdaPolicy" => lambda_policy by policy_lambda_or,
        "across" => across by choice_or,
    }
    whiten -> WhitenConfig {
        "spread" => spread by choice_or,
        "epsilon" => epsilon by number_or,
        "place" => place by choice_or,
        "center" => center by choice_or,
        "scale" => scale by choice_or,
        "divisor" => divisor by choice_or,
    }
    group -> GroupConfig {
        "scale" => scale by choice_or,
        "spread" => spread by choice_or,
        "epsilon" => epsilon by number_or,
        "singleton" => singleton by choice_or,
    }
    leave_one_out -> LeaveOneOutConfig { "singleton" => singleton by choice_or }
    leave_one_out_scaled -> LeaveOneOutScaledConfig { "epsilon" => epsilon by number_or }
    length_weighted -> LengthWeightedConfig { "singleton" => singleton by choice_or }
    gpg -> GpgConfig {
        "norm" => norm by number_or,
        "singleton" => singleton by choice_or,
        "factor" => factor by choice_or,
    }
    best_of_group -> BestOfGroupConfig {
        "scale" => scale by choice_or,
        "spread" => spread by choice_or,
        "epsilon" => epsilon by number_or,
    }
    opd -> OpdConfig { "coefficient" => coefficient by number_or }
    minillm -> MinillmConfig {
        "gamma" => gamma by number_or,
        "from" => from by choice_or,
        "length" => length by choice_or,
        "across" => across by choice_or,
    }
    gdpo -> GdpoConfig {
        "group" => group by group_or,
        "factors" => factors by choice_or,
        "whiten" => whiten by whiten_or,
    }
    max_rl -> MaxRlConfig {
        "divisor" => divisor by choice_or,
        "epsilon" => epsilon by number_or,
        "singleton" => singleton by choice_or,
    }
    normalize -> NormalizeConfig {
        "mean" => mean by choice_or,
        "own" => own by choice_or,
        "deviation" => deviation by choice_or,
        "spread" => spread by choice_or,
        "epsilon" => epsilon by number_or,
    }
    optimal_baseline -> OptimalBaselineConfig {
        "zeroTail" => zero_tail by choice_or,
        "epsilon" => epsilon by number_or,
    }
    puffer -> PufferConfig {
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
        "rhoBar" => rho_bar by number_or,
        "cBar" => c_bar by number_or,
        "variant" => variant by choice_or,
    }
    reinforce_plus_plus -> ReinforcePlusPlusConfig {
        "gamma" => gamma by number_or,
        "across" => across by choice_or,
        "whiten" => whiten by whiten_or,
    }
    reinforce_plus_plus_baseline -> ReinforcePlusPlusBaselineConfig {
        "singleton" => singleton by choice_or,
        "whiten" => whiten by whiten_or,
    }
    retrace -> RetraceConfig {
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
        "coefficient" => coefficient by choice_or,
    }
    td_lambda -> TdLambdaConfig {
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
        "across" => across by choice_or,
    }
    n_step -> NStepConfig {
        "n" => n by size_or,
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
        "across" => across by choice_or,
    }
    vtrace -> VtraceConfig {
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
        "rhoBar" => rho_bar by number_or,
        "cBar" => c_bar by number_or,
        "rhoBarPg" => rho_bar_pg by number_or,
        "alpha" => alpha by number_or,
    }
}

impl Fields<'_> {
    fn whiten_or(&self, key: &str, _default: WhitenConfig) -> Result<WhitenConfig> {
        whiten(&self.get(key)?)
    }

    fn group_or(&self, key: &str, _default: GroupConfig) -> Result<GroupConfig> {
        group(&self.get(key)?)
    }

    /// A number, or `{ alpha }`.
    fn policy_lambda_or(&self, key: &str, default: PolicyLambda) -> Result<PolicyLambda> {
        let value = self.get(key)?;
        if value.is_object() {
            let alpha = Fields::config(key, &value, &["alpha"])?.number("alpha")?;
            return Ok(PolicyLambda::LengthAdaptive { alpha });
        }
        if value.is_undefined() {
            return Ok(default);
        }
        self.number(key).map(PolicyLambda::Fixed)
    }
}
