//! Divergence and entropy: the expectations of the estimates, and their bounds.

use tokenwise::{divergence::*, policy::*, Batch, Layout, Mask};
use tokenwise_tests::{
    generate::{Column, Number, Random, Spec, World},
    tolerance::{assert_bits, Basis},
};

use crate::{case::assert_close, naive::policy::log_softmax};

use super::check;
use crate::divergence::ESTIMATORS;

/// Two random rows of logits.
fn rows(spec: Spec) -> (Vec<f64>, Vec<f64>) {
    let mut random = Random::new(spec.seed);
    let vocab = random.below(40) + 1;
    let mut row = || (0..vocab).map(|_| random.between(-4.0, 4.0)).collect::<Vec<f64>>();
    (row(), row())
}

#[test]
fn k1_and_k3_are_exact_on_average() {
    check(|spec| {
        let (logits, ref_logits) = rows(spec);
        let vocab = logits.len();
        let one = Batch::new(Layout::padded(1, 1).unwrap(), Mask::new(&[true])).unwrap();
        let mut exact = [f64::NAN];
        let input = KlExactInput { logits: &logits, ref_logits: &ref_logits, vocab };
        kl_exact(&one, input, &PolicyConfig::default(), &mut exact).unwrap();

        // every token of the vocabulary once, weighted by its probability
        let keep = vec![true; vocab];
        let all = Batch::new(Layout::padded(1, vocab).unwrap(), Mask::new(&keep)).unwrap();
        let (p, q) = (log_softmax(&logits, 1.0), log_softmax(&ref_logits, 1.0));
        for estimator in [KlEstimator::K1, KlEstimator::K3] {
            let mut estimates = vec![f64::NAN; vocab];
            let config = KlConfig { estimator, ..Default::default() };
            kl_estimate(&all, KlInput { log_probs: &p, ref_log_probs: &q }, &config, &mut estimates).unwrap();
            let average: f64 = p.iter().zip(&estimates).map(|(p, estimate)| p.exp() * estimate).sum();
            assert_close::<crate::divergence::KlExact>(Basis::F64, &[average], &exact);
        }
        assert!(exact[0] >= -1e-15, "negative: {}", exact[0]);
    });
}

fn estimates_lie_where_they_must<R: Number>(spec: Spec) {
    let flat = World::<R>::new(spec).packed();
    let mut random = Random::new(spec.seed);
    let reach = random.pick(&[1e-6, 1e-3, 1.0, 30.0]);
    let mut log_probs = flat.column(Column::RefLogProbs).to_vec();
    for value in &mut log_probs {
        *value += R::narrow(random.between(-reach, reach));
    }
    let input = KlInput { log_probs: &log_probs, ref_log_probs: flat.column(Column::RefLogProbs) };
    for estimator in ESTIMATORS {
        for bounds in [KlBounds::Unbounded, KlBounds::K3Only, KlBounds::Every] {
            let mut out = vec![R::nan(); flat.tokens()];
            let config = KlConfig { estimator, bounds, gradient: KlGradient::StraightThrough };
            kl_estimate(&flat.batch(), input, &config, &mut out).unwrap();
            for value in &out {
                assert!(estimator == KlEstimator::K1 || *value >= R::zero(), "{estimator:?} is negative: {value}");
                assert!(
                    bounds != KlBounds::Every || value.abs() <= R::narrow(10.0),
                    "{estimator:?} runs away: {value}"
                );
            }
            // the gradient of d²/2, whatever the value and its bounds
            let mut grad = vec![R::nan(); flat.tokens()];
            kl_gradient(&flat.batch(), input, &config, &mut grad).unwrap();
            let d = |i: usize| if flat.keep[i] { log_probs[i] - input.ref_log_probs[i] } else { R::zero() };
            assert_bits("straight-through", &grad, &(0..grad.len()).map(d).collect::<Vec<R>>());
        }
    }
}

#[test]
fn estimates_are_bounded() {
    check(estimates_lie_where_they_must::<f32>);
    check(estimates_lie_where_they_must::<f64>);
}

fn equal_policies_do_not_diverge<R: Number>(spec: Spec) {
    let flat = World::<R>::new(spec).packed();
    let (logits, vocab) = (flat.column(Column::Logits), flat.vocab);
    let mut out = vec![R::nan(); flat.tokens()];
    kl_exact(&flat.batch(), KlExactInput { logits, ref_logits: logits, vocab }, &PolicyConfig::default(), &mut out)
        .unwrap();
    assert_bits("kl_exact", &out, &vec![R::zero(); out.len()]);
    let log_probs = flat.column(Column::LogProbs);
    for estimator in ESTIMATORS {
        let config = KlConfig { estimator, ..Default::default() };
        kl_estimate(&flat.batch(), KlInput { log_probs, ref_log_probs: log_probs }, &config, &mut out).unwrap();
        assert_bits("kl_estimate", &out, &vec![R::zero(); out.len()]);
    }
}

#[test]
fn a_policy_does_not_diverge_from_itself() {
    check(equal_policies_do_not_diverge::<f32>);
    check(equal_policies_do_not_diverge::<f64>);
}

fn distributions_lie_where_they_must<R: Number>(spec: Spec) {
    let flat = World::<R>::new(spec).packed();
    let (logits, vocab) = (flat.column(Column::Logits), flat.vocab);
    let slack = 8.0 * R::epsilon().widen();
    for (temperature, limit) in [(0.5, None), (1.0, None), (2.0, None), (1e9, Some(vocab as f64)), (1e-6, Some(1.0))] {
        let config = PolicyConfig { temperature };
        let (mut log_probs, mut entropies) = (vec![R::nan(); flat.tokens()], vec![R::nan(); flat.tokens()]);
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropies };
        let input = LogProbInput { logits, vocab, tokens: &flat.ids };
        log_probs_and_entropy(&flat.batch(), input, &config, output).unwrap();
        let mut alone = vec![R::nan(); flat.tokens()];
        token_log_probs(&flat.batch(), input, &config, &mut alone).unwrap();
        assert_bits("token_log_probs alone", &alone, &log_probs);
        entropy(&flat.batch(), LogitsInput { logits, vocab }, &config, &mut alone).unwrap();
        assert_bits("entropy alone", &alone, &entropies);
        let mut squares = vec![R::nan(); flat.tokens()];
        sum_squared_probs(&flat.batch(), LogitsInput { logits, vocab }, &config, &mut squares).unwrap();
        for slot in (0..flat.tokens()).filter(|&slot| flat.keep[slot]) {
            let (most, h, s) = ((vocab as f64).ln(), entropies[slot].widen(), squares[slot].widen());
            assert!(log_probs[slot] <= R::zero());
            assert!(h >= -slack && h <= most + slack * most.max(1.0), "entropy {h}, at most {most}");
            assert!(s <= 1.0 + slack && s >= 1.0 / vocab as f64 - slack, "sum of squares {s}");
            // flat at a high temperature; at a low one all but certain, unless two logits nearly tie
            if let Some(count) = limit {
                let near = (h - count.ln()).abs() < 1e-6;
                assert!(near || count == 1.0 && s < 1.0 - 1e-7, "temperature {temperature}: entropy {h}");
            }
        }
    }
}

#[test]
fn entropy_lies_between_certain_and_flat() {
    check(distributions_lie_where_they_must::<f32>);
    check(distributions_lie_where_they_must::<f64>);
}

/// A shift of all logits changes nothing, so their gradients add up to 0.
#[test]
fn gradients_of_a_row_add_up_to_nothing() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let (logits, ref_logits, vocab) = (flat.column(Column::Logits), flat.column(Column::RefLogits), flat.vocab);
        let (g, h) = (flat.column(Column::Advantages), flat.column(Column::Kl));
        let (mut plain, mut exact) = (vec![f64::NAN; logits.len()], vec![f64::NAN; logits.len()]);
        let input = LogitsGradientInput { logits, vocab, tokens: &flat.ids, grad_log_probs: g, grad_entropy: h };
        logits_gradient(&flat.batch(), input, &PolicyConfig::default(), &mut plain).unwrap();
        let input = KlExactGradientInput { logits, ref_logits, vocab, grad_kl: g };
        kl_exact_gradient(&flat.batch(), input, &PolicyConfig::default(), &mut exact).unwrap();
        for (plain, exact) in plain.chunks(vocab).zip(exact.chunks(vocab)) {
            assert_close::<crate::policy::LogitsGradient>(Basis::F64, &[plain.iter().sum::<f64>()], &[0.0]);
            assert_close::<crate::divergence::KlExactGradient>(Basis::F64, &[exact.iter().sum::<f64>()], &[0.0]);
        }
    });
}
