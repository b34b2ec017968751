//! Positions of a batch's tokens, and which of them are kept: the only index arithmetic over sequences.

use core::ops::Range;

use crate::error::{check_len, checked_size, Error, Result};

/// Which tokens count: `true` (kept) if the policy itself chose the token, `false` (dropped) elsewhere.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mask<'a>(&'a [bool]);

impl<'a> Mask<'a> {
    /// One entry per token slot.
    pub const fn new(keep: &'a [bool]) -> Self {
        Self(keep)
    }

    /// The entries.
    pub const fn as_slice(&self) -> &'a [bool] {
        self.0
    }
}

/// The position of each sequence in a flat token slice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout<'a>(Shape<'a>);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Shape<'a> {
    Padded { batch: usize, len: usize },
    Packed { cu_seqlens: &'a [u32] },
}

impl<'a> Layout<'a> {
    /// `[batch, len]`, row-major, every row the same length.
    ///
    /// # Errors
    ///
    /// [`Error::Overflow`] if `batch · len` does not fit into a `usize`.
    pub fn padded(batch: usize, len: usize) -> Result<Self> {
        checked_size("batch × len", batch, len)?;
        Ok(Self(Shape::Padded { batch, len }))
    }

    /// Ragged rows back to back; row `i` is `cu_seqlens[i]..cu_seqlens[i + 1]`.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if the slice is empty (use `&[0]` for no sequences); [`Error::Offsets`] if it does not start
    /// at 0 or an offset is below the one before it.
    pub fn packed(cu_seqlens: &'a [u32]) -> Result<Self> {
        if cu_seqlens.is_empty() {
            return Err(Error::Length { what: "cu_seqlens", expected: 1, got: 0 });
        }
        let mut at_least = 0;
        for (index, &got) in cu_seqlens.iter().enumerate() {
            if got < at_least || (index == 0 && got != 0) {
                return Err(Error::Offsets { index, at_least, got });
            }
            at_least = got;
        }
        Ok(Self(Shape::Packed { cu_seqlens }))
    }

    /// Number of sequences.
    pub const fn sequences(&self) -> usize {
        match self.0 {
            Shape::Padded { batch, .. } => batch,
            Shape::Packed { cu_seqlens } => cu_seqlens.len() - 1,
        }
    }

    /// Number of token slots, kept or not.
    pub const fn tokens(&self) -> usize {
        match self.0 {
            Shape::Padded { batch, len } => batch * len,
            Shape::Packed { cu_seqlens } => (cu_seqlens[cu_seqlens.len() - 1] - cu_seqlens[0]) as usize,
        }
    }

    /// The slots of a sequence; `None` if there are fewer sequences.
    pub fn slots(&self, sequence: usize) -> Option<Range<usize>> {
        (sequence < self.sequences()).then(|| {
            let (start, len) = self.row(sequence);
            start..start + len
        })
    }

    /// First slot and number of slots of a sequence; `sequence` must be below [`Self::sequences`].
    #[inline]
    pub(crate) fn row(&self, sequence: usize) -> (usize, usize) {
        match self.0 {
            Shape::Padded { len, .. } => (sequence * len, len),
            Shape::Packed { cu_seqlens } => {
                let start = cu_seqlens[sequence];
                // the offsets of a part do not start at 0
                ((start - cu_seqlens[0]) as usize, (cu_seqlens[sequence + 1] - start) as usize)
            }
        }
    }
}

impl Batch<'_> {
    /// The batch with every token as a separate sequence.
    pub(crate) fn token_by_token(&self) -> Self {
        Self { layout: Layout(Shape::Padded { batch: self.tokens(), len: 1 }), ..*self }
    }

    /// A run of consecutive sequences.
    #[cfg(feature = "rayon")]
    pub(crate) fn part(&self, sequences: Range<usize>) -> Self {
        let tokens = self.first_token(sequences.start)..self.first_token(sequences.end);
        let layout = match self.layout.0 {
            Shape::Padded { len, .. } => Shape::Padded { batch: sequences.len(), len },
            Shape::Packed { cu_seqlens } => Shape::Packed { cu_seqlens: &cu_seqlens[sequences.start..=sequences.end] },
        };
        let mask = &self.mask.0[tokens];
        Self { layout: Layout(layout), mask: Mask(mask), kept: count(mask) }
    }

    /// Where a sequence begins, or where the last one ends.
    #[cfg(feature = "rayon")]
    pub(crate) fn first_token(&self, sequence: usize) -> usize {
        match self.layout.0 {
            Shape::Padded { len, .. } => sequence * len,
            Shape::Packed { cu_seqlens } => (cu_seqlens[sequence] - cu_seqlens[0]) as usize,
        }
    }
}

/// A layout and a mask that fit each other; checked once, then passed to every kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch<'a> {
    layout: Layout<'a>,
    mask: Mask<'a>,
    kept: usize,
}

impl<'a> Batch<'a> {
    /// Combines a layout and a mask.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if the mask does not have one entry per token slot.
    pub fn new(layout: Layout<'a>, mask: Mask<'a>) -> Result<Self> {
        check_len("mask", mask.0, layout.tokens())?;
        let kept = count(mask.0);
        Ok(Self { layout, mask, kept })
    }

    /// The layout.
    pub const fn layout(&self) -> Layout<'a> {
        self.layout
    }

    /// The mask.
    pub const fn mask(&self) -> Mask<'a> {
        self.mask
    }

    /// Number of sequences.
    pub const fn sequences(&self) -> usize {
        self.layout.sequences()
    }

    /// Number of token slots, kept or not: the length of every per-token slice.
    pub const fn tokens(&self) -> usize {
        self.layout.tokens()
    }

    /// Number of kept tokens.
    pub const fn kept(&self) -> usize {
        self.kept
    }

    /// Number of sequences with at least one kept token.
    pub fn kept_sequences(&self) -> usize {
        self.token_rows().filter(|row| row.last_kept().is_some()).count()
    }

    /// The sequences in order, for what is computed from tokens alone: none at all if the batch has no slots. A padded
    /// batch may have 2³⁰ sequences of no slots, and going through them would take a minute.
    #[inline]
    pub(crate) fn token_rows<'b>(&'b self) -> impl Iterator<Item = Row<'a>> + 'b {
        self.first_rows(if self.tokens() == 0 { 0 } else { self.sequences() })
    }

    /// All sequences in order, for what has a number per sequence.
    #[inline]
    pub(crate) fn rows<'b>(&'b self) -> impl Iterator<Item = Row<'a>> + 'b {
        self.first_rows(self.sequences())
    }

    #[inline]
    fn first_rows<'b>(&'b self, sequences: usize) -> impl Iterator<Item = Row<'a>> + 'b {
        // a copy, so that LLVM can see that no store in the loop changes it
        let batch = *self;
        (0..sequences).map(move |sequence| batch.row(sequence))
    }

    /// One sequence.
    #[inline(always)]
    pub(crate) fn row(&self, sequence: usize) -> Row<'a> {
        let (start, len) = self.layout.row(sequence);
        Row { start, keep: &self.mask.0[start..start + len] }
    }
}

/// Number of kept slots. Counts in `u8`, which vectorises best, in chunks too short to overflow it.
fn count(keep: &[bool]) -> usize {
    keep.chunks(128).fold(0, |all, step| all + usize::from(step.iter().fold(0, |count, &keep| count + u8::from(keep))))
}

/// One sequence of a batch.
#[derive(Clone, Copy)]
pub(crate) struct Row<'a> {
    /// Its first slot in the flat slices.
    pub(crate) start: usize,
    /// Its part of the mask.
    pub(crate) keep: &'a [bool],
}

impl Row<'_> {
    /// Its part of a per-token slice.
    #[inline(always)]
    pub(crate) fn of<'b, T>(&self, tokens: &'b [T]) -> &'b [T] {
        &tokens[self.start..self.start + self.keep.len()]
    }

    /// Its part of a per-token output.
    #[inline(always)]
    pub(crate) fn of_mut<'b, T>(&self, tokens: &'b mut [T]) -> &'b mut [T] {
        &mut tokens[self.start..self.start + self.keep.len()]
    }

    /// Number of its kept tokens.
    #[inline]
    pub(crate) fn kept(&self) -> usize {
        count(self.keep)
    }

    /// Index within the row of its last kept token.
    #[inline]
    pub(crate) fn last_kept(&self) -> Option<usize> {
        // skips right padding 64 slots at a time
        let padding = self.keep.rchunks(64).take_while(|step| !step.iter().fold(false, |any, &keep| any | keep));
        self.keep[..self.keep.len().saturating_sub(64 * padding.count())].iter().rposition(|&keep| keep)
    }
}

/// Extracts the rows that predicted the responses from the output of a model for whole sequences.
///
/// A model's output at position `p` is computed *after reading* token `p`: it predicts token `p + 1`.
/// The rows that predicted the `T` response tokens at the end of a sequence of `L` tokens are therefore
/// `L − T − 1 … L − 2`: one to the left of the tokens themselves. This is the only place where that shift happens.
///
/// ```text
/// out[i, t, ·] = raw[i, L_i − T_i − 1 + t, ·]        t = 0 … T_i − 1
/// ```
///
/// **Alignment.** `raw` is raw model output (`raw_logits` with `width` = vocabulary, `raw_values` with `width` = 1);
/// `out` is action-aligned for logits and state-aligned for values: both have the index of the token they precede.
///
/// **Mask.** None: slots are copied whether kept or not, so that `out` holds the model's output unchanged.
///
/// **Errors.** [`Error::Length`] if a slice or the number of sequences does not fit; [`Error::Sequence`] if a raw
/// sequence has fewer than `T_i + 1` positions; [`Error::Overflow`] if a size does not fit into a `usize`.
///
/// **Reference.** verl 0.9.1 takes `[:, -T-1:-1]` of logits and values alike; `docs/chain.md` §2.
///
/// # Example
///
/// ```
/// use tokenwise::{shift, Layout};
///
/// // two prompt tokens, then three response tokens; the critic read all five
/// let raw_values = [f32::NAN, 0.20, 0.25, 0.30, f32::NAN];
/// let mut values = [0.0; 3];
/// shift(&Layout::padded(1, 3)?, &Layout::padded(1, 5)?, &raw_values, 1, &mut values)?;
/// assert_eq!(values, [0.20, 0.25, 0.30]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn shift<T: Copy>(
    responses: &Layout<'_>,
    raw_layout: &Layout<'_>,
    raw: &[T],
    width: usize,
    out: &mut [T],
) -> Result<()> {
    if raw_layout.sequences() != responses.sequences() {
        return Err(Error::Length { what: "raw_layout", expected: responses.sequences(), got: raw_layout.sequences() });
    }
    check_len("raw", raw, checked_size("raw tokens × width", raw_layout.tokens(), width)?)?;
    check_len("out", out, checked_size("tokens × width", responses.tokens(), width)?)?;
    if responses.tokens() == 0 {
        return Ok(());
    }
    for sequence in 0..responses.sequences() {
        let ((_, len), (_, raw_len)) = (responses.row(sequence), raw_layout.row(sequence));
        if len > 0 && raw_len <= len {
            // a width of 0 allows sequences as long as a machine word can say
            return Err(Error::Sequence {
                what: "raw_layout",
                index: sequence,
                at_least: len.saturating_add(1),
                got: raw_len,
            });
        }
    }
    for sequence in 0..responses.sequences() {
        let ((start, len), (raw_start, raw_len)) = (responses.row(sequence), raw_layout.row(sequence));
        if len == 0 {
            continue;
        }
        let from = (raw_start + raw_len - len - 1) * width;
        out[start * width..(start + len) * width].copy_from_slice(&raw[from..from + len * width]);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_end_with_the_last_sequence() {
        for layout in [Layout::padded(2, 3).unwrap(), Layout::packed(&[0, 3, 6]).unwrap()] {
            assert_eq!([0, 1, 2].map(|sequence| layout.slots(sequence)), [Some(0..3), Some(3..6), None]);
        }
    }
}
