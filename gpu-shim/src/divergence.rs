//! **Stage 2 of 7 — divergence.** Reads log-probabilities of policy and reference, writes a KL per token.

use tokenwise::divergence::{KlBounds, KlConfig, KlEstimator, KlGradient};

use crate::{
    batch::GpuBatch,
    call::{batch, column, kl_input, runners, Answer, Request, Runner},
    column::{Column, Input},
    error::GpuError,
    recording::Recording,
    token::{bits, token, In, Setting, TokenKernel},
};

/// What the KL estimators read.
#[derive(Clone, Debug)]
pub struct KlColumns<'a> {
    /// Log-probabilities of the policy.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the reference.
    pub ref_log_probs: Input<'a>,
}

pub(crate) const KL_SETTINGS: &[Setting] = &[
    Setting::U32("estimator"),
    Setting::U32("straight_through"),
    Setting::F32("low"),
    Setting::F32("high"),
    Setting::F32("most"),
];

const KL_INPUTS: &[In] = &[token("log_probs"), token("ref_log_probs")];

const fn kernel(label: &'static str, formula: &'static str, output: &'static [&'static str]) -> TokenKernel {
    TokenKernel {
        label,
        formula,
        inputs: KL_INPUTS,
        outputs: output,
        terms: &[],
        settings: KL_SETTINGS,
        last_only: false,
    }
}

const KL_ESTIMATE: TokenKernel = kernel(
    "divergence/kl_estimate",
    concat!(include_str!("../shaders/divergence/kl.wgsl"), include_str!("../shaders/divergence/kl_estimate.wgsl")),
    &["kl"],
);

const KL_GRADIENT: TokenKernel = kernel(
    "divergence/kl_gradient",
    concat!(include_str!("../shaders/divergence/kl.wgsl"), include_str!("../shaders/divergence/kl_gradient.wgsl")),
    &["grad"],
);

/// The words of [`KL_SETTINGS`].
pub(crate) fn kl_settings(config: &KlConfig) -> [u32; 5] {
    // must match shaders/divergence/kl.wgsl
    let estimator = match config.estimator {
        KlEstimator::K1 => 0,
        KlEstimator::Abs => 1,
        KlEstimator::K2 => 2,
        _ => 3,
    };
    let k3 = config.estimator == KlEstimator::K3;
    let none = f64::INFINITY;
    let (low, high, most) = match config.bounds {
        KlBounds::K3Only if k3 => (-20.0, 20.0, 10.0),
        KlBounds::Every if k3 => (-none, 10.0, 10.0),
        KlBounds::Every => (-none, none, 10.0),
        _ => (-none, none, none),
    };
    let straight_through = u32::from(config.gradient == KlGradient::StraightThrough);
    [estimator, straight_through, bits(low), bits(high), bits(most)]
}

impl Recording<'_> {
    /// KL estimates of each token: the core's [`kl_estimate`](tokenwise::divergence::kl_estimate).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if a column does not fit the batch; [`GpuError::Limit`].
    pub fn kl_estimate(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &KlColumns<'_>,
        config: &KlConfig,
    ) -> Result<Column, GpuError> {
        self.kl(&KL_ESTIMATE, batch, input, config)
    }

    /// Derivative of each token's KL estimate by its log-probability: the core's
    /// [`kl_gradient`](tokenwise::divergence::kl_gradient).
    ///
    /// # Errors
    ///
    /// As [`Self::kl_estimate`].
    pub fn kl_gradient(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &KlColumns<'_>,
        config: &KlConfig,
    ) -> Result<Column, GpuError> {
        self.kl(&KL_GRADIENT, batch, input, config)
    }

    fn kl(
        &mut self,
        kernel: &TokenKernel,
        batch: &GpuBatch<'_>,
        input: &KlColumns<'_>,
        config: &KlConfig,
    ) -> Result<Column, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        let [new, reference] = self.columns([&input.log_probs, &input.ref_log_probs])?;
        let ([out], _) = self.tokens(kernel, batch, &[Some(&new), Some(&reference)], &kl_settings(config))?;
        Ok(out)
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![kl_estimate, kl_gradient];

fn kl_estimate(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("kl", recording.kl_estimate(&batch(call)?, &kl_input(call)?, &call.config()?)?))
}

fn kl_gradient(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("grad", recording.kl_gradient(&batch(call)?, &kl_input(call)?, &call.config()?)?))
}
