//! The controllers with a state: objects that go on from one step to the next. A clone goes its own way from there.

use ::core::cell::Cell;

use tokenwise::{
    control::{self as core, BudgetReport, DualGameReport, DualGameStep},
    Batch,
};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{Element, Real},
    batch::Owned,
    call::arrays,
    config,
    error::Result,
    loss::OwnedWeight,
    object::{number, numbers, object},
};

/// A price of KL that moves by a share of how far the KL is from its target.
#[wasm_bindgen(skip_typescript)]
pub struct LinearKl(Cell<core::LinearKl>);

#[wasm_bindgen]
impl LinearKl {
    /// At its first price.
    #[wasm_bindgen(constructor, skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn new(config: &JsValue) -> Result<LinearKl> {
        Ok(Self(Cell::new(core::LinearKl::new(&config::linear_kl(config)?)?)))
    }

    /// Another machine in the same state.
    #[wasm_bindgen(skip_typescript, js_name = "clone")]
    pub fn copy(&self) -> LinearKl {
        Self(self.0.clone())
    }

    /// Takes the KL of a step, gives the price of the next.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn update(&self, kl: &JsValue) -> Result<f64> {
        let mut machine = self.0.get();
        let beta = machine.update(number("kl", kl)?)?;
        self.0.set(machine);
        Ok(beta)
    }

    /// The price now.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn beta(&self) -> f64 {
        self.0.get().beta()
    }

    /// The KL wanted now.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn target(&self) -> f64 {
        self.0.get().target()
    }
}

/// A price of entropy that rises while more is used than the budget allows.
#[wasm_bindgen(skip_typescript)]
pub struct EntropyBudget(Cell<core::EntropyBudget>);

#[wasm_bindgen]
impl EntropyBudget {
    /// At its first price.
    #[wasm_bindgen(constructor, skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn new(config: &JsValue) -> Result<EntropyBudget> {
        Ok(Self(Cell::new(core::EntropyBudget::new(&config::entropy_budget(config)?)?)))
    }

    /// Another machine in the same state.
    #[wasm_bindgen(skip_typescript, js_name = "clone")]
    pub fn copy(&self) -> EntropyBudget {
        Self(self.0.clone())
    }

    /// Takes in a step, gives the price of the next update.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn update(&self, observation: &JsValue) -> Result<JsValue> {
        let mut machine = self.0.get();
        let report = machine.update(&config::observation(observation)?)?;
        self.0.set(machine);
        budget_report(&report)
    }

    /// The price now.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn lambda(&self) -> f64 {
        self.0.get().lambda()
    }
}

fn known(number: Option<f64>) -> JsValue {
    number.map_or(JsValue::NULL, JsValue::from)
}

fn budget_report(report: &BudgetReport) -> Result<JsValue> {
    object([
        ("lambda", report.lambda.into()),
        ("budget", known(report.budget)),
        ("budgetPerToken", known(report.budget_per_token)),
        ("whPerToken", report.wh_per_token.into()),
        ("usageRatio", known(report.usage_ratio)),
        ("warmUpFinished", report.warm_up_finished.into()),
        ("plateau", report.plateau.into()),
        ("collapse", report.collapse.into()),
    ])
}

/// Both prices, moved once per batch by what the batch shows.
#[wasm_bindgen(skip_typescript)]
pub struct DualGame(Cell<core::DualGame>);

#[wasm_bindgen]
impl DualGame {
    /// Before its first step.
    #[wasm_bindgen(constructor, skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn new(config: &JsValue) -> Result<DualGame> {
        Ok(Self(Cell::new(core::DualGame::new(&config::dual_game_rules(config)?)?)))
    }

    /// Another game in the same state.
    #[wasm_bindgen(skip_typescript, js_name = "clone")]
    pub fn copy(&self) -> DualGame {
        Self(self.0.clone())
    }

    /// Measures a batch of either precision, moves both prices, and tells everything.
    #[wasm_bindgen(skip_typescript)]
    #[allow(private_interfaces, reason = "only JavaScript calls it, which sees the error as a thrown value")]
    pub fn step(&self, batch: &JsValue, input: &JsValue) -> Result<JsValue> {
        let batch = Owned::read(batch)?;
        let batch = batch.view()?;
        let mut game = self.0.get();
        let single = f32::copied(&crate::object::Fields::input("input", input)?.get("oldLogProbs")?).is_some();
        let report =
            if single { step::<f32>(&mut game, &batch, input)? } else { step::<f64>(&mut game, &batch, input)? };
        self.0.set(game);
        object([
            ("lambda", report.lambda().into()),
            ("beta", report.beta.into()),
            ("budget", budget_report(&report.budget)?),
            ("entries", numbers(report.entries())?),
        ])
    }

    /// The price of entropy now.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn lambda(&self) -> f64 {
        self.0.get().lambda()
    }

    /// The price of KL now.
    #[wasm_bindgen(getter, skip_typescript)]
    pub fn beta(&self) -> f64 {
        self.0.get().beta()
    }
}

fn step<R: Real>(game: &mut core::DualGame, batch: &Batch<'_>, input: &JsValue) -> Result<DualGameReport> {
    let weight = OwnedWeight::<R>::read(input)?;
    let [old, advantages, rewards] = arrays::<R, 3>(input, ["oldLogProbs", "advantages", "rewards"])?;
    let input = DualGameStep {
        old_log_probs: &old,
        ref_log_probs: weight.reference.as_deref(),
        advantages: &advantages,
        rewards: &rewards,
        weight: weight.view(),
        last_update: None,
    };
    Ok(game.step(batch, input, None)?)
}
