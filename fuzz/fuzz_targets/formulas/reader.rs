//! What the bytes are made into, and what every output is checked for.

use tokenwise::{Batch, Result};

/// Numbers made of the input's bytes; zeros when they run out.
pub struct Reader<'a>(pub &'a [u8]);

impl Reader<'_> {
    pub fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    /// Usually tame, sometimes any bit pattern.
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

    /// The right length, or now and then one that is wrong.
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

    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}

pub const UNTOUCHED: f64 = 1234.5;

/// Runs a kernel with one output per token slot.
pub fn tokens(batch: &Batch<'_>, len: usize, width: usize, run: impl FnOnce(&mut [f64]) -> Result<()>) {
    let mut out = vec![UNTOUCHED; len];
    match run(&mut out) {
        Ok(()) => {
            for (row, keep) in out.chunks(width.max(1)).zip(batch.mask().as_slice()) {
                assert!(*keep || row.iter().all(|x| x.to_bits() == 0), "a dropped slot is not +0");
            }
        }
        Err(_) => assert!(out.iter().all(|x| *x == UNTOUCHED), "an error wrote something"),
    }
}

/// Runs a kernel with another kind of output than numbers per token: an error writes nothing.
pub fn others<T: Copy + PartialEq>(len: usize, untouched: T, run: impl FnOnce(&mut [T]) -> Result<()>) {
    let mut out = vec![untouched; len];
    if run(&mut out).is_err() {
        assert!(out.iter().all(|x| *x == untouched), "an error wrote something");
    }
}

/// Runs a kernel that makes a mask: an error writes nothing, and a dropped slot stays dropped.
pub fn masks(batch: &Batch<'_>, len: usize, run: impl Fn(&mut [bool]) -> Result<()>) {
    for before in [true, false] {
        let mut out = vec![before; len];
        match run(&mut out) {
            Ok(()) => {
                for (slot, keep) in out.iter().zip(batch.mask().as_slice()) {
                    assert!(*keep || !*slot, "a dropped slot is kept");
                }
            }
            Err(_) => assert!(out.iter().all(|x| *x == before), "an error wrote something"),
        }
    }
}
