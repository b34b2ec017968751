//! Returns with a critic, in the limits of their settings.

use tokenwise::advantage::*;
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random, World},
    tolerance::{assert_bits, Basis},
};

use super::advantage::{of_kept, run_gae, run_returns};
use crate::{
    advantage::ACROSS,
    case::assert_close,
    properties::check,
    returns::{td_input, vtrace_input},
};

fn td<R: Number>(flat: &Flat<R>, gamma: f64, lambda: f64, across: Across) -> Vec<R> {
    let mut out = vec![R::nan(); flat.tokens()];
    td_lambda(&flat.batch(), td_input(flat), &TdLambdaConfig { gamma, lambda, across }, &mut out).unwrap();
    out
}

fn n_step<R: Number>(flat: &Flat<R>, config: &NStepConfig) -> Vec<R> {
    let mut out = vec![R::nan(); flat.tokens()];
    n_step_returns(&flat.batch(), td_input(flat), config, &mut out).unwrap();
    out
}

#[test]
fn td_at_lambda_one_is_the_return_and_at_zero_one_step() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let gamma = Random::new(spec.seed).pick(&[0.5, 0.75, 1.0]);
        for across in ACROSS {
            assert_bits("λ = 1", &td(&flat, gamma, 1.0, across), &run_returns(&flat, gamma, across));
        }
        let mut targets = vec![0.0; flat.tokens()];
        for (row, &bootstrap) in flat.rows.iter().zip(&flat.bootstrap) {
            let mut next = bootstrap;
            for slot in row.clone().rev().filter(|&slot| flat.keep[slot]) {
                targets[slot] = flat.column(Column::Rewards)[slot] + gamma as f32 * next;
                next = flat.column(Column::Values)[slot];
            }
        }
        assert_bits("λ = 0", &td(&flat, gamma, 0.0, Across::StepOver), &targets);
        let one = NStepConfig { gamma, ..Default::default() };
        assert_bits("n = 1", &n_step(&flat, &one), &targets);
    });
}

#[test]
fn td_less_the_value_is_gae() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let (gamma, lambda) = (0.9375, Random::new(spec.seed).pick(&[0.0, 0.5, 0.9375, 1.0]));
        for across in ACROSS {
            let returns = td(&flat, gamma, lambda, across);
            assert_close::<crate::returns::TdLambda>(Basis::F64, &returns, &run_gae(&flat, gamma, lambda, across).1);
            for n in [flat.tokens().max(1), usize::MAX] {
                let all = n_step(&flat, &NStepConfig { n, gamma, lambda, across });
                assert_close::<crate::returns::TdLambda>(Basis::F64, &all, &returns);
            }
        }
    });
}

#[test]
fn equal_policies_need_no_correction() {
    check(|spec| {
        let flat = World::<f64>::new(spec).packed();
        let mut random = Random::new(spec.seed);
        let (gamma, lambda) = (random.pick(&[0.9375, 1.0]), random.pick(&[0.0, 0.5, 1.0]));
        let (mut targets, mut advantages) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
        let input = VtraceInput { log_probs: flat.column(Column::OldLogProbs), ..vtrace_input(&flat) };
        let (rho_bar, c_bar) = (random.pick(&[1.0, 2.0]), random.pick(&[1.0, f64::INFINITY]));
        let config =
            VtraceConfig { gamma, lambda, rho_bar, c_bar, alpha: random.pick(&[0.5, 1.0]), ..Default::default() };
        let output = VtraceOutput { targets: &mut targets, advantages: &mut advantages };
        vtrace(&flat.batch(), input, &config, output).unwrap();
        let (gae_advantages, gae_returns) = run_gae(&flat, gamma, lambda, Across::StepOver);
        assert_close::<crate::returns::TdLambda>(Basis::F64, &targets, &gae_returns);
        assert_close::<crate::returns::TdLambda>(Basis::F64, &advantages, &gae_advantages);

        let (mut out, TdInput { rewards, values, bootstrap }) = (vec![f64::NAN; flat.tokens()], td_input(&flat));
        let input = RetraceInput {
            rewards,
            values,
            action_values: values,
            bootstrap,
            log_probs: input.log_probs,
            old_log_probs: input.old_log_probs,
        };
        for coefficient in [TraceCoefficient::Lambda, TraceCoefficient::Retrace] {
            retrace(&flat.batch(), input, &RetraceConfig { gamma, lambda, coefficient }, &mut out).unwrap();
            assert_close::<crate::returns::TdLambda>(Basis::F64, &out, &gae_returns);
        }
    });
}

fn puffer<R: Number>(flat: &Flat<R>, ratios: &[R], config: &PufferConfig) -> Vec<R> {
    let (mut out, TdInput { rewards, values, bootstrap }) = (vec![R::nan(); flat.tokens()], td_input(flat));
    puffer_advantage(&flat.batch(), PufferInput { rewards, values, bootstrap, ratios }, config, &mut out).unwrap();
    out
}

#[test]
fn puffer_lies_between_gae_and_vtrace() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let (gamma, lambda) = (0.9375, Random::new(spec.seed).pick(&[0.0, 0.5, 1.0]));
        let (rho_bar, c_bar) = (f64::INFINITY, f64::INFINITY);
        for variant in [PufferVariant::V3, PufferVariant::V4] {
            let config = PufferConfig { gamma, lambda, rho_bar, c_bar, variant };
            let plain = run_gae(&flat, gamma, lambda, Across::StepOver).0;
            assert_bits("ratios of 1", &puffer(&flat, &vec![1.0; flat.tokens()], &config), &plain);
        }
        let flat = World::<f64>::new(spec).packed();
        let input = vtrace_input(&flat);
        let ratios: Vec<f64> = input.log_probs.iter().zip(input.old_log_probs).map(|(p, q)| (p - q).exp()).collect();
        let (mut targets, mut advantages) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
        let output = VtraceOutput { targets: &mut targets, advantages: &mut advantages };
        vtrace(&flat.batch(), input, &VtraceConfig { gamma, lambda, ..Default::default() }, output).unwrap();
        let errors = puffer(&flat, &ratios, &PufferConfig { gamma, lambda, ..Default::default() });
        let plus_values = of_kept(&flat, |slot| errors[slot] + input.values[slot]);
        assert_close::<crate::returns::Vtrace>(Basis::F64, &plus_values, &targets);
    });
}

#[test]
fn one_lambda_for_both_is_gae() {
    check(|spec| {
        let flat = World::<f32>::new(spec).packed();
        let (gamma, lambda) = (0.984_375, Random::new(spec.seed).pick(&[0.0, 0.5, 0.9375]));
        for across in ACROSS {
            let (mut advantages, mut returns) = (vec![f32::NAN; flat.tokens()], vec![f32::NAN; flat.tokens()]);
            let TdInput { rewards, values, bootstrap } = td_input(&flat);
            let lambda_policy = PolicyLambda::Fixed(lambda);
            let config = GaeDecoupledConfig { gamma, lambda_value: lambda, lambda_policy, across };
            let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
            gae_decoupled(&flat.batch(), GaeInput { rewards, values, bootstrap }, &config, output).unwrap();
            let plain = run_gae(&flat, gamma, lambda, across);
            assert_bits("advantages", &advantages, &plain.0);
            assert_bits("returns", &returns, &plain.1);
        }
    });
}

#[test]
fn upgo_sees_all_of_a_good_run_and_nothing_past_a_bad_token() {
    check(|spec| {
        let mut flat = World::<f32>::new(spec).packed();
        let zeros = vec![0.0; flat.tokens()];
        for reward in flat.columns[Column::Rewards as usize].iter_mut().chain(&mut flat.bootstrap) {
            *reward = reward.abs() + 0.25;
        }
        let mut out = vec![f32::NAN; flat.tokens()];
        let input = TdInput { values: &zeros, ..td_input(&flat) };
        upgo(&flat.batch(), input, &mut out).unwrap();
        assert_bits("better than foreseen", &out, &run_returns(&flat, 1.0, Across::StepOver));
        let losses: Vec<f32> = input.rewards.iter().map(|reward| -reward).collect();
        let nothing = vec![0.0; flat.rows.len()];
        upgo(&flat.batch(), TdInput { rewards: &losses, values: &zeros, bootstrap: &nothing }, &mut out).unwrap();
        assert_bits("worse than foreseen", &out, &of_kept(&flat, |slot| losses[slot]));
    });
}
