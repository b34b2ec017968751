use crate::{
    error::{check_len, Error, Result},
    layout::Batch,
    order::{number, ordered},
    real::Real,
};

/// Bits of a key that one round decides.
const DIGIT: u32 = 11;
/// Counts that are exchanged in a round.
const BUCKETS: usize = 1 << DIGIT;

/// How many bits the numbers have whose order is asked for.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyBits {
    /// Numbers of `f32`: three rounds.
    Single,
    /// Numbers of `f64`, or both types: six rounds.
    Double,
}

/// The k-th smallest of the numbers of all ranks, without gathering them.
///
/// Every round counts, among the numbers that the last rounds have left, how many have each value of the next 11 bits;
/// the counts of all ranks are added up, and all ranks take the same step:
///
/// ```
/// use tokenwise::{exact::*, Batch, Layout, Mask};
///
/// let (here, there) = ([3.0_f32, -1.0], [2.0_f32, 7.0]);
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, true]))?;
/// let mut selection = Selection::new(KeyBits::Single, 2);       // two numbers are smaller
/// let found = loop {
///     selection.count(&batch, &here)?;
///     selection.count(&batch, &there)?;                         // elsewhere: an all-reduce of `counts`
///     if let Some(found) = selection.step()? {
///         break found;
///     }
/// };
/// assert_eq!(found, 3.0);
/// # Ok::<(), tokenwise::Error>(())
/// ```
///
/// Ordered as by [`quantile`](crate::metric::quantile): −0 is below +0. NaN is above all numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Selection {
    counts: [i64; BUCKETS],
    /// The bits that are known, at the top.
    prefix: u64,
    known: u32,
    width: u32,
    rank: u64,
}

impl Selection {
    /// Asks for the number with `rank` numbers before it in ascending order.
    pub fn new(bits: KeyBits, rank: u64) -> Self {
        let width = match bits {
            KeyBits::Single => 32,
            KeyBits::Double => 64,
        };
        Self { counts: [0; BUCKETS], prefix: 0, known: 0, width, rank }
    }

    /// Counts the kept numbers that may still be the one.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if `values` does not fit `batch`. [`Error::Config`] if a selection of [`KeyBits::Single`] is
    /// given numbers of `f64`.
    pub fn count<R: Real>(&mut self, batch: &Batch<'_>, values: &[R]) -> Result<()> {
        check_len("values", values, batch.tokens())?;
        if self.width == 32 && size_of::<R>() > 4 {
            return Err(Error::Config { what: "bits", must_be: "64 for numbers of f64", got: 32.0 });
        }
        for (value, _) in values.iter().zip(batch.mask().as_slice()).filter(|(_, &keep)| keep) {
            self.count_number(value.widen());
        }
        Ok(())
    }

    /// Counts one number.
    #[inline]
    fn count_number(&mut self, x: f64) {
        let key = self.key(x);
        if self.known == 0 || key >> (self.width - self.known) == self.prefix {
            let (shift, mask) = self.digit();
            self.counts[(key >> shift) as usize & mask] += 1;
        }
    }

    fn key(&self, x: f64) -> u64 {
        // all NaN are the same, and the largest
        match (self.width, x.is_nan()) {
            (32, true) => u64::from(u32::MAX),
            (_, true) => u64::MAX,
            (32, false) => {
                let bits = (x as f32).to_bits();
                u64::from(if bits >> 31 == 1 { !bits } else { bits | 1 << 31 })
            }
            _ => ordered(x),
        }
    }

    fn value(&self, key: u64) -> f64 {
        if self.width == 64 {
            return number(key);
        }
        let key = key as u32;
        f64::from(f32::from_bits(if key >> 31 == 1 { key & (u32::MAX >> 1) } else { !key }))
    }

    /// Where the bits of this round are, and how many.
    fn digit(&self) -> (u32, usize) {
        let bits = DIGIT.min(self.width - self.known);
        (self.width - self.known - bits, (1 << bits) - 1)
    }

    /// The counts of this round, to be added to those of the other ranks.
    pub fn counts(&self) -> &[i64] {
        &self.counts
    }

    /// Replaces the counts by the sum over all ranks.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if there are not as many as [`Self::counts`]; [`Error::Entry`] if one is negative.
    pub fn set_counts(&mut self, counts: &[i64]) -> Result<()> {
        check_len("counts", counts, BUCKETS)?;
        if let Some(index) = counts.iter().position(|&count| count < 0) {
            return Err(Error::Entry { what: "counts", index, must_be: "not negative", got: counts[index] as f64 });
        }
        self.counts.copy_from_slice(counts);
        Ok(())
    }

    /// Ends a round: the number, or `None` if the next round has to be counted.
    ///
    /// # Errors
    ///
    /// [`Error::TooFew`] if not more than `rank` numbers were counted; nothing has changed then.
    pub fn step(&mut self) -> Result<Option<f64>> {
        let mut before = 0;
        for (bucket, &count) in self.counts.iter().enumerate() {
            if before + count as u64 > self.rank {
                let bits = DIGIT.min(self.width - self.known);
                self.prefix = self.prefix << bits | bucket as u64;
                self.known += bits;
                self.rank -= before;
                self.counts = [0; BUCKETS];
                return Ok((self.known == self.width).then(|| self.value(self.prefix)));
            }
            before += count as u64;
        }
        Err(Error::TooFew { what: "rank", needed: self.rank as usize + 1, got: before as usize })
    }

    /// After the last round: how many numbers equal to the one found come before it. With the number of equal ones on
    /// each rank, this says which of them are on which side.
    pub fn ties_before(&self) -> u64 {
        self.rank
    }
}

/// Counts of all ranks, in order: those of the ranks before one of them, and of all.
pub(super) fn before_rank(counts: &[u64], index: usize) -> (u64, u64) {
    counts
        .iter()
        .enumerate()
        .fold((0, 0), |(before, all), (rank, &count)| (before + if rank < index { count } else { 0 }, all + count))
}
