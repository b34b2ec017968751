//! Gates and masks.

use tokenwise::{rollout::*, Result};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{errors::domains::*, naive::masks as naive};

use super::{bits, input};
use crate::case::{by_name, tokens, Case, Outcome};

pub(crate) struct RolloutGate;
impl Case for RolloutGate {
    const NAME: &'static str = "rollout_gate";
    const UNITS: [f64; 2] = [2.0, 2.0];
    const DOMAINS: &'static [Row] =
        &[needs_one().with(r#"{ "level": "token" }"#).numbers(&[key("lower", FINITE), key("upper", FINITE_NOT_BELOW)])];
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
    by_name!();
    fn naive(flat: &Flat<f64>, config: GateConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        let (weights, filtered, kl) = naive::rollout_gate(tokens(flat), old, rollout, &config);
        Outcome::tokens([weights]).and([filtered, kl])
    }
}

pub(crate) struct OffPolicySequenceMask;
impl Case for OffPolicySequenceMask {
    const NAME: &'static str = "off_policy_sequence_mask";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("threshold", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = OffPolicyConfig;
    fn config(random: &mut Random) -> OffPolicyConfig {
        OffPolicyConfig {
            threshold: random.pick(&[0.0, 1e-4, 0.125]),
            unscored: random.pick(&[Unscored::Nan, Unscored::Ignore]),
        }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: OffPolicyConfig) -> Outcome<f64> {
        let (new, old) = (flat.column(Column::LogProbs), flat.column(Column::OldLogProbs));
        let advantages = flat.column(Column::Advantages);
        Outcome::tokens([naive::off_policy_sequence_mask(tokens(flat), new, old, advantages, &config)])
    }
}

pub(crate) struct KlMask;
impl Case for KlMask {
    const NAME: &'static str = "kl_mask";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("tau", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = KlMaskConfig;
    fn config(random: &mut Random) -> KlMaskConfig {
        KlMaskConfig { tau: random.pick(&[0.0, 1e-3, 0.125]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, KlMaskConfig { tau }: KlMaskConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::tokens([naive::kl_mask(tokens(flat), old, rollout, tau)])
    }
}

pub(crate) struct SequenceVeto;
impl Case for SequenceVeto {
    const NAME: &'static str = "sequence_veto";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("lower", SMALL), key("upper", FROM_LOWER)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = VetoConfig;
    fn config(random: &mut Random) -> VetoConfig {
        VetoConfig { lower: random.pick(&[0.0, 1e-4, 0.75]), upper: random.pick(&[f64::INFINITY, 1.5]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: VetoConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::tokens([naive::sequence_veto(tokens(flat), old, rollout, &config)])
    }
}

pub(crate) struct M2poMask;
impl Case for M2poMask {
    const NAME: &'static str = "m2po_mask";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("tau", POSITIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = M2poConfig;
    fn config(random: &mut Random) -> M2poConfig {
        M2poConfig { tau: random.pick(&[1e-3, 0.03, 0.25, 4.0]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, M2poConfig { tau }: M2poConfig) -> Outcome<f64> {
        let RolloutInput { old_log_probs: old, rollout_log_probs: rollout } = input(flat);
        Outcome::tokens([naive::m2po_mask(tokens(flat), old, rollout, tau)])
    }
}

pub(crate) struct HighEntropyMask;
impl Case for HighEntropyMask {
    const NAME: &'static str = "high_entropy_mask";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("share", UNIT)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = HighEntropyConfig;
    fn config(random: &mut Random) -> HighEntropyConfig {
        HighEntropyConfig { share: random.pick(&[0.0, 0.1875, 0.25, 0.5, 1.0]) }
    }
    by_name!("entropies": |flat: &Flat<R>| Array::Real(flat.column(Column::Weights).to_vec()));
    fn naive(flat: &Flat<f64>, HighEntropyConfig { share }: HighEntropyConfig) -> Outcome<f64> {
        Outcome::tokens([naive::high_entropy_mask(tokens(flat), flat.column(Column::Weights), share)])
    }
}

pub(crate) struct ProbabilityDifference;
impl Case for ProbabilityDifference {
    const NAME: &'static str = "probability_difference";
    const UNITS: [f64; 2] = [10.0, 2.0];
    const DOMAINS: &'static [Row] = &[needs_one()];
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
    const NAME: &'static str = "response_mask_from_eos";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const SEQUENCES_ALONE: bool = true;
    const DROPPED_GET_ZERO: bool = false;
    type Config = [u32; 2];
    fn config(random: &mut Random) -> [u32; 2] {
        [random.below(40) as u32, random.below(40) as u32]
    }
    fn run<R: Number>(flat: &Flat<R>, eos: [u32; 2]) -> Result<Outcome<R>> {
        let mut keep = vec![true; flat.tokens()];
        response_mask_from_eos(&flat.layout(), EosInput { tokens: &ids(flat), eos: &eos }, &mut keep)?;
        Ok(Outcome::tokens([bits(&keep)]))
    }
    fn naive(flat: &Flat<f64>, eos: [u32; 2]) -> Outcome<f64> {
        Outcome::tokens([naive::response_mask_from_eos(tokens(flat), &ids(flat), &eos)])
    }
}
