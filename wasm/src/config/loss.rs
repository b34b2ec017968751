//! The configs of the losses.

use tokenwise::loss::{
    BranchSpread, BranchValue, CispoBounds, CispoConfig, ClipCovConfig, DppoConfig, DroConfig, DualClip,
    DualGameConfig, DualGradient, EntropyBonusConfig, GmpoConfig, GspoConfig, GspoForm, GvpoConfig, KlCovConfig,
    LuspoConfig, PpoConfig, ReinforceConfig, ReportedKl, SapoConfig, ScoreScope, StructuralConfig, SurrogateConfig,
    ToprConfig, TrieConfig, TriePrefix, ValueConfig, ValueFactor, VespoConfig,
};

use crate::{
    call::Call,
    js,
    read::{number, Read, ReadLoss},
};

choices! {
    BranchSpread { "variance" => Variance, "inter-quartile-range" => InterQuartileRange, "range" => Range }
    BranchValue { "mean" => Mean, "median" => Median }
    DualGradient { "detached" => Detached, "through" => Through }
    ScoreScope { "batch" => Batch, "sequence" => Sequence }
    TriePrefix { "any" => Any, "same" => Same }
    GspoForm { "sequence" => Sequence, "token" => Token }
    ReportedKl { "bounded" => Bounded, "unbounded" => Unbounded }
    ValueFactor { "half" => Half, "whole" => Whole }
}

tagged! {
    CispoBounds {
        0 "relative" (low, high) => Self::Relative { low, high },
        1 "absolute" (high) => Self::Absolute { high },
    }
}

loss_configs! {
    SurrogateConfig { log_ratio_bound: nullable }
    PpoConfig {
        clip_low: number,
        clip_high: number,
        dual_clip: dual_clip,
        log_ratio_bound: nullable,
        divisor: Divisor,
        reported_kl: ReportedKl,
    }
    ValueConfig { clip: nullable, factor: ValueFactor, divisor: Divisor }
    EntropyBonusConfig { coefficient: number }
    CispoConfig { bounds: CispoBounds, log_ratio_bound: nullable, divisor: Divisor }
    ReinforceConfig { divisor: Divisor }
    ClipCovConfig {
        clip_low: number,
        clip_high: number,
        lower: number,
        upper: number,
        ratio: number,
        divisor: Divisor,
    }
    KlCovConfig { ratio: number, kl_coef: number, divisor: Divisor }
    DppoConfig { clip_low: number, clip_high: number, ratio_cap: number, log_ratio_bound: nullable, divisor: Divisor }
    DualGameConfig {
        gamma: number,
        lambda: number,
        beta: number,
        clip_low: number,
        clip_high: number,
        gradient: DualGradient,
        log_ratio_bound: nullable,
        divisor: Divisor,
    }
    SapoConfig { tau_positive: number, tau_negative: number, log_ratio_bound: nullable, divisor: Divisor }
    GspoConfig { clip_low: number, clip_high: number, form: GspoForm, log_ratio_cap: nullable, divisor: Divisor }
    ToprConfig { positive: number, negative: number }
    VespoConfig { k_positive: number, lambda_positive: number, k_negative: number, lambda_negative: number }
}

configs! {
    GmpoConfig { clip_low: number, clip_high: number, counts: counts, divisor: Divisor }
    LuspoConfig { clip_low: number, clip_high: number }
    StructuralConfig { complexity: number, surprisal: number, drift: number, scope: ScoreScope }
    TrieConfig { prefix: TriePrefix, value: BranchValue, spread: BranchSpread, min_branch_size: size }
    GvpoConfig { beta: number }
}

declare!("config DroConfig beta:number,divisor?:Divisor,aggregate?:aggregate");

/// There is no default β.
impl<'a> ReadLoss<'a> for DroConfig<'a> {
    fn read(call: &mut Call<'a>) -> Self {
        Self {
            beta: number(),
            divisor: crate::read::read(),
            aggregate: call.aggregate(tokenwise::loss::Aggregate::default()),
        }
    }
}

/// `"off"`, `{ negativeOnly: c }` or `{ bothSigns: δ }`.
impl Read for DualClip {
    #[inline(never)]
    fn read(usual: Self) -> Self {
        match js::index(u32::MAX) {
            0 => Self::Off,
            1 => Self::NegativeOnly(number()),
            2 => Self::BothSigns(number()),
            _ => usual,
        }
    }
}
