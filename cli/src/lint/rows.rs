//! The sequences of a batch as input of the rules; groups are collected over all batches.

use std::collections::HashMap;

use tokenwise_lint::{Finding, Group, Sequence};

use crate::rollout::{Column, Rollouts, Row};

pub(crate) fn sequence(rollouts: &Rollouts, row: usize) -> Sequence<'_> {
    let slots = rollouts.slots(row);
    let about = &rollouts.rows[row];
    let mut sequence = Sequence::new(&rollouts.kept()[slots.clone()]);
    for column in Column::ALL {
        sequence.set(column, rollouts.column(column).map(|numbers| &numbers[slots.clone()]));
    }
    sequence.score = about.score;
    sequence.first_update = about.first_update;
    sequence.length = about.length.filter(|length| *length >= 0.0).map(|length| length as usize);
    sequence
}

/// The groups seen so far, each with its first sequence.
#[derive(Debug, Default)]
pub(crate) struct Groups(HashMap<(Option<u64>, u64), (Row, Group)>);

impl Groups {
    pub(crate) fn add(&mut self, about: Row, sequence: &Sequence<'_>) {
        let Some(id) = about.group else { return };
        let (_, group) = self.0.entry((about.step, id)).or_insert_with(|| (about, Group::default()));
        group.add(sequence);
    }

    /// The memory it takes.
    pub(crate) fn bytes(&self) -> u64 {
        (self.0.capacity() * size_of::<((Option<u64>, u64), (Row, Group))>()) as u64
    }

    /// Reports the faults of groups; whether one has two sequences.
    pub(crate) fn judge(self, tolerance: f64, found: &mut dyn FnMut(&Row, Finding)) -> bool {
        let several = self.0.values().any(|(_, group)| group.size() > 1);
        let mut groups: Vec<(Row, Group)> = self.0.into_values().collect();
        groups.sort_by_key(|(first, _)| (first.step, first.place));
        for (first, group) in groups {
            group.judge(tolerance, &mut |finding| found(&first, finding));
        }
        several
    }
}
