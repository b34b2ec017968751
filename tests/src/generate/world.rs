use std::ops::Range;

use super::{Flat, Number, Random, Spec};
use crate::poison::garbage;

/// The per-token (and, last two, per-token-and-entry) quantities of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// log π of the policy being trained.
    LogProbs,
    /// log π of the policy that sampled.
    OldLogProbs,
    /// log π of the reference.
    RefLogProbs,
    /// Advantages.
    Advantages,
    /// Rewards.
    Rewards,
    /// Values.
    Values,
    /// Returns.
    Returns,
    /// New values.
    Predictions,
    /// Positive weights.
    Weights,
    /// KL, of either sign.
    Kl,
    /// Logits, `vocab` per token.
    Logits,
    /// The reference's logits, `vocab` per token.
    RefLogits,
}

const COLUMNS: [Column; 12] = [
    Column::LogProbs,
    Column::OldLogProbs,
    Column::RefLogProbs,
    Column::Advantages,
    Column::Rewards,
    Column::Values,
    Column::Returns,
    Column::Predictions,
    Column::Weights,
    Column::Kl,
    Column::Logits,
    Column::RefLogits,
];

impl Column {
    fn width(self, vocab: usize) -> usize {
        if matches!(self, Self::Logits | Self::RefLogits) {
            vocab
        } else {
            1
        }
    }
}

/// One sequence with everything a formula may need.
#[derive(Clone, Debug)]
struct Sequence<R> {
    keep: Vec<bool>,
    ids: Vec<u32>,
    columns: Vec<Vec<R>>,
    score: R,
    outcome: R,
    bootstrap: R,
    group: u32,
}

/// Sequences that can be laid out packed or padded, joined and split.
#[derive(Clone, Debug)]
pub struct World<R> {
    sequences: Vec<Sequence<R>>,
    vocab: usize,
}

impl<R: Number> World<R> {
    /// The world of a spec.
    pub fn new(spec: Spec) -> Self {
        let mut random = Random::new(spec.seed);
        let vocab = random.pick(&[1, 2, 5, 16, 37]);
        let groups = random.below(spec.sequences.max(1)) + 1;
        let sequences =
            (0..spec.sequences).map(|_| Sequence::new(&mut random, spec.longest, vocab, groups)).collect::<Vec<_>>();
        Self { sequences, vocab }
    }

    /// Number of sequences.
    pub fn len(&self) -> usize {
        self.sequences.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.sequences.is_empty()
    }

    /// Some of its sequences, in order. Group ids stay dense: a group is named by its first member.
    pub fn part(&self, range: Range<usize>) -> Self {
        let mut sequences = self.sequences[range].to_vec();
        let groups: Vec<u32> = sequences.iter().map(|sequence| sequence.group).collect();
        let mut seen = Vec::new();
        for (sequence, group) in sequences.iter_mut().zip(groups) {
            let dense = seen.iter().position(|&other| other == group).unwrap_or_else(|| {
                seen.push(group);
                seen.len() - 1
            });
            sequence.group = dense as u32;
        }
        Self { sequences, vocab: self.vocab }
    }

    /// Both worlds, concatenated; no group has members in both.
    pub fn followed_by(&self, other: &Self) -> Self {
        let mut sequences = self.sequences.clone();
        for sequence in &other.sequences {
            sequences.push(Sequence { group: sequence.group + self.len() as u32, ..sequence.clone() });
        }
        Self { sequences, vocab: self.vocab }
    }

    /// The group id of a sequence in the whole world, unlike in a `part`: for counting per prompt.
    pub fn group_of(&self, sequence: usize) -> usize {
        self.sequences[sequence].group as usize
    }

    /// Ragged rows back to back.
    pub fn packed(&self) -> Flat<R> {
        self.flat(None, &mut Random::new(0))
    }

    /// Rows of one length, with garbage in the padding on the right.
    pub fn padded(&self, extra: usize, random: &mut Random) -> Flat<R> {
        let longest = self.sequences.iter().map(|sequence| sequence.keep.len()).max().unwrap_or(0);
        self.flat(Some(longest + extra), random)
    }

    fn flat(&self, padded: Option<usize>, random: &mut Random) -> Flat<R> {
        let mut flat = Flat {
            padded,
            offsets: vec![0],
            rows: Vec::new(),
            keep: Vec::new(),
            ids: Vec::new(),
            columns: vec![Vec::new(); COLUMNS.len()],
            scores: self.sequences.iter().map(|sequence| sequence.score).collect(),
            outcomes: self.sequences.iter().map(|sequence| sequence.outcome).collect(),
            bootstrap: self.sequences.iter().map(|sequence| sequence.bootstrap).collect(),
            lengths: self.sequences.iter().map(|sequence| sequence.keep.len() as u32).collect(),
            group_ids: self.sequences.iter().map(|sequence| sequence.group).collect(),
            vocab: self.vocab,
        };
        for sequence in &self.sequences {
            let (start, len) = (flat.keep.len(), sequence.keep.len());
            let added = padded.map_or(0, |to| to - len);
            flat.rows.push(start..start + len);
            flat.offsets.push((start + len + added) as u32);
            flat.keep.extend(&sequence.keep);
            flat.keep.extend(vec![false; added]);
            flat.ids.extend(&sequence.ids);
            flat.ids.extend((0..added).map(|_| random.bits() as u32));
            for ((column, from), kind) in flat.columns.iter_mut().zip(&sequence.columns).zip(COLUMNS) {
                column.extend(from);
                column.extend((0..added * kind.width(self.vocab)).map(|_| garbage::<R>(random)));
            }
        }
        flat
    }
}

impl<R: Number> Sequence<R> {
    fn new(random: &mut Random, longest: usize, vocab: usize, groups: usize) -> Self {
        let len = random.pick(&[longest, random.clone().below(longest + 1)]);
        let pattern = random.below(6);
        let keep: Vec<bool> = (0..len)
            .map(|t| match pattern {
                0 | 1 => true,
                2 => t + 1 == len,
                3 => random.below(8) == 0,
                _ => random.below(4) != 0,
            })
            .collect();
        // log-probabilities of policies that moved a little, and occasionally a lot
        let mut columns = vec![Vec::new(); COLUMNS.len()];
        for _ in 0..len {
            let reach = random.pick(&[0.05, 0.3, 0.3, 1.5]);
            let old = -random.between(0.02, 5.0);
            let token = [
                old + random.between(-reach, reach),
                old,
                old + random.between(-reach, reach),
                random.between(-2.0, 2.0),
                random.between(-1.0, 1.0),
                random.between(-1.0, 1.0),
                random.between(-1.5, 1.5),
                random.between(-1.5, 1.5),
                random.between(0.05, 1.0),
                random.between(-1.0, 1.0),
            ];
            for (column, value) in columns.iter_mut().zip(token) {
                column.push(R::narrow(value));
            }
            let spread = random.pick(&[0.5, 3.0, 8.0]);
            for logits in &mut columns[10..] {
                logits.extend((0..vocab).map(|_| R::narrow(random.between(-spread, spread))));
            }
        }
        Self {
            ids: (0..len).map(|_| random.below(vocab) as u32).collect(),
            keep,
            columns,
            score: R::narrow(random.between(-2.0, 2.0)),
            outcome: R::narrow(random.between(-2.0, 2.0)),
            bootstrap: R::narrow(random.between(-1.0, 1.0)),
            group: random.below(groups) as u32,
        }
    }
}
