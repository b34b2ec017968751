//! Per-token columns of a rollout.

/// A per-token column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// log π of the policy being trained.
    LogProbs,
    /// log π before the update.
    OldLogProbs,
    /// log π of the reference.
    RefLogProbs,
    /// log π as reported by the sampler.
    RolloutLogProbs,
    /// Advantages.
    Advantages,
    /// Returns.
    Returns,
    /// The critic's values.
    Values,
    /// Token rewards.
    Rewards,
    /// Task scores on the tokens.
    Scores,
    /// Entropy of the distribution over the vocabulary.
    Entropies,
    /// The same before the update.
    OldEntropies,
    /// The critic's new values.
    Predictions,
}

/// Number of columns.
pub const COLUMNS: usize = 12;

impl Column {
    /// All columns, in declaration order.
    pub const ALL: [Self; COLUMNS] = [
        Self::LogProbs,
        Self::OldLogProbs,
        Self::RefLogProbs,
        Self::RolloutLogProbs,
        Self::Advantages,
        Self::Returns,
        Self::Values,
        Self::Rewards,
        Self::Scores,
        Self::Entropies,
        Self::OldEntropies,
        Self::Predictions,
    ];

    /// Order in which columns are checked: inputs before what is computed from them, so that the first fault is the
    /// cause.
    pub const BY_ORIGIN: [Self; COLUMNS] = [
        Self::RolloutLogProbs,
        Self::OldLogProbs,
        Self::RefLogProbs,
        Self::LogProbs,
        Self::OldEntropies,
        Self::Entropies,
        Self::Values,
        Self::Predictions,
        Self::Scores,
        Self::Rewards,
        Self::Advantages,
        Self::Returns,
    ];

    /// Its name in a rollout file.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LogProbs => "log_probs",
            Self::OldLogProbs => "old_log_probs",
            Self::RefLogProbs => "ref_log_probs",
            Self::RolloutLogProbs => "rollout_log_probs",
            Self::Advantages => "advantages",
            Self::Returns => "returns",
            Self::Values => "values",
            Self::Rewards => "rewards",
            Self::Scores => "token_level_scores",
            Self::Entropies => "entropies",
            Self::OldEntropies => "old_entropies",
            Self::Predictions => "predictions",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_orders_hold_every_column_once() {
        assert!(Column::ALL.iter().enumerate().all(|(index, column)| *column as usize == index));
        assert!(Column::ALL.iter().all(|column| Column::BY_ORIGIN.contains(column)));
    }
}
