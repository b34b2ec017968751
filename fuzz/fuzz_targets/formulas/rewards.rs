//! Stage 3, and the controllers of its price.

use tokenwise::{control::*, reward::*, Batch, Groups};

use crate::{
    policies::kl_config,
    reader::{others, tokens, Reader, UNTOUCHED},
};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let kl = kl_config(reader);
    let (a, b, c, scores) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(sequences));
    let (len, rows, beta) = (reader.len(n), reader.len(sequences), reader.number());
    tokens(batch, len, 1, |out| place_scores(batch, &scores, out));
    tokens(batch, len, 1, |out| shape_rewards(batch, ShapeInput { scores: &a, kl: &b }, beta, out));
    let input = KlInRewardInput { scores: &a, old_log_probs: &b, ref_log_probs: &c };
    tokens(batch, len, 1, |out| {
        kl_in_reward(batch, input, &KlRewardConfig { beta, kl, ..Default::default() }, out).map(drop)
    });
    let input = ClippedRewardsInput { scores: &scores, kl: &a };
    let config = ClippedRewardsConfig { beta, low: reader.number(), high: reader.number() };
    tokens(batch, len, 1, |out| clipped_rewards(batch, input, &config, out));
    let input = KlInScoresInput { scores: &scores, old_log_probs: &a, ref_log_probs: &b };
    others(rows, UNTOUCHED, |out| kl_in_scores(batch, input, beta, out));

    let lengths = reader.ids(sequences, 255);
    let overlong = OverlongConfig {
        max_len: reader.byte().into(),
        buffer: reader.byte().into(),
        factor: reader.share(),
        floor: reader.pick(&[OverlongFloor::Unlimited, OverlongFloor::Factor]),
    };
    let input = OverlongInput { scores: &scores, lengths: &lengths };
    others(rows, UNTOUCHED, |out| overlong_penalty(input, &overlong, out));
    let config = RepetitionConfig { ngram: usize::from(reader.byte() % 5), penalty: -reader.share() };
    let ids = reader.ids(n, 3);
    others(rows, UNTOUCHED, |out| repetition_penalty(batch, &ids, &config, out));
    let flags: Vec<bool> = reader.ids(sequences, 2).iter().map(|&id| id == 1).collect();
    let price = reader.number();
    let input = TruncatedInput { scores: &scores, truncated: &flags };
    others(rows, UNTOUCHED, |out| stop_properly_penalty(input, price, out));
    let input = MissingEosInput { scores: &scores, ended: &flags };
    others(rows, UNTOUCHED, |out| missing_eos_penalty(input, price, out));
    let [p, q, r, s] = core::array::from_fn(|_| reader.number());
    let scale = reader.pick(&[
        RewardScale::Clip { low: p, high: q },
        RewardScale::ShiftScaleClip { bias: p, scale: q, bound: r },
        RewardScale::Map { from: (p, q), to: (r, s) },
    ]);
    others(rows, UNTOUCHED, |out| reward_scale_clip(&scores, &scale, out).map(drop));
    let group_ids = reader.ids(sequences, 4);
    if let Ok(groups) = Groups::from_ids(&group_ids) {
        let (inputs, turns) = (reader.ids(sequences, 255), reader.ids(sequences, 5));
        let input = GroupLengthInput { scores: &scores, outputs: &lengths, inputs: &inputs, turns: &turns };
        let config = GroupLengthConfig { output_weight: p, input_weight: q, turn_weight: r };
        others(rows, UNTOUCHED, |out| length_penalty_group(&groups, input, &config, out));
    }

    if let Ok(mut controller) = FixedKl::new(beta) {
        assert!(controller.update(p, 1).is_err() || controller.beta() == beta);
    }
    if let Ok(mut controller) = AdaptiveKl::new(&AdaptiveKlConfig { beta: beta.abs(), target: p, horizon: q }) {
        for kl in [r, s, price] {
            let before = controller.beta();
            if controller.update(kl, reader.byte().into()).is_err() {
                assert_eq!(controller.beta().to_bits(), before.to_bits(), "an error moved the price");
            }
        }
    }
}
