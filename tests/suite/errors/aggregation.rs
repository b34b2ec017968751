//! Invalid aggregations, in every formula that takes one.

use tokenwise::{loss::*, Error, Groups};
use tokenwise_catalogue::{Array, Entry, Value};

use super::{
    formulas::{rows, Setting},
    TOKENS,
};

/// Every loss with an aggregation, called with this one.
fn losses(aggregate: Aggregate<'_>) -> Vec<(&'static Entry, Setting<f64>)> {
    let settings: Value = serde_json::from_value(serde_json::to_value(aggregate).unwrap()).unwrap();
    let aggregates = |entry: &Entry| {
        entry.inputs.iter().any(|column| column.name == "group_tokens") && entry.numbers.contains(&"loss")
    };
    let mut losses = Vec::new();
    for (entry, row) in rows().filter(|(entry, _)| aggregates(entry)) {
        let mut setting = Setting::new(entry, row);
        match entry.name {
            "aggregate" => setting.config = settings.clone(),
            "bypass_loss" => setting.config.get_mut("policy").unwrap().set("aggregate", settings.clone()),
            _ => setting.config.set("aggregate", settings.clone()),
        }
        setting.ids = vec![0, 1];
        if let AggregateMode::PromptMean { tokens, .. } = aggregate.mode {
            setting.inputs.set("group_tokens", Array::Count(tokens.to_vec()));
        }
        losses.push((entry, setting));
    }
    assert!(losses.len() > 20);
    losses
}

fn refused(aggregate: Aggregate<'_>, error: Error) {
    for (entry, setting) in losses(aggregate) {
        setting.refused(entry, &format!("{aggregate:?}"), error);
    }
}

/// One sequence per prompt.
fn by_prompt(tokens: &[u64]) -> AggregateMode<'_> {
    AggregateMode::PromptMean { groups: Groups::from_ids(&[0, 1]).unwrap(), tokens }
}

fn modes(tokens: &[u64]) -> [AggregateMode<'_>; 6] {
    [
        AggregateMode::TokenMean,
        AggregateMode::TokenSum,
        AggregateMode::SequenceMeanTokenSum,
        AggregateMode::SequenceMeanTokenSumNorm { scale: 3.0 },
        AggregateMode::SequenceMeanTokenMean,
        by_prompt(tokens),
    ]
}

#[test]
fn global_counts() {
    let all = GlobalCounts { tokens: 9, sequences: 4, prompts: 2, ranks: 2 };
    let needed = ["tokens", "", "sequences", "sequences", "sequences", "prompts"];
    for (mode, needed) in modes(&[9, 9]).into_iter().zip(needed) {
        for what in ["ranks", "tokens", "sequences", "prompts"] {
            let mut counts = all;
            match what {
                "ranks" => counts.ranks = 0,
                "tokens" => counts.tokens = 0,
                "sequences" => counts.sequences = 0,
                _ => counts.prompts = 0,
            }
            let aggregate = Aggregate { mode, counts: Counts::Global(counts), ..Default::default() };
            if what == "ranks" || what == needed {
                refused(aggregate, Error::Config { what, must_be: "at least 1", got: 0.0 });
            } else {
                // only the counts that the mode divides by are checked
                for (entry, setting) in losses(aggregate) {
                    setting.accepted(entry, "global counts");
                }
            }
        }
    }
}

#[test]
fn nothing_kept() {
    for mode in modes(&[9, 9]) {
        for (entry, mut setting) in losses(Aggregate { mode, ..Default::default() }) {
            setting.mask = [false; TOKENS];
            // an empty sum is 0, an empty mean is undefined
            if mode != AggregateMode::TokenSum {
                setting.refused(entry, "nothing kept", Error::EmptyMask);
            }
        }
        // a micro-batch of a larger step may be empty: it adds nothing
        let counts = Counts::Global(GlobalCounts { tokens: 9, sequences: 4, prompts: 2, ranks: 1 });
        for (entry, mut setting) in losses(Aggregate { mode, counts, ..Default::default() }) {
            setting.mask = [false; TOKENS];
            let (result, outputs) = setting.call(entry);
            if METRICS_OF_THE_BATCH.contains(&entry.name) {
                assert_eq!(result, Err(Error::EmptyMask.into()), "{}", entry.name);
                continue;
            }
            assert_eq!(result.unwrap()[0], 0.0, "{}", entry.name);
            for (name, array) in outputs.iter() {
                let zero = matches!(array, Array::Real(found) if found.iter().all(|&x| x.to_bits() == 0));
                assert!(zero, "{}: {name} is {array:?}", entry.name);
            }
        }
    }
}

/// Losses that also report means of the current batch, which must not be empty.
const METRICS_OF_THE_BATCH: [&str; 1] = ["bypass_loss"];

#[test]
fn scales() {
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mode = AggregateMode::SequenceMeanTokenSumNorm { scale };
        let error = Error::Config { what: "scale", must_be: "finite and positive", got: scale };
        refused(Aggregate { mode, ..Default::default() }, error);
    }
}

#[test]
fn prompts() {
    fn with(tokens: &[u64]) -> Aggregate<'_> {
        Aggregate { mode: by_prompt(tokens), ..Default::default() }
    }
    for (entry, mut setting) in losses(with(&[9, 9])) {
        setting.ids = vec![0, 1, 1];
        setting.refused(entry, "three sequences", Error::Length { what: "groups", expected: 2, got: 3 });
    }
    for tokens in [&[9][..], &[9, 9, 9], &[]] {
        refused(with(tokens), Error::Length { what: "tokens", expected: 2, got: tokens.len() });
    }
    let must_be = "at least the kept tokens of each sequence of the prompt";
    refused(with(&[2, 1]), Error::Entry { what: "tokens", index: 1, must_be, got: 1.0 });
}
