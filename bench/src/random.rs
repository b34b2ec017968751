//! Random numbers distributed like those of a training run, reproducible on every machine.

use tokenwise::math::ln;

/// SplitMix64: small, fast, and good enough to fill buffers.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    /// In `[0, 1)`, a multiple of 2⁻²⁴.
    pub(crate) fn unit(&mut self) -> f32 {
        (self.bits() >> 40) as f32 / (1 << 24) as f32
    }

    /// Approximately normal, mean 0, standard deviation 1: the sum of four uniform numbers from one draw.
    pub(crate) fn bell(&mut self) -> f32 {
        let bits = self.bits();
        let sum = (bits & 0xffff) + (bits >> 16 & 0xffff) + (bits >> 32 & 0xffff) + (bits >> 48);
        (sum as f32 / 65536.0 - 2.0) * 1.732_050_8
    }

    /// Log-probability of a sampled token: many near 0, few below −5.
    pub(crate) fn log_prob(&mut self) -> f32 {
        ln(1.0 - self.unit()) * 0.8 - 1e-4
    }
}
