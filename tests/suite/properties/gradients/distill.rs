//! Distillation losses. The factors that they treat as constants depend on the difference to the teacher only, so they
//! stay constant while student and teacher move together.

use tokenwise::{divergence::KlGradient, loss::*, policy::*};
use tokenwise_tests::generate::{Column, Flat};

use super::{super::unless_too_small, assert_slope, check, keep_away, setting, slopes, slopes_together};
use crate::{
    case::Case,
    distill::{entries, entries_a_token, ids, GeneralizedJsd, IwOpd, KlLoss, OpdLoss, RefKl},
    loss::Weighing,
    policy::temperature,
};

/// Compares a case's gradient with the slope of its first number.
fn follow<C: Case>(flat: &Flat<f64>, config: C::Config, column: Column, along: &[Column]) {
    let Some(outcome) = unless_too_small(C::run(flat, config)) else { return };
    slopes_together(flat, column, along, &outcome.tokens[0], |flat| C::run(flat, config).unwrap().numbers[0]);
}

#[test]
fn of_kl_loss() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let (weighing, mut config) = KlLoss::config(&mut random);
        config.kl.gradient = KlGradient::Own;
        let reference = flat.column(Column::RefLogProbs).to_vec();
        keep_away(&mut flat.columns[Column::LogProbs as usize], &[0.0], |i| reference[i]);
        follow::<KlLoss>(&flat, (weighing, config), Column::LogProbs, &[]);
    });
}

#[test]
fn of_opd_loss() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let mut choice = OpdLoss::config(&mut random);
        choice.config.kl.gradient = KlGradient::Own;
        if choice.config.route == OpdRoute::Supervised {
            // where the four estimates meet the bound of 0.25
            let places = [0.0, 0.25, -0.25, 0.5_f64.sqrt(), -(0.5_f64.sqrt()), 0.8, -0.615];
            let reference = flat.column(Column::RefLogProbs).to_vec();
            for (value, reference) in flat.columns[Column::LogProbs as usize].iter_mut().zip(reference) {
                if places.iter().any(|place| (*value - reference - place).abs() < 0.05) {
                    *value = reference + 0.35;
                }
            }
            return follow::<OpdLoss>(&flat, choice, Column::LogProbs, &[]);
        }
        let config = choice.config;
        let bounds = [1.0 - config.clip_low, 1.0 + config.clip_high, 1.125, 1.5, 3.0].map(f64::ln);
        let old = flat.column(Column::OldLogProbs).to_vec();
        keep_away(&mut flat.columns[Column::LogProbs as usize], &[bounds.as_slice(), &[1.0, -1.0]].concat(), |i| {
            old[i]
        });
        follow::<OpdLoss>(&flat, choice, Column::LogProbs, &[Column::RefLogProbs]);
    });
}

#[test]
fn of_ref_kl() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let choice = RefKl::config(&mut random);
        for slot in 0..flat.tokens() {
            let old = flat.column(Column::OldLogProbs)[slot];
            let fall = old.exp() - flat.column(Column::LogProbs)[slot].exp();
            if (fall - choice.config.fall).abs() < 1e-3 {
                flat.columns[Column::LogProbs as usize][slot] = old;
            }
        }
        follow::<RefKl>(&flat, choice, Column::LogProbs, &[Column::RefLogProbs]);
    });
}

#[test]
fn of_iw_opd() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        follow::<IwOpd>(&flat, IwOpd::config(&mut random), Column::LogProbs, &[]);
    });
}

#[test]
fn of_generalized_jsd() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        follow::<GeneralizedJsd>(&flat, GeneralizedJsd::config(&mut random), Column::Logits, &[]);
    });
}

/// Compares a gradient by the entries of kept tokens with the slope of a loss.
fn slopes_of_entries(flat: &Flat<f64>, at: &[f64], grad: &[f64], loss: impl Fn(&[f64]) -> f64) {
    let width = at.len() / flat.tokens().max(1);
    for entry in (0..at.len()).filter(|entry| flat.keep[entry / width]) {
        let moved = |by: f64| {
            let mut moved = at.to_vec();
            moved[entry] += by;
            loss(&moved)
        };
        assert_slope(entry, grad[entry], moved);
    }
}

const BETAS: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

#[test]
fn of_forward_kl_topk() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let (mut s, t) = (entries(&flat, Column::Logits), entries(&flat, Column::RefLogits));
        // equal rows lie on the bound at 0
        s.iter_mut().for_each(|s| *s -= 0.004);
        let (weighing, k) = (Weighing::new(&mut random), entries_a_token(&flat));
        let log_prob_floor = random.pick(&[None, Some(-2.005)]);
        // no token is exactly at the bound of its loss
        let max_loss = random.pick(&[None, Some(0.500_123)]);
        let run = |s: &[f64], grad: &mut [f64]| {
            weighing.with(&flat, |aggregate| {
                let config = ForwardKlTopKConfig { log_prob_floor, max_loss, aggregate };
                let input = ForwardKlTopKInput { log_probs: s, teacher_log_probs: &t, k, ids: None };
                let output = ForwardKlTopKOutput { losses: &mut vec![0.0; flat.tokens()], grad };
                forward_kl_topk(&flat.batch(), input, &config, output)
            })
        };
        let mut grad = vec![f64::NAN; s.len()];
        if run(&s, &mut grad).is_ok() {
            slopes_of_entries(&flat, &s, &grad, |s| run(s, &mut vec![0.0; s.len()]).unwrap().loss);
        }
    });
}

#[test]
fn of_topk_jsd() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let (s, t) = (entries(&flat, Column::Logits), entries(&flat, Column::RefLogits));
        let (weighing, k) = (Weighing::new(&mut random), entries_a_token(&flat));
        let (beta, rest) = (random.pick(&BETAS), random.pick(&[TopKRest::Tail, TopKRest::Renormalize]));
        let run = |s: &[f64], grad: &mut [f64]| {
            weighing.with(&flat, |aggregate| {
                let weights = Some(flat.column(Column::Weights));
                let input = TopKInput { log_probs: s, teacher_log_probs: &t, k, weights };
                topk_jsd(&flat.batch(), input, &TopKJsdConfig { beta, rest, aggregate }, grad)
            })
        };
        let mut grad = vec![f64::NAN; s.len()];
        if run(&s, &mut grad).is_ok() {
            slopes_of_entries(&flat, &s, &grad, |s| run(s, &mut vec![0.0; s.len()]).unwrap());
        }
    });
}

#[test]
fn of_mixed_kl_topk() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let (s, t) = (entries(&flat, Column::Logits), entries(&flat, Column::RefLogits));
        let (weighing, k) = (Weighing::new(&mut random), entries_a_token(&flat));
        let forward = random.pick(&BETAS);
        let outside = random.pick(&[OutsideTopK::Renormalize, OutsideTopK::LogProb(-3.0)]);
        let run = |s: &[f64], entropies: &[f64], grad: &mut [f64], grad_entropies: &mut [f64]| {
            weighing.with(&flat, |aggregate| {
                let input = MixedKlInput { log_probs: s, teacher_log_probs: &t, k, entropies };
                let config = MixedKlConfig { forward, outside, aggregate };
                mixed_kl_topk(&flat.batch(), input, &config, MixedKlOutput { grad, grad_entropies })
            })
        };
        let entropies = flat.column(Column::Weights);
        let (mut grad, mut by_entropy) = (vec![f64::NAN; s.len()], vec![f64::NAN; flat.tokens()]);
        if run(&s, entropies, &mut grad, &mut by_entropy).is_ok() {
            let value = |s: &[f64], entropies: &[f64]| {
                run(s, entropies, &mut vec![0.0; s.len()], &mut vec![0.0; entropies.len()]).unwrap()
            };
            slopes_of_entries(&flat, &s, &grad, |s| value(s, entropies));
            slopes_of_entries(&flat, entropies, &by_entropy, |entropies| value(&s, entropies));
        }
    });
}

#[test]
fn of_the_logits_through_some_entries() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let config = PolicyConfig { temperature: temperature(&mut random) };
        let (k, vocab, tokens) = (entries_a_token(&flat), flat.vocab, ids(&flat, 0));
        let g: Vec<f64> = entries(&flat, Column::RefLogits).iter().map(|g| g / 32.0).collect();
        let mut grad = vec![f64::NAN; flat.tokens() * vocab];
        let logits = flat.column(Column::Logits);
        let input = TopKGradientInput { logits, vocab, tokens: &tokens, k, grad_log_probs: &g };
        topk_logits_gradient(&flat.batch(), input, &config, &mut grad).unwrap();
        slopes(&flat, Column::Logits, &grad, |flat| {
            let mut out = vec![f64::NAN; tokens.len()];
            let input = TopKLogitsInput { logits: flat.column(Column::Logits), vocab, tokens: &tokens, k };
            topk_log_probs(&flat.batch(), input, &config, &mut out).unwrap();
            out.iter().zip(&g).filter(|(out, _)| **out != 0.0).map(|(out, g)| out * g).sum()
        });
    });
}
