//! The configs that covered formulas are tested with.

use std::collections::BTreeSet;

use serde_json::{json, Map, Value};
use tokenwise_catalogue::{ConfigFault, Entry, Refusal};
pub(crate) use tokenwise_gpu_golden::random::{first_config as first, Random};

use crate::{
    call::{on_core, Tokens},
    losses,
};

/// Every mode of aggregation.
const MODES: &[&str] = &[
    r#"{"mode": "token-sum"}"#,
    r#"{"mode": "seq-mean-token-sum"}"#,
    r#"{"mode": "seq-mean-token-sum-norm", "scale": 37}"#,
    r#"{"mode": "seq-mean-token-mean"}"#,
    r#"{"mode": "prompt-mean"}"#,
    r#"{"mode": "seq-mean-token-mean", "counts": {"tokens": 999, "sequences": 20, "ranks": 2}}"#,
];

/// The default config, or one with what is required; every mode of aggregation; and the configs of [`together`] or, for
/// a formula that is not listed there, every setting by itself.
pub(crate) fn of(entry: &Entry) -> Vec<String> {
    let search = Search::new(entry);
    let mut found = BTreeSet::new();
    // a loss has one aggregation or is one
    for path in [vec!["aggregate".to_owned()], vec![]] {
        let modes = MODES.iter().map(|mode| search.with(&path, serde_json::from_str(mode).unwrap()));
        found.extend(modes.filter(|config| search.refusal(config).is_none()).map(|config| config.to_string()));
    }
    let together = together(entry.name);
    if together.is_empty() {
        found.extend(search.configs());
    }
    let listed = [first(entry.name)].into_iter().chain(together).map(str::to_owned);
    listed.chain(found).collect()
}

/// Finds the settings of a formula by asking the core for settings that it does not have: the error says which there
/// are.
struct Search<'a> {
    entry: &'a Entry,
    base: Value,
    tokens: Tokens,
}

impl<'a> Search<'a> {
    fn new(entry: &'a Entry) -> Self {
        let base = serde_json::from_str(first(entry.name)).unwrap();
        Self { entry, base, tokens: Tokens::packed(&mut Random::new(44), &[9, 5]) }
    }

    /// Every number ½ and 2, every choice, nothing where that is allowed: one setting at a time.
    fn configs(&self) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        if self.entry.config.is_some() {
            self.vary(&[], &mut found);
        }
        found
    }

    fn vary(&self, path: &[String], found: &mut BTreeSet<String>) {
        for key in self.names(path, json!({ "surely_not": 1 }), ConfigFault::Key) {
            let path = [path, &[key]].concat();
            let choices = self.names(&path, json!("surely-not"), ConfigFault::Choice);
            let choices = choices.into_iter().map(Value::from);
            for value in choices.chain([json!(0.5), json!(2), Value::Null]) {
                let config = self.with(&path, value);
                if self.refusal(&config).is_none() {
                    found.insert(config.to_string());
                }
            }
            self.vary(&path, found);
        }
    }

    /// What the core expects instead of a value that it refuses with this fault.
    fn names(&self, path: &[String], wrong: Value, fault: ConfigFault) -> Vec<String> {
        match self.refusal(&self.with(path, wrong)) {
            Some(Refusal::Config(error)) if error.fault == fault => {
                error.expected.split(", ").filter(|name| !name.is_empty()).map(str::to_owned).collect()
            }
            _ => Vec::new(),
        }
    }

    /// The base with a setting at this place; an object adds its fields.
    fn with(&self, path: &[String], value: Value) -> Value {
        let mut config = self.base.clone();
        let mut place = &mut config;
        for key in path {
            if !place.is_object() {
                *place = Value::Object(Map::new());
            }
            place = &mut place[key.as_str()];
        }
        match (place, value) {
            (Value::Object(fields), Value::Object(more)) => fields.extend(more),
            (place, value) => *place = value,
        }
        config
    }

    fn refusal(&self, config: &Value) -> Option<Refusal> {
        let mut random = Random::new(45);
        let inputs = self.tokens.inputs(&mut random, self.entry);
        on_core(self.entry, &self.tokens, &inputs, &serde_json::from_value(config.clone()).unwrap()).err()
    }
}

/// A formula that is added later is tried with all its settings, without a row in any list.
#[test]
fn settings_are_found() {
    let of = |name: &str| Search::new(tokenwise_catalogue::find(name).unwrap()).configs();
    for (name, settings) in [
        ("whiten", &[r#"{"epsilon":0.5}"#, r#"{"spread":"population"}"#, r#"{"scale":"unit"}"#][..]),
        ("reinforce", &[r#"{"aggregate":{"mode":"seq-mean-token-sum"}}"#]),
        ("dro", &[r#"{"beta":0.5}"#, r#"{"beta":2}"#]),
    ] {
        let found = of(name);
        assert!(settings.iter().all(|setting| found.contains(*setting)), "{name}: {found:?}");
    }
}

/// Configs whose settings matter together, of formulas for which the search below is not enough.
fn together(name: &str) -> Vec<&'static str> {
    match name {
        "kl_estimate" | "kl_gradient" => vec![
            r#"{"estimator": "abs"}"#,
            r#"{"estimator": "k2", "bounds": "every"}"#,
            r#"{"estimator": "k3"}"#,
            r#"{"estimator": "k3", "bounds": "k3-only"}"#,
            r#"{"estimator": "k3", "bounds": "every", "gradient": "straight-through"}"#,
        ],
        "gae" => vec![r#"{"gamma": 0.99, "lambda": 0.95}"#, r#"{"gamma": 0.9, "lambda": 0.5, "across": "zero-step"}"#],
        "discounted_returns" => vec![r#"{"gamma": 0.9, "across": "zero-step"}"#],
        "td_lambda" => vec![r#"{"gamma": 0.9, "lambda": 0.5, "across": "zero-step"}"#],
        "leave_one_out" => vec![r#"{"singleton": "raw"}"#],
        "whiten" => vec![
            r#"{"spread": "population", "epsilon": 1e-3, "place": "outside"}"#,
            r#"{"place": "floor-variance", "center": "keep-mean"}"#,
            r#"{"scale": "unit"}"#,
        ],
        "ppo_clip" => vec![
            r#"{"clip_low": 0.1, "clip_high": 0.3, "dual_clip": {"negative_only": 1.5}}"#,
            r#"{"dual_clip": {"both_signs": 1.1}, "log_ratio_bound": 0.5}"#,
            r#"{"dual_clip": {"both_signs": 2.5}, "log_ratio_bound": 0.5, "reported_kl": "unbounded"}"#,
            r#"{"log_ratio_bound": null, "divisor": "count-plus-epsilon"}"#,
        ],
        "mean" | "kl_means" | "row_means" | "rollout_mismatch" => vec![r#"{"divisor": "count-plus-epsilon"}"#],
        "row_normalize" => vec![r#"{"floor": 0.5}"#],
        "kl_in_scores" => vec![r#"{"beta": 0.5}"#],
        "kl_mask" => vec![r#"{"tau": 0}"#],
        "off_policy_sequence_mask" => vec![r#"{"threshold": 0.05}"#],
        "length_weighted_baseline" => vec![r#"{"singleton": "raw"}"#],
        "opd_advantage" => vec![r#"{"coefficient": 0.3}"#],
        "variance" => vec![r#"{"spread": "population"}"#, r#"{"divisor": "count-plus-epsilon"}"#],
        "explained_variance" => vec![r#"{"epsilon": 0, "spread": "population"}"#],
        "clip_fractions" => vec![
            r#"{"clip_low": 0.1, "clip_high": 0.3, "dual_clip": {"negative_only": 1.5}}"#,
            r#"{"dual_clip": {"both_signs": 1.1}, "divisor": "count-plus-epsilon"}"#,
        ],
        "variance_proxy" => vec![r#"{"gradient_norm": 3, "divisor": "count-plus-epsilon"}"#],
        "last_k_credit" => vec![r#"{"k": 1}"#, r#"{"k": 1000000}"#],
        "monte_carlo_advantage" => vec![r#"{"gamma": 0.9, "across": "zero-step"}"#],
        "gae_decoupled" => vec![
            r#"{"gamma": 0.99, "lambda_value": 0.9, "lambda_policy": 0.5, "across": "zero-step"}"#,
            r#"{"gamma": 0.99, "lambda_value": 0.9, "lambda_policy": {"alpha": 0.05}}"#,
        ],
        "reinforce_plus_plus" => vec![r#"{"gamma": 0.9, "across": "zero-step", "whiten": {"scale": "unit"}}"#],
        "minillm_advantage" => vec![
            r#"{"gamma": 0.9, "length": "off"}"#,
            r#"{"gamma": 0.9, "length": "off", "from": "start", "across": "zero-step"}"#,
            r#"{"gamma": 0.9, "length": "kept-and-padding", "across": "zero-step"}"#,
            r#"{"gamma": 0.9, "length": "kept-and-padding"}"#,
        ],
        "vtrace" => vec![
            r#"{"gamma": 0.9, "lambda": 0.8, "rho_bar": 2, "c_bar": 0.8, "rho_bar_pg": 1.5}"#,
            r#"{"gamma": 0.9, "lambda": 0.5, "alpha": 0.9}"#,
        ],
        "retrace" => vec![
            r#"{"gamma": 0.9, "lambda": 0.9}"#,
            r#"{"gamma": 0.9, "lambda": 0.9, "coefficient": "lambda"}"#,
            r#"{"gamma": 0.9, "lambda": 0.9, "coefficient": "tree-backup"}"#,
            r#"{"gamma": 0.3, "coefficient": "importance"}"#,
        ],
        "puffer_advantage" => vec![
            r#"{"gamma": 0.9, "lambda": 0.9, "rho_bar": 0.7}"#,
            r#"{"gamma": 0.9, "lambda": 0.9, "variant": "v4", "c_bar": 0.9}"#,
        ],
        "kl_in_reward" => vec![
            r#"{"beta": 0.1, "kl": {"estimator": "k2"}}"#,
            r#"{"beta": 0.1, "kl": {"estimator": "k3", "bounds": "k3-only"}, "divisor": "count-plus-epsilon"}"#,
        ],
        "clipped_rewards" => vec![r#"{"beta": 0.5, "low": -0.5, "high": 0.25}"#, r#"{"beta": -1}"#],
        "group_relative" => vec![
            r#"{"epsilon": 0, "spread": "population", "singleton": "raw"}"#,
            r#"{"scale": "unit", "singleton": "raw"}"#,
            r#"{"scale": "batch-deviation", "singleton": "raw"}"#,
            r#"{"scale": "batch-deviation", "spread": "population"}"#,
        ],
        "gpg_advantage" => vec![r#"{"norm": 3, "singleton": "raw"}"#],
        "max_rl" => vec![r#"{"divisor": "if-positive", "singleton": "raw"}"#, r#"{"epsilon": 1}"#],
        "gdpo" => vec![r#"{"group": {"scale": "unit", "singleton": "raw"}, "whiten": {"spread": "population"}}"#],
        "reinforce_plus_plus_baseline" => vec![r#"{"singleton": "raw", "whiten": {"scale": "unit"}}"#],
        "rollout_weights" | "rollout_weight_metrics" => vec![
            r#"{"level": "token", "bound": {"zero": {"lower": 0.5, "upper": 2}}, "normalize": "tokens"}"#,
            r#"{"level": "token", "bound": {"clamp": {"lower": 0.5, "upper": 2}}, "normalize": "by-level"}"#,
            r#"{"level": "sequence", "divisor": "count-plus-epsilon"}"#,
            r#"{"level": "sequence", "bound": "unbounded", "log_bound": 3, "normalize": "by-level"}"#,
            r#"{"level": "geometric", "bound": {"zero": {"lower": 0.9, "upper": 1.1}}, "normalize": "by-level"}"#,
            r#"{"level": "geometric", "bound": {"clamp": {"lower": 0.9, "upper": 1.1}}, "log_bound": null}"#,
        ],
        "rollout_gate" => vec![
            r#"{"level": "token"}"#,
            r#"{"level": "token", "mode": "clip"}"#,
            r#"{"level": "token", "statistic": "binary-kl", "lower": 0, "upper": 0.2}"#,
            r#"{"level": "token", "statistic": "total-variation", "lower": 0, "upper": 0.3}"#,
            r#"{"level": "sequence", "lower": 0.95, "upper": 1.2}"#,
            r#"{"level": "sequence", "statistic": "binary-kl", "lower": 0, "upper": 0.3}"#,
        ],
        "rollout_rejection" | "rollout_rejection_metrics" => vec![
            "{}",
            r#"{"criteria": [{"option": "token-k1", "lower": 0.4, "upper": 2.5}]}"#,
            r#"{"criteria": [{"option": "token-k2", "upper": 0.5}, {"option": "token-k3", "upper": 0.7}]}"#,
            r#"{"criteria": [{"option": "seq-sum-k1", "lower": 0.1, "upper": 50}, {"option": "token-k3", "upper": 2}]}"#,
            r#"{"criteria": [{"option": "seq-mean-k2", "upper": 0.7}, {"option": "seq-sum-k2", "upper": 300}]}"#,
            r#"{"criteria": [{"option": "seq-mean-k1", "lower": 0.9, "upper": 1.1}], "divisor": "count-plus-epsilon"}"#,
            r#"{"criteria": [{"option": "seq-max-k2", "upper": 3}, {"option": "seq-max-k3", "upper": 8}]}"#,
            r#"{"criteria": [{"option": "seq-mean-k3", "upper": 0.8}, {"option": "seq-sum-k3", "upper": 100}]}"#,
        ],
        "sequence_veto" => vec![r#"{"lower": 0.2}"#, r#"{"lower": 0.01, "upper": 8}"#],
        _ => losses::configs(name).to_vec(),
    }
}
