//! Stage 2: how far policy and reference are apart.

use tokenwise::{
    divergence::{KlBounds, KlConfig, KlEstimator, KlGradient as Slope, KlInput, *},
    policy::PolicyConfig,
    Result,
};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::divergence as naive,
};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
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

fn input<R: Number>(flat: &Flat<R>) -> KlInput<'_, R> {
    KlInput { log_probs: flat.column(Column::LogProbs), ref_log_probs: flat.column(Column::RefLogProbs) }
}

pub(crate) struct KlEstimate;
impl Case for KlEstimate {
    const FORMULA: Formula = Formula::KlEstimate;
    const SEQUENCES_ALONE: bool = true;
    type Config = KlConfig;
    fn config(random: &mut Random) -> KlConfig {
        kl_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: KlConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        kl_estimate(&flat.batch(), input(flat), &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: KlConfig) -> Outcome<f64> {
        let KlInput { log_probs, ref_log_probs } = input(flat);
        Outcome::tokens([naive::kl_estimate(tokens(flat), log_probs, ref_log_probs, &config)])
    }
}

pub(crate) struct KlGradient;
impl Case for KlGradient {
    const FORMULA: Formula = Formula::KlGradient;
    const SEQUENCES_ALONE: bool = true;
    type Config = KlConfig;
    fn config(random: &mut Random) -> KlConfig {
        kl_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: KlConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        kl_gradient(&flat.batch(), input(flat), &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: KlConfig) -> Outcome<f64> {
        let KlInput { log_probs, ref_log_probs } = input(flat);
        Outcome::tokens([naive::kl_gradient(tokens(flat), log_probs, ref_log_probs, &config)])
    }
}

pub(crate) struct KlExact;
impl Case for KlExact {
    const FORMULA: Formula = Formula::KlExact;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        let (logits, ref_logits) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        let input = KlExactInput { logits, ref_logits, vocab: flat.vocab };
        kl_exact(&flat.batch(), input, &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let (logits, ref_logits) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        Outcome::tokens([naive::kl_exact(tokens(flat), logits, ref_logits, flat.vocab, temperature)])
    }
}

pub(crate) struct KlExactGradient;
impl Case for KlExactGradient {
    const FORMULA: Formula = Formula::KlExactGradient;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens() * flat.vocab);
        let (logits, ref_logits) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        let grad_kl = flat.column(Column::Advantages);
        let input = KlExactGradientInput { logits, ref_logits, vocab: flat.vocab, grad_kl };
        kl_exact_gradient(&flat.batch(), input, &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let (logits, ref_logits) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        let grad_kl = flat.column(Column::Advantages);
        Outcome::tokens([naive::kl_exact_gradient(tokens(flat), logits, ref_logits, flat.vocab, grad_kl, temperature)])
    }
}
