//! What `cargo xtask bench` measures: synthetic but realistic batches, the formulas over them, and memory bandwidth.
//!
//! Python and JavaScript use the same batches through [`abi`], so that all implementations work on the same buffers.
#![deny(unsafe_code)]

pub mod abi;
pub mod clock;
pub mod item;
pub mod limit;
pub mod logits;
mod random;
pub mod tokens;

/// FNV-1a hash of the bits of the values.
pub(crate) fn hash(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}
