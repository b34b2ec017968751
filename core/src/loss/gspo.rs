use super::{
    aggregate::Plan, ppo_clip::Clip, Aggregate, AggregateMode, DualClip, EmptyRows, PolicyLoss, PolicyLossInput,
};
use crate::{
    error::{check_positive, Result},
    layout::Batch,
    math::exp,
    real::Real,
    reduce::{fold_row, row_difference, Sum},
    simd::multiversion,
    statistics::Divisor,
};

/// Through which log-probabilities the gradient of a sequence's ratio flows.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GspoForm {
    /// Through those of all tokens of the sequence: the ratio is differentiated as the exponential of a mean. The
    /// paper's GSPO; TRL 1.16, OpenRLHF 0.11.
    #[default]
    Sequence,
    /// Through the token's own: the ratio has the value of the sequence's ratio and the gradient of the token's. The
    /// paper's GSPO-token; verl 0.9.1. Equal to `Sequence` where the advantages of a sequence are equal and each
    /// sequence has the same weight.
    Token,
}

/// How [`gspo`] clips and aggregates.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GspoConfig<'a> {
    /// ε⁻; not negative, default 3e-4: sequence ratios move far less than token ratios.
    pub clip_low: f64,
    /// ε⁺; not negative, default 4e-4.
    pub clip_high: f64,
    /// Default [`GspoForm::Sequence`].
    pub form: GspoForm,
    /// Cap of the log of the ratio, with gradient 0 strictly above; default none (verl: 10).
    pub log_ratio_cap: Option<f64>,
    /// How token losses are aggregated; default equal weight per sequence.
    #[cfg_attr(feature = "serde", serde(deserialize_with = "read_aggregate"))]
    pub aggregate: Aggregate<'a>,
    /// Divisor of the metrics' means; default the exact count.
    pub divisor: Divisor,
}

#[cfg(feature = "serde")]
crate::spelling::over_default! { read_aggregate: GspoConfig.aggregate as Aggregate<'static> }

impl Default for GspoConfig<'_> {
    fn default() -> Self {
        Self {
            clip_low: 3e-4,
            clip_high: 4e-4,
            form: GspoForm::Sequence,
            log_ratio_cap: None,
            aggregate: Aggregate { mode: AggregateMode::SequenceMeanTokenMean, ..Default::default() },
            divisor: Divisor::Count,
        }
    }
}

/// The clipped surrogate with one ratio per sequence: the geometric mean of its tokens' ratios.
///
/// ```text
/// s_i = exp(Σ_t (log π_t − log π_old,t) / n_i)        loss = −Agg_t min(s_i A_t, clip(s_i, 1 − ε⁻, 1 + ε⁺) A_t)
/// ∂loss/∂log π_t = −W_i s_i A_t [not clipped]                     GspoForm::Token
/// ∂loss/∂log π_t = −W_i s_i Σ_u A_u [u not clipped] / n_i        GspoForm::Sequence
/// ```
///
/// `clip_fraction` is the share of tokens held by the clip, `clip_fraction_lower` 0, `kl` the mean of
/// `log π_old − log π`.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read, do not count in `n_i`, and get gradient 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a clip width is negative or the cap not positive; the errors of
/// [`aggregate`](super::aggregate).
///
/// **Reference.** Zheng et al. 2025 (GSPO), arXiv:2507.18071, eq. 5 and 11. verl 0.9.1 is `Token` with cap 10 and
/// aggregates as configured (token mean by default); TRL 1.16 and OpenRLHF 0.11 are `Sequence`.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [-0.5, f64::NAN, -1.0];
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, f64::NAN, 0.0]);
/// let mut grad = [9.0; 3];
/// gspo(&batch, input, &GspoConfig { form: GspoForm::Token, ..Default::default() }, &mut grad)?;
/// assert_eq!(grad, [-0.5, 0.0, 0.0]);
/// gspo(&batch, input, &GspoConfig::default(), &mut grad)?;
/// assert_eq!(grad, [-0.25, 0.0, -0.25]);      // the same, shared by the sequence
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn gspo<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &GspoConfig<'_>,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    input.check(batch, grad)?;
    let clip = Clip::new(config.clip_low, config.clip_high, DualClip::Off)?;
    let cap = config.log_ratio_cap.unwrap_or(f64::INFINITY);
    if config.log_ratio_cap.is_some() {
        check_positive::<R>("log_ratio_cap", cap)?;
    }
    let plan = config.aggregate.plan(batch)?;
    let [loss, held, kl] = evaluate(batch, input, &clip, cap, config.form, &plan, grad);
    let mean = |sum: f64| if batch.kept() == 0 { 0.0 } else { sum / config.divisor.of(batch.kept() as f64) };
    Ok(PolicyLoss { loss, clip_fraction: mean(held), clip_fraction_lower: 0.0, kl: mean(kl) })
}

/// How [`luspo`] clips.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct LuspoConfig {
    /// ε⁻; not negative, default 0.2.
    pub clip_low: f64,
    /// ε⁺; not negative, default 0.2.
    pub clip_high: f64,
}

impl Default for LuspoConfig {
    fn default() -> Self {
        Self { clip_low: 0.2, clip_high: 0.2 }
    }
}

/// [`gspo`] with sequences weighted by their length, so that a token's gradient does not shrink as its response grows.
///
/// ```text
/// loss = −Σ_i Σ_t min(s_i A_t, clip(s_i) A_t) / B
/// ∂loss/∂log π_t = −s_i Ā_i / B        Ā_i = Σ_u A_u [u not clipped] / n_i
/// ```
///
/// with `B` the number of rows, including empty ones. Where the advantages of a sequence are equal, its term is
/// `n_i min(s_i A_i, clip(s_i) A_i)`.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read, do not count in `n_i`, and get gradient 0.
///
/// **Errors.** As [`gspo`].
///
/// **Reference.** TRL 1.16 loss type `luspo`.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, true, true, false]))?;
/// let log_probs = [-0.5, -1.0, -0.25, f64::NAN];
/// let input = PolicyLossInput::new(&log_probs, &log_probs, &[1.0, 1.0, -1.0, f64::NAN]);
/// let mut grad = [9.0; 4];
/// assert_eq!(luspo(&batch, input, &LuspoConfig::default(), &mut grad)?.loss, -0.5);
/// assert_eq!(grad, [-0.5, -0.5, 0.5, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn luspo<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    config: &LuspoConfig,
    grad: &mut [R],
) -> Result<PolicyLoss> {
    let aggregate =
        Aggregate { mode: AggregateMode::SequenceMeanTokenSum, empty_rows: EmptyRows::Counted, ..Default::default() };
    let config = GspoConfig {
        clip_low: config.clip_low,
        clip_high: config.clip_high,
        form: GspoForm::Sequence,
        log_ratio_cap: None,
        aggregate,
        divisor: Divisor::Count,
    };
    gspo(batch, input, &config, grad)
}

#[multiversion]
fn evaluate<R: Real>(
    batch: &Batch<'_>,
    input: PolicyLossInput<'_, R>,
    clip: &Clip<R>,
    cap: f64,
    form: GspoForm,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> [f64; 3] {
    let mut totals = [Sum::default(); 3];
    for (row, weight) in plan.rows(batch) {
        let kept = row.kept();
        let log_ratios = row_difference(&row, input.log_probs, input.old_log_probs);
        let mean = log_ratios / kept.max(1) as f64;
        let capped = mean > cap;
        let ratio = R::narrow(exp(if capped { cap } else { mean }));
        let w = R::narrow(weight);
        let token = |advantage: R, omega: R| {
            let token = clip.token(ratio, advantage);
            let loss = token.loss * omega;
            let slope = if token.flat | capped { R::zero() } else { -advantage * ratio * omega };
            let slope = if loss.is_nan() { loss } else { slope };
            ([slope * w], [loss.widen(), if token.held { 1.0 } else { 0.0 }, slope.widen()])
        };
        let [loss, held, slopes] = match input.weights {
            None => fold_row(&row, [input.advantages], [&mut *grad], |[advantage]| token(advantage, R::one())),
            Some(weights) => {
                fold_row(&row, [input.advantages, weights], [&mut *grad], |[advantage, omega]| token(advantage, omega))
            }
        };
        if form == GspoForm::Sequence && kept > 0 {
            let shared = R::narrow(slopes * weight / kept as f64);
            for (grad, &keep) in row.of_mut(grad).iter_mut().zip(row.keep) {
                *grad = if keep { shared } else { R::zero() };
            }
        }
        for (total, part) in totals.iter_mut().zip([weight * loss, held, -log_ratios]) {
            total.add(part);
        }
    }
    Sum::values(&totals)
}
