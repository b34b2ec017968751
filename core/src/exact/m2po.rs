use super::{
    limbs::{self, SUM},
    partial::{check_limbs, Piece},
    selection::before_rank,
    sum::mean,
};
use crate::{
    error::{check_len, check_positive, Result},
    layout::Batch,
    real::Real,
    rollout::{square, M2poConfig, RolloutInput},
};

/// Bits of a number that one round decides.
const DIGIT: u32 = 4;
const BUCKETS: usize = 1 << DIGIT;
/// Limbs of a bucket: how many numbers, and their sum.
const BUCKET: usize = 1 + SUM;
const LIMBS: usize = BUCKETS * BUCKET;
/// Numbers that may be added between two carries.
const NUMBERS_PER_CARRY: u32 = 1 << 20;

/// [`m2po_mask`](crate::rollout::m2po_mask) over the tokens of all ranks, without gathering them.
///
/// The tokens that stay are the smallest `x = (log π_rollout − log π_old)²`, as many as have a mean below τ. Every
/// round adds up, among the numbers that the last rounds have left, those with each value of the next 4 bits; the limbs
/// of all ranks are added, and all ranks take the same step. After 16 rounds the number at which the mean would reach τ
/// is known. The ranks then exchange how many of their numbers equal it:
///
/// ```
/// use tokenwise::{exact::*, rollout::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, true]))?;
/// let here = RolloutInput { old_log_probs: &[-1.0, -3.0], rollout_log_probs: &[-1.5, -1.0] };      // ¼ and 4
/// let there = RolloutInput { old_log_probs: &[-1.0, -2.0], rollout_log_probs: &[-1.0, -2.0] };     // 0 and 0
/// let mut cut = M2po::new(&M2poConfig { tau: 0.1 })?;
/// loop {
///     cut.count(&batch, here)?;
///     cut.count(&batch, there)?;                                // elsewhere: an all-reduce of `limbs`
///     if cut.step() {
///         break;
///     }
/// }
/// let equal = [cut.equal(&batch, here)?, cut.equal(&batch, there)?];
/// let mut keep = [false; 2];
/// cut.mask(&batch, here, cut.surplus(&equal, 0), &mut keep)?;
/// assert_eq!(keep, [true, false]);                              // the mean of 0, 0 and ¼ is below 0.1
/// # Ok::<(), tokenwise::Error>(())
/// ```
///
/// Sums and means are rounded once; the plain function adds in order and may differ where a mean is within rounding of
/// τ. Among equal numbers those of earlier ranks are dropped first, so that ranks with consecutive sequences keep what
/// one process would.
#[derive(Clone, Debug, PartialEq)]
pub struct M2po {
    tau: f64,
    limbs: [i64; LIMBS],
    /// The bits that are known, at the top.
    prefix: u64,
    known: u32,
    /// How many numbers are certain to stay, and their sum.
    below: u64,
    sum: [i64; SUM],
    /// After the last round: how many of the numbers at the cut stay.
    at_cut: Option<u64>,
}

impl M2po {
    /// Before the first round.
    ///
    /// # Errors
    ///
    /// [`Error::Config`](crate::Error::Config) if τ is not positive and finite.
    pub fn new(config: &M2poConfig) -> Result<Self> {
        check_positive::<f64>("tau", config.tau)?;
        Ok(Self { tau: config.tau, limbs: [0; LIMBS], prefix: 0, known: 0, below: 0, sum: [0; SUM], at_cut: None })
    }

    /// Adds the kept tokens at which the mean may still reach τ.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
    pub fn count<R: Real>(&mut self, batch: &Batch<'_>, input: RolloutInput<'_, R>) -> Result<()> {
        input.check(batch)?;
        if self.known == u64::BITS {
            return Ok(());
        }
        let mut due = 0;
        for x in squares(batch, input).flatten() {
            let bits = key(x);
            if self.known > 0 && bits >> (u64::BITS - self.known) != self.prefix {
                continue;
            }
            let bucket = (bits >> (u64::BITS - self.known - DIGIT)) as usize % BUCKETS;
            let (count, sum) = self.limbs[bucket * BUCKET..][..BUCKET].split_at_mut(1);
            count[0] += 1;
            limbs::add(sum, 0, x, 1);
            due = (due + 1) % NUMBERS_PER_CARRY;
            if due == 0 {
                self.carry();
            }
        }
        self.carry();
        Ok(())
    }

    fn carry(&mut self) {
        self.limbs.chunks_exact_mut(BUCKET).for_each(|bucket| limbs::carry(&mut bucket[1..]));
    }

    /// What ranks exchange in this round: a sum over them is a merge.
    pub fn limbs(&self) -> &[i64] {
        &self.limbs
    }

    /// Replaces the limbs by the sum over all ranks.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if there are not as many as [`Self::limbs`];
    /// [`Error::Entry`](crate::Error::Entry) if one cannot be a limb: beyond ±2⁶², or a negative count.
    pub fn set_limbs(&mut self, limbs: &[i64]) -> Result<()> {
        check_len("limbs", limbs, LIMBS)?;
        for (bucket, given) in limbs.chunks_exact(BUCKET).enumerate() {
            check_limbs(&[Piece::Count, Piece::Sum], given, bucket * BUCKET)?;
        }
        self.limbs.copy_from_slice(limbs);
        self.carry();
        Ok(())
    }

    /// Ends a round: whether it was the last one.
    pub fn step(&mut self) -> bool {
        if self.known == u64::BITS {
            return true;
        }
        let round = core::mem::replace(&mut self.limbs, [0; LIMBS]);
        for (bucket, limbs) in round.chunks_exact(BUCKET).enumerate().filter(|(_, limbs)| limbs[0] > 0) {
            let count = limbs[0] as u64;
            let mut sum = self.sum;
            sum.iter_mut().zip(&limbs[1..]).for_each(|(limb, more)| *limb = limb.wrapping_add(*more));
            limbs::carry(&mut sum);
            if mean(&sum, self.below + count) < self.tau {
                (self.below, self.sum) = (self.below + count, sum);
                continue;
            }
            self.prefix = self.prefix << DIGIT | bucket as u64;
            self.known += DIGIT;
            if self.known == u64::BITS {
                self.at_cut = Some(self.fitting(count));
            }
            return self.known == u64::BITS;
        }
        // the mean of all tokens is below τ, or there are none
        self.known = u64::BITS;
        true
    }

    /// How many of `count` numbers at the cut leave the mean below τ.
    fn fitting(&self, count: u64) -> u64 {
        let fits = |more: u64| {
            let mut sum = self.sum;
            limbs::add(&mut sum, 0, f64::from_bits(self.prefix), more);
            limbs::carry(&mut sum);
            mean(&sum, self.below + more) < self.tau
        };
        // the mean grows with every number that is not below it
        let (mut low, mut high) = (0, count);
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            (low, high) = if fits(middle) { (middle, high) } else { (low, middle - 1) };
        }
        // one token always stays
        low.max(u64::from(self.below == 0))
    }

    /// After the last round: how many kept tokens of a rank are at the cut.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
    pub fn equal<R: Real>(&self, batch: &Batch<'_>, input: RolloutInput<'_, R>) -> Result<u64> {
        input.check(batch)?;
        let at_cut = |x: &f64| self.at_cut.is_some() && key(*x) == self.prefix;
        Ok(squares(batch, input).flatten().filter(at_cut).count() as u64)
    }

    /// How many of its tokens at the cut a rank drops: `equal` of each rank, in order, `index` the rank.
    pub fn surplus(&self, equal: &[u64], index: usize) -> u64 {
        let (before, all) = before_rank(equal, index);
        let dropped = self.at_cut.map_or(0, |stay| all.saturating_sub(stay));
        dropped.saturating_sub(before).min(equal.get(index).copied().unwrap_or(0))
    }

    /// The mask of a rank; `surplus` of its tokens at the cut are dropped, the earlier ones.
    ///
    /// # Errors
    ///
    /// [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`.
    pub fn mask<R: Real>(
        &self,
        batch: &Batch<'_>,
        input: RolloutInput<'_, R>,
        surplus: u64,
        keep: &mut [bool],
    ) -> Result<()> {
        input.check(batch)?;
        check_len("keep", keep, batch.tokens())?;
        let mut surplus = surplus;
        for (keep, x) in keep.iter_mut().zip(squares(batch, input)) {
            *keep = x.is_some_and(|x| {
                let (bits, cut) = (key(x), self.at_cut.map_or(u64::MAX, |_| self.prefix));
                if bits == cut && surplus > 0 {
                    surplus -= 1;
                    return false;
                }
                bits <= cut
            });
        }
        Ok(())
    }
}

/// The number of each kept slot.
fn squares<'a, R: Real>(batch: &Batch<'a>, input: RolloutInput<'a, R>) -> impl Iterator<Item = Option<f64>> + 'a {
    let pairs = input.old_log_probs.iter().zip(input.rollout_log_probs).zip(batch.mask().as_slice());
    pairs.map(|((&old, &rollout), &keep)| keep.then(|| square(old, rollout)))
}

/// Bits that compare like the numbers, which are not negative; all NaN are the same, and the largest.
fn key(x: f64) -> u64 {
    if x.is_nan() {
        u64::MAX
    } else {
        x.to_bits()
    }
}
