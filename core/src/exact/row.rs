//! The sums of one sequence, taken by the engine of the plain functions, and how they enter the limbs.
//!
//! A sequence's sums do not depend on what is beside it, so that adding them without rounding gives the same limbs for
//! any split by sequences. Squares and products are summed as deviations from a pivot, a number of the sequence that is
//! near its mean; with `d = x − p` and `e = y − q`
//!
//! ```text
//! Σ x = Σ d + n p        Σ x y = Σ d e + p Σ e + q Σ d + n p q
//! ```
//!
//! whose right-hand sides are added whole. What is subtracted in the end are integers; nothing cancels that was rounded
//! relative to the mean. A sequence whose sums are not finite is added number by number.

use super::limbs::{self, add, add_product, OFFSET};
use crate::{
    layout::{Batch, Row},
    parallel::{in_order, Part, Work},
    real::Real,
    reduce::{fold_row, row_total},
    simd::multiversion,
    statistics::CoMoments,
};

/// Sequences that may be added between two carries: each adds a few times 2³² to a limb.
const ROWS_PER_CARRY: u32 = 1 << 20;
/// Numbers that may be added one by one between two carries.
const NUMBERS_PER_CARRY: usize = 1 << 20;

/// Calls `run` for all sequences, on threads if that pays, and `add` with each sequence and its report, in order.
pub(super) fn each_row<'a, R: Real, P: Copy + Default + Send>(
    batch: &Batch<'a>,
    run: impl Fn(&Part<'a>, &mut dyn FnMut(P)) + Sync,
    mut add: impl FnMut(&Row<'a>, P),
) {
    let mut sequence = 0;
    let combine = |report| {
        add(&batch.row(sequence), report);
        sequence += 1;
    };
    in_order::<R, P, 0>(batch, Work::ONE, [], |part, [], report| run(part, report), combine);
}

/// The middle one of the first three kept numbers: near the mean, unless two of them are far from it. 0 if there is no
/// kept number, or it is not finite. Being one of the numbers, it leaves the differences of numbers on a grid on that
/// grid.
#[inline(always)]
fn pivot<R: Real>(row: &Row<'_>, number: impl Fn(usize) -> R) -> f64 {
    let mut kept = row.keep.iter().enumerate().filter(|(_, &keep)| keep).map(|(slot, _)| number(slot).widen());
    let Some(first) = kept.next() else { return 0.0 };
    let (second, third) = (kept.next().unwrap_or(first), kept.next().unwrap_or(first));
    let (low, high) = if first < second { (first, second) } else { (second, first) };
    let middle = if third < low {
        low
    } else if third < high {
        third
    } else {
        high
    };
    if middle.is_finite() {
        middle
    } else {
        0.0
    }
}

/// The sums of one quantity of a sequence.
#[derive(Clone, Copy, Default)]
pub(super) struct One {
    count: u64,
    pivot: f64,
    sum: f64,
    squares: f64,
}

impl One {
    /// The sums of a function of each kept token.
    #[inline(always)]
    pub(super) fn of<R: Real, const INS: usize>(
        row: &Row<'_>,
        inputs: [&[R]; INS],
        number: impl Fn([R; INS]) -> R,
    ) -> Self {
        let slices = inputs.map(|input| row.of(input));
        let pivot = pivot(row, |slot| number(slices.map(|slice| slice[slot])));
        let [sum, squares] = fold_row(row, inputs, [], |inputs| {
            let deviation = number(inputs).widen() - pivot;
            ([], [deviation, deviation * deviation])
        });
        Self { count: row.kept() as u64, pivot, sum, squares }
    }

    /// Adds the numbers to a sum and their squares to a sum of products; `numbers` goes through them one by one.
    #[inline(always)]
    pub(super) fn add_to(&self, sums: [&mut [i64]; 2], numbers: impl FnOnce([&mut [i64]; 2])) {
        let Self { count, pivot, sum, squares } = *self;
        if !(sum.is_finite() && squares.is_finite()) {
            return numbers(sums);
        }
        let [values, products] = sums;
        add(values, 0, sum, 1);
        add(values, 0, pivot, count);
        add(products, OFFSET, squares, 1);
        add_product(products, [pivot, sum], 2);
        add_product(products, [pivot, pivot], count);
    }
}

/// The sums of two quantities, of their deviations from the pivots or of the numbers themselves.
#[derive(Clone, Copy)]
enum Sums {
    Deviations([f64; 2]),
    Numbers([f64; 2]),
}

impl Default for Sums {
    fn default() -> Self {
        Self::Numbers([0.0; 2])
    }
}

/// The sums of two quantities of a sequence.
#[derive(Clone, Copy, Default)]
pub(super) struct Two {
    count: u64,
    pivots: [f64; 2],
    sums: Sums,
    /// Of the first with itself, of the second with itself, of both.
    products: [f64; 3],
}

impl Two {
    /// The sums of two functions of each kept token.
    #[inline(always)]
    pub(super) fn of<R: Real, const INS: usize>(
        row: &Row<'_>,
        inputs: [&[R]; INS],
        numbers: impl Fn([R; INS]) -> [R; 2],
    ) -> Self {
        let slices = inputs.map(|input| row.of(input));
        let pivots = [0, 1].map(|which| pivot(row, |slot| numbers(slices.map(|slice| slice[slot]))[which]));
        let [x, y, xx, yy, xy] = fold_row(row, inputs, [], |inputs| {
            let [x, y] = numbers(inputs);
            let (x, y) = (x.widen() - pivots[0], y.widen() - pivots[1]);
            ([], [x, y, x * x, y * y, x * y])
        });
        let sums = Sums::Deviations([x, y]);
        Self { count: row.kept() as u64, pivots, sums, products: [xx, yy, xy] }
    }

    /// From moments that the plain functions found, with the sums of the numbers themselves. For `f32`, whose sums in
    /// `f64` have 29 bits to spare: a rounded sum is off by a part of the mean, not of the deviations.
    pub(super) fn of_moments(found: &CoMoments, sums: [f64; 2]) -> Self {
        let CoMoments { count, mean_x, mean_y, m2_x, m2_y, co_moment } = *found;
        let products = [m2_x, m2_y, co_moment];
        Self { count, pivots: [mean_x, mean_y], sums: Sums::Numbers(sums), products }
    }

    /// Adds the numbers to two sums, their squares and products to three; `numbers` goes through them one by one.
    #[inline(always)]
    pub(super) fn add_to(&self, limbs: [&mut [i64]; 5], numbers: impl FnOnce([&mut [i64]; 5])) {
        let Self { count, pivots: [p, q], sums, products } = *self;
        let (Sums::Deviations([x, y]) | Sums::Numbers([x, y])) = sums;
        if !([p, q, x, y].iter().chain(&products).all(|sum| sum.is_finite())) {
            return numbers(limbs);
        }
        let [to_x, to_y, to_xx, to_yy, to_xy] = limbs;
        add(to_x, 0, x, 1);
        add(to_y, 0, y, 1);
        // Σ (x − p)(y − q) + p Σ (y − q) + q Σ (x − p) + n p q, or with the sums of x and y, − n p q
        let sign = if let Sums::Deviations(_) = sums {
            add(to_x, 0, p, count);
            add(to_y, 0, q, count);
            1.0
        } else {
            -1.0
        };
        for (to, pivot, sum) in [(&mut *to_xx, p, x), (&mut *to_yy, q, y)] {
            add_product(to, [pivot, sum], 2);
            add_product(to, [sign * pivot, pivot], count);
        }
        add_product(to_xy, [p, y], 1);
        add_product(to_xy, [q, x], 1);
        add_product(to_xy, [sign * p, q], count);
        for (to, product) in [to_xx, to_yy, to_xy].into_iter().zip(products) {
            add(to, OFFSET, product, 1);
        }
    }
}

/// Adds a sum over a sequence of numbers that formulas computed.
pub(super) fn add_each<const N: usize>(limbs: [&mut [i64]; N], sums: [f64; N]) {
    for (limbs, sum) in limbs.into_iter().zip(sums) {
        add(limbs, 0, sum, 1);
    }
}

/// Adds the sums of all sequences to a sum.
pub(super) fn add_sums<R: Real>(batch: &Batch<'_>, values: &[R], sum: &mut [i64]) {
    let mut due = Due::default();
    let run = |part: &Part<'_>, report: &mut dyn FnMut(f64)| totals(&part.batch, part.of(values), report);
    each_row::<R, _>(batch, run, |row, total| {
        if total.is_finite() {
            add(sum, 0, total, 1);
        } else {
            add_numbers(row, values, sum);
        }
        due.carry([&mut *sum]);
    });
}

/// Adds a function of the sum of each sequence to a sum.
pub(super) fn add_rows<R: Real>(
    batch: &Batch<'_>,
    values: &[R],
    number: impl Fn(&Row<'_>, f64) -> f64,
    sum: &mut [i64],
) {
    let mut due = Due::default();
    let run = |part: &Part<'_>, report: &mut dyn FnMut(f64)| totals(&part.batch, part.of(values), report);
    each_row::<R, _>(batch, run, |row, total| {
        add(sum, 0, number(row, total), 1);
        due.carry([&mut *sum]);
    });
}

#[multiversion(avx512)]
fn totals<R: Real>(batch: &Batch<'_>, values: &[R], report: &mut dyn FnMut(f64)) {
    for row in batch.token_rows() {
        report(row_total(&row, values));
    }
}

/// Adds the sums of all sequences, and of their squares.
pub(super) fn add_ones<R: Real>(batch: &Batch<'_>, values: &[R], [sum, squares]: [&mut [i64]; 2]) {
    let mut due = Due::default();
    let run = |part: &Part<'_>, report: &mut dyn FnMut(One)| ones(&part.batch, part.of(values), report);
    each_row::<R, _>(batch, run, |row, one| {
        one.add_to([&mut *sum, &mut *squares], |sums| add_squares(row, [values], |[x]| x, sums));
        due.carry([&mut *sum, &mut *squares]);
    });
}

#[multiversion(avx512)]
fn ones<R: Real>(batch: &Batch<'_>, values: &[R], report: &mut dyn FnMut(One)) {
    for row in batch.token_rows() {
        report(One::of(&row, [values], |[x]| x));
    }
}

/// Adds the sums of all sequences for two quantities.
pub(super) fn add_twos<R: Real>(batch: &Batch<'_>, x: &[R], y: &[R], limbs: [&mut [i64]; 5]) {
    let mut limbs = limbs;
    let mut due = Due::default();
    let run = |part: &Part<'_>, report: &mut dyn FnMut(Two)| twos(&part.batch, part.of(x), part.of(y), report);
    each_row::<R, _>(batch, run, |row, two| {
        two.add_to(again(&mut limbs), |limbs| add_products(row, [x, y], |pair| pair, limbs));
        due.carry(again(&mut limbs));
    });
}

#[multiversion(avx512)]
fn twos<R: Real>(batch: &Batch<'_>, x: &[R], y: &[R], report: &mut dyn FnMut(Two)) {
    for row in batch.token_rows() {
        report(Two::of(&row, [x, y], |pair| pair));
    }
}

/// Sums borrowed once more.
pub(super) fn again<'a, const N: usize>(limbs: &'a mut [&mut [i64]; N]) -> [&'a mut [i64]; N] {
    limbs.each_mut().map(|limbs| &mut **limbs)
}

/// Adds the kept numbers of a sequence one by one.
pub(super) fn add_numbers<R: Real>(row: &Row<'_>, values: &[R], sum: &mut [i64]) {
    one_by_one(row, [values], [sum], |[x], [sum]| add(sum, 0, x.widen(), 1));
}

/// Adds a function of the kept tokens of a sequence, and its square, one by one.
pub(super) fn add_squares<R: Real, const INS: usize>(
    row: &Row<'_>,
    inputs: [&[R]; INS],
    number: impl Fn([R; INS]) -> R,
    sums: [&mut [i64]; 2],
) {
    one_by_one(row, inputs, sums, |inputs, [sum, squares]| {
        let x = number(inputs).widen();
        add(sum, 0, x, 1);
        add_product(squares, [x, x], 1);
    });
}

/// Adds two functions of the kept tokens of a sequence, their squares and their product, one by one.
pub(super) fn add_products<R: Real, const INS: usize>(
    row: &Row<'_>,
    inputs: [&[R]; INS],
    numbers: impl Fn([R; INS]) -> [R; 2],
    limbs: [&mut [i64]; 5],
) {
    one_by_one(row, inputs, limbs, |inputs, [x, y, xx, yy, xy]| {
        let [a, b] = numbers(inputs).map(R::widen);
        add(x, 0, a, 1);
        add(y, 0, b, 1);
        add_product(xx, [a, a], 1);
        add_product(yy, [b, b], 1);
        add_product(xy, [a, b], 1);
    });
}

fn one_by_one<R: Real, const INS: usize, const N: usize>(
    row: &Row<'_>,
    inputs: [&[R]; INS],
    mut limbs: [&mut [i64]; N],
    mut add: impl FnMut([R; INS], [&mut [i64]; N]),
) {
    let inputs = inputs.map(|input| row.of(input));
    for (slot, _) in row.keep.iter().enumerate().filter(|(_, &keep)| keep) {
        add(inputs.map(|input| input[slot]), again(&mut limbs));
        if (slot + 1) % NUMBERS_PER_CARRY == 0 {
            limbs.iter_mut().for_each(|limbs| limbs::carry(limbs));
        }
    }
    limbs.into_iter().for_each(limbs::carry);
}

/// Counts sequences, and carries before a limb could overflow.
#[derive(Default)]
pub(super) struct Due(u32);

impl Due {
    /// Counts a sequence that was added to these sums.
    #[inline(always)]
    pub(super) fn carry<const N: usize>(&mut self, sums: [&mut [i64]; N]) {
        self.0 = (self.0 + 1) % ROWS_PER_CARRY;
        if self.0 == 0 {
            sums.into_iter().for_each(limbs::carry);
        }
    }
}
