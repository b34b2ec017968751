//! Gates and masks.

use tokenwise::{rollout::*, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::masks as naive,
};

use super::{bits, input};
use crate::case::{tokens, unwritten, Case, Outcome};

pub(crate) struct RolloutGate;
impl Case for RolloutGate {
    const FORMULA: Formula = Formula::RolloutGate;
    const SEQUENCES_ALONE: bool = true;
    type Config = GateConfig;
    fn config(random: &mut Random) -> GateConfig {
        let level = random.pick(&[GateLevel::Off, GateLevel::Token, GateLevel::Token, GateLevel::Sequence]);
        let statistic = random.pick(&[GateStatistic::Ratio, GateStatistic::BinaryKl, GateStatistic::TotalVariation]);
        let plain = level != GateLevel::Sequence && statistic == GateStatistic::Ratio;
        let mode = if plain { random.pick(&[GateMode::Clip, GateMode::Mask]) } else { GateMode::Mask };
        // below 0, for a binary KL of nearly equal policies can round to less
        let (lower, upper) = if statistic == GateStatistic::Ratio { (0.875, 1.25) } else { (0.0, 0.03125) };
        GateConfig { level, statistic, mode, lower, upper }
    }
    fn run<R: Number>(flat: &Flat<R>, config: GateConfig) -> Result<Outcome<R>> {
        let mut weights = unwritten(flat.tokens());
        let report = rollout_gate(&flat.batch(), input(flat), &config, &mut weights)?;
        Ok(Outcome::tokens([weights]).and([report.filtered, report.kl]))
    }
    fn naive(flat: &Flat<f64>, config: GateConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        let (weights, filtered, kl) = naive::rollout_gate(tokens(flat), old, rollout, &config);
        Outcome::tokens([weights]).and([filtered, kl])
    }
}

pub(crate) struct OffPolicySequenceMask;
impl Case for OffPolicySequenceMask {
    const FORMULA: Formula = Formula::OffPolicySequenceMask;
    const SEQUENCES_ALONE: bool = true;
    type Config = OffPolicyConfig;
    fn config(random: &mut Random) -> OffPolicyConfig {
        OffPolicyConfig {
            threshold: random.pick(&[0.0, 1e-4, 0.125]),
            unscored: random.pick(&[Unscored::Nan, Unscored::Ignore]),
        }
    }
    fn run<R: Number>(flat: &Flat<R>, config: OffPolicyConfig) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        let input = OffPolicyInput {
            log_probs: flat.column(Column::LogProbs),
            old_log_probs: flat.column(Column::OldLogProbs),
            advantages: flat.column(Column::Advantages),
        };
        off_policy_sequence_mask(&flat.batch(), input, &config, &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, config: OffPolicyConfig) -> Outcome<f64> {
        let (new, old) = (flat.column(Column::LogProbs), flat.column(Column::OldLogProbs));
        let advantages = flat.column(Column::Advantages);
        Outcome::tokens([naive::off_policy_sequence_mask(tokens(flat), new, old, advantages, &config)])
    }
}

pub(crate) struct KlMask;
impl Case for KlMask {
    const FORMULA: Formula = Formula::KlMask;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 1e-3, 0.125])
    }
    fn run<R: Number>(flat: &Flat<R>, tau: f64) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        kl_mask(&flat.batch(), input(flat), tau, &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, tau: f64) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::tokens([naive::kl_mask(tokens(flat), old, rollout, tau)])
    }
}

pub(crate) struct SequenceVeto;
impl Case for SequenceVeto {
    const FORMULA: Formula = Formula::SequenceVeto;
    const SEQUENCES_ALONE: bool = true;
    type Config = VetoConfig;
    fn config(random: &mut Random) -> VetoConfig {
        VetoConfig { lower: random.pick(&[0.0, 1e-4, 0.75]), upper: random.pick(&[f64::INFINITY, 1.5]) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: VetoConfig) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        sequence_veto(&flat.batch(), input(flat), &config, &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, config: VetoConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::tokens([naive::sequence_veto(tokens(flat), old, rollout, &config)])
    }
}

pub(crate) struct M2poMask;
impl Case for M2poMask {
    const FORMULA: Formula = Formula::M2poMask;
    const SEQUENCES_ALONE: bool = false;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[1e-3, 0.03, 0.25, 4.0])
    }
    fn run<R: Number>(flat: &Flat<R>, tau: f64) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        m2po_mask(&flat.batch(), input(flat), tau, &mut vec![0.0; flat.batch().kept()], &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, tau: f64) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::tokens([naive::m2po_mask(tokens(flat), old, rollout, tau)])
    }
}

pub(crate) struct HighEntropyMask;
impl Case for HighEntropyMask {
    const FORMULA: Formula = Formula::HighEntropyMask;
    const SEQUENCES_ALONE: bool = false;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        random.pick(&[0.0, 0.1875, 0.25, 0.5, 1.0])
    }
    fn run<R: Number>(flat: &Flat<R>, share: f64) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        high_entropy_mask(&flat.batch(), flat.column(Column::Weights), share, &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, share: f64) -> Outcome<f64> {
        Outcome::tokens([naive::high_entropy_mask(tokens(flat), flat.column(Column::Weights), share)])
    }
}

pub(crate) struct ProbabilityDifference;
impl Case for ProbabilityDifference {
    const FORMULA: Formula = Formula::ProbabilityDifference;
    const SEQUENCES_ALONE: bool = false;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let difference = probability_difference(&flat.batch(), input(flat))?;
        Ok(Outcome::numbers([difference.max, difference.mean, difference.std, difference.pearson]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::numbers(naive::probability_difference(tokens(flat), old, rollout))
    }
}

/// Token ids from the places of the tokens: the mask this function makes reads every slot of a row.
fn ids<R: Number>(flat: &Flat<R>) -> Vec<u32> {
    let mut ids = vec![0; flat.tokens()];
    for (row, length) in flat.rows.iter().zip(&flat.lengths) {
        for (t, slot) in row.clone().enumerate() {
            ids[slot] = (length + 3 * t as u32) % 32;
        }
    }
    ids
}

pub(crate) struct ResponseMaskFromEos;
impl Case for ResponseMaskFromEos {
    const FORMULA: Formula = Formula::ResponseMaskFromEos;
    const SEQUENCES_ALONE: bool = true;
    const DROPPED_GET_ZERO: bool = false;
    type Config = [u32; 2];
    fn config(random: &mut Random) -> [u32; 2] {
        [random.below(40) as u32, random.below(40) as u32]
    }
    fn run<R: Number>(flat: &Flat<R>, eos: [u32; 2]) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        response_mask_from_eos(&flat.layout(), &ids(flat), &eos, &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, eos: [u32; 2]) -> Outcome<f64> {
        Outcome::tokens([naive::response_mask_from_eos(tokens(flat), &ids(flat), &eos)])
    }
}
