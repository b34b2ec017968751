//! Log-probabilities or logits of policy and reference to a KL per token.

use tokenwise::divergence::{self, KlInput};
#[cfg(feature = "full")]
use tokenwise::divergence::{KlExactGradientInput, KlExactInput, KlWeightedGradientInput, KlWeightedInput};

#[cfg(feature = "full")]
use crate::entry::{logit, size};
use crate::{
    entry::{formulas, token},
    Call, Number, Refusal,
};

pub(crate) fn kl_input<'a, R: Number>(call: &Call<'a, R>) -> Result<KlInput<'a, R>, Refusal> {
    Ok(KlInput { log_probs: call.real("log_probs")?, ref_log_probs: call.real("ref_log_probs")? })
}

formulas! { "divergence":
    kl_estimate(Batch; token("log_probs"), token("ref_log_probs")) KlConfig -> (token("kl")) [] |call| {
        Ok(divergence::kl_estimate(&call.batch()?, kl_input(call)?, &call.config()?, call.outputs.real_mut("kl")?)?)
    }
    #[cfg(feature = "full")]
    kl_gradient(Batch; token("log_probs"), token("ref_log_probs")) KlConfig -> (token("grad")) [] |call| {
        Ok(divergence::kl_gradient(&call.batch()?, kl_input(call)?, &call.config()?, call.outputs.real_mut("grad")?)?)
    }
    #[cfg(feature = "full")]
    kl_importance_weighted(Batch; token("log_probs"), token("ref_log_probs"), token("old_log_probs")) KlWeightedConfig
        -> (token("kl")) [] |call|
    {
        let input = KlWeightedInput {
            log_probs: call.real("log_probs")?,
            ref_log_probs: call.real("ref_log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
        };
        Ok(divergence::kl_importance_weighted(&call.batch()?, input, &call.config()?, call.outputs.real_mut("kl")?)?)
    }
    #[cfg(feature = "full")]
    kl_importance_weighted_gradient(
        Batch; token("log_probs"), token("ref_log_probs"), token("old_log_probs"), token("grad_kl")
    ) KlWeightedConfig -> (token("grad")) [] |call| {
        let input = KlWeightedGradientInput {
            log_probs: call.real("log_probs")?,
            ref_log_probs: call.real("ref_log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
            grad_kl: call.real("grad_kl")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(divergence::kl_importance_weighted_gradient(&batch, input, &config, call.outputs.real_mut("grad")?)?)
    }
    #[cfg(feature = "full")]
    kl_exact(Batch; logit("logits"), logit("ref_logits"), size("vocab")) PolicyConfig -> (token("kl")) [] |call| {
        let input = KlExactInput {
            logits: call.real("logits")?,
            ref_logits: call.real("ref_logits")?,
            vocab: call.inputs.size("vocab")?,
        };
        Ok(divergence::kl_exact(&call.batch()?, input, &call.config()?, call.outputs.real_mut("kl")?)?)
    }
    #[cfg(feature = "full")]
    kl_exact_gradient(Batch; logit("logits"), logit("ref_logits"), size("vocab"), token("grad_kl")) PolicyConfig
        -> (logit("grad_logits")) [] |call|
    {
        let input = KlExactGradientInput {
            logits: call.real("logits")?,
            ref_logits: call.real("ref_logits")?,
            vocab: call.inputs.size("vocab")?,
            grad_kl: call.real("grad_kl")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(divergence::kl_exact_gradient(&batch, input, &config, call.outputs.real_mut("grad_logits")?)?)
    }
}
