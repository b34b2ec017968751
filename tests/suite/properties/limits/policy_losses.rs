//! Where the policy losses coincide.

use serde_json::json;
use tokenwise::{loss::*, Divisor};
use tokenwise_tests::{
    generate::{Column, Random},
    tolerance::{assert_bits, Basis},
};

use super::weights::{run, setting, Loss};
use crate::{
    case::{assert_close, Case},
    loss::{weighed_input, Weighing},
    naive::{covariance_loss::ClipCov, sequence_loss::Gspo, token_loss::PositiveNll},
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
        assert_close::<Gspo>(Basis::F64, &sequence, &token);
    });
}

/// GSPO's token form equals the clip of a token whose log-ratio is the mean of its sequence.
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
        let by_token = Loss::new("gspo", json!({ "clip_low": 0.125, "clip_high": 0.0625, "form": "token" }));
        let bounds = json!({ "clip_low": 0.125, "clip_high": 0.0625, "log_ratio_bound": null });
        let want = Loss::new("ppo_clip", bounds);
        let (got, want) = (run(&flat, &by_token, input, weighing), run(&flat, &want, of_means, weighing));
        assert_close::<Gspo>(Basis::F64, &[got.0], &[want.0]);
        assert_close::<Gspo>(Basis::F64, &got.1, &want.1);
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
                clip_cov(&flat.batch(), ClipCovInput { policy: input, selected: &none }, &config, &mut grad).unwrap(),
                ppo_clip(&flat.batch(), input, &ppo, &mut want_grad).unwrap(),
            )
        });
        assert_bits("gradient", &grad, &want_grad);
        assert_close::<ClipCov>(Basis::F64, &[got.loss, got.kl], &[want.loss, want.kl]);
        assert_eq!(got.clip_fraction, 0.0);
    });
}

/// Where a loss is another one: its settings, the score of every sequence if it reads scores, and the other with its
/// settings.
pub(crate) type Same = (&'static str, Option<f64>, &'static str, &'static str);

/// The same gradient as another loss to the bit, and the same loss but for the order of its sum.
pub(crate) fn is_another_loss<C: Case>(limits: &'static [Same]) {
    check(move |spec| {
        let Some((flat, weighing)) = setting::<f64>(spec) else { return };
        let input = weighed_input(&flat, spec.seed % 2 == 0);
        for &(settings, score, other, others) in limits {
            let [mut got, want] = [(C::NAME, settings), (other, others)]
                .map(|(name, settings)| Loss::new(name, serde_json::from_str(settings).unwrap()));
            if let Some(score) = score {
                got = got.scored(score);
            }
            let (got, want) = (run(&flat, &got, input, weighing), run(&flat, &want, input, weighing));
            assert_bits("gradient", &got.1, &want.1);
            assert_close::<C>(Basis::F64, &[got.0], &[want.0]);
        }
    });
}

#[test]
fn good_responses_are_imitated() {
    check(|spec| {
        let Some((flat, _)) = setting::<f64>(spec) else { return };
        let (ones, input) = (vec![1.0; flat.tokens()], weighed_input(&flat, false));
        let mean = Weighing { mode: 0, global: false, empty_rows: EmptyRows::Excluded, divisor: Divisor::Count };
        let got = run(&flat, &Loss::new("positive_nll", json!({ "mu": 1.0 })).scored(1.0), input, mean);
        let all_one = PolicyLossInput { advantages: &ones, ..input };
        let want = run(&flat, &Loss::new("reinforce", json!({})), all_one, mean);
        assert_bits("gradient", &got.1, &want.1);
        assert_close::<PositiveNll>(Basis::F64, &[got.0], &[want.0]);
    });
}
