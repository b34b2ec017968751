//! The field names of rollout files.

pub use tokenwise_lint::Column;
pub(crate) use tokenwise_lint::COLUMNS;

/// What a field of a file holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Field {
    /// Numbers of which there is one per token.
    Column(Column),
    /// Which tokens take part.
    Mask,
    /// One number per sequence.
    Score,
    /// Training step.
    Step,
    /// The sequences with the same one answer the same prompt.
    Group,
    /// The same, if there is no group.
    Prompt,
    /// Whether the response was cut off.
    Truncated,
    /// Whether it is the first update after sampling.
    FirstUpdate,
    /// Tokens of the response.
    Length,
    /// Tokens of the prompt.
    PromptLength,
    /// The sequence that a row belongs to, in a table with one token per row.
    Sequence,
    /// An object whose fields belong to the one around it.
    Inside,
    /// A list of objects that inherit the fields read before it.
    List,
    /// The text of a token.
    Text,
    /// Its id in the vocabulary.
    Id,
}

use Column::{
    Advantages, Entropies, LogProbs, OldEntropies, OldLogProbs, Predictions, RefLogProbs, Returns, Rewards,
    RolloutLogProbs, Scores, Values,
};

/// Our name first, then those of others.
const NAMES: [(Field, &[&str]); 24] = [
    (
        Field::Column(LogProbs),
        &["log_probs", "logprobs", "new_log_probs", "log_prob", "per_token_logps", "trainer_logprobs"],
    ),
    (Field::Column(OldLogProbs), &["old_log_probs", "old_logprobs", "old_log_prob", "old_per_token_logps"]),
    (Field::Column(RefLogProbs), &["ref_log_probs", "ref_logprobs", "ref_log_prob", "ref_per_token_logps"]),
    (
        Field::Column(RolloutLogProbs),
        &[
            "rollout_log_probs",
            "rollout_logprobs",
            "sampling_log_probs",
            "sampling_per_token_logps",
            "inference_logprobs",
        ],
    ),
    (Field::Column(Advantages), &["advantages", "advantage"]),
    (Field::Column(Returns), &["returns"]),
    (Field::Column(Values), &["values"]),
    (Field::Column(Rewards), &["rewards", "token_level_rewards", "token_rewards"]),
    (Field::Column(Scores), &["token_level_scores", "token_scores"]),
    (Field::Column(Entropies), &["entropies", "token_entropies", "entropy"]),
    (Field::Column(OldEntropies), &["old_entropies", "entropys"]),
    (Field::Column(Predictions), &["predictions", "new_values", "vpreds"]),
    (Field::Mask, &["mask", "response_mask", "loss_mask", "completion_mask", "action_mask"]),
    (Field::Score, &["score", "scores", "reward"]),
    (Field::Step, &["step", "global_step"]),
    (Field::Group, &["group", "group_id", "uid", "prompt_id"]),
    (Field::Prompt, &["prompt", "input"]),
    (Field::Truncated, &["truncated", "is_truncated"]),
    (Field::FirstUpdate, &["first_update", "is_first_step_after_rollout_phase"]),
    (Field::Length, &["response_length", "completion_length", "num_tokens"]),
    (Field::PromptLength, &["prompt_length", "prompt_len"]),
    (Field::Sequence, &["sequence", "sequence_id"]),
    (Field::Inside, &["tokens", "token_data"]),
    (Field::List, &["entries", "prompts", "responses", "rollouts", "samples", "sequences", "records", "data"]),
];

/// Fields that are read only with [`Options::labels`](crate::Options::labels).
const LABELS: [(Field, &[&str]); 2] = [
    (Field::Text, &["strings", "response_tokens", "token_strings", "token_texts", "token", "token_text"]),
    (Field::Id, &["ids", "token_ids", "response_ids", "completion_ids"]),
];

/// The names of a file: the usual ones and those given on the command line.
#[derive(Clone, Debug, Default)]
pub struct Names {
    given: Vec<(String, Field)>,
}

impl Names {
    /// From `FIELD=NAME` arguments.
    ///
    /// # Errors
    ///
    /// If there is no such field, or no `=`.
    pub fn new(given: &[String]) -> Result<Self, String> {
        let parse = |text: &String| {
            let (ours, theirs) = text
                .split_once('=')
                .ok_or_else(|| format!("{text}: expected FIELD=NAME, e.g. score=accuracy_reward"))?;
            let field = NAMES.iter().find(|(_, names)| names[0] == ours).map(|(field, _)| *field).ok_or_else(|| {
                let all: Vec<&str> = NAMES.iter().map(|(_, names)| names[0]).collect();
                format!("{text}: there is no field {ours:?}; there are {}", all.join(", "))
            })?;
            Ok((theirs.to_string(), field))
        };
        Ok(Self { given: given.iter().map(parse).collect::<Result<_, String>>()? })
    }

    /// The field with this name; a field that was given another name is no longer found under its usual ones.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Field> {
        if let Some((_, field)) = self.given.iter().find(|(given, _)| given == name) {
            return Some(*field);
        }
        let found = NAMES.iter().find(|(_, names)| names.contains(&name)).map(|(field, _)| *field)?;
        (!self.given.iter().any(|(_, field)| *field == found)).then_some(found)
    }
}

/// The field of a label.
pub(crate) fn label(name: &str) -> Option<Field> {
    LABELS.iter().find(|(_, names)| names.contains(&name)).map(|(field, _)| *field)
}

impl Field {
    /// Our name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().chain(&LABELS).find(|(field, _)| *field == self).map_or("", |(_, names)| names[0])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_once() {
        let mut seen = std::collections::HashSet::new();
        assert!(NAMES.iter().chain(&LABELS).flat_map(|(_, names)| names.iter()).all(|name| seen.insert(name)));
        assert!(Column::ALL.iter().all(|column| Field::Column(*column).name() == column.name()));
        let names = Names::new(&["score=accuracy".into()]).unwrap();
        assert_eq!(names.find("accuracy"), Some(Field::Score));
        assert_eq!(names.find("reward"), None);
        assert_eq!(names.find("uid"), Some(Field::Group));
        assert!(Names::new(&["score".into()]).is_err() && Names::new(&["colour=x".into()]).is_err());
    }
}
