//! Every gradient equals central differences in `f64`, away from the points where it is undefined.

mod distill;
mod dual_game;
mod kl_weighted;
pub(crate) mod policy_losses;

use tokenwise::{
    divergence::{kl_estimate, kl_exact, kl_exact_gradient, kl_gradient, *},
    loss::*,
    policy::*,
};
use tokenwise_tests::generate::{Column, Flat, Random, Spec, World};

use super::check;
use crate::{
    case::Case,
    divergence::kl_config,
    loss::{value_input, ValueLoss, Weighing},
    policy::temperature,
};

const STEP: f64 = 1e-5;
/// Third derivatives here are below 100 and values are rounded by about 1e-14, which is divided by STEP.
const ERROR: f64 = 2e-8;

/// Compares the gradient with the slope of `value` along each kept entry of a column.
fn slopes(flat: &Flat<f64>, column: Column, grad: &[f64], value: impl Fn(&Flat<f64>) -> f64) {
    slopes_together(flat, column, &[], grad, value);
}

/// The same with the entry of other columns moved too: their differences stay constant.
fn slopes_together(
    flat: &Flat<f64>,
    column: Column,
    along: &[Column],
    grad: &[f64],
    value: impl Fn(&Flat<f64>) -> f64,
) {
    assert_eq!(grad.len(), flat.column(column).len());
    let width = grad.len() / flat.tokens().max(1);
    for (entry, &grad) in grad.iter().enumerate() {
        if !flat.keep[entry / width] {
            continue;
        }
        let at = |by: f64| {
            let mut moved = flat.clone();
            for &column in along.iter().chain([&column]) {
                moved.columns[column as usize][entry] += by;
            }
            value(&moved)
        };
        assert_slope(entry, grad, at);
    }
}

/// Compares a derivative with the slope between two points. If a bound lies between them, the derivative is that of the
/// side without the bound.
#[track_caller]
fn assert_slope(entry: usize, grad: f64, at: impl Fn(f64) -> f64) {
    let slope = (at(STEP) - at(-STEP)) / (2.0 * STEP);
    let size = grad.abs().max(1.0);
    if (slope - grad).abs() < ERROR * size {
        return;
    }
    let here = at(0.0);
    let sides = [(at(STEP) - here) / STEP, (here - at(-STEP)) / STEP];
    let is_bent = (sides[0] - sides[1]).abs() > 1e-3 * size;
    let is_a_side = sides.iter().any(|side| (side - grad).abs() < 1e-4 * size);
    assert!(is_bent && is_a_side, "entry {entry}: slope {slope:e}, gradient {grad:e}");
}

fn setting(spec: Spec) -> (Flat<f64>, Random) {
    let spec = Spec { sequences: spec.sequences.min(3), longest: spec.longest.min(9), ..spec };
    (World::new(spec).packed(), Random::new(spec.seed ^ 0x97ad))
}

/// Moves numbers away from a point where the slope is undefined.
fn keep_away(values: &mut [f64], places: &[f64], from: impl Fn(usize) -> f64) {
    for (slot, value) in values.iter_mut().enumerate() {
        while places.iter().any(|place| (*value - from(slot) - place).abs() < 1e-3) {
            *value += 4e-3;
        }
    }
}

#[test]
fn of_value_loss() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let (weighing, config) = ValueLoss::config(&mut random);
        let (values, returns) = (flat.column(Column::Values).to_vec(), flat.column(Column::Returns).to_vec());
        let clip = config.clip.unwrap_or(9.0);
        let predictions = &mut flat.columns[Column::Predictions as usize];
        keep_away(predictions, &[clip, -clip], |i| values[i]);
        // the larger of two squares changes where the errors are opposite: v − G = G − v̂, v̂ = V ± clip
        keep_away(predictions, &[clip, -clip], |i| 2.0 * returns[i] - values[i]);
        let run = |flat: &Flat<f64>, grad: &mut Vec<f64>| {
            *grad = vec![f64::NAN; flat.tokens()];
            weighing.with(flat, |aggregate| {
                value_loss(&flat.batch(), value_input(flat), &ValueConfig { aggregate, ..config }, grad)
            })
        };
        let mut grad = Vec::new();
        if run(&flat, &mut grad).is_ok() {
            slopes(&flat, Column::Predictions, &grad, |flat| run(flat, &mut Vec::new()).unwrap().loss);
        }
    });
}

#[test]
fn of_entropy_bonus_and_aggregate() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let (weighing, coefficient) = (Weighing::new(&mut random), random.pick(&[0.01, -0.5]));
        let bonus = |flat: &Flat<f64>, grad: &mut [f64]| {
            weighing.with(flat, |aggregate| {
                let config = EntropyBonusConfig { coefficient, aggregate };
                entropy_bonus(&flat.batch(), flat.column(Column::Weights), &config, grad)
            })
        };
        let plain = |flat: &Flat<f64>, weights: &mut [f64]| {
            weighing.with(flat, |config| aggregate(&flat.batch(), flat.column(Column::Kl), &config, weights))
        };
        let (mut grad, mut weights) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
        if bonus(&flat, &mut grad).is_ok() && plain(&flat, &mut weights).is_ok() {
            let unused = || vec![0.0; grad.len()];
            slopes(&flat, Column::Weights, &grad, |flat| bonus(flat, &mut unused()).unwrap());
            slopes(&flat, Column::Kl, &weights, |flat| plain(flat, &mut unused()).unwrap());
        }
    });
}

fn total(out: &[f64]) -> f64 {
    out.iter().sum()
}

#[test]
fn of_kl_estimate() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let config = KlConfig { gradient: KlGradient::Own, ..kl_config(&mut random) };
        let reference = flat.column(Column::RefLogProbs).to_vec();
        keep_away(&mut flat.columns[Column::LogProbs as usize], &[0.0], |i| reference[i]);
        let mut grad = vec![f64::NAN; flat.tokens()];
        let input = KlInput { log_probs: flat.column(Column::LogProbs), ref_log_probs: &reference };
        kl_gradient(&flat.batch(), input, &config, &mut grad).unwrap();
        slopes(&flat, Column::LogProbs, &grad, |flat| {
            let mut out = vec![f64::NAN; flat.tokens()];
            let input = KlInput { log_probs: flat.column(Column::LogProbs), ref_log_probs: &reference };
            kl_estimate(&flat.batch(), input, &config, &mut out).unwrap();
            total(&out)
        });
    });
}

#[test]
fn of_the_logits() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let config = PolicyConfig { temperature: temperature(&mut random) };
        let (g, h) = (flat.column(Column::Advantages).to_vec(), flat.column(Column::Kl).to_vec());
        let mut grad = vec![f64::NAN; flat.tokens() * flat.vocab];
        let (vocab, ids) = (flat.vocab, flat.ids.clone());
        let logits = flat.column(Column::Logits);
        let input = LogitsGradientInput { logits, vocab, tokens: &ids, grad_log_probs: &g, grad_entropy: &h };
        logits_gradient(&flat.batch(), input, &config, &mut grad).unwrap();
        slopes(&flat, Column::Logits, &grad, |flat| {
            let (mut log_probs, mut entropy) = (vec![f64::NAN; flat.tokens()], vec![f64::NAN; flat.tokens()]);
            let input = LogProbInput { logits: flat.column(Column::Logits), vocab, tokens: &ids };
            let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
            log_probs_and_entropy(&flat.batch(), input, &config, output).unwrap();
            // dropped slots hold 0 on both sides of the product
            (0..flat.tokens()).map(|i| g[i] * log_probs[i] + h[i] * entropy[i]).sum()
        });
    });
}

#[test]
fn of_kl_exact() {
    check(|spec| {
        let (flat, mut random) = setting(spec);
        let config = PolicyConfig { temperature: temperature(&mut random) };
        let (reference, g) = (flat.column(Column::RefLogits).to_vec(), flat.column(Column::Advantages).to_vec());
        let vocab = flat.vocab;
        let mut grad = vec![f64::NAN; flat.tokens() * vocab];
        let logits = flat.column(Column::Logits);
        let input = KlExactGradientInput { logits, ref_logits: &reference, vocab, grad_kl: &g };
        kl_exact_gradient(&flat.batch(), input, &config, &mut grad).unwrap();
        slopes(&flat, Column::Logits, &grad, |flat| {
            let mut out = vec![f64::NAN; flat.tokens()];
            let input = KlExactInput { logits: flat.column(Column::Logits), ref_logits: &reference, vocab };
            kl_exact(&flat.batch(), input, &config, &mut out).unwrap();
            (0..flat.tokens()).map(|i| g[i] * out[i]).sum()
        });
    });
}
