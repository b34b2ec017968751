//! prime-rl's traces since 2026-08-31: a stream of episodes in the order in which they arrived, and annotations in
//! other files, which give traces by their id what was learned later (advantages, the trainer's log-probabilities).
//!
//! A trace is a graph of messages. Each path from a root to a leaf is a branch, and a branch is a sequence. Both kinds
//! of records are kept until all files have been read: annotations may come first or last, and steps are not in order.

mod fold;
mod record;

use std::collections::HashMap;

use serde::de::{IgnoredAny, MapAccess, Visitor};
use serde::Deserializer;

use crate::{fault::Fault, feeder::Feeder, fields::Column};

/// Names by which lines of this kind are recognised.
pub(crate) const NAMES: [&str; 3] = ["traces", "nodes", "trace_id"];

/// What there may be per token: the column, and the name under which `--field` and the names found know it.
const STREAMS: [(Column, &str); 5] = [
    (Column::RolloutLogProbs, "inference_logprobs"),
    (Column::RefLogProbs, "ref_logprobs"),
    (Column::LogProbs, "trainer_logprobs"),
    (Column::Advantages, "advantages"),
    (Column::Entropies, "entropies"),
];

/// Those after the first two come from annotations.
const ANNOTATED: usize = 2;

type Streams = [Option<Vec<f64>>; STREAMS.len()];

/// Bytes of memory per byte of text while a line is parsed: a number takes eight and two characters, and lists double.
const PER_BYTE: u64 = 8;

/// What was read so far.
#[derive(Debug, Default)]
pub(crate) struct Traces {
    traces: Vec<Trace>,
    updates: HashMap<String, Vec<Update>>,
    /// Memory that both take.
    pub(crate) bytes: u64,
    /// The step of records without one.
    pub(crate) step: Option<u64>,
    pub(crate) left_out: LeftOut,
}

/// Traces that are not among the sequences.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LeftOut {
    /// Evaluations within a training run.
    pub evaluations: u64,
    /// Of agents that are not trained.
    pub not_trained: u64,
    /// Branches without annotations, while others have them: no training step used them.
    pub not_annotated: u64,
}

#[derive(Debug)]
struct Trace {
    id: String,
    file: u32,
    place: u64,
    step: Option<u64>,
    group: Option<String>,
    score: Option<f64>,
    truncated: bool,
    nodes: Vec<Node>,
}

/// A message: the tokens that it adds to the path before it.
#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    /// Which of its tokens the policy sampled.
    mask: Vec<bool>,
    /// Only if texts of tokens are wanted.
    ids: Vec<u64>,
    /// One entry per sampled token.
    streams: Streams,
}

/// An annotation.
#[derive(Debug)]
struct Update {
    step: Option<u64>,
    /// The branch, and one entry per token from its first token on.
    branches: Vec<(usize, Streams)>,
}

/// Reads a line if it is an episode, a trace or an annotation; `false` if it is none of them.
pub(crate) fn line(text: &[u8], feeder: &mut Feeder<'_>) -> Result<bool, Fault> {
    if !is_trace(text) {
        return Ok(false);
    }
    let what = if feeder.traces.bytes == 0 { "one line" } else { fold::WHAT };
    feeder.check_buffer(what, PER_BYTE * text.len() as u64)?;
    match record::parse(text, feeder) {
        Ok(()) => Ok(true),
        Err(Some(fault)) => Err(fault),
        Err(None) => Ok(false),
    }
}

/// Looks at the names of the outermost object only.
fn is_trace(text: &[u8]) -> bool {
    let named = |name: &str| memchr::memmem::find(text, name.as_bytes()).is_some();
    if !NAMES.iter().any(|name| named(name)) {
        return false;
    }
    let mut parser = serde_json::Deserializer::from_slice(text);
    parser.deserialize_map(Outline).unwrap_or(false)
}

struct Outline;

impl<'de> Visitor<'de> for Outline {
    type Value = bool;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<bool, A::Error> {
        let (mut traces, mut nodes, mut id, mut update) = (false, false, false, false);
        while let Some(name) = map.next_key::<std::borrow::Cow<'_, str>>()? {
            match &*name {
                "traces" => traces = map.next_value::<IsList>()?.0,
                "nodes" => nodes = map.next_value::<IsList>()?.0,
                "branches" => update |= map.next_value::<IsList>()?.0,
                "trace_id" => {
                    map.next_value::<IgnoredAny>()?;
                    id = true;
                }
                _ => drop(map.next_value::<IgnoredAny>()?),
            }
        }
        Ok(traces || nodes || (id && update))
    }
}

/// Whether a value is a list of objects (or empty).
struct IsList(bool);

impl<'de> serde::Deserialize<'de> for IsList {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let raw = <&serde_json::value::RawValue>::deserialize(deserializer)?.get();
        let inside = raw.strip_prefix('[').map(str::trim_start);
        Ok(Self(inside.is_some_and(|inside| inside.starts_with(['{', ']']))))
    }
}

#[cfg(test)]
mod tests;
