//! Whole numbers of a few thousand bits, with a sign: what a sum is turned into once, to be divided and rounded.

use core::cmp::Ordering;

use super::limbs::payload;

/// Digits of 32 bits: enough for the product of two sums, and for a sum of products times a count.
const DIGITS: usize = 140;

#[derive(Clone)]
pub(super) struct Whole {
    /// Lowest first.
    digits: [u32; DIGITS],
    negative: bool,
}

impl Whole {
    const ZERO: Self = Self { digits: [0; DIGITS], negative: false };

    /// A carried sum, in units of 2^(−32 · `shift`) of its lowest bit.
    pub(super) fn of(sum: &[i64], shift: usize) -> Self {
        let payload = payload(sum);
        let mut whole = Self::ZERO;
        let (last, low) = (payload[payload.len() - 1], &payload[..payload.len() - 1]);
        let digits = &mut whole.digits[shift..];
        for (digit, limb) in digits.iter_mut().zip(low) {
            *digit = *limb as u32;
        }
        (digits[low.len()], digits[low.len() + 1]) = (last as u32, (last >> 32) as u32);
        if last < 0 {
            whole.negative = true;
            // two's complement: all digits above the sum are ones
            digits[low.len() + 2..].fill(u32::MAX);
            let mut carry = true;
            for digit in &mut whole.digits {
                (*digit, carry) = (!*digit).overflowing_add(u32::from(carry));
            }
        }
        whole
    }

    /// Digits up to the highest that is not 0.
    fn len(&self) -> usize {
        self.digits.iter().rposition(|&digit| digit != 0).map_or(0, |last| last + 1)
    }

    pub(super) fn times(mut self, factor: u64) -> Self {
        let mut carry = 0_u128;
        for digit in &mut self.digits {
            let total = u128::from(*digit) * u128::from(factor) + carry;
            *digit = total as u32;
            carry = total >> 32;
        }
        self
    }

    pub(super) fn product(&self, other: &Self) -> Self {
        let mut out = Self { negative: self.negative != other.negative, ..Self::ZERO };
        let (rows, columns) = (self.len(), other.len());
        for (i, &a) in self.digits[..rows].iter().enumerate().filter(|(_, &digit)| digit != 0) {
            let mut carry = 0_u64;
            for j in 0..columns + 1 {
                // the sum of both stays below the digits there are
                let Some(digit) = out.digits.get_mut(i + j) else { break };
                let b = if j < columns { other.digits[j] } else { 0 };
                let total = u64::from(a) * u64::from(b) + u64::from(*digit) + carry;
                *digit = total as u32;
                carry = total >> 32;
            }
        }
        out
    }

    pub(super) fn minus(self, other: &Self) -> Self {
        if self.negative != other.negative {
            return self.plus_magnitude(other);
        }
        match self.digits.iter().rev().cmp(other.digits.iter().rev()) {
            Ordering::Less => {
                let negative = !self.negative;
                Self { negative, ..other.clone().minus_magnitude(&self) }
            }
            _ => self.minus_magnitude(other),
        }
    }

    fn plus_magnitude(mut self, other: &Self) -> Self {
        let mut carry = 0;
        for (digit, &more) in self.digits.iter_mut().zip(&other.digits) {
            let total = u64::from(*digit) + u64::from(more) + carry;
            *digit = total as u32;
            carry = total >> 32;
        }
        self
    }

    /// The magnitude of `other` must not be larger.
    fn minus_magnitude(mut self, other: &Self) -> Self {
        let mut borrow = 0;
        for (digit, &less) in self.digits.iter_mut().zip(&other.digits) {
            let total = i64::from(*digit) - i64::from(less) - borrow;
            *digit = total as u32;
            borrow = i64::from(total < 0);
        }
        self
    }

    /// Divides by a count, and says whether something was left over.
    pub(super) fn divided(mut self, by: u64) -> (Self, bool) {
        let mut rest = 0_u128;
        let len = self.len();
        for digit in self.digits[..len].iter_mut().rev() {
            let total = rest << 32 | u128::from(*digit);
            (*digit, rest) = ((total / u128::from(by)) as u32, total % u128::from(by));
        }
        (self, rest != 0)
    }

    fn bit(&self, index: usize) -> u64 {
        u64::from(self.digits[index / 32] >> (index % 32) & 1)
    }

    /// The nearest `f64` to `self · 2^−scale`, ties to even. `scale` is at least 1074; `left` says that the number is
    /// a little larger in magnitude than its digits.
    pub(super) fn round(&self, scale: usize, left: bool) -> f64 {
        let len = self.len();
        if len == 0 {
            return 0.0;
        }
        let top = 32 * len - 1 - self.digits[len - 1].leading_zeros() as usize;
        // the lowest bit of the result: 53 bits, or fewer if that would be below 2⁻¹⁰⁷⁴
        let lowest = top.saturating_sub(52).max(scale - 1074);
        let mut mantissa = 0;
        for index in (lowest..=top).rev() {
            mantissa = mantissa << 1 | self.bit(index);
        }
        if lowest > 0 && lowest <= top + 1 {
            let half = self.bit(lowest - 1) == 1;
            let below = left || (0..lowest - 1).any(|index| self.bit(index) == 1);
            mantissa += u64::from(half && (below || mantissa & 1 == 1));
        }
        // mantissa · 2^(lowest − scale); a mantissa of 2⁵³ carries into the exponent
        let bits = if mantissa < 1 << 52 {
            mantissa
        } else {
            let field = lowest + 1075 - scale;
            if field >= 0x7ff {
                f64::INFINITY.to_bits()
            } else {
                ((field as u64) << 52) + (mantissa - (1 << 52))
            }
        };
        let magnitude = f64::from_bits(bits);
        if self.negative {
            -magnitude
        } else {
            magnitude
        }
    }
}
