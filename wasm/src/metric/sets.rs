//! All that a framework logs for a batch, as one object by its keys.

use alloc::vec::Vec;

use tokenwise::{
    loss::{PolicyLoss, ValueLoss, VespoLoss},
    metric as core,
    rollout::{CriterionMetrics, GateReport, RejectionConfig},
    Mask, Moments,
};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    config,
    error::Result,
    export::export,
    js,
    put::{entries, numbers},
    read::{number, present, read, size, Read},
    rollout::text,
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("sets.ts");

// any field may be missing; others are refused, for a slip would leave out keys without a word
declare!(
    "config VerlInput scores?,rewards?,advantages?,returns?,values?,predictions?,log_probs?,ref_log_probs?,",
    "old_log_probs?,rollout_log_probs?,old_entropies?,entropies?,sum_pi_squared?,weights?,",
    "response_lengths??{tokens:words,limit:size},prompt_lengths??{tokens:words,limit:size},gradient_norm??:number,",
    "policy_loss??{loss:number,clip_fraction:number,clip_fraction_lower:number,kl:number},",
    "value_loss??{loss:number,clip_fraction:number},reward_kl??{kl:number,coefficient:number},",
    "mask_before_rejection?:flags"
);
declare!(
    "config VerlConfig aggregate?:aggregate,divisor?:Divisor,kl?:KlConfig,kl_coefficient?:number,",
    "entropy_coefficient?:number,rollout_weights??:RolloutConfig,rejection??:RejectionConfig"
);
declare!(
    "config TrlInput log_probs?,old_log_probs?,ref_log_probs?,rollout_log_probs?,weights?,advantages?,entropies?,",
    "loss??:trl_loss,rewards??:trl_rewards,completion_lengths?:words,truncated?:flags,prompt_lengths?:words"
);
declare!(
    "config OpenRlhfInput log_probs?,ref_log_probs?,entropies?,rewards?,predictions?,scores?,groups??:groups,",
    "total_lengths??{tokens:words,limit:size},truncated?:flags,",
    "policy_loss??{loss:number,clip_fraction:number,clip_fraction_lower:number,kl:number},",
    "gate??{filtered:number,kl:number},value_loss??{loss:number,clip_fraction:number}"
);
declare!("config OpenRlhfConfig aggregate?:aggregate,kl?:KlConfig,kl_use?:KlUse");

export! {
    #[cfg(feature = "full")]
    REST = 20;
    verl_metrics(batch:batch, input:VerlInput, config:VerlConfig) -> (*) => verlMetrics, verlMetricsF64;
    trl_metrics(batch:batch, input:TrlInput, config:TrlConfig) -> (:named) => trlMetrics, trlMetricsF64;
    openrlhf_metrics(batch:batch, input:OpenRlhfInput, config:OpenRlhfConfig) -> (*)
        => openrlhfMetrics, openrlhfMetricsF64;
    reduce_metric(key:text, values:doubles, global_counts?:boolean) -> () => reduceMetric;
}

#[inline(never)]
fn lengths<'a>(call: &mut Call<'a>) -> Option<core::Lengths<'a>> {
    present().then(|| core::Lengths { tokens: call.words(), limit: size() as u32 })
}

#[inline(never)]
fn policy() -> PolicyLoss {
    PolicyLoss { loss: number(), clip_fraction: number(), clip_fraction_lower: number(), kl: number() }
}

fn value() -> ValueLoss {
    ValueLoss { loss: number(), clip_fraction: number() }
}

fn verl_metrics(call: &mut Call<'_>) -> Result {
    let usual = core::VerlConfig::default();
    let (aggregate, divisor, kl) = (call.aggregate(usual.aggregate), read(), Read::read(usual.kl));
    let (kl_coefficient, entropy_coefficient) =
        (Read::read(usual.kl_coefficient), Read::read(usual.entropy_coefficient));
    let rollout_weights = present().then(read);
    let criteria = present().then(config::criteria);
    let rejection = criteria.as_deref().map(|criteria| RejectionConfig { criteria, divisor: read() });
    let config =
        core::VerlConfig { aggregate, divisor, kl, kl_coefficient, entropy_coefficient, rollout_weights, rejection };
    let input = core::VerlInput {
        scores: call.optional_real(),
        rewards: call.optional_real(),
        advantages: call.optional_real(),
        returns: call.optional_real(),
        values: call.optional_real(),
        predictions: call.optional_real(),
        log_probs: call.optional_real(),
        ref_log_probs: call.optional_real(),
        old_log_probs: call.optional_real(),
        rollout_log_probs: call.optional_real(),
        old_entropies: call.optional_real(),
        entropies: call.optional_real(),
        sum_pi_squared: call.optional_real(),
        weights: call.optional_real(),
        response_lengths: lengths(call),
        prompt_lengths: lengths(call),
        gradient_norm: present().then(number),
        policy_loss: present().then(policy),
        value_loss: present().then(value),
        reward_kl: present().then(|| core::RewardKl { kl: number(), coefficient: number() }),
        mask_before_rejection: call.optional_flags().map(|flags| Mask::new(flags)),
    };
    let mut criteria: Vec<CriterionMetrics> = zeros(config.rejection.map_or(0, |rejection| rejection.criteria.len()));
    entries(core::verl_metrics(call.batch, input, &config, &mut criteria)?.entries());
    Ok(())
}

fn loss() -> core::TrlLoss {
    match size() {
        0 => core::TrlLoss::Clipped(policy()),
        1 => core::TrlLoss::Cispo(policy()),
        2 => core::TrlLoss::Sapo(policy()),
        _ => core::TrlLoss::Vespo(VespoLoss { loss: number(), phi_mean: number() }),
    }
}

/// The scores of each reward function and the weight of each; JavaScript knows what they are called.
fn rewards<'a>(call: &mut Call<'a>) -> Result<Option<core::TrlRewards<'a, tokenwise::Either>>> {
    if !present() {
        return Ok(None);
    }
    Ok(Some(core::TrlRewards { groups: call.groups()?, sources: call.real(), source_weights: call.double() }))
}

fn trl_metrics(call: &mut Call<'_>) -> Result {
    let config = read();
    let input = core::TrlInput {
        log_probs: call.optional_real(),
        old_log_probs: call.optional_real(),
        ref_log_probs: call.optional_real(),
        rollout_log_probs: call.optional_real(),
        weights: call.optional_real(),
        advantages: call.optional_real(),
        entropies: call.optional_real(),
        loss: present().then(loss),
        rewards: rewards(call)?,
        completion_lengths: call.optional_words(),
        truncated: call.optional_flags().map(|flags| &*flags),
        prompt_lengths: call.optional_words(),
    };
    let rewards = input.rewards;
    let mut per_source: Vec<core::RewardSource> = zeros(rewards.map_or(0, |found| found.source_weights.len()));
    let mut scratch: Vec<Moments> = zeros(rewards.map_or(0, |found| found.groups.count()));
    let output = core::TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
    let found = core::trl_metrics(call.batch, input, &config, output)?;
    entries(found.entries());
    js::null();
    for source in found.sources {
        numbers(&[source.mean, source.std]);
    }
    Ok(())
}

fn openrlhf_metrics(call: &mut Call<'_>) -> Result {
    let usual = core::OpenRlhfConfig::default();
    let config = core::OpenRlhfConfig {
        aggregate: call.aggregate(usual.aggregate),
        kl: Read::read(usual.kl),
        kl_use: Read::read(usual.kl_use),
    };
    let input = core::OpenRlhfInput {
        log_probs: call.optional_real(),
        ref_log_probs: call.optional_real(),
        entropies: call.optional_real(),
        rewards: call.optional_real(),
        predictions: call.optional_real(),
        scores: call.optional_real(),
        groups: if present() { Some(call.groups()?) } else { None },
        total_lengths: lengths(call),
        truncated: call.optional_flags().map(|flags| &*flags),
        policy_loss: present().then(policy),
        gate: present().then(|| GateReport { filtered: number(), kl: number() }),
        value_loss: present().then(value),
    };
    let mut scratch: Vec<Moments> = zeros(input.groups.map_or(0, |groups| groups.count()));
    entries(core::openrlhf_metrics(call.batch, input, &config, &mut scratch)?.entries());
    Ok(())
}

fn reduce_metric(call: &mut Call<'_>) -> Result {
    let (global, values, key) = (present(), call.double(), text(call));
    js::put(core::Reduction::of_key(&key, global).of(values)?);
    Ok(())
}
