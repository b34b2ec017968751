//! Memory bandwidth of this machine, measured between the formulas.

use std::hint::black_box;

/// Offset between the buffers within a page, in words: equal offsets would cause 4K aliasing.
const APART: usize = 264;

/// Two buffers, written to: untouched pages would be read at cache speed.
pub struct Limit {
    from: Vec<u64>,
    to: Vec<u64>,
}

impl Limit {
    /// For copies of up to `copy` and reads of up to `read` bytes.
    pub fn new(copy: usize, read: usize) -> Self {
        Self { from: vec![0x3f80_0001; copy.max(read).div_ceil(8)], to: vec![1; APART + copy.div_ceil(8)] }
    }

    /// Copies bytes; counts each byte once as read and once as written.
    pub fn copy(&mut self, bytes: usize) {
        let words = bytes.div_ceil(8).min(self.to.len() - APART);
        self.to[APART..APART + words].copy_from_slice(&self.from[..words]);
        black_box(&mut self.to);
    }

    /// Reads bytes.
    pub fn read(&self, bytes: usize) -> u64 {
        let words = &self.from[..bytes.div_ceil(8).min(self.from.len())];
        // 16 accumulators: enough loads in flight even with narrow vectors
        let mut lanes = [0_u64; 16];
        let chunks = words.chunks_exact(16);
        let rest = chunks.remainder().iter().fold(0, |sum: u64, &word| sum.wrapping_add(word));
        for chunk in chunks {
            for (lane, &word) in lanes.iter_mut().zip(chunk) {
                *lane = lane.wrapping_add(word);
            }
        }
        black_box(lanes.iter().fold(rest, |sum, &lane| sum.wrapping_add(lane)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_is_moved() {
        let mut limit = Limit::new(100, 300);
        limit.copy(100);
        assert!(limit.to[APART..].iter().all(|&word| word == 0x3f80_0001));
        assert_eq!(limit.read(300), 38 * 0x3f80_0001);
    }
}
