//! Every loss as a plain formula over tensors, for the tests of the adapters: the framework differentiates it by its
//! own autodiff, and the result is compared with the closed-form gradient of tokenwise.
//!
//! The formulas are written once, over a trait that each adapter's tests implement for their framework's tensor.
//! Numbers are multiples of 1/128, so that differences of inputs are exact in f32, and none is at a clip bound.

mod cases;
mod distill;
mod rows;
mod sequence;
mod token;

use serde_json::Value;
use tokenwise_catalogue::{find, Column, Element, Entry, Kind};

pub(crate) use cases::cases;

/// Sequences, tokens of each, entries of a top-k list and of the vocabulary.
pub(crate) const SEQUENCES: usize = 4;
pub(crate) const LEN: usize = 4;
pub(crate) const K: usize = 3;
pub(crate) const VOCAB: usize = 5;
pub(crate) const SLOTS: usize = SEQUENCES * LEN;
/// Which sequences answer the same prompt.
pub(crate) const GROUPS: [u32; SEQUENCES] = [0, 0, 1, 1];

/// Which slots are kept: sequences of 4, 3, 2 and 3 tokens, one with a gap.
pub(crate) const KEEP: [bool; SLOTS] = [
    true, true, true, true, //
    true, false, true, true, //
    true, true, false, false, //
    true, true, true, false,
];

/// A flat tensor on the framework's tape.
pub(crate) trait Tensor: Clone {
    /// A constant of the same type and device.
    fn constant(&self, numbers: &[f64]) -> Self;
    fn len(&self) -> usize;
    fn add(&self, other: &Self) -> Self;
    fn sub(&self, other: &Self) -> Self;
    fn mul(&self, other: &Self) -> Self;
    fn div(&self, other: &Self) -> Self;
    fn scale(&self, factor: f64) -> Self;
    fn plus(&self, number: f64) -> Self;
    fn exp(&self) -> Self;
    fn ln(&self) -> Self;
    fn min(&self, other: &Self) -> Self;
    fn max(&self, other: &Self) -> Self;
    fn detach(&self) -> Self;
    /// Sums of `width` entries each.
    fn sums(&self, width: usize) -> Self;
    /// Each entry `width` times.
    fn repeat(&self, width: usize) -> Self;
    /// The numbers, on the host.
    fn numbers(&self) -> Vec<f64>;

    fn fill(&self, number: f64) -> Self {
        self.constant(&vec![number; self.len()])
    }
    fn neg(&self) -> Self {
        self.scale(-1.0)
    }
    fn square(&self) -> Self {
        self.mul(self)
    }
    fn at_most(&self, number: f64) -> Self {
        self.min(&self.fill(number))
    }
    fn at_least(&self, number: f64) -> Self {
        self.max(&self.fill(number))
    }
    fn clamp(&self, low: f64, high: f64) -> Self {
        self.at_least(low).at_most(high)
    }
    fn abs(&self) -> Self {
        self.max(&self.neg())
    }
    fn sum(&self) -> Self {
        self.sums(self.len())
    }
    /// 1 where the condition on the value holds, otherwise 0; a constant.
    fn indicator(&self, yes: impl Fn(f64) -> bool) -> Self {
        let flags: Vec<f64> = self.numbers().into_iter().map(|x| f64::from(u8::from(yes(x)))).collect();
        self.constant(&flags)
    }
}

/// How the losses of tokens become one: the modes of the core that the cases use.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Mode {
    TokenMean,
    TokenSum,
    SequenceMeanTokenSum,
    SequenceMeanTokenMean,
    PromptMean,
}

impl Mode {
    /// ∂loss/∂(loss of a token).
    pub(crate) fn shares(self) -> Vec<f64> {
        let kept = |slots: std::ops::Range<usize>| KEEP[slots].iter().filter(|&&keep| keep).count() as f64;
        let of_prompt = |group: u32| {
            let members = (0..SEQUENCES).filter(|&i| GROUPS[i] == group);
            members.map(|i| kept(i * LEN..(i + 1) * LEN)).fold(0.0, |a, b| a + b)
        };
        let share = |slot: usize| {
            let row = slot / LEN * LEN..(slot / LEN + 1) * LEN;
            match self {
                Self::TokenMean => 1.0 / kept(0..SLOTS),
                Self::TokenSum => 1.0,
                Self::SequenceMeanTokenSum => 1.0 / SEQUENCES as f64,
                Self::SequenceMeanTokenMean => 1.0 / SEQUENCES as f64 / kept(row),
                Self::PromptMean => 0.5 / of_prompt(GROUPS[slot / LEN]),
            }
        };
        (0..SLOTS).map(|slot| if KEEP[slot] { share(slot) } else { 0.0 }).collect()
    }

    /// Its name in a config.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::TokenMean => "token-mean",
            Self::TokenSum => "token-sum",
            Self::SequenceMeanTokenSum => "seq-mean-token-sum",
            Self::SequenceMeanTokenMean => "seq-mean-token-mean",
            Self::PromptMean => "prompt-mean",
        }
    }

    /// Kept tokens of each prompt, which the prompt mean needs.
    pub(crate) fn group_tokens() -> [u64; 2] {
        let kept = |slots: std::ops::Range<usize>| KEEP[slots].iter().filter(|&&keep| keep).count() as u64;
        [kept(0..SLOTS / 2), kept(SLOTS / 2..SLOTS)]
    }
}

/// One call of a loss, and its plain formula.
pub(crate) struct Case<T> {
    pub(crate) name: &'static str,
    pub(crate) config: Value,
    /// Optional inputs of the call.
    pub(crate) with: &'static [&'static str],
    /// The input `weight` of the dual game, a name.
    pub(crate) weight: Option<&'static str>,
    pub(crate) mode: Mode,
    pub(crate) plain: fn(&Given<'_, T>) -> T,
}

impl<T> Case<T> {
    /// The entry of the loss.
    pub(crate) fn entry(&self) -> &'static Entry {
        find(self.name).unwrap_or_else(|| panic!("{} is not in the catalogue", self.name))
    }

    /// The inputs of the call, without those that are not asked for. Sizes follow from the tensors.
    pub(crate) fn columns(&self) -> impl Iterator<Item = &'static Column> + '_ {
        let asked = |column: &&Column| !column.optional || self.with.contains(&column.name);
        let not_derived = |column: &&Column| !matches!(column.element, Element::Size | Element::Text);
        self.entry().inputs.iter().filter(asked).filter(not_derived)
    }

    /// The inputs that have a gradient.
    pub(crate) fn leaves(&self) -> Vec<&'static Column> {
        let present: Vec<_> = self.columns().map(|column| column.name).collect();
        self.entry().gradients().map(|(input, _)| input).filter(|input| present.contains(&input.name)).collect()
    }

    /// A description for failures.
    pub(crate) fn title(&self) -> String {
        format!("{} {} with {:?} {:?}", self.name, self.config, self.with, self.weight)
    }
}

/// How far the gradient may be off from the framework's autodiff in f32, as a part of its largest entry.
///
/// log s − log m of a mixture cancels: there the framework's own rounding in f32 is larger than 1e-6, measured against
/// its autodiff in f64, which ours agrees with.
pub(crate) fn tolerance_in_f32<T>(case: &Case<T>) -> f64 {
    if case.name == "topk_jsd" {
        2e-6
    } else {
        1e-6
    }
}

/// What a plain formula reads: the leaves, and everything else as constants.
pub(crate) struct Given<'a, T> {
    pub(crate) case: &'a Case<T>,
    pub(crate) leaves: Vec<(&'static str, T)>,
}

impl<T: Tensor> Given<'_, T> {
    /// A column, without NaN.
    pub(crate) fn column(&self, name: &str) -> T {
        match self.leaves.iter().find(|(known, _)| *known == name) {
            Some((_, leaf)) => leaf.clone(),
            None => {
                let column = self.case.entry().inputs.iter().find(|column| column.name == name);
                let column = column.unwrap_or_else(|| panic!("{name} is not a column"));
                self.leaves[0].1.constant(&numbers(column))
            }
        }
    }

    /// Rollout weights; 1 without them.
    pub(crate) fn omega(&self) -> T {
        if self.case.with.contains(&"weights") {
            self.column("weights")
        } else {
            self.constant(&[1.0; SLOTS])
        }
    }

    pub(crate) fn constant(&self, numbers: &[f64]) -> T {
        self.leaves[0].1.constant(numbers)
    }

    /// 1 in kept slots.
    pub(crate) fn mask(&self) -> T {
        self.constant(&KEEP.map(|keep| f64::from(u8::from(keep))))
    }

    /// A number of the config.
    pub(crate) fn number(&self, key: &str) -> f64 {
        self.case.config[key].as_f64().unwrap_or_else(|| panic!("{key} is not in the config"))
    }

    /// log π − log π_old.
    pub(crate) fn log_ratio(&self) -> T {
        self.column("log_probs").sub(&self.column("old_log_probs"))
    }

    /// The losses of tokens, with rollout weights, as one.
    pub(crate) fn total(&self, losses: &T) -> T {
        losses.mul(&self.omega()).mul(&self.constant(&self.case.mode.shares())).sum()
    }

    /// Means over the kept tokens of each sequence, at each of its slots.
    pub(crate) fn sequence_means(&self, x: &T) -> T {
        let sums = |x: &T| x.mul(&self.mask()).sums(LEN);
        sums(x).div(&sums(&self.constant(&[1.0; SLOTS]))).repeat(LEN)
    }
}

/// Numbers for a column: which ones depends on its name and kind alone.
pub(crate) fn numbers(column: &Column) -> Vec<f64> {
    by_name(column.name, column.kind)
}

fn by_name(name: &str, kind: Kind) -> Vec<f64> {
    let len = match kind {
        Kind::Token => SLOTS,
        Kind::Sequence => SEQUENCES,
        Kind::TopK => SLOTS * K,
        Kind::Logit => SLOTS * VOCAB,
        other => panic!("{name}: no numbers for {other:?}"),
    };
    let mut state = name.bytes().fold(len as u64, |hash, byte| hash.wrapping_mul(31).wrapping_add(byte.into()));
    // multiples of 1/128 from `low`, `steps` of them; the generator is Knuth's MMIX
    let mut between = |low: f64, steps: u64| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        low + ((state >> 33) % steps) as f64 / 128.0
    };
    match name {
        // the entries of a list have less than all of the probability
        "log_probs" if kind == Kind::TopK => (0..len).map(|_| between(-3.5, 200)).collect(),
        "log_probs" => (0..len).map(|_| between(-2.5, 300)).collect(),
        "old_log_probs" | "ref_log_probs" | "teacher_log_probs" | "values" => {
            let near = by_name(if name == "values" { "predictions" } else { "log_probs" }, kind);
            // never the same
            let apart = |offset: f64| if offset < 0.0 { offset } else { offset + 1.0 / 128.0 };
            let moved = near.into_iter().map(|x| x + apart(between(-0.5, 127)));
            moved.map(|x| if name == "values" { x } else { x.min(-1.0 / 64.0) }).collect()
        }
        "weights" => (0..len).map(|_| between(0.5, 128)).collect(),
        "entropy" | "entropies" => (0..len).map(|_| between(0.25, 128)).collect(),
        "structural" => (0..len).map(|_| between(0.0, 128)).collect(),
        // never 0, which has no sign
        _ => (0..len).map(|_| between(-2.0, 512) + 1.0 / 256.0).collect(),
    }
}

/// A selection of slots, for the input of that name.
pub(crate) fn selected() -> Vec<bool> {
    (0..SLOTS).map(|slot| slot % 3 == 0).collect()
}
