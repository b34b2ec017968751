//! Pseudo-random numbers, the same on every run.

pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    /// In `[−1, 1)`.
    pub(crate) fn signed(&mut self) -> f32 {
        (self.next() >> 40) as f32 / (1_u32 << 23) as f32 - 1.0
    }

    /// Roughly normal, with standard deviation 1.
    pub(crate) fn normal(&mut self) -> f32 {
        self.signed() + self.signed() + self.signed()
    }

    pub(crate) fn normals(&mut self, count: usize, scale: f32) -> Vec<f32> {
        (0..count).map(|_| self.normal() * scale).collect()
    }

    /// True in `percent` of the cases.
    pub(crate) fn mask(&mut self, count: usize, percent: usize) -> Vec<bool> {
        (0..count).map(|_| self.below(100) < percent).collect()
    }
}
