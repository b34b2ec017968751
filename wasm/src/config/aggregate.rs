//! How the losses of the tokens become one number.

use alloc::vec::Vec;

use tokenwise::{
    loss::{Aggregate, AggregateMode, Counts, EmptyRows, GlobalCounts},
    Divisor,
};
use wasm_bindgen::JsValue;

use crate::{batch::OwnedGroups, error::Result, object::Fields};

/// Every token the same.
pub(crate) const TOKEN_MEAN: usize = 0;
/// Every sequence the same.
pub(crate) const SEQUENCE_MEAN_TOKEN_MEAN: usize = 3;

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
    /// `default` is the index of the mode where none is named: [`TOKEN_MEAN`] or [`SEQUENCE_MEAN_TOKEN_MEAN`].
    pub(crate) fn read(parameter: &str, value: &JsValue, default: usize) -> Result<Self> {
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
        let chosen = fields.chosen(mode, &names)?.unwrap_or(default);
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

    #[inline(never)]
    pub(crate) fn view(&self) -> tokenwise::Result<Aggregate<'_>> {
        let mode = match &self.mode {
            OwnedMode::Plain(mode) => *mode,
            OwnedMode::PromptMean { groups, tokens } => AggregateMode::PromptMean { groups: groups.view()?, tokens },
        };
        Ok(Aggregate { mode, counts: self.counts, empty_rows: self.empty_rows, divisor: self.divisor })
    }
}

/// `undefined` for those of the batch at hand.
pub(super) fn global_counts(value: &JsValue) -> Result<Counts> {
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

/// The field `aggregate` of a loss's config, read first because the config borrows it.
#[inline(never)]
pub(crate) fn nested_aggregate(config: &JsValue, default: usize) -> Result<OwnedAggregate> {
    if config.is_undefined() {
        return OwnedAggregate::read("aggregate", config, default);
    }
    OwnedAggregate::read("aggregate", &Fields::input("config", config)?.get("aggregate")?, default)
}
