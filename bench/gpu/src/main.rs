//! The chain on one device three ways: fused by tokenwise-gpu, one kernel per tensor operation, and burn. Prints one
//! record per line; `cargo xtask bench --only gpu` builds and runs it.
//!
//! ```text
//! measure            times, in turns, on the device that burn makes
//! count FOLDER       dispatches and bytes, from a trace of the device written to FOLDER
//! growth             times of the fused chain as batches grow
//! check R W V B      how far the ways differ on R responses of W tokens with vocabulary V, 0 for no logits, if tensors
//!                    have at most B bytes
//! ```

mod data;
mod fused;
mod operations;
mod peer;
mod tensor;
mod trace;

use std::{
    env,
    error::Error,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use burn::tensor::{wgpu::WgpuSetup, Device};
use serde_json::json;
use tokenwise_gpu::{wgpu, Gpu, GpuOptions};

use crate::{
    data::{Answer, Data},
    fused::Fused,
    operations::Operations,
    peer::{Peer, Style},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Responses, tokens of each, vocabulary.
const SHAPES: [(usize, usize, usize); 2] = [(256, 4096, 0), (8, 64, 151_936)];
/// Time for one shape.
const BUDGET: Duration = Duration::from_secs(20);
const LEAST_ROUNDS: usize = 3;
/// Largest difference of a gradient from that of the fused chain, relative to its largest number.
const TOLERANCE: f64 = 1e-3;
const NAMES: [&str; 4] = ["ours", "operations", "burn tuned", "burn"];

fn main() -> Result<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    match words[..] {
        ["measure"] => measure(),
        ["count", folder] => count(Path::new(folder)),
        ["growth"] => growth(),
        ["check", rows, width, vocab, bytes] => check((rows.parse()?, width.parse()?, vocab.parse()?), bytes.parse()?),
        _ => Err("expected measure, count FOLDER, growth, or check ROWS WIDTH VOCABULARY BYTES".into()),
    }
}

fn shape((rows, width, vocab): (usize, usize, usize)) -> String {
    match vocab {
        0 => format!("{rows}×{width}"),
        _ => format!("{}×{vocab}", rows * width),
    }
}

/// All ways over one batch.
struct Ways<'a> {
    fused: Fused<'a>,
    operations: Operations<'a>,
    peer: Peer<'a>,
}

impl<'a> Ways<'a> {
    fn new(gpu: &'a Gpu, device: &Device, data: &'a Data) -> Result<Self> {
        Ok(Self {
            fused: Fused::new(gpu, data)?,
            operations: Operations::new(gpu, data),
            peer: Peer::new(device, data, gpu.max_buffer_bytes()),
        })
    }

    fn run(&self, way: usize) -> Result<()> {
        match way {
            0 => Ok(self.fused.run().map(drop)?),
            1 => self.operations.run(),
            2 => self.peer.run(Style::Tuned),
            _ => self.peer.run(Style::Trainer),
        }
    }

    fn answer(&self, way: usize) -> Result<Answer> {
        match way {
            0 => Ok(self.fused.answer()?),
            1 => self.operations.answer(),
            2 => self.peer.answer(Style::Tuned),
            _ => self.peer.answer(Style::Trainer),
        }
    }

    /// Differences of loss and gradient from those of the fused chain, relative to the largest number of each. Fails if
    /// a way does not compute the same.
    fn differences(&self) -> Result<Vec<(f64, f64)>> {
        let ours = self.answer(0)?;
        let mut differences = vec![(0.0, 0.0)];
        for (way, name) in NAMES.iter().enumerate().skip(1) {
            let (loss, grad) = difference(&ours, &self.answer(way)?);
            let same = grad <= TOLERANCE && loss <= TOLERANCE;
            if !same {
                return Err(
                    format!("{name} computes something else: loss off by {loss:e}, gradient by {grad:e}").into()
                );
            }
            differences.push((loss, grad));
        }
        Ok(differences)
    }
}

/// Differences of loss and gradient, relative to the largest number of each; infinite for another number of entries.
fn difference(ours: &Answer, other: &Answer) -> (f64, f64) {
    if ours.grad.len() != other.grad.len() {
        return (f64::INFINITY, f64::INFINITY);
    }
    let most = ours.grad.iter().fold(0.0_f32, |most, grad| most.max(grad.abs()));
    let pairs = ours.grad.iter().zip(&other.grad);
    let grad = pairs.fold(0.0_f32, |largest, (ours, other)| {
        let distance = (ours - other).abs();
        // NaN stays
        if largest >= distance || largest.is_nan() {
            largest
        } else {
            distance
        }
    });
    ((ours.loss - other.loss).abs() / ours.loss.abs(), f64::from(grad / most))
}

fn on(setup: &WgpuSetup, options: &GpuOptions) -> Result<Gpu> {
    Ok(Gpu::from_device(setup.device.clone(), setup.queue.clone(), setup.adapter.get_info(), options)?)
}

fn measure() -> Result<()> {
    let (device, setup) = Device::wgpu_options().init_with_setup()?;
    let gpu = on(&setup, &GpuOptions::default())?;
    let info = gpu.info();
    println!(
        "{}",
        json!({ "adapter": info.name, "driver": info.driver_info, "backend": format!("{:?}", info.backend) })
    );
    for of in SHAPES {
        let data = Data::new(of.0, of.1, of.2)?;
        let ways = Ways::new(&gpu, &device, &data)?;
        // compiles and tunes
        let differences = ways.differences()?;
        (0..NAMES.len()).try_for_each(|way| ways.run(way))?;
        let mut times = vec![Vec::new(); NAMES.len()];
        let begin = Instant::now();
        while begin.elapsed() < BUDGET || times[0].len() < LEAST_ROUNDS {
            for (way, times) in times.iter_mut().enumerate() {
                let begin = Instant::now();
                ways.run(way)?;
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
        for (way, name) in NAMES.iter().enumerate() {
            let (loss, grad) = differences[way];
            let record = json!({
                "item": "gpu", "shape": shape(of), "who": name, "ms": median(&mut times[way]),
                "tokens": data.tokens(), "rounds": times[way].len(), "loss": loss, "gradient": grad,
            });
            println!("{record}");
        }
    }
    Ok(())
}

fn check(of: (usize, usize, usize), max_buffer_bytes: u64) -> Result<()> {
    let (device, setup) = Device::wgpu_options().init_with_setup()?;
    let options = GpuOptions { max_buffer_bytes, ..Default::default() };
    let (gpu, data) = (on(&setup, &options)?, Data::new(of.0, of.1, of.2)?);
    let ways = Ways::new(&gpu, &device, &data)?;
    let ours = ways.answer(0)?;
    for (way, name) in NAMES.iter().enumerate() {
        let (loss, grad) = difference(&ours, &ways.answer(way)?);
        println!("{name}: loss off by {loss:e}, gradient by {grad:e}");
    }
    Ok(())
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}

fn count(folder: &Path) -> Result<()> {
    // an earlier trace would be appended to
    if folder.exists() {
        fs::remove_dir_all(folder)?;
    }
    fs::create_dir_all(folder)?;
    let setup = pollster::block_on(traced(folder))?;
    let gpu = on(&setup, &GpuOptions::default())?;
    let device = Device::wgpu_options().setup(setup).init()?;
    for of in SHAPES {
        let data = Data::new(of.0, of.1, of.2)?;
        let ways = Ways::new(&gpu, &device, &data)?;
        for (way, name) in NAMES.iter().enumerate() {
            // the first run compiles and tunes
            ways.run(way)?;
            device.sync()?;
            let from = trace::position(folder)?;
            ways.run(way)?;
            let moved = trace::moved(folder, from, trace::position(folder)?)?;
            let mut record = json!({ "item": "gpu", "shape": shape(of), "who": name, "dispatches": moved.dispatches });
            // its loop binds whole tensors and reads a column of each
            if of.2 > 0 || *name != "burn" {
                record["bytes"] = (moved.bytes as f64 / data.tokens() as f64).into();
            }
            println!("{record}");
        }
    }
    Ok(fs::remove_dir_all(folder)?)
}

/// A device like the one that burn makes, with a trace.
async fn traced(folder: &Path) -> Result<WgpuSetup> {
    let instance = wgpu::Instance::new(wgpu::InstanceDescriptor::new_without_display_handle());
    let power_preference = wgpu::PowerPreference::HighPerformance;
    let adapter =
        instance.request_adapter(&wgpu::RequestAdapterOptions { power_preference, ..Default::default() }).await?;
    let left_out = wgpu::Features::MAPPABLE_PRIMARY_BUFFERS | wgpu::Features::all_experimental_mask();
    let (device, queue) = adapter
        .request_device(&wgpu::DeviceDescriptor {
            required_features: adapter.features().difference(left_out),
            required_limits: adapter.limits(),
            memory_hints: wgpu::MemoryHints::MemoryUsage,
            trace: wgpu::Trace::Directory(folder.to_owned()),
            ..Default::default()
        })
        .await?;
    let backend = adapter.get_info().backend;
    Ok(WgpuSetup { instance, adapter, device, queue, backend })
}

/// Time per token of the fused chain after the log-probabilities, and of the advantages by the length of a response.
fn growth() -> Result<()> {
    let gpu = pollster::block_on(Gpu::new())?;
    for tokens in [10_000, 100_000, 1_000_000, 10_000_000] {
        let data = Data::new(tokens / 1000, 1000, 0)?;
        let fused = Fused::new(&gpu, &data)?;
        let ms = repeated(|| Ok(fused.run().map(drop)?))?;
        println!("{}", json!({ "growth": "gpu chain", "tokens": tokens, "width": 1000, "ms": ms }));
    }
    let shapes = [(1000, 1000), (1, 1_000_000)];
    let [several, one] = shapes.map(|(rows, width)| Data::full(rows, width));
    let (several, one) = (several?, one?);
    let fused = [Fused::new(&gpu, &several)?, Fused::new(&gpu, &one)?];
    let mut times = [Vec::new(), Vec::new()];
    for round in 0..23 {
        for (fused, times) in fused.iter().zip(&mut times) {
            let begin = Instant::now();
            fused.advantages()?;
            // the first make the pipelines
            if round > 1 {
                times.push(begin.elapsed().as_secs_f64() * 1e3);
            }
        }
    }
    for ((_, width), times) in shapes.into_iter().zip(&mut times) {
        println!("{}", json!({ "growth": "gpu gae", "tokens": 1_000_000, "width": width, "ms": median(times) }));
    }
    Ok(())
}

/// The median of calls during two seconds, at least five.
fn repeated(mut call: impl FnMut() -> Result<()>) -> Result<f64> {
    call()?;
    call()?;
    let (mut times, begin) = (Vec::new(), Instant::now());
    while begin.elapsed() < Duration::from_secs(2) || times.len() < 5 {
        let begin = Instant::now();
        call()?;
        times.push(begin.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(&mut times))
}
