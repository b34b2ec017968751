//! Order statistics without a buffer: the k-th smallest kept number, found by halving the range of its bits.

use crate::{layout::Batch, real::Real};

/// Maps a number to bits that compare as integers like the numbers do.
#[inline(always)]
pub(crate) fn ordered(x: f64) -> u64 {
    let bits = x.to_bits();
    if bits >> 63 == 1 {
        !bits
    } else {
        bits | 1 << 63
    }
}

pub(crate) fn number(ordered: u64) -> f64 {
    f64::from_bits(if ordered >> 63 == 1 { ordered & !(1 << 63) } else { !ordered })
}

fn kept<'a, R: Real>(batch: &Batch<'a>, values: &'a [R]) -> impl Iterator<Item = f64> + 'a {
    values.iter().zip(batch.mask().as_slice()).filter(|(_, &keep)| keep).map(|(value, _)| value.widen())
}

/// The kept number with `rank` kept numbers before it in ascending order, and the one after it (itself if it is the
/// last).
///
/// 64 passes at most. `rank` must be below the number of kept tokens, and no kept value NaN.
pub(crate) fn smallest<R: Real>(batch: &Batch<'_>, values: &[R], rank: usize) -> (f64, f64) {
    let (mut low, mut high) = (u64::MAX, 0);
    for x in kept(batch, values) {
        low = low.min(ordered(x));
        high = high.max(ordered(x));
    }
    // the smallest bits with more than `rank` numbers at or below them
    let mut at_or_below = batch.kept();
    while low < high {
        let middle = low + (high - low) / 2;
        let count = kept(batch, values).filter(|&x| ordered(x) <= middle).count();
        if count > rank {
            (high, at_or_below) = (middle, count);
        } else {
            low = middle + 1;
        }
    }
    let here = number(high);
    if at_or_below > rank + 1 {
        return (here, here);
    }
    let next = kept(batch, values).map(ordered).filter(|&bits| bits > high).min();
    (here, next.map_or(here, number))
}

/// The quantile between two neighbours; NaN if a kept value is. Needs one kept token.
pub(crate) fn quantile<R: Real>(batch: &Batch<'_>, values: &[R], level: f64) -> f64 {
    if kept(batch, values).any(f64::is_nan) {
        return f64::NAN;
    }
    let place = level * (batch.kept() - 1) as f64;
    let rank = place as usize;
    let share = place - rank as f64;
    let (here, next) = smallest(batch, values, rank);
    // from the nearer neighbour, as torch.lerp; what needs no arithmetic first, for infinities
    if here == next || share == 0.0 {
        here
    } else if share < 0.5 {
        here + share * (next - here)
    } else {
        next - (next - here) * (1.0 - share)
    }
}
