use tokenwise::policy::{self, LogProbInput, LogitsGradientInput, LogitsInput, PolicyConfig};

use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

/// Size of the vocabulary, and the number of logits.
pub(super) fn vocab(case: &Case<'_>) -> Result<(usize, usize), Failure> {
    let vocab = case.whole("vocab")? as usize;
    Ok((vocab, case.rows * case.cols * vocab))
}

fn config(case: &Case<'_>) -> Result<PolicyConfig, Failure> {
    Ok(PolicyConfig { temperature: case.number("temperature", Some(1.0))? })
}

pub(super) fn token_log_probs<R: Number>(case: &Case<'_>) -> Ran {
    let (vocab, len) = vocab(case)?;
    let (logits, tokens) = (case.input::<R>("logits", len)?, case.ids("tokens", case.rows * case.cols)?);
    let mut out = vec![R::zero(); tokens.len()];
    let input = LogProbInput { logits: &logits, vocab, tokens: &tokens };
    policy::token_log_probs(&case.batch()?, input, &config(case)?, &mut out)?;
    Ok(vec![("log_probs", Output::tokens(out))])
}

pub(super) fn entropy<R: Number>(case: &Case<'_>) -> Ran {
    let (vocab, len) = vocab(case)?;
    let logits = case.input::<R>("logits", len)?;
    let mut out = vec![R::zero(); case.rows * case.cols];
    policy::entropy(&case.batch()?, LogitsInput { logits: &logits, vocab }, &config(case)?, &mut out)?;
    Ok(vec![("entropy", Output::tokens(out))])
}

pub(super) fn sum_pi_squared<R: Number>(case: &Case<'_>) -> Ran {
    let (vocab, len) = vocab(case)?;
    let logits = case.input::<R>("logits", len)?;
    let mut out = vec![R::zero(); case.rows * case.cols];
    policy::sum_squared_probs(&case.batch()?, LogitsInput { logits: &logits, vocab }, &config(case)?, &mut out)?;
    Ok(vec![("out", Output::tokens(out))])
}

pub(super) fn logits_grad<R: Number>(case: &Case<'_>) -> Ran {
    let (vocab, len) = vocab(case)?;
    let (logits, tokens) = (case.input::<R>("logits", len)?, case.ids("tokens", case.rows * case.cols)?);
    let (grad_log_probs, grad_entropy) = (case.tokens("grad_log_probs")?, case.tokens("grad_entropy")?);
    let mut out = vec![R::zero(); len];
    let input = LogitsGradientInput {
        logits: &logits,
        vocab,
        tokens: &tokens,
        grad_log_probs: &grad_log_probs,
        grad_entropy: &grad_entropy,
    };
    policy::logits_gradient(&case.batch()?, input, &config(case)?, &mut out)?;
    Ok(vec![("grad_logits", Output::rows(out, vocab))])
}
