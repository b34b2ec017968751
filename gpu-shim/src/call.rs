//! Any covered formula by its name, with the core's errors and, where the device cannot answer, the core's result.

use std::{borrow::Cow, ops::Deref};

use tokenwise::policy::PolicyConfig;
use tokenwise_catalogue::{Array, Call, Entry};

use crate::{
    advantage::GaeColumns,
    batch::GpuBatch,
    column::{Column, Input},
    context::Gpu,
    coverage::{coverage, Coverage, NO_FIT},
    divergence::KlColumns,
    error::GpuError,
    loss::PolicyLossColumns,
    policy::{LogProbColumns, LogitColumns},
    recording::{Pending, Recording},
    report::{Clock, Reason, Report},
    tolerance::Tolerance,
};

/// Named numbers.
pub(crate) type Numbers = Vec<(&'static str, f64)>;

/// What [`Recording::call`] wrote.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Answer {
    /// The outputs, by the names of the entry. Flags are 1 and 0.
    pub columns: Vec<(&'static str, Column)>,
    /// The numbers that the formula returns, by their names, if it returns any.
    pub numbers: Option<Pending<Numbers>>,
}

/// A call by name, some of whose inputs may be on the device already.
pub(crate) struct Request<'c, 'a> {
    call: &'c Call<'a, f32>,
    resident: &'c [(&'c str, Column)],
}

impl<'a> Deref for Request<'_, 'a> {
    type Target = Call<'a, f32>;

    fn deref(&self) -> &Call<'a, f32> {
        self.call
    }
}

impl Request<'_, '_> {
    /// The column of an input that is on the device.
    pub(crate) fn resident(&self, name: &str) -> Option<Input<'static>> {
        self.resident.iter().find(|(known, _)| *known == name).map(|(_, column)| column.into())
    }
}

/// A formula that can be called by its name.
#[derive(Clone, Copy)]
pub(crate) struct Runner {
    pub(crate) name: &'static str,
    /// Checks a call, sends its inputs and records its kernels.
    pub(crate) run: fn(&mut Recording<'_>, &Request<'_, '_>) -> Result<Answer, GpuError>,
    /// How far its results may be from those of the core in `f64`.
    pub(crate) tolerance: Tolerance,
}

/// The [`Runner`]s of functions, under their own names. A tolerance other than `TOKEN` follows a colon.
macro_rules! runners {
    ($($name:ident $(: $tolerance:ident)?),* $(,)?) => {
        &[$($crate::call::Runner {
            name: stringify!($name),
            run: $name,
            tolerance: $crate::call::runners!(@tolerance $($tolerance)?),
        }),*]
    };
    (@tolerance) => { $crate::tolerance::TOKEN };
    (@tolerance $tolerance:ident) => { $crate::tolerance::$tolerance };
}
pub(crate) use runners;

impl Recording<'_> {
    /// Any formula of the catalogue that has a kernel, by its name. Inputs in `resident` are read where they are on the
    /// device; the others are inputs of `call`, and sent. The outputs of `call` are left alone.
    ///
    /// # Errors
    ///
    /// The core's refusal, as [`GpuError::Core`] or [`GpuError::Refused`]; [`GpuError::Unsupported`] with the reason
    /// for a formula without a kernel; [`GpuError::Limit`].
    pub fn call(
        &mut self,
        entry: &Entry,
        call: &Call<'_, f32>,
        resident: &[(&str, Column)],
    ) -> Result<Answer, GpuError> {
        match coverage(entry.name) {
            Coverage::Kernel(runner) => (runner.run)(self, &Request { call, resident }),
            Coverage::Core(reason) => Err(GpuError::Unsupported(reason.reason)),
        }
    }
}

/// The report of the device; where it did not answer, the core computes.
pub(crate) fn or_core(
    tried: Result<Report, Reason>,
    clock: &Clock,
    entry: &Entry,
    call: &mut Call<'_, f32>,
) -> Result<Report, GpuError> {
    let reason = match tried {
        Ok(report) => return Ok(report),
        Err(reason) => reason,
    };
    // a refused call is refused again, with the core's own error
    entry.call(call)?;
    Ok(Report::core(reason, clock.elapsed()))
}

impl Gpu {
    /// Runs a formula of the catalogue. What the device cannot answer, the core does: formulas without a kernel,
    /// numbers that are not finite, a failed device. The report says who computed and why.
    ///
    /// # Errors
    ///
    /// The core's refusal, as [`GpuError::Core`] or [`GpuError::Refused`]; nothing was written and nothing was sent.
    pub async fn call(&self, entry: &Entry, call: &mut Call<'_, f32>) -> Result<Report, GpuError> {
        let clock = Clock::start();
        let tried = self.try_call(entry, call).await;
        or_core(tried, &clock, entry, call)
    }

    pub(crate) async fn try_call(&self, entry: &Entry, call: &mut Call<'_, f32>) -> Result<Report, Reason> {
        let run = match coverage(entry.name) {
            Coverage::Kernel(runner) => runner.run,
            Coverage::Core(reason) => return Err(Reason::NoKernel(reason)),
        };
        for column in entry.outputs {
            let expected = entry.length(column.kind, call.batch.as_ref(), call.groups.as_ref(), call.inputs);
            if call.outputs.get(column.name).is_none_or(|array| array.len() != expected) {
                return Err(Reason::NoKernel(NO_FIT));
            }
        }
        let mut recording = self.record();
        let answer = run(&mut recording, &Request { call, resident: &[] }).map_err(Reason::Failed)?;
        let columns: Vec<_> =
            answer.columns.into_iter().map(|(name, column)| (name, recording.download(&column))).collect();
        let done = recording.submit().await.map_err(Reason::Failed)?;
        if done.report().special {
            return Err(Reason::Special);
        }
        for (name, download) in columns {
            match call.outputs.get_mut(name) {
                Some(Array::Real(out)) => done.copy_to(download, out),
                Some(Array::Flag(out)) => {
                    for (flag, &word) in out.iter_mut().zip(done.words(download)) {
                        *flag = word != 0;
                    }
                }
                _ => {}
            }
        }
        let numbers = answer.numbers.map_or_else(Vec::new, |numbers| done.get(&numbers));
        call.numbers.extend(numbers.into_iter().map(|(name, number)| (Cow::Borrowed(name), number)));
        Ok(done.report().clone())
    }
}

/// A required input of numbers.
pub(crate) fn real<'a>(call: &Request<'_, 'a>, name: &'static str) -> Result<Input<'a>, GpuError> {
    match call.resident(name) {
        Some(column) => Ok(column),
        None => Ok(Input::Host(call.real(name)?)),
    }
}

/// An input of numbers that a call may omit.
pub(crate) fn optional<'a>(call: &Request<'_, 'a>, name: &'static str) -> Result<Option<Input<'a>>, GpuError> {
    match call.resident(name) {
        Some(column) => Ok(Some(column)),
        None => Ok(call.optional(name)?.map(Input::Host)),
    }
}

pub(crate) fn batch<'a>(call: &Request<'_, 'a>) -> Result<GpuBatch<'a>, GpuError> {
    Ok(GpuBatch::new(call.batch()?))
}

pub(crate) fn column(name: &'static str, column: Column) -> Answer {
    Answer { columns: vec![(name, column)], numbers: None }
}

/// Advantages and returns.
pub(crate) fn estimates((advantages, returns): (Column, Column)) -> Answer {
    Answer { columns: vec![("advantages", advantages), ("returns", returns)], numbers: None }
}

/// Numbers and no column.
pub(crate) fn numbers<T: 'static>(pending: Pending<T>, named: impl Fn(T) -> Numbers + Send + Sync + 'static) -> Answer {
    Answer { columns: Vec::new(), numbers: Some(Pending::new(move |done| named(done.get(&pending)))) }
}

pub(crate) fn policy_input<'a>(call: &Request<'_, 'a>) -> Result<PolicyLossColumns<'a>, GpuError> {
    Ok(PolicyLossColumns {
        log_probs: real(call, "log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
        advantages: real(call, "advantages")?,
        weights: optional(call, "weights")?,
    })
}

/// The calls by name of the formulas over rows of logits.
pub(crate) const RUNNERS: &[Runner] =
    runners![log_probs_and_entropy, token_log_probs, entropy, sum_squared_probs, logits_gradient];

fn logits(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<LogProbColumns, GpuError> {
    let tokens = match call.resident("tokens") {
        Some(column) => column,
        None => Input::Words(call.inputs.index("tokens")?),
    };
    let input = LogitColumns { logits: real(call, "logits")?, vocab: call.inputs.size("vocab")?, tokens };
    recording.log_probs(&batch(call)?, &input, &call.config::<PolicyConfig>()?)
}

/// Logits without tokens: those of the first entry are as good as any.
fn rows(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<LogProbColumns, GpuError> {
    let batch = batch(call)?;
    let tokens = vec![0; batch.tokens()];
    let input = LogitColumns {
        logits: real(call, "logits")?,
        vocab: call.inputs.size("vocab")?,
        tokens: Input::Words(&tokens),
    };
    recording.log_probs(&batch, &input, &call.config::<PolicyConfig>()?)
}

fn log_probs_and_entropy(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let out = logits(recording, call)?;
    Ok(Answer { columns: vec![("log_probs", out.log_probs), ("entropy", out.entropy)], numbers: None })
}

fn token_log_probs(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("log_probs", logits(recording, call)?.log_probs))
}

fn entropy(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("entropy", rows(recording, call)?.entropy))
}

fn sum_squared_probs(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", rows(recording, call)?.sum_squared_probs))
}

fn logits_gradient(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let of = logits(recording, call)?;
    let (grad_log_probs, grad_entropy) = (real(call, "grad_log_probs")?, real(call, "grad_entropy")?);
    let grad = recording.logits_gradient(&batch(call)?, &of, &grad_log_probs, Some(&grad_entropy))?;
    Ok(column("grad_logits", grad))
}

pub(crate) fn kl_input<'a>(call: &Request<'_, 'a>) -> Result<KlColumns<'a>, GpuError> {
    Ok(KlColumns { log_probs: real(call, "log_probs")?, ref_log_probs: real(call, "ref_log_probs")? })
}

pub(crate) fn gae_input<'a>(call: &Request<'_, 'a>) -> Result<GaeColumns<'a>, GpuError> {
    Ok(GaeColumns {
        rewards: real(call, "rewards")?,
        values: real(call, "values")?,
        bootstrap: real(call, "bootstrap")?,
    })
}
