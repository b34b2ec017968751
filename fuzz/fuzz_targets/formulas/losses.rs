//! Stage 5: losses of each token on its own.

use tokenwise::{loss::*, Batch, Divisor, Groups};

use crate::reader::{masks, tokens, Reader};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (a, b, c, d, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let group_ids = reader.ids(sequences, 4);
    let groups = Groups::from_ids(&group_ids);
    let mut per_group = vec![0; groups.as_ref().map_or(0, Groups::count)];
    if let Ok(groups) = &groups {
        let _ = group_tokens(batch, groups, &mut per_group);
    }
    let aggregation = aggregation(reader, groups.ok().map(|groups| (groups, &per_group[..])));
    let divisor = aggregation.divisor;
    tokens(batch, len, 1, |out| aggregate(batch, &a, &aggregation, out).map(drop));
    let weights = reader.pick(&[None, Some(&d[..])]);
    let input = PolicyLossInput { log_probs: &a, old_log_probs: &b, advantages: &c, weights };
    let bound = reader.share() * 20.0;
    let log_ratio_bound = reader.pick(&[None, Some(bound)]);
    let config = SurrogateConfig { log_ratio_bound, aggregate: aggregation };
    tokens(batch, len, 1, |grad| surrogate(batch, input, &config, grad).map(drop));
    let dual = 1.0 + reader.share();
    let dual_clip = reader.pick(&[DualClip::Off, DualClip::NegativeOnly(dual), DualClip::BothSigns(dual)]);
    let (clip_low, clip_high) = (reader.share(), reader.share());
    let config =
        PpoConfig { clip_low, clip_high, dual_clip, log_ratio_bound, aggregate: aggregation, ..Default::default() };
    tokens(batch, len, 1, |grad| ppo_clip(batch, input, &config, grad).map(drop));
    let config = ReinforceConfig { aggregate: aggregation, divisor };
    tokens(batch, len, 1, |grad| reinforce(batch, input, &config, grad).map(drop));
    tokens(batch, len, 1, |grad| tis_loss(batch, input, &config, grad).map(drop));
    let bounds =
        reader.pick(&[CispoBounds::Relative { low: clip_low, high: clip_high }, CispoBounds::Absolute { high: dual }]);
    let config = CispoConfig { bounds, log_ratio_bound, aggregate: aggregation, divisor };
    tokens(batch, len, 1, |grad| cispo(batch, input, &config, grad).map(drop));
    let config = DppoConfig { clip_low, clip_high, ratio_cap: dual, log_ratio_bound, aggregate: aggregation, divisor };
    tokens(batch, len, 1, |grad| dppo_tv(batch, input, &config, grad).map(drop));
    tokens(batch, len, 1, |grad| dppo_kl(batch, input, &config, grad).map(drop));
    let config = DroConfig { beta: reader.share(), aggregate: aggregation, divisor };
    tokens(batch, len, 1, |grad| dro(batch, input, &config, grad).map(drop));
    let config = SapoConfig {
        tau_positive: reader.share(),
        tau_negative: dual,
        log_ratio_bound,
        aggregate: aggregation,
        divisor,
    };
    tokens(batch, len, 1, |grad| sapo(batch, input, &config, grad).map(drop));

    let (lower, upper, ratio) = (reader.number(), reader.number(), reader.share());
    let config = ClipCovConfig { clip_low, clip_high, lower, upper, ratio, aggregate: aggregation, divisor };
    let seed = reader.byte().into();
    masks(batch, len, |selected| {
        clip_cov_selection(batch, input, &config, seed, selected).map(|count| {
            assert_eq!(count, selected.iter().filter(|chosen| **chosen).count());
        })
    });
    let selected: Vec<bool> = reader.ids(n, 2).iter().map(|&id| id == 1).collect();
    tokens(batch, len, 1, |grad| clip_cov(batch, input, &config, &selected, grad).map(drop));
    let config = KlCovConfig { ratio, kl_coef: reader.share(), aggregate: aggregation, divisor };
    tokens(batch, len, 1, |grad| kl_cov(batch, input, &config, grad).map(drop));

    let clip = reader.share();
    let config = ValueConfig { clip: reader.pick(&[None, Some(clip)]), aggregate: aggregation, ..Default::default() };
    let input = ValueLossInput { predictions: &a, values: &b, returns: &c };
    tokens(batch, len, 1, |grad| value_loss(batch, input, &config, grad).map(drop));
    let config = EntropyBonusConfig { coefficient: reader.number(), aggregate: aggregation };
    tokens(batch, len, 1, |grad| entropy_bonus(batch, &a, &config, grad).map(drop));
}

pub fn aggregation<'a>(reader: &mut Reader<'_>, prompts: Option<(Groups<'a>, &'a [u64])>) -> Aggregate<'a> {
    let mode = match (reader.byte() % 6, prompts) {
        (0, _) => AggregateMode::TokenMean,
        (1, _) => AggregateMode::TokenSum,
        (2, _) => AggregateMode::SequenceMeanTokenSum,
        (3, _) => AggregateMode::SequenceMeanTokenSumNorm { scale: reader.number() },
        (4, Some((groups, tokens))) => AggregateMode::PromptMean { groups, tokens },
        _ => AggregateMode::SequenceMeanTokenMean,
    };
    Aggregate {
        mode,
        counts: counts(reader),
        empty_rows: reader.pick(&[EmptyRows::Excluded, EmptyRows::Counted]),
        divisor: reader.pick(&[Divisor::Count, Divisor::CountPlusEpsilon]),
    }
}

pub fn counts(reader: &mut Reader<'_>) -> Counts {
    let mut count = || u64::from(reader.byte());
    let counts = GlobalCounts { tokens: count(), sequences: count(), prompts: count(), ranks: count() };
    reader.pick(&[Counts::Local, Counts::Global(counts)])
}
