//! One case, read strictly: anything unknown is an error that names it.

use std::{cell::RefCell, collections::BTreeSet};

use serde_json::{Map, Value};
use tokenwise::{
    loss::{Aggregate, DualClip},
    profile::Conventions,
    Batch, Groups, Layout, Mask, Profile, Real,
};
use tokenwise_catalogue::{ConfigFault, Refusal, Value as Setting};

use super::{
    compare::{self, Outputs},
    ops,
    parse::{dense_ids, tolerance},
    step::{setting, value},
};

pub(super) use super::parse::{number, numbers};

/// Parameters for which `null` means off, not the default.
const NULL_IS_OFF: [&str; 3] = ["clip", "max_loss", "log_prob_floor"];

/// Why an operation has no outputs.
#[derive(Debug)]
pub(super) enum Failure {
    /// The library rejected the call.
    Refused(tokenwise::Error),
    /// The case itself is wrong: something is missing or unknown.
    Malformed(String),
    /// A value with which no call can be made: a wrong length, an unknown name. Counts as an error where one is
    /// expected.
    Unfit(String),
}

impl From<tokenwise::Error> for Failure {
    fn from(error: tokenwise::Error) -> Self {
        Self::Refused(error)
    }
}

impl From<Refusal> for Failure {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Core(error) => Self::Refused(error),
            Refusal::Config(error) if error.fault == ConfigFault::Key => {
                Self::Malformed(format!("params: unknown key \"{}\"", error.parameter))
            }
            Refusal::Config(error) => Self::Unfit(error.to_string()),
            other => Self::Malformed(other.to_string()),
        }
    }
}

pub(super) type Ran = Result<Outputs, Failure>;

/// The value of a name.
pub(super) fn word<T>(name: &str, key: &str, meaning: impl FnOnce(&str) -> Option<T>) -> Result<T, Failure> {
    meaning(name).ok_or_else(|| Failure::Unfit(format!("{key}: unknown name \"{name}\"")))
}

/// The named members of `inputs` or `params`; records which were read.
pub(super) struct Fields<'v> {
    what: &'static str,
    map: Option<&'v Map<String, Value>>,
    asked: RefCell<BTreeSet<String>>,
}

impl<'v> Fields<'v> {
    fn new(what: &'static str, value: &'v Value) -> Result<Self, String> {
        let map = match value {
            Value::Null => None,
            Value::Object(map) => Some(map),
            _ => return Err(format!("{what}: expected an object")),
        };
        Ok(Self { what, map, asked: RefCell::default() })
    }

    pub(super) fn get(&self, key: &str) -> Option<&'v Value> {
        self.asked.borrow_mut().insert(key.to_owned());
        self.map.and_then(|map| map.get(key))
    }

    fn unknown(&self) -> Result<(), String> {
        let asked = self.asked.borrow();
        match self.map.and_then(|map| map.keys().find(|key| !asked.contains(*key))) {
            Some(key) => Err(format!("{}: unknown key \"{key}\"", self.what)),
            None => Ok(()),
        }
    }
}

/// A parsed case. Its arrays are read by the operation, which knows their lengths.
pub(super) struct Case<'v> {
    pub(super) op: &'v str,
    /// `None`: the library's own conventions.
    pub(super) profile: Option<Profile>,
    pub(super) conventions: Conventions,
    pub(super) rows: usize,
    pub(super) cols: usize,
    keep: Vec<bool>,
    groups: Option<Vec<u32>>,
    inputs: Fields<'v>,
    params: Fields<'v>,
    pub(super) single: bool,
    expect: Option<&'v Map<String, Value>>,
    rtol: f64,
    atol: f64,
}

const KEYS: [&str; 14] = [
    "op",
    "name",
    "profile",
    "dtype",
    "rows",
    "cols",
    "mask",
    "groups",
    "inputs",
    "params",
    "expect",
    "expect_error",
    "rtol",
    "atol",
];

impl<'v> Case<'v> {
    pub(super) fn parse(value: &'v Value) -> Result<Self, String> {
        let map = value.as_object().ok_or("expected an object")?;
        if let Some(key) = map.keys().find(|key| !KEYS.contains(&key.as_str())) {
            return Err(format!("unknown key \"{key}\""));
        }
        let size = |key: &str, default| match &value[key] {
            Value::Null => Ok(default),
            number => number.as_u64().map(|n| n as usize).ok_or(format!("{key}: expected a whole number")),
        };
        let (rows, cols) = (size("rows", 1)?, size("cols", 1)?);
        let slots = rows.checked_mul(cols).ok_or("rows × cols: too large")?;
        let keep = match &value["mask"] {
            Value::Null => vec![true; slots],
            mask => numbers("mask", mask, slots)?
                .into_iter()
                .map(|x| match x {
                    0.0 => Ok(false),
                    1.0 => Ok(true),
                    _ => Err(format!("mask: expected 0 or 1, got {x}")),
                })
                .collect::<Result<_, _>>()?,
        };
        let groups = match &value["groups"] {
            Value::Null => None,
            groups => Some(dense_ids(groups, rows)?),
        };
        let single = match value["dtype"].as_str() {
            Some("f32") => true,
            Some("f64") | None => false,
            Some(other) => return Err(format!("dtype: expected f32 or f64, got \"{other}\"")),
        };
        let expect = value["expect"].as_object();
        if expect.is_some() == value["expect_error"].is_string() {
            return Err("expected either \"expect\" or \"expect_error\"".into());
        }
        let profile = match &value["profile"] {
            Value::Null => None,
            name => Some(name.as_str().and_then(Profile::from_name).ok_or_else(|| {
                format!("profile: expected {}, got {name}", Profile::ALL.map(Profile::name).join(", "))
            })?),
        };
        Ok(Self {
            op: value["op"].as_str().ok_or("op: expected a name")?,
            profile,
            conventions: profile.map_or_else(Conventions::default, Profile::conventions),
            rows,
            cols,
            keep,
            groups,
            inputs: Fields::new("inputs", &value["inputs"])?,
            params: Fields::new("params", &value["params"])?,
            single,
            expect,
            rtol: tolerance(&value["rtol"], "rtol", if single { 1e-5 } else { 1e-9 })?,
            atol: tolerance(&value["atol"], "atol", if single { 1e-6 } else { 1e-12 })?,
        })
    }

    /// Runs the case and compares its results with the expected ones; returns the largest deviation.
    pub(super) fn check(&self) -> Result<f64, String> {
        let ran = if self.single { ops::run::<f32>(self) } else { ops::run::<f64>(self) };
        // a rejected call may not have read all parameters
        if ran.is_ok() {
            self.inputs.unknown()?;
            self.params.unknown()?;
        }
        match (ran, self.expect) {
            (Err(Failure::Malformed(why)), _) | (Err(Failure::Unfit(why)), Some(_)) => Err(why),
            (Err(Failure::Refused(_) | Failure::Unfit(_)), None) => Ok(0.0),
            (Err(Failure::Refused(error)), Some(_)) => Err(format!("refused: {error}")),
            (Ok(_), None) => Err("expected an error, got a result".into()),
            (Ok(outputs), Some(expect)) => compare::all(&outputs, expect, &self.keep, self.rtol, self.atol),
        }
    }

    /// The layout with the mask of the case.
    pub(super) fn batch(&self) -> Result<Batch<'_>, Failure> {
        Ok(Batch::new(Layout::padded(self.rows, self.cols)?, Mask::new(&self.keep))?)
    }

    /// Whether the case has groups.
    pub(super) fn has_groups(&self) -> bool {
        self.groups.is_some()
    }

    pub(super) fn groups(&self) -> Result<Groups<'_>, Failure> {
        let ids = self.groups.as_deref().ok_or_else(|| Failure::Malformed("groups: missing".into()))?;
        Ok(Groups::from_ids(ids)?)
    }

    /// An input of any length the operation computes.
    pub(super) fn input<R: Real>(&self, key: &str, len: usize) -> Result<Vec<R>, Failure> {
        let value = self.inputs.get(key).ok_or_else(|| Failure::Malformed(format!("inputs: missing \"{key}\"")))?;
        Ok(numbers(key, value, len).map_err(Failure::Unfit)?.into_iter().map(R::narrow).collect())
    }

    /// Whether an optional input is there.
    pub(super) fn has_input(&self, key: &str) -> bool {
        self.inputs.get(key).is_some()
    }

    /// How many entries an input has; 0 without it.
    pub(super) fn input_len(&self, key: &str) -> usize {
        self.inputs.get(key).and_then(Value::as_array).map_or(0, Vec::len)
    }

    /// One entry per token slot.
    pub(super) fn tokens<R: Real>(&self, key: &str) -> Result<Vec<R>, Failure> {
        self.input(key, self.keep.len())
    }

    /// Whole numbers.
    pub(super) fn ids(&self, key: &str, len: usize) -> Result<Vec<u32>, Failure> {
        self.input::<f64>(key, len)?
            .into_iter()
            .map(|x| {
                let id = x as u32;
                if f64::from(id) == x {
                    Ok(id)
                } else {
                    Err(Failure::Unfit(format!("{key}: expected whole numbers, got {x}")))
                }
            })
            .collect()
    }

    /// The raw parameter; `None` if absent.
    pub(super) fn param(&self, key: &str) -> Option<&'v Value> {
        self.params.get(key)
    }

    /// The first of several names that a parameter goes by; `None` too if it is `null`, which means the default.
    fn set(&self, keys: &[&str]) -> Option<&'v Value> {
        let found: Vec<_> = keys.iter().filter_map(|key| self.param(key)).collect();
        found.into_iter().find(|value| !value.is_null())
    }

    pub(super) fn number(&self, key: &str, default: Option<f64>) -> Result<f64, Failure> {
        self.number_of(&[key], default)
    }

    pub(super) fn number_of(&self, keys: &[&str], default: Option<f64>) -> Result<f64, Failure> {
        let key = keys[0];
        match self.set(keys) {
            Some(value) => {
                number(value).ok_or_else(|| Failure::Unfit(format!("{key}: expected a number, got {value}")))
            }
            None => default.ok_or_else(|| Failure::Malformed(format!("params: missing \"{key}\""))),
        }
    }

    pub(super) fn whole(&self, key: &str) -> Result<u32, Failure> {
        let x = self.number(key, None)?;
        if f64::from(x as u32) == x {
            Ok(x as u32)
        } else {
            Err(Failure::Unfit(format!("{key}: expected a whole number, got {x}")))
        }
    }

    pub(super) fn flag(&self, key: &str, default: bool) -> Result<bool, Failure> {
        match self.set(&[key]).map(|value| (value, number(value))) {
            None => Ok(default),
            Some((_, Some(x))) if x == 0.0 || x == 1.0 => Ok(x == 1.0),
            Some((value, _)) => Err(Failure::Unfit(format!("{key}: expected true or false, got {value}"))),
        }
    }

    /// A list of numbers; `None` for the default.
    pub(super) fn list(&self, key: &str) -> Result<Option<Vec<f64>>, Failure> {
        let Some(value) = self.set(&[key]) else { return Ok(None) };
        let len = value.as_array().map_or(0, Vec::len);
        numbers(key, value, len).map(Some).map_err(Failure::Unfit)
    }

    /// A text, or a number as text.
    pub(super) fn spelled(&self, key: &str) -> Result<String, Failure> {
        match self.set(&[key]) {
            Some(value @ Value::Number(_)) => Ok(value.to_string()),
            _ => self.text(key, "").map(str::to_owned),
        }
    }

    pub(super) fn text(&self, key: &str, default: &'static str) -> Result<&'v str, Failure> {
        match self.set(&[key]) {
            Some(value) => value.as_str().ok_or_else(|| Failure::Unfit(format!("{key}: expected a name, got {value}"))),
            None => Ok(default),
        }
    }

    /// All parameters.
    pub(super) fn params(&self) -> impl Iterator<Item = (&'v str, &'v Value)> {
        self.params.map.into_iter().flatten().map(|(key, value)| (key.as_str(), value))
    }

    /// A parameter as a setting; `None` for the default.
    pub(super) fn setting(&self, key: &str) -> Result<Option<Setting>, Failure> {
        match self.param(key) {
            None => Ok(None),
            Some(Value::Null) => Ok(NULL_IS_OFF.contains(&key).then_some(Setting::Null)),
            Some(json) => setting(json).map(Some),
        }
    }

    /// The aggregation whose mode a case names under `key`.
    pub(super) fn aggregate(&self, key: &str, mut usual: Setting) -> Result<Setting, Failure> {
        let mode = self.text(key, "token-mean")?;
        let scale = self.number("scale_factor", Some(self.cols as f64))?;
        usual.take("scale");
        usual.set("mode", Setting::Text(mode.into()));
        if mode == "seq-mean-token-sum-norm" {
            usual.set("scale", Setting::Number(scale));
        }
        if let Some(counts) = self.counts()? {
            usual.set("counts", counts);
        }
        // an unknown mode is rejected even if the operation does not use it
        usual.read::<Aggregate<'_>>(key).map_err(Refusal::from)?;
        Ok(usual)
    }

    /// The counts of the whole step, an extension of the format.
    pub(super) fn counts(&self) -> Result<Option<Setting>, Failure> {
        let names = ["tokens", "sequences", "prompts", "ranks"];
        let mut counts = Vec::new();
        for (name, usual) in names.into_iter().zip([0.0, 0.0, 0.0, 1.0]) {
            let key = if name == "ranks" { name.to_owned() } else { format!("global_{name}") };
            counts.push((name.to_owned(), Setting::Number(self.number(&key, Some(usual))?)));
        }
        let given = self.param("global_tokens").is_some() || self.param("global_sequences").is_some();
        Ok(given.then_some(Setting::Map(counts)))
    }

    /// `null` is off, a number the bound, absence the profile's default.
    pub(super) fn dual_clip(&self) -> Result<Setting, Failure> {
        let bound = match self.param("dual_clip") {
            Some(Value::Null) => None,
            Some(_) => Some(self.number("dual_clip", None)?),
            None => self.conventions.dual_clip_bound,
        };
        value(bound.map_or(DualClip::Off, |bound| self.conventions.dual_clip(bound)))
    }

    /// Puts the estimator into the settings of a KL, by any of its names, with `+` for the straight-through gradient.
    pub(super) fn estimator(&self, kl: &mut Setting) -> Result<(), Failure> {
        let name = self.text("estimator", "")?;
        let base = match name.trim_end_matches('+') {
            "" => return Ok(()),
            "kl" => "k1",
            "mse" => "k2",
            "low_var_kl" => "k3",
            other => other,
        };
        kl.set("estimator", Setting::Text(base.into()));
        let gradient = if name.ends_with('+') { "straight-through" } else { "own" };
        kl.set("gradient", Setting::Text(gradient.into()));
        Ok(())
    }
}
