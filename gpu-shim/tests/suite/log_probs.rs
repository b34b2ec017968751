//! Logits: against the core in `f32` and the textbook in `f64`.

use tokenwise::{
    policy::{log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
    Batch, Layout, Mask,
};
use tokenwise_gpu::{tolerance, Gpu, GpuError};

use crate::{
    adapter::{gpu, small_gpu},
    random::Random,
    textbook, Margin,
};

/// The inputs of one call.
pub(crate) struct Rows {
    pub(crate) keep: Vec<bool>,
    pub(crate) logits: Vec<f32>,
    pub(crate) tokens: Vec<u32>,
    pub(crate) vocab: usize,
}

impl Rows {
    pub(crate) fn random(random: &mut Random, rows: usize, vocab: usize, scale: f32) -> Self {
        Self {
            keep: random.mask(rows, 80),
            logits: random.normals(rows * vocab, scale),
            tokens: (0..rows).map(|_| random.below(vocab) as u32).collect(),
            vocab,
        }
    }

    fn input(&self) -> LogProbInput<'_, f32> {
        LogProbInput { logits: &self.logits, vocab: self.vocab, tokens: &self.tokens }
    }

    pub(crate) fn on(&self, gpu: &Gpu, temperature: f64) -> Result<(Vec<f32>, Vec<f32>), GpuError> {
        let (mut log_probs, mut entropy) = (vec![9.0; self.keep.len()], vec![9.0; self.keep.len()]);
        let batch = Batch::new(Layout::padded(1, self.keep.len())?, Mask::new(&self.keep))?;
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        pollster::block_on(gpu.log_probs_and_entropy(&batch, self.input(), &PolicyConfig { temperature }, output))?;
        Ok((log_probs, entropy))
    }

    pub(crate) fn on_core(&self, temperature: f64) -> (Vec<f32>, Vec<f32>) {
        let (mut log_probs, mut entropy) = (vec![9.0; self.keep.len()], vec![9.0; self.keep.len()]);
        let batch = Batch::new(Layout::padded(1, self.keep.len()).unwrap(), Mask::new(&self.keep)).unwrap();
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        log_probs_and_entropy(&batch, self.input(), &PolicyConfig { temperature }, output).unwrap();
        (log_probs, entropy)
    }

    /// The GPU and the core, both against the textbook.
    fn check(&self, case: &str, gpu: &Gpu, temperature: f64, margins: &mut [Margin; 2]) {
        let (log_probs, entropy) = self.on(gpu, temperature).unwrap();
        let (core_log_probs, core_entropy) = self.on_core(temperature);
        for slot in 0..self.keep.len() {
            if !self.keep[slot] {
                assert_eq!((log_probs[slot].to_bits(), entropy[slot].to_bits()), (0, 0), "dropped slot of {case}");
                continue;
            }
            let logits = &self.logits[slot * self.vocab..(slot + 1) * self.vocab];
            let (log_prob, exact_entropy, scale) = textbook::row(logits, self.tokens[slot] as usize, temperature);
            for (log_prob_got, entropy_got) in
                [(log_probs[slot], entropy[slot]), (core_log_probs[slot], core_entropy[slot])]
            {
                margins[0].check(case, slot, log_prob_got, log_prob, scale);
                margins[1].check(case, slot, entropy_got, exact_entropy, exact_entropy);
            }
        }
    }
}

fn margins() -> [Margin; 2] {
    [Margin::new("log_probs", tolerance::LOG_PROB), Margin::new("entropy", tolerance::ENTROPY)]
}

#[test]
fn agrees_at_every_size() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margins) = (Random::new(1), margins());
    for vocab in [1, 2, 7, 8, 9, 255, 256, 257, 2047, 2048, 2049, 5000] {
        for rows in [1, 2, 9, 33] {
            for scale in [0.1, 3.0, 30.0] {
                let case = format!("{rows} rows of {vocab}, scale {scale}");
                Rows::random(&mut random, rows, vocab, scale).check(&case, gpu, 1.0, &mut margins);
            }
        }
    }
}

#[test]
fn agrees_at_every_temperature() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margins) = (Random::new(2), margins());
    for temperature in [1e-3, 0.3, 0.7, 1.5, 100.0] {
        let rows = Rows::random(&mut random, 20, 1000, 4.0);
        rows.check(&format!("temperature {temperature}"), gpu, temperature, &mut margins);
    }
}

#[test]
fn agrees_at_a_large_vocabulary() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margins) = (Random::new(3), margins());
    for scale in [0.01, 5.0] {
        let rows = Rows::random(&mut random, 6, 151_936, scale);
        rows.check(&format!("vocabulary 151936, scale {scale}"), gpu, 1.0, &mut margins);
    }
}

#[test]
fn agrees_with_ascending_logits_and_holes() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margins) = (Random::new(4), margins());
    let mut rows = Rows::random(&mut random, 8, 6000, 1.0);
    rows.keep.fill(true);
    for (index, logit) in rows.logits.iter_mut().enumerate() {
        // every block of entries raises the maximum
        *logit = (index % 6000) as f32 * 0.02;
        if index / 6000 > 3 && index % (index / 6000) != 0 {
            *logit = f32::NEG_INFINITY;
        }
    }
    // multiples of 420 were left in every row
    rows.tokens.fill(420 * 3);
    for (row, token) in rows.tokens.iter_mut().enumerate() {
        while rows.logits[row * 6000 + *token as usize] == f32::NEG_INFINITY {
            *token += 1;
        }
    }
    rows.check("ascending logits", gpu, 1.0, &mut margins);
}

#[test]
fn rows_beyond_one_axis_of_the_grid() {
    let Some(gpu) = gpu() else { return };
    let (mut random, mut margins) = (Random::new(5), margins());
    Rows::random(&mut random, 66_000, 3, 2.0).check("66000 rows", gpu, 1.0, &mut margins);
}

#[test]
fn several_steps_give_the_same_bits_as_one() {
    let (Some(gpu), Some(small)) = (gpu(), small_gpu(4000)) else { return };
    let mut random = Random::new(6);
    for vocab in [10, 100, 999, 1000] {
        let rows = Rows::random(&mut random, 150, vocab, 3.0);
        assert_eq!(rows.on(gpu, 0.9), rows.on(&small, 0.9), "vocabulary {vocab}");
    }
}

/// Rows larger than a binding are read in pieces of entries.
#[test]
fn rows_in_pieces_agree() {
    let Some(small) = small_gpu(4000) else { return };
    let (mut random, mut margins) = (Random::new(8), margins());
    for vocab in [1001, 1999, 5000] {
        for temperature in [0.7, 1.0] {
            Rows::random(&mut random, 20, vocab, 3.0).check("rows in pieces", &small, temperature, &mut margins);
        }
    }
    // a piece without a number, a token at −inf, a row with NaN, a row of −inf
    let mut rows = Rows::random(&mut random, 4, 3000, 3.0);
    rows.keep.fill(true);
    rows.tokens = vec![2999, 5, 1500, 0];
    rows.logits[..1500].fill(f32::NEG_INFINITY);
    rows.logits[3005] = f32::NEG_INFINITY;
    rows.logits[8000] = f32::NAN;
    rows.logits[9000..].fill(f32::NEG_INFINITY);
    let ((log_probs, entropy), (core, core_entropy)) = (rows.on(&small, 1.0).unwrap(), rows.on_core(1.0));
    assert!((log_probs[0] - core[0]).abs() < 1e-5 && (entropy[0] - core_entropy[0]).abs() < 1e-5);
    assert_eq!((log_probs[1], core[1]), (f32::NEG_INFINITY, f32::NEG_INFINITY));
    assert!([2, 3].iter().all(|&row| log_probs[row].is_nan() && entropy[row].is_nan() && core[row].is_nan()));
}

#[test]
fn poison_in_dropped_slots_changes_no_bit() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(7);
    let mut rows = Rows::random(&mut random, 60, 300, 3.0);
    let clean = rows.on(gpu, 1.0);
    for slot in 0..60 {
        if !rows.keep[slot] {
            rows.tokens[slot] = u32::MAX;
            for (index, logit) in rows.logits[slot * 300..(slot + 1) * 300].iter_mut().enumerate() {
                *logit = [f32::NAN, f32::INFINITY, f32::NEG_INFINITY, f32::MAX][index % 4];
            }
        }
    }
    assert_eq!(rows.on(gpu, 1.0), clean);
    rows.keep.fill(false);
    assert_eq!(rows.on(gpu, 1.0), Ok((vec![0.0; 60], vec![0.0; 60])));
}
