//! The description of a formula from which one driver tests the properties of all formulas.

use std::fmt::Debug;

use serde::Serialize;
use tokenwise::Result;
use tokenwise_catalogue::{find, Array, Call, Columns, Kind, Over, Refusal, Value};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random},
    tolerance::Basis,
};

use crate::{
    errors::domains::{any, Row},
    naive::Tokens,
};

/// A formula, run on a batch with a random config.
pub(crate) trait Case: 'static {
    /// The function in the core.
    const NAME: &'static str;
    /// How far it may be from the textbook, `[f64, f32]`: in units of `ε · max(1, |want|)`, see `tolerance.rs`. Where
    /// the second is far below 1, the result is an `f64` whatever the type of the call.
    const UNITS: [f64; 2];
    /// What its config and its mask may be.
    const DOMAINS: &'static [Row] = &[any()];
    /// Whether two sequences in one batch give what each gives alone. Returned numbers are of the batch in any case.
    const SEQUENCES_ALONE: bool;
    /// Whether dropped slots get 0 (everything but a plain copy).
    const DROPPED_GET_ZERO: bool = true;
    type Config: Copy + Debug + 'static;

    fn config(random: &mut Random) -> Self::Config;
    /// [`by_name`] writes it for a formula that is called once, with its config.
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>>;
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64>;
}

/// Everything a call wrote and returned.
#[derive(Clone, Debug, Default)]
pub(crate) struct Outcome<R> {
    /// Slices with one or more entries per token slot.
    pub(crate) tokens: Vec<Vec<R>>,
    /// Slices with one entry per sequence.
    pub(crate) sequences: Vec<Vec<R>>,
    /// What was returned.
    pub(crate) numbers: Vec<f64>,
}

impl<R: Number> Outcome<R> {
    pub(crate) fn tokens(slices: impl Into<Vec<Vec<R>>>) -> Self {
        Self { tokens: slices.into(), sequences: Vec::new(), numbers: Vec::new() }
    }

    pub(crate) fn sequences(slices: impl Into<Vec<Vec<R>>>) -> Self {
        Self { tokens: Vec::new(), sequences: slices.into(), numbers: Vec::new() }
    }

    pub(crate) fn numbers(numbers: impl Into<Vec<f64>>) -> Self {
        Self { tokens: Vec::new(), sequences: Vec::new(), numbers: numbers.into() }
    }

    pub(crate) fn and(self, numbers: impl Into<Vec<f64>>) -> Self {
        Self { numbers: numbers.into(), ..self }
    }

    /// All numbers as `f64`, in an order that depends on the shapes only.
    pub(crate) fn widen(&self) -> Vec<f64> {
        let slices = self.tokens.iter().chain(&self.sequences).flatten();
        slices.map(|x| x.widen()).chain(self.numbers.iter().copied()).collect()
    }

    /// What belongs to the slots of each sequence, padding left out; without dropped slots on request.
    pub(crate) fn of_slots(&self, flat: &Flat<R>, dropped_too: bool) -> Vec<R> {
        let mut all = Vec::new();
        for slice in &self.tokens {
            let width = if flat.tokens() == 0 { 0 } else { slice.len() / flat.tokens() };
            for slot in flat.rows.iter().cloned().flatten().filter(|&slot| dropped_too || flat.keep[slot]) {
                all.extend(&slice[slot * width..(slot + 1) * width]);
            }
        }
        all
    }

    /// What belongs to dropped slots, padding too.
    pub(crate) fn of_dropped(&self, flat: &Flat<R>) -> Vec<R> {
        let mut all = Vec::new();
        for slice in &self.tokens {
            let width = if flat.tokens() == 0 { 0 } else { slice.len() / flat.tokens() };
            for slot in (0..flat.tokens()).filter(|&slot| !flat.keep[slot]) {
                all.extend(&slice[slot * width..(slot + 1) * width]);
            }
        }
        all
    }
}

/// The column that is meant by a name. Those that a call may leave out are left out.
fn usual<R: Number>(flat: &Flat<R>, over: Over, column: &tokenwise_catalogue::Column) -> Option<Array<R>> {
    let real = |which| Some(Array::Real(flat.column(which).to_vec()));
    if column.optional {
        return None;
    }
    match (column.name, column.kind) {
        ("vocab" | "k", _) => Some(Array::Size(flat.vocab)),
        ("tokens", Kind::Token) => Some(Array::Index(flat.ids.clone())),
        ("bootstrap", _) => Some(Array::Real(flat.bootstrap.clone())),
        // without tokens no sequence is without kept ones
        ("scores", Kind::Sequence) if matches!(over, Over::Groups | Over::Sequences) => {
            Some(Array::Real(flat.outcomes.clone()))
        }
        ("scores" | "values", Kind::Sequence) => Some(Array::Real(flat.scores.clone())),
        ("log_probs" | "x", Kind::Token) => real(Column::LogProbs),
        ("old_log_probs" | "y", Kind::Token) => real(Column::OldLogProbs),
        ("ref_log_probs" | "rollout_log_probs" | "teacher_log_probs", Kind::Token) => real(Column::RefLogProbs),
        ("advantages" | "grad_log_probs" | "grad_kl", Kind::Token) => real(Column::Advantages),
        ("rewards", Kind::Token) => real(Column::Rewards),
        ("values", Kind::Token) => real(Column::Values),
        ("returns", Kind::Token) => real(Column::Returns),
        ("predictions" | "action_values", Kind::Token) => real(Column::Predictions),
        ("weights", Kind::Token) => real(Column::Weights),
        ("kl" | "grad_entropy", Kind::Token) => real(Column::Kl),
        ("logits", Kind::Logit) | ("log_probs", Kind::TopK) => real(Column::Logits),
        ("ref_logits" | "teacher_logits", Kind::Logit) | ("teacher_log_probs", Kind::TopK) => real(Column::RefLogits),
        _ => None,
    }
}

/// Calls a formula by its name. `special` gives columns that are not the usual ones.
pub(crate) fn call<R: Number>(
    name: &str,
    flat: &Flat<R>,
    config: impl Serialize,
    special: impl Fn(&str) -> Option<Array<R>>,
) -> Result<Outcome<R>> {
    let entry = find(name).unwrap_or_else(|| panic!("{name} is not in the catalogue"));
    let (batch, groups) = (flat.batch(), flat.groups());
    let mut inputs = Columns::new();
    for column in entry.inputs {
        match special(column.name).or_else(|| usual(flat, entry.over, column)) {
            Some(array) => inputs.set(column.name, array),
            None => assert!(column.optional, "{name}: no column is meant by {}", column.name),
        }
    }
    let config: Value = serde_json::from_value(serde_json::to_value(config).unwrap()).unwrap();
    let mut outputs = entry.outputs_for(Some(&batch), Some(&groups), &inputs);
    for (_, array) in outputs.iter_mut() {
        match array {
            Array::Real(slice) => slice.fill(R::nan()),
            Array::Flag(slice) => slice.fill(true),
            other => panic!("{name}: {other:?}"),
        }
    }
    let mut call = Call::new(Some(batch), Some(groups), &inputs, &config, &mut outputs);
    match entry.call(&mut call) {
        Ok(()) => {}
        Err(Refusal::Core(error)) => return Err(error),
        Err(other) => panic!("{name}: {other}"),
    }
    let numbers = call.numbers.iter().map(|(_, number)| *number).collect();
    let mut outcome = Outcome { tokens: Vec::new(), sequences: Vec::new(), numbers };
    for (column, (_, array)) in entry.outputs.iter().zip(outputs) {
        let slice = match array {
            Array::Flag(flags) => flags.iter().map(|&yes| R::narrow(if yes { 1.0 } else { 0.0 })).collect(),
            Array::Real(slice) => slice,
            other => panic!("{name}: {other:?}"),
        };
        match column.kind {
            Kind::Sequence => outcome.sequences.push(slice),
            _ => outcome.tokens.push(slice),
        }
    }
    Ok(outcome)
}

/// The `run` of a case: the usual columns, or those given by functions of the batch.
macro_rules! by_name {
    () => {
        fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> tokenwise::Result<Outcome<R>> {
            crate::case::call(Self::NAME, flat, config, |_| None)
        }
    };
    ($($name:literal: $column:expr),+) => {
        fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> tokenwise::Result<Outcome<R>> {
            crate::case::call(Self::NAME, flat, config, |name| match name {
                $($name => Some(tokenwise_catalogue::Array::from($column(flat))),)+
                _ => None,
            })
        }
    };
}
pub(crate) use by_name;

/// Fills an output before a call, so that entries that are not written show.
pub(crate) fn unwritten<R: Number>(len: usize) -> Vec<R> {
    vec![R::nan(); len]
}

pub(crate) fn tokens(flat: &Flat<f64>) -> Tokens<'_> {
    Tokens { rows: &flat.rows, keep: &flat.keep }
}

/// A case as tables have it.
pub(crate) struct Tested {
    pub(crate) name: &'static str,
    pub(crate) domains: &'static [Row],
}

/// What holds for some formulas: a case names it in [`tests`], with its arguments.
pub(crate) mod named {
    pub(crate) use crate::{
        numbers::{
            nan_counts_by_score, nan_stays, nan_stays_in_its_token, nan_stays_in_sums, nan_stays_in_weights,
            shares_do_not_count_nan,
        },
        properties::{
            gradients::policy_losses::{slope, slope_with_the_old},
            limits::policy_losses::is_another_loss,
        },
    };
}

/// The tests that every case has to pass, those that it names, and the list of the cases.
macro_rules! tests {
    ($($test:ident: $case:ty $({ $($property:ident($($argument:expr),* $(,)?);)+ })?,)*) => {
        pub(crate) const CASES: &[crate::case::Tested] = &[$(crate::case::Tested {
            name: <$case as crate::case::Case>::NAME,
            domains: <$case as crate::case::Case>::DOMAINS,
        },)*];

        mod tests {
            use super::*;

            $(mod $test {
                use super::*;

                #[test]
                fn is_the_textbook() {
                    crate::textbook::holds::<$case, f64>();
                    crate::textbook::holds::<$case, f32>();
                }

                #[test]
                fn dropped_slots_do_not_matter() {
                    crate::properties::dropped_slots_do_not_matter::<$case>();
                }

                #[test]
                fn padding_does_not_matter() {
                    crate::properties::padding_does_not_matter::<$case>();
                }

                #[test]
                fn other_sequences_matter_as_they_should() {
                    crate::properties::other_sequences_matter_as_they_should::<$case>();
                }

                #[test]
                fn any_shape_will_do() {
                    crate::numbers::shapes::any_shape_will_do::<$case>();
                }

                $($(#[test]
                fn $property() {
                    crate::case::named::$property::<$case>($($argument),*);
                })+)?
            })*
        }
    };
}
pub(crate) use tests;

/// All cases.
pub(crate) fn cases() -> impl Iterator<Item = &'static Tested> {
    LISTS.iter().copied().flatten()
}

/// Panics unless every number is as close as the case allows.
#[track_caller]
pub(crate) fn assert_close<C: Case>(basis: Basis, got: &[f64], want: &[f64]) {
    tokenwise_tests::tolerance::assert_close(C::NAME, C::UNITS[basis as usize], basis, got, want);
}

const LISTS: &[&[Tested]] = &[
    crate::policy::CASES,
    crate::distill::CASES,
    crate::divergence::CASES,
    crate::reward::CASES,
    crate::advantage::CASES,
    crate::returns::CASES,
    crate::groups::CASES,
    crate::baselines::CASES,
    crate::loss::CASES,
    crate::naive::token_loss::CASES,
    crate::naive::sequence_loss::CASES,
    crate::naive::covariance_loss::CASES,
    crate::dual_game::CASES,
    crate::metric::CASES,
    crate::rows::CASES,
    crate::shaping::CASES,
    crate::rollout::CASES,
    crate::sets::CASES,
    crate::layout::CASES,
];
