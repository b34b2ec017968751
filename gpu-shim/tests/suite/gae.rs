//! Advantages: against the core in `f32` and the textbook in `f64`.

use tokenwise::{
    advantage::{gae, Across, GaeConfig, GaeInput, GaeOutput},
    Batch, Layout, Mask,
};
use tokenwise_gpu::{tolerance, Gpu, GpuError};

use crate::{
    adapter::{gpu, small_gpu},
    random::Random,
    textbook, Margin,
};

/// Packed sequences and how to discount them.
pub(crate) struct Sequences {
    pub(crate) offsets: Vec<u32>,
    pub(crate) keep: Vec<bool>,
    pub(crate) rewards: Vec<f32>,
    pub(crate) values: Vec<f32>,
    pub(crate) bootstrap: Vec<f32>,
    pub(crate) gamma_lambda: (f64, f64),
    pub(crate) across: Across,
}

type Found = (Vec<f32>, Vec<f32>);

impl Sequences {
    pub(crate) fn random(random: &mut Random, lengths: &[usize], percent: usize) -> Self {
        let mut offsets = vec![0];
        let mut tokens = 0;
        for len in lengths {
            tokens += len;
            offsets.push(tokens as u32);
        }
        Self {
            offsets,
            keep: random.mask(tokens, percent),
            rewards: random.normals(tokens, 1.0),
            values: random.normals(tokens, 2.0),
            bootstrap: random.normals(lengths.len(), 1.0),
            gamma_lambda: (1.0, 0.95),
            across: Across::StepOver,
        }
    }

    fn config(&self) -> GaeConfig {
        GaeConfig { gamma: self.gamma_lambda.0, lambda: self.gamma_lambda.1, across: self.across }
    }

    fn input(&self) -> GaeInput<'_, f32> {
        GaeInput { rewards: &self.rewards, values: &self.values, bootstrap: &self.bootstrap }
    }

    fn with(
        &self,
        call: impl FnOnce(&Batch<'_>, GaeOutput<'_, f32>) -> Result<(), GpuError>,
    ) -> Result<Found, GpuError> {
        let batch = Batch::new(Layout::packed(&self.offsets)?, Mask::new(&self.keep))?;
        let (mut advantages, mut returns) = (vec![9.0; self.keep.len()], vec![9.0; self.keep.len()]);
        call(&batch, GaeOutput { advantages: &mut advantages, returns: &mut returns })?;
        Ok((advantages, returns))
    }

    pub(crate) fn on(&self, gpu: &Gpu) -> Result<Found, GpuError> {
        self.with(|batch, output| pollster::block_on(gpu.gae(batch, self.input(), &self.config(), output)).map(drop))
    }

    pub(crate) fn on_core(&self) -> Found {
        self.with(|batch, output| Ok(gae(batch, self.input(), &self.config(), output)?)).unwrap()
    }

    fn check(&self, case: &str, gpu: &Gpu, margin: &mut Margin) {
        let (advantages, returns) = self.on(gpu).unwrap();
        for (bounds, &bootstrap) in self.offsets.windows(2).zip(&self.bootstrap) {
            let range = bounds[0] as usize..bounds[1] as usize;
            let keep = &self.keep[range.clone()];
            let numbers = (&self.rewards[range.clone()], &self.values[range.clone()]);
            let exact = textbook::gae(keep, numbers, bootstrap, self.gamma_lambda, self.across);
            for (slot, (advantage, exact_return, scale)) in range.zip(exact) {
                if self.keep[slot] {
                    margin.check(case, slot, advantages[slot], advantage, scale);
                    margin.check(case, slot, returns[slot], exact_return, scale);
                } else {
                    assert_eq!((advantages[slot].to_bits(), returns[slot].to_bits()), (0, 0), "dropped in {case}");
                }
            }
        }
    }
}

const LENGTHS: [usize; 16] = [1, 2, 7, 8, 9, 0, 255, 256, 257, 0, 2047, 2048, 2049, 5000, 1, 0];

#[test]
fn agrees_at_every_length_and_discount() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margin) = (Random::new(10), Margin::new("gae", tolerance::GAE));
    for across in [Across::StepOver, Across::ZeroStep] {
        for gamma_lambda in [(1.0, 1.0), (1.0, 0.95), (0.99, 1.0), (0.9, 0.5), (0.0, 1.0), (1.0, 0.0), (0.0, 0.0)] {
            for percent in [0, 3, 50, 97, 100] {
                let case = format!("{across:?}, {gamma_lambda:?}, {percent} % kept");
                let mut sequences = Sequences::random(&mut random, &LENGTHS, percent);
                (sequences.across, sequences.gamma_lambda) = (across, gamma_lambda);
                sequences.check(&case, gpu, &mut margin);
            }
        }
    }
    for len in LENGTHS {
        Sequences::random(&mut random, &[len], 80).check(&format!("one sequence of {len}"), gpu, &mut margin);
    }
}

#[test]
fn agrees_with_the_core() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(11);
    let mut margin = Margin::new("gae against the core", tolerance::GAE);
    for across in [Across::StepOver, Across::ZeroStep] {
        let mut sequences = Sequences::random(&mut random, &[300; 40], 75);
        (sequences.across, sequences.gamma_lambda) = (across, (0.99, 0.95));
        let ((advantages, returns), (core_advantages, core_returns)) =
            (sequences.on(gpu).unwrap(), sequences.on_core());
        for slot in 0..advantages.len() {
            // lower bound of the scale
            let scale = f64::from(core_advantages[slot].abs().max(4.0));
            margin.check("advantages", slot, advantages[slot], f64::from(core_advantages[slot]), scale);
            margin.check("returns", slot, returns[slot], f64::from(core_returns[slot]), scale);
        }
    }
}

#[test]
fn one_sequence_of_a_million_tokens() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margin) = (Random::new(12), Margin::new("gae, a million tokens", tolerance::GAE));
    for gamma_lambda in [(1.0, 1.0), (1.0, 0.999)] {
        let mut sequences = Sequences::random(&mut random, &[1_000_000], 90);
        sequences.gamma_lambda = gamma_lambda;
        sequences.check("a million tokens", gpu, &mut margin);
    }
}

#[test]
fn a_hundred_thousand_short_sequences() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margin) = (Random::new(13), Margin::new("gae, short sequences", tolerance::GAE));
    let lengths: Vec<usize> = (0..100_000).map(|_| random.below(12)).collect();
    Sequences::random(&mut random, &lengths, 70).check("short sequences", gpu, &mut margin);
}

#[test]
fn poison_in_dropped_slots_changes_no_bit() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(14);
    for across in [Across::StepOver, Across::ZeroStep] {
        let mut sequences = Sequences::random(&mut random, &LENGTHS, 60);
        sequences.across = across;
        let clean = sequences.on(gpu);
        for slot in 0..sequences.keep.len() {
            if !sequences.keep[slot] {
                sequences.rewards[slot] = [f32::NAN, f32::INFINITY][slot % 2];
                sequences.values[slot] = [f32::NEG_INFINITY, f32::NAN, f32::MAX][slot % 3];
            }
        }
        assert_eq!(sequences.on(gpu), clean);
    }
}

/// Dropped slots after the last kept token count under neither rule, so padding on the right changes nothing.
#[test]
fn padded_equals_packed() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(15);
    for across in [Across::StepOver, Across::ZeroStep] {
        let lengths = [1, 7, 300, 0, 512, 3];
        let mut packed = Sequences::random(&mut random, &lengths, 70);
        packed.across = across;
        let (width, mut at) = (512, 0);
        let (mut keep, mut rewards) = (vec![false; 6 * width], vec![f32::NAN; 6 * width]);
        let mut values = rewards.clone();
        for (row, len) in lengths.into_iter().enumerate() {
            let place = row * width..row * width + len;
            keep[place.clone()].copy_from_slice(&packed.keep[at..at + len]);
            rewards[place.clone()].copy_from_slice(&packed.rewards[at..at + len]);
            values[place].copy_from_slice(&packed.values[at..at + len]);
            at += len;
        }
        let batch = Batch::new(Layout::padded(6, width).unwrap(), Mask::new(&keep)).unwrap();
        let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &packed.bootstrap };
        let (mut advantages, mut returns) = (vec![9.0; 6 * width], vec![9.0; 6 * width]);
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        pollster::block_on(gpu.gae(&batch, input, &packed.config(), output)).unwrap();
        let (packed_advantages, _) = packed.on(gpu).unwrap();
        // the blocks of the scan start elsewhere, so bits may differ
        let mut margin = Margin::new("gae, padded", tolerance::GAE);
        let mut at = 0;
        for (row, len) in lengths.into_iter().enumerate() {
            for t in 0..len {
                let expected = f64::from(packed_advantages[at + t]);
                margin.check("padded", t, advantages[row * width + t], expected, expected.abs().max(4.0));
            }
            assert!(advantages[row * width + len..(row + 1) * width].iter().all(|&x| x == 0.0));
            at += len;
        }
    }
}

#[test]
fn several_steps_agree_with_the_textbook() {
    let Some(small) = small_gpu(4 * 600) else { return };
    let (mut random, mut margin) = (Random::new(16), Margin::new("gae, several steps", tolerance::GAE));
    let lengths: Vec<usize> = (0..60).map(|_| random.below(600)).collect();
    Sequences::random(&mut random, &lengths, 70).check("several steps", &small, &mut margin);
    // longer than the largest buffer of a step: one scan in several pieces
    for lengths in [&[3, 601, 9][..], &[40_000], &[5, 30_000, 2048, 1]] {
        for across in [Across::StepOver, Across::ZeroStep] {
            let mut sequences = Sequences::random(&mut random, lengths, 70);
            (sequences.across, sequences.gamma_lambda) = (across, (0.99, 0.95));
            sequences.check("a scan in pieces", &small, &mut margin);
        }
    }
}
