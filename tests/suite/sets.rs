//! Stage 6, all at once: what a framework logs for a batch, under its keys.

use std::collections::BTreeMap;

use tokenwise::{
    loss::{Aggregate, AggregateMode, PolicyLoss, ValueLoss},
    metric::*,
    rollout::GateReport,
    Moments, Result,
};
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{tokens, Case, Outcome},
    divergence::kl_config,
    errors::domains::*,
    loss::dual_clip,
    naive::{sets as naive, sets::Numbers, trl_set},
    reward::DIVISORS,
};

/// In the order of the keys.
fn by_key<R: Number>(entries: impl Iterator<Item = (String, f64)>) -> Outcome<R> {
    Outcome::numbers(entries.collect::<BTreeMap<_, _>>().into_values().collect::<Vec<f64>>())
}

fn named(entries: impl Iterator<Item = (&'static str, f64)>) -> impl Iterator<Item = (String, f64)> {
    entries.map(|(key, value)| (key.to_string(), value))
}

fn aggregate(random: &mut Random) -> Aggregate<'static> {
    let mode = random.pick(&[AggregateMode::TokenMean, AggregateMode::SequenceMeanTokenMean]);
    Aggregate { mode, divisor: random.pick(&DIVISORS), ..Default::default() }
}

fn policy_loss() -> PolicyLoss {
    let mut result = PolicyLoss::default();
    (result.loss, result.clip_fraction, result.clip_fraction_lower, result.kl) = (0.5, 0.25, 0.125, -0.5);
    result
}

fn value_loss() -> ValueLoss {
    let mut result = ValueLoss::default();
    (result.loss, result.clip_fraction) = (1.5, 0.75);
    result
}

fn gate_report() -> GateReport {
    let mut result = GateReport::default();
    (result.filtered, result.kl) = (0.25, 0.5);
    result
}

/// Which parts of the input there are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parts {
    sampler: bool,
    critic: bool,
    losses: bool,
}

fn parts(random: &mut Random) -> Parts {
    let mut yes = || random.pick(&[false, true]);
    Parts { sampler: yes(), critic: yes(), losses: yes() }
}

fn verl_input<'a, R: Number>(flat: &'a Flat<R>, parts: Parts) -> VerlInput<'a, R> {
    let lengths = Some(Lengths { tokens: &flat.lengths, limit: 3 });
    VerlInput {
        scores: Some(flat.column(Column::Kl)),
        rewards: Some(flat.column(Column::Rewards)),
        advantages: Some(flat.column(Column::Advantages)),
        returns: Some(flat.column(Column::Returns)),
        values: parts.critic.then(|| flat.column(Column::Values)),
        predictions: parts.critic.then(|| flat.column(Column::Predictions)),
        response_lengths: lengths,
        prompt_lengths: lengths,
        log_probs: Some(flat.column(Column::LogProbs)),
        ref_log_probs: Some(flat.column(Column::RefLogProbs)),
        old_log_probs: Some(flat.column(Column::OldLogProbs)),
        rollout_log_probs: parts.sampler.then(|| flat.column(Column::RefLogProbs)),
        old_entropies: Some(flat.column(Column::Weights)),
        entropies: Some(flat.column(Column::Weights)),
        policy_loss: parts.losses.then(policy_loss),
        value_loss: parts.losses.then(value_loss),
        reward_kl: parts.losses.then_some(RewardKl { kl: 0.25, coefficient: 0.5 }),
        ..Default::default()
    }
}

pub(crate) struct VerlSet;
impl Case for VerlSet {
    const NAME: &'static str = "verl_metrics";
    const UNITS: [f64; 2] = [60.0, 4.0];
    const DOMAINS: &'static [Row] =
        &[needs_one().with(r#"{ "rollout_weights": {}, "rejection": { "criteria": [{}] } }"#).numbers(&[
            key("kl_coefficient", FINITE),
            key("entropy_coefficient", FINITE),
            inside("@gradient_norm", "gradient_norm", NOT_NEGATIVE),
        ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Parts, VerlConfig<'static>);
    fn config(random: &mut Random) -> Self::Config {
        let (aggregate, kl) = (aggregate(random), kl_config(random));
        let divisor = random.pick(&DIVISORS);
        let coefficients = VerlConfig { kl_coefficient: 0.5, entropy_coefficient: 0.25, ..Default::default() };
        (parts(random), VerlConfig { aggregate, kl, divisor, ..coefficients })
    }
    fn run<R: Number>(flat: &Flat<R>, (parts, config): Self::Config) -> Result<Outcome<R>> {
        let metrics = verl_metrics(&flat.batch(), verl_input(flat, parts), &config, &mut [])?;
        Ok(by_key(named(metrics.entries())))
    }
    fn naive(flat: &Flat<f64>, (parts, config): Self::Config) -> Outcome<f64> {
        by_key(naive::verl_metrics(tokens(flat), &verl_input(flat, parts), &config).into_iter())
    }
}

fn trl_input<'a, R: Number>(
    flat: &'a Flat<R>,
    parts: Parts,
    sources: &'a [R],
    truncated: &'a [bool],
) -> TrlInput<'a, R> {
    TrlInput {
        log_probs: Some(flat.column(Column::LogProbs)),
        old_log_probs: parts.critic.then(|| flat.column(Column::OldLogProbs)),
        ref_log_probs: Some(flat.column(Column::RefLogProbs)),
        rollout_log_probs: parts.sampler.then(|| flat.column(Column::RefLogProbs)),
        weights: parts.sampler.then(|| flat.column(Column::Weights)),
        advantages: Some(flat.column(Column::Advantages)),
        entropies: Some(flat.column(Column::Weights)),
        loss: None,
        rewards: Some(TrlRewards { groups: flat.groups(), sources, source_weights: &[1.0, -0.5] }),
        completion_lengths: Some(&flat.lengths),
        truncated: parts.losses.then_some(truncated),
        prompt_lengths: Some(&flat.lengths),
    }
}

/// Two reward functions, of which the second scores every other completion, and which completions were cut.
fn scored<R: Number>(flat: &Flat<R>) -> (Vec<R>, Vec<bool>) {
    let other = flat.outcomes.iter().enumerate().map(|(i, &score)| if i % 2 == 0 { R::nan() } else { score });
    let sources = flat.outcomes.iter().copied().chain(other).collect();
    (sources, flat.lengths.iter().map(|length| length % 2 == 0).collect())
}

pub(crate) struct TrlSet;
impl Case for TrlSet {
    const NAME: &'static str = "trl_metrics";
    const UNITS: [f64; 2] = [20.0, 4.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[
        key("clip_low", NOT_NEGATIVE),
        key("clip_high", NOT_NEGATIVE),
        inside("dual_clip.both_signs", "dual_clip", ABOVE_1),
        key("entropy_coefficient", FINITE),
        inside("@rewards.source_weights", "source_weights", FINITE),
    ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Parts, TrlConfig);
    fn config(random: &mut Random) -> Self::Config {
        let config = TrlConfig {
            clip_low: random.pick(&[0.25, 0.0625]),
            clip_high: random.pick(&[0.25, 0.3125]),
            dual_clip: dual_clip(random),
            level: random.pick(&[TrlLevel::Token, TrlLevel::Sequence]),
            weight_level: random.pick(&[TrlLevel::Token, TrlLevel::Sequence]),
            scale: random.pick(&[TrlScale::Group, TrlScale::Batch]),
            entropy_coefficient: random.pick(&[None, Some(0.5)]),
            tokens_seen: 7,
        };
        (parts(random), config)
    }
    fn run<R: Number>(flat: &Flat<R>, (parts, config): Self::Config) -> Result<Outcome<R>> {
        let (sources, truncated) = scored(flat);
        let (mut per_source, mut scratch) =
            ([RewardSource::default(); 2], vec![Moments::default(); flat.groups().count()]);
        let output = TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
        let metrics = trl_metrics(&flat.batch(), trl_input(flat, parts, &sources, &truncated), &config, output)?;
        let of_sources = metrics.sources.iter().enumerate().flat_map(|(k, source)| {
            [(format!("rewards/{k}/mean"), source.mean), (format!("rewards/{k}/std"), source.std)]
        });
        Ok(by_key(named(metrics.entries()).chain(of_sources)))
    }
    fn naive(flat: &Flat<f64>, (parts, config): Self::Config) -> Outcome<f64> {
        let (sources, truncated) = scored(flat);
        let found: Numbers = trl_set::trl_metrics(tokens(flat), &trl_input(flat, parts, &sources, &truncated), &config);
        by_key(found.into_iter())
    }
}

fn openrlhf_input<'a, R: Number>(flat: &'a Flat<R>, parts: Parts, truncated: &'a [bool]) -> OpenRlhfInput<'a, R> {
    OpenRlhfInput {
        log_probs: Some(flat.column(Column::LogProbs)),
        ref_log_probs: Some(flat.column(Column::RefLogProbs)),
        entropies: Some(flat.column(Column::Weights)),
        rewards: Some(flat.column(Column::Rewards)),
        predictions: parts.critic.then(|| flat.column(Column::Predictions)),
        scores: Some(&flat.outcomes),
        groups: Some(flat.groups()),
        total_lengths: parts.sampler.then_some(Lengths { tokens: &flat.lengths, limit: 3 }),
        truncated: Some(truncated),
        policy_loss: parts.losses.then(policy_loss),
        gate: parts.losses.then(gate_report),
        value_loss: parts.losses.then(value_loss),
    }
}

pub(crate) struct OpenRlhfSet;
impl Case for OpenRlhfSet {
    const NAME: &'static str = "openrlhf_metrics";
    const UNITS: [f64; 2] = [20.0, 4.0];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Parts, OpenRlhfConfig<'static>);
    fn config(random: &mut Random) -> Self::Config {
        let (aggregate, kl) = (aggregate(random), kl_config(random));
        (parts(random), OpenRlhfConfig { aggregate, kl, kl_use: random.pick(&[KlUse::Reward, KlUse::Loss]) })
    }
    fn run<R: Number>(flat: &Flat<R>, (parts, config): Self::Config) -> Result<Outcome<R>> {
        let (truncated, mut scratch) = (scored(flat).1, vec![Moments::default(); flat.groups().count()]);
        let input = openrlhf_input(flat, parts, &truncated);
        Ok(by_key(named(openrlhf_metrics(&flat.batch(), input, &config, &mut scratch)?.entries())))
    }
    fn naive(flat: &Flat<f64>, (parts, config): Self::Config) -> Outcome<f64> {
        let truncated = scored(flat).1;
        by_key(naive::openrlhf_metrics(tokens(flat), &openrlhf_input(flat, parts, &truncated), &config).into_iter())
    }
}

crate::case::tests! {
    verl_metrics: VerlSet,
    trl_metrics: TrlSet,
    openrlhf_metrics: OpenRlhfSet,
}
