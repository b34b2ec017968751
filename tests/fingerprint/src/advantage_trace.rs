//! Stage 4: recursions along a sequence, and the signal of a teacher.

use tokenwise::{
    advantage::{
        self, DiscountFrom, GaeDecoupledConfig, GaeInput, GaeOutput, LengthNormalization, MinillmConfig, MinillmInput,
        NStepConfig, OpdConfig, OpdInput, PolicyLambda, PufferConfig, PufferInput, PufferVariant,
        ReinforcePlusPlusConfig, ReinforcePlusPlusOutput, RemaxInput, RemaxOutput, RetraceConfig, RetraceInput,
        ReturnsInput, TdInput, TdLambdaConfig, TraceCoefficient, VtraceConfig, VtraceInput, VtraceOutput,
    },
    Result,
};

use crate::{
    advantage::{ACROSS, WHITENINGS},
    cases::{Case, Out},
    hash::Value,
};

pub(crate) fn gae_decoupled<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for across in ACROSS {
        for lambda_policy in [PolicyLambda::Fixed(0.95), PolicyLambda::LengthAdaptive { alpha: 0.3 }] {
            let input = GaeInput { rewards: case.rewards, values: case.values, bootstrap: case.bootstrap };
            let output = GaeOutput { advantages: out.a, returns: out.b };
            let config = GaeDecoupledConfig { gamma: 0.99, lambda_value: 0.9, lambda_policy, across };
            let result = advantage::gae_decoupled(&case.batch, input, &config, output);
            out.record(result);
        }
    }
}

const fn td_input<'a, R>(case: &Case<'a, R>) -> TdInput<'a, R> {
    TdInput { rewards: case.rewards, values: case.values, bootstrap: case.bootstrap }
}

pub(crate) fn td_lambda<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for across in ACROSS {
        for lambda in [0.0, 0.9, 1.0] {
            let config = TdLambdaConfig { gamma: 0.99, lambda, across };
            let result = advantage::td_lambda(&case.batch, td_input(case), &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn n_step_returns<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for across in ACROSS {
        for n in [0, 1, 3, 20] {
            for lambda in [0.9, 1.0] {
                let config = NStepConfig { n, gamma: 0.99, lambda, across };
                let result = advantage::n_step_returns(&case.batch, td_input(case), &config, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn upgo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let result = advantage::upgo(&case.batch, td_input(case), out.a);
    out.record(result);
}

pub(crate) fn vtrace<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let infinite = f64::INFINITY;
    for (rho_bar, c_bar, rho_bar_pg) in [(1.0, 1.0, 1.0), (1.1, 0.95, 1.05), (infinite, 1.0, infinite)] {
        for (lambda, alpha) in [(1.0, 1.0), (0.9, 0.3), (0.9, 0.0)] {
            let input = VtraceInput {
                rewards: case.rewards,
                values: case.values,
                bootstrap: case.bootstrap,
                log_probs: case.log_probs,
                old_log_probs: case.old_log_probs,
            };
            let config = VtraceConfig { gamma: 0.99, lambda, rho_bar, c_bar, rho_bar_pg, alpha };
            let output = VtraceOutput { targets: out.a, advantages: out.b };
            let result = advantage::vtrace(&case.batch, input, &config, output);
            out.record(result);
        }
    }
}

pub(crate) fn retrace<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for coefficient in [
        TraceCoefficient::Importance,
        TraceCoefficient::Lambda,
        TraceCoefficient::TreeBackup,
        TraceCoefficient::Retrace,
    ] {
        let input = RetraceInput {
            rewards: case.rewards,
            values: case.values,
            action_values: case.advantages,
            bootstrap: case.bootstrap,
            log_probs: case.log_probs,
            old_log_probs: case.old_log_probs,
        };
        let config = RetraceConfig { gamma: 0.99, lambda: 0.9, coefficient };
        let result = advantage::retrace(&case.batch, input, &config, out.a);
        out.record(result);
    }
}

pub(crate) fn puffer_advantage<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for variant in [PufferVariant::V3, PufferVariant::V4] {
        for (rho_bar, c_bar) in [(1.0, 1.0), (1.5, 0.7), (f64::INFINITY, f64::INFINITY)] {
            let input = PufferInput {
                rewards: case.rewards,
                values: case.values,
                bootstrap: case.bootstrap,
                ratios: case.weights,
            };
            let config = PufferConfig { gamma: 0.99, lambda: 0.9, rho_bar, c_bar, variant };
            let result = advantage::puffer_advantage(&case.batch, input, &config, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn remax<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = RemaxInput { rewards: case.rewards, baselines: case.scores };
    let result = advantage::remax(&case.batch, input, RemaxOutput { advantages: out.a, returns: out.b });
    out.record(result);
}

pub(crate) fn reinforce_plus_plus<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for across in ACROSS {
        for whiten in WHITENINGS {
            let input = ReturnsInput { rewards: case.rewards, bootstrap: case.bootstrap };
            let config = ReinforcePlusPlusConfig { gamma: 0.99, across, whiten };
            let output = ReinforcePlusPlusOutput { advantages: out.a, returns: out.b };
            let result = advantage::reinforce_plus_plus(&case.batch, input, &config, output);
            out.record(result);
        }
    }
}

pub(crate) fn opd_advantage<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for advantages in [None, Some(case.advantages)] {
        for coefficient in [1.0, 0.3] {
            let input =
                OpdInput { teacher_log_probs: case.ref_log_probs, old_log_probs: case.old_log_probs, advantages };
            let result = advantage::opd_advantage(&case.batch, input, &OpdConfig { coefficient }, out.a);
            out.record(result);
        }
    }
}

pub(crate) fn minillm_advantage<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let mut run = |gamma, from, length, across| {
        let input = MinillmInput { teacher_log_probs: case.ref_log_probs, old_log_probs: case.old_log_probs };
        let config = MinillmConfig { gamma, from, length, across };
        let result: Result<()> = advantage::minillm_advantage(&case.batch, input, &config, out.a);
        out.record(result);
    };
    for across in ACROSS {
        for from in [DiscountFrom::Token, DiscountFrom::Start] {
            for length in [LengthNormalization::Off, LengthNormalization::Kept, LengthNormalization::KeptAndPadding] {
                for gamma in [1.0, 0.99, 0.0] {
                    run(gamma, from, length, across);
                }
            }
        }
    }
}
