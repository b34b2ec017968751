//! The layout and mask of a batch, checked once and kept on this side.

use alloc::rc::Rc;
use alloc::vec::Vec;

use tokenwise::{Groups, Layout, Mask};
use wasm_bindgen::{convert::TryFromJsValue, prelude::wasm_bindgen, JsCast, JsValue};

use crate::{
    array::{flags, read},
    error::{freed, wrong_type, Result},
    js::TypeError,
    object::{size, Fields},
};

/// Where the tokens lie and which of them take part; made by `Batch.padded` and `Batch.packed`.
#[wasm_bindgen(skip_typescript)]
pub struct Batch(Rc<Owned>);

/// What a core batch borrows.
pub(crate) struct Owned {
    layout: OwnedLayout,
    mask: Vec<bool>,
}

enum OwnedLayout {
    Padded { batch: usize, len: usize },
    Packed { cu_seqlens: Vec<u32> },
}

#[wasm_bindgen]
impl Batch {
    /// `[batch, len]`, row-major, every row the same length.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn padded(batch: &JsValue, len: &JsValue, mask: &JsValue) -> Result<Batch> {
        Self::checked(OwnedLayout::Padded { batch: size("batch", batch)?, len: size("len", len)? }, mask)
    }

    /// Ragged rows back to back; row `i` is `cuSeqlens[i]..cuSeqlens[i + 1]`.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn packed(cu_seqlens: &JsValue, mask: &JsValue) -> Result<Batch> {
        Self::checked(OwnedLayout::Packed { cu_seqlens: read("cuSeqlens", cu_seqlens)? }, mask)
    }

    /// A second handle to the same batch, freed by itself.
    #[wasm_bindgen(skip_typescript, js_name = "clone")]
    pub fn share(&self) -> Batch {
        Self(Rc::clone(&self.0))
    }

    /// Number of sequences.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn sequences(&self) -> usize {
        self.0.view().map_or(0, |batch| batch.sequences())
    }

    /// Number of token slots, kept or not.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn tokens(&self) -> usize {
        self.0.mask.len()
    }

    /// Number of kept tokens.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn kept(&self) -> usize {
        self.0.view().map_or(0, |batch| batch.kept())
    }

    /// Number of sequences with at least one kept token.
    #[wasm_bindgen(getter, skip_typescript, js_name = "keptSequences")]
    pub fn kept_sequences(&self) -> usize {
        self.0.view().map_or(0, |batch| batch.kept_sequences())
    }
}

impl Batch {
    fn checked(layout: OwnedLayout, mask: &JsValue) -> Result<Self> {
        let owned = Owned { layout, mask: flags("mask", mask)? };
        owned.view()?;
        Ok(Self(Rc::new(owned)))
    }
}

impl Owned {
    /// The batch that a call was handed. Arguments typed as `Batch` would be checked by the glue, whose errors are not ours.
    pub(crate) fn read(value: &JsValue) -> Result<Rc<Self>> {
        shared::<Batch>("batch", "a Batch", value).map(|batch| batch.0)
    }

    /// The core's batch.
    pub(crate) fn view(&self) -> tokenwise::Result<tokenwise::Batch<'_>> {
        tokenwise::Batch::new(self.layout.view()?, Mask::new(&self.mask))
    }
}

impl OwnedLayout {
    fn view(&self) -> tokenwise::Result<Layout<'_>> {
        match self {
            Self::Padded { batch, len } => Layout::padded(*batch, *len),
            Self::Packed { cu_seqlens } => Layout::packed(cu_seqlens),
        }
    }
}

/// A second handle to an object of ours that a call was handed.
pub(crate) fn shared<T: TryFromJsValue>(parameter: &str, expected: &str, value: &JsValue) -> Result<T> {
    let shared = value.unchecked_ref::<Handle>().share().map_err(|thrown| {
        // no method to call: not of ours; a method that throws: one without memory behind it
        if thrown.is_instance_of::<TypeError>() {
            wrong_type(parameter, expected, value)
        } else {
            freed(parameter, expected)
        }
    })?;
    T::try_from_js_value(shared).map_err(|_| wrong_type(parameter, expected, value))
}

#[wasm_bindgen]
extern "C" {
    /// Any value, called as if it were an object of ours.
    type Handle;

    #[wasm_bindgen(method, catch, js_name = "clone")]
    fn share(this: &Handle) -> core::result::Result<JsValue, JsValue>;
}

/// `{ batch, len }` or `{ cuSeqlens }`: the layout of raw model output, which needs no mask.
pub(crate) struct RawLayout(OwnedLayout);

impl RawLayout {
    pub(crate) fn read(parameter: &str, value: &JsValue) -> Result<Self> {
        let fields = Fields::input(parameter, value)?;
        if fields.get("cuSeqlens")?.is_undefined() {
            Fields::config(parameter, value, &["batch", "len", "cuSeqlens"])?;
            return Ok(Self(OwnedLayout::Padded { batch: fields.size("batch")?, len: fields.size("len")? }));
        }
        Fields::config(parameter, value, &["cuSeqlens"])?;
        Ok(Self(OwnedLayout::Packed { cu_seqlens: fields.array("cuSeqlens")? }))
    }

    pub(crate) fn view(&self) -> tokenwise::Result<Layout<'_>> {
        self.0.view()
    }
}

/// `{ ids }` or `{ sizes }`: which sequences answer the same prompt.
pub(crate) enum OwnedGroups {
    Ids(Vec<u32>),
    Sizes(Vec<u32>),
}

impl OwnedGroups {
    #[inline(never)]
    pub(crate) fn read(parameter: &str, value: &JsValue) -> Result<Self> {
        let fields = Fields::input(parameter, value)?;
        if fields.get("sizes")?.is_undefined() {
            Fields::config(parameter, value, &["ids", "sizes"])?;
            return fields.array("ids").map(Self::Ids);
        }
        Fields::config(parameter, value, &["sizes"])?;
        fields.array("sizes").map(Self::Sizes)
    }

    #[inline(never)]
    pub(crate) fn view(&self) -> tokenwise::Result<Groups<'_>> {
        match self {
            Self::Ids(ids) => Groups::from_ids(ids),
            Self::Sizes(sizes) => Groups::contiguous(sizes),
        }
    }
}
