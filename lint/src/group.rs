//! Rules that need all samples of one prompt.

use crate::{column::Column, finding::Finding, size, Sequence};

/// Accumulated state of the samples of one prompt; small, because a file may have many prompts.
#[derive(Clone, Copy, Debug)]
pub struct Group {
    size: u32,
    score_min: f64,
    score_max: f64,
    scored: u32,
    /// Sequences whose tokens share one advantage; others are not group-relative.
    constant: u32,
    advantage_sum: f64,
    advantage_size: f64,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            size: 0,
            score_min: f64::INFINITY,
            score_max: f64::NEG_INFINITY,
            scored: 0,
            constant: 0,
            advantage_sum: 0.0,
            advantage_size: 0.0,
        }
    }
}

impl Group {
    /// Adds a sample.
    pub fn add(&mut self, sequence: &Sequence<'_>) {
        self.size += 1;
        if let Some(score) = sequence.score.or_else(|| token_scores(sequence)).filter(|score| score.is_finite()) {
            self.scored += 1;
            self.score_min = score.min(self.score_min);
            self.score_max = score.max(self.score_max);
        }
        if let Some(advantage) = constant_advantage(sequence) {
            self.constant += 1;
            self.advantage_sum += advantage;
            self.advantage_size = size(advantage).max(self.advantage_size);
        }
    }

    /// How many samples were added.
    #[must_use]
    pub const fn size(&self) -> u32 {
        self.size
    }

    /// Reports findings to `found`; groups of one sample have none.
    pub fn judge(&self, tolerance: f64, found: &mut dyn FnMut(Finding)) {
        let count = self.size;
        if count < 2 {
            return;
        }
        let bound = tolerance * f64::from(count) * self.advantage_size.max(1.0);
        if self.constant == count && size(self.advantage_sum) > bound {
            found(Finding::GroupNotCentred { size: count, sum: self.advantage_sum });
        }
        if self.scored == count && self.score_min == self.score_max {
            found(Finding::TiedGroup { size: count, score: self.score_min });
        }
    }
}

fn token_scores(sequence: &Sequence<'_>) -> Option<f64> {
    sequence.column(Column::Scores)?;
    let mut sum = 0.0;
    sequence.each_kept(Column::Scores, &mut |_, x| sum += x);
    Some(sum)
}

fn constant_advantage(sequence: &Sequence<'_>) -> Option<f64> {
    let (mut first, mut constant) = (None, true);
    sequence.each_kept(Column::Advantages, &mut |_, x| {
        constant &= *first.get_or_insert(x) == x;
    });
    first.filter(|_| constant)
}
