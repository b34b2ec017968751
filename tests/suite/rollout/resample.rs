//! What drops or redraws whole samples.

use tokenwise::{rollout::*, Moments, Result};
use tokenwise_tests::generate::{Flat, Number, Random};

use crate::{errors::domains::*, naive::masks as naive};

use super::bits;
use crate::case::{Case, Outcome};

pub(crate) struct DynamicSamplingFilter;
impl Case for DynamicSamplingFilter {
    const NAME: &'static str = "dynamic_sampling_filter";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const DOMAINS: &'static [Row] = &[any().with(r#"{ "kind": "spread" }"#).numbers(&[key("at_least", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = GroupRule;
    fn config(random: &mut Random) -> GroupRule {
        random.pick(&[
            GroupRule::NotConstant,
            GroupRule::Spread { at_least: 1e-6 },
            GroupRule::Spread { at_least: 1.0 },
            GroupRule::MeanBetween { low: -0.25, high: 0.75 },
        ])
    }
    fn run<R: Number>(flat: &Flat<R>, rule: GroupRule) -> Result<Outcome<R>> {
        let groups = flat.groups();
        let (mut scratch, mut keep) = (vec![Moments::default(); groups.count()], vec![true; groups.count()]);
        dynamic_sampling_filter(&groups, &flat.outcomes, &rule, &mut scratch, &mut keep)?;
        Ok(Outcome::numbers(bits::<f64>(&keep)))
    }
    fn naive(flat: &Flat<f64>, rule: GroupRule) -> Outcome<f64> {
        let groups = flat.groups().count();
        Outcome::numbers(naive::dynamic_sampling_filter(&flat.group_ids, &flat.outcomes, groups, &rule))
    }
}

pub(crate) struct PfPpoWeights;
impl Case for PfPpoWeights {
    const NAME: &'static str = "pf_ppo_weights";
    const UNITS: [f64; 2] = [2.0, 3e-9];
    const DOMAINS: &'static [Row] = &[any().with(r#"{ "kind": "power" }"#).numbers(&[key("power", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = PfPpoRule;
    fn config(random: &mut Random) -> PfPpoRule {
        let power = random.pick(&[0.0, 1.0, 2.0, 0.5, 3.0]);
        random.pick(&[PfPpoRule::Power { power }, PfPpoRule::Power { power }, PfPpoRule::MaxMin, PfPpoRule::MaxRandom])
    }
    fn run<R: Number>(flat: &Flat<R>, rule: PfPpoRule) -> Result<Outcome<R>> {
        let mut weights = vec![f64::NAN; flat.outcomes.len()];
        pf_ppo_weights(&flat.outcomes, &rule, &mut weights)?;
        Ok(Outcome::numbers(weights))
    }
    fn naive(flat: &Flat<f64>, rule: PfPpoRule) -> Outcome<f64> {
        Outcome::numbers(naive::pf_ppo_weights(&flat.outcomes, &rule))
    }
}

/// Weights that are never negative.
fn weights<R: Number>(flat: &Flat<R>) -> Vec<f64> {
    flat.outcomes.iter().map(|outcome| outcome.widen().abs()).collect()
}

pub(crate) struct PfPpoIndices;
impl Case for PfPpoIndices {
    const NAME: &'static str = "pf_ppo_indices";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const SEQUENCES_ALONE: bool = false;
    type Config = u64;
    fn config(random: &mut Random) -> u64 {
        random.bits()
    }
    fn run<R: Number>(flat: &Flat<R>, seed: u64) -> Result<Outcome<R>> {
        let weights = weights(flat);
        // nothing can be drawn from nothing
        let mut indices = vec![u32::MAX; 3 * weights.len()];
        pf_ppo_indices(&weights, &ResampleConfig { seed }, &mut vec![f64::NAN; weights.len()], &mut indices)?;
        Ok(Outcome::numbers(indices.into_iter().map(f64::from).collect::<Vec<f64>>()))
    }
    fn naive(flat: &Flat<f64>, seed: u64) -> Outcome<f64> {
        let weights = weights(flat);
        Outcome::numbers(naive::pf_ppo_indices(&weights, seed, 3 * weights.len()))
    }
}
