//! FNV-1a over the bits of results.

use core::borrow::Borrow;

use tokenwise::{policy::Logit, CoMoments, Error, Moments, Real};

/// A number type with its bits.
pub(crate) trait Value: Real + Hashed + Logit<Compute = Self> {
    /// Buffer for one number per token. `f32` gets a row longer than one block of a sum; `f64` stays short, for small
    /// memories.
    type Tokens: AsMut<[Self]>;
    /// Buffer for one number per token and vocabulary entry.
    type Logits: AsMut<[Self]>;
    /// The largest finite number.
    const LARGEST: Self;
    fn tokens() -> Self::Tokens;
    fn logits() -> Self::Logits;
    /// The value with these bits; the upper half is ignored if the type is shorter.
    fn of_bits(bits: u64) -> Self;
    /// The value this many bit patterns away.
    fn neighbour(self, steps: i32) -> Self;
}

impl Value for f32 {
    type Tokens = [Self; 1100];
    type Logits = [Self; 1100];
    const LARGEST: Self = Self::MAX;
    fn tokens() -> Self::Tokens {
        [0.0; 1100]
    }
    fn logits() -> Self::Logits {
        [0.0; 1100]
    }
    fn of_bits(bits: u64) -> Self {
        Self::from_bits((bits >> 32) as u32)
    }
    fn neighbour(self, steps: i32) -> Self {
        Self::from_bits(self.to_bits().wrapping_add_signed(steps))
    }
}

impl Value for f64 {
    type Tokens = [Self; 400];
    type Logits = [Self; 888];
    const LARGEST: Self = Self::MAX;
    fn tokens() -> Self::Tokens {
        [0.0; 400]
    }
    fn logits() -> Self::Logits {
        [0.0; 888]
    }
    fn of_bits(bits: u64) -> Self {
        Self::from_bits(bits)
    }
    fn neighbour(self, steps: i32) -> Self {
        Self::from_bits(self.to_bits().wrapping_add_signed(steps.into()))
    }
}

/// FNV-1a, 64 bits.
pub(crate) struct Hash(u64);

impl Hash {
    pub(crate) const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    pub(crate) const fn value(&self) -> u64 {
        self.0
    }

    pub(crate) fn bytes(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    pub(crate) fn add(&mut self, found: &(impl Hashed + ?Sized)) {
        found.add_to(self);
    }
}

/// Anything a formula may return: types that can be hashed.
pub(crate) trait Hashed {
    fn add_to(&self, hash: &mut Hash);
}

impl Hashed for () {
    fn add_to(&self, _: &mut Hash) {}
}

impl Hashed for u32 {
    fn add_to(&self, hash: &mut Hash) {
        hash.bytes(&self.to_le_bytes());
    }
}

impl Hashed for u64 {
    fn add_to(&self, hash: &mut Hash) {
        hash.bytes(&self.to_le_bytes());
    }
}

impl Hashed for str {
    fn add_to(&self, hash: &mut Hash) {
        hash.bytes(self.as_bytes());
    }
}

impl Hashed for bool {
    fn add_to(&self, hash: &mut Hash) {
        hash.bytes(&[u8::from(*self)]);
    }
}

// the width of usize depends on the target, its value does not
impl Hashed for usize {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&(*self as u64));
    }
}

// all NaNs are hashed as one: their payload depends on the machine
impl Hashed for f32 {
    fn add_to(&self, hash: &mut Hash) {
        let canonical = if self.is_nan() { Self::NAN } else { *self };
        hash.bytes(&canonical.to_bits().to_le_bytes());
    }
}

impl Hashed for f64 {
    fn add_to(&self, hash: &mut Hash) {
        let canonical = if self.is_nan() { Self::NAN } else { *self };
        hash.bytes(&canonical.to_bits().to_le_bytes());
    }
}

impl<T: Hashed> Hashed for [T] {
    fn add_to(&self, hash: &mut Hash) {
        self.iter().for_each(|found| found.add_to(hash));
    }
}

impl<T: Hashed + ?Sized> Hashed for &T {
    fn add_to(&self, hash: &mut Hash) {
        (**self).add_to(hash);
    }
}

impl<T: Hashed, const N: usize> Hashed for [T; N] {
    fn add_to(&self, hash: &mut Hash) {
        self.as_slice().add_to(hash);
    }
}

impl<A: Hashed, B: Hashed> Hashed for (A, B) {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.0);
        hash.add(&self.1);
    }
}

impl<T: Hashed> Hashed for Option<T> {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.is_some());
        self.iter().for_each(|found| found.add_to(hash));
    }
}

/// An error is a result too: its code is the same on every target.
impl<T: Hashed, E: Borrow<Error>> Hashed for Result<T, E> {
    fn add_to(&self, hash: &mut Hash) {
        match self {
            Ok(found) => found.add_to(hash),
            Err(error) => hash.bytes(error.borrow().code().as_bytes()),
        }
    }
}

impl Hashed for Moments {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.count);
        hash.add(&[self.mean, self.m2]);
    }
}

impl Hashed for CoMoments {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.count);
        hash.add(&[self.mean_x, self.mean_y, self.m2_x, self.m2_y, self.co_moment]);
    }
}
