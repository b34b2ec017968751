//! Stages 1 and 5: losses that draw a student to a teacher.

use tokenwise::{divergence::*, loss::*, policy::*, rollout::*, Batch};

use crate::{
    losses::aggregation,
    policies::kl_config,
    reader::{tokens, Reader, UNTOUCHED},
};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let n = batch.tokens();
    let (a, b, c, d, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let aggregate = aggregation(reader, None);
    let (kl, coefficient, most) = (kl_config(reader), reader.number(), reader.number());
    let weights = reader.pick(&[None, Some(&d[..])]);
    let max_loss = reader.pick(&[None, Some(most)]);

    let input = KlInput { log_probs: &a, ref_log_probs: &b };
    let config = KlLossConfig { kl, coefficient, aggregate };
    tokens(batch, len, 1, |grad| kl_loss(batch, input, &config, grad).map(drop));
    let route = reader.pick(&[OpdRoute::Clipped, OpdRoute::Surrogate, OpdRoute::Reinforce, OpdRoute::Supervised]);
    let config = OpdLossConfig { kl, max_loss, route, coefficient, aggregate, ..Default::default() };
    let input = OpdLossInput { log_probs: &a, old_log_probs: &b, teacher_log_probs: &c, weights };
    tokens(batch, len, 1, |grad| opd_loss(batch, input, &config, grad).map(drop));
    let config = RefKlConfig { fall: reader.share(), drift: reader.share(), aggregate };
    let input = RefKlInput { log_probs: &a, old_log_probs: &b, ref_log_probs: &c, weights };
    tokens(batch, len, 1, |grad| ref_kl(batch, input, &config, grad).map(drop));
    let config = IwOpdConfig { gamma: reader.share(), epsilon: reader.share(), aggregate };
    let input = IwOpdInput { log_probs: &a, old_log_probs: &b, teacher_log_probs: &c };
    tokens(batch, len, 1, |grad| iw_opd(batch, input, &config, grad).map(drop));

    let option = reader.pick(&RejectionOption::ALL);
    let criteria = [Criterion { option, lower: reader.share(), upper: reader.number() }];
    let bound = WeightBound::Truncate { upper: reader.share() };
    let form = reader.pick(&[
        BypassForm::PpoClip(PpoConfig { aggregate, ..Default::default() }),
        BypassForm::Reinforce(ReinforceConfig { aggregate, ..Default::default() }),
    ]);
    let config = BypassConfig {
        weights: reader.pick(&[None, Some(RolloutConfig { bound, ..Default::default() })]),
        rejection: RejectionConfig { criteria: &criteria, ..Default::default() },
        form,
        ..Default::default()
    };
    let input = PolicyLossInput { log_probs: &a, old_log_probs: &b, advantages: &c, weights: None };
    tokens(batch, len, 1, |grad| {
        let (mut weights, mut keep) = (vec![UNTOUCHED; n], vec![true; n]);
        let mut per_criterion = [CriterionMetrics::default()];
        let output =
            BypassOutput { weights: &mut weights, keep: &mut keep, per_criterion: &mut per_criterion, grad };
        bypass_loss(batch, input, &config, output).map(drop)
    });

    let k = usize::from(reader.byte() % 4);
    let (s, t) = (reader.numbers(n * k), reader.numbers(n * k));
    let (teacher, student) = (reader.ids(n * k, 4), reader.ids(n * k, 4));
    let ids = reader.pick(&[None, Some(TopKIds { teacher: &teacher, student: &student })]);
    let floor = -reader.share();
    let config = ForwardKlTopKConfig { log_prob_floor: reader.pick(&[None, Some(floor)]), max_loss, aggregate };
    let input = ForwardKlTopKInput { log_probs: &s, teacher_log_probs: &t, k, ids };
    tokens(batch, len * k, k, |grad| {
        let mut losses = vec![UNTOUCHED; n];
        forward_kl_topk(batch, input, &config, ForwardKlTopKOutput { losses: &mut losses, grad }).map(drop)
    });
    let (beta, share) = (reader.share(), reader.share());
    let rest = reader.pick(&[TopKRest::Tail, TopKRest::Renormalize]);
    let input = TopKInput { log_probs: &s, teacher_log_probs: &t, k, weights };
    let config = TopKJsdConfig { beta, rest, aggregate };
    tokens(batch, len * k, k, |grad| topk_jsd(batch, input, &config, grad).map(drop));
    let outside = reader.pick(&[OutsideTopK::Renormalize, OutsideTopK::LogProb(coefficient)]);
    let config = MixedKlConfig { forward: share, outside, aggregate };
    let input = MixedKlInput { log_probs: &s, teacher_log_probs: &t, k, entropies: &a };
    tokens(batch, len * k, k, |grad| {
        let mut entropies = vec![UNTOUCHED; n];
        mixed_kl_topk(batch, input, &config, MixedKlOutput { grad, grad_entropies: &mut entropies }).map(drop)
    });

    let vocab = usize::from(reader.byte() % 5);
    let (logits, teacher_logits) = (reader.numbers(n * vocab), reader.numbers(n * vocab));
    let policy = PolicyConfig { temperature: reader.share() };
    let input = TopKLogitsInput { logits: &logits, vocab, tokens: &teacher, k };
    tokens(batch, len * k, k, |out| topk_log_probs(batch, input, &policy, out));
    let input = TopKGradientInput { logits: &logits, vocab, tokens: &teacher, k, grad_log_probs: &s };
    tokens(batch, len * vocab, vocab, |out| topk_logits_gradient(batch, input, &policy, out));
    let input = JsdInput { logits: &logits, teacher_logits: &teacher_logits, vocab, weights };
    let config = JsdConfig { beta, temperature: policy.temperature, aggregate };
    tokens(batch, len * vocab, vocab, |out| generalized_jsd(batch, input, &config, out).map(drop));
}
