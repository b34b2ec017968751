//! Log-probabilities of trainer and sampler to importance weights and masks.

use alloc::{borrow::Cow, vec, vec::Vec};

use tokenwise::{
    group_scratch_len,
    rollout::{self, Criterion, CriterionMetrics, EosInput, OffPolicyInput, RejectionConfig, RolloutInput},
    Moments,
};

use crate::{
    entry::{formulas, list, sequence, size, token, Column, Kind},
    Call,
    Element::{Double, Flag, Index},
    Number, Refusal, Value,
};

const TRAINER_AND_SAMPLER: [Column; 2] = [token("old_log_probs"), token("rollout_log_probs")];
const OLD: Column = TRAINER_AND_SAMPLER[0];
const SAMPLER: Column = TRAINER_AND_SAMPLER[1];

/// One flag per group.
const fn group_flags(name: &'static str) -> Column {
    let mut column = sequence(name).of(Flag);
    column.kind = Kind::Group;
    column
}

fn input<'a, R: Number>(call: &Call<'a, R>) -> Result<RolloutInput<'a, R>, Refusal> {
    Ok(RolloutInput { old_log_probs: call.real("old_log_probs")?, rollout_log_probs: call.real("rollout_log_probs")? })
}

/// Takes the criteria out of the config of a rejection, because a config of the core only borrows them.
pub(crate) fn take_criteria(rejection: Option<&mut Value>) -> Result<Vec<Criterion>, Refusal> {
    match rejection.and_then(|rejection| rejection.take("criteria")) {
        Some(criteria) => Ok(criteria.read("criteria")?),
        None => Ok(Vec::new()),
    }
}

impl<R: Number> Call<'_, R> {
    /// Adds a report to the results, under its own keys.
    pub(crate) fn give_entries(&mut self, entries: impl IntoIterator<Item = (&'static str, f64)>) {
        self.numbers.extend(entries.into_iter().map(|(key, value)| (Cow::Borrowed(key), value)));
    }
}

formulas! { "rollout":
    rollout_weights(Batch; OLD, SAMPLER) RolloutConfig -> (token("weights")) ["factor"] |call| {
        let (batch, config) = (call.batch()?, call.config()?);
        let factor = rollout::rollout_weights(&batch, input(call)?, &config, call.outputs.real_mut("weights")?)?;
        call.give([("factor", factor)]);
        Ok(())
    }
    rollout_weight_metrics(Batch; OLD, SAMPLER) RolloutConfig -> () ["*"] |call| {
        let metrics = rollout::rollout_weight_metrics(&call.batch()?, input(call)?, &call.config()?)?;
        call.give_entries(metrics.entries());
        Ok(())
    }
    rollout_mismatch(Batch; OLD, SAMPLER) MeanConfig -> () ["*"] |call| {
        let metrics = rollout::rollout_mismatch(&call.batch()?, input(call)?, &call.config()?)?;
        call.give_entries(metrics.entries());
        Ok(())
    }
    probability_difference(Batch; OLD, SAMPLER) -> () ["*"] |call| {
        let metrics = rollout::probability_difference(&call.batch()?, input(call)?)?;
        call.give_entries(metrics.entries());
        Ok(())
    }
    rollout_rejection(Batch; OLD, SAMPLER) RejectionConfig -> (token("keep").of(Flag)) [] |call| {
        let (batch, mut settings) = (call.batch()?, call.config.clone());
        let criteria = take_criteria(Some(&mut settings))?;
        let config = RejectionConfig { criteria: &criteria, ..settings.read("config")? };
        Ok(rollout::rollout_rejection(&batch, input(call)?, &config, call.outputs.flag_mut("keep")?)?)
    }
    rollout_rejection_metrics(Batch; OLD, SAMPLER) RejectionConfig -> () ["*"] |call| {
        let (batch, mut settings) = (call.batch()?, call.config.clone());
        let criteria = take_criteria(Some(&mut settings))?;
        let config = RejectionConfig { criteria: &criteria, ..settings.read("config")? };
        let mut per_criterion = vec![CriterionMetrics::default(); criteria.len()];
        let totals = rollout::rollout_rejection_metrics(&batch, input(call)?, &config, &mut per_criterion)?;
        call.give_entries(per_criterion.iter().flat_map(CriterionMetrics::entries));
        call.give_entries(totals.entries());
        Ok(())
    }
    rollout_gate(Batch; OLD, SAMPLER) GateConfig -> (token("weights")) ["filtered", "kl"] |call| {
        let (batch, config) = (call.batch()?, call.config()?);
        let report = rollout::rollout_gate(&batch, input(call)?, &config, call.outputs.real_mut("weights")?)?;
        call.give([("filtered", report.filtered), ("kl", report.kl)]);
        Ok(())
    }
    kl_mask(Batch; OLD, SAMPLER) KlMaskConfig -> (token("keep").of(Flag)) [] |call| {
        Ok(rollout::kl_mask(&call.batch()?, input(call)?, &call.config()?, call.outputs.flag_mut("keep")?)?)
    }
    sequence_veto(Batch; OLD, SAMPLER) VetoConfig -> (token("keep").of(Flag)) [] |call| {
        Ok(rollout::sequence_veto(&call.batch()?, input(call)?, &call.config()?, call.outputs.flag_mut("keep")?)?)
    }
    m2po_mask(Batch; OLD, SAMPLER) M2poConfig -> (token("keep").of(Flag)) [] |call| {
        let (batch, config) = (call.batch()?, call.config()?);
        let mut scratch = vec![0.0; rollout::m2po_scratch_len(&batch)];
        Ok(rollout::m2po_mask(&batch, input(call)?, &config, &mut scratch, call.outputs.flag_mut("keep")?)?)
    }
    off_policy_sequence_mask(Batch; token("log_probs"), token("old_log_probs"), token("advantages")) OffPolicyConfig
        -> (token("keep").of(Flag)) [] |call|
    {
        let input = OffPolicyInput {
            log_probs: call.real("log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
            advantages: call.real("advantages")?,
        };
        let (batch, config) = (call.batch()?, call.config()?);
        Ok(rollout::off_policy_sequence_mask(&batch, input, &config, call.outputs.flag_mut("keep")?)?)
    }
    high_entropy_mask(Batch; token("entropies")) HighEntropyConfig -> (token("keep").of(Flag)) [] |call| {
        let (batch, entropies, config) = (call.batch()?, call.real("entropies")?, call.config()?);
        Ok(rollout::high_entropy_mask(&batch, entropies, &config, call.outputs.flag_mut("keep")?)?)
    }
    dynamic_sampling_filter(Groups; sequence("scores")) GroupRule -> (group_flags("keep")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.rule()?);
        let mut scratch = vec![Moments::default(); group_scratch_len(&groups)];
        let keep = call.outputs.flag_mut("keep")?;
        Ok(rollout::dynamic_sampling_filter(&groups, scores, &config, &mut scratch, keep)?)
    }
    pf_ppo_weights(Sequences; sequence("scores")) PfPpoRule -> (sequence("weights").of(Double)) [] |call| {
        Ok(rollout::pf_ppo_weights(call.real("scores")?, &call.rule()?, call.outputs.double_mut("weights")?)?)
    }
    pf_ppo_indices(Sequences; sequence("weights").of(Double), size("draws")) ResampleConfig
        -> (list("indices").of(Index)) [] |call|
    {
        let (weights, config) = (call.inputs.double("weights")?, call.config()?);
        let mut scratch = vec![0.0; rollout::pf_ppo_scratch_len(weights)];
        Ok(rollout::pf_ppo_indices(weights, &config, &mut scratch, call.outputs.index_mut("indices")?)?)
    }
    response_mask_from_eos(Layout; token("tokens").of(Index), list("eos").of(Index))
        -> (token("keep").of(Flag)) [] |call|
    {
        let input = EosInput { tokens: call.inputs.index("tokens")?, eos: call.inputs.index("eos")? };
        Ok(rollout::response_mask_from_eos(&call.batch()?.layout(), input, call.outputs.flag_mut("keep")?)?)
    }
}
