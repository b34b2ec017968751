//! Annotations put onto traces, and traces handed on as sequences.

use std::collections::{HashMap, HashSet};

use super::{Node, Streams, Trace, Traces, Update, ANNOTATED, STREAMS};
use crate::{
    fault::{Error, Fault, Place},
    feeder::Feeder,
    fields::Field,
    texts::TextList,
};

impl Node {
    fn bytes(&self) -> usize {
        size_of::<Self>() + self.mask.capacity() + 8 * self.ids.capacity() + bytes(&self.streams)
    }
}

fn bytes(streams: &Streams) -> usize {
    streams.iter().flatten().map(|numbers| 8 * numbers.capacity()).sum()
}

impl Trace {
    fn bytes(&self) -> u64 {
        let texts = self.id.capacity() + self.group.as_ref().map_or(0, String::capacity);
        (size_of::<Self>() + texts + self.nodes.iter().map(Node::bytes).sum::<usize>()) as u64
    }

    /// The last node of each branch.
    fn leaves(&self) -> Vec<usize> {
        let mut leaf = vec![true; self.nodes.len()];
        for parent in self.nodes.iter().filter_map(|node| node.parent) {
            leaf[parent] = false;
        }
        (0..self.nodes.len()).filter(|node| leaf[*node]).collect()
    }

    /// The nodes from a root to a leaf.
    fn path(&self, leaf: usize) -> Vec<usize> {
        let mut path = vec![leaf];
        // a parent comes before its children: this ends
        while let Some(parent) = path.last().and_then(|node| self.nodes[*node].parent) {
            path.push(parent);
        }
        path.reverse();
        path
    }

    /// Nodes and tokens of all branches: what they have in common is counted for each.
    fn walked(&self, leaves: &[usize]) -> u64 {
        let mut sums: Vec<u64> = Vec::with_capacity(self.nodes.len());
        for node in &self.nodes {
            let before = node.parent.map_or(0, |parent| sums[parent]);
            sums.push(before + 1 + node.mask.len() as u64);
        }
        leaves.iter().fold(0, |sum: u64, leaf| sum.saturating_add(sums[*leaf]))
    }
}

impl Update {
    fn bytes(&self) -> u64 {
        let branches = self.branches.iter().map(|(_, streams)| size_of::<(usize, Streams)>() + bytes(streams));
        (size_of::<Self>() + 64 + branches.sum::<usize>()) as u64
    }
}

/// A branch, from its first sampled token to its last one.
struct Sequence {
    keep: Vec<bool>,
    ids: Vec<u64>,
    columns: [Vec<f64>; STREAMS.len()],
    prompt: usize,
}

impl Traces {
    /// Which streams any trace has.
    fn present(&self) -> [bool; STREAMS.len()] {
        let nodes = self.traces.iter().flat_map(|trace| &trace.nodes).map(|node| &node.streams);
        let known: HashSet<&str> = self.traces.iter().map(|trace| trace.id.as_str()).collect();
        let updates =
            self.updates.iter().filter(|(id, _)| known.contains(id.as_str())).flat_map(|(_, updates)| updates);
        let updates = updates.flat_map(|update| update.branches.iter().map(|(_, streams)| streams));
        let mut present = [false; STREAMS.len()];
        for streams in nodes.chain(updates) {
            for (present, stream) in present.iter_mut().zip(streams) {
                *present |= stream.is_some();
            }
        }
        present
    }
}

/// The tokens of a path with what is known about them; `used` are the nodes that an earlier branch has trained.
fn sequence(
    trace: &Trace,
    path: &[usize],
    updates: &[&Streams],
    present: &[bool; STREAMS.len()],
    used: &mut [bool],
) -> Sequence {
    let mut all = Sequence { keep: Vec::new(), ids: Vec::new(), columns: Default::default(), prompt: 0 };
    // of the sampled tokens, also of those that count for an earlier branch
    let (mut first, mut last) = (None, 0);
    for node in path {
        let again = std::mem::replace(&mut used[*node], true);
        let node = &trace.nodes[*node];
        let mut rank = 0;
        for (index, sampled) in node.mask.iter().enumerate() {
            let at = all.keep.len();
            let mut keep = *sampled && !again;
            for (stream, column) in all.columns.iter_mut().enumerate() {
                if !present[stream] {
                    continue;
                }
                // the newest annotation wins; a missing entry of the first token is not a number that went wrong,
                // since the trainer has none for it
                let annotated = updates.iter().rev().find_map(|streams| streams[stream].as_ref()?.get(at).copied());
                let annotated = annotated.filter(|x| at > 0 || !x.is_nan());
                let own = node.streams[stream].as_ref().filter(|_| *sampled).map(|numbers| numbers[rank]);
                let found = annotated.or(own).filter(|_| *sampled);
                keep &= found.is_some();
                column.push(found.unwrap_or(0.0));
            }
            all.keep.push(keep);
            all.ids.extend(node.ids.get(index));
            if *sampled {
                rank += 1;
                first.get_or_insert(at);
                last = if keep { at + 1 } else { last };
            }
        }
    }
    let first = first.unwrap_or(all.keep.len());
    let range = first..last.max(first);
    all.prompt = first;
    all.keep = all.keep[range.clone()].to_vec();
    all.ids = all.ids.get(range.clone()).unwrap_or_default().to_vec();
    for column in &mut all.columns {
        *column = column.get(range.clone()).unwrap_or_default().to_vec();
    }
    all
}

impl Feeder<'_> {
    pub(super) fn add_trace(&mut self, mut trace: Trace) -> Result<(), Fault> {
        trace.file = self.file();
        self.traces.bytes += trace.bytes();
        self.check_buffer(WHAT, 0)?;
        self.traces.traces.push(trace);
        Ok(())
    }

    pub(super) fn add_update(&mut self, id: String, update: Update) -> Result<(), Fault> {
        self.traces.bytes += update.bytes() + id.capacity() as u64;
        self.check_buffer(WHAT, 0)?;
        self.traces.updates.entry(id).or_default().push(update);
        Ok(())
    }

    /// Hands on the traces of all files, ordered by step.
    pub(crate) fn fold_traces(&mut self) -> Result<(), Error> {
        let present = self.traces.present();
        let mut traces = std::mem::take(&mut self.traces.traces);
        let mut updates: HashMap<String, Vec<Update>> = std::mem::take(&mut self.traces.updates);
        if traces.is_empty() && !updates.is_empty() && self.traces.left_out == super::LeftOut::default() {
            return Err(Fault::NoTraces {}.into());
        }
        for trace in &mut traces {
            let mut steps = updates.get(&trace.id).into_iter().flatten().filter_map(|update| update.step);
            trace.step = steps.next_back().or(trace.step);
        }
        traces.sort_by_key(|trace| trace.step);
        for trace in traces {
            let updates = updates.remove(&trace.id).unwrap_or_default();
            self.trace(&trace, &updates, &present).map_err(|fault| fault.at(Place::line(trace.place)))?;
            let freed = trace.bytes() + updates.iter().map(Update::bytes).sum::<u64>();
            self.traces.bytes = self.traces.bytes.saturating_sub(freed);
        }
        self.traces.bytes = 0;
        Ok(())
    }

    fn trace(&mut self, trace: &Trace, updates: &[Update], present: &[bool; STREAMS.len()]) -> Result<(), Fault> {
        let annotated = present[ANNOTATED..].iter().any(|present| *present);
        let mut used = vec![false; trace.nodes.len()];
        let leaves = trace.leaves();
        self.check_buffer(WHAT, trace.walked(&leaves).saturating_mul(8))?;
        // a run that failed before its first message has one, which is empty
        for index in 0..leaves.len().max(1) {
            let path = leaves.get(index).map_or(Vec::new(), |leaf| trace.path(*leaf));
            let streams = updates.iter().flat_map(|update| &update.branches);
            let streams: Vec<&Streams> =
                streams.filter(|(branch, _)| *branch == index).map(|(_, streams)| streams).collect();
            let sampled_before = path.iter().all(|node| used[*node] || !trace.nodes[*node].mask.contains(&true));
            let sequence = sequence(trace, &path, &streams, present, &mut used);
            if !sequence.keep.contains(&true) {
                // a branch whose sampled tokens all belong to an earlier one is no sequence of its own
                if leaves.len() > 1 && sampled_before {
                    continue;
                }
                if annotated {
                    self.traces.left_out.not_annotated += 1;
                    continue;
                }
            }
            self.begin_file(trace.file, None);
            self.place = trace.place;
            self.sequence(trace, sequence, present)?;
        }
        Ok(())
    }

    fn sequence(&mut self, trace: &Trace, sequence: Sequence, present: &[bool; STREAMS.len()]) -> Result<(), Fault> {
        for (stream, (column, name)) in STREAMS.into_iter().enumerate() {
            if present[stream] && self.find(name) == Some(Field::Column(column)) {
                for x in &sequence.columns[stream] {
                    self.push(column, *x)?;
                }
                self.row_added(column, sequence.columns[stream].len())?;
            }
        }
        if self.find("loss_mask") == Some(Field::Mask) {
            for keep in &sequence.keep {
                self.push_mask(*keep)?;
            }
            self.mask_added(sequence.keep.len())?;
        }
        let scalars = [
            ("reward", Field::Score, trace.score),
            ("step", Field::Step, trace.step.map(|step| step as f64)),
            ("is_truncated", Field::Truncated, Some(f64::from(u8::from(trace.truncated)))),
            ("prompt_len", Field::PromptLength, Some(sequence.prompt as f64)),
        ];
        for (name, field, x) in scalars {
            if let Some(x) = x.filter(|_| self.find(name) == Some(field)) {
                self.scalar(field, x)?;
            }
        }
        if let Some(group) = trace.group.as_deref().filter(|_| self.find("group_id") == Some(Field::Group)) {
            self.text(Field::Group, group)?;
        }
        if self.labels() {
            let mut ids = TextList::default();
            sequence.ids.iter().for_each(|id| ids.push(&id.to_string()));
            self.texts_added(Field::Id, ids)?;
        }
        self.end()
    }
}

/// What needs the memory.
pub(super) const WHAT: &str = "a run of traces, which is sorted by step,";
