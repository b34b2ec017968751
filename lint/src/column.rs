//! The numbers a rollout may have for every token.

/// Numbers of which there is one per token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// log π of the policy being trained.
    LogProbs,
    /// log π before the update.
    OldLogProbs,
    /// log π of the reference.
    RefLogProbs,
    /// log π as the sampler told it.
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
    /// Entropy of the whole distribution.
    Entropies,
    /// The same before the update.
    OldEntropies,
    /// The critic's new values.
    Predictions,
}

/// How many columns there are.
pub const COLUMNS: usize = 12;

impl Column {
    /// All of them, in the order of their numbers.
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

    /// Inputs before what is computed from them, so that the first one with a fault is its origin.
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
