//! Every call that the golden cases make of a covered formula, and calls with random numbers, on a device and against
//! the core in `f64`.
#![forbid(unsafe_code)]

#[cfg(target_arch = "wasm32")]
mod browser;
mod columns;
pub mod random;

use tokenwise::{Batch, Groups, Layout, Mask};
use tokenwise_catalogue::{find, Array, Call, Columns, Entry, Number, Refusal, Value};
use tokenwise_gpu::{
    coverage,
    tolerance::{self, Tolerance},
    Gpu, Ran, Reason, Report,
};
use tokenwise_tests::golden::RecordedCall;

pub use columns::wide;
use columns::{in_single, magnitude, narrow, same_bits};

/// Who answered a call that agrees with the core.
#[derive(Clone, Debug, PartialEq)]
pub enum Answered {
    /// The device, within the tolerance of the formula.
    Device,
    /// The core, with its bits, because of special values.
    Core,
    /// Nobody: it was refused with the core's error.
    Refused,
    /// The formula has no kernel.
    LeftOut,
}

type Numbers = Vec<(String, f64)>;

/// Where the tokens of a call lie.
struct Tokens<'c> {
    batch: Batch<'c>,
    groups: Groups<'c>,
}

impl Tokens<'_> {
    fn on_core<R: Number>(
        &self,
        entry: &Entry,
        inputs: &Columns<R>,
        config: &Value,
    ) -> Result<(Columns<R>, Numbers), Refusal> {
        let mut outputs = entry.outputs_for(Some(&self.batch), Some(&self.groups), inputs);
        let mut call = Call::new(Some(self.batch), Some(self.groups), inputs, config, &mut outputs);
        entry.call(&mut call)?;
        let numbers = call.numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Ok((outputs, numbers))
    }

    async fn on_gpu(
        &self,
        gpu: &Gpu,
        entry: &Entry,
        inputs: &Columns<f32>,
        config: &Value,
    ) -> Result<(Columns<f32>, Numbers, Report), tokenwise_gpu::GpuError> {
        let mut outputs = entry.outputs_for(Some(&self.batch), Some(&self.groups), inputs);
        let mut call = Call::new(Some(self.batch), Some(self.groups), inputs, config, &mut outputs);
        let report = gpu.call(entry, &mut call).await?;
        let numbers = call.numbers.iter().map(|(name, number)| (name.to_string(), *number)).collect();
        Ok((outputs, numbers, report))
    }
}

/// How far a number may be from the exact one.
struct Allowed {
    tolerance: Tolerance,
    scale: f64,
}

impl Allowed {
    /// The core in `f32` rounds fewer steps: in an ill-conditioned case the device may err by a multiple of its error.
    fn check(&self, what: &str, got: f64, exact: f64, core: f64) -> Result<(), String> {
        let error = (core - exact).abs();
        let lost = if error.is_finite() { 16.0 * error } else { 0.0 };
        let allowed = self.tolerance.at(self.scale.max(exact.abs())) + lost;
        let same = got == exact || (got.is_nan() && exact.is_nan());
        if same || (got - exact).abs() <= allowed {
            Ok(())
        } else {
            Err(format!("{what}: got {got}, exact {exact}, allowed {allowed}"))
        }
    }
}

/// Runs a call on a device and compares every number with the core in `f64`.
///
/// # Errors
///
/// The first difference beyond the tolerance of the formula, with both numbers and the call.
pub async fn check(gpu: &Gpu, call: &RecordedCall) -> Result<Answered, String> {
    let name = call.name;
    let case = || format!("{name} {:?} {:?}", call.config, call.inputs);
    let entry = find(name).ok_or_else(|| format!("{name}: not a formula of the catalogue"))?;
    let covered = coverage::table().any(|(known, why)| known == name && why.is_none());
    let inputs = narrow(&call.inputs)?;
    if !covered {
        return Ok(Answered::LeftOut);
    }
    let width = call.keep.len().checked_div(call.rows).unwrap_or(0);
    let ids = call.groups.clone().unwrap_or_else(|| vec![0; call.rows]);
    let layout = Layout::padded(call.rows, width).map_err(|error| error.to_string())?;
    let tokens = Tokens {
        batch: Batch::new(layout, Mask::new(&call.keep)).map_err(|error| error.to_string())?,
        groups: Groups::from_ids(&ids).map_err(|error| error.to_string())?,
    };
    let found = tokens.on_gpu(gpu, entry, &inputs, &call.config).await;
    let exact = tokens.on_core(entry, &wide(&inputs)?, &in_single(&call.config));
    let ((outputs, numbers, report), (exact_outputs, exact_numbers)) = match (found, exact) {
        (Ok(found), Ok(exact)) => (found, exact),
        (Err(error), Err(refusal)) if error == refusal.clone().into() => return Ok(Answered::Refused),
        (found, exact) => {
            let (found, exact) = (found.map(|(.., report)| report), exact.map(|(_, numbers)| numbers));
            return Err(format!("{found:?}, the core {exact:?}: {}", case()));
        }
    };
    let core = tokens.on_core(entry, &inputs, &call.config);
    let (core_outputs, core_numbers) = core.map_err(|refusal| format!("{refusal}: {}", case()))?;
    if let Ran::Core(reason) = &report.ran {
        let same = core_outputs.iter().all(|(output, core)| same_bits(outputs.get(output), core));
        return match reason {
            Reason::Special if same && format!("{numbers:?}") == format!("{core_numbers:?}") => Ok(Answered::Core),
            _ => Err(format!(
                "{reason}: {outputs:?} {numbers:?}, the core {core_outputs:?} {core_numbers:?}: {}",
                case()
            )),
        };
    }
    let tolerance = tolerance::of(name);
    let recursion = tolerance == tolerance::GAE || tolerance == tolerance::SUM;
    let allowed = Allowed { tolerance, scale: if recursion { magnitude(&call.keep, &inputs) } else { 0.0 } };
    let check = |what: &str, got, exact, core| {
        allowed.check(what, got, exact, core).map_err(|difference| format!("{difference}: {}", case()))
    };
    for (output, exact) in exact_outputs.iter() {
        match (exact, outputs.get(output), core_outputs.get(output)) {
            (Array::Real(exact), Some(Array::Real(got)), Some(Array::Real(core))) if got.len() == exact.len() => {
                for (slot, ((&got, &exact), &core)) in got.iter().zip(exact).zip(core).enumerate() {
                    check(&format!("{output}[{slot}]"), got.into(), exact, core.into())?;
                }
            }
            (Array::Flag(_), got, core) if got == core => {}
            (exact, got, _) => return Err(format!("{output}: {got:?} instead of {exact:?}: {}", case())),
        }
    }
    if numbers.len() != exact_numbers.len() {
        return Err(format!("{numbers:?} instead of {exact_numbers:?}: {}", case()));
    }
    for (((number, got), (_, exact)), (_, core)) in numbers.iter().zip(&exact_numbers).zip(&core_numbers) {
        check(number, *got, *exact, *core)?;
    }
    Ok(Answered::Device)
}
