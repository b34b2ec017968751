//! Which sequences answer the same prompt.

use crate::error::{Error, Result};

/// Sequences that answer the same prompt, by dense ids in any order or by contiguous sizes; checked once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Groups<'a> {
    kind: GroupKind<'a>,
    sequences: usize,
    count: usize,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GroupKind<'a> {
    Ids(&'a [u32]),
    Sizes(&'a [u32]),
}

impl<'a> Groups<'a> {
    /// One id per sequence, in any order. Ids are dense: each is below the number of sequences.
    ///
    /// # Errors
    ///
    /// [`Error::Group`] with the first id that is too large.
    pub fn from_ids(ids: &'a [u32]) -> Result<Self> {
        let mut count = 0;
        for (index, &id) in ids.iter().enumerate() {
            if id as usize >= ids.len() {
                return Err(Error::Group { index, id, sequences: ids.len() });
            }
            count = count.max(id as usize + 1);
        }
        Ok(Self { kind: GroupKind::Ids(ids), sequences: ids.len(), count })
    }

    /// The first `sizes[0]` sequences are group 0, the next `sizes[1]` group 1, and so on.
    ///
    /// # Errors
    ///
    /// [`Error::Entry`] at a size of 0; [`Error::Overflow`] if the sum of the sizes does not fit into a `usize`.
    pub fn contiguous(sizes: &'a [u32]) -> Result<Self> {
        let mut sequences = 0_usize;
        for (index, &size) in sizes.iter().enumerate() {
            if size == 0 {
                return Err(Error::Entry { what: "sizes", index, must_be: "at least 1", got: 0.0 });
            }
            sequences = sequences
                .checked_add(size as usize)
                .ok_or(Error::Overflow { what: "sum of sizes", factors: (sequences, 1) })?;
        }
        Ok(Self { kind: GroupKind::Sizes(sizes), sequences, count: sizes.len() })
    }

    /// No sequences: placeholder in a deserialized config, whose text form does not include groups.
    #[cfg(feature = "serde")]
    pub(crate) const NONE: Self = Self { kind: GroupKind::Sizes(&[]), sequences: 0, count: 0 };

    /// Number of sequences.
    pub const fn sequences(&self) -> usize {
        self.sequences
    }

    /// Number of groups: every id is below this.
    pub const fn count(&self) -> usize {
        self.count
    }

    /// The group of each sequence, in order.
    pub fn ids(&self) -> impl Iterator<Item = usize> + 'a {
        Ids { kind: self.kind, left: self.sequences, sequence: 0, group: 0, members: 0 }
    }
}

/// Entries of a scratch with one entry per group, such as every `&mut [Moments]`.
pub const fn group_scratch_len(groups: &Groups<'_>) -> usize {
    groups.count()
}

/// The group of each sequence, in order.
struct Ids<'a> {
    kind: GroupKind<'a>,
    /// Remaining sequences.
    left: usize,
    sequence: usize,
    group: usize,
    /// Remaining sequences of the current group.
    members: u32,
}

impl Iterator for Ids<'_> {
    type Item = usize;

    #[inline]
    fn next(&mut self) -> Option<usize> {
        self.left = self.left.checked_sub(1)?;
        Some(match self.kind {
            GroupKind::Ids(ids) => {
                self.sequence += 1;
                ids[self.sequence - 1] as usize
            }
            GroupKind::Sizes(sizes) => {
                if self.members == 0 {
                    self.members = sizes[self.group];
                    self.group += 1;
                }
                self.members -= 1;
                self.group - 1
            }
        })
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.left, Some(self.left))
    }
}
