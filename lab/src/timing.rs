//! Where the time of a step goes.

use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Instant,
};

use candle_core::{backprop::GradStore, CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};
use tokenwise_candle::Loss;

use crate::model::slices::contiguous;

/// Seconds of each stage of a step, and of the token-level formulas within them.
#[derive(Clone, Debug, Default)]
pub struct Clock {
    /// The stages in their order.
    pub stages: Vec<(&'static str, f64)>,
    /// Seconds in which this thread computed in all stages: without those in which it waited for a processor.
    pub computing: f64,
    /// Seconds of these in formulas of tokenwise, gradients included.
    pub formulas: f64,
}

/// Seconds that this thread has computed so far.
#[cfg(unix)]
fn computed() -> f64 {
    cpu_time::ThreadTime::try_now().map_or(0.0, |time| time.as_duration().as_secs_f64())
}

/// Seconds that have passed: Windows counts those of a thread in ticks of 16 ms, as long as a step.
#[cfg(not(unix))]
fn computed() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    START.get_or_init(Instant::now).elapsed().as_secs_f64()
}

impl Clock {
    /// Runs a stage.
    pub fn stage<T>(&mut self, name: &'static str, run: impl FnOnce(&mut Self) -> T) -> T {
        let (start, before) = (Instant::now(), computed());
        let result = run(self);
        self.stages.push((name, start.elapsed().as_secs_f64()));
        self.computing += computed() - before;
        result
    }

    /// Runs formulas.
    pub fn formula<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let before = computed();
        let result = run();
        self.formulas += computed() - before;
        result
    }
}

/// Tells the formulas' part of a backward pass from the network's: notes when the gradient reaches a tensor, on the
/// clock of the thread.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Option<f64>>>);

impl Watch {
    /// The result of a network, watched.
    ///
    /// # Errors
    ///
    /// Those of candle.
    pub fn over(&self, result: &Tensor) -> Result<Tensor> {
        result.apply_op1(self.clone())
    }

    /// Gradients of a loss over the watched result. The way from the loss to that result is that of formulas; candle
    /// has sorted the nodes of the whole network before it.
    ///
    /// # Errors
    ///
    /// Those of candle.
    pub fn backward(&self, loss: &Loss, clock: &mut Clock) -> Result<GradStore> {
        let start = Self::default();
        let gradients = start.over(&loss.tensor)?.backward()?;
        if let (Some(started), Some(reached)) = (start.reached(), self.reached()) {
            clock.formulas += reached - started;
        }
        Ok(gradients)
    }

    fn reached(&self) -> Option<f64> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl CustomOp1 for Watch {
    fn name(&self) -> &'static str {
        "watch"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        Ok((CpuStorage::F32(contiguous(storage, layout)?.to_vec()), layout.shape().clone()))
    }

    fn bwd(&self, _: &Tensor, _: &Tensor, of_result: &Tensor) -> Result<Option<Tensor>> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(computed());
        Ok(Some(of_result.clone()))
    }
}
