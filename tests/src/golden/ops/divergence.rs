use tokenwise::{
    divergence::{
        self, KlConfig, KlEstimator, KlExactGradientInput, KlExactInput, KlGradient, KlInput, KlWeight,
        KlWeightedConfig, KlWeightedGradientInput, KlWeightedInput,
    },
    policy::PolicyConfig,
};

use super::policy::vocab;
use crate::golden::{
    case::{word, Case, Failure, Number, Ran},
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
    Ok(KlConfig { estimator, gradient, ..case.conventions.kl() })
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
    let (mut out, mut grad) = (vec![R::zero(); case.rows * case.cols], vec![R::zero(); len]);
    let input = KlExactInput { logits: &logits, ref_logits: &ref_logits, vocab };
    let config = PolicyConfig { temperature: case.number("temperature", Some(1.0))? };
    divergence::kl_exact(&case.batch()?, input, &config, &mut out)?;
    let grad_kl = vec![R::one(); out.len()];
    let input = KlExactGradientInput { logits: &logits, ref_logits: &ref_logits, vocab, grad_kl: &grad_kl };
    divergence::kl_exact_gradient(&case.batch()?, input, &config, &mut grad)?;
    Ok(vec![("kl", Output::tokens(out)), ("grad_logits", Output::rows(grad, vocab))])
}

/// `grad` is that of the sum over the kept tokens.
pub(super) fn kl_importance_weighted<R: Number>(case: &Case<'_>) -> Ran {
    let (log_probs, ref_log_probs) = (case.tokens::<R>("log_probs")?, case.tokens("ref_log_probs")?);
    let old_log_probs = case.tokens("old_log_probs")?;
    let weight = word(case.text("level", "token")?, "level", |name| match name {
        "token" => Some(KlWeight::Token),
        "sequence" => Some(KlWeight::Sequence),
        _ => None,
    })?;
    let config = KlWeightedConfig {
        weight,
        kl: KlConfig { bounds: case.conventions.kl_bounds, ..KlWeightedConfig::default().kl },
    };
    let (mut kl, mut grad) = (vec![R::zero(); log_probs.len()], vec![R::zero(); log_probs.len()]);
    let input = KlWeightedInput { log_probs: &log_probs, ref_log_probs: &ref_log_probs, old_log_probs: &old_log_probs };
    divergence::kl_importance_weighted(&case.batch()?, input, &config, &mut kl)?;
    let grad_kl = vec![R::one(); log_probs.len()];
    let input = KlWeightedGradientInput {
        log_probs: &log_probs,
        ref_log_probs: &ref_log_probs,
        old_log_probs: &old_log_probs,
        grad_kl: &grad_kl,
    };
    divergence::kl_importance_weighted_gradient(&case.batch()?, input, &config, &mut grad)?;
    Ok(vec![("kl", Output::tokens(kl)), ("grad", Output::tokens(grad))])
}
