use crate::real::{Real, Sealed};

/// A type that logits can be stored in. Half-precision logits (feature `half`) are computed in `f32`.
pub trait Logit: Sealed + Copy + Send + Sync + 'static {
    /// The type in which formulas are computed and their results are stored.
    type Compute: Real;
    #[doc(hidden)]
    fn load(self) -> Self::Compute;
    /// The block itself if it needs no conversion.
    #[doc(hidden)]
    #[inline(always)]
    fn as_computed(_block: &[Self]) -> Option<&[Self::Compute]> {
        None
    }
}

impl Logit for f32 {
    type Compute = Self;
    #[inline(always)]
    fn load(self) -> Self {
        self
    }
    #[inline(always)]
    fn as_computed(block: &[Self]) -> Option<&[Self]> {
        Some(block)
    }
}

impl Logit for f64 {
    type Compute = Self;
    #[inline(always)]
    fn load(self) -> Self {
        self
    }
    #[inline(always)]
    fn as_computed(block: &[Self]) -> Option<&[Self]> {
        Some(block)
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
            // moves exponent and mantissa to their places in f32; the product corrects the exponent bias, exactly, also
            // for subnormals
            let origin = f32::from_bits((127 + 112) << 23);
            let bits = u32::from(self.to_bits());
            let finite = f32::from_bits((bits & 0x7fff) << 13) * origin;
            let special = f32::from_bits(0x7f80_0000 | (bits & 0x03ff) << 13);
            let magnitude = if bits & 0x7c00 == 0x7c00 { special } else { finite };
            f32::from_bits(magnitude.to_bits() | (bits & 0x8000) << 16)
        }
    }
}

#[cfg(test)]
#[cfg(feature = "half")]
mod tests {
    use super::Logit;
    use crate::{
        policy::{log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
        Batch, Layout, Mask,
    };

    fn results<L: Logit<Compute = f32>>(logits: &[L]) -> [[u32; 3]; 2] {
        let batch = Batch::new(Layout::padded(1, 3).unwrap(), Mask::new(&[true, false, true])).unwrap();
        let (mut log_probs, mut entropy) = ([0.0; 3], [0.0; 3]);
        log_probs_and_entropy(
            &batch,
            LogProbInput { logits, vocab: logits.len() / 3, tokens: &[1, 0, 4] },
            &PolicyConfig { temperature: 0.7 },
            LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy },
        )
        .unwrap();
        [log_probs.map(f32::to_bits), entropy.map(f32::to_bits)]
    }

    #[test]
    fn half_precision_logits_give_the_bits_of_their_f32_values() {
        let logits: Vec<f32> = (0..3 * 37)
            .map(|i| if i % 11 == 7 { f32::NEG_INFINITY } else { (i * 29 % 101) as f32 / 13.0 - 3.0 })
            .collect();
        let bf16: Vec<half::bf16> = logits.iter().map(|&x| half::bf16::from_f32(x)).collect();
        let f16: Vec<half::f16> = logits.iter().map(|&x| half::f16::from_f32(x)).collect();
        let widened = |halves: Vec<f32>| results(&halves);
        assert_eq!(results(&bf16), widened(bf16.iter().map(|x| x.to_f32()).collect()));
        assert_eq!(results(&f16), widened(f16.iter().map(|x| x.to_f32()).collect()));
        // bf16 keeps 8 bits of each logit: the results are close, not equal
        assert_ne!(results(&bf16), results(&logits));
    }

    #[test]
    fn every_half_precision_value_is_read_exactly() {
        for bits in 0..=u16::MAX {
            let (b, h) = (half::bf16::from_bits(bits), half::f16::from_bits(bits));
            assert!(b.load() == b.to_f32() || b.is_nan() && b.load().is_nan());
            assert!(h.load() == h.to_f32() || h.is_nan() && h.load().is_nan());
        }
    }
}
