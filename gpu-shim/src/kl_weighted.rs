//! KL estimates times an importance weight, part of stage 2.

use tokenwise::divergence::{KlBounds, KlEstimator, KlWeight, KlWeightedConfig};

use crate::{
    batch::GpuBatch,
    call::{batch, column, real, runners, Answer, Request, Runner},
    column::{Column, Input},
    divergence::{kl_settings, KL_SETTINGS},
    error::GpuError,
    fold::Fold,
    recording::Recording,
    sequences::Rows,
    token::{kernel, sequence, token, Setting, TokenKernel},
};

/// What [`Recording::kl_importance_weighted`] reads.
#[derive(Clone, Debug)]
pub struct KlWeightedColumns<'a> {
    /// Log-probabilities of the policy.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the reference.
    pub ref_log_probs: Input<'a>,
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
}

impl KlWeightedColumns<'_> {
    fn check(&self, batch: &GpuBatch<'_>) -> Result<(), GpuError> {
        self.log_probs.check_len("log_probs", batch.tokens())?;
        self.ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        self.old_log_probs.check_len("old_log_probs", batch.tokens())
    }
}

const SETTINGS: &[Setting] = &[
    KL_SETTINGS[0],
    KL_SETTINGS[1],
    KL_SETTINGS[2],
    KL_SETTINGS[3],
    KL_SETTINGS[4],
    Setting::U32("weight"),
    Setting::U32("cut_beyond"),
];

const VALUE: TokenKernel = kernel(
    "divergence/kl_importance_weighted",
    concat!(
        include_str!("../shaders/divergence/kl.wgsl"),
        include_str!("../shaders/divergence/kl_weighted.wgsl"),
        include_str!("../shaders/divergence/kl_importance_weighted.wgsl"),
    ),
    &[token("log_probs"), token("ref_log_probs"), token("old_log_probs"), sequence("ratios")],
    &["kl"],
    &[],
    SETTINGS,
);

const GRADIENT: TokenKernel = kernel(
    "divergence/kl_importance_weighted_gradient",
    concat!(
        include_str!("../shaders/divergence/kl.wgsl"),
        include_str!("../shaders/divergence/kl_weighted.wgsl"),
        include_str!("../shaders/divergence/kl_importance_weighted_gradient.wgsl"),
    ),
    &[
        token("log_probs"),
        token("ref_log_probs"),
        token("old_log_probs"),
        sequence("ratios"),
        token("grad_kl"),
        sequence("shared_slopes"),
    ],
    &["grad"],
    &[],
    SETTINGS,
);

const PRODUCT: TokenKernel = kernel(
    "divergence/kl product",
    concat!(include_str!("../shaders/divergence/kl.wgsl"), include_str!("../shaders/divergence/kl_product.wgsl")),
    &[token("log_probs"), token("ref_log_probs"), token("grad_kl")],
    &["product"],
    &[],
    KL_SETTINGS,
);

fn settings(config: &KlWeightedConfig) -> Vec<u32> {
    // must match shaders/divergence/kl_weighted.wgsl; a weight that is not finite is left to the core, so TokenFinite
    // has the values of Token
    let weight = match config.weight {
        KlWeight::Sequence => 1,
        KlWeight::TokenBounded => 2,
        KlWeight::ScoreFunction => 3,
        _ => 0,
    };
    let cuts = matches!(config.weight, KlWeight::TokenFinite | KlWeight::ScoreFunction);
    let k3_only = config.kl.bounds == KlBounds::K3Only && config.kl.estimator == KlEstimator::K3;
    let mut words = kl_settings(&config.kl).to_vec();
    words.extend([weight, u32::from(cuts && k3_only)]);
    words
}

impl Recording<'_> {
    /// The core's [`kl_importance_weighted`](tokenwise::divergence::kl_importance_weighted).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if a column does not fit the batch; [`GpuError::Limit`].
    pub fn kl_importance_weighted(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &KlWeightedColumns<'_>,
        config: &KlWeightedConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        let [new, reference, old] = self.columns([&input.log_probs, &input.ref_log_probs, &input.old_log_probs])?;
        let rows = self.kl_rows(batch, &new, &old, config)?;
        let ratios = rows.as_ref().map(|(_, ratios)| ratios);
        let given = [Some(&new), Some(&reference), Some(&old).filter(|_| ratios.is_none()), ratios];
        let ([kl], _) = self.tokens(&VALUE, batch, &given, &settings(config))?;
        Ok(kl)
    }

    /// The core's [`kl_importance_weighted_gradient`](tokenwise::divergence::kl_importance_weighted_gradient);
    /// `grad_kl` is ∂loss/∂kl of each token.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if a column does not fit the batch; [`GpuError::Limit`].
    pub fn kl_importance_weighted_gradient(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &KlWeightedColumns<'_>,
        grad_kl: &Input<'_>,
        config: &KlWeightedConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        grad_kl.check_len("grad_kl", batch.tokens())?;
        let inputs = [&input.log_probs, &input.ref_log_probs, &input.old_log_probs, grad_kl];
        let [new, reference, old, grad_kl] = self.columns(inputs)?;
        let rows = self.kl_rows(batch, &new, &old, config)?;
        let shared = match &rows {
            None => None,
            Some((rows, ratios)) => {
                let given = [Some(&new), Some(&reference), Some(&grad_kl)];
                let ([product], _) = self.tokens(&PRODUCT, batch, &given, &kl_settings(&config.kl))?;
                let sums = self.fold(Fold::Sum, batch, &product)?;
                Some(self.sequence_factors(rows, &sums, Some(ratios), 1.0)?)
            }
        };
        let ratios = rows.as_ref().map(|(_, ratios)| ratios);
        let old = Some(&old).filter(|_| ratios.is_none());
        let given = [Some(&new), Some(&reference), old, ratios, Some(&grad_kl), shared.as_ref()];
        let ([grad], _) = self.tokens(&GRADIENT, batch, &given, &settings(config))?;
        Ok(grad)
    }

    /// The sequences and their ratios, if these are the weights.
    fn kl_rows(
        &mut self,
        batch: &GpuBatch<'_>,
        new: &Column,
        old: &Column,
        config: &KlWeightedConfig,
    ) -> Result<Option<(Rows, Column)>, GpuError> {
        if config.weight != KlWeight::Sequence {
            return Ok(None);
        }
        let rows = Rows::new(self, batch)?;
        let (sums, _) = self.sequence_log_ratios(batch, &new.into(), &old.into())?;
        let ratios = self.sequence_ratios(&rows, &sums, f64::INFINITY)?;
        Ok(Some((rows, ratios)))
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![kl_importance_weighted, kl_importance_weighted_gradient];

fn input<'a>(call: &Request<'_, 'a>) -> Result<KlWeightedColumns<'a>, GpuError> {
    Ok(KlWeightedColumns {
        log_probs: real(call, "log_probs")?,
        ref_log_probs: real(call, "ref_log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
    })
}

fn kl_importance_weighted(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let kl = recording.kl_importance_weighted(&batch(call)?, &input(call)?, &call.config()?)?;
    Ok(column("kl", kl))
}

fn kl_importance_weighted_gradient(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, grad_kl) = (batch(call)?, real(call, "grad_kl")?);
    let grad = recording.kl_importance_weighted_gradient(&batch, &input(call)?, &grad_kl, &call.config()?)?;
    Ok(column("grad", grad))
}
