//! What `cargo xtask bench` measures: batches of made-up but lifelike numbers, the formulas over them, and the limits of the memory.
//!
//! The same batches reach Python and JavaScript through [`abi`], so that ours and theirs work on the same buffers.
#![deny(unsafe_code)]

pub mod abi;
pub mod clock;
pub mod item;
pub mod limit;
pub mod logits;
mod random;
pub mod tokens;

/// A number that changes with any bit of the values (FNV-1a).
pub(crate) fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
