//! A device that fails, a future that is dropped: the core answers, and nothing is half-written.

use std::{
    future::Future,
    pin::pin,
    task::{Context, Poll, Waker},
    thread,
    time::Duration,
};

use tokenwise::{
    advantage::{whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    divergence::{kl_estimate, KlConfig, KlInput},
    Batch, Layout, Mask,
};
use tokenwise_gpu::{
    wgpu::{Buffer, BufferDescriptor, BufferUsages},
    Column, Engine, Gpu, GpuBatch, GpuError, GpuOptions, Ran, Reason, Report,
};

use crate::{
    adapter::{made, small_gpu},
    random::Random,
};

struct Data {
    keep: Vec<bool>,
    first: Vec<f32>,
    second: Vec<f32>,
    rows: usize,
}

impl Data {
    fn new(rows: usize, width: usize) -> Self {
        let mut random = Random::new(70);
        let tokens = rows * width;
        let (first, second) = (random.normals(tokens, 1.0), random.normals(tokens, 1.0));
        Self { keep: random.mask(tokens, 80), first, second, rows }
    }

    fn batch(&self) -> Batch<'_> {
        Batch::new(Layout::padded(self.rows, self.keep.len() / self.rows).unwrap(), Mask::new(&self.keep)).unwrap()
    }

    fn kl_input(&self) -> KlInput<'_, f32> {
        KlInput { log_probs: &self.first, ref_log_probs: &self.second }
    }

    /// KL estimates by the engine, which must be those of the core.
    fn kl(&self, engine: &Engine) -> Report {
        let (mut got, mut exact) = (vec![9.0; self.keep.len()], vec![9.0; self.keep.len()]);
        let report =
            pollster::block_on(engine.kl_estimate(&self.batch(), self.kl_input(), &KlConfig::default(), &mut got));
        kl_estimate(&self.batch(), self.kl_input(), &KlConfig::default(), &mut exact).unwrap();
        for (slot, (got, exact)) in got.iter().zip(&exact).enumerate() {
            assert!((got - exact).abs() <= 1e-5 * (1.0 + exact.abs()), "{slot}: {got}, {exact}");
        }
        report.unwrap()
    }

    /// Whitened numbers by the engine, which must be those of the core.
    fn whiten(&self, engine: &Engine) -> Report {
        let (mut got, mut exact) = (vec![9.0; self.keep.len()], vec![9.0; self.keep.len()]);
        let config = WhitenConfig::default();
        let report = pollster::block_on(engine.whiten(&self.batch(), &self.first, &config, &mut got)).unwrap();
        whiten(&self.batch(), &self.first, &config, &mut exact).unwrap();
        for (slot, (got, exact)) in got.iter().zip(&exact).enumerate() {
            assert!((got - exact).abs() <= 1e-5 * (1.0 + exact.abs()), "{slot}: {got}, {exact}");
        }
        report
    }
}

fn engine() -> Option<Engine> {
    Some(Engine::gpu(small_gpu(64 << 20)?))
}

/// Polls a future once: its work is then with the device, and it waits.
#[track_caller]
fn start<F: Future>(future: std::pin::Pin<&mut F>) {
    let polled = future.poll(&mut Context::from_waker(Waker::noop()));
    assert!(matches!(polled, Poll::Pending), "there was nothing to wait for");
}

fn foreign(gpu: &Gpu, len: u64) -> Buffer {
    gpu.device().create_buffer(&BufferDescriptor {
        label: Some("foreign"),
        size: 4 * len,
        usage: BufferUsages::STORAGE | BufferUsages::COPY_SRC | BufferUsages::COPY_DST,
        mapped_at_creation: false,
    })
}

#[test]
fn a_device_lost_in_the_middle_leaves_the_call_to_the_core() {
    let Some(engine) = engine() else { return };
    let data = Data::new(64, 4096);
    let batch = data.batch();
    let (mut got, mut exact) = (vec![9.0; data.keep.len()], vec![9.0; data.keep.len()]);
    let config = KlConfig::default();
    {
        let mut future = pin!(engine.kl_estimate(&batch, data.kl_input(), &config, &mut got));
        start(future.as_mut());
        engine.device().unwrap().destroy();
        let report = pollster::block_on(future).unwrap();
        assert!(matches!(report.ran, Ran::Core(Reason::Failed(GpuError::Lost(_)))), "{report:?}");
    }
    kl_estimate(&batch, data.kl_input(), &config, &mut exact).unwrap();
    assert_eq!(got, exact);
    assert!(matches!(data.whiten(&engine).ran, Ran::Core(Reason::Failed(GpuError::Lost(_)))));
}

/// At any moment: whoever answers, the numbers are right.
#[test]
fn a_device_lost_at_any_time_is_no_panic() {
    let data = Data::new(16, 4096);
    for delay in [0, 200, 500, 1000, 2000, 5000] {
        let Some(engine) = engine() else { return };
        data.kl(&engine);
        thread::scope(|scope| {
            let worker = scope.spawn(|| (0..4).map(|_| data.kl(&engine).ran).collect::<Vec<_>>());
            thread::sleep(Duration::from_micros(delay));
            engine.device().unwrap().destroy();
            for ran in worker.join().unwrap() {
                assert!(matches!(ran, Ran::Gpu | Ran::Core(Reason::Failed(_))), "{ran:?}");
            }
        });
        assert!(matches!(data.kl(&engine).ran, Ran::Core(Reason::Failed(GpuError::Lost(_)))));
    }
}

#[test]
fn out_of_memory_splits_the_batch_or_leaves_it_to_the_core() {
    let Some(gpu) = made(&GpuOptions { max_memory_bytes: 1 << 20, ..Default::default() }) else { return };
    let engine = Engine::gpu(gpu);
    let large = Data::new(64, 4096);
    // 1 MiB per column: in parts
    let report = large.kl(&engine);
    assert!(report.ran == Ran::Gpu && report.dispatches >= 4, "{report:?}");
    // statistics of the whole batch cannot be split
    assert_eq!(large.whiten(&engine).ran, Ran::Core(Reason::Failed(GpuError::OutOfMemory)));
    // nothing is left over
    let small = Data::new(4, 1000);
    assert_eq!(small.whiten(&engine).ran, Ran::Gpu);
    assert_eq!(small.kl(&engine).ran, Ran::Gpu);
    // a column of the caller's takes what there is
    let gpu = engine.device().unwrap();
    let mut recording = gpu.record();
    let held = recording.upload(&vec![0.0; 200_000]).unwrap();
    drop(recording);
    assert_eq!(Data::new(1, 20_000).kl(&engine).ran, Ran::Core(Reason::Failed(GpuError::OutOfMemory)));
    drop(held);
    assert_eq!(Data::new(1, 20_000).kl(&engine).ran, Ran::Gpu);
}

/// Buffers of another device, and buffers that were destroyed, are invalid: the device reports it and goes on.
#[test]
fn a_validation_error_is_an_error_and_the_device_goes_on() {
    let (Some(gpu), Some(other)) = (small_gpu(1 << 20), small_gpu(1 << 20)) else { return };
    let data = Data::new(1, 1000);
    let destroyed = foreign(&gpu, 1000);
    let columns =
        [foreign(&other, 1000), destroyed.clone()].map(|buffer| Column::from_buffer(buffer, 0, 1000).unwrap());
    destroyed.destroy();
    for column in columns {
        let batch = GpuBatch::new(data.batch());
        let mut recording = gpu.record();
        recording.moments(&batch, &column.into()).unwrap();
        let error = pollster::block_on(recording.submit()).unwrap_err();
        assert_eq!(error.code(), "validation", "{error}");
    }
    // an error outside of our calls is reported once, and the core answers
    let engine = Engine::gpu(gpu);
    foreign(engine.device().unwrap(), u64::MAX / 8);
    assert!(matches!(data.kl(&engine).ran, Ran::Core(Reason::Failed(GpuError::Validation(_)))));
    assert_eq!(data.kl(&engine).ran, Ran::Gpu);
}

#[test]
fn two_engines_work_at_once() {
    let (Some(first), Some(second)) = (engine(), engine()) else { return };
    let data = Data::new(20, 3000);
    thread::scope(|scope| {
        for engine in [&first, &second, &first] {
            scope.spawn(|| {
                for _ in 0..5 {
                    assert_eq!(data.kl(engine).ran, Ran::Gpu);
                    assert_eq!(data.whiten(engine).ran, Ran::Gpu);
                }
            });
        }
    });
    // one is lost, the other is not
    first.device().unwrap().destroy();
    assert!(matches!(data.kl(&first).ran, Ran::Core(Reason::Failed(GpuError::Lost(_)))));
    assert_eq!(data.kl(&second).ran, Ran::Gpu);
}

/// Two futures of one thread hand their work to the device before either waits.
#[test]
fn futures_of_one_engine_interleave() {
    let Some(engine) = engine() else { return };
    let data = Data::new(20, 3000);
    let (batch, config) = (data.batch(), KlConfig::default());
    let (mut one, mut two) = (vec![9.0; data.keep.len()], vec![9.0; data.keep.len()]);
    {
        let mut first = pin!(engine.kl_estimate(&batch, data.kl_input(), &config, &mut one));
        let mut second = pin!(engine.kl_estimate(&batch, data.kl_input(), &config, &mut two));
        start(first.as_mut());
        start(second.as_mut());
        assert_eq!(pollster::block_on(second).unwrap().ran, Ran::Gpu);
        assert_eq!(pollster::block_on(first).unwrap().ran, Ran::Gpu);
    }
    assert_eq!(one, two);
}

#[test]
fn a_cancelled_future_writes_nothing() {
    let Some(engine) = engine() else { return };
    let data = Data::new(20, 3000);
    let (batch, config, gae) = (data.batch(), KlConfig::default(), GaeConfig::default());
    let (mut one, mut two) = (vec![9.0; data.keep.len()], vec![9.0; data.keep.len()]);
    let bootstrap = [0.0; 20];
    for _ in 0..3 {
        start(pin!(engine.kl_estimate(&batch, data.kl_input(), &config, &mut one)));
        let input = GaeInput { rewards: &data.first, values: &data.second, bootstrap: &bootstrap };
        start(pin!(engine.gae(&batch, input, &gae, GaeOutput { advantages: &mut one, returns: &mut two })));
    }
    assert!(one.iter().chain(&two).all(|&x| x == 9.0));
    assert_eq!(data.kl(&engine).ran, Ran::Gpu);
    // the same in parts, cancelled after some of them
    let Some(gpu) = made(&GpuOptions { max_memory_bytes: 300 << 10, ..Default::default() }) else { return };
    let engine = Engine::gpu(gpu);
    for polls in 1..4 {
        let mut future = pin!(engine.kl_estimate(&batch, data.kl_input(), &config, &mut one));
        for _ in 0..polls {
            let polled = future.as_mut().poll(&mut Context::from_waker(Waker::noop()));
            assert!(polled.is_pending());
        }
    }
    assert!(one.iter().all(|&x| x == 9.0));
    assert_eq!(data.kl(&engine).ran, Ran::Gpu);
}

#[test]
fn an_engine_may_be_dropped_with_work_in_flight() {
    let data = Data::new(64, 4096);
    let (batch, config) = (data.batch(), KlConfig::default());
    let mut kl = vec![9.0; data.keep.len()];
    let Some(engine) = engine() else { return };
    start(pin!(engine.kl_estimate(&batch, data.kl_input(), &config, &mut kl)));
    drop(engine);
    assert!(kl.iter().all(|&kl| kl == 9.0));
    // columns may outlive their device, and other devices do not notice
    let Some(gpu) = small_gpu(1 << 20) else { return };
    let mut recording = gpu.record();
    let column = recording.upload(&data.first[..1000]).unwrap();
    drop(recording);
    drop(gpu);
    assert_eq!(column.len(), 1000);
    drop(column);
    let Some(gpu) = small_gpu(1 << 20) else { return };
    assert_eq!(data.kl(&Engine::gpu(gpu)).ran, Ran::Gpu);
}

#[test]
fn an_engine_without_a_device_answers() {
    let data = Data::new(2, 100);
    assert!(matches!(data.kl(&Engine::cpu()).ran, Ran::Core(Reason::NoGpu(GpuError::NoAdapter(_)))));
}
