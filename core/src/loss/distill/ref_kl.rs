use crate::{
    error::{check_len, check_not_negative, Result},
    layout::Batch,
    loss::{aggregate::Plan, Aggregate},
    math::{exp, exp_remainder},
    real::Real,
    reduce::{count, fold_row, Sum},
    simd::multiversion,
};

/// What [`ref_kl`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct RefKlInput<'a, R> {
    /// Log-probabilities of the policy being trained; the gradient is taken with respect to these.
    pub log_probs: &'a [R],
    /// Log-probabilities of the policy that sampled; constants.
    pub old_log_probs: &'a [R],
    /// Log-probabilities of the teacher; constants.
    pub ref_log_probs: &'a [R],
    /// A weight for each token's loss; constants. `None` gives weight 1.
    pub weights: Option<&'a [R]>,
}

impl<'a, R> RefKlInput<'a, R> {
    /// Every token has weight 1.
    pub const fn new(log_probs: &'a [R], old_log_probs: &'a [R], ref_log_probs: &'a [R]) -> Self {
        Self { log_probs, old_log_probs, ref_log_probs, weights: None }
    }
}

/// How [`ref_kl`] keeps the policy near the one that sampled.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct RefKlConfig<'a> {
    /// A token whose probability fell by more than this has no policy gradient; default 0.2.
    pub fall: f64,
    /// The coefficient c of the squared log-ratio; default 1e-3.
    pub drift: f64,
    /// How token losses are aggregated; default the token mean.
    pub aggregate: Aggregate<'a>,
}

impl Default for RefKlConfig<'_> {
    fn default() -> Self {
        Self { fall: 0.2, drift: 1e-3, aggregate: Aggregate::default() }
    }
}

/// What [`ref_kl`] returns. Each mean is over the tokens named at its field; 0 if there are none.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RefKlLoss {
    /// The aggregated loss.
    pub loss: f64,
    /// Mean of `log π_ref − log π`.
    pub ref_kl: f64,
    /// Share of tokens whose probability fell too far.
    pub fallen: f64,
    /// Mean of `ρ − 1 − ln ρ` over those.
    pub mismatch_fallen: f64,
    /// Mean of `ρ − 1 − ln ρ` over the others.
    pub mismatch_kept: f64,
}

/// A policy gradient whose advantage is the log-ratio of teacher to student, kept near the policy that sampled.
///
/// ```text
/// A_t = log π_ref,t − log π_t, a constant      d_t = log π_t − log π_old,t      ρ = e^d
/// keep_t = [π_t − π_old,t ≥ −fall]
/// loss = Agg_t (−keep_t ρ_t A_t + c d_t²)      ∂loss/∂log π_t = W_t (−keep_t ρ_t A_t + 2 c d_t)
/// ```
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get gradient 0; no mean counts them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if a number is negative or not finite; the errors of
/// [`aggregate`](crate::loss::aggregate).
///
/// **Reference.** prime-rl (2026-08) `ref_kl`, whose numbers are fixed, with the token mean over the whole step; its
/// metrics `ref_kl`, `ref_kl/is_masked`, `ref_kl/masked_mismatch_kl` and `ref_kl/unmasked_mismatch_kl` are means by
/// sequence.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, math, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let log_probs = [math::ln(0.5), f64::NAN, math::ln(0.25)];      // the last token's probability fell by 0.5
/// let old_log_probs = [math::ln(0.5), f64::NAN, math::ln(0.75)];
/// let ref_log_probs = [math::ln(0.5) + 0.5, f64::NAN, 0.0];
/// let input = RefKlInput::new(&log_probs, &old_log_probs, &ref_log_probs);
/// let mut grad = [9.0; 3];
/// let result = ref_kl(&batch, input, &RefKlConfig { drift: 0.0, ..Default::default() }, &mut grad)?;
/// assert_eq!((result.loss, result.fallen), (-0.25, 0.5));
/// assert_eq!(grad, [-0.25, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn ref_kl<R: Real>(
    batch: &Batch<'_>,
    input: RefKlInput<'_, R>,
    config: &RefKlConfig<'_>,
    grad: &mut [R],
) -> Result<RefKlLoss> {
    check_len("log_probs", input.log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("ref_log_probs", input.ref_log_probs, batch.tokens())?;
    if let Some(weights) = input.weights {
        check_len("weights", weights, batch.tokens())?;
    }
    check_len("grad", grad, batch.tokens())?;
    check_not_negative::<R>("fall", config.fall)?;
    check_not_negative::<R>("drift", config.drift)?;
    let plan = config.aggregate.plan(batch)?;
    let [loss, ref_kl, fallen, mismatch_fallen, mismatch_kept] = walk(batch, input, config, &plan, grad);
    let mean = |sum: f64, count: f64| if count == 0.0 { 0.0 } else { sum / count };
    let kept = batch.kept() as f64;
    Ok(RefKlLoss {
        loss,
        ref_kl: mean(ref_kl, kept),
        fallen: mean(fallen, kept),
        mismatch_fallen: mean(mismatch_fallen, fallen),
        mismatch_kept: mean(mismatch_kept, kept - fallen),
    })
}

#[multiversion]
fn walk<R: Real>(
    batch: &Batch<'_>,
    input: RefKlInput<'_, R>,
    config: &RefKlConfig<'_>,
    plan: &Plan<'_>,
    grad: &mut [R],
) -> [f64; 5] {
    let (fall, drift) = (R::narrow(config.fall), R::narrow(config.drift));
    let mut totals = [Sum::default(); 5];
    let [new, old, reference] = [input.log_probs, input.old_log_probs, input.ref_log_probs];
    for (row, weight) in plan.rows(batch) {
        let w = R::narrow(weight);
        let term = |new: R, old: R, reference: R, omega: R| {
            let (d, advantage) = (new - old, reference - new);
            let fallen = exp(new) - exp(old) < -fall;
            let gain = if fallen { R::zero() } else { exp(d) * advantage };
            let loss = (drift * d * d - gain) * omega;
            let slope = ((drift + drift) * d - gain) * omega * w;
            let slope = if loss.is_nan() { loss } else { slope };
            let mismatch = exp_remainder(d).widen();
            let (of_fallen, of_kept) = if fallen { (mismatch, 0.0) } else { (0.0, mismatch) };
            ([slope], [loss.widen(), advantage.widen(), count(fallen), of_fallen, of_kept])
        };
        let mut parts = match input.weights {
            None => fold_row(&row, [new, old, reference], [&mut *grad], |[new, old, reference]| {
                term(new, old, reference, R::one())
            }),
            Some(weights) => {
                fold_row(&row, [new, old, reference, weights], [&mut *grad], |[new, old, reference, omega]| {
                    term(new, old, reference, omega)
                })
            }
        };
        parts[0] *= weight;
        Sum::add_each(&mut totals, &parts);
    }
    Sum::values(&totals)
}
