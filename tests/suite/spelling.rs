//! Configs as JSON: what is left out, what is refused, and the names, which are those of the JavaScript package.

use std::{collections::BTreeSet, fmt::Debug, fs, path::Path};

use serde::{de::DeserializeOwned, Serialize};
use serde_json::{from_str, from_value, json, to_string, to_value, Map, Value};
use tokenwise::{
    advantage::*, control::*, divergence::*, loss::*, metric::*, policy::*, profile::*, reward::*, rollout::*,
    weight::*, Batch, Divisor, Error, Layout, Mask, MeanConfig,
};

mod names;
mod shapes;

/// Runs `check` with the name and the type of every config that has a default.
macro_rules! configs {
    ($check:ident: $($type:ident),+ $(,)?) => {
        [$((stringify!($type), $check::<$type>(stringify!($type)))),+]
    };
}

/// Every struct of the core whose name ends in `Config` and that has a default, as the build script found them, and
/// what else configs consist of.
macro_rules! every_config {
    ($check:ident) => {
        found! { $check, Aggregate, Conventions, Criterion, DualGameRules, Follow, GlobalCounts }
    };
}

include!(concat!(env!("OUT_DIR"), "/configs.rs"));

fn read<T: DeserializeOwned>(value: &Value) -> Result<T, serde_json::Error> {
    from_value(value.clone())
}

/// Written, as text, and read.
fn copied<T: Serialize + DeserializeOwned>(value: &T) -> T {
    from_str(&to_string(value).unwrap()).unwrap()
}

fn defaults<T: Default + Serialize + DeserializeOwned + PartialEq + Debug>(name: &str) {
    let usual = T::default();
    assert_eq!(copied(&usual), usual, "{name}");
    assert_eq!(read::<T>(&json!({})).unwrap(), usual, "{name}");
    let error = read::<T>(&json!({ "surely_not": 1 })).unwrap_err().to_string();
    assert!(error.contains("unknown field `surely_not`"), "{name}: {error}");
    // a field by itself leaves the others, and an inner config without fields is that of the outer default
    for (key, value) in to_value(&usual).unwrap().as_object().unwrap() {
        assert_eq!(read::<T>(&json!({ key: value })).unwrap(), usual, "{name}.{key}");
        if value.as_object().is_some_and(|inner| !inner.contains_key("kind")) {
            assert_eq!(read::<T>(&json!({ key: {} })).unwrap(), usual, "{name}.{key}");
        }
    }
}

#[test]
fn what_is_left_out_is_the_default() {
    every_config!(defaults);
}

/// Replaces every number by one with all its bits in use.
fn awkward(value: &mut Value, next: &mut f64) {
    match value {
        Value::Number(number) if number.is_f64() => {
            *next *= 1.1;
            *value = json!(*next);
        }
        Value::Array(items) => items.iter_mut().for_each(|item| awkward(item, next)),
        Value::Object(fields) => fields.values_mut().for_each(|field| awkward(field, next)),
        _ => {}
    }
}

fn bits<T: Default + Serialize + DeserializeOwned>(name: &str) {
    for start in [0.1, 1e-300, 1e300] {
        let mut value = to_value(T::default()).unwrap();
        awkward(&mut value, &mut f64::clone(&start));
        let config: T = read(&value).unwrap();
        assert_eq!(to_value(&config).unwrap(), value, "{name}");
        assert_eq!(to_value(copied(&config)).unwrap(), value, "{name}");
    }
}

#[test]
fn no_bit_of_a_number_is_lost() {
    every_config!(bits);
}

fn keys<T: Default + Serialize>(name: &str) {
    fn check(name: &str, fields: &Map<String, Value>) {
        for (key, value) in fields {
            let snake = key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_');
            assert!(snake, "{name}: {key}");
            match value {
                Value::Object(inner) => check(name, inner),
                Value::String(text) => {
                    let kebab = text.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || "-.".contains(c));
                    assert!(kebab, "{name}: {text}");
                }
                _ => {}
            }
        }
    }
    check(name, to_value(T::default()).unwrap().as_object().unwrap());
}

/// A binding turns keys into its own style by one rule, and leaves values alone.
#[test]
fn keys_are_snake_case_and_values_kebab_case() {
    every_config!(keys);
}

fn nothing<T>(_: &str) {}

/// The names behind `pub struct` or `pub enum` in the sources of the core.
fn declared(folder: &Path, item: &str, found: &mut BTreeSet<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            declared(&path, item, found);
        } else {
            let text = fs::read_to_string(&path).unwrap();
            let names = text.lines().filter_map(|line| line.trim_start().strip_prefix(item));
            found.extend(names.map(|name| name.split(|c: char| !c.is_alphanumeric()).next().unwrap().to_owned()));
        }
    }
}

/// A config without a default, or a choice, that is added later has to be added here too.
#[test]
fn none_is_forgotten() {
    let core = Path::new(env!("CARGO_MANIFEST_DIR")).join("../core/src");
    let mut known: BTreeSet<&str> = every_config!(nothing).map(|(name, ())| name).into();
    known.extend(WITHOUT_DEFAULT);
    let mut structs = BTreeSet::new();
    declared(&core, "pub struct ", &mut structs);
    assert!(known.iter().all(|&name| structs.contains(name)));
    for name in structs.iter().filter(|name| name.ends_with("Config")) {
        assert!(known.contains(name.as_str()), "{name} is not tested");
    }
    known.extend(names::NAMES);
    known.extend(shapes::NAMES);
    // what no config holds
    known.extend(["Error", "KeyBits", "KlControl", "Piece", "Quantity", "QuantityShape", "TokenWeight", "TrlLoss"]);
    let mut enums = BTreeSet::new();
    declared(&core, "pub enum ", &mut enums);
    for name in &enums {
        assert!(known.contains(name.as_str()), "{name} is not tested");
    }
}

/// Borrowed slices of a config are not in the text, and the kernel reports an error if they are not filled in.
#[test]
fn what_is_borrowed_is_filled_in_by_the_caller() {
    let config: PpoConfig<'static> = read(&json!({ "aggregate": { "mode": "prompt-mean" } })).unwrap();
    assert!(matches!(config.aggregate.mode, AggregateMode::PromptMean { tokens: [], .. }));
    assert_eq!(to_value(config).unwrap()["aggregate"]["mode"], json!("prompt-mean"));
    let batch = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&[true, true])).unwrap();
    let slice = [0.0; 2];
    let input = PolicyLossInput { log_probs: &slice, old_log_probs: &slice, advantages: &slice, weights: None };
    let error = ppo_clip(&batch, input, &config, &mut [0.0; 2]).unwrap_err();
    assert_eq!(error, Error::Length { what: "groups", expected: 1, got: 0 });

    let criteria = [Criterion::default()];
    let config = RejectionConfig { criteria: &criteria, ..Default::default() };
    assert_eq!(to_value(config).unwrap(), json!({ "divisor": "count" }));
    assert!(read::<RejectionConfig<'static>>(&json!({ "criteria": [] })).is_err());
}

/// Written, read, and refused without the number that has no default.
macro_rules! needed {
    ($($config:expr => $text:tt without $field:literal;)*) => {$({
        let (config, text) = ($config, json!($text));
        assert_eq!(to_value(config).unwrap(), text);
        assert_eq!(copied(&config), config);
        let mut fewer = text;
        fewer.as_object_mut().unwrap().remove($field);
        let error = same_type(&config, &fewer).unwrap_err().to_string();
        assert!(error.contains(concat!("missing field `", $field, "`")), "{error}");
    })*};
}

fn same_type<T: DeserializeOwned>(_: &T, value: &Value) -> Result<T, serde_json::Error> {
    read(value)
}

const WITHOUT_DEFAULT: [&str; 7] = [
    "DroConfig",
    "KlMaskConfig",
    "LastKConfig",
    "M2poConfig",
    "MissingEosConfig",
    "StopProperlyConfig",
    "VarianceProxyConfig",
];

/// A number on which papers and frameworks agree on no value.
#[test]
fn a_field_without_default_is_needed() {
    needed! {
        KlMaskConfig { tau: 0.5 } => { "tau": 0.5 } without "tau";
        LastKConfig { k: 3 } => { "k": 3 } without "k";
        M2poConfig { tau: 0.5 } => { "tau": 0.5 } without "tau";
        MissingEosConfig { penalty: 0.5 } => { "penalty": 0.5 } without "penalty";
        StopProperlyConfig { coefficient: 0.5 } => { "coefficient": 0.5 } without "coefficient";
        VarianceProxyConfig { gradient_norm: 0.5, divisor: Divisor::Count }
            => { "gradient_norm": 0.5, "divisor": "count" } without "gradient_norm";
    }
    let config: DroConfig<'static> = read(&json!({ "beta": 0.5 })).unwrap();
    assert_eq!(config, DroConfig { beta: 0.5, aggregate: Aggregate::default(), divisor: Default::default() });
    assert_eq!(copied(&config), config);
    let error = read::<DroConfig<'static>>(&json!({})).unwrap_err().to_string();
    assert!(error.contains("missing field `beta`"), "{error}");
}
