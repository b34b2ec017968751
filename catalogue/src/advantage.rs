//! Rewards and values to advantages and returns, sequence by sequence.

use tokenwise::advantage::{self, GaeInput, GaeOutput, ReturnsInput};
#[cfg(feature = "full")]
use tokenwise::advantage::{
    AttentionInput, MinillmInput, OpdInput, PufferInput, ReinforcePlusPlusOutput, RemaxInput, RemaxOutput,
    RetraceInput, TdInput, VtraceInput, VtraceOutput,
};

use crate::{
    entry::{formulas, sequence, token},
    Call, Number, Refusal,
};

fn gae_input<'a, R: Number>(call: &Call<'a, R>) -> Result<GaeInput<'a, R>, Refusal> {
    let (rewards, values) = (call.real("rewards")?, call.real("values")?);
    Ok(GaeInput { rewards, values, bootstrap: call.real("bootstrap")? })
}

fn returns_input<'a, R: Number>(call: &Call<'a, R>) -> Result<ReturnsInput<'a, R>, Refusal> {
    Ok(ReturnsInput { rewards: call.real("rewards")?, bootstrap: call.real("bootstrap")? })
}

#[cfg(feature = "full")]
fn td_input<'a, R: Number>(call: &Call<'a, R>) -> Result<TdInput<'a, R>, Refusal> {
    let (rewards, values) = (call.real("rewards")?, call.real("values")?);
    Ok(TdInput { rewards, values, bootstrap: call.real("bootstrap")? })
}

formulas! { "advantage":
    discounted_returns(Batch; token("rewards"), sequence("bootstrap")) ReturnsConfig -> (token("returns")) [] |call| {
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(advantage::discounted_returns(&batch, returns_input(call)?, &config, call.outputs.real_mut("returns")?)?)
    }
    gae(Batch; token("rewards"), token("values"), sequence("bootstrap")) GaeConfig
        -> (token("advantages"), token("returns")) [] |call|
    {
        let (batch, input, config) = (call.batch()?, gae_input(call)?, call.config()?);
        let [advantages, returns] = call.outputs.reals_mut(["advantages", "returns"])?;
        Ok(advantage::gae(&batch, input, &config, GaeOutput { advantages, returns })?)
    }
    whiten(Batch; token("values")) WhitenConfig -> (token("out")) [] |call| {
        Ok(advantage::whiten(&call.batch()?, call.real("values")?, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    gae_decoupled(Batch; token("rewards"), token("values"), sequence("bootstrap")) GaeDecoupledConfig
        -> (token("advantages"), token("returns")) [] |call|
    {
        let (batch, input, config) = (call.batch()?, gae_input(call)?, call.config()?);
        let [advantages, returns] = call.outputs.reals_mut(["advantages", "returns"])?;
        Ok(advantage::gae_decoupled(&batch, input, &config, GaeOutput { advantages, returns })?)
    }
    #[cfg(feature = "full")]
    monte_carlo_advantage(Batch; token("rewards"), token("values"), sequence("bootstrap")) ReturnsConfig
        -> (token("advantages"), token("returns")) [] |call|
    {
        let (batch, input, config) = (call.batch()?, gae_input(call)?, call.config()?);
        let [advantages, returns] = call.outputs.reals_mut(["advantages", "returns"])?;
        Ok(advantage::monte_carlo_advantage(&batch, input, &config, GaeOutput { advantages, returns })?)
    }
    #[cfg(feature = "full")]
    td_lambda(Batch; token("rewards"), token("values"), sequence("bootstrap")) TdLambdaConfig
        -> (token("returns")) [] |call|
    {
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(advantage::td_lambda(&batch, td_input(call)?, &config, call.outputs.real_mut("returns")?)?)
    }
    #[cfg(feature = "full")]
    n_step_returns(Batch; token("rewards"), token("values"), sequence("bootstrap")) NStepConfig
        -> (token("returns")) [] |call|
    {
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(advantage::n_step_returns(&batch, td_input(call)?, &config, call.outputs.real_mut("returns")?)?)
    }
    #[cfg(feature = "full")]
    upgo(Batch; token("rewards"), token("values"), sequence("bootstrap")) -> (token("returns")) [] |call| {
        Ok(advantage::upgo(&call.batch()?, td_input(call)?, call.outputs.real_mut("returns")?)?)
    }
    #[cfg(feature = "full")]
    vtrace(
        Batch; token("rewards"), token("values"), sequence("bootstrap"), token("log_probs"), token("old_log_probs")
    ) VtraceConfig -> (token("targets"), token("advantages")) [] |call| {
        let input = VtraceInput {
            rewards: call.real("rewards")?,
            values: call.real("values")?,
            bootstrap: call.real("bootstrap")?,
            log_probs: call.real("log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        let [targets, advantages] = call.outputs.reals_mut(["targets", "advantages"])?;
        Ok(advantage::vtrace(&batch, input, &config, VtraceOutput { targets, advantages })?)
    }
    #[cfg(feature = "full")]
    retrace(
        Batch;
        token("rewards"), token("values"), token("action_values"), sequence("bootstrap"), token("log_probs"),
        token("old_log_probs")
    ) RetraceConfig -> (token("targets")) [] |call| {
        let input = RetraceInput {
            rewards: call.real("rewards")?,
            values: call.real("values")?,
            action_values: call.real("action_values")?,
            bootstrap: call.real("bootstrap")?,
            log_probs: call.real("log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
        };
        Ok(advantage::retrace(&call.batch()?, input, &call.config()?, call.outputs.real_mut("targets")?)?)
    }
    #[cfg(feature = "full")]
    puffer_advantage(Batch; token("rewards"), token("values"), sequence("bootstrap"), token("ratios")) PufferConfig
        -> (token("advantages")) [] |call|
    {
        let input = PufferInput {
            rewards: call.real("rewards")?,
            values: call.real("values")?,
            bootstrap: call.real("bootstrap")?,
            ratios: call.real("ratios")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(advantage::puffer_advantage(&batch, input, &config, call.outputs.real_mut("advantages")?)?)
    }
    #[cfg(feature = "full")]
    remax(Batch; token("rewards"), sequence("baselines")) -> (token("advantages"), token("returns")) [] |call| {
        let (batch, rewards) = (call.batch()?, call.real("rewards")?);
        let input = RemaxInput { rewards, baselines: call.real("baselines")? };
        let [advantages, returns] = call.outputs.reals_mut(["advantages", "returns"])?;
        Ok(advantage::remax(&batch, input, RemaxOutput { advantages, returns })?)
    }
    #[cfg(feature = "full")]
    reinforce_plus_plus(Batch; token("rewards"), sequence("bootstrap")) ReinforcePlusPlusConfig
        -> (token("advantages"), token("returns")) [] |call|
    {
        let (batch, input, config) = (call.batch()?, returns_input(call)?, call.config()?);
        let [advantages, returns] = call.outputs.reals_mut(["advantages", "returns"])?;
        Ok(advantage::reinforce_plus_plus(&batch, input, &config, ReinforcePlusPlusOutput { advantages, returns })?)
    }
    #[cfg(feature = "full")]
    opd_advantage(Batch; token("teacher_log_probs"), token("old_log_probs"), token("advantages").optional()) OpdConfig
        -> (token("advantages")) [] |call|
    {
        let input = OpdInput {
            teacher_log_probs: call.real("teacher_log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
            advantages: call.optional("advantages")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(advantage::opd_advantage(&batch, input, &config, call.outputs.real_mut("advantages")?)?)
    }
    #[cfg(feature = "full")]
    minillm_advantage(Batch; token("teacher_log_probs"), token("old_log_probs")) MinillmConfig
        -> (token("advantages")) [] |call|
    {
        let input = MinillmInput {
            teacher_log_probs: call.real("teacher_log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(advantage::minillm_advantage(&batch, input, &config, call.outputs.real_mut("advantages")?)?)
    }
    #[cfg(feature = "full")]
    uniform_credit(Batch; sequence("scores")) -> (token("out")) [] |call| {
        Ok(advantage::uniform_credit(&call.batch()?, call.real("scores")?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    last_k_credit(Batch; sequence("scores")) LastKConfig -> (token("out")) [] |call| {
        let (batch, scores, config) = (call.batch()?, call.real("scores")?, call.config()?);
        Ok(advantage::last_k_credit(&batch, scores, &config, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    attention_credit(Batch; sequence("scores"), token("weights")) -> (token("out")) [] |call| {
        let input = AttentionInput { scores: call.real("scores")?, weights: call.real("weights")? };
        Ok(advantage::attention_credit(&call.batch()?, input, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    broadcast(Batch; sequence("values")) -> (token("out")) [] |call| {
        Ok(advantage::broadcast(&call.batch()?, call.real("values")?, call.outputs.real_mut("out")?)?)
    }
    sequence_sums(Batch; token("rewards")) -> (sequence("out")) [] |call| {
        Ok(advantage::sequence_sums(&call.batch()?, call.real("rewards")?, call.outputs.real_mut("out")?)?)
    }
}
