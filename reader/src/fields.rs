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

/// A name that stands for a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Match {
    pub(crate) field: Field,
    /// Which of its names.
    pub(crate) name: NameId,
}

/// One of the names of a field.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct NameId(u16);

/// Names of a field in the tables above.
const MOST_NAMES: u16 = 16;
/// The names given on the command line have higher numbers.
const GIVEN: u16 = 1 << 12;

impl Names {
    /// From `FIELD=NAME` arguments; `FIELD=` means that a field is not read at all.
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
        let given: Vec<(String, Field)> = given.iter().map(parse).collect::<Result<_, String>>()?;
        for (index, (name, field)) in given.iter().enumerate() {
            if given[..index].iter().any(|(_, other)| other == field) {
                return Err(format!("{}={name}: this field was given before", field.name()));
            }
        }
        Ok(Self { given })
    }

    /// The field with this name; a field that was given another name is no longer found under its usual ones.
    #[must_use]
    pub fn find(&self, name: &str) -> Option<Field> {
        self.matching(name).map(|found| found.field)
    }

    pub(crate) fn matching(&self, name: &str) -> Option<Match> {
        if name.is_empty() {
            return None;
        }
        if let Some(index) = self.given.iter().position(|(given, _)| given == name) {
            return Some(Match { field: self.given[index].1, name: NameId(GIVEN + index as u16) });
        }
        let found = known(&NAMES, 0, name)?;
        (!self.given.iter().any(|(_, field)| *field == found.field)).then_some(found)
    }

    /// The text of a name.
    pub(crate) fn text(&self, name: NameId) -> &str {
        if let Some(given) = name.0.checked_sub(GIVEN) {
            return self.given.get(usize::from(given)).map_or("", |(given, _)| given);
        }
        let row = NAMES.iter().chain(&LABELS).nth(usize::from(name.0 / MOST_NAMES));
        row.and_then(|(_, names)| names.get(usize::from(name.0 % MOST_NAMES))).copied().unwrap_or_default()
    }

    /// The names given on the command line.
    pub(crate) fn given(&self) -> impl Iterator<Item = (Field, &str, NameId)> {
        let named = self.given.iter().enumerate().filter(|(_, (name, _))| !name.is_empty());
        named.map(|(index, (name, field))| (*field, name.as_str(), NameId(GIVEN + index as u16)))
    }
}

fn known(table: &[(Field, &[&str])], first: usize, name: &str) -> Option<Match> {
    table.iter().enumerate().find_map(|(row, (field, names))| {
        let place = names.iter().position(|known| *known == name)?;
        Some(Match { field: *field, name: NameId((first + row) as u16 * MOST_NAMES + place as u16) })
    })
}

/// The field of a label.
pub(crate) fn label(name: &str) -> Option<Match> {
    known(&LABELS, NAMES.len(), name)
}

/// All fields.
pub(crate) fn all() -> impl Iterator<Item = Field> {
    NAMES.iter().chain(&LABELS).map(|(field, _)| *field)
}

/// Number of fields.
pub(crate) const FIELDS: usize = NAMES.len() + LABELS.len();

impl Field {
    /// Our name.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().chain(&LABELS).find(|(field, _)| *field == self).map_or("", |(_, names)| names[0])
    }

    /// Whether it has a value of its own, other than a place where fields are.
    pub(crate) fn is_data(self) -> bool {
        !matches!(self, Self::Sequence | Self::Inside | Self::List)
    }

    /// Its place in a list of all fields.
    pub(crate) fn index(self) -> usize {
        match self {
            Self::Column(column) => column as usize,
            Self::Mask => COLUMNS,
            Self::Score => COLUMNS + 1,
            Self::Step => COLUMNS + 2,
            Self::Group => COLUMNS + 3,
            Self::Prompt => COLUMNS + 4,
            Self::Truncated => COLUMNS + 5,
            Self::FirstUpdate => COLUMNS + 6,
            Self::Length => COLUMNS + 7,
            Self::PromptLength => COLUMNS + 8,
            Self::Sequence => COLUMNS + 9,
            Self::Inside => COLUMNS + 10,
            Self::List => COLUMNS + 11,
            Self::Text => COLUMNS + 12,
            Self::Id => COLUMNS + 13,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_once() {
        let mut seen = std::collections::HashSet::new();
        assert!(NAMES.iter().chain(&LABELS).flat_map(|(_, names)| names.iter()).all(|name| seen.insert(name)));
        assert!(NAMES.iter().chain(&LABELS).all(|(_, names)| names.len() <= usize::from(MOST_NAMES)));
        assert!(Column::ALL.iter().all(|column| Field::Column(*column).name() == column.name()));
        let places: std::collections::HashSet<usize> =
            NAMES.iter().chain(&LABELS).map(|(field, _)| field.index()).collect();
        assert!(places.len() == FIELDS && places.iter().all(|place| *place < FIELDS));
        let names = Names::new(&["score=accuracy".into(), "values=".into()]).unwrap();
        assert_eq!(names.find("accuracy"), Some(Field::Score));
        assert_eq!((names.find("reward"), names.find("values"), names.find("")), (None, None, None));
        assert_eq!(names.find("uid"), Some(Field::Group));
        for name in ["accuracy", "uid", "response_mask"] {
            assert_eq!(names.text(names.matching(name).unwrap().name), name);
        }
        assert_eq!(names.text(label("ids").unwrap().name), "ids");
        assert!(Names::new(&["score".into()]).is_err() && Names::new(&["colour=x".into()]).is_err());
        assert!(Names::new(&["score=a".into(), "score=b".into()]).is_err());
    }
}
