//! Random numbers that depend on the seed, their purpose and the step alone.
//!
//! Every step draws from streams of its own, so a run has no generator state: a resumed run continues with the same
//! numbers, and all groups of a seed see the same problems and the same noise.

use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};

/// What random numbers are for.
#[derive(Clone, Copy, Debug)]
pub enum Purpose {
    /// Initial weights of the policy.
    Policy,
    /// Initial weights of the critic.
    Critic,
    /// The problems of a step.
    Problems,
    /// The noise that samples the responses of a step.
    Samples,
    /// The problems of a step of the warm-up.
    WarmUpProblems,
    /// The problems and samples that measure the warm-up.
    WarmUpCheck,
}

/// The numbers of one seed for one purpose in one step.
pub fn stream(seed: u64, purpose: Purpose, step: u64) -> ChaCha8Rng {
    let mut random = ChaCha8Rng::seed_from_u64(seed);
    random.set_stream(((purpose as u64) << 48) | step);
    random
}

/// A number in [0, 1) with 53 random bits.
pub fn uniform(random: &mut ChaCha8Rng) -> f64 {
    (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
}

/// An integer below `bound`. The bias of 2⁻³² · `bound` does not matter here.
pub fn below(random: &mut ChaCha8Rng, bound: u32) -> u32 {
    ((u64::from(random.next_u32()) * u64::from(bound)) >> 32) as u32
}

/// A number with mean 0 and deviation 1: the sum of twelve uniform ones, which needs no logarithm.
pub fn normal(random: &mut ChaCha8Rng) -> f64 {
    let mut sum = -6.0;
    for _ in 0..12 {
        sum += uniform(random);
    }
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_by_seed_purpose_and_step_and_repeat() {
        let first = |seed, purpose, step| stream(seed, purpose, step).next_u64();
        let one = first(0, Purpose::Samples, 0);
        assert_eq!(one, first(0, Purpose::Samples, 0));
        for other in [first(1, Purpose::Samples, 0), first(0, Purpose::Problems, 0), first(0, Purpose::Samples, 1)] {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let mut random = stream(3, Purpose::Policy, 0);
        let (mut sum, mut squares) = (0.0, 0.0);
        for _ in 0..10_000 {
            let x = normal(&mut random);
            sum += x;
            squares += x * x;
        }
        assert!(sum.abs() / 10_000.0 < 0.03, "{sum}");
        assert!((squares / 10_000.0 - 1.0).abs() < 0.05, "{squares}");
    }
}
