//! Who computes the losses: the core in `f64`, or the GPU in `f32`.

#[cfg(feature = "gpu-shim")]
pub(crate) use gpu::Compute;

#[cfg(not(feature = "gpu-shim"))]
pub(crate) use cpu::Compute;

/// Without feature `gpu-shim`.
#[cfg(not(feature = "gpu-shim"))]
mod cpu {
    use tokenwise::Batch;

    use crate::{
        args::EngineChoice,
        failure::{Failure, Result},
    };

    /// The core.
    pub(crate) struct Compute;

    impl Compute {
        pub(crate) fn new(choice: EngineChoice) -> Result<Self> {
            match choice {
                EngineChoice::Gpu => Err(Failure::usage(
                    "--engine gpu: this build has no GPU engine; build tokenwise-cli with `--features gpu-shim`",
                )),
                EngineChoice::Cpu | EngineChoice::Auto => Ok(Self),
            }
        }

        /// Never an answer: the caller computes.
        pub(crate) fn loss<C, const N: usize>(
            &self,
            _: &'static str,
            _: &Batch<'_>,
            _: &[(&'static str, &[f64])],
            _: &C,
            _: [&str; N],
        ) -> Option<[f64; N]> {
            None
        }

        pub(crate) fn report(&self) {}
    }
}

#[cfg(feature = "gpu-shim")]
mod gpu {
    use std::{cell::RefCell, time::Duration};

    use serde::Serialize;
    use tokenwise::Batch;
    use tokenwise_catalogue::{find, Array, Call, Columns, Value};
    use tokenwise_gpu::{Engine, Gpu, Reason, Report};

    use crate::{
        args::EngineChoice,
        failure::{Failure, Result},
        output::count,
    };

    /// An engine, if one was asked for, and what it did.
    pub(crate) struct Compute {
        engine: Option<Engine>,
        done: RefCell<Vec<Done>>,
    }

    /// The calls of one formula.
    struct Done {
        formula: &'static str,
        gpu_calls: u64,
        time: Duration,
        bytes_up: u64,
        bytes_down: u64,
        dispatches: u64,
        core_calls: u64,
        /// Why the core computed, the last time.
        reason: Option<Reason>,
    }

    impl Compute {
        pub(crate) fn new(choice: EngineChoice) -> Result<Self> {
            let engine = match choice {
                EngineChoice::Cpu => None,
                EngineChoice::Gpu => {
                    let gpu = pollster::block_on(Gpu::new());
                    Some(Engine::gpu(gpu.map_err(|error| Failure::usage(format!("--engine gpu: {error}")))?))
                }
                EngineChoice::Auto => Some(pollster::block_on(Engine::new())),
            };
            Ok(Self { engine, done: RefCell::default() })
        }

        /// The numbers of a loss, if the GPU computes them.
        pub(crate) fn loss<C: Serialize, const N: usize>(
            &self,
            formula: &'static str,
            batch: &Batch<'_>,
            columns: &[(&'static str, &[f64])],
            config: &C,
            names: [&str; N],
        ) -> Option<[f64; N]> {
            let (engine, entry) = (self.engine.as_ref()?, find(formula)?);
            let config: Value = serde_json::from_value(serde_json::to_value(config).ok()?).ok()?;
            let mut inputs = Columns::<f32>::new();
            for &(name, numbers) in columns {
                inputs.set(name, Array::Real(numbers.iter().map(|&x| x as f32).collect()));
            }
            let mut outputs = entry.outputs_for(Some(batch), None, &inputs);
            let mut call = Call::new(Some(*batch), None, &inputs, &config, &mut outputs);
            let done = pollster::block_on(engine.try_call(entry, &mut call));
            let numbers = done.is_ok().then(|| {
                names.map(|name| {
                    let found = call.numbers.iter().find(|(known, _)| known == name);
                    found.map_or(f64::NAN, |(_, number)| *number)
                })
            });
            self.add(formula, done);
            numbers
        }

        fn add(&self, formula: &'static str, result: std::result::Result<Report, Reason>) {
            let mut all = self.done.borrow_mut();
            let place = all.iter().position(|done| done.formula == formula).unwrap_or_else(|| {
                all.push(Done {
                    formula,
                    gpu_calls: 0,
                    time: Duration::ZERO,
                    bytes_up: 0,
                    bytes_down: 0,
                    dispatches: 0,
                    core_calls: 0,
                    reason: None,
                });
                all.len() - 1
            });
            let done = &mut all[place];
            match result {
                Ok(report) => {
                    done.gpu_calls += 1;
                    done.time += report.host.unwrap_or_default();
                    done.bytes_up += report.bytes_up;
                    done.bytes_down += report.bytes_down;
                    done.dispatches += u64::from(report.dispatches);
                }
                Err(reason) => {
                    done.core_calls += 1;
                    done.reason = Some(reason);
                }
            }
        }

        /// Who computed, on stderr.
        pub(crate) fn report(&self) {
            let Some(engine) = &self.engine else { return };
            let name = engine.device().map_or_else(|error| format!("none: {error}"), |gpu| gpu.info().name.clone());
            eprintln!("engine: GPU {name}");
            for done in self.done.borrow().iter() {
                if done.gpu_calls > 0 {
                    eprintln!(
                        "engine: {} on the GPU, {}, {:.3?}, {} bytes up, {} bytes down, {}",
                        done.formula,
                        count(done.gpu_calls, "call"),
                        done.time,
                        done.bytes_up,
                        done.bytes_down,
                        count(done.dispatches, "dispatch"),
                    );
                }
                if let Some(reason) = &done.reason {
                    let calls = count(done.core_calls, "call");
                    eprintln!("engine: {} on the core, {calls}: {reason}", done.formula);
                }
            }
            eprintln!("engine: everything else on the core");
        }
    }
}
