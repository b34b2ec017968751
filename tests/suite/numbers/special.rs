//! Infinities, zeros with a sign, and subnormal numbers.

use tokenwise::{
    advantage::*, divergence::*, loss::*, metric::*, policy::*, reward::*, Batch, Layout, Mask, MeanConfig, PairInput,
};
use tokenwise_tests::tolerance::assert_bits;

const INF: f64 = f64::INFINITY;

/// One sequence, all kept.
fn batch(len: usize) -> Batch<'static> {
    Batch::new(Layout::padded(1, len).unwrap(), Mask::new(&[true; 16][..len])).unwrap()
}

#[test]
fn impossible_and_certain_tokens() {
    // the third row has no possible token, the fourth an infinite one
    let logits = [-INF, 2.0, 5.0, -INF, -INF, -INF, INF, 0.0];
    let input = LogProbInput { logits: &logits, vocab: 2, tokens: &[0, 0, 1, 1] };
    let (mut log_probs, mut entropies) = ([9.0; 4], [9.0; 4]);
    let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropies };
    log_probs_and_entropy(&batch(4), input, &PolicyConfig::default(), output).unwrap();
    assert_bits("log_probs", &log_probs, &[-INF, 0.0, f64::NAN, f64::NAN]);
    assert_bits("entropy", &entropies, &[0.0, 0.0, f64::NAN, f64::NAN]);
    let mut squares = [9.0; 4];
    sum_squared_probs(&batch(4), LogitsInput { logits: &logits, vocab: 2 }, &PolicyConfig::default(), &mut squares)
        .unwrap();
    assert_bits("sum_squared_probs", &squares, &[1.0, 1.0, f64::NAN, f64::NAN]);

    let mut grad = [9.0; 4];
    let zeros = [0.0; 2];
    let input = LogitsGradientInput {
        logits: &logits[..4],
        vocab: 2,
        tokens: &[1, 0],
        grad_log_probs: &[1.0, 1.0],
        grad_entropy: &zeros,
    };
    logits_gradient(&batch(2), input, &PolicyConfig::default(), &mut grad).unwrap();
    assert_eq!(grad, [0.0; 4]);
}

#[test]
fn divergence_from_a_reference_that_rules_a_token_out() {
    let run = |logits: &[f64; 2], ref_logits: &[f64; 2]| {
        let mut out = [9.0];
        let input = KlExactInput { logits, ref_logits, vocab: 2 };
        kl_exact(&batch(1), input, &PolicyConfig::default(), &mut out).unwrap();
        out[0]
    };
    assert_eq!(run(&[0.0, 0.0], &[0.0, -INF]), INF);
    assert_eq!(run(&[0.0, -INF], &[0.0, -INF]), 0.0);
    assert!(run(&[-INF, -INF], &[0.0, 0.0]).is_nan());
}

#[test]
fn estimates_of_infinite_log_ratios() {
    // d = −inf, +inf, and −inf − (−inf)
    let input = KlInput { log_probs: &[-INF, -1.0, -INF], ref_log_probs: &[-1.0, -INF, -INF] };
    for (estimator, want) in [
        (KlEstimator::K1, [-INF, INF, f64::NAN]),
        (KlEstimator::Abs, [INF, INF, f64::NAN]),
        (KlEstimator::K2, [INF, INF, f64::NAN]),
        (KlEstimator::K3, [INF, INF, f64::NAN]),
    ] {
        let mut out = [9.0; 3];
        kl_estimate(&batch(3), input, &KlConfig { estimator, ..Default::default() }, &mut out).unwrap();
        assert_bits("unbounded", &out, &want);
        let config = KlConfig { estimator, bounds: KlBounds::Every, ..Default::default() };
        kl_estimate(&batch(3), input, &config, &mut out).unwrap();
        assert_bits("bounded", &out[2..], &[f64::NAN]);
        assert!(out[..2].iter().all(|x| x.abs() <= 10.0), "{out:?}");
        kl_gradient(&batch(3), input, &config, &mut out).unwrap();
        assert_bits("beyond a bound", &out, &[0.0, 0.0, f64::NAN]);
    }
}

#[test]
fn a_token_the_new_policy_rules_out() {
    let input = PolicyLossInput {
        log_probs: &[-INF, -1.0],
        old_log_probs: &[-1.0, -1.0],
        advantages: &[1.0, 1.0],
        weights: None,
    };
    let mut grad = [9.0; 2];
    let loss = surrogate(&batch(2), input, &SurrogateConfig::default(), &mut grad).unwrap();
    assert_eq!((loss, grad), (-0.5, [0.0, -0.5]));
    // probability 0 under the old policy: an infinite ratio, which is clipped
    let input = PolicyLossInput { old_log_probs: &[-INF, -1.0], log_probs: &[-1.0, -1.0], ..input };
    let loss = surrogate(&batch(2), input, &SurrogateConfig::default(), &mut grad).unwrap();
    assert_eq!((loss, grad), (-INF, [-INF, -0.5]));
    let result = ppo_clip(&batch(2), input, &PpoConfig { clip_high: 0.5, ..Default::default() }, &mut grad).unwrap();
    assert_eq!((result.loss, grad, result.clip_fraction), (-1.25, [0.0, -0.5], 0.5));
}

#[test]
fn sums_over_infinities() {
    let of = |values: &[f64]| mean(&batch(values.len()), values, &MeanConfig::default()).unwrap();
    assert_eq!(of(&[INF, 1.0]), INF);
    assert_eq!(of(&[1.0, -INF]), -INF);
    assert!(of(&[INF, -INF]).is_nan());
    assert!(variance(&batch(3), &[INF, 1.0, 2.0], &VarianceConfig::default()).unwrap().is_nan());
    // the sum exceeds f32 but not f64
    assert_eq!(mean(&batch(4), &[f32::MAX; 4], &MeanConfig::default()).unwrap(), f64::from(f32::MAX));
    assert!(correlation(&batch(3), PairInput { x: &[1.0, 1.0, 1.0], y: &[1.0, 2.0, 3.0] }).unwrap().is_nan());
}

#[test]
fn an_infinite_reward_reaches_back_only() {
    let (mut advantages, mut returns) = ([9.0; 3], [9.0; 3]);
    let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
    let input = GaeInput { rewards: &[0.0, INF, 0.5], values: &[0.0; 3], bootstrap: &[0.0] };
    gae(&batch(3), input, &GaeConfig::default(), output).unwrap();
    assert_eq!((advantages, returns), ([INF, INF, 0.5], [INF, INF, 0.5]));
}

#[test]
fn certain_tokens_have_no_information() {
    // p = 0 and p = 1: H = 0 for both, not 0 · inf
    let input = AnalysisInput { old_log_probs: &[-INF, 0.0], advantages: &[1.0, 1.0], rewards: &[0.0, 1.0] };
    let result = analysis(&batch(2), input).unwrap();
    assert_eq!((result.entropy_per_token_mean(), result.wh_sum, result.reward_sum_mean()), (0.0, 0.0, 1.0));
}

#[test]
fn zeros_keep_their_sign_where_they_are_copied() {
    let mut out = [9.0_f32; 2];
    place_scores(&batch(2), &[-0.0], &mut out).unwrap();
    assert_bits("place_scores", &out, &[0.0, -0.0]);
    broadcast(&batch(2), &[-0.0], &mut out).unwrap();
    assert_bits("broadcast", &out, &[-0.0, -0.0]);
    shape_rewards(
        &batch(2),
        ShapeInput { scores: &[-0.0, 0.0], kl: &[1.0, -1.0] },
        &ShapeConfig { beta: 0.0 },
        &mut out,
    )
    .unwrap();
    assert_bits("shape_rewards", &out, &[-0.0, 0.0]);
    // a sum of zeros is +0, whatever their signs
    let mut sum = [9.0_f32];
    sequence_sums(&batch(2), &[-0.0, -0.0], &mut sum).unwrap();
    assert_bits("sequence_sums", &sum, &[0.0]);
    // a zero advantage has gradient 0
    let input = PolicyLossInput {
        log_probs: &[0.5_f32, -0.5],
        old_log_probs: &[0.0, 0.0],
        advantages: &[0.0, -0.0],
        weights: None,
    };
    let result = ppo_clip(&batch(2), input, &PpoConfig::default(), &mut out).unwrap();
    assert_eq!((result.loss, out, result.clip_fraction), (0.0, [0.0; 2], 0.0));
}

#[test]
fn subnormal_numbers_are_numbers() {
    let tiny = f32::from_bits(1);
    assert_eq!(mean(&batch(3), &[tiny; 3], &MeanConfig::default()).unwrap() as f32, tiny);
    let mut out = [9.0_f32; 2];
    let input = KlInput { log_probs: &[3.0 * tiny, tiny], ref_log_probs: &[tiny, 3.0 * tiny] };
    kl_estimate(&batch(2), input, &KlConfig::default(), &mut out).unwrap();
    assert_bits("a difference of subnormals is exact", &out, &[2.0 * tiny, -2.0 * tiny]);
    kl_estimate(&batch(2), input, &KlConfig { estimator: KlEstimator::K3, ..Default::default() }, &mut out).unwrap();
    assert_bits("its square is 0", &out, &[0.0, 0.0]);
    uniform_credit(&batch(2), &[4.0 * tiny], &mut out).unwrap();
    assert_bits("half of it is exact", &out, &[2.0 * tiny; 2]);
    let weights = [f32::MIN_POSITIVE / 4.0, f32::MIN_POSITIVE / 4.0];
    attention_credit(&batch(2), AttentionInput { scores: &[1.0], weights: &weights }, &mut out).unwrap();
    assert_bits("only proportions count", &out, &[0.5, 0.5]);
}
