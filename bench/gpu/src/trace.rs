//! What a device was asked to do, from the trace that wgpu writes: dispatches, and the bytes they bind.
//!
//! A kernel is taken to read or write every byte of its bindings once. Gathers and scatters, which bind a whole tensor
//! and touch a few entries, are counted by their results.

use std::{collections::HashMap, fs, io, path::Path};

/// What was counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    pub dispatches: u64,
    pub bytes: u64,
}

/// The name of the file in the folder of a trace.
const FILE: &str = "trace.ron";

/// Where the trace ends now.
pub fn position(folder: &Path) -> io::Result<u64> {
    Ok(fs::metadata(folder.join(FILE))?.len())
}

/// What was submitted between two positions.
pub fn moved(folder: &Path, from: u64, to: u64) -> io::Result<Moved> {
    let text = fs::read_to_string(folder.join(FILE))?;
    Ok(count(&text, from as usize, to as usize))
}

#[derive(Default)]
struct Seen {
    buffers: HashMap<String, u64>,
    /// Bytes of each binding.
    groups: HashMap<String, Vec<u64>>,
    /// Labels.
    pipelines: HashMap<String, String>,
}

fn count(text: &str, from: usize, to: usize) -> Moved {
    let (mut seen, mut moved) = (Seen::default(), Moved::default());
    let mut action = String::new();
    let mut at = 0;
    // an action starts and ends at the beginning of a line; `]),` ends a submission
    for line in text.split_inclusive('\n') {
        at += line.len();
        action.push_str(line);
        if line.starts_with([' ', '[']) || !line.trim_end().ends_with("),") && !line.starts_with(['}', ')']) {
            continue;
        }
        seen.add(&action, (at > from && at <= to).then_some(&mut moved));
        action.clear();
    }
    moved
}

impl Seen {
    fn add(&mut self, action: &str, moved: Option<&mut Moved>) {
        let action = action.trim_start_matches(['[', '\n']);
        let id = || ids(action).next().unwrap_or_default();
        if action.starts_with("CreateBuffer(") {
            self.buffers.insert(id(), number_after(action, "size: ").unwrap_or_default());
        } else if action.starts_with("CreateBindGroup(") {
            let bytes = action.split("resource: Buffer(").skip(1).map(|binding| self.bytes_of(binding)).collect();
            self.groups.insert(id(), bytes);
        } else if action.starts_with("CreateComputePipeline") {
            let label = action.split_once("label: Some(\"").and_then(|(_, rest)| rest.split_once('"'));
            self.pipelines.insert(id(), label.map_or(String::new(), |(label, _)| label.to_owned()));
        } else if let Some(moved) = moved.filter(|_| action.starts_with("Submit(")) {
            self.submit(action, moved);
        }
    }

    fn bytes_of(&self, binding: &str) -> u64 {
        let all = || {
            let size = ids(binding).next().and_then(|id| self.buffers.get(&id).copied()).unwrap_or_default();
            size.saturating_sub(number_after(binding, "offset: ").unwrap_or_default())
        };
        match binding.split_once("size: ") {
            Some((_, size)) if size.starts_with("Some(") => number_after(binding, "size: Some(").unwrap_or_default(),
            _ => all(),
        }
    }

    fn submit(&self, action: &str, moved: &mut Moved) {
        let (mut group, mut label) = (&[][..], "");
        for command in action.split_inclusive('\n').collect::<Vec<_>>().windows(4) {
            let (line, rest) = (command[0].trim_start(), command.concat());
            if line.starts_with("SetBindGroup") {
                group = ids(&rest).next().and_then(|id| self.groups.get(&id)).map_or(&[], Vec::as_slice);
            } else if line.starts_with("SetPipeline(") {
                label = ids(&rest).next().and_then(|id| self.pipelines.get(&id)).map_or("", String::as_str);
            } else if line.starts_with("DispatchWorkgroups") {
                moved.dispatches += 1;
                moved.bytes += bound(group, label);
            }
        }
    }
}

fn bound(group: &[u64], label: &str) -> u64 {
    let all: u64 = group.iter().sum();
    if !["gather", "scatter"].iter().any(|name| label.contains(name)) {
        return all;
    }
    let mut sizes = group.to_vec();
    sizes.sort_unstable_by_key(|&size| std::cmp::Reverse(size));
    // the entries touched are as many as those of the second largest tensor
    all - sizes.first().unwrap_or(&0) + sizes.get(1).unwrap_or(&0)
}

fn ids(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split("PointerId(").skip(1).map(|rest| rest.chars().take_while(char::is_ascii_digit).collect())
}

fn number_after(text: &str, key: &str) -> Option<u64> {
    let digits: String = text.split_once(key)?.1.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Nothing follows the submission: a window that ends with it holds its dispatches.
    #[test]
    fn a_submission_ends_with_itself() {
        let before = "[\nCreateBuffer(PointerId(1), (\n    size: 64,\n)),\nCreateBindGroup(PointerId(2), (\n    \
                      resource: Buffer((\n        buffer: PointerId(1),\n        offset: 0,\n        size: Some(48),\n    \
                      )),\n)),\n";
        let submit = "Submit(5, [\n    SetBindGroup(\n        index: 0,\n        num_dynamic_offsets: 0,\n        \
                      bind_group: Some(PointerId(2)),\n    ),\n    DispatchWorkgroups((1, 1, 1)),\n    \
                      Other,\n    Other,\n    Other,\n]),\n";
        let text = format!("{before}{submit}");
        let found = count(&text, before.len(), text.len());
        assert_eq!(found, Moved { dispatches: 1, bytes: 48 });
        assert_eq!(count(&text, 0, before.len()), Moved::default());
    }
}
