//! What the rules find, in numbers.

use crate::column::{Column, COLUMNS};

/// The rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A kept token is NaN or ±∞.
    NotANumber,
    /// A reward or score on a dropped token: it is lost.
    RewardOnDroppedSlot,
    /// The response continues after the last kept token.
    LastTokenHidden,
    /// No token of a sequence is kept.
    NothingKept,
    /// π/π_old differs from 1 before the first update.
    RatioAtFirstUpdate,
    /// Returns are not values + advantages.
    ReturnsDisagree,
    /// The advantages of a prompt's samples do not sum to 0.
    GroupNotCentred,
    /// All samples of a prompt have the same score.
    TiedGroup,
    /// A probability above 1.
    LogProbAboveZero,
    /// Other sequences have a score, this one has none.
    ScoreMissing,
    /// Other sequences have tokens, this one has none.
    EmptySequence,
}

impl Rule {
    /// All rules.
    pub const ALL: [Self; 11] = [
        Self::NotANumber,
        Self::RewardOnDroppedSlot,
        Self::LastTokenHidden,
        Self::NothingKept,
        Self::RatioAtFirstUpdate,
        Self::ReturnsDisagree,
        Self::GroupNotCentred,
        Self::TiedGroup,
        Self::LogProbAboveZero,
        Self::ScoreMissing,
        Self::EmptySequence,
    ];

    /// Its name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::NotANumber => "not-a-number",
            Self::RewardOnDroppedSlot => "reward-on-dropped-slot",
            Self::LastTokenHidden => "last-token-hidden",
            Self::NothingKept => "nothing-kept",
            Self::RatioAtFirstUpdate => "ratio-at-first-update",
            Self::ReturnsDisagree => "returns-disagree",
            Self::GroupNotCentred => "group-not-centred",
            Self::TiedGroup => "tied-group",
            Self::LogProbAboveZero => "log-prob-above-zero",
            Self::ScoreMissing => "score-missing",
            Self::EmptySequence => "empty-sequence",
        }
    }
}

/// One fault. Tokens are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// The first value that is not finite, and how many others follow from it.
    NotANumber {
        /// The column in which it appears first.
        column: Column,
        /// Its first such token.
        token: usize,
        /// The value.
        value: f64,
        /// Number of further tokens of this column that are not finite.
        more: usize,
        /// Number of such tokens in each column computed from it; indexed like [`Column::ALL`].
        spoilt: [usize; COLUMNS],
    },
    /// The columns are finite, the score of the sequence is not.
    ScoreNotANumber {
        /// The score.
        value: f64,
    },
    /// A reward that is never used.
    RewardOnDroppedSlot {
        /// [`Column::Scores`] or [`Column::Rewards`].
        column: Column,
        /// The first such token.
        token: usize,
        /// The reward.
        value: f64,
    },
    /// The response continues after the last kept token.
    LastTokenHidden {
        /// The last generated token.
        token: usize,
        /// The last kept token.
        last: usize,
    },
    /// No token is kept.
    NothingKept,
    /// A ratio that should be 1.
    RatioAtFirstUpdate {
        /// The token farthest from 1.
        token: usize,
        /// The ratio there.
        ratio: f64,
        /// Number of tokens too far from 1.
        tokens: usize,
    },
    /// A return that is not value + advantage.
    ReturnsDisagree {
        /// The first such token.
        token: usize,
        /// The return.
        returned: f64,
        /// The value.
        value: f64,
        /// The advantage.
        advantage: f64,
        /// value + advantage.
        wanted: f64,
        /// Number of further tokens that disagree.
        more: usize,
    },
    /// The advantages of a prompt's samples do not sum to 0.
    GroupNotCentred {
        /// Number of samples.
        size: u32,
        /// Sum of the advantages.
        sum: f64,
    },
    /// All samples of a prompt have the same score.
    TiedGroup {
        /// Number of samples.
        size: u32,
        /// The score.
        score: f64,
    },
    /// The logarithm of a probability above 1.
    LogProbAboveZero {
        /// The column.
        column: Column,
        /// The first such token.
        token: usize,
        /// The value.
        value: f64,
        /// Number of further tokens of this column.
        more: usize,
    },
    /// A sequence without a score among others that have one.
    ScoreMissing,
    /// A sequence without tokens among others that have some.
    EmptySequence,
}

impl Finding {
    /// The rule that was broken.
    #[must_use]
    pub const fn rule(&self) -> Rule {
        match self {
            Self::NotANumber { .. } | Self::ScoreNotANumber { .. } => Rule::NotANumber,
            Self::RewardOnDroppedSlot { .. } => Rule::RewardOnDroppedSlot,
            Self::LastTokenHidden { .. } => Rule::LastTokenHidden,
            Self::NothingKept => Rule::NothingKept,
            Self::RatioAtFirstUpdate { .. } => Rule::RatioAtFirstUpdate,
            Self::ReturnsDisagree { .. } => Rule::ReturnsDisagree,
            Self::GroupNotCentred { .. } => Rule::GroupNotCentred,
            Self::TiedGroup { .. } => Rule::TiedGroup,
            Self::LogProbAboveZero { .. } => Rule::LogProbAboveZero,
            Self::ScoreMissing => Rule::ScoreMissing,
            Self::EmptySequence => Rule::EmptySequence,
        }
    }

    /// The token concerned, if any.
    #[must_use]
    pub const fn token(&self) -> Option<usize> {
        match self {
            Self::NotANumber { token, .. }
            | Self::RewardOnDroppedSlot { token, .. }
            | Self::LastTokenHidden { token, .. }
            | Self::RatioAtFirstUpdate { token, .. }
            | Self::LogProbAboveZero { token, .. }
            | Self::ReturnsDisagree { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// The column concerned, if any.
    #[must_use]
    pub const fn column(&self) -> Option<Column> {
        match self {
            Self::NotANumber { column, .. }
            | Self::RewardOnDroppedSlot { column, .. }
            | Self::LogProbAboveZero { column, .. } => Some(*column),
            _ => None,
        }
    }
}
