//! Functions that return numbers.

use tokenwise::{
    divergence::KlInput,
    loss::{self, *},
    metric::{self, *},
    Groups,
};

use crate::errors::{Call, Ended, ABOVE_1, FINITE, NOT_NEGATIVE, POSITIVE, TOKENS};

pub(super) fn aggregate(call: &mut Call) -> Ended {
    let (losses, mut weights) = (call.input("losses", TOKENS), call.output("weights", TOKENS));
    Ended::new(loss::aggregate(&call.batch(), &losses, &Aggregate::default(), &mut weights)).with(&weights)
}

pub(super) fn group_tokens(call: &mut Call) -> Ended {
    let mut out = call.output::<u64>("out", 2);
    Ended::new(loss::group_tokens(&call.batch(), &Groups::from_ids(&[1, 0]).unwrap(), &mut out)).with(&out)
}

/// Log-probabilities of two policies, and advantages.
fn policies(call: &mut Call) -> [Vec<f64>; 3] {
    ["log_probs", "old_log_probs", "advantages"].map(|name| call.input(name, TOKENS))
}

pub(super) fn surrogate(call: &mut Call) -> Ended {
    let [new, old, advantages] = policies(call);
    let (weights, mut grad) = (call.input("weights", TOKENS), call.output("grad", TOKENS));
    let config =
        SurrogateConfig { log_ratio_bound: Some(call.number("log_ratio_bound", POSITIVE)), ..Default::default() };
    let input =
        PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: Some(&weights) };
    Ended::new(loss::surrogate(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn ppo_clip(call: &mut Call) -> Ended {
    let [new, old, advantages] = policies(call);
    let (weights, mut grad) = (call.input("weights", TOKENS), call.output("grad", TOKENS));
    let config = PpoConfig {
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        dual_clip: DualClip::NegativeOnly(call.number("dual_clip", ABOVE_1)),
        log_ratio_bound: Some(call.number("log_ratio_bound", POSITIVE)),
        ..Default::default()
    };
    let input =
        PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: Some(&weights) };
    Ended::new(loss::ppo_clip(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn value_loss(call: &mut Call) -> Ended {
    let [predictions, values, returns] = ["predictions", "values", "returns"].map(|name| call.input(name, TOKENS));
    let mut grad = call.output("grad", TOKENS);
    let config = ValueConfig { clip: Some(call.number("clip", NOT_NEGATIVE)), ..Default::default() };
    let input = ValueLossInput { predictions: &predictions, values: &values, returns: &returns };
    Ended::new(loss::value_loss(&call.batch(), input, &config, &mut grad)).with(&grad)
}

pub(super) fn entropy_bonus(call: &mut Call) -> Ended {
    let (entropy, mut grad) = (call.input("entropy", TOKENS), call.output("grad", TOKENS));
    let config = EntropyBonusConfig { coefficient: call.number("coefficient", FINITE), ..Default::default() };
    Ended::new(loss::entropy_bonus(&call.batch(), &entropy, &config, &mut grad)).with(&grad)
}

pub(super) fn mean(call: &mut Call) -> Ended {
    let values = call.input("values", TOKENS);
    Ended::new(metric::mean(&call.batch(), &values, Divisor::Count))
}

pub(super) fn variance(call: &mut Call) -> Ended {
    let values = call.input("values", TOKENS);
    Ended::new(metric::variance(&call.batch(), &values, Spread::Sample, Divisor::Count))
}

pub(super) fn correlation(call: &mut Call) -> Ended {
    let (x, y) = (call.input("x", TOKENS), call.input("y", TOKENS));
    Ended::new(metric::correlation(&call.batch(), PairInput { x: &x, y: &y }))
}

pub(super) fn explained_variance(call: &mut Call) -> Ended {
    let (values, returns) = (call.input("values", TOKENS), call.input("returns", TOKENS));
    let config = ExplainedVarianceConfig { epsilon: call.number("epsilon", NOT_NEGATIVE), ..Default::default() };
    let input = ExplainedVarianceInput { values: &values, returns: &returns };
    Ended::new(metric::explained_variance(&call.batch(), input, &config))
}

pub(super) fn kl_means(call: &mut Call) -> Ended {
    let (p, q) = (call.input("log_probs", TOKENS), call.input("ref_log_probs", TOKENS));
    Ended::new(metric::kl_means(&call.batch(), KlInput { log_probs: &p, ref_log_probs: &q }, Divisor::Count))
}

pub(super) fn clip_fractions(call: &mut Call) -> Ended {
    let [new, old, advantages] = policies(call);
    let config = ClipConfig {
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        dual_clip: DualClip::BothSigns(call.number("dual_clip", ABOVE_1)),
        ..Default::default()
    };
    let input = RatioInput { log_probs: &new, old_log_probs: &old, advantages: &advantages };
    Ended::new(metric::clip_fractions(&call.batch(), input, &config))
}

pub(super) fn analysis(call: &mut Call) -> Ended {
    let old_log_probs = call.input("old_log_probs", TOKENS);
    let (advantages, rewards) = (call.input("advantages", TOKENS), call.input("rewards", TOKENS));
    let input = AnalysisInput { old_log_probs: &old_log_probs, advantages: &advantages, rewards: &rewards };
    Ended::new(metric::analysis(&call.batch(), input))
}

pub(super) fn moments(call: &mut Call) -> Ended {
    let values = call.input("values", TOKENS);
    Ended::new(Moments::of(&call.batch(), &values))
}

pub(super) fn co_moments(call: &mut Call) -> Ended {
    let (x, y) = (call.input("x", TOKENS), call.input("y", TOKENS));
    Ended::new(CoMoments::of(&call.batch(), &x, &y))
}
