//! The formulas of the catalogue, called with one thing wrong at a time.
//!
//! What the columns are called and how long they have to be is in the catalogue. The domains of the configs' numbers
//! are in the cases, and so is the result for a mask with too few tokens. The lengths of scratch, which the
//! catalogue makes itself, are tested in `calls.rs`.

use tokenwise::{Batch, Error, Groups, Layout, Mask};
use tokenwise_catalogue::{
    entries, find, Array, Call, Column, Columns, Element, Entry, Kind, Number, Over, Refusal, Value,
};

use super::{
    domains::{any, needs_one, Row},
    SEQUENCES, TOKENS,
};

const KEPT: [bool; TOKENS] = [true, true, false, true, true, true];

/// Sources of rewards, and their weights.
const SOURCES: usize = 2;

/// Outputs that the core calls `out`, the name of a single output.
const CALLED_OUT: &[(&str, &str)] = &[
    ("token_log_probs", "log_probs"),
    ("entropy", "entropy"),
    ("topk_log_probs", "log_probs"),
    ("kl_estimate", "kl"),
    ("kl_gradient", "grad"),
    ("kl_importance_weighted", "kl"),
    ("kl_exact", "kl"),
    ("place_scores", "rewards"),
    ("reward_scale_clip", "scores"),
    ("discounted_returns", "returns"),
    ("td_lambda", "returns"),
    ("n_step_returns", "returns"),
    ("upgo", "returns"),
    ("retrace", "targets"),
    ("puffer_advantage", "advantages"),
    ("opd_advantage", "advantages"),
    ("minillm_advantage", "advantages"),
    ("gdpo", "advantages"),
    ("reinforce_plus_plus_baseline", "advantages"),
    ("token_weights", "weights"),
    ("structural_weights", "weights"),
    ("group_tokens", "tokens"),
];

/// Inputs with another name in the core.
const CALLED: &[(&str, &str)] = &[
    ("teacher_ids", "teacher"),
    ("student_ids", "student"),
    ("structural", "weight"),
    ("rewards.sources", "sources"),
    ("response_lengths.tokens", "response_lengths"),
    ("prompt_lengths.tokens", "prompt_lengths"),
    ("total_lengths.tokens", "total_lengths"),
];

fn name_of_input(column: &Column) -> &'static str {
    CALLED.iter().find(|(name, _)| *name == column.name).map_or(column.name, |(_, called)| called)
}

fn name_of_output(entry: &Entry, column: &Column) -> &'static str {
    if CALLED_OUT.contains(&(entry.name, column.name)) {
        "out"
    } else {
        column.name
    }
}

/// A call with nothing wrong yet.
#[derive(Clone)]
pub(super) struct Setting<R> {
    pub(super) mask: [bool; TOKENS],
    pub(super) ids: Vec<u32>,
    pub(super) inputs: Columns<R>,
    pub(super) config: Value,
    outputs: Columns<R>,
}

/// A value that no formula writes; flags have none.
fn unwritten<R: Number>(element: Element, len: usize) -> Array<R> {
    match element {
        Element::Real => Array::Real(vec![R::narrow(-1.234_567e-33); len]),
        Element::Double => Array::Double(vec![-1.234_567e-289; len]),
        Element::Index => Array::Index(vec![0x0bad_0bad; len]),
        Element::Count => Array::Count(vec![0x0bad_0bad_0bad_0bad; len]),
        Element::Flag => Array::Flag(vec![true; len]),
        other => panic!("no output is {other:?}"),
    }
}

fn input<R: Number>(column: &Column, len: usize) -> Array<R> {
    let numbers = || (0..len).map(|i| 0.25 + i as f64 / 16.0);
    match column.element {
        Element::Real => Array::Real(numbers().map(R::narrow).collect()),
        Element::Double => Array::Double(numbers().collect()),
        Element::Index => Array::Index(vec![0; len]),
        Element::Flag => Array::Flag(vec![true; len]),
        Element::Number => Array::Number(0.5),
        Element::Size => Array::Size(match column.name {
            "vocab" | "k" => 1,
            "width" => 2,
            _ => 3,
        }),
        Element::Text => Array::Text(if column.name == "weight" { "structural" } else { "clipped" }.to_owned()),
        other => panic!("{}: {other:?}", column.name),
    }
}

impl<R: Number> Setting<R> {
    pub(super) fn new(entry: &Entry, row: &Row) -> Self {
        let ids = if entry.over == Over::Groups { vec![0, 1, 1, 0, 1] } else { vec![0; SEQUENCES] };
        let mut inputs = Columns::new();
        for column in entry.inputs {
            let len = match (column.kind, column.name) {
                (Kind::Token | Kind::Logit | Kind::TopK, _) => TOKENS,
                (Kind::Sequence, _) => ids.len(),
                (Kind::Source, _) => SOURCES * ids.len(),
                (_, "raw") => 2 * 9,
                (Kind::List, _) => SOURCES,
                // prompts are tested with the aggregation
                (Kind::Group, _) => continue,
                _ => 1,
            };
            inputs.set(column.name, input(column, len));
        }
        if entry.name == "shift" {
            inputs.set("raw_layout.cu_seqlens", vec![0_u32, 4, 9]);
        }
        let mut setting =
            Self { mask: KEPT, ids, inputs, config: serde_json::from_str(row.base).unwrap(), outputs: Columns::new() };
        for number in row.numbers {
            setting.set(number.path, *number.domain.good.last().unwrap());
        }
        let outputs = setting.with(entry, |batch, groups, setting| entry.outputs_for(batch, groups, &setting.inputs));
        for (name, array) in outputs.iter() {
            // the shifted column has two numbers per token
            let len = if entry.name == "shift" { 2 * TOKENS } else { array.len() };
            setting.outputs.set(name, unwritten(array.element(), len));
        }
        setting
    }

    /// Sets a number of the config, or, behind a `@`, of the inputs.
    fn set(&mut self, path: &'static str, number: f64) {
        fn put(value: &mut Value, path: &str, number: f64) {
            if !matches!(value, Value::Map(_)) {
                *value = Value::EMPTY;
            }
            match path.split_once('.') {
                None => value.set(path, Value::Number(number)),
                Some((first, rest)) => {
                    let mut inner = value.take(first).unwrap_or(Value::EMPTY);
                    put(&mut inner, rest, number);
                    value.set(first, inner);
                }
            }
        }
        match path.strip_prefix('@') {
            None => put(&mut self.config, path, number),
            Some(column) => match self.inputs.get_mut(column).unwrap() {
                Array::Number(place) => *place = number,
                Array::Double(list) => list[1] = number,
                Array::Size(size) => *size = number as usize,
                other => panic!("{column}: {other:?}"),
            },
        }
    }

    fn with<T>(&self, entry: &Entry, run: impl FnOnce(Option<&Batch<'_>>, Option<&Groups<'_>>, &Self) -> T) -> T {
        let layout = Layout::padded(SEQUENCES, TOKENS / SEQUENCES).unwrap();
        let batch = Batch::new(layout, Mask::new(&self.mask)).unwrap();
        let groups = Groups::from_ids(&self.ids).unwrap();
        let batch = Some(&batch).filter(|_| !matches!(entry.over, Over::Groups | Over::Sequences));
        run(batch, Some(&groups).filter(|_| entry.over != Over::Sequences), self)
    }

    /// The numbers and the outputs.
    pub(super) fn call(&self, entry: &Entry) -> (Result<Vec<f64>, Refusal>, Columns<R>) {
        let mut outputs = self.outputs.clone();
        let result = self.with(entry, |batch, groups, setting| {
            let (batch, groups) = (batch.copied(), groups.copied());
            let mut call = Call::new(batch, groups, &setting.inputs, &setting.config, &mut outputs);
            entry.call(&mut call).map(|()| call.numbers.iter().map(|(_, number)| *number).collect())
        });
        (result, outputs)
    }

    /// Asserts that the call is rejected with this error before anything is written.
    pub(super) fn refused(&self, entry: &Entry, what: &str, error: Error) {
        let (result, outputs) = self.call(entry);
        // Debug rather than ==: the offending number may be NaN
        let want = Err::<Vec<f64>, _>(Refusal::Core(error));
        assert_eq!(format!("{result:?}"), format!("{want:?}"), "{}: {what}", entry.name);
        assert_eq!(outputs, self.outputs, "{}: {what}: outputs were touched", entry.name);
    }

    /// Asserts that the call succeeds and writes every entry.
    pub(super) fn accepted(&self, entry: &Entry, what: &str) {
        let (result, outputs) = self.call(entry);
        assert_eq!(result.map(drop), Ok(()), "{}: {what}", entry.name);
        for ((name, got), (_, before)) in outputs.iter().zip(self.outputs.iter()) {
            let untouched = match (got, before) {
                (Array::Real(got), Array::Real(before)) => got.iter().zip(before).any(|(got, before)| got == before),
                (Array::Double(got), Array::Double(before)) => got.iter().zip(before).any(|(got, was)| got == was),
                (Array::Count(got), Array::Count(before)) => got.iter().zip(before).any(|(got, was)| got == was),
                (Array::Index(got), Array::Index(before)) => got.iter().zip(before).any(|(got, was)| got == was),
                // any flag may stay as it was
                _ => false,
            };
            assert!(!untouched, "{}: {what}: {name} was left unwritten", entry.name);
        }
    }
}

/// Formulas that are made for other languages: their cases are those of the types they belong to.
const MADE: &[(&str, Row)] = &[("analysis_sums", needs_one()), ("moments", any()), ("co_moments", any())];

/// The domains in the cases. Formulas without an entry are in `calls.rs`.
pub(super) fn rows() -> impl Iterator<Item = (&'static Entry, &'static Row)> {
    let cases = crate::case::cases().flat_map(|case| case.domains.iter().map(|row| (case.name, row)));
    cases.chain(MADE.iter().map(|(name, row)| (*name, row))).filter_map(|(name, row)| Some((find(name)?, row)))
}

/// Runs a check for every row in both types.
fn for_every_row(check: fn(&'static Entry, &'static Row), check_single: fn(&'static Entry, &'static Row)) {
    for (entry, row) in rows() {
        check(entry, row);
        check_single(entry, row);
    }
}

fn resized<R: Number>(array: &Array<R>, len: usize) -> Array<R> {
    fn of<T: Clone>(list: &[T], len: usize) -> Vec<T> {
        (0..len).map(|i| list[i.min(list.len() - 1)].clone()).collect()
    }
    match array {
        Array::Real(list) => Array::Real(of(list, len)),
        Array::Double(list) => Array::Double(of(list, len)),
        Array::Index(list) => Array::Index(of(list, len)),
        Array::Count(list) => Array::Count(of(list, len)),
        Array::Flag(list) => Array::Flag(of(list, len)),
        other => panic!("{other:?} has no length"),
    }
}

fn wrong_lengths<R: Number>(entry: &'static Entry, row: &'static Row) {
    let right = Setting::<R>::new(entry, row);
    right.accepted(entry, "nothing wrong");
    for (place, column) in entry.inputs.iter().enumerate() {
        // the length of the first of these is the number of sequences, so it cannot be too long
        let says_how_many = entry.over == Over::Sequences && place == 0;
        let any_length = matches!(column.kind, Kind::Single | Kind::Group)
            || column.kind == Kind::List && column.name != "raw"
            || says_how_many;
        if any_length {
            continue;
        }
        let array = right.inputs.get(column.name).unwrap();
        let (what, expected) = (name_of_input(column), array.len());
        for got in [expected - 1, expected + 1, 0] {
            let mut wrong = right.clone();
            wrong.inputs.set(column.name, resized(array, got));
            wrong.refused(entry, &format!("{got} {what}"), Error::Length { what, expected, got });
        }
    }
    for column in entry.outputs {
        // the length of the output is the number of draws
        if column.name == "indices" {
            continue;
        }
        let array = right.outputs.get(column.name).unwrap();
        let (what, expected) = (name_of_output(entry, column), array.len());
        for got in [expected - 1, expected + 1, 0] {
            let mut wrong = right.clone();
            wrong.outputs.set(column.name, resized(array, got));
            wrong.refused(entry, &format!("{got} {what}"), Error::Length { what, expected, got });
        }
    }
}

#[test]
fn every_wrong_length_is_named() {
    for_every_row(wrong_lengths::<f64>, wrong_lengths::<f32>);
}

fn wrong_numbers<R: Number>(entry: &'static Entry, row: &'static Row) {
    let right = Setting::<R>::new(entry, row);
    for number in row.numbers {
        let (what, must_be) = (number.what, number.domain.must_be);
        for &good in number.domain.good {
            let mut setting = right.clone();
            setting.set(number.path, good);
            setting.accepted(entry, &format!("{what} = {good}"));
        }
        for &got in number.domain.bad {
            let mut wrong = right.clone();
            wrong.set(number.path, got);
            wrong.refused(entry, &format!("{what} = {got}"), Error::Config { what, must_be, got });
        }
    }
    for column in entry.inputs.iter().filter(|column| ["vocab", "k"].contains(&column.name)) {
        let mut wrong = right.clone();
        wrong.inputs.set(column.name, 0);
        let error = Error::Config { what: column.name, must_be: "at least 1", got: 0.0 };
        wrong.refused(entry, "a size of 0", error);
    }
}

#[test]
fn every_wrong_number_is_named() {
    for_every_row(wrong_numbers::<f64>, wrong_numbers::<f32>);
}

/// Numbers that are infinite once they are rounded to f32, or too small to divide by, in one type or both.
const OUT_OF_RANGE: [f64; 6] = [1e39, -1e39, 1e50, 1e-45, 1e-320, -1e-320];

/// Each is refused by its name, or does no harm.
fn numbers_out_of_range<R: Number>(entry: &'static Entry, row: &'static Row) {
    let right = Setting::<R>::new(entry, row);
    let undefined = |setting: &Setting<R>| -> (Result<usize, Refusal>, usize) {
        let (result, outputs) = setting.call(entry);
        let undefined = outputs.iter().map(|(_, array)| match array {
            Array::Real(list) => list.iter().filter(|x| x.is_nan()).count(),
            Array::Double(list) => list.iter().filter(|x| x.is_nan()).count(),
            _ => 0,
        });
        (result.map(|numbers| numbers.iter().filter(|x| x.is_nan()).count()), undefined.sum())
    };
    let usual = undefined(&right);
    // sizes saturate and would ask for all the memory there is
    for number in row.numbers.iter().filter(|number| number.domain.must_be != "at least 1") {
        for got in OUT_OF_RANGE {
            let mut setting = right.clone();
            setting.set(number.path, got);
            match undefined(&setting) {
                (Err(Refusal::Core(Error::Config { what, got: named, .. })), _) => {
                    // of two bounds that cross, the other one may be named
                    let other = what != number.what && row.numbers.iter().any(|other| other.what == what);
                    assert!(other || (what, named) == (number.what, got), "{}: {what} {named:e}", entry.name);
                }
                accepted => assert_eq!(accepted, usual, "{}: {} = {got:e}", entry.name, number.what),
            }
        }
    }
}

#[test]
fn numbers_out_of_the_range_of_the_type_are_named() {
    for_every_row(numbers_out_of_range::<f64>, numbers_out_of_range::<f32>);
    let of = |name: &str, path, got| {
        let (entry, row) = rows().find(|(entry, _)| entry.name == name).unwrap();
        let mut setting = Setting::<f32>::new(entry, row);
        setting.set(path, got);
        setting.call(entry).0.unwrap_err().to_string()
    };
    let range = "must be within ±3.4028235e38, the range of f32, got 1000000000000000000000000000000000000000";
    assert_eq!(of("ppo_clip", "clip_low", 1e39), format!("clip_low: {range}"));
    assert_eq!(of("shape_rewards", "beta", 1e39), format!("beta: {range}"));
    let smallest = "temperature: must be at least 1.1754944e-38, the smallest normal f32, got 0.";
    assert!(of("entropy", "temperature", 1e-45).starts_with(smallest));
}

/// A padded layout can have any number of sequences without slots; what reads tokens alone must not go through them.
#[test]
fn a_great_many_sequences_without_slots_take_no_time() {
    let batch = Batch::new(Layout::padded(1 << 40, 0).unwrap(), Mask::new(&[])).unwrap();
    let by_token = |column: &&Column| !matches!(column.kind, Kind::Token | Kind::Logit | Kind::TopK | Kind::Single);
    let mut called = 0;
    for (entry, row) in rows().filter(|(entry, _)| entry.over == Over::Batch) {
        if entry.inputs.iter().chain(entry.outputs).any(|column| by_token(&column)) {
            continue;
        }
        let Setting { inputs: some, config, .. } = Setting::<f32>::new(entry, row);
        let mut inputs = Columns::new();
        for column in entry.inputs {
            let array = some.get(column.name).unwrap();
            let single = column.kind == Kind::Single;
            inputs.set(column.name, if single { array.clone() } else { resized(array, 0) });
        }
        let mut outputs = entry.outputs_for(Some(&batch), None, &inputs);
        // an error or nothing: what counts is that it ends
        let _ = entry.call(&mut Call::new(Some(batch), None, &inputs, &config, &mut outputs));
        called += 1;
    }
    assert!(called > 50, "{called}");
}

fn too_few_tokens<R: Number>(entry: &'static Entry, row: &'static Row) {
    let one = [false, false, false, false, true, false];
    for (mask, error) in [([false; TOKENS], row.all_dropped), (one, row.one_kept)] {
        let mut setting = Setting::<R> { mask, ..Setting::new(entry, row) };
        if setting.inputs.get("mask_before_rejection").is_some() {
            setting.inputs.set("mask_before_rejection", mask.to_vec());
        }
        match error {
            Some(error) => setting.refused(entry, "too few tokens", error),
            None => setting.accepted(entry, "few tokens"),
        }
    }
}

#[test]
fn too_few_tokens_are_named() {
    for_every_row(too_few_tokens::<f64>, too_few_tokens::<f32>);
}

fn wrong_groups<R: Number>(entry: &'static Entry, row: &'static Row) {
    let takes_groups = entry.over == Over::BatchAndGroups || ["trl_metrics", "openrlhf_metrics"].contains(&entry.name);
    if !takes_groups {
        return;
    }
    for ids in [vec![0, 1, 0], vec![0]] {
        let got = ids.len();
        let setting = Setting::<R> { ids, ..Setting::new(entry, row) };
        setting.refused(entry, "groups", Error::Length { what: "groups", expected: SEQUENCES, got });
    }
}

#[test]
fn groups_of_another_batch_are_named() {
    for_every_row(wrong_groups::<f64>, wrong_groups::<f32>);
}

fn wrong_tokens<R: Number>(entry: &'static Entry, row: &'static Row) {
    let indexed = |name: &str| entry.inputs.iter().any(|column| column.name == name);
    if !(indexed("tokens") && indexed("vocab")) {
        return;
    }
    let right = Setting::<R>::new(entry, row);
    for (place, id) in [(0, 1), (4, u32::MAX)] {
        let mut tokens = vec![0; TOKENS];
        tokens[place] = id;
        let mut wrong = right.clone();
        wrong.inputs.set("tokens", tokens);
        wrong.refused(entry, "a token", Error::TokenId { index: place, id, vocab: 1 });
    }
    // dropped slots are not checked
    let mut tokens = vec![0; TOKENS];
    tokens[2] = u32::MAX;
    let mut setting = right.clone();
    setting.inputs.set("tokens", tokens);
    setting.accepted(entry, "an id in a dropped slot");
}

#[test]
fn tokens_beyond_the_vocabulary_are_named() {
    for_every_row(wrong_tokens::<f64>, wrong_tokens::<f32>);
}

#[test]
fn every_formula_has_a_row() {
    for entry in entries() {
        assert!(rows().any(|(known, _)| known.name == entry.name), "{} is missing", entry.name);
    }
}
