//! From which size on the device is faster than the core, measured on the machine.

use tokenwise::{
    advantage::{gae, GaeConfig, GaeInput, GaeOutput},
    loss::{ppo_clip, PolicyLossInput, PpoConfig},
    policy::{log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
    Batch, Layout, Mask,
};

use crate::{
    context::Gpu,
    engine::Engine,
    error::GpuError,
    report::{Clock, Reason},
    thresholds::{Family, Thresholds},
};

/// Runs of each measurement, of which the shortest counts. The first one also makes the pipelines.
const RUNS: usize = 4;
/// Entries per row of the measured logits.
const VOCAB: usize = 4096;
/// Slots per row of the measured batches.
const ROW: usize = 1024;

/// The two measured sizes of a family, in the unit of its threshold.
const fn sizes(family: Family) -> [usize; 2] {
    match family {
        Family::Logits => [1 << 17, 1 << 21],
        Family::Tokens | Family::Scans => [1 << 14, 1 << 18],
    }
}

/// Seconds of one call as `fixed + per_unit · work`.
#[derive(Clone, Copy, Debug)]
struct Cost {
    fixed: f64,
    per_unit: f64,
}

impl Cost {
    /// The line through two measurements.
    fn through(sizes: [usize; 2], seconds: [f64; 2]) -> Self {
        let [small, large] = sizes.map(|size| size as f64);
        let per_unit = ((seconds[1] - seconds[0]) / (large - small)).max(0.0);
        Self { fixed: (seconds[0] - per_unit * small).max(0.0), per_unit }
    }

    /// The work from which `device` is cheaper than `self`.
    fn crossing(self, device: Self) -> u64 {
        let gain = self.per_unit - device.per_unit;
        if device.fixed <= self.fixed && gain >= 0.0 {
            return 0;
        }
        match gain > 0.0 {
            // saturates
            true => ((device.fixed - self.fixed) / gain).ceil() as u64,
            false => u64::MAX,
        }
    }
}

impl Engine {
    /// Measures the core and the device at two sizes of each [`Family`] and returns the sizes from which the device is
    /// faster, `u64::MAX` where it never is. Takes a few hundred milliseconds. The result can be stored and given to
    /// [`Engine::with_thresholds`] in later runs on the same machine.
    ///
    /// # Errors
    ///
    /// [`GpuError::NoAdapter`] and the like if there is no device; the error of a device that fails;
    /// [`GpuError::Unsupported`] where the host has no clock.
    pub async fn calibrate(&self) -> Result<Thresholds, GpuError> {
        let gpu = self.device().map_err(Clone::clone)?;
        let mut thresholds = Thresholds::NEVER;
        for family in [Family::Logits, Family::Tokens, Family::Scans] {
            let mut costs = [[f64::INFINITY; 2]; 2];
            for (size, place) in sizes(family).into_iter().zip(0..) {
                for _ in 0..RUNS {
                    costs[0][place] = costs[0][place].min(seconds(family, size, None).await?);
                    costs[1][place] = costs[1][place].min(seconds(family, size, Some(gpu)).await?);
                }
            }
            let [core, device] = costs.map(|seconds| Cost::through(sizes(family), seconds));
            let threshold = core.crossing(device);
            match family {
                Family::Logits => thresholds.logits = threshold,
                Family::Tokens => thresholds.tokens = threshold,
                Family::Scans => thresholds.scans = threshold,
            }
        }
        Ok(thresholds)
    }
}

/// Numbers between −2 and 0 that are not all the same.
fn numbers(len: usize) -> Vec<f32> {
    (0..len).map(|index| (index % 97) as f32 / -48.5).collect()
}

/// Seconds of one call on the device, or on the core if there is none.
async fn seconds(family: Family, work: usize, gpu: Option<&Gpu>) -> Result<f64, GpuError> {
    let rows = if family == Family::Logits { work / VOCAB } else { work / ROW };
    let width = if family == Family::Logits { 1 } else { ROW };
    let tokens = rows * width;
    let (keep, mut first, mut second) = (vec![true; tokens], vec![0.0; tokens], vec![0.0; tokens]);
    let batch = Batch::new(Layout::padded(rows, width)?, Mask::new(&keep))?;
    let columns = numbers(if family == Family::Logits { work } else { tokens });
    let clock;
    match family {
        Family::Logits => {
            let (config, ids) = (PolicyConfig::default(), vec![1; tokens]);
            let input = LogProbInput { logits: &columns, vocab: VOCAB, tokens: &ids };
            let output = LogProbOutput { log_probs: &mut first, entropy: &mut second };
            clock = Clock::start();
            match gpu {
                Some(gpu) => drop(gpu.log_probs_and_entropy(&batch, input, &config, output).await?),
                None => log_probs_and_entropy(&batch, input, &config, output)?,
            }
        }
        Family::Tokens => {
            let config = PpoConfig::default();
            let input = PolicyLossInput::new(&columns, &columns, &columns);
            clock = Clock::start();
            match gpu {
                Some(gpu) => drop(gpu.ppo_clip(&batch, input, &config, &mut first).await.map_err(error)?),
                None => drop(ppo_clip(&batch, input, &config, &mut first)?),
            }
        }
        Family::Scans => {
            let (config, bootstrap) = (GaeConfig::default(), vec![0.0; rows]);
            let input = GaeInput { rewards: &columns, values: &columns, bootstrap: &bootstrap };
            let output = GaeOutput { advantages: &mut first, returns: &mut second };
            clock = Clock::start();
            match gpu {
                Some(gpu) => drop(gpu.gae(&batch, input, &config, output).await?),
                None => gae(&batch, input, &config, output)?,
            }
        }
    }
    let elapsed = clock.elapsed().ok_or(GpuError::Unsupported("the host has no clock"))?;
    Ok(elapsed.as_secs_f64())
}

fn error(reason: Reason) -> GpuError {
    match reason {
        Reason::Failed(error) => error,
        _ => GpuError::Unsupported("the measured numbers are finite"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_where_the_lines_cross() {
        let line = |fixed, per_unit| Cost { fixed, per_unit };
        assert_eq!(line(0.0, 2.0).crossing(line(10.0, 1.0)), 10);
        assert_eq!(line(0.0, 1.0).crossing(line(10.0, 2.0)), u64::MAX);
        assert_eq!(line(0.0, 1.0).crossing(line(10.0, 1.0)), u64::MAX);
        assert_eq!(line(5.0, 2.0).crossing(line(1.0, 1.0)), 0);
        let through = Cost::through([10, 20], [3.0, 5.0]);
        assert!((through.fixed - 1.0).abs() < 1e-12 && (through.per_unit - 0.2).abs() < 1e-12);
        // noise: the larger call was faster
        assert_eq!(Cost::through([10, 20], [3.0, 2.0]).per_unit, 0.0);
    }
}
