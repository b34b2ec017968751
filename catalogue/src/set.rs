//! The metrics that a framework logs for the tokens of a batch, under its own keys.
//!
//! Records such as the result of a policy loss are passed number by number, under dotted names.

#![allow(clippy::field_reassign_with_default, reason = "results are non-exhaustive; inputs read alike")]

use alloc::{borrow::Cow, format, vec};

use tokenwise::{
    group_scratch_len,
    loss::{PolicyLoss, ValueLoss, VespoLoss},
    metric::{
        self, Lengths, OpenRlhfConfig, OpenRlhfInput, RewardKl, RewardSource, TrlInput, TrlLoss, TrlOutput, TrlRewards,
        VerlConfig, VerlInput,
    },
    rollout::{CriterionMetrics, GateReport},
    Mask, Moments,
};

use crate::{
    entry::{formulas, list, number, sequence, size, source, text, token},
    loss::{aggregates, PROMPTS},
    rollout::take_criteria,
    Call,
    Element::{Double, Flag, Index},
    Number, Refusal,
};

aggregates! { OpenRlhfConfig }

fn lengths<'a, R: Number>(
    call: &Call<'a, R>,
    [tokens, limit]: [&'static str; 2],
) -> Result<Option<Lengths<'a>>, Refusal> {
    let Some(tokens) = call.inputs.optional_index(tokens)? else { return Ok(None) };
    let limit = u32::try_from(call.inputs.size(limit)?).unwrap_or(u32::MAX);
    Ok(Some(Lengths { tokens, limit }))
}

fn policy_loss<R: Number>(call: &Call<'_, R>) -> Result<Option<PolicyLoss>, Refusal> {
    let Some(loss) = call.inputs.optional_number("policy_loss.loss")? else { return Ok(None) };
    let mut found = PolicyLoss::default();
    found.loss = loss;
    found.clip_fraction = call.inputs.number("policy_loss.clip_fraction")?;
    found.clip_fraction_lower = call.inputs.number("policy_loss.clip_fraction_lower")?;
    found.kl = call.inputs.number("policy_loss.kl")?;
    Ok(Some(found))
}

fn value_loss<R: Number>(call: &Call<'_, R>) -> Result<Option<ValueLoss>, Refusal> {
    let Some(loss) = call.inputs.optional_number("value_loss.loss")? else { return Ok(None) };
    let mut found = ValueLoss::default();
    (found.loss, found.clip_fraction) = (loss, call.inputs.number("value_loss.clip_fraction")?);
    Ok(Some(found))
}

/// The loss that TRL logs, by its kind.
fn trl_loss<R: Number>(call: &Call<'_, R>) -> Result<Option<TrlLoss>, Refusal> {
    let Some(kind) = call.inputs.optional_text("loss.kind")? else { return Ok(None) };
    if kind == "vespo" {
        let mut found = VespoLoss::default();
        (found.loss, found.phi_mean) = (call.inputs.number("loss.loss")?, call.inputs.number("loss.phi_mean")?);
        return Ok(Some(TrlLoss::Vespo(found)));
    }
    let mut found = PolicyLoss::default();
    found.loss = call.inputs.number("loss.loss")?;
    found.clip_fraction = call.inputs.number("loss.clip_fraction")?;
    found.clip_fraction_lower = call.inputs.number("loss.clip_fraction_lower")?;
    found.kl = call.inputs.number("loss.kl")?;
    match kind {
        "clipped" => Ok(Some(TrlLoss::Clipped(found))),
        "cispo" => Ok(Some(TrlLoss::Cispo(found))),
        "sapo" => Ok(Some(TrlLoss::Sapo(found))),
        _ => Err(crate::ConfigError::unknown_choice("loss.kind", "clipped, cispo, sapo, vespo", kind).into()),
    }
}

formulas! { "metric":
    verl_metrics(
        Batch;
        token("scores").optional(),
        token("rewards").optional(),
        token("advantages").optional(),
        token("returns").optional(),
        token("values").optional(),
        token("predictions").optional(),
        token("log_probs").optional(),
        token("ref_log_probs").optional(),
        token("old_log_probs").optional(),
        token("rollout_log_probs").optional(),
        token("old_entropies").optional(),
        token("entropies").optional(),
        token("sum_pi_squared").optional(),
        token("weights").optional(),
        sequence("response_lengths.tokens").of(Index).optional(), size("response_lengths.limit").optional(),
        sequence("prompt_lengths.tokens").of(Index).optional(), size("prompt_lengths.limit").optional(),
        number("gradient_norm").optional(), number("policy_loss.loss").optional(),
        number("policy_loss.clip_fraction").optional(), number("policy_loss.clip_fraction_lower").optional(),
        number("policy_loss.kl").optional(), number("value_loss.loss").optional(),
        number("value_loss.clip_fraction").optional(), number("reward_kl.kl").optional(),
        number("reward_kl.coefficient").optional(), token("mask_before_rejection").of(Flag).optional(), PROMPTS
    ) VerlConfig -> () ["*"] |call| {
        let mut settings = call.config.clone();
        let criteria = take_criteria(settings.get_mut("rejection"))?;
        let mut config: VerlConfig<'_> = settings.read("config")?;
        call.bind(&mut config.aggregate)?;
        if let Some(rejection) = &mut config.rejection {
            rejection.criteria = &criteria;
        }
        let mut input = VerlInput::default();
        input.scores = call.optional("scores")?;
        input.rewards = call.optional("rewards")?;
        input.advantages = call.optional("advantages")?;
        input.returns = call.optional("returns")?;
        input.values = call.optional("values")?;
        input.predictions = call.optional("predictions")?;
        input.log_probs = call.optional("log_probs")?;
        input.ref_log_probs = call.optional("ref_log_probs")?;
        input.old_log_probs = call.optional("old_log_probs")?;
        input.rollout_log_probs = call.optional("rollout_log_probs")?;
        input.old_entropies = call.optional("old_entropies")?;
        input.entropies = call.optional("entropies")?;
        input.sum_pi_squared = call.optional("sum_pi_squared")?;
        input.weights = call.optional("weights")?;
        input.response_lengths = lengths(call, ["response_lengths.tokens", "response_lengths.limit"])?;
        input.prompt_lengths = lengths(call, ["prompt_lengths.tokens", "prompt_lengths.limit"])?;
        input.gradient_norm = call.inputs.optional_number("gradient_norm")?;
        input.policy_loss = policy_loss(call)?;
        input.value_loss = value_loss(call)?;
        if let Some(kl) = call.inputs.optional_number("reward_kl.kl")? {
            input.reward_kl = Some(RewardKl { kl, coefficient: call.inputs.number("reward_kl.coefficient")? });
        }
        input.mask_before_rejection = call.inputs.optional_flag("mask_before_rejection")?.map(Mask::new);
        let mut per_criterion = vec![CriterionMetrics::default(); criteria.len()];
        let metrics = metric::verl_metrics(&call.batch()?, input, &config, &mut per_criterion)?;
        call.give_entries(metrics.entries());
        Ok(())
    }
    trl_metrics(
        Batch;
        token("log_probs").optional(),
        token("old_log_probs").optional(),
        token("ref_log_probs").optional(),
        token("rollout_log_probs").optional(),
        token("weights").optional(),
        token("advantages").optional(),
        token("entropies").optional(),
        text("loss.kind").optional(), number("loss.loss").optional(), number("loss.clip_fraction").optional(),
        number("loss.clip_fraction_lower").optional(), number("loss.kl").optional(),
        number("loss.phi_mean").optional(), source("rewards.sources").optional(),
        list("rewards.source_weights").of(Double).optional(),
        sequence("completion_lengths").of(Index).optional(), sequence("truncated").of(Flag).optional(),
        sequence("prompt_lengths").of(Index).optional()
    ) TrlConfig -> () ["*"] |call| {
        let mut input = TrlInput::default();
        input.log_probs = call.optional("log_probs")?;
        input.old_log_probs = call.optional("old_log_probs")?;
        input.ref_log_probs = call.optional("ref_log_probs")?;
        input.rollout_log_probs = call.optional("rollout_log_probs")?;
        input.weights = call.optional("weights")?;
        input.advantages = call.optional("advantages")?;
        input.entropies = call.optional("entropies")?;
        input.loss = trl_loss(call)?;
        if let Some(sources) = call.optional("rewards.sources")? {
            let source_weights = call.inputs.double("rewards.source_weights")?;
            input.rewards = Some(TrlRewards { groups: call.groups()?, sources, source_weights });
        }
        input.completion_lengths = call.inputs.optional_index("completion_lengths")?;
        input.truncated = call.inputs.optional_flag("truncated")?;
        input.prompt_lengths = call.inputs.optional_index("prompt_lengths")?;
        let rewards = input.rewards;
        let mut per_source = vec![RewardSource::default(); rewards.map_or(0, |found| found.source_weights.len())];
        let mut scratch = vec![Moments::default(); rewards.map_or(0, |found| group_scratch_len(&found.groups))];
        let output = TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
        let metrics = metric::trl_metrics(&call.batch()?, input, &call.config()?, output)?;
        call.give_entries(metrics.entries());
        for (place, found) in metrics.sources.iter().enumerate() {
            call.numbers.push((Cow::Owned(format!("rewards/{place}/mean")), found.mean));
            call.numbers.push((Cow::Owned(format!("rewards/{place}/std")), found.std));
        }
        Ok(())
    }
    openrlhf_metrics(
        Batch;
        token("log_probs").optional(),
        token("ref_log_probs").optional(),
        token("entropies").optional(),
        token("rewards").optional(),
        token("predictions").optional(),
        sequence("scores").optional(), sequence("total_lengths.tokens").of(Index).optional(),
        size("total_lengths.limit").optional(), sequence("truncated").of(Flag).optional(),
        number("policy_loss.loss").optional(), number("policy_loss.clip_fraction").optional(),
        number("policy_loss.clip_fraction_lower").optional(), number("policy_loss.kl").optional(),
        number("gate.filtered").optional(), number("gate.kl").optional(), number("value_loss.loss").optional(),
        number("value_loss.clip_fraction").optional(), PROMPTS
    ) OpenRlhfConfig -> () ["*"] |call| {
        let mut input = OpenRlhfInput::default();
        input.log_probs = call.optional("log_probs")?;
        input.ref_log_probs = call.optional("ref_log_probs")?;
        input.entropies = call.optional("entropies")?;
        input.rewards = call.optional("rewards")?;
        input.predictions = call.optional("predictions")?;
        input.scores = call.optional("scores")?;
        input.groups = call.groups;
        input.total_lengths = lengths(call, ["total_lengths.tokens", "total_lengths.limit"])?;
        input.truncated = call.inputs.optional_flag("truncated")?;
        input.policy_loss = policy_loss(call)?;
        if let Some(filtered) = call.inputs.optional_number("gate.filtered")? {
            let mut gate = GateReport::default();
            (gate.filtered, gate.kl) = (filtered, call.inputs.number("gate.kl")?);
            input.gate = Some(gate);
        }
        input.value_loss = value_loss(call)?;
        let config = call.loss_config::<OpenRlhfConfig<'_>>()?;
        let mut scratch = vec![Moments::default(); input.groups.as_ref().map_or(0, group_scratch_len)];
        let metrics = metric::openrlhf_metrics(&call.batch()?, input, &config, &mut scratch)?;
        call.give_entries(metrics.entries());
        Ok(())
    }
}
