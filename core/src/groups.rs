//! Which sequences answer the same prompt.

use crate::error::{refused, Error, Result};

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
    /// [`Error::Group`] with the first id that is not.
    pub fn from_ids(ids: &'a [u32]) -> Result<Self> {
        let mut count = 0;
        for (index, &id) in ids.iter().enumerate() {
            if id as usize >= ids.len() {
                return refused(Error::Group { index, id, sequences: ids.len() });
            }
            count = count.max(id as usize + 1);
        }
        Ok(Self { kind: GroupKind::Ids(ids), sequences: ids.len(), count })
    }

    /// The first `sizes[0]` sequences are group 0, the next `sizes[1]` group 1, and so on.
    ///
    /// # Errors
    ///
    /// [`Error::Entry`] at a size of 0; [`Error::Overflow`] if the sizes add up to more than a machine word.
    pub fn contiguous(sizes: &'a [u32]) -> Result<Self> {
        let mut sequences = 0_usize;
        for (index, &size) in sizes.iter().enumerate() {
            if size == 0 {
                return refused(Error::Entry { what: "sizes", index, must_be: "at least 1", got: 0.0 });
            }
            sequences = sequences
                .checked_add(size as usize)
                .ok_or(Error::Overflow { what: "sum of sizes", factors: (sequences, 1) })?;
        }
        Ok(Self { kind: GroupKind::Sizes(sizes), sequences, count: sizes.len() })
    }

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
        let (kind, sequences) = (self.kind, self.sequences);
        let (mut group, mut left) = (0, 0);
        (0..sequences).map(move |sequence| match kind {
            GroupKind::Ids(ids) => ids[sequence] as usize,
            GroupKind::Sizes(sizes) => {
                if left == 0 {
                    left = sizes[group];
                    group += 1;
                }
                left -= 1;
                group - 1
            }
        })
    }
}
