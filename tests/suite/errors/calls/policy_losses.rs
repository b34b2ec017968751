//! Policy losses beyond the clip.

use tokenwise::{
    loss::{self, *},
    Groups, Moments,
};

use crate::errors::{Call, Domain, Ended, NOT_NEGATIVE, POSITIVE, SEQUENCES, TOKENS, UNIT};

/// `upper` is 5; below 1 there would be candidates.
const AT_MOST_UPPER: &Domain =
    &Domain { must_be: "at most upper", good: &[1.0, 5.0], bad: &[5.000_001, f64::NAN, f64::INFINITY] };

/// Calls with all slices of the policy's input and a gradient.
fn with_input<T>(
    call: &mut Call,
    run: impl FnOnce(&mut Call, PolicyLossInput<'_, f64>, &mut [f64]) -> tokenwise::Result<T>,
) -> Ended {
    let [new, old, advantages, weights] =
        ["log_probs", "old_log_probs", "advantages", "weights"].map(|name| call.input(name, TOKENS));
    let mut grad = call.output("grad", TOKENS);
    let input =
        PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: Some(&weights) };
    let result = run(call, input, &mut grad);
    Ended::new(result).with(&grad)
}

pub(super) fn reinforce(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| loss::reinforce(&call.batch(), input, &ReinforceConfig::default(), grad))
}

pub(super) fn tis_loss(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| loss::tis_loss(&call.batch(), input, &TisLossConfig::default(), grad))
}

fn cispo_with(call: &mut Call, bounds: CispoBounds) -> Ended {
    with_input(call, |call, input, grad| {
        let log_ratio_bound = Some(call.number("log_ratio_bound", POSITIVE));
        loss::cispo(&call.batch(), input, &CispoConfig { bounds, log_ratio_bound, ..Default::default() }, grad)
    })
}

pub(super) fn cispo(call: &mut Call) -> Ended {
    let bounds =
        CispoBounds::Relative { low: call.number("low", NOT_NEGATIVE), high: call.number("high", NOT_NEGATIVE) };
    cispo_with(call, bounds)
}

pub(super) fn cispo_absolute(call: &mut Call) -> Ended {
    let bounds = CispoBounds::Absolute { high: call.number("high", POSITIVE) };
    cispo_with(call, bounds)
}

pub(super) fn sapo(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let config = SapoConfig {
            tau_positive: call.number("tau_positive", POSITIVE),
            tau_negative: call.number("tau_negative", POSITIVE),
            log_ratio_bound: Some(call.number("log_ratio_bound", POSITIVE)),
            ..Default::default()
        };
        loss::sapo(&call.batch(), input, &config, grad)
    })
}

pub(super) fn dro(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let beta = call.number("beta", POSITIVE);
        let config = DroConfig { beta, aggregate: Aggregate::default(), divisor: Default::default() };
        loss::dro(&call.batch(), input, &config, grad)
    })
}

fn dppo_config(call: &mut Call) -> DppoConfig<'static> {
    DppoConfig {
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        ratio_cap: call.number("ratio_cap", POSITIVE),
        log_ratio_bound: Some(call.number("log_ratio_bound", POSITIVE)),
        ..Default::default()
    }
}

pub(super) fn dppo_tv(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let config = dppo_config(call);
        loss::dppo_tv(&call.batch(), input, &config, grad)
    })
}

pub(super) fn dppo_kl(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let config = dppo_config(call);
        loss::dppo_kl(&call.batch(), input, &config, grad)
    })
}

pub(super) fn gspo(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let config = GspoConfig {
            clip_low: call.number("clip_low", NOT_NEGATIVE),
            clip_high: call.number("clip_high", NOT_NEGATIVE),
            log_ratio_cap: Some(call.number("log_ratio_cap", POSITIVE)),
            ..Default::default()
        };
        loss::gspo(&call.batch(), input, &config, grad)
    })
}

pub(super) fn luspo(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let (clip_low, clip_high) = (call.number("clip_low", NOT_NEGATIVE), call.number("clip_high", NOT_NEGATIVE));
        loss::luspo(&call.batch(), input, &LuspoConfig { clip_low, clip_high }, grad)
    })
}

pub(super) fn gmpo(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let (clip_low, clip_high) = (call.number("clip_low", NOT_NEGATIVE), call.number("clip_high", NOT_NEGATIVE));
        loss::gmpo(&call.batch(), input, &GmpoConfig { clip_low, clip_high, ..Default::default() }, grad)
    })
}

pub(super) fn vespo(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let config = VespoConfig {
            k_positive: call.number("k_positive", POSITIVE),
            lambda_positive: call.number("lambda_positive", POSITIVE),
            k_negative: call.number("k_negative", POSITIVE),
            lambda_negative: call.number("lambda_negative", POSITIVE),
            ..Default::default()
        };
        loss::vespo(&call.batch(), input, &config, grad)
    })
}

pub(super) fn clip_cov(call: &mut Call) -> Ended {
    let selected: Vec<bool> = call.input("selected", TOKENS).iter().map(|&x| x > 0.4).collect();
    with_input(call, |call, input, grad| {
        let (clip_low, clip_high) = (call.number("clip_low", NOT_NEGATIVE), call.number("clip_high", NOT_NEGATIVE));
        let config = ClipCovConfig { clip_low, clip_high, ..Default::default() };
        loss::clip_cov(&call.batch(), input, &config, &selected, grad)
    })
}

pub(super) fn clip_cov_selection(call: &mut Call) -> Ended {
    let [new, old, advantages, weights] =
        ["log_probs", "old_log_probs", "advantages", "weights"].map(|name| call.input(name, TOKENS));
    let input =
        PolicyLossInput { log_probs: &new, old_log_probs: &old, advantages: &advantages, weights: Some(&weights) };
    let config = ClipCovConfig {
        clip_low: call.number("clip_low", NOT_NEGATIVE),
        clip_high: call.number("clip_high", NOT_NEGATIVE),
        lower: call.number("lower", AT_MOST_UPPER),
        ratio: call.number("ratio", UNIT),
        ..Default::default()
    };
    let mut selected = call.output::<bool>("selected", TOKENS);
    Ended::new(loss::clip_cov_selection(&call.batch(), input, &config, 1, &mut selected)).with(&selected)
}

pub(super) fn kl_cov(call: &mut Call) -> Ended {
    with_input(call, |call, input, grad| {
        let (ratio, kl_coef) = (call.number("ratio", UNIT), call.number("kl_coef", NOT_NEGATIVE));
        loss::kl_cov(&call.batch(), input, &KlCovConfig { ratio, kl_coef, ..Default::default() }, grad)
    })
}

pub(super) fn topr(call: &mut Call) -> Ended {
    let scores = call.input("scores", SEQUENCES);
    with_input(call, |call, input, grad| {
        let (positive, negative) = (call.number("positive", NOT_NEGATIVE), call.number("negative", NOT_NEGATIVE));
        loss::topr(&call.batch(), input, &scores, &ToprConfig { positive, negative, ..Default::default() }, grad)
    })
}

pub(super) fn gvpo(call: &mut Call) -> Ended {
    let mut scratch = call.output::<Moments>("scratch", 1);
    let groups = Groups::from_ids(&[0, 0]).unwrap();
    let ended = with_input(call, |call, input, grad| {
        let config = GvpoConfig { beta: call.number("beta", POSITIVE) };
        loss::gvpo(&call.batch(), &groups, input, &config, &mut scratch, grad)
    });
    ended.with(&scratch)
}

pub(super) fn positive_nll(call: &mut Call) -> Ended {
    let (log_probs, scores) = (call.input("log_probs", TOKENS), call.input("scores", SEQUENCES));
    let mut grad = call.output("grad", TOKENS);
    let mu = call.number("mu", NOT_NEGATIVE);
    Ended::new(loss::positive_nll(&call.batch(), &log_probs, &scores, mu, &mut grad)).with(&grad)
}
