//! What the bytes are made into.

/// Numbers made of the input's bytes; zeros when they run out.
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    /// Usually an ordinary number, sometimes any bit pattern.
    pub fn number(&mut self) -> f64 {
        match self.byte() {
            255 => f64::from_bits(u64::from_le_bytes(core::array::from_fn(|_| self.byte()))),
            254 => f64::NAN,
            253 => f64::INFINITY,
            252 => f64::NEG_INFINITY,
            tame => (f64::from(tame) - 126.0) / 32.0,
        }
    }

    /// Usually in `[0, 1]`.
    pub fn share(&mut self) -> f64 {
        match self.byte() {
            255 => self.number(),
            tame => f64::from(tame) / 254.0,
        }
    }

    /// The right length, or sometimes a wrong one.
    pub fn len(&mut self, right: usize) -> usize {
        match self.byte() {
            0 => right + 1,
            1 => right.saturating_sub(1),
            _ => right,
        }
    }

    pub fn numbers(&mut self, right: usize) -> Vec<f64> {
        (0..self.len(right)).map(|_| self.number()).collect()
    }

    pub fn ids(&mut self, right: usize, below: u8) -> Vec<u32> {
        (0..self.len(right)).map(|_| u32::from(self.byte() % below.max(1))).collect()
    }

    pub fn flags(&mut self, right: usize) -> Vec<bool> {
        (0..self.len(right)).map(|_| self.byte() % 2 == 0).collect()
    }

    pub fn pick<T: Clone>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()].clone()
    }
}
