//! Reading config objects: every key optional, with the core's own default.

use tokenwise::{
    advantage::{
        Across, Center, EpsilonPlace, GaeConfig, GroupConfig, GroupScale, LeaveOneOutConfig, ReturnsConfig, Scale,
        Singleton, WhitenConfig,
    },
    divergence::{KlBounds, KlConfig, KlEstimator, KlGradient},
    loss::{
        Aggregate, AggregateMode, Counts, DualClip, EmptyRows, EntropyBonusConfig, GlobalCounts, PpoConfig, ReportedKl,
        SurrogateConfig, ValueConfig, ValueFactor,
    },
    metric::{ClipConfig, ExplainedVarianceConfig},
    policy::PolicyConfig,
    reward::{KlRewardConfig, OverlongConfig, OverlongFloor},
    Divisor, Spread,
};
use wasm_bindgen::JsValue;

use crate::{
    batch::OwnedGroups,
    error::{wrong_type, Result},
    object::{Choice, Fields},
};

macro_rules! choices {
    ($($type:ident { $($name:literal => $value:ident),+ })+) => {$(
        impl Choice for $type {
            const NAMES: &'static [&'static str] = &[$($name),+];
            const VALUES: &'static [Self] = &[$(Self::$value),+];
        }
    )+};
}

choices! {
    Across { "step-over" => StepOver, "zero-step" => ZeroStep }
    Center { "shift" => Shift, "keep-mean" => KeepMean }
    Divisor { "count" => Count, "count-plus-epsilon" => CountPlusEpsilon }
    EmptyRows { "excluded" => Excluded, "counted" => Counted }
    EpsilonPlace { "inside-root" => InsideRoot, "outside" => Outside, "floor-variance" => FloorVariance }
    GroupScale { "standard-deviation" => StandardDeviation, "unit" => Unit }
    KlBounds { "unbounded" => Unbounded, "k3-only" => K3Only, "every" => Every }
    KlEstimator { "k1" => K1, "abs" => Abs, "k2" => K2, "k3" => K3 }
    KlGradient { "own" => Own, "straight-through" => StraightThrough }
    OverlongFloor { "unlimited" => Unlimited, "factor" => Factor }
    ReportedKl { "bounded" => Bounded, "unbounded" => Unbounded }
    Scale { "standard-deviation" => StandardDeviation, "unit" => Unit }
    Singleton { "zero" => Zero, "raw" => Raw, "undefined" => Undefined }
    Spread { "population" => Population, "sample" => Sample }
    ValueFactor { "half" => Half, "whole" => Whole }
}

/// Reads a config whose fields are all plain: `key: field by reader;` after the name of the function.
macro_rules! plain_config {
    ($($(#[$doc:meta])* $name:ident -> $type:ident { $($key:literal => $field:ident by $reader:ident),+ $(,)? })+) => {$(
        $(#[$doc])*
        pub(crate) fn $name(value: &JsValue) -> Result<$type> {
            let fields = Fields::config("config", value, &[$($key),+])?;
            let default = $type::default();
            Ok($type { $($field: fields.$reader($key, default.$field)?),+ })
        }
    )+};
}

plain_config! {
    policy -> PolicyConfig { "temperature" => temperature by number_or }
    kl -> KlConfig {
        "estimator" => estimator by choice_or,
        "gradient" => gradient by choice_or,
        "bounds" => bounds by choice_or,
    }
    overlong -> OverlongConfig {
        "maxLen" => max_len by u32_or,
        "buffer" => buffer by u32_or,
        "factor" => factor by number_or,
        "floor" => floor by choice_or,
    }
    returns -> ReturnsConfig { "gamma" => gamma by number_or, "across" => across by choice_or }
    gae -> GaeConfig {
        "gamma" => gamma by number_or,
        "lambda" => lambda by number_or,
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
    explained_variance -> ExplainedVarianceConfig {
        "epsilon" => epsilon by number_or,
        "spread" => spread by choice_or,
    }
}

/// `{ divisor }`.
pub(crate) fn divisor(value: &JsValue) -> Result<Divisor> {
    Fields::config("config", value, &["divisor"])?.choice_or("divisor", Divisor::default())
}

/// `{ spread }`.
pub(crate) fn spread(value: &JsValue) -> Result<Spread> {
    Fields::config("config", value, &["spread"])?.choice_or("spread", Spread::default())
}

/// `{ spread, divisor }`.
pub(crate) fn spread_and_divisor(value: &JsValue) -> Result<(Spread, Divisor)> {
    let fields = Fields::config("config", value, &["spread", "divisor"])?;
    Ok((fields.choice_or("spread", Spread::default())?, fields.choice_or("divisor", Divisor::default())?))
}

pub(crate) fn kl_reward(value: &JsValue) -> Result<KlRewardConfig> {
    let fields = Fields::config("config", value, &["beta", "kl", "divisor"])?;
    let default = KlRewardConfig::default();
    Ok(KlRewardConfig {
        beta: fields.number_or("beta", default.beta)?,
        kl: kl(&fields.get("kl")?)?,
        divisor: fields.choice_or("divisor", default.divisor)?,
    })
}

pub(crate) fn clip(value: &JsValue) -> Result<ClipConfig> {
    let fields = Fields::config("config", value, &["clipLow", "clipHigh", "dualClip", "divisor"])?;
    let default = ClipConfig::default();
    Ok(ClipConfig {
        clip_low: fields.number_or("clipLow", default.clip_low)?,
        clip_high: fields.number_or("clipHigh", default.clip_high)?,
        dual_clip: dual_clip(&fields)?,
        divisor: fields.choice_or("divisor", default.divisor)?,
    })
}

/// `"off"`, `{ negativeOnly: c }` or `{ bothSigns: δ }`.
fn dual_clip(fields: &Fields<'_>) -> Result<DualClip> {
    let value = fields.get("dualClip")?;
    if !value.is_object() {
        if value.is_undefined() || value.as_string().is_some() {
            return fields.chosen("dualClip", &["off"]).map(|_| DualClip::Off);
        }
        return Err(wrong_type("dualClip", "\"off\", { negativeOnly } or { bothSigns }", &value));
    }
    let fields = Fields::config("dualClip", &value, &["negativeOnly", "bothSigns"])?;
    if fields.get("bothSigns")?.is_undefined() {
        return fields.number("negativeOnly").map(DualClip::NegativeOnly);
    }
    Fields::config("dualClip", &value, &["bothSigns"])?;
    fields.number("bothSigns").map(DualClip::BothSigns)
}

/// What an [`Aggregate`] borrows.
pub(crate) struct OwnedAggregate {
    mode: OwnedMode,
    counts: Counts,
    empty_rows: EmptyRows,
    divisor: Divisor,
}

enum OwnedMode {
    Plain(AggregateMode<'static>),
    PromptMean { groups: OwnedGroups, tokens: Vec<u64> },
}

impl OwnedAggregate {
    pub(crate) fn read(parameter: &str, value: &JsValue) -> Result<Self> {
        let any = ["mode", "counts", "emptyRows", "divisor", "scale", "groups", "tokens"];
        let [mode, counts, empty_rows, divisor, scale, groups, tokens] = any;
        let fields = Fields::config(parameter, value, &any)?;
        let names = [
            "token-mean",
            "token-sum",
            "seq-mean-token-sum",
            "seq-mean-token-mean",
            "seq-mean-token-sum-norm",
            "prompt-mean",
        ];
        let chosen = fields.chosen(mode, &names)?.unwrap_or(0);
        // what belongs to another mode would be ignored without a word
        let shared = [mode, counts, empty_rows, divisor];
        match chosen {
            4 => Fields::config(parameter, value, &[mode, counts, empty_rows, divisor, scale])?,
            5 => Fields::config(parameter, value, &[mode, counts, empty_rows, divisor, groups, tokens])?,
            _ => Fields::config(parameter, value, &shared)?,
        };
        let owned_mode = match chosen {
            0 => OwnedMode::Plain(AggregateMode::TokenMean),
            1 => OwnedMode::Plain(AggregateMode::TokenSum),
            2 => OwnedMode::Plain(AggregateMode::SequenceMeanTokenSum),
            3 => OwnedMode::Plain(AggregateMode::SequenceMeanTokenMean),
            4 => OwnedMode::Plain(AggregateMode::SequenceMeanTokenSumNorm { scale: fields.number(scale)? }),
            _ => OwnedMode::PromptMean {
                groups: OwnedGroups::read(groups, &fields.get(groups)?)?,
                tokens: fields.array::<u32>(tokens)?.into_iter().map(u64::from).collect(),
            },
        };
        Ok(Self {
            mode: owned_mode,
            counts: global_counts(&fields.get(counts)?)?,
            empty_rows: fields.choice_or(empty_rows, EmptyRows::default())?,
            divisor: fields.choice_or(divisor, Divisor::default())?,
        })
    }

    pub(crate) fn view(&self) -> tokenwise::Result<Aggregate<'_>> {
        let mode = match &self.mode {
            OwnedMode::Plain(mode) => *mode,
            OwnedMode::PromptMean { groups, tokens } => AggregateMode::PromptMean { groups: groups.view()?, tokens },
        };
        Ok(Aggregate { mode, counts: self.counts, empty_rows: self.empty_rows, divisor: self.divisor })
    }
}

fn global_counts(value: &JsValue) -> Result<Counts> {
    if value.is_undefined() {
        return Ok(Counts::Local);
    }
    let fields = Fields::config("counts", value, &["tokens", "sequences", "prompts", "ranks"])?;
    let default = GlobalCounts::default();
    Ok(Counts::Global(GlobalCounts {
        tokens: fields.count_or("tokens", default.tokens)?,
        sequences: fields.count_or("sequences", default.sequences)?,
        prompts: fields.count_or("prompts", default.prompts)?,
        ranks: fields.count_or("ranks", default.ranks)?,
    }))
}

/// The configs that hold an aggregation come in two parts: what they borrow, and the rest.
pub(crate) fn surrogate<'a>(value: &JsValue, aggregate: Aggregate<'a>) -> Result<SurrogateConfig<'a>> {
    let fields = Fields::config("config", value, &["logRatioBound", "aggregate"])?;
    let default = SurrogateConfig::default();
    Ok(SurrogateConfig { log_ratio_bound: fields.nullable_or("logRatioBound", default.log_ratio_bound)?, aggregate })
}

pub(crate) fn ppo<'a>(value: &JsValue, aggregate: Aggregate<'a>) -> Result<PpoConfig<'a>> {
    let keys = ["clipLow", "clipHigh", "dualClip", "logRatioBound", "aggregate", "divisor", "reportedKl"];
    let fields = Fields::config("config", value, &keys)?;
    let default = PpoConfig::default();
    Ok(PpoConfig {
        clip_low: fields.number_or("clipLow", default.clip_low)?,
        clip_high: fields.number_or("clipHigh", default.clip_high)?,
        dual_clip: dual_clip(&fields)?,
        log_ratio_bound: fields.nullable_or("logRatioBound", default.log_ratio_bound)?,
        aggregate,
        divisor: fields.choice_or("divisor", default.divisor)?,
        reported_kl: fields.choice_or("reportedKl", default.reported_kl)?,
    })
}

pub(crate) fn value<'a>(value: &JsValue, aggregate: Aggregate<'a>) -> Result<ValueConfig<'a>> {
    let fields = Fields::config("config", value, &["clip", "factor", "aggregate", "divisor"])?;
    let default = ValueConfig::default();
    Ok(ValueConfig {
        clip: fields.nullable_or("clip", default.clip)?,
        factor: fields.choice_or("factor", default.factor)?,
        aggregate,
        divisor: fields.choice_or("divisor", default.divisor)?,
    })
}

pub(crate) fn entropy_bonus<'a>(value: &JsValue, aggregate: Aggregate<'a>) -> Result<EntropyBonusConfig<'a>> {
    let fields = Fields::config("config", value, &["coefficient", "aggregate"])?;
    let default = EntropyBonusConfig::default();
    Ok(EntropyBonusConfig { coefficient: fields.number_or("coefficient", default.coefficient)?, aggregate })
}
