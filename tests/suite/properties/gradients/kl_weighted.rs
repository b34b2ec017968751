use tokenwise::divergence::*;
use tokenwise_tests::generate::{Column, Flat};

use super::{keep_away, setting, slopes};
use crate::{divergence::ESTIMATORS, properties::check};

fn input(flat: &Flat<f64>) -> KlWeightedInput<'_, f64> {
    KlWeightedInput {
        log_probs: flat.column(Column::LogProbs),
        ref_log_probs: flat.column(Column::RefLogProbs),
        old_log_probs: flat.column(Column::OldLogProbs),
    }
}

#[test]
fn of_kl_importance_weighted() {
    check(|spec| {
        let (mut flat, mut random) = setting(spec);
        let estimator = random.pick(&ESTIMATORS);
        let kl = KlConfig { estimator, gradient: KlGradient::Own, bounds: KlBounds::Unbounded };
        let weight = random.pick(&[KlWeight::Token, KlWeight::Sequence, KlWeight::TokenFinite]);
        let config = KlWeightedConfig { weight, kl };
        // |d| has no slope at 0
        let reference = flat.column(Column::RefLogProbs).to_vec();
        keep_away(&mut flat.columns[Column::LogProbs as usize], &[0.0], |i| reference[i]);
        let mut grad = vec![f64::NAN; flat.tokens()];
        let KlWeightedInput { log_probs, ref_log_probs, old_log_probs } = input(&flat);
        let grad_kl = flat.column(Column::Advantages);
        let of = KlWeightedGradientInput { log_probs, ref_log_probs, old_log_probs, grad_kl };
        kl_importance_weighted_gradient(&flat.batch(), of, &config, &mut grad).unwrap();
        slopes(&flat, Column::LogProbs, &grad, |flat| {
            let mut out = vec![f64::NAN; flat.tokens()];
            kl_importance_weighted(&flat.batch(), input(flat), &config, &mut out).unwrap();
            let kept = (0..flat.tokens()).filter(|&slot| flat.keep[slot]);
            kept.map(|slot| flat.column(Column::Advantages)[slot] * out[slot]).sum()
        });
    });
}
