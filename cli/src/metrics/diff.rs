//! Differences between the results of two frameworks' conventions.

use serde_json::{json, Value};
use tokenwise::{
    advantage::WeightedSum,
    profile::{
        compare, compare_scratch_len, CompareConfig, CompareScratch, Difference, ProfileInput, Quantity, QuantityShape,
    },
    Groups, Moments, Profile, Result,
};

use super::inputs::Inputs;
use crate::{
    args::Metrics,
    output::{count, number, table, wrapped},
    rollout::Column,
};

/// A result that differs.
#[derive(Clone, Debug)]
pub(crate) struct Differs {
    quantity: Quantity,
    entries: u64,
    values: [Result<f64>; 2],
    difference: f64,
    step: Option<u64>,
    /// Line, row or record of the file, and token counted from 1.
    place: Option<u64>,
    token: Option<usize>,
    causes: Vec<Cause>,
}

#[derive(Clone, Debug, PartialEq)]
struct Cause {
    name: &'static str,
    values: [String; 2],
}

/// Buffers of a comparison, reused from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct Comparer {
    tokens: Vec<f64>,
    sequences: Vec<f64>,
    moments: Vec<Moments>,
    sums: Vec<WeightedSum>,
    keep: Vec<bool>,
}

impl Comparer {
    /// The results of a batch that differ; `None` if the file lacks fields for the chain.
    pub(crate) fn run(
        &mut self,
        inputs: &Inputs<'_>,
        profiles: [Profile; 2],
        options: &Metrics,
    ) -> Result<Option<Vec<Differs>>> {
        let column = |column| inputs.column(column);
        // one serves as the other: the first update after sampling
        let log_probs = column(Column::LogProbs).or(column(Column::OldLogProbs));
        let old_log_probs = column(Column::OldLogProbs).or(column(Column::LogProbs));
        // without the KL term, if the file has them
        let rewards = inputs.token_scores().or(column(Column::Rewards).map(Into::into));
        let (Some(rewards), Some(log_probs), Some(old_log_probs)) = (rewards, log_probs, old_log_probs) else {
            return Ok(None);
        };
        let batch = inputs.batch()?;
        let ids = inputs.groups_or_alone();
        let groups = Groups::from_ids(&ids)?;
        let input = ProfileInput {
            rewards: &rewards,
            scores: inputs.scores.as_deref(),
            values: column(Column::Values),
            predictions: column(Column::Predictions),
            log_probs,
            old_log_probs,
            ref_log_probs: column(Column::RefLogProbs),
            rollout_log_probs: column(Column::RolloutLogProbs),
        };
        let sizes = compare_scratch_len(&batch, &groups)?;
        self.tokens.resize(sizes.tokens, 0.0);
        self.sequences.resize(sizes.sequences, 0.0);
        self.moments.resize(sizes.groups, Moments::default());
        self.sums.resize(sizes.groups, WeightedSum::default());
        self.keep.resize(sizes.keep, true);
        let scratch = CompareScratch {
            tokens: &mut self.tokens,
            sequences: &mut self.sequences,
            moments: &mut self.moments,
            sums: &mut self.sums,
            keep: &mut self.keep,
        };
        let config = CompareConfig { clip_low: options.clip_low, clip_high: options.clip_high, ..Default::default() };
        let mut found = Vec::new();
        let sides = profiles.map(Profile::conventions);
        compare(&batch, &groups, input, sides, &config, scratch, |difference| {
            found.push(Differs::new(difference, inputs));
        })?;
        Ok(Some(found))
    }
}

impl Differs {
    fn new(difference: &Difference<'_>, inputs: &Inputs<'_>) -> Self {
        let (place, token) = match (difference.quantity.shape(), difference.index) {
            (QuantityShape::Tokens, Some(slot)) => {
                let (place, token) = inputs.place_of_slot(slot);
                (Some(place), Some(token))
            }
            (QuantityShape::Sequences, Some(sequence)) => (Some(inputs.place_of_sequence(sequence)), None),
            _ => (None, None),
        };
        let causes = difference.causes().map(|cause| Cause {
            name: cause.convention.name(),
            values: cause.values.map(|value| format!("{value:?}")),
        });
        Self {
            quantity: difference.quantity,
            entries: difference.count as u64,
            values: difference.values,
            difference: difference.difference,
            step: inputs.step(),
            place,
            token,
            causes: causes.collect(),
        }
    }

    pub(crate) fn json(&self) -> Value {
        let side = |value: Result<f64>| value.map_or_else(|error| json!(error.to_string()), |x| json!(x));
        let causes: Vec<Value> =
            self.causes.iter().map(|cause| json!({ "convention": cause.name, "values": cause.values })).collect();
        json!({
            "result": self.quantity.name(), "entries": self.entries, "values": self.values.map(side),
            "difference": self.difference, "place": self.place, "token": self.token, "causes": causes,
        })
    }

    /// Merges another batch: keeps the largest difference and all causes.
    fn merge(&mut self, other: &Self) {
        let entries = self.entries + other.entries;
        let mut causes = self.causes.clone();
        causes.extend(other.causes.iter().filter(|cause| !self.causes.contains(cause)).cloned());
        // NaN is the largest difference; of equal ones the first is kept
        if !self.difference.is_nan() && (other.difference.is_nan() || other.difference > self.difference) {
            *self = other.clone();
        }
        self.entries = entries;
        self.causes = causes;
    }

    fn place(&self, several: bool) -> String {
        let step = self.step.filter(|_| several).map(|step| format!("step {step}"));
        let place = self.place.map(|place| format!("row {place}"));
        let token = self.token.map(|token| format!("token {token}"));
        let parts: Vec<String> = step.into_iter().chain(place).chain(token).collect();
        parts.join(", ")
    }
}

/// The results that differ, over all batches.
#[derive(Debug, Default)]
pub(crate) struct AllDiffer {
    found: Vec<Differs>,
    /// Whether any batch could be compared.
    pub(crate) compared: bool,
}

impl AllDiffer {
    pub(crate) fn add(&mut self, found: &[Differs]) {
        self.compared = true;
        for new in found {
            match self.found.iter_mut().find(|known| known.quantity == new.quantity) {
                Some(known) => known.merge(new),
                None => self.found.push(new.clone()),
            }
        }
    }

    /// The results as a table, each followed by the conventions that cause it; with `several` batches also the step.
    pub(crate) fn table(mut self, [mine, theirs]: [Profile; 2], several: bool) -> String {
        if !self.compared {
            return "Results were not compared: the file needs log_probs or old_log_probs, and scores or rewards.\n"
                .into();
        }
        if self.found.is_empty() {
            return "No result of the chain differs.\n".into();
        }
        self.found.sort_by_key(|differs| differs.quantity);
        let mut rows = vec![["result", mine.name(), theirs.name(), "apart by"].map(String::from).to_vec()];
        let side = |value: Result<f64>| value.map_or("refused".into(), number);
        for differs in &self.found {
            let [a, b] = differs.values.map(side);
            rows.push(vec![differs.quantity.name().into(), a, b, number(differs.difference)]);
        }
        let table = table(&rows);
        let mut lines = table.lines();
        let about = format!(
            "Results that differ where scores, advantages and losses are computed anew by both: the numbers where \
             they are farthest apart, how many differ, and the conventions that cause it ({} → {}).",
            mine.name(),
            theirs.name(),
        );
        let mut text = format!("{}\n{}\n", wrapped(&about, ""), lines.next().unwrap_or_default());
        for (line, differs) in lines.zip(&self.found) {
            text += &format!("{line}\n");
            let unit = match differs.quantity.shape() {
                QuantityShape::Tokens => Some("token"),
                QuantityShape::Sequences => Some("sequence"),
                _ => None,
            };
            if let Some(unit) = unit {
                let place = differs.place(several);
                text += &format!("    {}; farthest apart: {place}\n", count(differs.entries, unit));
            }
            for Cause { name, values: [a, b] } in &differs.causes {
                text += &format!("    {name}: {a} → {b}\n");
            }
        }
        text
    }
}
