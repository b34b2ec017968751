//! Faults that only the samples of one prompt together show.

use std::collections::HashMap;

use super::{Findings, Rule};
use crate::{
    output::number,
    rollout::{Column, Rollouts, Row},
};

/// What is kept of each group: little, because a file may have many.
#[derive(Debug, Default)]
pub(super) struct Groups(HashMap<(Option<u64>, u64), Group>);

#[derive(Debug)]
struct Group {
    first: Row,
    size: u32,
    score_min: f64,
    score_max: f64,
    scored: u32,
    /// Sequences whose tokens all have the same advantage; others are not relative to their group.
    constant: u32,
    advantage_sum: f64,
    advantage_size: f64,
}

impl Groups {
    pub(super) fn add(&mut self, rollouts: &Rollouts, row: usize) {
        let about = rollouts.rows[row];
        let Some(id) = about.group else { return };
        let group = self.0.entry((about.step, id)).or_insert(Group {
            first: about,
            size: 0,
            score_min: f64::INFINITY,
            score_max: f64::NEG_INFINITY,
            scored: 0,
            constant: 0,
            advantage_sum: 0.0,
            advantage_size: 0.0,
        });
        group.size += 1;
        if let Some(score) = about.score.or_else(|| token_scores(rollouts, row)).filter(|score| score.is_finite()) {
            group.scored += 1;
            group.score_min = score.min(group.score_min);
            group.score_max = score.max(group.score_max);
        }
        if let Some(advantage) = constant_advantage(rollouts, row) {
            group.constant += 1;
            group.advantage_sum += advantage;
            group.advantage_size = advantage.abs().max(group.advantage_size);
        }
    }

    pub(super) fn judge(self, tolerance: f64, findings: &mut Findings<'_>) {
        let mut groups: Vec<Group> = self.0.into_values().filter(|group| group.size > 1).collect();
        groups.sort_by_key(|group| (group.first.step, group.first.place));
        for group in groups {
            let n = f64::from(group.size);
            if group.constant == group.size && group.advantage_sum.abs() > tolerance * n * group.advantage_size.max(1.0)
            {
                let message = format!(
                    "the advantages of the {} samples of this prompt add up to {}, not 0",
                    group.size,
                    number(group.advantage_sum)
                );
                findings.add(Rule::GroupNotCentred, &group.first, None, &message);
            }
            if group.scored == group.size && group.score_min == group.score_max {
                let message = format!(
                    "all {} samples of this prompt scored {}: nothing can be learned from them",
                    group.size,
                    number(group.score_min)
                );
                findings.add(Rule::TiedGroup, &group.first, None, &message);
            }
        }
    }
}

fn token_scores(rollouts: &Rollouts, row: usize) -> Option<f64> {
    let scores = rollouts.column(Column::Scores)?;
    let kept = rollouts.slots(row).filter(|slot| rollouts.kept()[*slot]);
    Some(kept.fold(0.0, |sum, slot| sum + scores[slot]))
}

fn constant_advantage(rollouts: &Rollouts, row: usize) -> Option<f64> {
    let advantages = rollouts.column(Column::Advantages)?;
    let mut kept = rollouts.slots(row).filter(|slot| rollouts.kept()[*slot]).map(|slot| advantages[slot]);
    let first = kept.next()?;
    kept.all(|advantage| advantage == first).then_some(first)
}
