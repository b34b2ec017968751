//! **Stage 1 of 7 — policy.** Reads logits and tokens, writes log-probabilities and entropy, and propagates gradients
//! back to the logits.

mod backward;
mod log_probs;
mod logit;
mod topk;
pub(crate) mod vocab_row;

pub use backward::{logits_gradient, LogitsGradientInput};
#[doc(hidden)]
pub use log_probs::check_log_probs;
pub use log_probs::{
    entropy, log_probs_and_entropy, sum_squared_probs, token_log_probs, LogProbInput, LogProbOutput, LogitsInput,
    PolicyConfig,
};
pub use logit::Logit;
pub use topk::{topk_log_probs, topk_logits_gradient, TopKGradientInput, TopKLogitsInput};
#[doc(hidden)]
pub use vocab_row::{check_tokens, check_vocab};
