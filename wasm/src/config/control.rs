//! The configs of the controllers with a state, and what a step hands to them.

use tokenwise::control::{
    BudgetObservation, BudgetSchedule, BudgetSource, CollapseGuard, DualGameRules, EntropyBudgetConfig, Follow,
    KlControlConfig, LinearKlConfig,
};
use wasm_bindgen::JsValue;

use super::adaptive_kl;
use crate::{
    error::Result,
    object::{tagged, Choice, Fields},
};

choices! {
    CollapseGuard { "off" => Off, "on" => On }
}

plain_config! {
    linear_kl -> LinearKlConfig {
        "beta" => beta by number_or,
        "target" => target by number_or,
        "learningRate" => learning_rate by number_or,
        "betaMin" => beta_min by number_or,
        "follow" => follow by follow_or,
    }
    entropy_budget -> EntropyBudgetConfig {
        "lambda" => lambda by number_or,
        "learningRate" => learning_rate by number_or,
        "lambdaMax" => lambda_max by nullable_or,
        "whRange" => wh_range by range_or,
        "source" => source by source_or,
        "follow" => follow by follow_or,
        "schedule" => schedule by schedule_or,
        "guard" => guard by choice_or,
    }
}

/// `{ kl, budget }`; `kl` is a number for a fixed price, or `{ kind, … }`.
pub(crate) fn dual_game_rules(value: &JsValue) -> Result<DualGameRules> {
    let (fields, default) = (Fields::config("config", value, &["kl", "budget"])?, DualGameRules::default());
    let kl = fields.get("kl")?;
    let budget = fields.get("budget")?;
    Ok(DualGameRules {
        kl: if kl.is_undefined() { default.kl } else { kl_control(&kl)? },
        budget: if budget.is_undefined() { default.budget } else { entropy_budget(&budget)? },
    })
}

fn kl_control(value: &JsValue) -> Result<KlControlConfig> {
    if let Some(beta) = value.as_f64() {
        return Ok(KlControlConfig::Fixed(beta));
    }
    // a horizon is what only one of the two has
    if Fields::input("kl", value)?.get("horizon")?.is_undefined() {
        linear_kl(value).map(KlControlConfig::Linear)
    } else {
        adaptive_kl(value).map(KlControlConfig::Adaptive)
    }
}

/// What was measured in one step.
pub(crate) fn observation(value: &JsValue) -> Result<BudgetObservation> {
    let fields = Fields::input("observation", value)?;
    Ok(BudgetObservation {
        step: fields.count("step")?,
        wh_sum: fields.number("whSum")?,
        token_count: fields.count("tokenCount")?,
        reward_std: fields.number_or("rewardStd", 0.0)?,
        reward_sum_mean: fields.number_or("rewardSumMean", 0.0)?,
    })
}

impl Fields<'_> {
    /// `null` or `{ length, factor }`.
    fn follow_or(&self, key: &str, default: Option<Follow>) -> Result<Option<Follow>> {
        let value = self.get(key)?;
        if value.is_undefined() || value.is_null() {
            return Ok(default);
        }
        let (fields, usual) = (Fields::config(key, &value, &["length", "factor"])?, Follow::default());
        Ok(Some(Follow {
            length: fields.u32_or("length", usual.length)?,
            factor: fields.number_or("factor", usual.factor)?,
        }))
    }

    /// `null` or `{ low, high }`.
    fn range_or(&self, key: &str, default: Option<(f64, f64)>) -> Result<Option<(f64, f64)>> {
        let value = self.get(key)?;
        if value.is_undefined() || value.is_null() {
            return Ok(default);
        }
        let fields = Fields::config(key, &value, &["low", "high"])?;
        Ok(Some((fields.number("low")?, fields.number("high")?)))
    }

    fn source_or(&self, key: &str, default: BudgetSource) -> Result<BudgetSource> {
        let kinds: [(&str, &[&str]); 2] = [("given", &["b0"]), ("warm-up", &["steps", "rho"])];
        Ok(match tagged(key, &self.get(key)?, &kinds)? {
            Some((0, [b0, ..])) => BudgetSource::Given(b0),
            Some((_, [steps, rho, ..])) => BudgetSource::WarmUp { steps: steps as u64, rho },
            None => default,
        })
    }

    fn schedule_or(&self, key: &str, default: BudgetSchedule) -> Result<BudgetSchedule> {
        let kinds: [(&str, &[&str]); 4] = [
            ("constant", &[]),
            ("reward-std-usage", &["share", "totalSteps"]),
            ("exponential", &["alpha", "totalSteps"]),
            ("plateau", &["decay", "minDelta", "patience", "kappa", "budgetMin"]),
        ];
        Ok(match tagged(key, &self.get(key)?, &kinds)? {
            None => default,
            Some((0, _)) => BudgetSchedule::Constant,
            Some((1, [share, steps, ..])) => BudgetSchedule::RewardStdUsage { share, total_steps: steps as u64 },
            Some((2, [alpha, steps, ..])) => BudgetSchedule::Exponential { alpha, total_steps: steps as u64 },
            Some((_, [decay, min_delta, patience, kappa, budget_min])) => {
                BudgetSchedule::Plateau { decay, min_delta, patience: patience as u64, kappa, budget_min }
            }
        })
    }
}
