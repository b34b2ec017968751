//! Logits in half precision: the results of the same logits widened to `f32`.

use tokenwise::{
    policy::{
        log_probs_and_entropy, logits_gradient, sum_squared_probs, LogProbInput, LogProbOutput, Logit,
        LogitsGradientInput, LogitsInput, PolicyConfig,
    },
    Batch, Layout, Mask,
};
use tokenwise_gpu::{
    half::{bf16, f16},
    tolerance,
    wgpu::{Buffer, BufferDescriptor, BufferUsages},
    Column, Engine, Format, Gpu, GpuBatch, GpuError, GpuLogit, GpuOptions, Input, LogitColumns, Ran, Reason,
};

use crate::{
    adapter::{gpu, made, small_gpu},
    random::Random,
    textbook, Margin,
};

/// Both formats, for tests.
trait Half: GpuLogit {
    fn narrowed(number: f32) -> Self;
    fn of_bits(bits: u16) -> Self;
}

impl Half for f16 {
    fn narrowed(number: f32) -> Self {
        Self::from_f32(number)
    }
    fn of_bits(bits: u16) -> Self {
        Self::from_bits(bits)
    }
}

impl Half for bf16 {
    fn narrowed(number: f32) -> Self {
        Self::from_f32(number)
    }
    fn of_bits(bits: u16) -> Self {
        Self::from_bits(bits)
    }
}

struct Rows<L> {
    keep: Vec<bool>,
    logits: Vec<L>,
    tokens: Vec<u32>,
    vocab: usize,
    grad: [Vec<f32>; 2],
}

impl<L: Half> Rows<L> {
    fn new(random: &mut Random, rows: usize, vocab: usize, scale: f32) -> Self {
        Self {
            keep: random.mask(rows, 80),
            logits: random.normals(rows * vocab, scale).into_iter().map(L::narrowed).collect(),
            tokens: (0..rows).map(|_| random.below(vocab) as u32).collect(),
            vocab,
            grad: [random.normals(rows, 1.0), random.normals(rows, 1.0)],
        }
    }

    fn batch(&self) -> Batch<'_> {
        Batch::new(Layout::padded(1, self.keep.len()).unwrap(), Mask::new(&self.keep)).unwrap()
    }

    fn gradient_input<'a, F: Logit>(
        &'a self,
        logits: &'a [F],
        grad: [&'a [F::Compute]; 2],
    ) -> LogitsGradientInput<'a, F> {
        let [grad_log_probs, grad_entropy] = grad;
        LogitsGradientInput { logits, vocab: self.vocab, tokens: &self.tokens, grad_log_probs, grad_entropy }
    }

    fn input(&self) -> LogProbInput<'_, L> {
        LogProbInput { logits: &self.logits, vocab: self.vocab, tokens: &self.tokens }
    }

    /// Log-probabilities and entropies of host logits by an engine.
    fn on(&self, engine: &Engine, temperature: f64) -> ([Vec<f32>; 2], Ran) {
        let [mut log_probs, mut entropy] = [(); 2].map(|()| vec![9.0; self.keep.len()]);
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        let (batch, config) = (self.batch(), PolicyConfig { temperature });
        let done = engine.log_probs_and_entropy(&batch, self.input(), &config, output);
        let ran = pollster::block_on(done).unwrap().ran;
        ([log_probs, entropy], ran)
    }

    fn on_core(&self, temperature: f64) -> [Vec<f32>; 2] {
        self.on(&Engine::cpu(), temperature).0
    }

    /// The gradient of host logits by an engine.
    fn gradient_on(&self, engine: &Engine, config: &PolicyConfig) -> (Vec<f32>, Ran) {
        let (batch, mut grad) = (self.batch(), vec![9.0; self.logits.len()]);
        let input = self.gradient_input(&self.logits, [&self.grad[0], &self.grad[1]]);
        let done = engine.logits_gradient(&batch, input, config, &mut grad);
        let ran = pollster::block_on(done).unwrap().ran;
        (grad, ran)
    }

    fn wide(&self) -> Vec<f64> {
        self.logits.iter().map(|&logit| f64::from(logit.load())).collect()
    }

    /// Log-probabilities, entropies and their gradient against the formula in `f64`.
    fn check(&self, case: &str, engine: &Engine, temperature: f64, margins: &mut [Margin; 2]) {
        let ([log_probs, entropy], ran) = self.on(engine, temperature);
        assert_eq!(ran, Ran::Gpu, "{case}");
        for slot in 0..self.keep.len() {
            if !self.keep[slot] {
                assert_eq!((log_probs[slot].to_bits(), entropy[slot].to_bits()), (0, 0), "dropped slot of {case}");
                continue;
            }
            let row: Vec<f32> =
                self.logits[slot * self.vocab..(slot + 1) * self.vocab].iter().map(|&logit| logit.load()).collect();
            let (log_prob, exact, scale) = textbook::row(&row, self.tokens[slot] as usize, temperature);
            margins[0].check(case, slot, log_probs[slot], log_prob, scale);
            margins[1].check(case, slot, entropy[slot], exact, exact);
        }
        let config = PolicyConfig { temperature };
        let (grad, ran) = self.gradient_on(engine, &config);
        assert_eq!(ran, Ran::Gpu, "{case}");
        self.check_gradient(case, &grad, &config);
    }

    fn check_gradient(&self, case: &str, got: &[f32], config: &PolicyConfig) {
        let (logits, wide) = (self.wide(), |slice: &[f32]| slice.iter().map(|&x| f64::from(x)).collect::<Vec<_>>());
        let mut exact = vec![9.0; logits.len()];
        let grads = [wide(&self.grad[0]), wide(&self.grad[1])];
        let input = self.gradient_input(&logits, [&grads[0], &grads[1]]);
        logits_gradient(&self.batch(), input, config, &mut exact).unwrap();
        for (index, (&got, exact)) in got.iter().zip(exact).enumerate() {
            let slot = index / self.vocab;
            // entries of a row share the error of its sums
            let scale = (self.grad[0][slot].abs() + 30.0 * self.grad[1][slot].abs()) / config.temperature as f32;
            let allowed = tolerance::TOKEN.at(f64::from(scale));
            let error = (f64::from(got) - exact).abs();
            assert!(error <= allowed, "{case}: gradient[{index}] got {got}, exact {exact}, allowed {allowed}");
            assert!(self.keep[slot] || got.to_bits() == 0, "{case}: dropped");
        }
    }
}

fn margins() -> [Margin; 2] {
    [Margin::new("log_probs of halves", tolerance::LOG_PROB), Margin::new("entropy of halves", tolerance::ENTROPY)]
}

/// Odd sizes too: rows then start in the middle of a word. Rows of a multiple of four are read by fours.
fn agrees<L: Half>(case: &str) {
    let Some(gpu) = small_gpu(64 << 20) else { return };
    let engine = Engine::gpu(gpu);
    let (mut random, mut margins) = (Random::new(80), margins());
    for vocab in [1, 2, 3, 4, 8, 255, 257, 2049, 4096, 5000, 5001] {
        for (rows, temperature, scale) in [(1, 1.0, 3.0), (2, 0.7, 0.1), (9, 1.0, 30.0), (33, 1.5, 5.0)] {
            let case = format!("{rows} rows of {vocab} {case}, temperature {temperature}, scale {scale}");
            Rows::<L>::new(&mut random, rows, vocab, scale).check(&case, &engine, temperature, &mut margins);
        }
    }
    Rows::<L>::new(&mut random, 3, 151_937, 4.0).check(case, &engine, 1.0, &mut margins);
}

#[test]
fn f16_logits_agree_with_the_textbook() {
    agrees::<f16>("f16");
}

#[test]
fn bf16_logits_agree_with_the_textbook() {
    agrees::<bf16>("bf16");
}

/// Every ninth number and those around each change of exponent, in a row with two or three others; rows of three begin in
/// the low and in the high half of a word in turn, rows of four are read at once.
fn numbers_of_every_kind<L: Half>(engine: &Engine, vocab: usize) {
    let numbers: Vec<u16> =
        (0..=u16::MAX).filter(|bits| bits % 9 == 0 || bits % 128 < 2 || bits % 1024 > 1020).collect();
    let count = numbers.len();
    let others = [1.0, 0.0, -1.0].map(L::narrowed);
    let row = |&bits: &u16| [L::of_bits(bits)].into_iter().chain(others).take(vocab);
    let rows = Rows {
        keep: vec![true; count],
        logits: numbers.iter().flat_map(row).collect(),
        tokens: (0..count as u32).map(|slot| slot / 2 % 2).collect(),
        vocab,
        grad: [vec![1.0; count], vec![0.5; count]],
    };
    // the smaller one makes the subnormal numbers visible
    for temperature in [1.0, 1e-6] {
        let ([log_probs, entropy], ran) = rows.on(engine, temperature);
        assert_eq!(ran, Ran::Gpu);
        let core = rows.on_core(temperature);
        for (got, core) in [(log_probs, &core[0]), (entropy, &core[1])] {
            for (bits, (got, core)) in numbers.iter().zip(got.iter().zip(core)) {
                let near = got == core || (got - core).abs() <= 1e-5 + 1e-6 * core.abs();
                assert!(near || (got.is_nan() && core.is_nan()), "{bits:#06x} at {temperature}: {got}, core {core}");
            }
        }
    }
    let config = PolicyConfig::default();
    let (grad, ran) = rows.gradient_on(engine, &config);
    let (core, _) = rows.gradient_on(&Engine::cpu(), &config);
    for (index, (got, core)) in grad.iter().zip(&core).enumerate() {
        let near = (got - core).abs() <= 1e-5 * (1.0 + core.abs());
        assert!(near || (got.is_nan() && core.is_nan()), "gradient[{index}]: {got}, core {core}, {ran:?}");
    }
}

#[test]
fn halves_are_read_as_by_the_core() {
    let Some(gpu) = small_gpu(64 << 20) else { return };
    let engine = Engine::gpu(gpu);
    for vocab in [3, 4] {
        numbers_of_every_kind::<f16>(&engine, vocab);
        numbers_of_every_kind::<bf16>(&engine, vocab);
    }
}

/// By rows and by vocabulary. A piece may begin in the middle of a word; rows that fit have the same bits.
fn splits<L: Half>() {
    let (Some(large), Some(small)) = (small_gpu(64 << 20), small_gpu(4000)) else { return };
    let (large, small) = (Engine::gpu(large), Engine::gpu(small));
    let (mut random, mut margins) = (Random::new(81), margins());
    for vocab in [11, 333, 999, 1000, 1999, 2001, 4999, 5000] {
        let rows = Rows::<L>::new(&mut random, 40, vocab, 3.0);
        rows.check("in pieces", &small, 0.8, &mut margins);
        if vocab <= 2000 {
            assert_eq!(rows.on(&large, 0.9), rows.on(&small, 0.9), "vocabulary {vocab}");
        }
    }
    let narrow = |mut limits: tokenwise_gpu::Limits| {
        limits.max_buffer_size = 16 << 10;
        limits.max_storage_buffer_binding_size = 4 << 10;
        limits.max_compute_workgroups_per_dimension = 7;
        limits
    };
    let limits = large.device().unwrap().limits().clone();
    let Some(narrow) = made(&GpuOptions { limits: Some(narrow(limits)), ..Default::default() }) else { return };
    Rows::<L>::new(&mut random, 9, 3001, 3.0).check("small limits", &Engine::gpu(narrow), 1.0, &mut margins);
}

#[test]
fn half_precision_rows_are_split() {
    splits::<f16>();
    splits::<bf16>();
}

fn buffer(gpu: &Gpu, size: u64) -> Buffer {
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST;
    gpu.device().create_buffer(&BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
}

/// Everything on the device, from a trainer's bf16 buffer to its own buffers for the results.
#[test]
fn a_trainers_buffers_are_read_and_written() {
    let Some(gpu) = gpu() else { return };
    let (mut random, config) = (Random::new(82), PolicyConfig { temperature: 0.9 });
    let rows = Rows::<bf16>::new(&mut random, 7, 301, 3.0);
    let (batch, entries) = (GpuBatch::new(rows.batch()), rows.logits.len() as u64);
    let bytes: Vec<u8> = rows.logits.iter().flat_map(|logit| logit.to_bits().to_le_bytes()).chain([7; 2]).collect();
    let logits = buffer(gpu, 256 + bytes.len() as u64);
    gpu.queue().write_buffer(&logits, 256, &bytes);
    let logits = Column::from_buffer_of(Format::Bf16, logits, 128, entries).unwrap();
    // log-probabilities and Σ p² between words that must stay, the gradient in a buffer of its own
    let (results, gradients) = (buffer(gpu, 4 * 192), buffer(gpu, 4 * entries));
    gpu.queue().write_buffer(&results, 0, &[9; 4 * 192]);
    let of = |first, len| Column::from_buffer(results.clone(), first, len).unwrap();
    let mut recording = gpu.record();
    let input = LogitColumns { logits: Input::from(&logits), vocab: rows.vocab, tokens: Input::from(&rows.tokens) };
    let found = recording.log_probs(&batch, &input, &config).unwrap();
    recording.copy_to(&found.log_probs, &of(64, 7)).unwrap();
    recording.copy_to(&found.sum_squared_probs, &of(128, 7)).unwrap();
    let [g, h] = [&rows.grad[0], &rows.grad[1]].map(Input::from);
    let target = Column::from_buffer(gradients.clone(), 0, entries).unwrap();
    recording.logits_gradient_to(&batch, &found, &g, Some(&h), &target).unwrap();
    let done = pollster::block_on(recording.submit()).unwrap();
    assert!(!done.report().special);
    // the logits were there already, and nothing but flags came back
    assert!(done.report().bytes_up < 2048 && done.report().bytes_down < 64, "{:?}", done.report());
    let mut recording = gpu.record();
    let (all, grad) = (recording.download(&of(0, 192)), recording.download(&target));
    let done = pollster::block_on(recording.submit()).unwrap();
    let [log_probs, _] = rows.on_core(0.9);
    let mut squares = vec![9.0; 7];
    let input = LogitsInput { logits: &rows.logits, vocab: rows.vocab };
    sum_squared_probs(&rows.batch(), input, &config, &mut squares).unwrap();
    for (index, &word) in done.words(all).iter().enumerate() {
        let exact = match index {
            64..71 => log_probs[index - 64],
            128..135 => squares[index - 128],
            _ => {
                assert_eq!(word, 0x0909_0909, "word {index} was overwritten");
                continue;
            }
        };
        let got = f32::from_bits(word);
        assert!((got - exact).abs() <= 1e-5 * (1.0 + exact.abs()), "word {index}: {got}, {exact}");
    }
    rows.check_gradient("a trainer's buffer", done.floats(grad), &config);
}

#[test]
fn dropped_halves_change_no_bit() {
    let Some(gpu) = small_gpu(64 << 20) else { return };
    let (engine, mut random) = (Engine::gpu(gpu), Random::new(83));
    let mut rows = Rows::<f16>::new(&mut random, 60, 301, 3.0);
    let (clean, config) = (rows.on(&engine, 1.0), PolicyConfig::default());
    let clean_gradient = rows.gradient_on(&engine, &config);
    for slot in (0..60).filter(|&slot| !rows.keep[slot]).collect::<Vec<_>>() {
        rows.tokens[slot] = u32::MAX;
        for (index, logit) in rows.logits[slot * 301..(slot + 1) * 301].iter_mut().enumerate() {
            *logit = [f16::NAN, f16::INFINITY, f16::NEG_INFINITY, f16::MAX][index % 4];
        }
    }
    assert_eq!(rows.on(&engine, 1.0), clean);
    assert_eq!(rows.gradient_on(&engine, &config), clean_gradient);
}

#[test]
fn the_core_answers_for_halves_when_the_device_is_lost() {
    let Some(gpu) = small_gpu(64 << 20) else { return };
    let (engine, mut random) = (Engine::gpu(gpu), Random::new(84));
    let rows = Rows::<bf16>::new(&mut random, 5, 33, 3.0);
    assert_eq!(rows.on(&engine, 1.0).1, Ran::Gpu);
    engine.device().unwrap().destroy();
    let (found, ran) = rows.on(&engine, 1.0);
    assert!(matches!(ran, Ran::Core(Reason::Failed(GpuError::Lost(_)))), "{ran:?}");
    let [mut log_probs, mut entropy] = [vec![9.0; 5], vec![9.0; 5]];
    let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
    log_probs_and_entropy(&rows.batch(), rows.input(), &PolicyConfig::default(), output).unwrap();
    assert_eq!(found, [log_probs, entropy]);
    assert!(matches!(rows.gradient_on(&engine, &PolicyConfig::default()).1, Ran::Core(Reason::Failed(_))));
}

#[test]
fn what_is_not_a_logit_is_not_read_in_halves() {
    let Some(gpu) = gpu() else { return };
    let keep = [true; 4];
    let batch = GpuBatch::new(Batch::new(Layout::padded(1, 4).unwrap(), Mask::new(&keep)).unwrap());
    let halves = [bf16::ONE; 4];
    let mut recording = gpu.record();
    let column = recording.upload_bf16(&halves).unwrap();
    assert_eq!((column.len(), column.format()), (4, Format::Bf16));
    for input in [Input::from(&halves[..]), Input::from(&column)] {
        let refused = recording.moments(&batch, &input).map(drop).unwrap_err();
        assert_eq!(refused.code(), "unsupported", "{refused}");
    }
    // copies and gradients keep to their formats and lengths
    let [words, more] = [4, 8].map(|len| Column::from_buffer(buffer(gpu, 64), 0, len).unwrap());
    let numbers = recording.upload(&[1.0; 4]).unwrap();
    assert!(recording.copy_to(&numbers, &words).is_ok());
    for (from, to) in [(&numbers, &more), (&numbers, &column), (&numbers, &numbers)] {
        assert_eq!(recording.copy_to(from, to).unwrap_err().code(), "unsupported");
    }
    let usage = BufferUsages::STORAGE | BufferUsages::COPY_SRC;
    let read_only = BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false };
    let read_only = Column::from_buffer(gpu.device().create_buffer(&read_only), 0, 4).unwrap();
    assert_eq!(recording.copy_to(&numbers, &read_only).unwrap_err().code(), "unsupported");
    // 33 halves take 17 words
    let of = |first, len| Column::from_buffer_of(Format::F16, buffer(gpu, 256 + 68), first, len).map(drop);
    assert_eq!((of(128, 33), of(128, 34)), (Ok(()), Ok(())));
    assert!(of(128, 35).is_err() && of(63, 1).is_err() && of(u64::MAX / 256 * 128, 1).is_err());
}
