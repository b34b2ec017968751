//! Random batches: the same for a seed on every machine.

mod flat;
mod world;

use quickcheck::{Arbitrary, Gen};
use tokenwise::{policy::Logit, Real};

pub use flat::Flat;
pub use world::{Column, World};

/// `f32` or `f64`, as logits and as everything else.
pub trait Number: Real + Logit<Compute = Self> + tokenwise_catalogue::Number {
    /// Which of the two, for tolerances and messages.
    const NAME: &'static str;
    /// The largest finite number.
    const LARGEST: Self;
    /// A subnormal number.
    const SUBNORMAL: Self;
    /// The bits; every NaN gives the same ones, because payloads are not guaranteed.
    fn bits(self) -> u64;
}

impl Number for f32 {
    const NAME: &'static str = "f32";
    const LARGEST: Self = Self::MAX;
    const SUBNORMAL: Self = Self::MIN_POSITIVE * 0.125;
    fn bits(self) -> u64 {
        if self.is_nan() {
            u64::MAX
        } else {
            u64::from(self.to_bits())
        }
    }
}

impl Number for f64 {
    const NAME: &'static str = "f64";
    const LARGEST: Self = Self::MAX;
    const SUBNORMAL: Self = Self::MIN_POSITIVE * 0.125;
    fn bits(self) -> u64 {
        if self.is_nan() {
            u64::MAX
        } else {
            self.to_bits()
        }
    }
}

/// A small generator of random numbers (splitmix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The generator with this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `[low, high)`.
    pub fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * ((self.bits() >> 11) as f64 / (1_u64 << 53) as f64)
    }

    /// A whole number below `end`, which must not be 0.
    pub fn below(&mut self, end: usize) -> usize {
        (self.bits() % end as u64) as usize
    }

    /// One of the choices.
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// How a world is generated; printed by a failing property.
#[derive(Clone, Copy, Debug)]
pub struct Spec {
    /// The seed of all its numbers.
    pub seed: u64,
    /// How many sequences.
    pub sequences: usize,
    /// The length of the longest one.
    pub longest: usize,
}

impl Arbitrary for Spec {
    fn arbitrary(g: &mut Gen) -> Self {
        let seed = u64::arbitrary(g);
        let mut random = Random::new(seed ^ 0x5eed);
        let sequences = random.pick(&[0, 1, 1, 2, 3, 5, 8]);
        Self { seed, sequences, longest: random.pick(&[0, 1, 2, 7, 15, 16, 17, 33, 40]) }
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        let spec = *self;
        let fewer = (0..spec.sequences).map(move |sequences| Self { sequences, ..spec });
        let shorter = [1, 2, 3, 5, spec.longest / 2].into_iter().filter(move |&longest| longest < spec.longest);
        Box::new(fewer.chain(shorter.map(move |longest| Self { longest, ..spec })))
    }
}
