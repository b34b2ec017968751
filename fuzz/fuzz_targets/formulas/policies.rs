//! Stages 1 and 2.

use tokenwise::{divergence::*, policy::*, shift, Batch};

use crate::reader::{tokens, Reader, UNTOUCHED};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let n = batch.tokens();
    let vocab = usize::from(reader.byte() % 5);
    let (logits, ref_logits) = (reader.numbers(n * vocab), reader.numbers(n * vocab));
    let (ids, policy) = (reader.ids(n, 6), PolicyConfig { temperature: reader.share() });
    let (g, h, len) = (reader.numbers(n), reader.numbers(n), reader.len(n));
    let chosen = LogProbInput { logits: &logits, vocab, tokens: &ids };
    let alone = LogitsInput { logits: &logits, vocab };
    tokens(batch, len, 1, |out| token_log_probs(batch, chosen, &policy, out));
    tokens(batch, len, 1, |out| entropy(batch, alone, &policy, out));
    tokens(batch, len, 1, |out| sum_squared_probs(batch, alone, &policy, out));
    tokens(batch, len, 1, |log_probs| {
        let mut entropy = vec![UNTOUCHED; n];
        log_probs_and_entropy(batch, chosen, &policy, LogProbOutput { log_probs, entropy: &mut entropy })
    });
    let backward = LogitsGradientInput { logits: &logits, vocab, tokens: &ids, grad_log_probs: &g, grad_entropy: &h };
    tokens(batch, len * vocab, vocab, |out| logits_gradient(batch, backward, &policy, out));
    let pair = KlExactInput { logits: &logits, ref_logits: &ref_logits, vocab };
    tokens(batch, len, 1, |out| kl_exact(batch, pair, &policy, out));
    let pair = KlExactGradientInput { logits: &logits, ref_logits: &ref_logits, vocab, grad_kl: &g };
    tokens(batch, len * vocab, vocab, |out| kl_exact_gradient(batch, pair, &policy, out));
    let _ = shift(&batch.layout(), &batch.layout(), &g, 1, &mut vec![0.0; len]);

    let kl = kl_config(reader);
    let (a, b, c) = (reader.numbers(n), reader.numbers(n), reader.numbers(n));
    let two = KlInput { log_probs: &a, ref_log_probs: &b };
    tokens(batch, len, 1, |out| kl_estimate(batch, two, &kl, out));
    tokens(batch, len, 1, |out| kl_gradient(batch, two, &kl, out));
    let weight = reader.pick(&[
        KlWeight::Token,
        KlWeight::Sequence,
        KlWeight::TokenBounded,
        KlWeight::TokenFinite,
        KlWeight::ScoreFunction,
    ]);
    let config = KlWeightedConfig { weight, kl };
    let input = KlWeightedInput { log_probs: &a, ref_log_probs: &b, old_log_probs: &c };
    tokens(batch, len, 1, |out| kl_importance_weighted(batch, input, &config, out));
    let input = KlWeightedGradientInput { log_probs: &a, ref_log_probs: &b, old_log_probs: &c, grad_kl: &g };
    tokens(batch, len, 1, |out| kl_importance_weighted_gradient(batch, input, &config, out));
}

pub fn kl_config(reader: &mut Reader<'_>) -> KlConfig {
    KlConfig {
        estimator: reader.pick(&[KlEstimator::K1, KlEstimator::Abs, KlEstimator::K2, KlEstimator::K3]),
        gradient: reader.pick(&[KlGradient::Own, KlGradient::StraightThrough]),
        bounds: reader.pick(&[KlBounds::Unbounded, KlBounds::K3Only, KlBounds::Every]),
    }
}
