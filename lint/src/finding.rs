//! What the rules find, in numbers.

use crate::column::{Column, COLUMNS};

/// What can be wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rule {
    /// A kept token has NaN or ±∞.
    NotANumber,
    /// A reward or score where the mask is 0: it is lost.
    RewardOnDroppedSlot,
    /// The response goes on after the last kept token.
    LastTokenHidden,
    /// No token of a sequence is kept.
    NothingKept,
    /// π/π_old is not 1 although nothing was learned yet.
    RatioAtFirstUpdate,
    /// Returns are not values + advantages.
    ReturnsDisagree,
    /// The advantages of a prompt's samples do not add up to 0.
    GroupNotCentred,
    /// All samples of a prompt have the same score.
    TiedGroup,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 8] = [
        Self::NotANumber,
        Self::RewardOnDroppedSlot,
        Self::LastTokenHidden,
        Self::NothingKept,
        Self::RatioAtFirstUpdate,
        Self::ReturnsDisagree,
        Self::GroupNotCentred,
        Self::TiedGroup,
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
        }
    }
}

/// One fault. Tokens are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub enum Finding {
    /// Where the numbers stop being numbers, and what else that spoilt.
    NotANumber {
        /// The column where it begins.
        column: Column,
        /// Its first such token.
        token: usize,
        /// What stands there.
        value: f64,
        /// How many more tokens of the column have a fault.
        more: usize,
        /// How many tokens have one in the columns computed after it; in the order of [`Column::ALL`].
        spoilt: [usize; COLUMNS],
    },
    /// The columns are fine, the score of the sequence is not.
    ScoreNotANumber {
        /// What stands there.
        value: f64,
    },
    /// A reward that nobody reads.
    RewardOnDroppedSlot {
        /// [`Column::Scores`] or [`Column::Rewards`].
        column: Column,
        /// The first such token.
        token: usize,
        /// The reward.
        value: f64,
    },
    /// The response goes on after the last kept token.
    LastTokenHidden {
        /// The last token that was generated.
        token: usize,
        /// The last token that is kept.
        last: usize,
    },
    /// No token is kept.
    NothingKept,
    /// A ratio that should be 1.
    RatioAtFirstUpdate {
        /// Where it is farthest from 1.
        token: usize,
        /// The ratio there.
        ratio: f64,
        /// How many tokens are too far from 1.
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
        /// What the return should be.
        wanted: f64,
        /// How many more tokens disagree.
        more: usize,
    },
    /// The advantages of a prompt's samples do not add up to 0.
    GroupNotCentred {
        /// How many samples there are.
        size: u32,
        /// What the advantages add up to.
        sum: f64,
    },
    /// All samples of a prompt have the same score.
    TiedGroup {
        /// How many samples there are.
        size: u32,
        /// The score.
        score: f64,
    },
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
        }
    }

    /// The token it is about, if it is about one.
    #[must_use]
    pub const fn token(&self) -> Option<usize> {
        match self {
            Self::NotANumber { token, .. }
            | Self::RewardOnDroppedSlot { token, .. }
            | Self::LastTokenHidden { token, .. }
            | Self::RatioAtFirstUpdate { token, .. }
            | Self::ReturnsDisagree { token, .. } => Some(*token),
            _ => None,
        }
    }

    /// The column it is about, if it is about one.
    #[must_use]
    pub const fn column(&self) -> Option<Column> {
        match self {
            Self::NotANumber { column, .. } | Self::RewardOnDroppedSlot { column, .. } => Some(*column),
            _ => None,
        }
    }
}
