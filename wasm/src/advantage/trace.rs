//! Recursions over the tokens of a sequence.

use tokenwise::{advantage as core, Either};
use wasm_bindgen::prelude::wasm_bindgen;

use super::{gae_input, returns_input};
use crate::{call::Call, error::Result, export::export, read::read};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("trace.ts");

export! {
    #[cfg(feature = "full")]
    REST = 9;
    gae_decoupled(batch:batch, input{rewards, values, bootstrap}, config:GaeDecoupledConfig)
        -> (advantages:T, returns:T) => gaeDecoupled, gaeDecoupledF64;
    td_lambda(batch:batch, input{rewards, values, bootstrap}, config:TdLambdaConfig) -> (:T) => tdLambda, tdLambdaF64;
    n_step_returns(batch:batch, input{rewards, values, bootstrap}, config:NStepConfig) -> (:T)
        => nStepReturns, nStepReturnsF64;
    upgo(batch:batch, input{rewards, values, bootstrap}) -> (:T) => upgo, upgoF64;
    vtrace(batch:batch, input{rewards, values, bootstrap, log_probs, old_log_probs}, config:VtraceConfig)
        -> (targets:T, advantages:T) => vtrace, vtraceF64;
    retrace(
        batch:batch, input{rewards, values, action_values, bootstrap, log_probs, old_log_probs}, config:RetraceConfig)
        -> (:T) => retrace, retraceF64;
    puffer_advantage(batch:batch, input{rewards, values, bootstrap, ratios}, config:PufferConfig) -> (:T)
        => pufferAdvantage, pufferAdvantageF64;
    remax(batch:batch, input{rewards, baselines}) -> (advantages:T, returns:T) => remax, remaxF64;
    reinforce_plus_plus(batch:batch, input{rewards, bootstrap}, config:ReinforcePlusPlusConfig)
        -> (advantages:T, returns:T) => reinforcePlusPlus, reinforcePlusPlusF64;
    opd_advantage(batch:batch, input{advantages?, teacher_log_probs, old_log_probs}, config:OpdConfig) -> (:T)
        => opdAdvantage, opdAdvantageF64;
    minillm_advantage(batch:batch, input{teacher_log_probs, old_log_probs}, config:MinillmConfig) -> (:T)
        => minillmAdvantage, minillmAdvantageF64;
}

fn gae_decoupled(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), gae_input(call));
    core::gae_decoupled(call.batch, input, &config, core::GaeOutput { advantages: call.real(), returns: call.real() })
}

fn td_input<'a>(call: &mut Call<'a>) -> core::TdInput<'a, Either> {
    core::TdInput { rewards: call.real(), values: call.real(), bootstrap: call.real() }
}

fn td_lambda(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), td_input(call));
    core::td_lambda(call.batch, input, &config, call.real())
}

fn n_step_returns(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), td_input(call));
    core::n_step_returns(call.batch, input, &config, call.real())
}

fn upgo(call: &mut Call<'_>) -> Result {
    let input = td_input(call);
    core::upgo(call.batch, input, call.real())
}

fn vtrace(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::VtraceInput {
        rewards: call.real(),
        values: call.real(),
        bootstrap: call.real(),
        log_probs: call.real(),
        old_log_probs: call.real(),
    };
    core::vtrace(call.batch, input, &config, core::VtraceOutput { targets: call.real(), advantages: call.real() })
}

fn retrace(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::RetraceInput {
        rewards: call.real(),
        values: call.real(),
        action_values: call.real(),
        bootstrap: call.real(),
        log_probs: call.real(),
        old_log_probs: call.real(),
    };
    core::retrace(call.batch, input, &config, call.real())
}

fn puffer_advantage(call: &mut Call<'_>) -> Result {
    let config = read();
    let input =
        core::PufferInput { rewards: call.real(), values: call.real(), bootstrap: call.real(), ratios: call.real() };
    core::puffer_advantage(call.batch, input, &config, call.real())
}

fn remax(call: &mut Call<'_>) -> Result {
    let input = core::RemaxInput { rewards: call.real(), baselines: call.real() };
    core::remax(call.batch, input, core::RemaxOutput { advantages: call.real(), returns: call.real() })
}

fn reinforce_plus_plus(call: &mut Call<'_>) -> Result {
    let (config, input) = (read(), returns_input(call));
    let output = core::ReinforcePlusPlusOutput { advantages: call.real(), returns: call.real() };
    core::reinforce_plus_plus(call.batch, input, &config, output)
}

fn opd_advantage(call: &mut Call<'_>) -> Result {
    let (config, advantages) = (read(), call.optional_real());
    let input = core::OpdInput { teacher_log_probs: call.real(), old_log_probs: call.real(), advantages };
    core::opd_advantage(call.batch, input, &config, call.real())
}

fn minillm_advantage(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::MinillmInput { teacher_log_probs: call.real(), old_log_probs: call.real() };
    core::minillm_advantage(call.batch, input, &config, call.real())
}
