//! The configs of the losses, which borrow their aggregation.

use tokenwise::loss::{
    Aggregate, BranchSpread, BranchValue, CispoBounds, CispoConfig, ClipCovConfig, DppoConfig, DroConfig, DualClip,
    DualGameConfig, DualGradient, EmptyRows, EntropyBonusConfig, GmpoConfig, GspoConfig, GspoForm, GvpoConfig,
    KlCovConfig, LuspoConfig, PpoConfig, ReinforceConfig, ReportedKl, SapoConfig, ScoreScope, StructuralConfig,
    SurrogateConfig, ToprConfig, TrieConfig, TriePrefix, ValueConfig, ValueFactor, VespoConfig,
};
use tokenwise::{loss::Counts, Divisor};
use wasm_bindgen::JsValue;

use super::aggregate::global_counts;
use crate::{
    error::{wrong_type, Result},
    object::{tagged, Choice, Fields},
};

choices! {
    BranchSpread { "variance" => Variance, "inter-quartile-range" => InterQuartileRange, "range" => Range }
    BranchValue { "mean" => Mean, "median" => Median }
    DualGradient { "detached" => Detached, "through" => Through }
    ScoreScope { "batch" => Batch, "sequence" => Sequence }
    TriePrefix { "any" => Any, "same" => Same }
    EmptyRows { "excluded" => Excluded, "counted" => Counted }
    GspoForm { "sequence" => Sequence, "token" => Token }
    ReportedKl { "bounded" => Bounded, "unbounded" => Unbounded }
    ValueFactor { "half" => Half, "whole" => Whole }
}

loss_config! {
    surrogate -> SurrogateConfig { "logRatioBound" => log_ratio_bound by nullable_or }
    ppo -> PpoConfig {
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "dualClip" => dual_clip by dual_clip_or,
        "logRatioBound" => log_ratio_bound by nullable_or,
        "divisor" => divisor by choice_or,
        "reportedKl" => reported_kl by choice_or,
    }
    value -> ValueConfig {
        "clip" => clip by nullable_or,
        "factor" => factor by choice_or,
        "divisor" => divisor by choice_or,
    }
    entropy_bonus -> EntropyBonusConfig { "coefficient" => coefficient by number_or }
    cispo -> CispoConfig {
        "bounds" => bounds by cispo_bounds_or,
        "logRatioBound" => log_ratio_bound by nullable_or,
        "divisor" => divisor by choice_or,
    }
    reinforce -> ReinforceConfig { "divisor" => divisor by choice_or }
    clip_cov -> ClipCovConfig {
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "lower" => lower by number_or,
        "upper" => upper by number_or,
        "ratio" => ratio by number_or,
        "divisor" => divisor by choice_or,
    }
    kl_cov -> KlCovConfig {
        "ratio" => ratio by number_or,
        "klCoef" => kl_coef by number_or,
        "divisor" => divisor by choice_or,
    }
    dppo -> DppoConfig {
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "ratioCap" => ratio_cap by number_or,
        "logRatioBound" => log_ratio_bound by nullable_or,
        "divisor" => divisor by choice_or,
    }
    dual_game -> DualGameConfig {
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
        "beta" => beta by number_or,
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "gradient" => gradient by choice_or,
        "logRatioBound" => log_ratio_bound by nullable_or,
        "divisor" => divisor by choice_or,
    }
    sapo -> SapoConfig {
        "tauPositive" => tau_positive by number_or,
        "tauNegative" => tau_negative by number_or,
        "logRatioBound" => log_ratio_bound by nullable_or,
        "divisor" => divisor by choice_or,
    }
    gspo -> GspoConfig {
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "form" => form by choice_or,
        "logRatioCap" => log_ratio_cap by nullable_or,
        "divisor" => divisor by choice_or,
    }
    topr -> ToprConfig { "positive" => positive by number_or, "negative" => negative by number_or }
    vespo -> VespoConfig {
        "kPositive" => k_positive by number_or,
        "lambdaPositive" => lambda_positive by number_or,
        "kNegative" => k_negative by number_or,
        "lambdaNegative" => lambda_negative by number_or,
    }
}

plain_config! {
    gmpo -> GmpoConfig {
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "counts" => counts by counts_or,
        "divisor" => divisor by choice_or,
    }
    luspo -> LuspoConfig { "clipLow" => clip_low by number_or, "clipHigh" => clip_high by number_or }
    structural -> StructuralConfig {
        "complexity" => complexity by number_or,
        "surprisal" => surprisal by number_or,
        "drift" => drift by number_or,
        "scope" => scope by choice_or,
    }
    trie -> TrieConfig {
        "prefix" => prefix by choice_or,
        "value" => value by choice_or,
        "spread" => spread by choice_or,
        "minBranchSize" => min_branch_size by size_or,
    }
    gvpo -> GvpoConfig { "beta" => beta by number_or }
}

/// There is no default β.
pub(crate) fn dro<'a>(value: &JsValue, aggregate: Aggregate<'a>) -> Result<DroConfig<'a>> {
    let fields = Fields::config("config", value, &["beta", "divisor", "aggregate"])?;
    Ok(DroConfig { beta: fields.number("beta")?, divisor: fields.choice_or("divisor", Divisor::default())?, aggregate })
}

impl Fields<'_> {
    fn counts_or(&self, key: &str, _default: Counts) -> Result<Counts> {
        global_counts(&self.get(key)?)
    }

    fn cispo_bounds_or(&self, key: &str, default: CispoBounds) -> Result<CispoBounds> {
        let kinds: [(&str, &[&str]); 2] = [("relative", &["low", "high"]), ("absolute", &["high"])];
        Ok(match tagged(key, &self.get(key)?, &kinds)? {
            Some((0, [low, high, ..])) => CispoBounds::Relative { low, high },
            Some((_, [high, ..])) => CispoBounds::Absolute { high },
            None => default,
        })
    }

    /// `"off"`, `{ negativeOnly: c }` or `{ bothSigns: δ }`.
    pub(crate) fn dual_clip_or(&self, key: &str, default: DualClip) -> Result<DualClip> {
        let value = self.get(key)?;
        if !value.is_object() {
            if value.is_undefined() || value.as_string().is_some() {
                return self.chosen(key, &["off"]).map(|off| off.map_or(default, |_| DualClip::Off));
            }
            return Err(wrong_type(key, "\"off\", { negativeOnly } or { bothSigns }", &value));
        }
        let fields = Fields::config(key, &value, &["negativeOnly", "bothSigns"])?;
        if fields.get("bothSigns")?.is_undefined() {
            return fields.number("negativeOnly").map(DualClip::NegativeOnly);
        }
        Fields::config(key, &value, &["bothSigns"])?;
        fields.number("bothSigns").map(DualClip::BothSigns)
    }
}
