//! Stage 4: scores against those of the same prompt.

use tokenwise::{advantage::*, Groups, Moments, Result};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Flat, Number, Random};

use crate::{
    advantage::{discount, GroupRelative, SINGLETONS},
    case::{by_name, call, tokens, unwritten, Case, Outcome},
    errors::domains::*,
    metric::SPREADS,
    naive::{advantage::group_relative as naive_group_relative, groups as naive},
};

pub(crate) fn moments(groups: &Groups<'_>) -> Vec<Moments> {
    vec![Moments::default(); groups.count()]
}

/// GRPO divided by the deviation of the whole batch.
pub(crate) struct GroupRelativeOverBatch;
impl Case for GroupRelativeOverBatch {
    const NAME: &'static str = "group_relative";
    const UNITS: [f64; 2] = [3.0, 0.8];
    const SEQUENCES_ALONE: bool = false;
    type Config = GroupConfig;
    fn config(random: &mut Random) -> GroupConfig {
        GroupConfig { scale: GroupScale::BatchDeviation, ..GroupRelative::config(random) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: GroupConfig) -> Result<Outcome<R>> {
        GroupRelative::run(flat, config)
    }
    fn naive(flat: &Flat<f64>, config: GroupConfig) -> Outcome<f64> {
        Outcome::sequences([naive_group_relative(&flat.group_ids, &flat.outcomes, &config)])
    }
}

/// Every sequence twice, the second time with another score, so that none is alone.
fn twice<R: Number>(flat: &Flat<R>) -> (Vec<u32>, Vec<R>) {
    let other = flat.outcomes.iter().map(|&score| R::narrow(-0.5) * score);
    ([&flat.group_ids[..], &flat.group_ids].concat(), flat.outcomes.iter().copied().chain(other).collect())
}

/// Both halves, each with one entry per sequence.
fn halves<R: Number>(out: &[R]) -> Outcome<R> {
    let (first, second) = out.split_at(out.len() / 2);
    Outcome::sequences([first.to_vec(), second.to_vec()])
}

pub(crate) struct BestOfGroup;
impl Case for BestOfGroup {
    const NAME: &'static str = "best_of_group";
    const UNITS: [f64; 2] = [4.0, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(EPSILON)];
    const SEQUENCES_ALONE: bool = true;
    type Config = BestOfGroupConfig;
    fn config(random: &mut Random) -> Self::Config {
        let GroupConfig { scale, spread, epsilon, .. } = GroupRelative::config(random);
        BestOfGroupConfig { scale, spread, epsilon }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        let (ids, scores) = twice(flat);
        let groups = Groups::from_ids(&ids)?;
        let (mut moments, mut top) = (moments(&groups), vec![TopTwo::default(); groups.count()]);
        let mut out = unwritten(scores.len());
        let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };
        best_of_group(&groups, &scores, &config, scratch, &mut out)?;
        Ok(halves(&out))
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (ids, scores) = twice(flat);
        halves(&naive::best_of_group(&ids, &scores, &config))
    }
}

/// Its scores are divided by the deviation of all scores.
pub(crate) struct BestOfGroupOverBatch;
impl Case for BestOfGroupOverBatch {
    const NAME: &'static str = "best_of_group";
    const UNITS: [f64; 2] = [4.0, 0.8];
    const SEQUENCES_ALONE: bool = false;
    type Config = BestOfGroupConfig;
    fn config(random: &mut Random) -> Self::Config {
        BestOfGroupConfig { scale: GroupScale::BatchDeviation, ..BestOfGroup::config(random) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Self::Config) -> Result<Outcome<R>> {
        BestOfGroup::run(flat, config)
    }
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        BestOfGroup::naive(flat, config)
    }
}

pub(crate) struct LengthWeightedBaseline;
impl Case for LengthWeightedBaseline {
    const NAME: &'static str = "length_weighted_baseline";
    const UNITS: [f64; 2] = [0.0, 0.8];
    const SEQUENCES_ALONE: bool = true;
    type Config = LengthWeightedConfig;
    fn config(random: &mut Random) -> LengthWeightedConfig {
        LengthWeightedConfig { singleton: random.pick(&SINGLETONS) }
    }
    by_name!("scores": |flat: &Flat<R>| Array::Real(outcomes(flat)));
    fn naive(flat: &Flat<f64>, LengthWeightedConfig { singleton }: LengthWeightedConfig) -> Outcome<f64> {
        let out = naive::length_weighted_baseline(tokens(flat), &flat.group_ids, &flat.outcomes, singleton);
        Outcome::sequences([out])
    }
}

/// Half of the scores are 0, none is negative.
fn successes<R: Number>(flat: &Flat<R>) -> Vec<R> {
    // written so that NaN stays
    flat.outcomes.iter().map(|&score| if score < R::zero() { R::zero() } else { score }).collect()
}

macro_rules! of_scores {
    ($case:ident, $function:ident, $units:expr, $domains:expr, $scores:expr, $alone:literal, $config:ty, $random:expr) => {
        pub(crate) struct $case;
        impl Case for $case {
            const NAME: &'static str = stringify!($function);
            const UNITS: [f64; 2] = $units;
            const DOMAINS: &'static [Row] = $domains;
            const SEQUENCES_ALONE: bool = $alone;
            type Config = $config;
            fn config(random: &mut Random) -> Self::Config {
                let config: fn(&mut Random) -> Self::Config = $random;
                config(random)
            }
            by_name!("scores": |flat: &Flat<R>| Array::Real($scores(flat)));
            fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
                Outcome::sequences([naive::$function(&flat.group_ids, &$scores(flat), &config)])
            }
        }
    };
}

fn outcomes<R: Number>(flat: &Flat<R>) -> Vec<R> {
    flat.outcomes.clone()
}

of_scores!(
    GpgAdvantage,
    gpg_advantage,
    [2.0, 0.8],
    &[any().numbers(&[key("norm", POSITIVE)])],
    successes,
    false,
    GpgConfig,
    |random| GpgConfig {
        norm: random.pick(&[1.0, 4.0]),
        singleton: random.pick(&SINGLETONS),
        factor: random.pick(&[FactorPrecision::Exact, FactorPrecision::Single]),
    }
);
of_scores!(
    LeaveOneOutScaled,
    leave_one_out_scaled,
    [2000.0, 0.8],
    &[any().numbers(EPSILON)],
    outcomes,
    true,
    LeaveOneOutScaledConfig,
    |random| { LeaveOneOutScaledConfig { epsilon: random.pick(&[1e-6, 1e-2]) } }
);
of_scores!(MaxRl, max_rl, [4.0, 0.8], &[any().numbers(EPSILON)], successes, true, MaxRlConfig, |random| MaxRlConfig {
    divisor: random.pick(&[MeanDivisor::PlusEpsilon, MeanDivisor::IfPositive]),
    epsilon: random.pick(&[1e-6, 1e-2]),
    singleton: random.pick(&SINGLETONS),
});
of_scores!(
    NormalizeScores,
    normalize_scores,
    [3.0, 0.8],
    &[any().numbers(EPSILON)],
    outcomes,
    false,
    NormalizeConfig,
    |random| NormalizeConfig {
        mean: random.pick(&[Level::Batch, Level::Group, Level::Off]),
        own: random.pick(&[Own::Included, Own::LeftOut]),
        deviation: random.pick(&[Level::Batch, Level::Group, Level::Off]),
        spread: random.pick(&SPREADS),
        epsilon: random.pick(&[1e-5, 1e-2]),
    }
);

pub(crate) const WEIGHTS: [f64; 3] = [1.0, 0.5, -2.0];

/// Up to three sources, exact in both types.
pub(crate) fn sources<R: Number>(flat: &Flat<R>, count: usize) -> Vec<Vec<R>> {
    let source = |k: usize| match k {
        0 => flat.outcomes.clone(),
        1 => flat.outcomes.iter().map(|score| score.abs() * R::narrow(0.25)).collect(),
        _ => successes(flat),
    };
    (0..count).map(source).collect()
}

pub(crate) struct DecoupledScores;
impl Case for DecoupledScores {
    const NAME: &'static str = "decoupled_scores";
    const UNITS: [f64; 2] = [6.0, 3.0];
    const DOMAINS: &'static [Row] = &[any().numbers(EPSILON)];
    const SEQUENCES_ALONE: bool = true;
    type Config = (usize, GroupConfig);
    fn config(random: &mut Random) -> Self::Config {
        (random.below(4), GroupRelative::config(random))
    }
    fn run<R: Number>(flat: &Flat<R>, (count, config): Self::Config) -> Result<Outcome<R>> {
        call(Self::NAME, flat, config, |name| match name {
            "sources" => Some(Array::Real(sources(flat, count).concat())),
            "weights" => Some(Array::Double(WEIGHTS[..count].to_vec())),
            _ => None,
        })
    }
    fn naive(flat: &Flat<f64>, (count, config): Self::Config) -> Outcome<f64> {
        let out = naive::decoupled_scores(&flat.group_ids, &sources(flat, count), &WEIGHTS[..count], &config);
        Outcome::sequences([out])
    }
}

pub(crate) struct RoleBaselineCase;
impl Case for RoleBaselineCase {
    const NAME: &'static str = "role_baseline";
    const UNITS: [f64; 2] = [2.0, 0.8];
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        discount(random)
    }
    fn run<R: Number>(flat: &Flat<R>, decay: f64) -> Result<Outcome<R>> {
        let mut baselines = vec![RoleBaseline::new(decay)?; flat.groups().count()];
        let mut out = unwritten(flat.rows.len());
        role_baseline(RoleInput { roles: &flat.group_ids, scores: &flat.outcomes }, &mut baselines, &mut out)?;
        Ok(Outcome::sequences([out]).and(baselines.iter().map(RoleBaseline::baseline).collect::<Vec<f64>>()))
    }
    fn naive(flat: &Flat<f64>, decay: f64) -> Outcome<f64> {
        let roles = flat.groups().count();
        let (out, baselines) = naive::role_baseline(&flat.group_ids, &flat.outcomes, decay, roles);
        Outcome::sequences([out]).and(baselines)
    }
}

crate::case::tests! {
    group_relative_over_batch: GroupRelativeOverBatch,
    best_of_group: BestOfGroup,
    best_of_group_over_batch: BestOfGroupOverBatch,
    length_weighted_baseline: LengthWeightedBaseline,
    gpg_advantage: GpgAdvantage,
    leave_one_out_scaled: LeaveOneOutScaled,
    max_rl: MaxRl,
    normalize_scores: NormalizeScores,
    decoupled_scores: DecoupledScores,
    role_baseline: RoleBaselineCase,
}
