//! The controllers. Those that hold nothing but their price have it go in and come out; the others are classes.

use js_sys::Float32Array;
use tokenwise::{
    control::{self, AdaptiveKl, BudgetObservation, BudgetReport, DualGameStep, FixedKl},
    weight::TokenWeight,
};
use tokenwise_catalogue::{Compound, ConfigError};
use wasm_bindgen::{
    prelude::{wasm_bindgen, JsValue},
    JsCast,
};

use crate::{
    batch::Batch,
    error::Result,
    read::{count, field, number, object, reals, size, text, Precision},
    value::config,
    write::{entries, or_null, Record},
};

/// The price of the next step, which never moves.
#[wasm_bindgen(js_name = fixedKl, skip_typescript)]
pub fn fixed_kl(beta: &JsValue, kl: &JsValue, samples: &JsValue) -> Result<f64> {
    let mut machine = FixedKl::new(number("beta", beta)?)?;
    Ok(machine.update(number("kl", kl)?, size("samples", samples)? as u32)?)
}

/// The price of the next step, by the controller of Ziegler et al.
#[wasm_bindgen(js_name = adaptiveKl, skip_typescript)]
pub fn adaptive_kl(given: &JsValue, kl: &JsValue, samples: &JsValue) -> Result<f64> {
    let mut machine = AdaptiveKl::new(&config(given)?.0.read("config")?)?;
    Ok(machine.update(number("kl", kl)?, size("samples", samples)? as u32)?)
}

/// A price of KL that moves by a share of how far the KL is from its target.
#[wasm_bindgen(skip_typescript)]
#[derive(Clone)]
pub struct LinearKl(control::LinearKl);

#[wasm_bindgen]
impl LinearKl {
    /// A controller before its first step.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<LinearKl> {
        Ok(Self(control::LinearKl::new(&config(given)?.0.read("config")?)?))
    }

    /// Takes the KL of a step, gives the price of the next.
    pub fn update(&mut self, kl: &JsValue) -> Result<f64> {
        Ok(self.0.update(number("kl", kl)?)?)
    }

    /// Another one in the same state.
    #[wasm_bindgen(js_name = clone)]
    pub fn copy(&self) -> LinearKl {
        self.clone()
    }

    /// The price now.
    #[wasm_bindgen(getter)]
    pub fn beta(&self) -> f64 {
        self.0.beta()
    }

    /// The KL wanted now.
    #[wasm_bindgen(getter)]
    pub fn target(&self) -> f64 {
        self.0.target()
    }
}

/// A price of entropy that rises while more is used than the budget allows.
#[wasm_bindgen(skip_typescript)]
#[derive(Clone)]
pub struct EntropyBudget(control::EntropyBudget);

#[wasm_bindgen]
impl EntropyBudget {
    /// A budget before its first step.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<EntropyBudget> {
        Ok(Self(control::EntropyBudget::new(&config(given)?.0.read("config")?)?))
    }

    /// Takes in a step, gives the price of the next update.
    pub fn update(&mut self, observation: &JsValue) -> Result {
        Ok(report(&self.0.update(&read_observation(observation)?)?)?.into())
    }

    /// Another one in the same state.
    #[wasm_bindgen(js_name = clone)]
    pub fn copy(&self) -> EntropyBudget {
        self.clone()
    }

    /// The price now.
    #[wasm_bindgen(getter)]
    pub fn lambda(&self) -> f64 {
        self.0.lambda()
    }
}

fn read_observation(given: &JsValue) -> Result<BudgetObservation> {
    object("observation", given)?;
    let optional = |name| match field(given, name)? {
        missing if missing.is_undefined() => Ok(0.0),
        found => number(name, &found),
    };
    Ok(BudgetObservation {
        step: count("step", &field(given, "step")?)?,
        wh_sum: number("wh_sum", &field(given, "wh_sum")?)?,
        token_count: count("token_count", &field(given, "token_count")?)?,
        reward_std: optional("reward_std")?,
        reward_sum_mean: optional("reward_sum_mean")?,
    })
}

fn report(found: &BudgetReport) -> Result<Record> {
    let record = Record::new();
    record.field("lambda", found.lambda)?;
    record.field("budget", or_null(found.budget))?;
    record.field("budget_per_token", or_null(found.budget_per_token))?;
    record.field("wh_per_token", found.wh_per_token)?;
    record.field("usage_ratio", or_null(found.usage_ratio))?;
    record.field("warm_up_finished", found.warm_up_finished)?;
    record.field("plateau", found.plateau)?;
    record.field("collapse", found.collapse)?;
    Ok(record)
}

/// Both prices, moved once per batch by what the batch shows.
#[wasm_bindgen(skip_typescript)]
#[derive(Clone)]
pub struct DualGame(control::DualGame);

#[wasm_bindgen]
impl DualGame {
    /// A game before its first step.
    #[wasm_bindgen(constructor)]
    pub fn new(given: &JsValue) -> Result<DualGame> {
        Ok(Self(control::DualGame::new(&config(given)?.0.read("config")?)?))
    }

    /// Measures a batch, moves both prices, and tells everything. The precision is that of `oldLogProbs`.
    pub fn step(&mut self, batch: &Batch, input: &JsValue) -> Result {
        object("input", input)?;
        if field(input, "old_log_probs")?.is_instance_of::<Float32Array>() {
            self.step_in::<f32>(batch, input)
        } else {
            self.step_in::<f64>(batch, input)
        }
    }

    fn step_in<R: Precision + Compound>(&mut self, batch: &Batch, input: &JsValue) -> Result {
        let column = |name| reals::<R>(name, &field(input, name)?);
        let optional = |name| match field(input, name)? {
            missing if missing.is_undefined() => Ok(None),
            found => reals::<R>(name, &found).map(Some),
        };
        let (old_log_probs, ref_log_probs) = (column("old_log_probs")?, optional("ref_log_probs")?);
        let (advantages, rewards) = (column("advantages")?, column("rewards")?);
        let kind = field(input, "weight")?;
        let kind = if kind.is_undefined() { "plain".to_owned() } else { text("weight", &kind)? };
        let structural = if kind == "structural" { column("structural")? } else { Vec::new() };
        let mut step = DualGameStep::new(&old_log_probs, &advantages, &rewards);
        step.ref_log_probs = ref_log_probs.as_deref();
        step.weight = match kind.as_str() {
            "plain" => TokenWeight::Plain,
            "kl-gated" => TokenWeight::KlGated,
            "structural" => TokenWeight::Structural(&structural),
            other => return Err(ConfigError::unknown_choice("weight", "plain, kl-gated, structural", other).into()),
        };
        let found = R::step(&mut self.0, &batch.view()?, step)?;
        let record = Record::new();
        record.field("lambda", found.lambda())?;
        record.field("beta", found.beta)?;
        record.field("budget", report(&found.budget)?)?;
        record.field("entries", entries(found.entries())?)?;
        Ok(record.into())
    }

    /// Another one in the same state.
    #[wasm_bindgen(js_name = clone)]
    pub fn copy(&self) -> DualGame {
        self.clone()
    }

    /// The price of entropy now.
    #[wasm_bindgen(getter)]
    pub fn lambda(&self) -> f64 {
        self.0.lambda()
    }

    /// The price of KL now.
    #[wasm_bindgen(getter)]
    pub fn beta(&self) -> f64 {
        self.0.beta()
    }
}
