//! Stage 5: losses with one ratio or one weight per sequence.

use tokenwise::{loss::*, Batch, Groups, Moments};

use crate::{
    losses::{aggregation, counts},
    reader::{tokens, Reader},
};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (a, b, c, d, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let aggregation = aggregation(reader, None);
    let divisor = aggregation.divisor;
    let weights = reader.pick(&[None, Some(&d[..])]);
    let input = PolicyLossInput { log_probs: &a, old_log_probs: &b, advantages: &c, weights };
    let (clip_low, clip_high, cap) = (reader.share(), reader.share(), reader.share() * 20.0);
    let config = GspoConfig {
        clip_low,
        clip_high,
        form: reader.pick(&[GspoForm::Sequence, GspoForm::Token]),
        log_ratio_cap: reader.pick(&[None, Some(cap)]),
        aggregate: aggregation,
        divisor,
    };
    tokens(batch, len, 1, |grad| gspo(batch, input, &config, grad).map(drop));
    tokens(batch, len, 1, |grad| luspo(batch, input, &LuspoConfig { clip_low, clip_high }, grad).map(drop));
    let config = GmpoConfig { clip_low, clip_high, counts: counts(reader), divisor };
    tokens(batch, len, 1, |grad| gmpo(batch, input, &config, grad).map(drop));
    let scores = reader.numbers(sequences);
    let config = ToprConfig { positive: reader.share(), negative: reader.share(), aggregate: aggregation };
    tokens(batch, len, 1, |grad| topr(batch, input, &scores, &config, grad).map(drop));
    let config = VespoConfig {
        k_positive: reader.share() * 4.0,
        lambda_positive: reader.share() * 4.0,
        k_negative: reader.share() * 4.0,
        lambda_negative: reader.share() * 4.0,
        aggregate: aggregation,
    };
    tokens(batch, len, 1, |grad| vespo(batch, input, &config, grad).map(drop));
    let mu = reader.share();
    tokens(batch, len, 1, |grad| positive_nll(batch, &a, &scores, mu, grad).map(drop));
    let group_ids = reader.ids(sequences, 3);
    if let Ok(groups) = Groups::from_ids(&group_ids) {
        let mut scratch = vec![Moments::default(); reader.len(groups.count())];
        let config = GvpoConfig { beta: reader.share() };
        tokens(batch, len, 1, |grad| gvpo(batch, &groups, input, &config, &mut scratch, grad).map(drop));
    }
}
