//! Stage 1.

use tokenwise::{
    policy::{self, LogProbInput, LogProbOutput, LogitsGradientInput, LogitsInput, PolicyConfig},
    Layout,
};

use crate::{
    cases::{Case, Out, VocabCase},
    hash::Value,
};

/// With and without a temperature.
pub(crate) const CONFIGS: [PolicyConfig; 2] = [PolicyConfig { temperature: 1.0 }, PolicyConfig { temperature: 0.7 }];

impl<'a, R> VocabCase<'a, R> {
    const fn chosen(&self) -> LogProbInput<'a, R> {
        LogProbInput { logits: self.logits, vocab: self.vocab, tokens: self.tokens }
    }

    const fn all(&self) -> LogitsInput<'a, R> {
        LogitsInput { logits: self.logits, vocab: self.vocab }
    }
}

/// All slots but the last as the predictions of all but the first.
pub(crate) fn shift<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let positions = case.batch.tokens();
    let responses = positions.saturating_sub(1);
    let result = Layout::padded(1, responses).and_then(|layout| {
        let raw_layout = Layout::padded(1, positions)?;
        tokenwise::shift(&layout, &raw_layout, case.values, 1, &mut out.a[..responses])
    });
    out.record(result);
}

pub(crate) fn log_probs_and_entropy<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let output = LogProbOutput { log_probs: out.a, entropy: out.b };
        let result = policy::log_probs_and_entropy(&case.batch, case.chosen(), &config, output);
        out.record(result);
    }
}

pub(crate) fn token_log_probs<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let result = policy::token_log_probs(&case.batch, case.chosen(), &config, out.a);
        out.record(result);
    }
}

pub(crate) fn entropy<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let result = policy::entropy(&case.batch, case.all(), &config, out.a);
        out.record(result);
    }
}

pub(crate) fn sum_squared_probs<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let result = policy::sum_squared_probs(&case.batch, case.all(), &config, out.a);
        out.record(result);
    }
}

pub(crate) fn logits_gradient<R: Value>(case: &VocabCase<'_, R>, out: &mut Out<'_, R>) {
    for config in CONFIGS {
        let input = LogitsGradientInput {
            logits: case.logits,
            vocab: case.vocab,
            tokens: case.tokens,
            grad_log_probs: case.grad_log_probs,
            grad_entropy: case.grad_entropy,
        };
        let result = policy::logits_gradient(&case.batch, input, &config, out.logits);
        out.record(result);
    }
}
