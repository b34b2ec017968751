//! Stage 1: logits.

use tokenwise::{policy::*, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::policy as naive,
};

use crate::case::{tokens, unwritten, Case, Outcome};

pub(crate) fn temperature(random: &mut Random) -> f64 {
    random.pick(&[1.0, 0.5, 2.0, 0.75])
}

fn input<R: Number>(flat: &Flat<R>) -> LogProbInput<'_, R> {
    LogProbInput { logits: flat.column(Column::Logits), vocab: flat.vocab, tokens: &flat.ids }
}

fn logits<R: Number>(flat: &Flat<R>) -> LogitsInput<'_, R> {
    LogitsInput { logits: flat.column(Column::Logits), vocab: flat.vocab }
}

pub(crate) struct LogProbsAndEntropy;
impl Case for LogProbsAndEntropy {
    const FORMULA: Formula = Formula::LogProbsAndEntropy;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let (mut log_probs, mut entropy) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        log_probs_and_entropy(&flat.batch(), input(flat), &PolicyConfig { temperature }, output)?;
        Ok(Outcome::tokens([log_probs, entropy]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let logits = flat.column(Column::Logits);
        let log_probs = naive::token_log_probs(tokens(flat), logits, flat.vocab, &flat.ids, temperature);
        Outcome::tokens([log_probs, naive::entropy(tokens(flat), logits, flat.vocab, temperature)])
    }
}

pub(crate) struct TokenLogProbs;
impl Case for TokenLogProbs {
    const FORMULA: Formula = Formula::TokenLogProbs;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        token_log_probs(&flat.batch(), input(flat), &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let logits = flat.column(Column::Logits);
        Outcome::tokens([naive::token_log_probs(tokens(flat), logits, flat.vocab, &flat.ids, temperature)])
    }
}

pub(crate) struct Entropy;
impl Case for Entropy {
    const FORMULA: Formula = Formula::Entropy;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        entropy(&flat.batch(), logits(flat), &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        Outcome::tokens([naive::entropy(tokens(flat), flat.column(Column::Logits), flat.vocab, temperature)])
    }
}

pub(crate) struct SumSquaredProbs;
impl Case for SumSquaredProbs {
    const FORMULA: Formula = Formula::SumSquaredProbs;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        sum_squared_probs(&flat.batch(), logits(flat), &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        Outcome::tokens([naive::sum_squared_probs(tokens(flat), flat.column(Column::Logits), flat.vocab, temperature)])
    }
}

pub(crate) struct LogitsGradient;
impl Case for LogitsGradient {
    const FORMULA: Formula = Formula::LogitsGradient;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens() * flat.vocab);
        let input = LogitsGradientInput {
            logits: flat.column(Column::Logits),
            vocab: flat.vocab,
            tokens: &flat.ids,
            grad_log_probs: flat.column(Column::Advantages),
            grad_entropy: flat.column(Column::Kl),
        };
        logits_gradient(&flat.batch(), input, &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let up = naive::Upstream {
            ids: &flat.ids,
            grad_log_probs: flat.column(Column::Advantages),
            grad_entropy: flat.column(Column::Kl),
        };
        let logits = flat.column(Column::Logits);
        Outcome::tokens([naive::logits_gradient(tokens(flat), logits, flat.vocab, up, temperature)])
    }
}
