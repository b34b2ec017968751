//! Recursions over the tokens of a sequence.

use tokenwise::advantage as core;
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::Real,
    call::{arrays, call, call_one, Size},
    config,
    error::Result,
    export::export,
    object::{object, Fields},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("trace.ts");

export! {
    #[cfg(feature = "full")]
    REST = 9;
    gae_decoupled(batch, input, config) => gaeDecoupled, gaeDecoupledF64;
    td_lambda(batch, input, config) => tdLambda, tdLambdaF64;
    n_step_returns(batch, input, config) => nStepReturns, nStepReturnsF64;
    upgo(batch, input) => upgo, upgoF64;
    vtrace(batch, input, config) => vtrace, vtraceF64;
    retrace(batch, input, config) => retrace, retraceF64;
    puffer_advantage(batch, input, config) => pufferAdvantage, pufferAdvantageF64;
    remax(batch, input) => remax, remaxF64;
    reinforce_plus_plus(batch, input, config) => reinforcePlusPlus, reinforcePlusPlusF64;
    opd_advantage(batch, input, config) => opdAdvantage, opdAdvantageF64;
    minillm_advantage(batch, input, config) => minillmAdvantage, minillmAdvantageF64;
}

const VALUED: [&str; 3] = ["rewards", "values", "bootstrap"];

fn gae_decoupled<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::gae_decoupled(config)?;
    let inputs = arrays::<R, 3>(input, VALUED)?;
    let [advantages, returns] =
        call(batch, inputs, Size::Tokens, &mut |batch, [rewards, values, bootstrap], [advantages, returns]| {
            let input = core::GaeInput { rewards, values, bootstrap };
            core::gae_decoupled(batch, input, &config, core::GaeOutput { advantages, returns })
        })?;
    object([("advantages", advantages), ("returns", returns)])
}

fn td_lambda<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::td_lambda(config)?;
    td::<R>(batch, input, &mut |batch, input, out| core::td_lambda(batch, input, &config, out))
}

fn n_step_returns<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::n_step(config)?;
    td::<R>(batch, input, &mut |batch, input, out| core::n_step_returns(batch, input, &config, out))
}

fn upgo<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    td::<R>(batch, input, &mut |batch, input, out| core::upgo(batch, input, out))
}

type TdKernel<'k, R> =
    &'k mut dyn FnMut(&tokenwise::Batch<'_>, core::TdInput<'_, R>, &mut [R]) -> tokenwise::Result<()>;

fn td<R: Real>(batch: &JsValue, input: &JsValue, kernel: TdKernel<'_, R>) -> Result<JsValue> {
    let inputs = arrays::<R, 3>(input, VALUED)?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [rewards, values, bootstrap], [out]| {
        kernel(batch, core::TdInput { rewards, values, bootstrap }, out)
    })
}

fn vtrace<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::vtrace(config)?;
    let inputs = arrays::<R, 5>(input, ["rewards", "values", "bootstrap", "logProbs", "oldLogProbs"])?;
    let [targets, advantages] = call(batch, inputs, Size::Tokens, &mut |batch, inputs, [targets, advantages]| {
        let [rewards, values, bootstrap, log_probs, old_log_probs] = inputs;
        let input = core::VtraceInput { rewards, values, bootstrap, log_probs, old_log_probs };
        core::vtrace(batch, input, &config, core::VtraceOutput { targets, advantages })
    })?;
    object([("targets", targets), ("advantages", advantages)])
}

fn retrace<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::retrace(config)?;
    let keys = ["rewards", "values", "actionValues", "bootstrap", "logProbs", "oldLogProbs"];
    call_one(batch, arrays::<R, 6>(input, keys)?, Size::Tokens, &mut |batch, inputs, [out]| {
        let [rewards, values, action_values, bootstrap, log_probs, old_log_probs] = inputs;
        let input = core::RetraceInput { rewards, values, action_values, bootstrap, log_probs, old_log_probs };
        core::retrace(batch, input, &config, out)
    })
}

fn puffer_advantage<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::puffer(config)?;
    let inputs = arrays::<R, 4>(input, ["rewards", "values", "bootstrap", "ratios"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [rewards, values, bootstrap, ratios], [out]| {
        core::puffer_advantage(batch, core::PufferInput { rewards, values, bootstrap, ratios }, &config, out)
    })
}

fn remax<R: Real>(batch: &JsValue, input: &JsValue) -> Result<JsValue> {
    let inputs = arrays::<R, 2>(input, ["rewards", "baselines"])?;
    let [advantages, returns] =
        call(batch, inputs, Size::Tokens, &mut |batch, [rewards, baselines], [advantages, returns]| {
            core::remax(batch, core::RemaxInput { rewards, baselines }, core::RemaxOutput { advantages, returns })
        })?;
    object([("advantages", advantages), ("returns", returns)])
}

fn reinforce_plus_plus<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::reinforce_plus_plus(config)?;
    let inputs = arrays::<R, 2>(input, ["rewards", "bootstrap"])?;
    let [advantages, returns] =
        call(batch, inputs, Size::Tokens, &mut |batch, [rewards, bootstrap], [advantages, returns]| {
            let (input, output) =
                (core::ReturnsInput { rewards, bootstrap }, core::ReinforcePlusPlusOutput { advantages, returns });
            core::reinforce_plus_plus(batch, input, &config, output)
        })?;
    object([("advantages", advantages), ("returns", returns)])
}

fn opd_advantage<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::opd(config)?;
    let advantages = Fields::input("input", input)?.optional_array::<R>("advantages")?;
    let inputs = arrays::<R, 2>(input, ["teacherLogProbs", "oldLogProbs"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [teacher_log_probs, old_log_probs], [out]| {
        let input = core::OpdInput { teacher_log_probs, old_log_probs, advantages: advantages.as_deref() };
        core::opd_advantage(batch, input, &config, out)
    })
}

fn minillm_advantage<R: Real>(batch: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let config = config::minillm(config)?;
    let inputs = arrays::<R, 2>(input, ["teacherLogProbs", "oldLogProbs"])?;
    call_one(batch, inputs, Size::Tokens, &mut |batch, [teacher_log_probs, old_log_probs], [out]| {
        core::minillm_advantage(batch, core::MinillmInput { teacher_log_probs, old_log_probs }, &config, out)
    })
}
