//! Stage 4: returns and advantages with a critic.

use tokenwise::advantage::*;
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    advantage::{discount, ACROSS},
    case::{by_name, tokens, Case, Outcome},
    errors::domains::*,
    naive::returns as naive,
};

pub(crate) fn td_input<R: Number>(flat: &Flat<R>) -> TdInput<'_, R> {
    TdInput { rewards: flat.column(Column::Rewards), values: flat.column(Column::Values), bootstrap: &flat.bootstrap }
}

pub(crate) struct TdLambda;
impl Case for TdLambda {
    const NAME: &'static str = "td_lambda";
    const UNITS: [f64; 2] = [40.0, 10.0];
    const DOMAINS: &'static [Row] = &[any().numbers(GAMMA_LAMBDA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = TdLambdaConfig;
    fn config(random: &mut Random) -> Self::Config {
        TdLambdaConfig { gamma: discount(random), lambda: discount(random), across: random.pick(&ACROSS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        Outcome::tokens([naive::td_lambda(tokens(flat), td_input(flat), &config)])
    }
}

pub(crate) struct NStepReturns;
impl Case for NStepReturns {
    const NAME: &'static str = "n_step_returns";
    const UNITS: [f64; 2] = [10.0, 8.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("n", AT_LEAST_1), key("gamma", UNIT), key("lambda", UNIT)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = NStepConfig;
    fn config(random: &mut Random) -> Self::Config {
        let n = random.pick(&[1, 2, 3, 7, 16, 1 << 31]);
        NStepConfig { n, gamma: discount(random), lambda: discount(random), across: random.pick(&ACROSS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        Outcome::tokens([naive::n_step_returns(tokens(flat), td_input(flat), &config)])
    }
}

pub(crate) struct Upgo;
impl Case for Upgo {
    const NAME: &'static str = "upgo";
    const UNITS: [f64; 2] = [3.0, 3.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::upgo(tokens(flat), td_input(flat))])
    }
}

pub(crate) struct GaeDecoupled;
impl Case for GaeDecoupled {
    const NAME: &'static str = "gae_decoupled";
    const UNITS: [f64; 2] = [60.0, 80.0];
    const DOMAINS: &'static [Row] = &[
        any().numbers(&[key("gamma", UNIT), key("lambda_value", UNIT), key("lambda_policy", UNIT)]),
        any().numbers(&[
            key("gamma", UNIT),
            key("lambda_value", UNIT),
            inside("lambda_policy.alpha", "alpha", POSITIVE),
        ]),
    ];
    const SEQUENCES_ALONE: bool = true;
    type Config = GaeDecoupledConfig;
    fn config(random: &mut Random) -> Self::Config {
        let fixed = PolicyLambda::Fixed(discount(random));
        let lambda_policy = random.pick(&[fixed, fixed, PolicyLambda::LengthAdaptive { alpha: 0.125 }]);
        let (gamma, lambda_value) = (discount(random), discount(random));
        GaeDecoupledConfig { gamma, lambda_value, lambda_policy, across: random.pick(&ACROSS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (advantages, returns) = naive::gae_decoupled(tokens(flat), td_input(flat), &config);
        Outcome::tokens([advantages, returns])
    }
}

const CAPS: [f64; 4] = [0.75, 1.0, 2.0, f64::INFINITY];

pub(crate) fn vtrace_input<R: Number>(flat: &Flat<R>) -> VtraceInput<'_, R> {
    let TdInput { rewards, values, bootstrap } = td_input(flat);
    let (log_probs, old_log_probs) = (flat.column(Column::LogProbs), flat.column(Column::OldLogProbs));
    VtraceInput { rewards, values, bootstrap, log_probs, old_log_probs }
}

pub(crate) struct Vtrace;
impl Case for Vtrace {
    const NAME: &'static str = "vtrace";
    const UNITS: [f64; 2] = [30.0, 15.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[
        key("gamma", UNIT),
        key("lambda", UNIT),
        key("alpha", UNIT),
        key("rho_bar", CAP),
        key("c_bar", CAP),
        key("rho_bar_pg", CAP),
    ])];
    const SEQUENCES_ALONE: bool = true;
    type Config = VtraceConfig;
    fn config(random: &mut Random) -> Self::Config {
        VtraceConfig {
            gamma: discount(random),
            lambda: discount(random),
            rho_bar: random.pick(&CAPS),
            c_bar: random.pick(&CAPS),
            rho_bar_pg: random.pick(&CAPS),
            alpha: random.pick(&[1.0, 1.0, 0.75, 0.0]),
        }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (targets, advantages) = naive::vtrace(tokens(flat), vtrace_input(flat), &config);
        Outcome::tokens([targets, advantages])
    }
}

/// Ratios up to 4, exact in both types.
fn ratios<R: Number>(flat: &Flat<R>) -> Vec<R> {
    flat.column(Column::Weights).iter().map(|&weight| weight * R::narrow(4.0)).collect()
}

pub(crate) struct PufferAdvantage;
impl Case for PufferAdvantage {
    const NAME: &'static str = "puffer_advantage";
    const UNITS: [f64; 2] = [15.0, 10.0];
    const DOMAINS: &'static [Row] =
        &[any().numbers(&[key("gamma", UNIT), key("lambda", UNIT), key("rho_bar", CAP), key("c_bar", CAP)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = PufferConfig;
    fn config(random: &mut Random) -> Self::Config {
        PufferConfig {
            gamma: discount(random),
            lambda: discount(random),
            rho_bar: random.pick(&CAPS),
            // without a cap a trace of ratios of 2 on average would grow without bound
            c_bar: random.pick(&[0.75, 1.0]),
            variant: random.pick(&[PufferVariant::V3, PufferVariant::V4]),
        }
    }
    by_name!("ratios": |flat: &Flat<R>| Array::Real(ratios(flat)));
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let ratios = ratios(flat);
        let TdInput { rewards, values, bootstrap } = td_input(flat);
        let input = PufferInput { rewards, values, bootstrap, ratios: &ratios };
        Outcome::tokens([naive::puffer_advantage(tokens(flat), input, &config)])
    }
}

fn retrace_input<R: Number>(flat: &Flat<R>) -> RetraceInput<'_, R> {
    let VtraceInput { rewards, values, bootstrap, log_probs, old_log_probs } = vtrace_input(flat);
    RetraceInput {
        rewards,
        values,
        action_values: flat.column(Column::Predictions),
        bootstrap,
        log_probs,
        old_log_probs,
    }
}

pub(crate) struct Retrace;
impl Case for Retrace {
    const NAME: &'static str = "retrace";
    const UNITS: [f64; 2] = [50.0, 20.0];
    const DOMAINS: &'static [Row] = &[any().numbers(GAMMA_LAMBDA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = RetraceConfig;
    fn config(random: &mut Random) -> Self::Config {
        use TraceCoefficient::*;
        let coefficient = random.pick(&[Importance, Lambda, TreeBackup, Retrace]);
        RetraceConfig { gamma: discount(random), lambda: discount(random), coefficient }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        Outcome::tokens([naive::retrace(tokens(flat), retrace_input(flat), &config)])
    }
}

crate::case::tests! {
    td_lambda: TdLambda {
        nan_stays_in_its_token(&[Column::Rewards]);
    },
    n_step_returns: NStepReturns {
        nan_stays_in_its_token(&[Column::Rewards]);
    },
    upgo: Upgo {
        nan_stays_in_its_token(&[Column::Rewards]);
    },
    vtrace: Vtrace {
        nan_stays_in_its_token(&[Column::Rewards, Column::Values, Column::LogProbs, Column::OldLogProbs]);
    },
    puffer_advantage: PufferAdvantage {
        nan_stays_in_its_token(&[Column::Rewards, Column::Values, Column::Weights]);
    },
    retrace: Retrace {
        nan_stays_in_its_token(&[Column::Rewards]);
    },
    gae_decoupled: GaeDecoupled {
        nan_stays_in_its_token(&[Column::Rewards, Column::Values]);
    },
}
