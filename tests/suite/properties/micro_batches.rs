//! A step split into micro-batches and ranks: with global counts every gradient keeps its bits, and the losses add up.

use serde_json::{json, Value};
use tokenwise::{loss::*, Divisor};
use tokenwise_catalogue::{entries, Array, Entry};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random, Spec, World},
    tolerance::assert_bits,
};

use super::{check, skip};
use crate::{
    case::call,
    loss::{call_loss, MODES},
    naive::covariance_loss::ClipCov,
};

const RANKS: u64 = 3;

/// Every loss with an aggregation, and its settings.
fn losses() -> Vec<(&'static str, Value)> {
    let aggregates = |entry: &&Entry| {
        entry.inputs.iter().any(|column| column.name == "group_tokens") && entry.numbers.contains(&"loss")
    };
    let mut losses: Vec<_> = entries()
        .filter(aggregates)
        .filter(|entry| !OF_THE_BATCH.contains(&entry.name))
        .map(|entry| match entry.name {
            "dro" => (entry.name, json!({ "beta": 0.5 })),
            // it selects within the batch; selecting everything is the same for parts
            "kl_cov" => (entry.name, json!({ "ratio": 1.0 })),
            // it has no config but the aggregation
            "aggregate" => (entry.name, Value::Null),
            _ => (entry.name, json!({})),
        })
        .collect();
    losses.push(("gspo", json!({ "form": "token" })));
    losses.push(("gmpo", json!({})));
    assert!(losses.len() > 20);
    losses
}

/// Losses that use means of the current batch, which differ for a part of it.
const OF_THE_BATCH: [&str; 1] = ["bypass_loss"];

/// Calls a loss with weights where it takes any.
fn call_weighed<R: Number>(
    (name, settings): &(&str, Value),
    flat: &Flat<R>,
    aggregate: Aggregate<'_>,
) -> (f64, Vec<Vec<R>>) {
    let real = |column| Some(Array::Real(flat.column(column).to_vec()));
    let columns = |column: &str| match column {
        "weights" | "entropy" => real(Column::Weights),
        "losses" => real(Column::Kl),
        "selected" => Some(Array::Flag(ClipCov::selected(flat))),
        _ => None,
    };
    let outcome = if *name == "gmpo" {
        // its only aggregation is a mean over sequences
        let counts = serde_json::to_value(aggregate.counts).unwrap();
        call(name, flat, json!({ "counts": counts }), columns)
    } else {
        call_loss(name, flat, settings, aggregate, columns)
    };
    let outcome = outcome.unwrap();
    (outcome.numbers[0], outcome.tokens)
}

/// Some sequences of a step, with the counts of all of it.
struct Part<R> {
    flat: Flat<R>,
    prompt_tokens: Vec<u64>,
    counts: GlobalCounts,
}

impl<R: Number> Part<R> {
    fn new(world: &World<R>, range: std::ops::Range<usize>) -> Self {
        let whole = world.packed();
        let mut tokens = vec![0; whole.groups().count()];
        group_tokens(&whole.batch(), &whole.groups(), &mut tokens).unwrap();
        let counts = GlobalCounts {
            tokens: whole.batch().kept() as u64,
            sequences: world.len() as u64,
            prompts: tokens.len() as u64,
            ranks: RANKS,
        };
        // a part renumbers its prompts by first appearance
        let mut seen: Vec<usize> = Vec::new();
        for sequence in range.clone() {
            if !seen.contains(&world.group_of(sequence)) {
                seen.push(world.group_of(sequence));
            }
        }
        let prompt_tokens = seen.iter().map(|&group| tokens[group]).collect();
        Self { flat: world.part(range).packed(), prompt_tokens, counts }
    }

    fn run(&self, loss: &(&str, Value), mode: usize) -> (f64, Vec<R>) {
        let mode = [
            AggregateMode::TokenMean,
            AggregateMode::TokenSum,
            AggregateMode::SequenceMeanTokenSum,
            AggregateMode::SequenceMeanTokenSumNorm { scale: 40.0 },
            AggregateMode::SequenceMeanTokenMean,
            AggregateMode::PromptMean { groups: self.flat.groups(), tokens: &self.prompt_tokens },
        ][mode];
        let divisor = Divisor::Count;
        let config = Aggregate { mode, counts: Counts::Global(self.counts), divisor, ..Default::default() };
        let (number, mut gradients) = call_weighed(loss, &self.flat, config);
        // the losses of each token come first where they are an output
        (number, gradients.pop().unwrap())
    }
}

fn any_split_is_the_whole<R: Number>(spec: Spec) {
    let world = World::<R>::new(spec);
    if world.packed().batch().kept() == 0 {
        return skip();
    }
    let mut random = Random::new(spec.seed ^ 0x5911);
    let mut cuts = vec![0, world.len()];
    cuts.extend((0..random.below(4)).map(|_| random.below(world.len() + 1)));
    cuts.sort_unstable();
    let whole = Part::new(&world, 0..world.len());
    let parts: Vec<Part<R>> = cuts.windows(2).map(|cut| Part::new(&world, cut[0]..cut[1])).collect();
    let single: Vec<Part<R>> = (0..world.len()).map(|i| Part::new(&world, i..i + 1)).collect();
    for loss in &losses() {
        for mode in 0..MODES {
            let what = format!("{loss:?}, mode {mode}, cuts {cuts:?}");
            let (want, want_grad) = whole.run(loss, mode);
            let (results, grads): (Vec<f64>, Vec<Vec<R>>) = parts.iter().map(|part| part.run(loss, mode)).unzip();
            assert_bits(&what, &grads.concat(), &want_grad);
            // both add the same numbers, one per sequence; only the order differs
            let size: f64 = single.iter().map(|part| part.run(loss, mode).0.abs()).sum();
            let got: f64 = results.iter().sum();
            let bound = parts.len() as f64 * f64::EPSILON * size;
            assert!((got - want).abs() <= bound, "{what}: {got:e}, whole {want:e}, {bound:e} apart allowed");
        }
    }
}

#[test]
fn add_up_to_the_step() {
    check(any_split_is_the_whole::<f32>);
    check(any_split_is_the_whole::<f64>);
}

/// One rank that holds the whole step gives `ranks` times the loss of local counts, which the later average undoes.
#[test]
fn ranks_undo_the_average() {
    check(|spec| {
        let world = World::<f64>::new(spec);
        let flat = world.packed();
        // an empty row counts in the step's sequences, and by default not in a batch's
        if flat.batch().kept() == 0 || flat.batch().kept_sequences() != world.len() {
            return skip();
        }
        let whole = Part::new(&world, 0..world.len());
        let single: Vec<Part<f64>> = (0..world.len()).map(|i| Part::new(&world, i..i + 1)).collect();
        for loss in &losses() {
            let (global, _) = whole.run(loss, 0);
            let (local, _) = call_weighed(loss, &flat, Aggregate::default());
            let size: f64 = single.iter().map(|part| part.run(loss, 0).0.abs()).sum();
            let error = (global / RANKS as f64 - local).abs();
            assert!(error <= 4.0 * f64::EPSILON * size, "{loss:?}: {global:e} over {RANKS} ranks, {local:e} alone");
        }
    });
}

#[test]
fn prompt_counts_add_up() {
    check(|spec| {
        let world = World::<f64>::new(spec);
        let whole = world.packed();
        let mut tokens = vec![0; whole.groups().count()];
        group_tokens(&whole.batch(), &whole.groups(), &mut tokens).unwrap();
        let mut added = vec![0; tokens.len()];
        for sequence in 0..world.len() {
            let part = world.part(sequence..sequence + 1).packed();
            let mut own = [0];
            group_tokens(&part.batch(), &part.groups(), &mut own).unwrap();
            added[world.group_of(sequence)] += own[0];
        }
        assert_eq!(added, tokens);
    });
}
