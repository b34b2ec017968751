//! Stage 2.

use tokenwise::divergence::{
    self, KlBounds, KlConfig, KlEstimator, KlExactGradientInput, KlExactInput, KlGradient, KlInput, KlWeight,
    KlWeightedConfig, KlWeightedGradientInput, KlWeightedInput,
};

use crate::{
    cases::{Case, Out, VocabCase},
    hash::Value,
    policy::CONFIGS,
};

const ESTIMATORS: [KlEstimator; 4] = [KlEstimator::K1, KlEstimator::Abs, KlEstimator::K2, KlEstimator::K3];

pub(crate) fn kl_estimate<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for estimator in ESTIMATORS {
        for bounds in [KlBounds::Unbounded, KlBounds::K3Only, KlBounds::Every] {
            let input = KlInput { log_probs: case.log_probs, ref_log_probs: case.ref_log_probs };
            let config = KlConfig { estimator, bounds, ..KlConfig::default() };
            let result = divergence::kl_estimate(&case.batch, input, &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn kl_gradient<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for estimator in ESTIMATORS {
        for (gradient, bounds) in [
            (KlGradient::Own, KlBounds::Unbounded),
            (KlGradient::Own, KlBounds::Every),
            (KlGradient::StraightThrough, KlBounds::K3Only),
        ] {
            let input = KlInput { log_probs: case.log_probs, ref_log_probs: case.ref_log_probs };
            let config = KlConfig { estimator, gradient, bounds };
            let result = divergence::kl_gradient(&case.batch, input, &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn kl_exact<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let input = KlExactInput { logits: case.logits, ref_logits: case.ref_logits, vocab: case.vocab };
        let result = divergence::kl_exact(&case.batch, input, &config, out.a);
        out.record(result);
    }
}

pub(crate) fn kl_exact_gradient<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let input = KlExactGradientInput {
            logits: case.logits,
            ref_logits: case.ref_logits,
            vocab: case.vocab,
            grad_kl: case.grad_log_probs,
        };
        let result = divergence::kl_exact_gradient(&case.batch, input, &config, out.logits);
        out.record(result);
    }
}

const WEIGHTS: [KlWeight; 5] =
    [KlWeight::Token, KlWeight::Sequence, KlWeight::TokenBounded, KlWeight::TokenFinite, KlWeight::ScoreFunction];

pub(crate) fn kl_importance_weighted<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for weight in WEIGHTS {
        for estimator in ESTIMATORS {
            for bounds in [KlBounds::Unbounded, KlBounds::K3Only, KlBounds::Every] {
                let input = KlWeightedInput {
                    log_probs: case.log_probs,
                    ref_log_probs: case.ref_log_probs,
                    old_log_probs: case.old_log_probs,
                };
                let kl = KlConfig { estimator, bounds, ..KlConfig::default() };
                let config = KlWeightedConfig { weight, kl };
                let result = divergence::kl_importance_weighted(&case.batch, input, &config, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn kl_importance_weighted_gradient<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for weight in WEIGHTS {
        for estimator in ESTIMATORS {
            for (gradient, bounds) in [
                (KlGradient::Own, KlBounds::Unbounded),
                (KlGradient::Own, KlBounds::Every),
                (KlGradient::StraightThrough, KlBounds::K3Only),
            ] {
                let input = KlWeightedGradientInput {
                    log_probs: case.log_probs,
                    ref_log_probs: case.ref_log_probs,
                    old_log_probs: case.old_log_probs,
                    grad_kl: case.advantages,
                };
                let config = KlWeightedConfig { weight, kl: KlConfig { estimator, gradient, bounds } };
                let result = divergence::kl_importance_weighted_gradient(&case.batch, input, &config, out.a);
                out.record(result);
            }
        }
    }
}
