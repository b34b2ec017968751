//! The formulas of the catalogue, each run by its row of `rows.json`.
//!
//! A row is a list of axes, and every combination of their points is one call, the first axis varying slowest. A point
//! is an object: keys with `@` say where a column comes from or how the call is recorded, all others belong to the
//! config. An axis with one point may be written without its brackets; an axis in `shared` is written as its name. A
//! row may also be an object of such lists, one after the other.
//!
//! How a call is recorded: `@slots` names the recorded column of an output, `@keys` says whether keys of numbers are
//! hashed, `@without_keys` excepts those with a prefix, `@together` hashes the columns after so many calls only,
//! `@apart` records the result before the outputs, `@before` makes an empty record first.
//!
//! A formula without a row is called with the columns it requires and the settings `usual`, as far as its config has
//! them; with two aggregations and with weights, if it takes any.

use alloc::{borrow::Cow, format, string::String, vec, vec::Vec};

use tokenwise::{Batch, Groups, Result as Checked};
use tokenwise_catalogue::{
    find, Array, Call, Column, Columns, ConfigFault, Element, Entry, Kind, Number, Over, Refusal, Value,
};

use crate::{
    cases::{tokens, vocabulary, Case, Out, VocabCase},
    hash::{Hash, Hashed, Value as Bits},
    inputs::Random,
};

const ROWS: &str = include_str!("../rows.json");

/// Why a row cannot be run, for the test below.
type Fault = String;

/// The rows, and what they have in common.
pub(crate) struct Rows(Value);

/// A formula and its calls.
pub(crate) struct Row<'a> {
    pub(crate) name: &'a str,
    entry: &'static Entry,
    /// Where columns come from unless a point says it.
    usual: &'a Value,
    calls: Vec<Value>,
}

impl Rows {
    pub(crate) fn new() -> Result<Self, Fault> {
        serde_json::from_str(ROWS).map(Self).map_err(|error| format!("{error}"))
    }

    /// One row per formula of the catalogue, and further ones with a name of their own.
    pub(crate) fn rows(&self) -> Result<Vec<Row<'_>>, Fault> {
        let [by_hand, formulas] = ["by_hand", "formulas"].map(|key| self.0.get(key));
        let (Some(Value::List(by_hand)), Some(Value::Map(formulas))) = (by_hand, formulas) else {
            return Err("by_hand, formulas".into());
        };
        let others = tokenwise_catalogue::entries().map(|entry| entry.name).filter(|name| {
            !formulas.iter().any(|(key, _)| key == name)
                && !by_hand.iter().any(|known| matches!(known, Value::Text(known) if known == name))
        });
        let given = formulas.iter().map(|(name, axes)| self.row(name, Some(axes)));
        given.chain(others.map(|name| self.row(name, None))).collect()
    }

    fn row<'a>(&'a self, name: &'a str, axes: Option<&'a Value>) -> Result<Row<'a>, Fault> {
        let calls = match axes {
            Some(Value::Map(parts)) => {
                let parts: Result<Vec<_>, Fault> = parts.iter().map(|(_, axes)| self.combined(axes)).collect();
                parts?.concat()
            }
            Some(axes) => self.combined(axes)?,
            None => self.combined(&usual_axes(name))?,
        };
        let formula = match calls.first().and_then(|call| call.get("@formula")) {
            Some(Value::Text(formula)) => formula,
            _ => name,
        };
        let entry = find(formula).ok_or(formula)?;
        let usual = if over_logits(entry) { "logits" } else { "tokens" };
        Ok(Row { name, entry, usual: self.0.get(usual).ok_or("tokens, logits")?, calls })
    }

    /// Every combination of points.
    fn combined(&self, axes: &Value) -> Result<Vec<Value>, Fault> {
        let Value::List(axes) = axes else { return Err("a row is a list".into()) };
        let mut calls = vec![Value::EMPTY];
        for axis in axes {
            let points = self.points(axis)?;
            calls = calls.iter().flat_map(|call| points.iter().map(|point| merged(call, point))).collect();
        }
        Ok(calls)
    }

    fn points<'a>(&'a self, axis: &'a Value) -> Result<&'a [Value], Fault> {
        match axis {
            Value::Text(name) => {
                let shared = self.0.get("shared").and_then(|shared| shared.get(name));
                self.points(shared.ok_or(&**name)?)
            }
            Value::List(points) => Ok(points),
            point => Ok(core::slice::from_ref(point)),
        }
    }
}

/// The first object with the keys of the second, objects in it likewise.
fn merged(first: &Value, second: &Value) -> Value {
    let (Value::Map(_), Value::Map(pairs)) = (first, second) else { return second.clone() };
    let mut merge = first.clone();
    for (key, value) in pairs {
        let value = first.get(key).map_or_else(|| value.clone(), |old| merged(old, value));
        merge.set(key, value);
    }
    merge
}

/// The axes of a formula without a row.
fn usual_axes(name: &str) -> Value {
    let takes = |known: &Column, name: &str| known.name == name && known.optional;
    let has = |column: &str| find(name).is_some_and(|entry| entry.inputs.iter().any(|known| takes(known, column)));
    let mut axes = vec![Value::Text("usual".into())];
    axes.extend(has("group_tokens").then(|| Value::Text("aggregate backwards".into())));
    axes.extend(has("weights").then(|| Value::Text("weights".into())));
    Value::List(axes)
}

fn over_logits(entry: &Entry) -> bool {
    entry.inputs.iter().any(|column| matches!(column.kind, Kind::Logit | Kind::TopK))
}

impl Row<'_> {
    /// The fingerprint of its calls on every case.
    pub(crate) fn fingerprint<R: Bits + Number>(&self) -> Result<u64, Fault> {
        let mut fault = Ok(());
        let hash = if over_logits(self.entry) {
            vocabulary::<R>(|case, out| fault = fault.clone().and_then(|()| self.run(case, out)))
        } else {
            tokens::<R>(|case, out| fault = fault.clone().and_then(|()| self.run(case, out)))
        };
        fault?;
        hash.map_err(|error| format!("{error}"))
    }

    fn run<R: Bits + Number>(&self, case: &impl Sources<R>, out: &mut Out<'_, R>) -> Result<(), Fault> {
        let mut kept: Option<(Value, Columns<R>)> = None;
        if self.calls.first().is_some_and(|call| call.get("@before").is_some()) {
            out.record(());
        }
        for (place, settings) in self.calls.iter().enumerate() {
            let batch = case.batch();
            let groups_name = settings.get("@groups").cloned().unwrap_or(Value::Null);
            let groups = match (&groups_name, self.entry.over) {
                (Value::Text(name), _) => case.groups(name),
                (_, Over::Groups | Over::BatchAndGroups) => case.groups("groups"),
                _ => None,
            };
            let inputs = self.inputs(case, settings, groups.as_ref())?;
            let mut config = Value::EMPTY;
            if let Value::Map(pairs) = settings {
                let own = pairs.iter().filter(|(key, _)| !key.starts_with('@'));
                own.for_each(|(key, value)| config.set(key, value.clone()));
            }
            // flags, counts and indices stay from call to call: they show that a rejected call wrote nothing
            let mut outputs = match kept {
                Some((name, columns)) if name == groups_name => columns,
                _ => self.entry.outputs_for(Some(&batch), groups.as_ref(), &inputs),
            };
            for column in self.entry.outputs.iter().filter(|column| column.element == Element::Real) {
                let len = self.entry.length(column.kind, Some(&batch), groups.as_ref(), &inputs);
                outputs.set(column.name, Array::Real(vec![R::nan(); len]));
            }
            let over = match self.entry.over {
                Over::Groups | Over::Sequences => None,
                _ => Some(batch),
            };
            let result = loop {
                let mut call = Call::new(over, groups, &inputs, &config, &mut outputs);
                match self.entry.call(&mut call) {
                    Ok(()) => break Ok(call.numbers),
                    Err(Refusal::Core(error)) => break Err(error),
                    // the usual settings are tried on every config
                    Err(Refusal::Config(error))
                        if error.fault == ConfigFault::Key
                            && settings.get("@usual").is_some()
                            && config.take(&error.parameter).is_some() => {}
                    Err(refusal) => return Err(format!("{refusal}")),
                }
            };
            let keys = match settings.get("@keys") {
                Some(Value::Bool(keys)) => *keys,
                _ => self.entry.numbers.iter().any(|name| name.ends_with('*')),
            };
            let without_keys = match settings.get("@without_keys") {
                Some(Value::Text(prefix)) => Some(&**prefix),
                _ => None,
            };
            if settings.get("@apart").is_some() {
                out.record(Returned { result: result.clone(), keys, without_keys, columns: &[], outputs: &outputs });
            }
            let returned = Returned { result, keys, without_keys, columns: self.entry.outputs, outputs: &outputs };
            for (column, slot) in self.entry.outputs.iter().zip(self.slots(settings)) {
                if let (Some(slot), Some(Array::Real(found))) = (slot, outputs.get(column.name)) {
                    if let Some(room) = out.slot(slot).get_mut(..found.len()) {
                        room.copy_from_slice(found);
                    }
                }
            }
            let together = match settings.get("@together") {
                Some(Value::Number(together)) => *together as usize,
                _ => 1,
            };
            if (place + 1) % together == 0 {
                out.record(returned);
            } else {
                out.record_alone(returned);
            }
            kept = Some((groups_name, outputs));
        }
        Ok(())
    }

    /// Which of the recorded columns each output is.
    fn slots<'a>(&'a self, settings: &'a Value) -> impl Iterator<Item = Option<char>> + 'a {
        let mut free = "abc".chars();
        self.entry.outputs.iter().map(move |column| {
            match settings.get("@slots").and_then(|slots| slots.get(column.name)) {
                Some(Value::Text(slot)) => slot.chars().next(),
                _ if column.element != Element::Real => None,
                _ => match column.kind {
                    Kind::Sequence => Some('s'),
                    Kind::Logit | Kind::TopK => Some('l'),
                    _ => free.next(),
                },
            }
        })
    }

    fn inputs<R: Bits + Number>(
        &self,
        case: &impl Sources<R>,
        settings: &Value,
        groups: Option<&Groups<'_>>,
    ) -> Result<Columns<R>, Fault> {
        let mut inputs = Columns::new();
        // the sizes first: the lengths of other columns depend on them
        let is_size = |column: &&Column| column.element == Element::Size;
        let columns = self.entry.inputs.iter();
        for column in columns.clone().filter(is_size).chain(columns.filter(|column| !is_size(column))) {
            let given = match settings.get(&format!("@{}", column.name)) {
                Some(Value::Null) | None if column.optional => continue,
                Some(Value::Bool(true)) | None => self.usual.get(column.name),
                given => given,
            };
            let len = self.entry.length(column.kind, Some(&case.batch()), groups, &inputs);
            inputs.set(column.name, filled(case, column, given, len)?);
        }
        Ok(inputs)
    }
}

/// A column: a source by its name, or written out.
fn filled<R: Bits + Number>(
    case: &impl Sources<R>,
    column: &Column,
    given: Option<&Value>,
    len: usize,
) -> Result<Array<R>, Fault> {
    let unknown = || Fault::from(column.name);
    let number = |key| match given.and_then(|given| given.get(key)) {
        Some(Value::Number(number)) => Ok(*number),
        _ => Err(unknown()),
    };
    let whole = matches!(column.kind, Kind::List | Kind::Source);
    Ok(match (given, column.element) {
        (Some(Value::Text(name)), Element::Text) => Array::Text(name.clone()),
        (Some(Value::Number(number)), Element::Size) => Array::Size(*number as usize),
        (Some(Value::Number(number)), Element::Number) => Array::Number(*number),
        (Some(Value::List(list)), element) => {
            let numbers = list.iter().map(|entry| match entry {
                Value::Number(number) => *number,
                entry => f64::from(u8::from(*entry == Value::Bool(true))),
            });
            let numbers = numbers.take(if whole { usize::MAX } else { len });
            match element {
                Element::Double => Array::Double(numbers.collect()),
                Element::Index => Array::Index(numbers.map(|number| number as u32).collect()),
                Element::Flag => Array::Flag(numbers.map(|number| number != 0.0).collect()),
                _ => return Err(unknown()),
            }
        }
        (Some(Value::Map(_)), Element::Index) => {
            let (below, mut random) = (number("below")? as u32, Random::new(number("seed")? as u64));
            Array::Index((0..len).map(|_| random.below(below)).collect())
        }
        (Some(Value::Map(_)), Element::Flag) => {
            let every = number("every")? as usize;
            Array::Flag((0..len).map(|slot| slot % every == 0).collect())
        }
        (given, element) => {
            let name = match given {
                Some(Value::Text(name)) => name,
                _ => column.name,
            };
            let mut found = case.source(name).ok_or_else(unknown)?;
            match &mut found {
                Array::Real(found) if !whole => found.truncate(len),
                Array::Index(found) => found.truncate(len),
                _ => (),
            }
            match found {
                Array::Real(found) if element == Element::Double => {
                    Array::Double(found.iter().map(|number| number.widen().abs()).collect())
                }
                found => found,
            }
        }
    })
}

/// The columns of a case, by name.
trait Sources<R> {
    fn batch(&self) -> Batch<'_>;
    fn groups(&self, name: &str) -> Option<Groups<'_>>;
    fn source(&self, name: &str) -> Option<Array<R>>;
}

impl<R: Bits> Sources<R> for Case<'_, R> {
    fn batch(&self) -> Batch<'_> {
        self.batch
    }

    fn groups(&self, name: &str) -> Option<Groups<'_>> {
        match name {
            "groups" => Some(self.groups),
            "paired" => Some(self.paired),
            _ => None,
        }
    }

    fn source(&self, name: &str) -> Option<Array<R>> {
        let column = match name {
            "log_probs" => self.log_probs,
            "old_log_probs" => self.old_log_probs,
            "ref_log_probs" => self.ref_log_probs,
            "advantages" => self.advantages,
            "values" => self.values,
            "rewards" => self.rewards,
            "weights" => self.weights,
            "scores" => self.scores,
            "bootstrap" => self.bootstrap,
            // two sources of rewards, the second with much larger numbers
            "sources" => {
                let large = self.bootstrap.iter().map(|&score| R::narrow(64.0) * score);
                return Some(Array::Real(self.scores.iter().copied().chain(large).collect()));
            }
            "group_tokens" => {
                let mut tokens = vec![0; self.groups.count()];
                tokenwise::loss::group_tokens(&self.batch, &self.groups, &mut tokens).ok()?;
                return Some(Array::Count(tokens));
            }
            _ => return None,
        };
        Some(Array::Real(column.to_vec()))
    }
}

impl<R: Bits> Sources<R> for VocabCase<'_, R> {
    fn batch(&self) -> Batch<'_> {
        self.batch
    }

    fn groups(&self, _: &str) -> Option<Groups<'_>> {
        None
    }

    fn source(&self, name: &str) -> Option<Array<R>> {
        let column = match name {
            "logits" => self.logits,
            "ref_logits" => self.ref_logits,
            "grad_log_probs" => self.grad_log_probs,
            "grad_entropy" => self.grad_entropy,
            "vocab" => return Some(Array::Size(self.vocab)),
            "tokens" => return Some(Array::Index(self.tokens.to_vec())),
            // two ids for each token: its own, and the one before that in the vocabulary
            "token_pairs" => {
                return Some(Array::Index(self.tokens.iter().flat_map(|&id| [id, id.saturating_sub(1)]).collect()));
            }
            "gradient_pairs" => {
                let pairs = self.grad_log_probs.iter().zip(self.grad_entropy);
                return Some(Array::Real(pairs.flat_map(|(&first, &second)| [first, second]).collect()));
            }
            _ => return None,
        };
        Some(Array::Real(column.to_vec()))
    }
}

/// What a call returned, and the outputs that are not numbers of its type.
struct Returned<'a, R> {
    result: Checked<Vec<(Cow<'static, str>, f64)>>,
    keys: bool,
    /// Entries whose keys start with this are hashed without them.
    without_keys: Option<&'a str>,
    columns: &'static [Column],
    outputs: &'a Columns<R>,
}

impl<R: Bits> Hashed for Returned<'_, R> {
    fn add_to(&self, hash: &mut Hash) {
        match &self.result {
            Ok(numbers) => {
                for (key, number) in numbers {
                    if self.keys && !self.without_keys.is_some_and(|prefix| key.starts_with(prefix)) {
                        hash.add(&**key);
                    }
                    hash.add(number);
                }
            }
            Err(error) => hash.bytes(error.code().as_bytes()),
        }
        for column in self.columns {
            match self.outputs.get(column.name) {
                Some(Array::Double(found)) => hash.add(&**found),
                Some(Array::Index(found)) => hash.add(&**found),
                Some(Array::Count(found)) => hash.add(&**found),
                Some(Array::Flag(found)) => hash.add(&**found),
                _ => (),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::unwrap_used, reason = "a test")]
    fn every_row_can_be_called() {
        let (rows, mut faults) = (Rows::new().unwrap(), Vec::new());
        for row in rows.rows().unwrap() {
            faults.extend(row.fingerprint::<f64>().err().map(|fault| (row.name, fault)));
        }
        assert!(faults.is_empty(), "{faults:#?}");
    }
}
