//! Adds many numbers at once, without rounding.
//!
//! A block of numbers is usually summed in plain `f64`, in vectors: if its largest and smallest exponents are known,
//! each number splits into a part on a coarse grid and the rest on a fine one, such that no sum of either can round.
//! Two additions to the limbs then serve the whole block. A block whose exponents are too far apart is added number by
//! number; so are products of `f64`, which have twice the digits. Both ways give the same limbs.

use core::array;

use super::limbs::{self, add, add_product, OFFSET};
use crate::{
    layout::{Batch, Row},
    real::Real,
    reduce::{add_lanes, tree, CHUNK, LANES},
    simd::multiversion,
};

/// Slots of a block; a multiple of [`CHUNK`] and at most 1024. Changes no bit. Small where stack is scarce.
pub(super) const BLOCK: usize = {
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "wasm32")) {
        512
    } else {
        32
    }
};

/// Blocks that may be added between two carries: a block adds at most 2⁴³ to a limb.
pub(super) const BLOCKS_PER_CARRY: u32 = 1 << 17;

/// The exponents of the numbers of a block: each is below 2^`high` in magnitude and a multiple of 2^`low`.
#[derive(Clone, Copy)]
pub(crate) struct Span {
    high: i32,
    low: i32,
}

/// The exponents of a block.
pub(crate) enum Exponents {
    /// All numbers are 0.
    Zero,
    /// All are finite.
    Finite(Span),
    /// Some are infinite or NaN.
    Special,
}

/// What the sums know about a type.
pub trait ExactBlock: Sized {
    /// Whether a product of two such numbers is exact in `f64`.
    #[doc(hidden)]
    const EXACT_PRODUCT: bool;
    #[doc(hidden)]
    #[allow(private_interfaces, reason = "sealed with `Real`, whose supertrait this is")]
    fn exponents(values: &[[Self; CHUNK]]) -> Exponents;
}

macro_rules! exact_block {
    ($type:ident, $bits:ident, $fraction:literal, $product:literal) => {
        impl ExactBlock for $type {
            const EXACT_PRODUCT: bool = $product;

            #[allow(private_interfaces, reason = "sealed with `Real`, whose supertrait this is")]
            #[inline(always)]
            fn exponents(values: &[[Self; CHUNK]]) -> Exponents {
                let (mut high, mut low) = ([0; LANES], [$bits::MAX; LANES]);
                let magnitude = |x: $type| x.to_bits() & ($bits::MAX >> 1);
                // one loop each, which LLVM vectorises
                for chunk in values {
                    let mut most = high;
                    for group in (0..CHUNK).step_by(LANES) {
                        for lane in 0..LANES {
                            most[lane] = most[lane].max(magnitude(chunk[group + lane]));
                        }
                    }
                    high = most;
                }
                for chunk in values {
                    let mut least = low;
                    for group in (0..CHUNK).step_by(LANES) {
                        for lane in 0..LANES {
                            // 0 becomes the largest number and is not counted
                            least[lane] = least[lane].min(magnitude(chunk[group + lane]).wrapping_sub(1));
                        }
                    }
                    low = least;
                }
                let high = high.iter().fold(0, |most, &bits| bits.max(most));
                let low = low.iter().fold($bits::MAX, |least, &bits| bits.min(least));
                if high >= $type::INFINITY.to_bits() {
                    return Exponents::Special;
                }
                if high == 0 {
                    return Exponents::Zero;
                }
                let field = |bits: $bits| ((bits >> $fraction) as i32).max(1);
                // fields 1, 2, …: numbers below 2, 4, … times the smallest normal one
                let unit = $type::MIN_EXP - 2;
                Exponents::Finite(Span { high: field(high) + unit + 1, low: field(low + 1) + unit - $fraction })
            }
        }
    };
}
exact_block!(f32, u32, 23, true);
exact_block!(f64, u64, 52, false);

/// `2^exponent`, for exponents of normal numbers.
fn power(exponent: i32) -> f64 {
    f64::from_bits(((exponent + 1023) as u64) << 52)
}

/// The number that rounds to the coarse grid when it is added and subtracted again; `None` if the fine parts could
/// round.
fn splitter(span: Span) -> Option<f64> {
    // 2¹⁰ numbers below 2^high on this grid add up to at most 2⁵³ of its steps
    let grid = span.high + 10 - 53;
    // what is left of each is at most half a step
    let fits = grid - 1 + 10 <= span.low + 53;
    (fits && grid + 53 < 1023 && grid + 52 > -1022).then(|| 1.5 * power(grid + 52))
}

/// Adds terms to the coarse and to the fine lanes. Both parts are stored before they are added: LLVM does not vectorise
/// a loop with two sums.
#[inline(always)]
fn add_split(splitter: f64, term: impl Fn(usize) -> f64, coarse: &mut [f64; LANES], fine: &mut [f64; LANES]) {
    let (mut on_grid, mut rest) = ([0.0; CHUNK], [0.0; CHUNK]);
    for slot in 0..CHUNK {
        let x = term(slot);
        on_grid[slot] = (x + splitter) - splitter;
        rest[slot] = x - on_grid[slot];
    }
    add_lanes(&on_grid, coarse);
    add_lanes(&rest, fine);
}

/// Numbers of one block, zeros where slots are dropped, and their exponents.
pub(super) struct Column<R> {
    values: [[R; CHUNK]; BLOCK / CHUNK],
    exponents: Exponents,
}

impl<R: Real> Column<R> {
    pub(super) fn new() -> Self {
        Self { values: [[R::zero(); CHUNK]; BLOCK / CHUNK], exponents: Exponents::Zero }
    }

    /// The chunks of so many slots.
    #[inline(always)]
    fn chunks(&self, len: usize) -> &[[R; CHUNK]] {
        &self.values[..len.div_ceil(CHUNK)]
    }

    /// The numbers, slot by slot.
    pub(super) fn slots(&self) -> &[R] {
        self.values.as_flattened()
    }

    /// Copies kept numbers, zeros for the others.
    #[inline(always)]
    fn fill(&mut self, keep: &[bool], input: &[R]) {
        let values = self.values.as_flattened_mut();
        for ((to, &from), &keep) in values.iter_mut().zip(input).zip(keep) {
            *to = if keep { from } else { R::zero() };
        }
        values[keep.len()..keep.len().div_ceil(CHUNK) * CHUNK].fill(R::zero());
    }

    /// Sets dropped slots to 0.
    #[inline(always)]
    pub(super) fn drop_slots(&mut self, keep: &[bool]) {
        let values = self.values.as_flattened_mut();
        for (value, &keep) in values.iter_mut().zip(keep) {
            *value = if keep { *value } else { R::zero() };
        }
        values[keep.len()..keep.len().div_ceil(CHUNK) * CHUNK].fill(R::zero());
    }

    /// Must be called after the numbers were written and before they are added.
    #[inline(always)]
    pub(super) fn measure(&mut self, len: usize) {
        self.exponents = R::exponents(self.chunks(len));
    }

    /// Adds the numbers to a sum.
    #[inline(always)]
    pub(super) fn add_to(&self, len: usize, sum: &mut [i64]) {
        let splitter = match self.exponents {
            Exponents::Zero => return,
            Exponents::Finite(span) => splitter(span),
            Exponents::Special => None,
        };
        let Some(splitter) = splitter else {
            return self.chunks(len).as_flattened().iter().for_each(|x| add(sum, 0, x.widen()));
        };
        let (mut coarse, mut fine) = ([0.0; LANES], [0.0; LANES]);
        for chunk in self.chunks(len) {
            add_split(splitter, |slot| chunk[slot].widen(), &mut coarse, &mut fine);
        }
        add(sum, 0, tree(coarse));
        add(sum, 0, tree(fine));
    }

    /// Adds the products with the numbers of another column to a sum of products.
    #[inline(always)]
    pub(super) fn add_products_to(&self, other: &Self, len: usize, sum: &mut [i64]) {
        let splitter = match (&self.exponents, &other.exponents) {
            (Exponents::Zero, Exponents::Zero | Exponents::Finite(_)) | (Exponents::Finite(_), Exponents::Zero) => {
                return
            }
            (Exponents::Finite(x), Exponents::Finite(y)) if R::EXACT_PRODUCT => {
                splitter(Span { high: x.high + y.high, low: x.low + y.low })
            }
            _ => None,
        };
        let chunks = self.chunks(len).iter().zip(other.chunks(len));
        let Some(splitter) = splitter else {
            let pairs = chunks.flat_map(|(x, y)| x.iter().zip(y));
            return pairs.for_each(|(x, y)| add_product(sum, x.widen(), y.widen()));
        };
        let (mut coarse, mut fine) = ([0.0; LANES], [0.0; LANES]);
        for (x, y) in chunks {
            add_split(splitter, |slot| x[slot].widen() * y[slot].widen(), &mut coarse, &mut fine);
        }
        add(sum, OFFSET, tree(coarse));
        add(sum, OFFSET, tree(fine));
    }
}

/// Writes functions of the slots of some columns to others, which then have to be measured. A dropped slot gets what
/// the function makes of zeros; [`Column::drop_slots`] sets it to 0 where that is not 0.
#[inline(always)]
pub(super) fn map_columns<R: Real, T: Real, const INS: usize, const OUTS: usize>(
    len: usize,
    inputs: [&Column<R>; INS],
    mut outputs: [&mut Column<T>; OUTS],
    token: impl Fn([R; INS]) -> [T; OUTS],
) {
    for chunk in 0..len.div_ceil(CHUNK) {
        let views = inputs.map(|input| &input.values[chunk]);
        let mut results = [[T::zero(); CHUNK]; OUTS];
        for slot in 0..CHUNK {
            let out = token(array::from_fn(|i| views[i][slot]));
            (0..OUTS).for_each(|o| results[o][slot] = out[o]);
        }
        for (output, result) in outputs.iter_mut().zip(results) {
            output.values[chunk] = result;
        }
    }
}

/// Copies the kept slots of some columns block by block, zeros elsewhere, and calls `block` with the number of slots.
#[inline(always)]
pub(super) fn blocks_of_row<R: Real, const N: usize>(
    row: &Row<'_>,
    inputs: [&[R]; N],
    columns: &mut [Column<R>; N],
    mut block: impl FnMut(&[Column<R>; N], &[bool]),
) {
    let inputs = inputs.map(|input| row.of(input));
    let mut start = 0;
    while start < row.keep.len() {
        let keep = &row.keep[start..row.keep.len().min(start + BLOCK)];
        for (column, input) in columns.iter_mut().zip(inputs) {
            column.fill(keep, &input[start..start + keep.len()]);
            column.measure(keep.len());
        }
        block(columns, keep);
        start += keep.len();
    }
}

/// Adds the kept numbers to a sum and their squares to a sum of products.
#[multiversion(avx512)]
pub(super) fn add_moments<R: Real>(batch: &Batch<'_>, values: &[R], sum: &mut [i64], squares: &mut [i64]) {
    let mut columns = [Column::new()];
    let mut due = Due::default();
    for row in batch.token_rows() {
        blocks_of_row(&row, [values], &mut columns, |[x], keep| {
            x.add_to(keep.len(), sum);
            x.add_products_to(x, keep.len(), squares);
            due.carry([&mut *sum, &mut *squares]);
        });
    }
}

/// Adds the kept numbers to a sum.
#[multiversion(avx512)]
pub(super) fn add_numbers<R: Real>(batch: &Batch<'_>, values: &[R], sum: &mut [i64]) {
    let mut columns = [Column::new()];
    let mut due = Due::default();
    for row in batch.token_rows() {
        blocks_of_row(&row, [values], &mut columns, |[x], keep| {
            x.add_to(keep.len(), sum);
            due.carry([&mut *sum]);
        });
    }
}

/// Two sums and three sums of products: those of [`add_pairs`].
pub(super) struct PairSums<'a> {
    pub(super) x: &'a mut [i64],
    pub(super) y: &'a mut [i64],
    pub(super) xx: &'a mut [i64],
    pub(super) yy: &'a mut [i64],
    pub(super) xy: &'a mut [i64],
}

impl PairSums<'_> {
    #[inline(always)]
    pub(super) fn add<R: Real>(&mut self, x: &Column<R>, y: &Column<R>, len: usize) {
        x.add_to(len, self.x);
        y.add_to(len, self.y);
        x.add_products_to(x, len, self.xx);
        y.add_products_to(y, len, self.yy);
        x.add_products_to(y, len, self.xy);
    }
}

/// Adds the kept pairs.
#[multiversion(avx512)]
pub(super) fn add_pairs<R: Real>(batch: &Batch<'_>, x: &[R], y: &[R], sums: &mut PairSums<'_>) {
    let mut columns = [Column::new(), Column::new()];
    let mut due = Due::default();
    for row in batch.token_rows() {
        blocks_of_row(&row, [x, y], &mut columns, |[x, y], keep| {
            sums.add(x, y, keep.len());
            due.carry([&mut *sums.x, &mut *sums.y, &mut *sums.xx, &mut *sums.yy, &mut *sums.xy]);
        });
    }
}

/// Counts blocks, and carries before a limb could overflow.
#[derive(Default)]
pub(super) struct Due(u32);

impl Due {
    /// Counts a block that was added to these sums.
    #[inline(always)]
    pub(super) fn carry<const N: usize>(&mut self, sums: [&mut [i64]; N]) {
        self.0 = self.0.wrapping_add(1);
        self.also(sums);
    }

    /// More sums that the block was added to.
    #[inline(always)]
    pub(super) fn also<const N: usize>(&self, sums: [&mut [i64]; N]) {
        if self.0 % BLOCKS_PER_CARRY == 0 {
            sums.into_iter().for_each(limbs::carry);
        }
    }
}
