//! **Beside stage 5 — weight.** Reads tokens, rewards, log-probabilities and advantages, writes a weight per token, by
//! which [`dual_game`](crate::loss::dual_game()) and its controller weight the entropy.

mod structural;
mod token_weight;
mod trie;

pub use structural::{advantage_jump, structural_weights, ScoreScope, StructuralConfig, StructuralInput};
pub(crate) use token_weight::Kind;
pub use token_weight::{token_weights, TokenWeight, TokenWeightInput};
pub use trie::{
    trie_complexity, trie_scratch_len, BranchSpread, BranchValue, TrieConfig, TrieInput, TriePrefix, TrieScratch,
};
