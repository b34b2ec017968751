//! The dual game: its token weights, what they are made of, and the loss.

use alloc::vec::Vec;

use tokenwise::loss::{
    self as core, DualGameInput, DualGameLoss, PolicyLossInput, StructuralInput, TokenWeight, TokenWeightInput,
    TrieInput, TrieScratch,
};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{zeros, Real},
    batch::OwnedGroups,
    call::{array, arrays, call, call_one, Size},
    config::{self, nested_aggregate, TOKEN_MEAN},
    error::Result,
    export::export,
    object::{object, Choice, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("dual_game.ts");

export! {
    #[cfg(feature = "full")]
    REST = 16;
    token_weights(batch, input) => tokenWeights, tokenWeightsF64;
    advantage_jump(batch, advantages) => advantageJump, advantageJumpF64;
    structural_weights(batch, input, config) => structuralWeights, structuralWeightsF64;
    trie_complexity(batch, groups, input, config) => trieComplexity, trieComplexityF64;
    dual_game(batch, input, config) => dualGame, dualGameF64;
}

/// A token weight, its slice apart.
#[derive(Clone, Copy)]
enum Kind {
    Plain,
    KlGated,
    Structural,
}

impl Choice for Kind {
    const NAMES: &'static [&'static str] = &["plain", "kl-gated", "structural"];
    const VALUES: &'static [Self] = &[Self::Plain, Self::KlGated, Self::Structural];
}

/// The fields of an input that the weight is made of: `weight`, `structural` and `refLogProbs`.
pub(crate) struct OwnedWeight<R> {
    kind: Kind,
    given: Vec<R>,
    pub(crate) reference: Option<Vec<R>>,
}

impl<R: Real> OwnedWeight<R> {
    pub(crate) fn read(input: &JsValue) -> Result<Self> {
        let fields = Fields::input("input", input)?;
        let kind = fields.choice_or("weight", Kind::Plain)?;
        let given = if let Kind::Structural = kind { fields.array("structural")? } else { Vec::new() };
        Ok(Self { kind, given, reference: fields.optional_array("refLogProbs")? })
    }

    pub(crate) fn view(&self) -> TokenWeight<'_, R> {
        match self.kind {
            Kind::Plain => TokenWeight::Plain,
            Kind::KlGated => TokenWeight::KlGated,
            Kind::Structural => TokenWeight::Structural(&self.given),
        }
    }
}

fn token_weights<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    let weight = OwnedWeight::<R>::read(input)?;
    let inputs = arrays::<R, 2>(input, ["logProbs", "advantages"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [log_probs, advantages], [out]| {
        let ref_log_probs = weight.reference.as_deref();
        core::token_weights(
            batch,
            TokenWeightInput { log_probs, ref_log_probs, advantages, weight: weight.view() },
            out,
        )
    })
}

fn advantage_jump<R: Real>(batch: &JsValue, advantages: &JsValue) -> Result<JsValue> {
    call_one::<R, 1>(batch, array("advantages", advantages)?, Size::Tokens, &mut |batch, [advantages], [out]| {
        core::advantage_jump(batch, advantages, out)
    })
}

fn structural_weights<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::structural(config)?;
    let inputs = arrays::<R, 3>(input, ["logProbs", "advantages", "complexity"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [log_probs, advantages, complexity], [out]| {
        core::structural_weights(batch, StructuralInput { log_probs, advantages, complexity }, &config, out)
    })
}

fn trie_complexity<R: Real>(batch: &JsValue, groups: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::trie(config)?);
    let groups = groups.view()?;
    let tokens = Fields::input("input", input)?.array::<u32>("tokens")?;
    let mut scratch: Vec<TrieScratch> = zeros(groups.sequences())?;
    call_one(batch, arrays::<R, 1>(input, ["rewards"])?, Size::Tokens, &mut |batch, [rewards], [out]| {
        core::trie_complexity(batch, &groups, TrieInput { tokens: &tokens, rewards }, &config, &mut scratch, out)
    })
}

fn dual_game<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let aggregate = nested_aggregate(config, TOKEN_MEAN)?;
    let config = config::dual_game(config, aggregate.view()?)?;
    let weight = OwnedWeight::<R>::read(input)?;
    let weights = Fields::input("input", input)?.optional_array::<R>("weights")?;
    let inputs = arrays::<R, 3>(input, ["logProbs", "oldLogProbs", "advantages"])?;
    let mut result = DualGameLoss::default();
    let [grad] = call(batch, inputs, Size::Tokens, &mut |batch, [log_probs, old_log_probs, advantages], [grad]| {
        let policy = PolicyLossInput { log_probs, old_log_probs, advantages, weights: weights.as_deref() };
        let input = DualGameInput { policy, ref_log_probs: weight.reference.as_deref(), weight: weight.view() };
        result = core::dual_game(batch, input, &config, grad)?;
        Ok(())
    })?;
    object([
        ("loss", result.loss.into()),
        ("clipFraction", result.clip_fraction.into()),
        ("clipFractionUpper", result.clip_fraction_upper.into()),
        ("clipFractionLower", result.clip_fraction_lower.into()),
        ("kl", result.kl.into()),
        ("grad", grad),
    ])
}
