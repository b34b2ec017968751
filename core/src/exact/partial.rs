use super::limbs::{self, PRODUCTS, SUM};
use crate::error::{check_len, Error, Result};

/// The version of the byte form.
const VERSION: u8 = 1;
/// Bytes before the limbs: `twx`, the version, and the kind of the state as a little-endian number.
const HEAD: usize = 8;
/// Limbs that come from outside are within ± this: room for 2³⁰ canonical states, and for the carry.
const MOST: i64 = 1 << 62;

/// What some limbs of a state are.
#[doc(hidden)]
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Piece {
    Count,
    Sum,
    Products,
}

impl Piece {
    pub(super) const fn len(self) -> usize {
        match self {
            Self::Count => 1,
            Self::Sum => SUM,
            Self::Products => PRODUCTS,
        }
    }
}

/// The limbs of the first `pieces`.
pub(super) const fn limbs_before(pieces: &[Piece], count: usize) -> usize {
    let (mut total, mut index) = (0, 0);
    while index < count {
        total += pieces[index].len();
        index += 1;
    }
    total
}

/// A state that merges exactly: the common shape of everything in this module.
///
/// The default is the state of no data. The same sequences give equal states, limbs and bytes, however they were split.
pub trait Partial: Clone + Default + PartialEq {
    /// Tells kinds of states apart in the byte form.
    const KIND: u32;
    /// Number of limbs.
    const LIMBS: usize;
    /// Number of peaks.
    const PEAKS: usize;
    /// What the limbs are.
    #[doc(hidden)]
    const PIECES: &'static [Piece];

    /// What is merged by addition: sums and counts as integers.
    fn limbs(&self) -> &[i64];

    /// What is merged by the maximum: the largest numbers, as integers of the same order. Empty in most states.
    fn peaks(&self) -> &[i64];

    #[doc(hidden)]
    fn parts_mut(&mut self) -> (&mut [i64], &mut [i64]);

    /// Joins the states of two disjoint sets of data.
    fn merge(&mut self, other: &Self) {
        let (limbs, peaks) = self.parts_mut();
        for (limb, &more) in limbs.iter_mut().zip(other.limbs()) {
            // canonical limbs are far from the ends; the highest of each sum wraps only beyond 2⁶³ numbers
            *limb = limb.wrapping_add(more);
        }
        for (peak, &other) in peaks.iter_mut().zip(other.peaks()) {
            *peak = (*peak).max(other);
        }
        self.canonical();
    }

    /// Brings every sum into its unique form.
    #[doc(hidden)]
    fn canonical(&mut self) {
        let (mut rest, _) = self.parts_mut();
        for piece in Self::PIECES {
            let (this, after) = rest.split_at_mut(piece.len());
            if *piece != Piece::Count {
                limbs::carry(this);
            }
            rest = after;
        }
    }

    /// The state whose limbs and peaks were added up and maximised elsewhere.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if there are not [`Self::LIMBS`] and [`Self::PEAKS`] of them; [`Error::Entry`] if a limb
    /// cannot be one: beyond ±2⁶², or a negative count.
    fn from_limbs(limbs: &[i64], peaks: &[i64]) -> Result<Self> {
        check_len("limbs", limbs, Self::LIMBS)?;
        check_len("peaks", peaks, Self::PEAKS)?;
        check_limbs(Self::PIECES, limbs, 0)?;
        let mut state = Self::default();
        let (to, to_peaks) = state.parts_mut();
        to.copy_from_slice(limbs);
        to_peaks.copy_from_slice(peaks);
        state.canonical();
        Ok(state)
    }

    /// Bytes of [`Self::write_bytes`].
    fn bytes_len() -> usize {
        HEAD + 8 * (Self::LIMBS + Self::PEAKS)
    }

    /// Writes the state, with its kind and a version, in little-endian order on every machine.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if `bytes` does not have [`Self::bytes_len`] entries.
    fn write_bytes(&self, bytes: &mut [u8]) -> Result<()> {
        check_len("bytes", bytes, Self::bytes_len())?;
        let (head, body) = bytes.split_at_mut(HEAD);
        head.copy_from_slice(&self::head(Self::KIND));
        for (to, number) in body.chunks_exact_mut(8).zip(self.limbs().iter().chain(self.peaks())) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        Ok(())
    }

    /// The state that [`Self::write_bytes`] wrote.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if there are not [`Self::bytes_len`] bytes; [`Error::Entry`] for another kind or version,
    /// and where [`Self::from_limbs`] refuses a limb.
    fn from_bytes(bytes: &[u8]) -> Result<Self> {
        check_len("bytes", bytes, Self::bytes_len())?;
        let (head, body) = bytes.split_at(HEAD);
        if let Some(index) = head.iter().zip(self::head(Self::KIND)).position(|(&got, expected)| got != expected) {
            let must_be = "the head of a state of this kind and version";
            return Err(Error::Entry { what: "bytes", index, must_be, got: f64::from(head[index]) });
        }
        let mut state = Self::default();
        let (limbs, peaks) = state.parts_mut();
        for (to, from) in limbs.iter_mut().chain(peaks).zip(body.chunks_exact(8)) {
            *to = <[u8; 8]>::try_from(from).map_or(0, i64::from_le_bytes);
        }
        Self::from_limbs(state.limbs(), state.peaks())
    }
}

/// Checks limbs that come from outside; `first` is the index of the first in what was given.
pub(super) fn check_limbs(pieces: &[Piece], limbs: &[i64], first: usize) -> Result<()> {
    let mut rest = limbs;
    for piece in pieces {
        let (this, after) = rest.split_at(piece.len());
        let specials = piece.len() - if *piece == Piece::Count { 1 } else { 3 };
        for (place, &limb) in this.iter().enumerate() {
            let least = if place < specials { -MOST } else { 0 };
            if !(least..=MOST).contains(&limb) {
                let must_be = if least == 0 { "a count, from 0 to 2^62" } else { "within ±2^62" };
                let index = first + limbs.len() - rest.len() + place;
                return Err(Error::Entry { what: "limbs", index, must_be, got: limb as f64 });
            }
        }
        rest = after;
    }
    Ok(())
}

fn head(kind: u32) -> [u8; HEAD] {
    let [a, b, c, d] = kind.to_le_bytes();
    [b't', b'w', b'x', VERSION, a, b, c, d]
}

/// Defines a state by its pieces.
macro_rules! state {
    (
        $(#[$doc:meta])*
        $name:ident, kind: $kind:literal, pieces: [$($piece:ident $index:ident),* $(,)?], peaks: $peaks:expr
    ) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq)]
        pub struct $name {
            limbs: [i64; Self::LEN],
            peaks: [i64; $peaks],
        }

        // some states need only a few of their pieces by name
        #[allow(dead_code, reason = "not every piece is read by its name")]
        impl $name {
            const ALL: &'static [$crate::exact::partial::Piece] = &[$($crate::exact::partial::Piece::$piece),*];
            const LEN: usize = $crate::exact::partial::limbs_before(Self::ALL, Self::ALL.len());

            /// The limbs of a piece.
            fn piece(&self, index: usize) -> &[i64] {
                let start = $crate::exact::partial::limbs_before(Self::ALL, index);
                &self.limbs[start..start + Self::ALL[index].len()]
            }

            fn piece_mut(&mut self, index: usize) -> &mut [i64] {
                let start = $crate::exact::partial::limbs_before(Self::ALL, index);
                &mut self.limbs[start..start + Self::ALL[index].len()]
            }

            /// The limbs of consecutive pieces.
            fn pieces_mut<const N: usize>(&mut self, first: usize) -> [&mut [i64]; N] {
                let mut rest = &mut self.limbs[$crate::exact::partial::limbs_before(Self::ALL, first)..];
                core::array::from_fn(|index| {
                    let (piece, after) = core::mem::take(&mut rest).split_at_mut(Self::ALL[first + index].len());
                    rest = after;
                    piece
                })
            }

            fn count(&self, index: usize) -> u64 {
                self.piece(index)[0] as u64
            }

            fn add_count(&mut self, index: usize, more: usize) {
                self.piece_mut(index)[0] += more as i64;
            }

            $crate::exact::partial::indices!(0; $($index)*);
        }

        impl Default for $name {
            /// No data.
            fn default() -> Self {
                Self { limbs: [0; Self::LEN], peaks: [i64::MIN; $peaks] }
            }
        }

        impl core::fmt::Debug for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.debug_struct(stringify!($name)).finish_non_exhaustive()
            }
        }

        impl $crate::exact::Partial for $name {
            const KIND: u32 = $kind;
            const LIMBS: usize = Self::LEN;
            const PEAKS: usize = $peaks;
            const PIECES: &'static [$crate::exact::partial::Piece] = Self::ALL;

            fn limbs(&self) -> &[i64] {
                &self.limbs
            }

            fn peaks(&self) -> &[i64] {
                &self.peaks
            }

            fn parts_mut(&mut self) -> (&mut [i64], &mut [i64]) {
                (&mut self.limbs, &mut self.peaks)
            }
        }
    };
}

/// Numbers the pieces.
macro_rules! indices {
    ($next:expr;) => {};
    ($next:expr; $index:ident $($rest:ident)*) => {
        const $index: usize = $next;
        $crate::exact::partial::indices!($next + 1; $($rest)*);
    };
}
pub(super) use {indices, state};

/// Whether the batches of a state had an input: all of them or none.
pub(super) fn given(what: &'static str, got: u64, sequences: u64) -> Result<bool> {
    if got == 0 || got == sequences {
        Ok(got > 0)
    } else {
        Err(Error::Length { what, expected: sequences as usize, got: got as usize })
    }
}

/// Takes a number into the largest (`first`) and the negated smallest (the one after it).
pub(super) fn peak(peaks: &mut [i64], first: usize, x: f64) {
    peaks[first] = peaks[first].max(key(x));
    peaks[first + 1] = peaks[first + 1].max(key(-x));
}

/// A number as an integer of the same order; NaN is the largest. Fit for [`Partial::peaks`].
pub(super) fn key(x: f64) -> i64 {
    if x.is_nan() {
        return i64::MAX;
    }
    let bits = x.to_bits() as i64;
    bits ^ ((bits >> 63) as u64 >> 1) as i64
}

/// The number of a key; NaN for that of NaN and for the peak of no numbers.
pub(super) fn number(key: i64) -> f64 {
    match key {
        i64::MIN | i64::MAX => f64::NAN,
        key => f64::from_bits((key ^ ((key >> 63) as u64 >> 1) as i64) as u64),
    }
}
