use crate::real::{Real, Sealed};

/// A type logits can be stored in. Half-precision logits (feature `half`) are computed in `f32`.
pub trait Logit: Sealed + Copy + Send + Sync + 'static {
    /// The type the formulas are computed in, and their results stored in.
    type Compute: Real;
    #[doc(hidden)]
    fn load(self) -> Self::Compute;
}

impl Logit for f32 {
    type Compute = Self;
    #[inline(always)]
    fn load(self) -> Self {
        self
    }
}

impl Logit for f64 {
    type Compute = Self;
    #[inline(always)]
    fn load(self) -> Self {
        self
    }
}

#[cfg(feature = "half")]
mod half_precision {
    use super::{Logit, Sealed};

    impl Sealed for half::bf16 {}
    impl Sealed for half::f16 {}

    impl Logit for half::bf16 {
        type Compute = f32;
        #[inline(always)]
        fn load(self) -> f32 {
            f32::from_bits(u32::from(self.to_bits()) << 16)
        }
    }

    impl Logit for half::f16 {
        type Compute = f32;
        #[inline(always)]
        fn load(self) -> f32 {
            self.to_f32_const()
        }
    }
}
