//! What a formula is called on: the shape of the batch, its mask and groups.

use std::sync::{Arc, Mutex};

use numpy::{PyReadonlyArrayDyn, PyUntypedArrayMethods as _};
use pyo3::{intern, prelude::*};
use tokenwise::{Batch, Groups, Layout, Mask};

use crate::{
    error::{wrong, OrRaise as _},
    read::{helpers, Reader},
};

/// Where the tokens of a call are.
pub(crate) enum Shape<'py> {
    /// `[batch, length]`
    Padded([usize; 2]),
    /// One after another, with the offsets of the sequences.
    Packed(PyReadonlyArrayDyn<'py, u32>),
}

impl Shape<'_> {
    pub(crate) fn sequences(&self) -> usize {
        match self {
            Self::Padded([batch, _]) => *batch,
            Self::Packed(offsets) => offsets.len().saturating_sub(1),
        }
    }

    pub(crate) fn layout(&self, py: Python<'_>) -> PyResult<Layout<'_>> {
        match self {
            Self::Padded([batch, len]) => Layout::padded(*batch, *len).or_raise(py),
            Self::Packed(offsets) => Layout::packed(offsets.as_slice()?).or_raise(py),
        }
    }

    /// The dimensions of an array with one entry per token.
    pub(crate) fn dims(&self) -> PyResult<Vec<usize>> {
        Ok(match self {
            Self::Padded(dims) => dims.to_vec(),
            Self::Packed(offsets) => vec![offsets.as_slice()?.last().map_or(0, |tokens| *tokens as usize)],
        })
    }
}

/// The batch of a call as Python gave it.
pub(crate) struct Tokens<'py> {
    pub(crate) shape: Shape<'py>,
    mask: MaskGiven<'py>,
}

enum MaskGiven<'py> {
    Borrowed(PyReadonlyArrayDyn<'py, bool>),
    /// The first entries of a longer mask without dropped slots.
    All(Arc<[bool]>, usize),
}

/// The longest mask without dropped slots so far, for the calls that give none.
static ALL: Mutex<Option<Arc<[bool]>>> = Mutex::new(None);
/// One that is longer is made for its call only.
const LONGEST: usize = 1 << 24;

/// A mask of at least `len` entries that keeps all. Nobody waits for the lock: see `spare.rs`.
fn all(len: usize) -> Arc<[bool]> {
    let mut known = ALL.try_lock().ok();
    if let Some(mask) = known.as_deref().and_then(Option::as_ref).filter(|mask| mask.len() >= len) {
        return Arc::clone(mask);
    }
    let mask: Arc<[bool]> = vec![true; len].into();
    if let Some(known) = known.as_deref_mut().filter(|_| len <= LONGEST) {
        *known = Some(Arc::clone(&mask));
    }
    mask
}

impl<'py> Tokens<'py> {
    /// The batch, from the mask or from the shape of the first array with one entry per token.
    pub(crate) fn read(
        reader: &mut Reader<'py>,
        mask: Option<&Bound<'py, PyAny>>,
        cu_seqlens: Option<&Bound<'py, PyAny>>,
        first: Option<(&str, Vec<usize>)>,
    ) -> PyResult<Self> {
        let py = reader.py;
        let mask = mask.map(|mask| reader.flags("mask", mask)).transpose()?;
        let shape = match cu_seqlens {
            Some(offsets) => Shape::Packed(reader.indices("cu_seqlens", offsets, None)?),
            None => {
                let (name, dims) = match (&mask, &first) {
                    (Some(mask), _) => ("mask", mask.shape().to_vec()),
                    (None, Some((name, dims))) => (*name, dims.clone()),
                    (None, None) => return Err(wrong(py, "missing", "mask", "an array [batch, length]", "nothing")),
                };
                let [batch, len] = dims[..] else {
                    let expected = "shape [batch, length], or cu_seqlens for packed tokens";
                    return Err(wrong(py, "shape", name, expected, &format!("{dims:?}")));
                };
                Shape::Padded([batch, len])
            }
        };
        let dims = shape.dims()?;
        let mask = match mask {
            Some(mask) if mask.shape() == dims => MaskGiven::Borrowed(mask),
            Some(mask) => {
                return Err(wrong(py, "shape", "mask", &format!("shape {dims:?}"), &format!("{:?}", mask.shape())))
            }
            None => {
                let tokens = shape.layout(py)?.tokens();
                // offsets may speak of more tokens than there is memory for a mask
                if let Some((name, got)) = first.filter(|(_, got)| *got != dims) {
                    let expected = format!("shape {dims:?} for the {tokens} tokens of cu_seqlens");
                    return Err(wrong(py, "shape", name, &expected, &format!("{got:?}")));
                }
                MaskGiven::All(all(tokens), tokens)
            }
        };
        Ok(Self { shape, mask })
    }

    /// The mask as an array, for what is dropped before it is read.
    pub(crate) fn mask_array(&self) -> Option<Bound<'py, PyAny>> {
        match &self.mask {
            MaskGiven::Borrowed(mask) => Some(mask.as_any().clone()),
            MaskGiven::All(..) => None,
        }
    }

    pub(crate) fn batch(&self, py: Python<'_>) -> PyResult<Batch<'_>> {
        let mask = match &self.mask {
            MaskGiven::Borrowed(mask) => mask.as_slice()?,
            MaskGiven::All(mask, tokens) => &mask[..*tokens],
        };
        Batch::new(self.shape.layout(py)?, Mask::new(mask)).or_raise(py)
    }
}

/// Which sequences answer the same prompt: any labels, one per sequence.
pub(crate) fn group_ids<'py>(groups: &Bound<'py, PyAny>) -> PyResult<PyReadonlyArrayDyn<'py, u32>> {
    let py = groups.py();
    let ids = helpers(py)?.getattr(intern!(py, "group_ids"))?.call1((groups,))?;
    ids.extract()
}

/// The groups of a call; their number must fit the batch.
pub(crate) fn groups<'a>(py: Python<'_>, ids: &'a [u32], sequences: Option<usize>) -> PyResult<Groups<'a>> {
    if let Some(expected) = sequences.filter(|sequences| *sequences != ids.len()) {
        return Err(wrong(py, "shape", "groups", &format!("shape [{expected}]"), &format!("[{}]", ids.len())));
    }
    Groups::from_ids(ids).or_raise(py)
}
