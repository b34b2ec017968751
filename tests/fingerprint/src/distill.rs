//! Stages 1 and 5: losses that draw a student to a teacher, and what leads to them from logits and back.

use tokenwise::{
    divergence::{KlBounds, KlConfig, KlEstimator, KlGradient, KlInput},
    loss::{
        self, Aggregate, BypassConfig, BypassForm, BypassLoss, BypassOutput, DualClip, ForwardKlTopK,
        ForwardKlTopKConfig, ForwardKlTopKInput, ForwardKlTopKOutput, IwOpdConfig, IwOpdInput, IwOpdLoss, JsdConfig,
        JsdInput, KlLoss, KlLossConfig, MixedKlConfig, MixedKlInput, MixedKlOutput, OpdLoss, OpdLossConfig,
        OpdLossInput, OpdRoute, OutsideTopK, PpoConfig, RefKlConfig, RefKlInput, RefKlLoss, ReinforceConfig, TopKIds,
        TopKInput, TopKJsdConfig, TopKRest,
    },
    policy::{self, TopKGradientInput, TopKLogitsInput},
    rollout::{Criterion, CriterionMetrics, RejectionConfig, RejectionOption, RolloutConfig},
    Divisor,
};

use crate::{
    cases::{Case, Out, VocabCase},
    hash::{Hash, Hashed, Value},
    loss::PER_SEQUENCE,
    policy::CONFIGS,
    shapes::{FEW, MOST},
};

macro_rules! hashed {
    ($($type:ident { $($field:ident),* })*) => {$(
        impl Hashed for $type {
            fn add_to(&self, hash: &mut Hash) {
                hash.add(&[$(self.$field),*]);
            }
        }
    )*};
}

hashed! {
    KlLoss { loss, aggregated, mean }
    OpdLoss { loss, clip_fraction, clip_fraction_lower, kl, abs_loss, loss_min, loss_max }
    RefKlLoss { loss, ref_kl, fallen, mismatch_fallen, mismatch_kept }
    IwOpdLoss { loss, mean_advantage, mean_abs_advantage, mean_weight, min_weight, max_weight }
}

impl Hashed for ForwardKlTopK {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&[self.loss, self.loss_min, self.loss_max]);
        hash.add(&[self.student_mass, self.teacher_mass]);
        if let Some(overlap) = self.overlap {
            hash.add(&[overlap.ratio, overlap.token_advantage]);
        }
    }
}

impl Hashed for BypassLoss {
    fn add_to(&self, hash: &mut Hash) {
        hash.add(&self.policy);
        hash.add(&self.mismatch);
        if let Some(weights) = &self.weights {
            hash.add(weights);
        }
        if let Some(rejection) = &self.rejection {
            hash.add(rejection);
        }
    }
}

const ESTIMATORS: [KlEstimator; 4] = [KlEstimator::K1, KlEstimator::Abs, KlEstimator::K2, KlEstimator::K3];
const AGGREGATES: [fn() -> Aggregate<'static>; 2] = [Aggregate::default, || PER_SEQUENCE];

pub(crate) fn kl_loss<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = KlInput { log_probs: case.log_probs, ref_log_probs: case.ref_log_probs };
    for estimator in ESTIMATORS {
        for (gradient, bounds) in [(KlGradient::Own, KlBounds::Every), (KlGradient::StraightThrough, KlBounds::K3Only)]
        {
            for aggregate in AGGREGATES {
                let kl = KlConfig { estimator, gradient, bounds };
                let config = KlLossConfig { kl, coefficient: 0.3, aggregate: aggregate() };
                let result = loss::kl_loss(&case.batch, input, &config, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn opd_loss<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for route in [OpdRoute::Clipped, OpdRoute::Surrogate, OpdRoute::Reinforce, OpdRoute::Supervised] {
        for estimator in ESTIMATORS {
            for (input, aggregate) in case.policy_losses().into_iter().zip(AGGREGATES) {
                let kl = KlConfig { estimator, ..KlConfig::default() };
                let config = OpdLossConfig {
                    kl,
                    route,
                    max_loss: Some(0.1),
                    coefficient: 0.7,
                    clip_low: 0.1,
                    clip_high: 0.15,
                    dual_clip: DualClip::NegativeOnly(1.1),
                    aggregate: aggregate(),
                    ..Default::default()
                };
                let input = OpdLossInput {
                    log_probs: input.log_probs,
                    old_log_probs: input.old_log_probs,
                    teacher_log_probs: case.ref_log_probs,
                    weights: input.weights,
                };
                let result = loss::opd_loss(&case.batch, input, &config, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn ref_kl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (weights, aggregate) in [None, Some(case.weights)].into_iter().zip(AGGREGATES) {
        for fall in [0.2, 1e-3] {
            let config = RefKlConfig { fall, drift: 0.3, aggregate: aggregate() };
            let input = RefKlInput {
                log_probs: case.log_probs,
                old_log_probs: case.old_log_probs,
                ref_log_probs: case.ref_log_probs,
                weights,
            };
            let result = loss::ref_kl(&case.batch, input, &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn iw_opd<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = IwOpdInput {
        log_probs: case.log_probs,
        old_log_probs: case.old_log_probs,
        teacher_log_probs: case.ref_log_probs,
    };
    for aggregate in AGGREGATES {
        let config = IwOpdConfig { gamma: 0.7, epsilon: 0.3, aggregate: aggregate() };
        let result = loss::iw_opd(&case.batch, input, &config, out.a);
        out.record(result);
    }
}

pub(crate) fn bypass_loss<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let keep = &mut [false; MOST][..case.batch.tokens()];
    let criteria = [
        Criterion { option: RejectionOption::TokenK2, lower: 0.5, upper: 0.02 },
        Criterion { option: RejectionOption::SeqMeanK3, lower: 0.5, upper: 0.05 },
    ];
    for weights in [None, Some(RolloutConfig::default())] {
        for form in [
            BypassForm::PpoClip(PpoConfig::default()),
            BypassForm::Reinforce(ReinforceConfig { aggregate: PER_SEQUENCE, ..Default::default() }),
        ] {
            let rejection = RejectionConfig { criteria: &criteria, divisor: Divisor::CountPlusEpsilon };
            let config = BypassConfig { weights, rejection, form, divisor: Divisor::Count };
            let mut per_criterion = [CriterionMetrics::default(); 2];
            let output = BypassOutput { weights: out.b, keep, per_criterion: &mut per_criterion, grad: out.a };
            let result = loss::bypass_loss(&case.batch, case.policy_loss(), &config, output);
            out.record((result, &*keep));
        }
    }
}

/// Two ids for each token, the second the one before.
fn two_ids<R>(case: &VocabCase<'_, R>) -> [u32; 2 * FEW] {
    let mut ids = [0; 2 * FEW];
    for (two, &id) in ids.chunks_exact_mut(2).zip(case.tokens) {
        two.copy_from_slice(&[id, id.saturating_sub(1)]);
    }
    ids
}

pub(crate) fn topk_log_probs<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let input = TopKLogitsInput { logits: case.logits, vocab: case.vocab, tokens: case.tokens, k: 1 };
        let result = policy::topk_log_probs(&case.batch, input, &config, out.a);
        out.record(result);
    }
}

pub(crate) fn topk_logits_gradient<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    let (ids, len) = (two_ids(case), 2 * case.batch.tokens());
    let mut grad = [R::zero(); 2 * FEW];
    for (two, (&g, &h)) in grad.chunks_exact_mut(2).zip(case.grad_log_probs.iter().zip(case.grad_entropy)) {
        two.copy_from_slice(&[g, h]);
    }
    for config in CONFIGS {
        let (logits, vocab) = (case.logits, case.vocab);
        let input = TopKGradientInput { logits, vocab, tokens: &ids[..len], k: 2, grad_log_probs: &grad[..len] };
        let result = policy::topk_logits_gradient(&case.batch, input, &config, out.logits);
        out.record(result);
    }
}

pub(crate) fn forward_kl_topk<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    let [log_probs, teacher_log_probs] = [case.logits, case.ref_logits];
    for (log_prob_floor, max_loss) in [(Some(-1.0), Some(9.0)), (None, None)] {
        let config = ForwardKlTopKConfig { log_prob_floor, max_loss, aggregate: Aggregate::default() };
        let input = ForwardKlTopKInput { log_probs, teacher_log_probs, k: case.vocab, ids: None };
        let output = ForwardKlTopKOutput { losses: out.a, grad: out.logits };
        let result = loss::forward_kl_topk(&case.batch, input, &config, output);
        out.record(result);
    }
    // the overlap, with one entry a token
    let ids = TopKIds { teacher: case.tokens, student: &two_ids(case)[..case.batch.tokens()] };
    let (log_probs, teacher_log_probs) = (case.grad_log_probs, case.grad_entropy);
    let input = ForwardKlTopKInput { log_probs, teacher_log_probs, k: 1, ids: Some(ids) };
    let output = ForwardKlTopKOutput { losses: out.a, grad: out.b };
    let result = loss::forward_kl_topk(&case.batch, input, &ForwardKlTopKConfig::default(), output);
    out.record(result);
}

const BETAS: [f64; 4] = [0.0, 0.3, 0.5, 1.0];

pub(crate) fn topk_jsd<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for beta in BETAS {
        for (rest, weights) in [(TopKRest::Tail, None), (TopKRest::Renormalize, Some(case.grad_entropy))] {
            let input =
                TopKInput { log_probs: case.logits, teacher_log_probs: case.ref_logits, k: case.vocab, weights };
            let config = TopKJsdConfig { beta, rest, aggregate: PER_SEQUENCE };
            let result = loss::topk_jsd(&case.batch, input, &config, out.logits);
            out.record(result);
        }
    }
}

pub(crate) fn mixed_kl_topk<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for forward in BETAS {
        for outside in [OutsideTopK::Renormalize, OutsideTopK::LogProb(-100.0)] {
            let input = MixedKlInput {
                log_probs: case.logits,
                teacher_log_probs: case.ref_logits,
                k: case.vocab,
                entropies: case.grad_entropy,
            };
            let config = MixedKlConfig { forward, outside, aggregate: PER_SEQUENCE };
            let output = MixedKlOutput { grad: out.logits, grad_entropies: out.a };
            let result = loss::mixed_kl_topk(&case.batch, input, &config, output);
            out.record(result);
        }
    }
}

pub(crate) fn generalized_jsd<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for beta in BETAS {
        for (temperature, weights) in [(1.0, None), (0.7, Some(case.grad_entropy))] {
            let (logits, teacher_logits) = (case.logits, case.ref_logits);
            let input = JsdInput { logits, teacher_logits, vocab: case.vocab, weights };
            let config = JsdConfig { beta, temperature, aggregate: PER_SEQUENCE };
            let result = loss::generalized_jsd(&case.batch, input, &config, out.logits);
            out.record(result);
        }
    }
}
