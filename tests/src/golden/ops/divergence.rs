use tokenwise::{
    divergence::{self, KlConfig, KlEstimator, KlExactInput, KlGradient, KlInput},
    policy::PolicyConfig,
};

use super::policy::vocab;
use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

/// The estimator by any of its names, with `+` for the straight-through gradient.
pub(super) fn estimator(case: &Case<'_>) -> Result<KlConfig, Failure> {
    let name = case.text("estimator", "k1")?;
    let (base, gradient) = match name.strip_suffix('+') {
        Some(base) => (base, KlGradient::StraightThrough),
        None => (name, KlGradient::Own),
    };
    let estimator = match base {
        "k1" | "kl" => KlEstimator::K1,
        "abs" => KlEstimator::Abs,
        "k2" | "mse" => KlEstimator::K2,
        "k3" | "low_var_kl" => KlEstimator::K3,
        _ => return Err(Failure::Unfit(format!("estimator: expected k1, abs, k2 or k3, got \"{name}\""))),
    };
    Ok(KlConfig { estimator, gradient, bounds: case.profile.kl_bounds() })
}

pub(super) fn kl<R: Number>(case: &Case<'_>) -> Ran {
    let (log_probs, ref_log_probs) = (case.tokens::<R>("log_probs")?, case.tokens("ref_log_probs")?);
    let input = KlInput { log_probs: &log_probs, ref_log_probs: &ref_log_probs };
    let config = estimator(case)?;
    let (mut kl, mut grad) = (vec![R::zero(); log_probs.len()], vec![R::zero(); log_probs.len()]);
    divergence::kl_estimate(&case.batch()?, input, &config, &mut kl)?;
    divergence::kl_gradient(&case.batch()?, input, &config, &mut grad)?;
    Ok(vec![("kl", Output::tokens(kl)), ("grad", Output::tokens(grad))])
}

pub(super) fn kl_full<R: Number>(case: &Case<'_>) -> Ran {
    let (vocab, len) = vocab(case)?;
    let (logits, ref_logits) = (case.input::<R>("logits", len)?, case.input("ref_logits", len)?);
    let mut out = vec![R::zero(); case.rows * case.cols];
    let input = KlExactInput { logits: &logits, ref_logits: &ref_logits, vocab };
    divergence::kl_exact(&case.batch()?, input, &PolicyConfig::default(), &mut out)?;
    Ok(vec![("kl", Output::tokens(out))])
}
