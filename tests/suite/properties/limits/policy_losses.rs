//! Where the policy losses meet.

use tokenwise::{loss::*, Divisor};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Random, Spec},
    tolerance::{assert_bits, assert_close, Basis},
};

use super::weights::{run, setting, Loss};
use crate::{
    case::Case,
    loss::weighed_input,
    policy_loss::{ClipCov, Gspo},
    properties::check,
};

#[test]
fn forms_of_gspo_agree_where_advantages_are_equal() {
    check(|spec| {
        let Some((mut flat, mut weighing)) = setting::<f64>(spec) else { return };
        for (row, &score) in flat.rows.iter().zip(&flat.scores) {
            flat.columns[Column::Advantages as usize][row.clone()].fill(score);
        }
        weighing.mode = 4;
        let mut choice = Gspo::config(&mut Random::new(spec.seed));
        (choice.weighing, choice.weighed) = (weighing, false);
        let [sequence, token] = [GspoForm::Sequence, GspoForm::Token].map(|form| {
            choice.config.form = form;
            Gspo::run(&flat, choice).unwrap().widen()
        });
        assert_close(Formula::Gspo, Basis::F64, &sequence, &token);
    });
}

/// A token that stands in for its sequence is a token whose log-ratio is the sequence's mean.
#[test]
fn gspo_by_token_is_a_clip_of_the_mean() {
    check(|spec| {
        let Some((flat, weighing)) = setting::<f64>(spec) else { return };
        let input = weighed_input(&flat, true);
        let mut means = vec![0.0; flat.tokens()];
        for row in &flat.rows {
            let kept: Vec<usize> = row.clone().filter(|&slot| flat.keep[slot]).collect();
            let sum: f64 = kept.iter().map(|&slot| input.log_probs[slot] - input.old_log_probs[slot]).sum();
            means[row.clone()].fill(sum / kept.len().max(1) as f64);
        }
        let zeros = vec![0.0; flat.tokens()];
        let of_means = PolicyLossInput { log_probs: &means, old_log_probs: &zeros, ..input };
        let (by_token, want): (Loss<f64>, Loss<f64>) = (
            |flat, input, aggregate, grad| {
                let config = GspoConfig {
                    clip_low: 0.125,
                    clip_high: 0.0625,
                    form: GspoForm::Token,
                    aggregate,
                    ..Default::default()
                };
                Ok(gspo(&flat.batch(), input, &config, grad)?.loss)
            },
            |flat, input, aggregate, grad| {
                let config = PpoConfig {
                    clip_low: 0.125,
                    clip_high: 0.0625,
                    log_ratio_bound: None,
                    aggregate,
                    ..Default::default()
                };
                Ok(ppo_clip(&flat.batch(), input, &config, grad)?.loss)
            },
        );
        let (got, want) = (run(&flat, by_token, input, weighing), run(&flat, want, of_means, weighing));
        assert_close(Formula::Gspo, Basis::F64, &[got.0], &[want.0]);
        assert_close(Formula::Gspo, Basis::F64, &got.1, &want.1);
    });
}

#[test]
fn clip_cov_without_a_choice_is_ppo_clip() {
    check(|spec| {
        let Some((flat, weighing)) = setting::<f64>(spec) else { return };
        let mut choice = ClipCov::config(&mut Random::new(spec.seed));
        choice.config.divisor = Divisor::Count;
        let input = weighed_input(&flat, choice.weighed);
        let (mut grad, mut want_grad) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
        let (got, want) = weighing.with(&flat, |aggregate| {
            let config = ClipCovConfig { aggregate, ..choice.config };
            let ClipCovConfig { clip_low, clip_high, .. } = config;
            let ppo = PpoConfig { clip_low, clip_high, log_ratio_bound: None, aggregate, ..Default::default() };
            let none = vec![false; flat.tokens()];
            (
                clip_cov(&flat.batch(), input, &config, &none, &mut grad).unwrap(),
                ppo_clip(&flat.batch(), input, &ppo, &mut want_grad).unwrap(),
            )
        });
        assert_bits("gradient", &grad, &want_grad);
        assert_close(Formula::ClipCov, Basis::F64, &[got.loss, got.kl], &[want.loss, want.kl]);
        assert_eq!(got.clip_fraction, 0.0);
    });
}

/// Two losses with the same gradient to the bit, and the same loss but for the order of its sum.
fn same(spec: Spec, formula: Formula, got: Loss<f64>, want: Loss<f64>) {
    let Some((flat, weighing)) = setting::<f64>(spec) else { return };
    let input = weighed_input(&flat, spec.seed % 2 == 0);
    let (got, want) = (run(&flat, got, input, weighing), run(&flat, want, input, weighing));
    assert_bits("gradient", &got.1, &want.1);
    assert_close(formula, Basis::F64, &[got.0], &[want.0]);
}

#[test]
fn kl_cov_without_a_price_is_the_surrogate() {
    check(|spec| {
        let free: Loss<f64> = |flat, input, aggregate, grad| {
            Ok(kl_cov(&flat.batch(), input, &KlCovConfig { kl_coef: 0.0, aggregate, ..Default::default() }, grad)?.loss)
        };
        same(spec, Formula::KlCov, free, |flat, input, aggregate, grad| {
            surrogate(&flat.batch(), input, &SurrogateConfig { aggregate, ..Default::default() }, grad)
        });
    });
}

#[test]
fn dro_without_a_price_is_reinforce() {
    check(|spec| {
        let free: Loss<f64> = |flat, input, aggregate, grad| {
            let config = DroConfig { beta: 1e-300, aggregate, divisor: Divisor::Count };
            Ok(dro(&flat.batch(), input, &config, grad)?.loss)
        };
        same(spec, Formula::Dro, free, |flat, input, aggregate, grad| {
            Ok(reinforce(&flat.batch(), input, &ReinforceConfig { aggregate, ..Default::default() }, grad)?.loss)
        });
    });
}

#[test]
fn tis_loss_is_cispo_bounded_by_one() {
    check(|spec| {
        let tis: Loss<f64> = |flat, input, aggregate, grad| {
            Ok(tis_loss(&flat.batch(), input, &TisLossConfig { aggregate, ..Default::default() }, grad)?.loss)
        };
        same(spec, Formula::TisLoss, tis, |flat, input, aggregate, grad| {
            let bounds = CispoBounds::Absolute { high: 1.0 };
            let config = CispoConfig { bounds, log_ratio_bound: None, aggregate, ..Default::default() };
            Ok(cispo(&flat.batch(), input, &config, grad)?.loss)
        });
        // and topr of bad responses only
        same(spec, Formula::Topr, tis, |flat, input, aggregate, grad| {
            let scores = vec![-1.0; flat.rows.len()];
            topr(&flat.batch(), input, &scores, &ToprConfig { aggregate, ..Default::default() }, grad)
        });
    });
}

#[test]
fn dppo_that_drops_nothing_is_cispo() {
    check(|spec| {
        let wide: Loss<f64> = |flat, input, aggregate, grad| {
            let config = DppoConfig { clip_low: 1e9, clip_high: 1e9, ratio_cap: 1.5, aggregate, ..Default::default() };
            Ok(dppo_tv(&flat.batch(), input, &config, grad)?.loss)
        };
        same(spec, Formula::DppoTv, wide, |flat, input, aggregate, grad| {
            let bounds = CispoBounds::Absolute { high: 1.5 };
            Ok(cispo(&flat.batch(), input, &CispoConfig { bounds, aggregate, ..Default::default() }, grad)?.loss)
        });
    });
}

#[test]
fn good_responses_are_imitated() {
    check(|spec| {
        let all_good: Loss<f64> = |flat, input, aggregate, grad| {
            let scores = vec![1.0; flat.rows.len()];
            topr(&flat.batch(), input, &scores, &ToprConfig { aggregate, ..Default::default() }, grad)
        };
        same(spec, Formula::Topr, all_good, |flat, input, aggregate, grad| {
            Ok(reinforce(&flat.batch(), input, &ReinforceConfig { aggregate, ..Default::default() }, grad)?.loss)
        });
        let nll: Loss<f64> =
            |flat, input, _, grad| positive_nll(&flat.batch(), input.log_probs, &vec![1.0; flat.rows.len()], 1.0, grad);
        same(spec, Formula::PositiveNll, nll, |flat, input, _, grad| {
            let ones = vec![1.0; flat.tokens()];
            let input = PolicyLossInput { advantages: &ones, weights: None, ..input };
            Ok(reinforce(&flat.batch(), input, &ReinforceConfig::default(), grad)?.loss)
        });
    });
}
