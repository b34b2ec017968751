//! Stage 2: how far policy and reference are apart.

use tokenwise::{
    divergence::{kl_estimate, KlBounds, KlConfig, KlEstimator, KlGradient as Slope, KlInput},
    policy::PolicyConfig,
    Batch, Layout, Mask,
};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random},
    tolerance::{assert_close, Basis},
};

use crate::{
    case::{by_name, tokens, Case, Outcome},
    errors::domains::*,
    naive::divergence as naive,
    policy::temperature,
};

pub(crate) const ESTIMATORS: [KlEstimator; 4] = [KlEstimator::K1, KlEstimator::Abs, KlEstimator::K2, KlEstimator::K3];

pub(crate) fn kl_config(random: &mut Random) -> KlConfig {
    KlConfig {
        estimator: random.pick(&ESTIMATORS),
        gradient: random.pick(&[Slope::Own, Slope::StraightThrough]),
        bounds: random.pick(&[KlBounds::Unbounded, KlBounds::K3Only, KlBounds::Every]),
    }
}

fn input(flat: &Flat<f64>) -> KlInput<'_, f64> {
    KlInput { log_probs: flat.column(Column::LogProbs), ref_log_probs: flat.column(Column::RefLogProbs) }
}

pub(crate) struct KlEstimate;
impl Case for KlEstimate {
    const NAME: &'static str = "kl_estimate";
    const UNITS: [f64; 2] = [2.0, 3.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = KlConfig;
    fn config(random: &mut Random) -> KlConfig {
        kl_config(random)
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: KlConfig) -> Outcome<f64> {
        let KlInput { log_probs, ref_log_probs } = input(flat);
        Outcome::tokens([naive::kl_estimate(tokens(flat), log_probs, ref_log_probs, &config)])
    }
}

pub(crate) struct KlGradient;
impl Case for KlGradient {
    const NAME: &'static str = "kl_gradient";
    const UNITS: [f64; 2] = [2.0, 2.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = KlConfig;
    fn config(random: &mut Random) -> KlConfig {
        kl_config(random)
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: KlConfig) -> Outcome<f64> {
        let KlInput { log_probs, ref_log_probs } = input(flat);
        Outcome::tokens([naive::kl_gradient(tokens(flat), log_probs, ref_log_probs, &config)])
    }
}

pub(crate) struct KlExact;
impl Case for KlExact {
    const NAME: &'static str = "kl_exact";
    const UNITS: [f64; 2] = [10.0, 8.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = PolicyConfig;
    fn config(random: &mut Random) -> PolicyConfig {
        PolicyConfig { temperature: temperature(random) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PolicyConfig { temperature }: PolicyConfig) -> Outcome<f64> {
        let (logits, ref_logits) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        Outcome::tokens([naive::kl_exact(tokens(flat), logits, ref_logits, flat.vocab, temperature)])
    }
}

pub(crate) struct KlExactGradient;
impl Case for KlExactGradient {
    const NAME: &'static str = "kl_exact_gradient";
    const UNITS: [f64; 2] = [200.0, 80.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = PolicyConfig;
    fn config(random: &mut Random) -> PolicyConfig {
        PolicyConfig { temperature: temperature(random) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, PolicyConfig { temperature }: PolicyConfig) -> Outcome<f64> {
        let (logits, ref_logits) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        let grad_kl = flat.column(Column::Advantages);
        Outcome::tokens([naive::kl_exact_gradient(tokens(flat), logits, ref_logits, flat.vocab, grad_kl, temperature)])
    }
}

/// Random log-probabilities are rarely as far apart as the bounds lie.
#[test]
fn estimates_beyond_their_bounds() {
    let log_probs: Vec<f64> = (-60..=60).map(|half| -40.0 + f64::from(half) / 2.0 + 0.1).collect();
    let ref_log_probs = vec![-40.0; log_probs.len()];
    let mask = vec![true; log_probs.len()];
    let batch = Batch::new(Layout::padded(1, mask.len()).unwrap(), Mask::new(&mask)).unwrap();
    for estimator in ESTIMATORS {
        for bounds in [KlBounds::Unbounded, KlBounds::K3Only, KlBounds::Every] {
            let config = KlConfig { estimator, bounds, ..Default::default() };
            let input = KlInput { log_probs: &log_probs, ref_log_probs: &ref_log_probs };
            let mut got = vec![0.0; mask.len()];
            kl_estimate(&batch, input, &config, &mut got).unwrap();
            let want: Vec<f64> =
                log_probs.iter().zip(&ref_log_probs).map(|(new, old)| naive::kl_value(&config, new - old)).collect();
            assert_close(&format!("{config:?}"), 16.0, Basis::F64, &got, &want);
        }
    }
}

crate::case::tests! {
    kl_estimate: KlEstimate {
        nan_stays_in_its_token(&[Column::LogProbs, Column::RefLogProbs]);
    },
    kl_gradient: KlGradient {
        nan_stays_in_its_token(&[Column::LogProbs, Column::RefLogProbs]);
    },
    kl_exact: KlExact {
        nan_stays_in_its_token(&[Column::Logits, Column::RefLogits]);
    },
    kl_exact_gradient: KlExactGradient {
        nan_stays_in_its_token(&[Column::Logits, Column::RefLogits, Column::Advantages]);
    },
}
