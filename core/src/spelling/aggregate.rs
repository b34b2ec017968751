//! An aggregation: the name of its mode next to the other fields.

use serde::{Deserialize, Deserializer, Serialize};

use super::{given, Either, Entry, Over};
use crate::{
    groups::Groups,
    loss::{Aggregate, AggregateMode, Counts, EmptyRows},
    statistics::Divisor,
};

/// The names of the modes.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Mode {
    TokenMean,
    TokenSum,
    SeqMeanTokenSum,
    SeqMeanTokenSumNorm,
    SeqMeanTokenMean,
    PromptMean,
}

impl Mode {
    fn of(mode: AggregateMode<'_>) -> (Self, Option<Entry<f64>>) {
        match mode {
            AggregateMode::TokenMean => (Self::TokenMean, None),
            AggregateMode::TokenSum => (Self::TokenSum, None),
            AggregateMode::SequenceMeanTokenSum => (Self::SeqMeanTokenSum, None),
            AggregateMode::SequenceMeanTokenSumNorm { scale } => (Self::SeqMeanTokenSumNorm, Some(Entry(scale))),
            AggregateMode::SequenceMeanTokenMean => (Self::SeqMeanTokenMean, None),
            AggregateMode::PromptMean { .. } => (Self::PromptMean, None),
        }
    }

    fn with(self, scale: Option<Entry<f64>>) -> Result<AggregateMode<'static>, &'static str> {
        Ok(match (self, scale) {
            (Self::SeqMeanTokenSumNorm, Some(Entry(scale))) => AggregateMode::SequenceMeanTokenSumNorm { scale },
            (Self::SeqMeanTokenSumNorm, None) => return Err("missing field `scale`"),
            (_, Some(_)) => return Err("`scale` does not belong to this mode"),
            (Self::TokenMean, None) => AggregateMode::TokenMean,
            (Self::TokenSum, None) => AggregateMode::TokenSum,
            (Self::SeqMeanTokenSum, None) => AggregateMode::SequenceMeanTokenSum,
            (Self::SeqMeanTokenMean, None) => AggregateMode::SequenceMeanTokenMean,
            (Self::PromptMean, None) => AggregateMode::PromptMean { groups: Groups::NONE, tokens: &[] },
        })
    }
}

/// A mode on its own: its name, or an object if it has a number.
pub(crate) type EitherMode = Either<Mode, ModeObject>;

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ModeObject {
    mode: Mode,
    #[serde(default, deserialize_with = "given", skip_serializing_if = "Option::is_none")]
    scale: Option<Entry<f64>>,
}

impl From<AggregateMode<'_>> for EitherMode {
    fn from(mode: AggregateMode<'_>) -> Self {
        match Mode::of(mode) {
            (mode, None) => Self::Plain(mode),
            (mode, scale) => Self::Object(ModeObject { mode, scale }),
        }
    }
}

impl TryFrom<EitherMode> for AggregateMode<'_> {
    type Error = &'static str;
    fn try_from(mode: EitherMode) -> Result<Self, Self::Error> {
        match mode {
            Either::Plain(mode) => mode.with(None),
            Either::Object(ModeObject { mode, scale }) => mode.with(scale),
        }
    }
}

/// The serialized form of an aggregation.
#[derive(Serialize)]
pub(crate) struct Written {
    mode: Mode,
    #[serde(skip_serializing_if = "Option::is_none")]
    scale: Option<Entry<f64>>,
    counts: Counts,
    empty_rows: EmptyRows,
    divisor: Divisor,
}

impl From<Aggregate<'_>> for Written {
    fn from(aggregate: Aggregate<'_>) -> Self {
        let Aggregate { mode, counts, empty_rows, divisor } = aggregate;
        let (mode, scale) = Mode::of(mode);
        Self { mode, scale, counts, empty_rows, divisor }
    }
}

/// The fields of an aggregation as read; missing ones are `None`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Given {
    #[serde(default, deserialize_with = "given")]
    mode: Option<Mode>,
    #[serde(default, deserialize_with = "given")]
    scale: Option<Entry<f64>>,
    #[serde(default, deserialize_with = "given")]
    counts: Option<Counts>,
    #[serde(default, deserialize_with = "given")]
    empty_rows: Option<EmptyRows>,
    #[serde(default, deserialize_with = "given")]
    divisor: Option<Divisor>,
}

impl Given {
    fn over(self, usual: Aggregate<'_>) -> Result<Aggregate<'_>, &'static str> {
        let mode = match (self.mode, &self.scale) {
            (Some(mode), _) => mode.with(self.scale)?,
            (None, Some(_)) => return Err("`scale` without its mode"),
            (None, None) => usual.mode,
        };
        Ok(Aggregate {
            mode,
            counts: self.counts.unwrap_or(usual.counts),
            empty_rows: self.empty_rows.unwrap_or(usual.empty_rows),
            divisor: self.divisor.unwrap_or(usual.divisor),
        })
    }
}

impl TryFrom<Given> for Aggregate<'_> {
    type Error = &'static str;
    fn try_from(given: Given) -> Result<Self, Self::Error> {
        given.over(Self::default())
    }
}

impl Over for Aggregate<'_> {
    fn over<'de, D: Deserializer<'de>>(usual: Self, deserializer: D) -> Result<Self, D::Error> {
        Given::deserialize(deserializer)?.over(usual).map_err(serde::de::Error::custom)
    }
}
