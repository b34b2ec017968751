//! Stage 5: losses of each token on its own.

use tokenwise::{
    loss::{
        self, Aggregate, CispoBounds, CispoConfig, ClipCovConfig, DppoConfig, DroConfig, KlCovConfig, PolicyLoss,
        PolicyLossInput, ReinforceConfig, SapoConfig, TisLossConfig,
    },
    Batch, Divisor, Result,
};

use crate::{
    cases::{Case, Out},
    hash::Value,
    loss::PER_SEQUENCE,
    shapes::MOST,
};

/// Runs a loss without weights and with them, with two aggregations each.
fn crossed<R: Value>(
    case: &Case<'_, R>,
    out: &mut Out<'_, R>,
    mut run: impl FnMut(&Batch<'_>, PolicyLossInput<'_, R>, Aggregate<'static>, Divisor, &mut [R]) -> Result<PolicyLoss>,
) {
    for input in case.policy_losses() {
        for (aggregate, divisor) in [(Aggregate::default(), Divisor::Count), (PER_SEQUENCE, Divisor::CountPlusEpsilon)]
        {
            let result = run(&case.batch, input, aggregate, divisor, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn reinforce<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    crossed(case, out, |batch, input, aggregate, divisor, grad| {
        loss::reinforce(batch, input, &ReinforceConfig { aggregate, divisor }, grad)
    });
}

pub(crate) fn cispo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for bounds in [CispoBounds::Relative { low: 0.1, high: 0.15 }, CispoBounds::Absolute { high: 1.1 }] {
        for log_ratio_bound in [Some(20.0), None] {
            crossed(case, out, |batch, input, aggregate, divisor, grad| {
                loss::cispo(batch, input, &CispoConfig { bounds, log_ratio_bound, aggregate, divisor }, grad)
            });
        }
    }
}

pub(crate) fn tis_loss<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    crossed(case, out, |batch, input, aggregate, divisor, grad| {
        loss::tis_loss(batch, input, &TisLossConfig { aggregate, divisor }, grad)
    });
}

/// Probabilities differ less than their ratios; the cap is met by some.
const DPPO: [DppoConfig<'static>; 2] = [
    DppoConfig {
        clip_low: 1e-3,
        clip_high: 2e-3,
        ratio_cap: 1.1,
        log_ratio_bound: Some(20.0),
        aggregate: PER_SEQUENCE,
        divisor: Divisor::Count,
    },
    DppoConfig {
        clip_low: 0.02,
        clip_high: 0.01,
        ratio_cap: 3.0,
        log_ratio_bound: None,
        aggregate: PER_SEQUENCE,
        divisor: Divisor::Count,
    },
];

pub(crate) fn dppo_tv<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for config in DPPO {
        crossed(case, out, |batch, input, aggregate, divisor, grad| {
            loss::dppo_tv(batch, input, &DppoConfig { aggregate, divisor, ..config }, grad)
        });
    }
}

pub(crate) fn dppo_kl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for config in DPPO {
        crossed(case, out, |batch, input, aggregate, divisor, grad| {
            loss::dppo_kl(batch, input, &DppoConfig { aggregate, divisor, ..config }, grad)
        });
    }
}

pub(crate) fn dro<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    crossed(case, out, |batch, input, aggregate, divisor, grad| {
        loss::dro(batch, input, &DroConfig { beta: 0.3, aggregate, divisor }, grad)
    });
}

pub(crate) fn sapo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for log_ratio_bound in [Some(20.0), None] {
        crossed(case, out, |batch, input, aggregate, divisor, grad| {
            let config = SapoConfig { tau_positive: 1.0, tau_negative: 1.05, log_ratio_bound, aggregate, divisor };
            loss::sapo(batch, input, &config, grad)
        });
    }
}

/// Candidates for some seeds, and enough to choose from.
const CLIP_COV: ClipCovConfig<'static> = ClipCovConfig {
    clip_low: 0.1,
    clip_high: 0.15,
    lower: 0.5,
    upper: 5.0,
    ratio: 0.1,
    aggregate: PER_SEQUENCE,
    divisor: Divisor::Count,
};

pub(crate) fn clip_cov<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let mut selected = [false; MOST];
    selected.iter_mut().step_by(5).for_each(|chosen| *chosen = true);
    let selected = &selected[..case.batch.tokens()];
    crossed(case, out, |batch, input, aggregate, divisor, grad| {
        loss::clip_cov(batch, input, &ClipCovConfig { aggregate, divisor, ..CLIP_COV }, selected, grad)
    });
}

pub(crate) fn clip_cov_selection<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let selected = &mut [false; MOST][..case.batch.tokens()];
    for seed in [0, 7, u64::MAX] {
        for (ratio, divisor) in [(2e-4, Divisor::Count), (0.1, Divisor::CountPlusEpsilon), (1.0, Divisor::Count)] {
            let config = ClipCovConfig { ratio, divisor, ..CLIP_COV };
            let result = loss::clip_cov_selection(&case.batch, case.policy_loss(), &config, seed, selected);
            out.record((result, &*selected));
        }
    }
}

pub(crate) fn kl_cov<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for ratio in [2e-4, 0.1, 1.0] {
        crossed(case, out, |batch, input, aggregate, divisor, grad| {
            loss::kl_cov(batch, input, &KlCovConfig { ratio, kl_coef: 0.7, aggregate, divisor }, grad)
        });
    }
}
