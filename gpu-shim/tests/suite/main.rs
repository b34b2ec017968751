//! Compares the shaders with the core and with the textbook in `f64`, on any available adapter.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod adapter;
mod call;
mod chain;
mod configs;
mod edges;
mod engine;
mod errors;
mod faults;
mod gae;
mod golden;
mod group_chain;
mod half;
mod limits;
mod log_probs;
mod losses;
mod reasons;
mod resident;
mod special;
mod textbook;

use tokenwise_gpu::tolerance::Tolerance;
use tokenwise_gpu_golden::random;

/// Largest error of a test relative to its tolerance.
struct Margin {
    what: &'static str,
    tolerance: Tolerance,
    worst: f64,
    worst_error: f64,
}

impl Margin {
    fn new(what: &'static str, tolerance: Tolerance) -> Self {
        Self { what, tolerance, worst: 0.0, worst_error: 0.0 }
    }

    /// Fails unless `got` is within the tolerance of `exact` at this scale.
    #[track_caller]
    fn check(&mut self, case: &str, index: usize, got: f32, exact: f64, scale: f64) {
        let (got, what) = (f64::from(got), self.what);
        let (error, allowed) = ((got - exact).abs(), self.tolerance.at(scale));
        assert!(
            error <= allowed || got == exact,
            "{what}[{index}] of {case}: got {got}, exact {exact}, error {error}, allowed {allowed}"
        );
        if error > 0.0 {
            self.worst = self.worst.max(error / allowed);
            self.worst_error = self.worst_error.max(error);
        }
    }
}

impl Drop for Margin {
    fn drop(&mut self) {
        println!("{}: at most {:.2} of the tolerance, error {:.2e}", self.what, self.worst, self.worst_error);
    }
}
