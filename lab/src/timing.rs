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
    /// Seconds in formulas of tokenwise, gradients included.
    pub formulas: f64,
}

impl Clock {
    /// Runs a stage.
    pub fn stage<T>(&mut self, name: &'static str, run: impl FnOnce(&mut Self) -> T) -> T {
        let start = Instant::now();
        let result = run(self);
        self.stages.push((name, start.elapsed().as_secs_f64()));
        result
    }

    /// Runs formulas.
    pub fn formula<T>(&mut self, run: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = run();
        self.formulas += start.elapsed().as_secs_f64();
        result
    }
}

/// Tells the formulas' part of a backward pass from the network's: notes when the gradient reaches a tensor.
#[derive(Clone, Debug, Default)]
pub struct Watch(Arc<Mutex<Option<Instant>>>);

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
            clock.formulas += reached.duration_since(started).as_secs_f64();
        }
        Ok(gradients)
    }

    fn reached(&self) -> Option<Instant> {
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
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(Instant::now());
        Ok(Some(of_result.clone()))
    }
}
