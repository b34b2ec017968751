//! Where the tokens of a batch lie, and which of them take part.

use std::rc::Rc;

use tokenwise::Mask;
use wasm_bindgen::prelude::{wasm_bindgen, JsValue};

use crate::{
    error::Result,
    read::{flags, OwnLayout},
};

struct Inner {
    layout: OwnLayout,
    mask: Vec<bool>,
}

/// Layout and mask, copied into the module and checked once.
#[wasm_bindgen(skip_typescript)]
pub struct Batch(Rc<Inner>);

impl Batch {
    fn new(layout: OwnLayout, mask: &JsValue) -> Result<Self> {
        let batch = Self(Rc::new(Inner { layout, mask: flags("mask", mask)? }));
        batch.view()?;
        Ok(batch)
    }

    /// As the core has it.
    pub(crate) fn view(&self) -> Result<tokenwise::Batch<'_>> {
        Ok(tokenwise::Batch::new(self.0.layout.view()?, Mask::new(&self.0.mask))?)
    }
}

#[wasm_bindgen]
impl Batch {
    /// Every row the same length.
    pub fn padded(batch: &JsValue, len: &JsValue, mask: &JsValue) -> Result<Batch> {
        Self::new(OwnLayout::padded(batch, len)?, mask)
    }

    /// Ragged rows back to back.
    pub fn packed(cu_seqlens: &JsValue, mask: &JsValue) -> Result<Batch> {
        Self::new(OwnLayout::packed(cu_seqlens)?, mask)
    }

    /// A second handle to the same batch.
    #[wasm_bindgen(js_name = clone)]
    pub fn share(&self) -> Batch {
        Self(Rc::clone(&self.0))
    }

    /// Number of sequences.
    #[wasm_bindgen(getter)]
    pub fn sequences(&self) -> Result<usize> {
        Ok(self.view()?.sequences())
    }

    /// Number of token slots, kept or not.
    #[wasm_bindgen(getter)]
    pub fn tokens(&self) -> Result<usize> {
        Ok(self.view()?.tokens())
    }

    /// Number of kept tokens.
    #[wasm_bindgen(getter)]
    pub fn kept(&self) -> Result<usize> {
        Ok(self.view()?.kept())
    }

    /// Number of sequences with at least one kept token.
    #[wasm_bindgen(getter, js_name = keptSequences)]
    pub fn kept_sequences(&self) -> Result<usize> {
        Ok(self.view()?.kept_sequences())
    }
}
