//! Logits beyond the size of a binding, in pieces.

use crate::column::{Column, Format, ALIGNED_BYTES};

/// Whole rows, or some entries of one row, that fit a binding.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) first: u64,
    pub(super) rows: u64,
    pub(super) first_entry: u64,
    pub(super) entries: u64,
    /// Which piece it is.
    pub(super) index: u64,
}

/// Entries between two offsets at which a binding may start. A binding of words that starts at a multiple of this many
/// is aligned too.
const fn aligned(format: Format) -> u64 {
    ALIGNED_BYTES / format.bytes()
}

impl Piece {
    /// All rows, as one piece.
    pub(super) const fn whole(rows: u64, vocab: u64) -> Self {
        Self { first: 0, rows, first_entry: 0, entries: vocab, index: 0 }
    }

    /// Pieces of at most `most` entries: whole rows, or some entries of one row if a row has more.
    pub(super) fn all(format: Format, most: u64, rows: u64, vocab: u64) -> Vec<Self> {
        // less those before an aligned offset; at least some
        let within = most.max(4 * aligned(format)) - aligned(format);
        let whole = if rows * vocab <= most { rows } else { within / vocab };
        let mut pieces = Vec::new();
        let (mut first, mut first_entry) = (0, 0);
        while first < rows {
            let (rows, entries) = match whole {
                0 => (1, within.min(vocab - first_entry)),
                _ => (whole.min(rows - first), vocab),
            };
            pieces.push(Self { first, rows, first_entry, entries, index: pieces.len() as u64 });
            first_entry += entries;
            if first_entry == vocab {
                (first, first_entry) = (first + rows, 0);
            }
        }
        pieces
    }

    /// The entries of this piece in `column`, from an aligned offset on, and how many are before the first of them. The
    /// same number for the logits, whose format this is, and for their gradient.
    pub(super) fn part(&self, format: Format, column: &Column, vocab: u64) -> (Column, u64) {
        let first = self.first * vocab + self.first_entry;
        let shift = first % aligned(format);
        let len = if self.rows == 1 { self.entries } else { self.rows * vocab };
        (column.part(first - shift, len + shift), shift)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_cover_every_entry_once() {
        for format in [Format::Word, Format::F16, Format::Bf16] {
            for (most, rows, vocab) in [(1, 3, 5), (512, 1, 7), (512, 100, 7), (512, 3, 513), (1000, 4, 151), (9, 0, 3)]
            {
                let pieces = Piece::all(format, most, rows, vocab);
                let mut at = 0;
                for (piece, index) in pieces.iter().zip(0..) {
                    assert_eq!((piece.first * vocab + piece.first_entry, piece.index), (at, index));
                    let entries = piece.rows * piece.entries;
                    assert!(entries + aligned(format) <= most.max(4 * aligned(format)) || pieces.len() == 1);
                    at += entries;
                }
                assert_eq!(at, rows * vocab);
            }
        }
    }
}
