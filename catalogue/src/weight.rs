//! The weight of each token in the dual game.

use alloc::vec;

use tokenwise::weight::{self, StructuralInput, TokenWeight, TokenWeightInput, TrieInput, TrieScratch};

use crate::{
    entry::{formulas, text, token},
    Call, ConfigError,
    Element::Index,
    Number, Refusal,
};

/// The weight by its name; precomputed weights are a column.
pub(crate) fn token_weight<'a, R: Number>(call: &Call<'a, R>) -> Result<TokenWeight<'a, R>, Refusal> {
    match call.inputs.optional_text("weight")? {
        None | Some("plain") => Ok(TokenWeight::Plain),
        Some("kl-gated") => Ok(TokenWeight::KlGated),
        Some("structural") => Ok(TokenWeight::Structural(call.real("structural")?)),
        Some(other) => Err(ConfigError::unknown_choice("weight", "plain, kl-gated, structural", other).into()),
    }
}

formulas! { "weight":
    token_weights(
        Batch;
        token("log_probs"), token("ref_log_probs").optional(), token("advantages"), text("weight").optional(),
        token("structural").optional()
    ) -> (token("weights")) [] |call| {
        let input = TokenWeightInput {
            log_probs: call.real("log_probs")?,
            ref_log_probs: call.optional("ref_log_probs")?,
            advantages: call.real("advantages")?,
            weight: token_weight(call)?,
        };
        Ok(weight::token_weights(&call.batch()?, input, call.outputs.real_mut("weights")?)?)
    }
    #[cfg(feature = "full")]
    advantage_jump(Batch; token("advantages")) -> (token("out")) [] |call| {
        Ok(weight::advantage_jump(&call.batch()?, call.real("advantages")?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    structural_weights(Batch; token("log_probs"), token("advantages"), token("complexity")) StructuralConfig
        -> (token("weights")) [] |call|
    {
        let input = StructuralInput {
            log_probs: call.real("log_probs")?,
            advantages: call.real("advantages")?,
            complexity: call.real("complexity")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(weight::structural_weights(&batch, input, &config, call.outputs.real_mut("weights")?)?)
    }
    #[cfg(feature = "full")]
    trie_complexity(BatchAndGroups; token("tokens").of(Index), token("rewards")) TrieConfig
        -> (token("out")) [] |call|
    {
        let input = TrieInput { tokens: call.inputs.index("tokens")?, rewards: call.real("rewards")? };
        let (batch, groups, config) = (call.batch()?, call.groups()?, call.config()?);
        let mut scratch = vec![TrieScratch::default(); weight::trie_scratch_len(&batch)];
        let out = call.outputs.real_mut("out")?;
        Ok(weight::trie_complexity(&batch, &groups, input, &config, &mut scratch, out)?)
    }
}
