//! The records as they are written. Only what becomes a field is read.

use std::collections::BTreeMap;

use serde::{de::IgnoredAny, Deserialize, Deserializer};

use super::{Node, Streams, Trace, Update, ANNOTATED};
use crate::{fault::Fault, feeder::Feeder};

/// A number; what is not finite is written as `null`.
struct Number(f64);

impl<'de> Deserialize<'de> for Number {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Self(Option::<f64>::deserialize(deserializer)?.unwrap_or(f64::NAN)))
    }
}

type Numbers = Option<Vec<Number>>;

#[derive(Deserialize)]
struct Line {
    group: Option<Group>,
    run: Option<Run>,
    traces: Option<Vec<TraceRecord>>,
    /// An annotation has one; a trace has `id`.
    trace_id: Option<String>,
    info: Option<Loose<Info>>,
    branches: Option<Vec<BranchRecord>>,
}

#[derive(Deserialize)]
struct Group {
    id: String,
}

#[derive(Deserialize)]
struct Run {
    #[serde(rename = "type")]
    kind: Option<String>,
    work: Option<Work>,
    step: Option<u64>,
}

#[derive(Deserialize)]
struct Work {
    #[serde(rename = "type")]
    kind: Option<String>,
    step: Option<u64>,
}

#[derive(Deserialize)]
struct TraceRecord {
    id: Option<String>,
    agent: Option<Agent>,
    run: Option<Run>,
    nodes: Option<Vec<NodeRecord>>,
    calls: Option<Vec<Call>>,
    rewards: Option<BTreeMap<String, Option<Reward>>>,
    info: Option<Loose<Info>>,
    stop_condition: Option<String>,
}

#[derive(Deserialize)]
struct Agent {
    trainable: Option<bool>,
}

#[derive(Deserialize)]
struct Call {
    finish_reason: Option<String>,
    error: Option<IgnoredAny>,
}

#[derive(Deserialize)]
struct Reward {
    score: f64,
    weight: Option<f64>,
}

/// A value of which only one form is known.
#[derive(Deserialize)]
#[serde(untagged)]
enum Loose<T> {
    Known(T),
    Other(IgnoredAny),
}

impl<T: Default> Loose<T> {
    fn known(this: Option<Self>) -> T {
        match this {
            Some(Self::Known(known)) => known,
            _ => T::default(),
        }
    }
}

/// When a trace was sent to the trainer, and when it was trained on.
#[derive(Default, Deserialize)]
struct Info {
    group_id: Option<String>,
    train: Option<Trained>,
    ship: Option<Shipped>,
}

#[derive(Deserialize)]
struct Trained {
    trained_at_step: Option<u64>,
}

#[derive(Deserialize)]
struct Shipped {
    step: Option<u64>,
}

impl Info {
    fn step(&self) -> Option<u64> {
        let trained = self.train.as_ref().and_then(|train| train.trained_at_step);
        trained.or(self.ship.as_ref().and_then(|ship| ship.step))
    }
}

#[derive(Deserialize)]
struct NodeRecord {
    parent: Option<usize>,
    mask: Option<Vec<bool>>,
    token_ids: Option<Vec<u64>>,
    logprobs: Numbers,
    reference_logprobs: Numbers,
    trainer_logprobs: Numbers,
    advantages: Numbers,
    entropies: Numbers,
}

#[derive(Deserialize)]
struct BranchRecord {
    index: usize,
    trainer_logprobs: Numbers,
    advantages: Numbers,
    entropies: Numbers,
}

/// Letters of a message.
const LONGEST: usize = 100;

/// Limits of the framework, and of the model, that cut a response off.
const LIMITS: [&str; 5] = ["max_turns", "max_input_tokens", "max_output_tokens", "max_total_tokens", "context_length"];

fn floats(numbers: Numbers) -> Option<Vec<f64>> {
    numbers.map(|numbers| numbers.into_iter().map(|number| number.0).collect())
}

/// Adds a line to what was read; `Err(None)` if it is not JSON, which the general reader describes.
pub(super) fn parse(text: &[u8], feeder: &mut Feeder<'_>) -> Result<(), Option<Fault>> {
    let wrong = |error: serde_json::Error| {
        let reason = error.to_string();
        let reason = reason.rfind(" at line ").map_or(reason.as_str(), |end| &reason[..end]);
        error.is_data().then(|| Fault::NotATrace { reason: reason.chars().take(LONGEST).collect() })
    };
    let line: Line = serde_json::from_slice(text).map_err(wrong)?;
    if let Some(id) = line.trace_id {
        let step = Loose::known(line.info).step();
        let branches = line.branches.unwrap_or_default().into_iter().map(|branch| {
            let BranchRecord { index, trainer_logprobs, advantages, entropies } = branch;
            (index, [None, None, floats(trainer_logprobs), floats(advantages), floats(entropies)])
        });
        feeder.add_update(id, Update { step, branches: branches.collect() })?;
        return Ok(());
    }
    let group = line.group.map(|group| group.id);
    let traces = match line.traces {
        Some(traces) => traces,
        // a trace without its episode
        None => vec![serde_json::from_slice(text).map_err(wrong)?],
    };
    for record in traces {
        let run = record.run.as_ref().or(line.run.as_ref());
        let work = run.and_then(|run| run.work.as_ref());
        let is = |kind: &Option<String>, name| kind.as_deref() == Some(name);
        if run.is_some_and(|run| is(&run.kind, "train")) && work.is_some_and(|work| is(&work.kind, "eval")) {
            feeder.traces.left_out.evaluations += 1;
            continue;
        }
        if record.agent.as_ref().and_then(|agent| agent.trainable) == Some(false) {
            feeder.traces.left_out.not_trained += 1;
            continue;
        }
        let info = Loose::known(record.info);
        let dispatched = work.and_then(|work| work.step).or(run.and_then(|run| run.step));
        let rewards = record.rewards.unwrap_or_default();
        let mut score = None;
        for Reward { score: reward, weight } in rewards.into_values().flatten() {
            score = Some(score.unwrap_or(0.0) + reward * weight.unwrap_or(1.0));
        }
        let last = record.calls.iter().flatten().rfind(|call| call.error.is_none());
        let trace = Trace {
            id: record.id.unwrap_or_default(),
            file: 0,
            place: feeder.place,
            step: info.step().or(dispatched).or(feeder.traces.step),
            group: group.clone().or(info.group_id),
            score,
            truncated: record.stop_condition.is_some_and(|reason| LIMITS.contains(&reason.as_str()))
                || last.is_some_and(|call| call.finish_reason.as_deref() == Some("length")),
            nodes: nodes(record.nodes.unwrap_or_default(), feeder.labels())?,
        };
        feeder.add_trace(trace)?;
    }
    Ok(())
}

fn nodes(records: Vec<NodeRecord>, labels: bool) -> Result<Vec<Node>, Fault> {
    let mut nodes = Vec::with_capacity(records.len());
    for (index, record) in records.into_iter().enumerate() {
        if let Some(parent) = record.parent.filter(|parent| *parent >= index) {
            return Err(Fault::NotATrace { reason: format!("node {index} has node {parent} as its parent") });
        }
        let mask = record.mask.unwrap_or_default();
        let length = |field: &str, got: usize, expected: usize| match got == expected {
            true => Ok(()),
            false => Err(Fault::Lengths {
                field: field.into(),
                got: got.to_string(),
                first: "mask".into(),
                expected: expected.to_string(),
            }),
        };
        let ids = record.token_ids.unwrap_or_default();
        length("token_ids", ids.len(), mask.len())?;
        let sampled = mask.iter().filter(|sampled| **sampled).count();
        let mut streams: Streams = Default::default();
        let given = [
            ("logprobs", record.logprobs),
            ("reference_logprobs", record.reference_logprobs),
            ("trainer_logprobs", record.trainer_logprobs),
            ("advantages", record.advantages),
            ("entropies", record.entropies),
        ];
        for (stream, (name, numbers)) in streams.iter_mut().zip(given) {
            // an empty list is the same as none, unless there is nothing to be listed
            *stream = floats(numbers).filter(|numbers| !numbers.is_empty() && sampled > 0);
            if let Some(numbers) = stream {
                length(name, numbers.len(), sampled)?;
            }
        }
        nodes.push(Node { parent: record.parent, mask, ids: if labels { ids } else { Vec::new() }, streams });
    }
    Ok(nodes)
}

const _: () = assert!(ANNOTATED == 2, "annotations leave the first two streams empty");
