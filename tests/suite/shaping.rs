//! Stage 3 again: scores with penalties, and rewards as other frameworks make them.

use tokenwise::{reward::*, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::reward as naive,
};

use crate::case::{tokens, unwritten, Case, Outcome};

pub(crate) struct KlInScores;
impl Case for KlInScores {
    const FORMULA: Formula = Formula::KlInScores;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 0.05, -0.5])
    }
    fn run<R: Number>(flat: &Flat<R>, beta: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        let (old_log_probs, ref_log_probs) = (flat.column(Column::OldLogProbs), flat.column(Column::RefLogProbs));
        let input = KlInScoresInput { scores: &flat.outcomes, old_log_probs, ref_log_probs };
        kl_in_scores(&flat.batch(), input, beta, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, beta: f64) -> Outcome<f64> {
        let (old, reference) = (flat.column(Column::OldLogProbs), flat.column(Column::RefLogProbs));
        Outcome::sequences([naive::kl_in_scores(tokens(flat), &flat.outcomes, old, reference, beta)])
    }
}

pub(crate) struct ClippedRewards;
impl Case for ClippedRewards {
    const FORMULA: Formula = Formula::ClippedRewards;
    const SEQUENCES_ALONE: bool = true;
    type Config = ClippedRewardsConfig;
    fn config(random: &mut Random) -> Self::Config {
        let (low, high) = random.pick(&[(-10.0, 10.0), (-0.5, 0.75), (f64::NEG_INFINITY, f64::INFINITY)]);
        ClippedRewardsConfig { beta: random.pick(&[0.01, 0.5, -1.0]), low, high }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let mut rewards = unwritten(flat.tokens());
        let input = ClippedRewardsInput { scores: &flat.scores, kl: flat.column(Column::Kl) };
        clipped_rewards(&flat.batch(), input, &config, &mut rewards)?;
        Ok(Outcome::tokens([rewards]))
    }
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
    const FORMULA: Formula = Formula::StopProperlyPenalty;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 0.3, 1.0, -0.7])
    }
    fn run<R: Number>(flat: &Flat<R>, coefficient: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        let input = TruncatedInput { scores: &flat.outcomes, truncated: &short(flat) };
        stop_properly_penalty(input, coefficient, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, coefficient: f64) -> Outcome<f64> {
        Outcome::sequences([naive::stop_properly_penalty(&flat.outcomes, &short(flat), coefficient)])
    }
}

pub(crate) struct MissingEosPenalty;
impl Case for MissingEosPenalty {
    const FORMULA: Formula = Formula::MissingEosPenalty;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 0.3, -1.0])
    }
    fn run<R: Number>(flat: &Flat<R>, penalty: f64) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        missing_eos_penalty(MissingEosInput { scores: &flat.outcomes, ended: &short(flat) }, penalty, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, penalty: f64) -> Outcome<f64> {
        Outcome::sequences([naive::missing_eos_penalty(&flat.outcomes, &short(flat), penalty)])
    }
}

pub(crate) struct RewardScaleClip;
impl Case for RewardScaleClip {
    const FORMULA: Formula = Formula::RewardScaleClip;
    const SEQUENCES_ALONE: bool = true;
    type Config = RewardScale;
    fn config(random: &mut Random) -> RewardScale {
        random.pick(&[
            RewardScale::Clip { low: -0.5, high: 1.25 },
            RewardScale::ShiftScaleClip { bias: -0.3, scale: 1.7, bound: 2.0 },
            RewardScale::Map { from: (-1.0, 0.5), to: (0.1, 0.8) },
        ])
    }
    fn run<R: Number>(flat: &Flat<R>, scale: RewardScale) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        let held = reward_scale_clip(&flat.outcomes, &scale, &mut out)?;
        Ok(Outcome::sequences([out]).and([held]))
    }
    fn naive(flat: &Flat<f64>, scale: RewardScale) -> Outcome<f64> {
        let (out, held) = naive::reward_scale_clip(&flat.outcomes, &scale);
        Outcome::sequences([out]).and([held])
    }
}

pub(crate) struct RepetitionPenalty;
impl Case for RepetitionPenalty {
    const FORMULA: Formula = Formula::RepetitionPenalty;
    const SEQUENCES_ALONE: bool = true;
    type Config = RepetitionConfig;
    fn config(random: &mut Random) -> RepetitionConfig {
        RepetitionConfig { ngram: random.pick(&[1, 2, 3, 5]), penalty: random.pick(&[-1.0, -0.3, 0.0]) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: RepetitionConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        repetition_penalty(&flat.batch(), &flat.ids, &config, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, config: RepetitionConfig) -> Outcome<f64> {
        Outcome::sequences([naive::repetition_penalty(tokens(flat), &flat.ids, &config)])
    }
}

/// Three kinds of lengths from one.
fn three_lengths<R: Number>(flat: &Flat<R>) -> [Vec<u32>; 3] {
    [1, 7, 3].map(|by| flat.lengths.iter().map(|length| if by == 1 { *length } else { length % by }).collect())
}

pub(crate) struct LengthPenaltyGroup;
impl Case for LengthPenaltyGroup {
    const FORMULA: Formula = Formula::LengthPenaltyGroup;
    const SEQUENCES_ALONE: bool = true;
    type Config = GroupLengthConfig;
    fn config(random: &mut Random) -> GroupLengthConfig {
        let mut weight = || random.pick(&[0.0, 0.5, 0.3, -0.1]);
        GroupLengthConfig { output_weight: weight(), input_weight: weight(), turn_weight: weight() }
    }
    fn run<R: Number>(flat: &Flat<R>, config: GroupLengthConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        let [outputs, inputs, turns] = three_lengths(flat);
        let input = GroupLengthInput { scores: &flat.outcomes, outputs: &outputs, inputs: &inputs, turns: &turns };
        length_penalty_group(&flat.groups(), input, &config, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, config: GroupLengthConfig) -> Outcome<f64> {
        let lengths = three_lengths(flat);
        let lengths = [0, 1, 2].map(|kind| lengths[kind].as_slice());
        Outcome::sequences([naive::length_penalty_group(&flat.group_ids, &flat.outcomes, lengths, &config)])
    }
}
