//! Runs formulas of the catalogue with the inputs and parameters of a case.
//!
//! A step is one entry of the catalogue. The names that a case uses for columns, numbers and settings are those of the
//! entry, except for the pairs in `names`.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
};

use serde::Serialize;
use serde_json::Value as Json;
use tokenwise::{profile::Empty, Error, Mask};
use tokenwise_catalogue::{find, Array, Call, Column, Columns, Element, Entry, Kind, Number, Refusal, Value};

use super::{
    calls,
    case::{Case, Failure},
    compare::{Output, Outputs},
    parse::number,
};

thread_local! {
    /// The formulas called since the last call of [`called`].
    static CALLED: RefCell<BTreeSet<&'static str>> = const { RefCell::new(BTreeSet::new()) };
}

/// The formulas that this thread has called since the last call.
pub(super) fn called() -> BTreeSet<&'static str> {
    CALLED.take()
}

/// The entry's name and that of the case.
pub(super) type Names = &'static [(&'static str, &'static str)];

/// Columns that a case may omit although the entry requires them: filled with this number.
const USUAL: [(&str, f64); 2] = [("bootstrap", 0.0), ("grad_kl", 1.0)];

/// One formula and its arguments.
pub(super) struct Step {
    pub(super) entry: &'static Entry,
    names: Names,
    pub(super) config: Value,
    mask: Option<Vec<bool>>,
    empty: Option<(Empty, &'static [&'static str])>,
    groups: bool,
}

/// A typed config as the catalogue reads it.
pub(super) fn value(config: impl Serialize) -> Result<Value, Failure> {
    let json = serde_json::to_value(config).and_then(serde_json::from_value);
    json.map_err(|error| Failure::Malformed(format!("config: {error}")))
}

/// A parameter as a setting. Names may be written with `_` or `-`.
pub(super) fn setting(json: &Json) -> Result<Value, Failure> {
    Ok(match (json, number(json)) {
        (Json::Bool(truth), _) => Value::Bool(*truth),
        (_, Some(number)) => Value::Number(number),
        (Json::String(text), None) => Value::Text(text.replace('_', "-")),
        _ => value(json)?,
    })
}

impl Step {
    /// The formula of a name, with the defaults of its config.
    pub(super) fn new(entry: &str, names: Names) -> Result<Self, Failure> {
        let unknown = || Failure::Malformed(format!("op: unknown operation \"{entry}\""));
        let entry = find(entry).ok_or_else(unknown)?;
        Ok(Self { entry, names, config: Value::EMPTY, mask: None, empty: None, groups: true })
    }

    /// The name in the case for a name of the entry.
    fn name<'n>(&self, own: &'n str) -> &'n str {
        self.names.iter().find(|(known, _)| *known == own).map_or(own, |(_, name)| name)
    }

    /// Rejects a case without these parameters, although the config may have defaults for them.
    pub(super) fn needs(self, case: &Case<'_>, params: &[&str]) -> Result<Self, Failure> {
        params.iter().try_for_each(|key| case.number(key, None).map(drop))?;
        Ok(self)
    }

    /// Takes every parameter that is not a column as a setting; the entry rejects unknown ones.
    pub(super) fn params(self, case: &Case<'_>) -> Result<Self, Failure> {
        self.params_but(case, &[])
    }

    /// The same without the parameters of these names.
    pub(super) fn params_but(mut self, case: &Case<'_>, but: &[&str]) -> Result<Self, Failure> {
        if self.entry.config.is_some() {
            for (name, json) in case.params().filter(|(name, _)| !but.contains(name)) {
                if !self.entry.inputs.iter().any(|column| self.name(column.name) == name) {
                    case.param(name);
                    let renamed = self.names.iter().find(|(_, known)| *known == name);
                    self.config.set(renamed.map_or(name, |(key, _)| key), setting(json)?);
                }
            }
        }
        Ok(self)
    }

    /// Takes a typed config, usually that of the profile, and over it the parameters that have the names of its
    /// settings.
    pub(super) fn config(mut self, case: &Case<'_>, config: impl Serialize) -> Result<Self, Failure> {
        self.config = value(config)?;
        let Value::Map(pairs) = self.config.clone() else { return Ok(self) };
        for (key, mut usual) in pairs {
            let given = match key.as_str() {
                "aggregate" => Some(case.aggregate("aggregate", usual)?),
                "counts" => case.counts()?,
                "dual_clip" => Some(case.dual_clip()?),
                "estimator" => {
                    case.estimator(&mut self.config)?;
                    None
                }
                "kl" => {
                    case.estimator(&mut usual)?;
                    Some(usual)
                }
                _ => case.setting(self.name(&key))?,
            };
            if let Some(given) = given {
                self.config.set(&key, given);
            }
        }
        Ok(self)
    }

    /// Takes a typed config as it is.
    pub(super) fn fixed(mut self, config: impl Serialize) -> Result<Self, Failure> {
        self.config = value(config)?;
        Ok(self)
    }

    /// Replaces one setting.
    pub(super) fn set(mut self, key: &str, setting: impl Serialize) -> Result<Self, Failure> {
        self.config.set(key, value(setting)?);
        Ok(self)
    }

    /// Replaces the mode of the aggregation.
    pub(super) fn mode(mut self, mode: &str) -> Self {
        if let Some(aggregate) = self.config.get_mut("aggregate") {
            aggregate.take("scale");
            aggregate.set("mode", Value::Text(mode.into()));
        }
        self
    }

    /// Uses another mask than that of the case.
    pub(super) fn mask(mut self, mask: Vec<bool>) -> Self {
        self.mask = Some(mask);
        self
    }

    /// Leaves the groups of the case out.
    pub(super) fn without_groups(mut self) -> Self {
        self.groups = false;
        self
    }

    /// Sets the values of these numbers for a batch without kept tokens, which would otherwise be an error.
    pub(super) fn or_empty(mut self, empty: Empty, numbers: &'static [&'static str]) -> Self {
        self.empty = Some((empty, numbers));
        self
    }
}

/// The results of the steps of a case so far.
pub(super) struct Run<'c, R> {
    pub(super) case: &'c Case<'c>,
    pub(super) made: BTreeMap<&'static str, (Kind, Array<R>)>,
    pub(super) numbers: BTreeMap<String, f64>,
}

impl<'c, R: Number> Run<'c, R> {
    pub(super) fn new(case: &'c Case<'c>) -> Self {
        Self { case, made: BTreeMap::new(), numbers: BTreeMap::new() }
    }

    /// Calls one formula. Later steps read what it wrote and returned.
    pub(super) fn step(&mut self, step: Step) -> Result<(), Failure> {
        let case = self.case;
        let mut batch = case.batch()?;
        if let Some(mask) = &step.mask {
            batch = tokenwise::Batch::new(batch.layout(), Mask::new(mask))?;
        }
        let groups = case.has_groups().then(|| case.groups()).transpose()?.filter(|_| step.groups);
        let mut inputs = Columns::new();
        for column in step.entry.inputs {
            if let Some(array) = self.column(&step, column)? {
                inputs.set(column.name, array);
            }
        }
        let mut outputs = step.entry.outputs_for(Some(&batch), groups.as_ref(), &inputs);
        if let (Some(Array::Size(width)), [Column { name, kind: Kind::List, element, .. }]) =
            (inputs.get("width"), step.entry.outputs)
        {
            outputs.set(name, element.zeros(batch.tokens().saturating_mul(*width)));
        }
        calls::record(step.entry, &batch, groups.as_ref(), &inputs, &step.config);
        let mut call = Call::new(Some(batch), groups, &inputs, &step.config, &mut outputs);
        CALLED.with_borrow_mut(|names| names.insert(step.entry.name));
        let called = step.entry.call(&mut call);
        let numbers = call.numbers;
        if let (Err(Refusal::Core(Error::EmptyMask)), Some((empty, names))) = (&called, step.empty) {
            if let Some(value) = empty.value() {
                self.numbers.extend(names.iter().map(|name| (step.name(name).to_owned(), value)));
                return Ok(());
            }
        }
        called?;
        for (name, number) in numbers {
            self.numbers.insert(step.name(name.trim_start_matches("metrics.")).to_owned(), number);
        }
        for (name, array) in outputs {
            let kind =
                step.entry.outputs.iter().find(|column| column.name == name).map_or(Kind::List, |found| found.kind);
            self.made.insert(step.name(name), (kind, array));
        }
        Ok(())
    }

    /// A column of an entry: written by an earlier step, an input, or a parameter.
    fn column(&self, step: &Step, column: &Column) -> Result<Option<Array<R>>, Failure> {
        let (case, name) = (self.case, step.name(column.name));
        if let Some((_, array)) = self.made.get(name) {
            return Ok(Some(array.clone()));
        }
        if let (Element::Number, Some(number)) = (column.element, self.numbers.get(name)) {
            return Ok(Some(Array::Number(*number)));
        }
        if column.kind == Kind::Single {
            if column.optional && case.param(name).is_none() {
                return Ok(None);
            }
            return Ok(Some(match column.element {
                Element::Size => Array::Size(case.whole(name)? as usize),
                Element::Number => Array::Number(case.number(name, None)?),
                _ => Array::Text(case.text(name, "")?.replace('_', "-")),
            }));
        }
        if !case.has_input(name) {
            let usual = USUAL.iter().find(|(known, _)| *known == name);
            return match (name, usual) {
                ("group_tokens", _) if case.has_groups() => Ok(Some(self.group_tokens()?)),
                (_, Some((_, number))) => {
                    Ok(Some(Array::Real(vec![R::narrow(*number); self.length(name, column.kind)?])))
                }
                _ if column.optional => Ok(None),
                _ => Err(Failure::Malformed(format!("inputs: missing \"{name}\""))),
            };
        }
        let len = self.length(name, column.kind)?;
        Ok(Some(match column.element {
            Element::Real => Array::Real(case.input(name, len)?),
            Element::Double => Array::Double(case.input(name, len)?),
            Element::Index => Array::Index(case.ids(name, len)?),
            Element::Count => Array::Count(case.ids(name, len)?.into_iter().map(u64::from).collect()),
            _ => Array::Flag(case.input::<f64>(name, len)?.into_iter().map(|x| x != 0.0).collect()),
        }))
    }

    /// How many entries an input has to have.
    fn length(&self, name: &str, kind: Kind) -> Result<usize, Failure> {
        let (case, tokens) = (self.case, self.case.rows * self.case.cols);
        Ok(match kind {
            Kind::Token => tokens,
            Kind::Sequence => case.rows,
            Kind::Group => case.groups()?.count(),
            Kind::Logit => tokens.saturating_mul(case.whole("vocab")? as usize),
            Kind::TopK => tokens.saturating_mul(case.whole("k")? as usize),
            _ => case.input_len(name),
        })
    }

    /// Kept tokens of each prompt.
    fn group_tokens(&self) -> Result<Array<R>, Failure> {
        let mut run = Self::new(self.case);
        run.step(Step::new("group_tokens", &[])?)?;
        Ok(run.take("tokens"))
    }

    /// A column that a step has written.
    pub(super) fn take(&mut self, name: &str) -> Array<R> {
        self.made.remove(name).map_or(Array::Flag(Vec::new()), |(_, array)| array)
    }

    /// All results of the steps.
    pub(super) fn outputs(self) -> Outputs {
        let case = self.case;
        let numbers = self.numbers.into_iter().map(|(name, number)| (name, Output::Scalar(number)));
        let arrays = self.made.into_iter().map(|(name, (kind, array))| {
            let values: Vec<f64> = match array {
                Array::Real(array) => array.into_iter().map(tokenwise::Real::widen).collect(),
                Array::Double(array) => array,
                Array::Index(array) => array.into_iter().map(f64::from).collect(),
                Array::Count(array) => array.into_iter().map(|count| count as f64).collect(),
                Array::Flag(array) => array.into_iter().map(|flag| f64::from(u8::from(flag))).collect(),
                _ => Vec::new(),
            };
            let output = match kind {
                Kind::Token => Output::Tokens(values),
                Kind::Logit | Kind::TopK => {
                    Output::Rows { width: values.len() / (case.rows * case.cols).max(1), values }
                }
                _ => Output::Entries(values),
            };
            (name.to_owned(), output)
        });
        numbers.chain(arrays).collect()
    }
}
