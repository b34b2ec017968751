//! Stage 4: returns and advantages with a critic.

use tokenwise::{advantage::*, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::returns as naive,
};

use crate::{
    advantage::{discount, ACROSS},
    case::{tokens, unwritten, Case, Outcome},
};

pub(crate) fn td_input<R: Number>(flat: &Flat<R>) -> TdInput<'_, R> {
    TdInput { rewards: flat.column(Column::Rewards), values: flat.column(Column::Values), bootstrap: &flat.bootstrap }
}

pub(crate) struct TdLambda;
impl Case for TdLambda {
    const FORMULA: Formula = Formula::TdLambda;
    const SEQUENCES_ALONE: bool = true;
    type Config = TdLambdaConfig;
    fn config(random: &mut Random) -> Self::Config {
        TdLambdaConfig { gamma: discount(random), lambda: discount(random), across: random.pick(&ACROSS) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        td_lambda(&flat.batch(), td_input(flat), &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        Outcome::tokens([naive::td_lambda(tokens(flat), td_input(flat), &config)])
    }
}

pub(crate) struct NStepReturns;
impl Case for NStepReturns {
    const FORMULA: Formula = Formula::NStepReturns;
    const SEQUENCES_ALONE: bool = true;
    type Config = NStepConfig;
    fn config(random: &mut Random) -> Self::Config {
        let n = random.pick(&[1, 2, 3, 7, 16, usize::MAX]);
        NStepConfig { n, gamma: discount(random), lambda: discount(random), across: random.pick(&ACROSS) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        n_step_returns(&flat.batch(), td_input(flat), &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        Outcome::tokens([naive::n_step_returns(tokens(flat), td_input(flat), &config)])
    }
}

pub(crate) struct Upgo;
impl Case for Upgo {
    const FORMULA: Formula = Formula::Upgo;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        upgo(&flat.batch(), td_input(flat), &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::upgo(tokens(flat), td_input(flat))])
    }
}

pub(crate) struct GaeDecoupled;
impl Case for GaeDecoupled {
    const FORMULA: Formula = Formula::GaeDecoupled;
    const SEQUENCES_ALONE: bool = true;
    type Config = GaeDecoupledConfig;
    fn config(random: &mut Random) -> Self::Config {
        let fixed = PolicyLambda::Fixed(discount(random));
        let lambda_policy = random.pick(&[fixed, fixed, PolicyLambda::LengthAdaptive { alpha: 0.125 }]);
        let (gamma, lambda_value) = (discount(random), discount(random));
        GaeDecoupledConfig { gamma, lambda_value, lambda_policy, across: random.pick(&ACROSS) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let (mut advantages, mut returns) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let TdInput { rewards, values, bootstrap } = td_input(flat);
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        gae_decoupled(&flat.batch(), GaeInput { rewards, values, bootstrap }, &config, output)?;
        Ok(Outcome::tokens([advantages, returns]))
    }
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
    const FORMULA: Formula = Formula::Vtrace;
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
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let (mut targets, mut advantages) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let output = VtraceOutput { targets: &mut targets, advantages: &mut advantages };
        vtrace(&flat.batch(), vtrace_input(flat), &config, output)?;
        Ok(Outcome::tokens([targets, advantages]))
    }
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
    const FORMULA: Formula = Formula::PufferAdvantage;
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
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let (ratios, mut out) = (ratios(flat), unwritten(flat.tokens()));
        let TdInput { rewards, values, bootstrap } = td_input(flat);
        let input = PufferInput { rewards, values, bootstrap, ratios: &ratios };
        puffer_advantage(&flat.batch(), input, &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
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
    const FORMULA: Formula = Formula::Retrace;
    const SEQUENCES_ALONE: bool = true;
    type Config = RetraceConfig;
    fn config(random: &mut Random) -> Self::Config {
        use TraceCoefficient::*;
        let coefficient = random.pick(&[Importance, Lambda, TreeBackup, Retrace]);
        RetraceConfig { gamma: discount(random), lambda: discount(random), coefficient }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        retrace(&flat.batch(), retrace_input(flat), &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        Outcome::tokens([naive::retrace(tokens(flat), retrace_input(flat), &config)])
    }
}
