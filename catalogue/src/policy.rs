//! Logits to log-probabilities and entropy, and the gradient back to the logits.

#[cfg(feature = "full")]
use tokenwise::policy::{LogitsGradientInput, TopKGradientInput, TopKLogitsInput};
use tokenwise::{
    policy::{self, LogProbInput, LogProbOutput, LogitsInput},
    Layout,
};

#[cfg(feature = "full")]
use crate::entry::top_k;
use crate::{
    entry::{formulas, list, logit, size, token},
    Element::Index,
};

formulas! { "policy":
    shift(
        Batch;
        list("raw"), size("width"), size("raw_layout.batch").optional(), size("raw_layout.len").optional(),
        list("raw_layout.cu_seqlens").of(Index).optional()
    ) -> (list("out")) [] |call| {
        let raw_layout = match call.inputs.optional_index("raw_layout.cu_seqlens")? {
            Some(offsets) => Layout::packed(offsets)?,
            None => Layout::padded(call.inputs.size("raw_layout.batch")?, call.inputs.size("raw_layout.len")?)?,
        };
        let (raw, width) = (call.real("raw")?, call.inputs.size("width")?);
        Ok(tokenwise::shift(&call.batch()?.layout(), &raw_layout, raw, width, call.outputs.real_mut("out")?)?)
    }
    log_probs_and_entropy(Batch; logit("logits"), size("vocab"), token("tokens").of(Index)) PolicyConfig
        -> (token("log_probs"), token("entropy")) [] |call|
    {
        let (logits, vocab) = (call.real("logits")?, call.inputs.size("vocab")?);
        let input = LogProbInput { logits, vocab, tokens: call.inputs.index("tokens")? };
        let (batch, config) = (call.batch()?, call.config()?);
        let [log_probs, entropy] = call.outputs.reals_mut(["log_probs", "entropy"])?;
        Ok(policy::log_probs_and_entropy(&batch, input, &config, LogProbOutput { log_probs, entropy })?)
    }
    token_log_probs(Batch; logit("logits"), size("vocab"), token("tokens").of(Index)) PolicyConfig
        -> (token("log_probs")) [] |call|
    {
        let (logits, vocab) = (call.real("logits")?, call.inputs.size("vocab")?);
        let input = LogProbInput { logits, vocab, tokens: call.inputs.index("tokens")? };
        Ok(policy::token_log_probs(&call.batch()?, input, &call.config()?, call.outputs.real_mut("log_probs")?)?)
    }
    entropy(Batch; logit("logits"), size("vocab")) PolicyConfig -> (token("entropy")) [] |call| {
        let input = LogitsInput { logits: call.real("logits")?, vocab: call.inputs.size("vocab")? };
        Ok(policy::entropy(&call.batch()?, input, &call.config()?, call.outputs.real_mut("entropy")?)?)
    }
    #[cfg(feature = "full")]
    sum_squared_probs(Batch; logit("logits"), size("vocab")) PolicyConfig -> (token("out")) [] |call| {
        let input = LogitsInput { logits: call.real("logits")?, vocab: call.inputs.size("vocab")? };
        Ok(policy::sum_squared_probs(&call.batch()?, input, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    topk_log_probs(Batch; logit("logits"), size("vocab"), top_k("tokens").of(Index), size("k")) PolicyConfig
        -> (top_k("log_probs")) [] |call|
    {
        let input = TopKLogitsInput {
            logits: call.real("logits")?,
            vocab: call.inputs.size("vocab")?,
            tokens: call.inputs.index("tokens")?,
            k: call.inputs.size("k")?,
        };
        Ok(policy::topk_log_probs(&call.batch()?, input, &call.config()?, call.outputs.real_mut("log_probs")?)?)
    }
    #[cfg(feature = "full")]
    topk_logits_gradient(
        Batch; logit("logits"), size("vocab"), top_k("tokens").of(Index), size("k"), top_k("grad_log_probs")
    ) PolicyConfig -> (logit("grad_logits")) [] |call| {
        let input = TopKGradientInput {
            logits: call.real("logits")?,
            vocab: call.inputs.size("vocab")?,
            tokens: call.inputs.index("tokens")?,
            k: call.inputs.size("k")?,
            grad_log_probs: call.real("grad_log_probs")?,
        };
        Ok(policy::topk_logits_gradient(&call.batch()?, input, &call.config()?, call.outputs.real_mut("grad_logits")?)?)
    }
    #[cfg(feature = "full")]
    logits_gradient(
        Batch; logit("logits"), size("vocab"), token("tokens").of(Index), token("grad_log_probs"), token("grad_entropy")
    ) PolicyConfig -> (logit("grad_logits")) [] |call| {
        let input = LogitsGradientInput {
            logits: call.real("logits")?,
            vocab: call.inputs.size("vocab")?,
            tokens: call.inputs.index("tokens")?,
            grad_log_probs: call.real("grad_log_probs")?,
            grad_entropy: call.real("grad_entropy")?,
        };
        Ok(policy::logits_gradient(&call.batch()?, input, &call.config()?, call.outputs.real_mut("grad_logits")?)?)
    }
}
