//! Stage 3 again: scores with penalties, and rewards as other frameworks make them.

use tokenwise::reward::*;
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{errors::domains::*, naive::reward as naive};

use crate::case::{by_name, tokens, Case, Outcome};

pub(crate) struct KlInScores;
impl Case for KlInScores {
    const NAME: &'static str = "kl_in_scores";
    const UNITS: [f64; 2] = [8.0, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(BETA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = KlInScoresConfig;
    fn config(random: &mut Random) -> KlInScoresConfig {
        KlInScoresConfig { beta: random.pick(&[0.0, 0.05, -0.5]) }
    }
    by_name!("scores": |flat: &Flat<R>| Array::Real(flat.outcomes.clone()));
    fn naive(flat: &Flat<f64>, KlInScoresConfig { beta }: KlInScoresConfig) -> Outcome<f64> {
        let (old, reference) = (flat.column(Column::OldLogProbs), flat.column(Column::RefLogProbs));
        Outcome::sequences([naive::kl_in_scores(tokens(flat), &flat.outcomes, old, reference, beta)])
    }
}

pub(crate) struct ClippedRewards;
impl Case for ClippedRewards {
    const NAME: &'static str = "clipped_rewards";
    const UNITS: [f64; 2] = [0.0, 0.8];
    const DOMAINS: &'static [Row] =
        &[any().with(r#"{ "low": 0 }"#).numbers(&[key("beta", FINITE), key("high", NOT_BELOW_LOW)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = ClippedRewardsConfig;
    fn config(random: &mut Random) -> Self::Config {
        let (low, high) = random.pick(&[(-10.0, 10.0), (-0.5, 0.75), (f64::NEG_INFINITY, f64::INFINITY)]);
        ClippedRewardsConfig { beta: random.pick(&[0.01, 0.5, -1.0]), low, high }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        Outcome::tokens([naive::clipped_rewards(tokens(flat), &flat.scores, flat.column(Column::Kl), &config)])
    }
}

/// Whether a response is shorter than some.
fn short<R: Number>(flat: &Flat<R>) -> Vec<bool> {
    flat.lengths.iter().map(|length| length % 3 == 0).collect()
}

pub(crate) struct StopProperlyPenalty;
impl Case for StopProperlyPenalty {
    const NAME: &'static str = "stop_properly_penalty";
    const UNITS: [f64; 2] = [0.0, 0.5];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("coefficient", AT_MOST_1)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = StopProperlyConfig;
    fn config(random: &mut Random) -> StopProperlyConfig {
        StopProperlyConfig { coefficient: random.pick(&[0.0, 0.3, 1.0, -0.7]) }
    }
    by_name!("truncated": short);
    fn naive(flat: &Flat<f64>, StopProperlyConfig { coefficient }: StopProperlyConfig) -> Outcome<f64> {
        Outcome::sequences([naive::stop_properly_penalty(&flat.outcomes, &short(flat), coefficient)])
    }
}

pub(crate) struct MissingEosPenalty;
impl Case for MissingEosPenalty {
    const NAME: &'static str = "missing_eos_penalty";
    const UNITS: [f64; 2] = [0.0, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("penalty", FINITE)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = MissingEosConfig;
    fn config(random: &mut Random) -> MissingEosConfig {
        MissingEosConfig { penalty: random.pick(&[0.0, 0.3, -1.0]) }
    }
    by_name!("ended": short);
    fn naive(flat: &Flat<f64>, MissingEosConfig { penalty }: MissingEosConfig) -> Outcome<f64> {
        Outcome::sequences([naive::missing_eos_penalty(&flat.outcomes, &short(flat), penalty)])
    }
}

pub(crate) struct RewardScaleClip;
impl Case for RewardScaleClip {
    const NAME: &'static str = "reward_scale_clip";
    const UNITS: [f64; 2] = [0.8, 0.6];
    const DOMAINS: &'static [Row] = &[any().with(r#"{ "kind": "shift-scale-clip" }"#).numbers(&[
        key("bias", FINITE),
        key("scale", FINITE),
        inside("bound", "high", NOT_BELOW_LOW),
    ])];
    const SEQUENCES_ALONE: bool = true;
    type Config = RewardScaleConfig;
    fn config(random: &mut Random) -> RewardScaleConfig {
        random.pick(&[
            RewardScaleConfig::Clip { low: -0.5, high: 1.25 },
            RewardScaleConfig::ShiftScaleClip { bias: -0.3, scale: 1.7, bound: 2.0 },
            RewardScaleConfig::Map { from: (-1.0, 0.5), to: (0.1, 0.8) },
        ])
    }
    by_name!();
    fn naive(flat: &Flat<f64>, scale: RewardScaleConfig) -> Outcome<f64> {
        let (out, held) = naive::reward_scale_clip(&flat.outcomes, &scale);
        Outcome::sequences([out]).and([held])
    }
}

pub(crate) struct RepetitionPenalty;
impl Case for RepetitionPenalty {
    const NAME: &'static str = "repetition_penalty";
    const UNITS: [f64; 2] = [0.0, 0.4];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("ngram", AT_LEAST_1), key("penalty", NOT_POSITIVE)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = RepetitionConfig;
    fn config(random: &mut Random) -> RepetitionConfig {
        RepetitionConfig { ngram: random.pick(&[1, 2, 3, 5]), penalty: random.pick(&[-1.0, -0.3, 0.0]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: RepetitionConfig) -> Outcome<f64> {
        Outcome::sequences([naive::repetition_penalty(tokens(flat), &flat.ids, &config)])
    }
}

fn outputs<R: Number>(flat: &Flat<R>) -> Vec<u32> {
    flat.lengths.clone()
}
fn inputs<R: Number>(flat: &Flat<R>) -> Vec<u32> {
    flat.lengths.iter().map(|length| length % 7).collect()
}
fn turns<R: Number>(flat: &Flat<R>) -> Vec<u32> {
    flat.lengths.iter().map(|length| length % 3).collect()
}

pub(crate) struct LengthPenaltyGroup;
impl Case for LengthPenaltyGroup {
    const NAME: &'static str = "length_penalty_group";
    const UNITS: [f64; 2] = [2.0, 0.8];
    const DOMAINS: &'static [Row] =
        &[any().numbers(&[key("output_weight", FINITE), key("input_weight", FINITE), key("turn_weight", FINITE)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = GroupLengthConfig;
    fn config(random: &mut Random) -> GroupLengthConfig {
        let mut weight = || random.pick(&[0.0, 0.5, 0.3, -0.1]);
        GroupLengthConfig { output_weight: weight(), input_weight: weight(), turn_weight: weight() }
    }
    by_name!("outputs": outputs, "inputs": inputs, "turns": turns);
    fn naive(flat: &Flat<f64>, config: GroupLengthConfig) -> Outcome<f64> {
        let lengths = [&outputs(flat)[..], &inputs(flat), &turns(flat)];
        Outcome::sequences([naive::length_penalty_group(&flat.group_ids, &flat.outcomes, lengths, &config)])
    }
}

crate::case::tests! {
    kl_in_scores: KlInScores,
    clipped_rewards: ClippedRewards,
    stop_properly_penalty: StopProperlyPenalty,
    missing_eos_penalty: MissingEosPenalty,
    reward_scale_clip: RewardScaleClip,
    repetition_penalty: RepetitionPenalty,
    length_penalty_group: LengthPenaltyGroup,
}
