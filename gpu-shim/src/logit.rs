//! The types of logits that the shaders read.

use half::{bf16, f16};
use tokenwise::policy::Logit;

use crate::column::{Format, Input};

/// A type of logits that the shaders read: `f32`, and `f16` and `bf16`, which move half of the bytes and are widened to
/// `f32` in the shader. Results and gradients are `f32` for all of them, as in the core.
pub trait GpuLogit: Logit<Compute = f32> {
    #[doc(hidden)]
    const FORMAT: Format;
    #[doc(hidden)]
    fn input(logits: &[Self]) -> Input<'_>;
}

impl GpuLogit for f32 {
    const FORMAT: Format = Format::Word;
    fn input(logits: &[Self]) -> Input<'_> {
        Input::Host(logits)
    }
}

impl GpuLogit for f16 {
    const FORMAT: Format = Format::F16;
    fn input(logits: &[Self]) -> Input<'_> {
        Input::F16(logits)
    }
}

impl GpuLogit for bf16 {
    const FORMAT: Format = Format::Bf16;
    fn input(logits: &[Self]) -> Input<'_> {
        Input::Bf16(logits)
    }
}
