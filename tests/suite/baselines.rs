//! Stage 4: estimators without a critic that end on the tokens.

use tokenwise::{advantage::*, Divisor, Result};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    advantage::{discount, GroupRelative, Whiten, ACROSS},
    case::{by_name, call, tokens, Case, Outcome},
    errors::domains::*,
    groups::{sources, WEIGHTS},
    naive::baselines as naive,
};

/// All tokens of a sequence have the same number, so batches are often constant: ε must not be 0, and verl's divisor,
/// which differs in single precision, would dominate the result.
fn whiten_config(random: &mut Random) -> WhitenConfig {
    WhitenConfig { epsilon: 1e-2, divisor: Divisor::Count, ..Whiten::config(random) }
}

pub(crate) struct ReinforcePlusPlus;
impl Case for ReinforcePlusPlus {
    const NAME: &'static str = "reinforce_plus_plus";
    const UNITS: [f64; 2] = [20.0, 10.0];
    const DOMAINS: &'static [Row] =
        &[whitens().numbers(&[key("gamma", UNIT), inside("whiten.epsilon", "epsilon", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = ReinforcePlusPlusConfig;
    fn config(random: &mut Random) -> Self::Config {
        let whiten = whiten_config(random);
        ReinforcePlusPlusConfig { gamma: discount(random), across: random.pick(&ACROSS), whiten }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let rewards = flat.column(Column::Rewards);
        let (advantages, returns) = naive::reinforce_plus_plus(tokens(flat), rewards, &flat.bootstrap, &config);
        Outcome::tokens([advantages, returns])
    }
}

pub(crate) struct ReinforcePlusPlusBaseline;
impl Case for ReinforcePlusPlusBaseline {
    const NAME: &'static str = "reinforce_plus_plus_baseline";
    const UNITS: [f64; 2] = [300.0, 1.5];
    const DOMAINS: &'static [Row] = &[whitens().numbers(&[inside("whiten.epsilon", "epsilon", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = ReinforcePlusPlusBaselineConfig;
    fn config(random: &mut Random) -> Self::Config {
        let singleton = random.pick(&[Singleton::Zero, Singleton::Raw, Singleton::Raw]);
        ReinforcePlusPlusBaselineConfig { singleton, whiten: whiten_config(random) }
    }
    by_name!("scores": |flat: &Flat<R>| Array::Real(flat.outcomes.clone()));
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (groups, scores) = (&flat.group_ids, &flat.outcomes);
        Outcome::tokens([naive::reinforce_plus_plus_baseline(tokens(flat), groups, scores, &config)])
    }
}

pub(crate) struct Remax;
impl Case for Remax {
    const NAME: &'static str = "remax";
    const UNITS: [f64; 2] = [150.0, 60.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!("baselines": |flat: &Flat<R>| Array::Real(flat.scores.clone()));
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        let (advantages, returns) = naive::remax(tokens(flat), flat.column(Column::Rewards), &flat.scores);
        Outcome::tokens([advantages, returns])
    }
}

pub(crate) struct Gdpo;
impl Case for Gdpo {
    const NAME: &'static str = "gdpo";
    const UNITS: [f64; 2] = [3000.0, 8.0];
    const DOMAINS: &'static [Row] = &[whitens().numbers(&[
        inside("group.epsilon", "epsilon", NOT_NEGATIVE),
        inside("whiten.epsilon", "epsilon", NOT_NEGATIVE),
    ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (usize, GdpoConfig);
    fn config(random: &mut Random) -> Self::Config {
        let singleton = random.pick(&[Singleton::Zero, Singleton::Raw]);
        let group = GroupConfig { singleton, ..GroupRelative::config(random) };
        (random.below(4), GdpoConfig { group, factors: FactorPrecision::Exact, whiten: whiten_config(random) })
    }
    fn run<R: Number>(flat: &Flat<R>, (count, config): Self::Config) -> Result<Outcome<R>> {
        call(Self::NAME, flat, config, |column| match column {
            "sources" => Some(Array::Real(sources(flat, count).concat())),
            "weights" => Some(Array::Double(WEIGHTS[..count].to_vec())),
            _ => None,
        })
    }
    fn naive(flat: &Flat<f64>, (count, config): Self::Config) -> Outcome<f64> {
        let sources = sources(flat, count);
        Outcome::tokens([naive::gdpo(tokens(flat), &flat.group_ids, &sources, &WEIGHTS[..count], &config)])
    }
}

/// Log-probabilities far below the sums of squares, exact in both types: no score norm is negative.
fn unlikely<R: Number>(flat: &Flat<R>) -> Vec<R> {
    flat.column(Column::Weights).iter().map(|&weight| R::narrow(-16.0) * weight).collect()
}

pub(crate) fn optimal_input<'a, R: Number>(
    flat: &'a Flat<R>,
    old_log_probs: &'a [R],
    weighted: bool,
) -> OptimalBaselineInput<'a, R> {
    OptimalBaselineInput {
        rewards: flat.column(Column::Rewards),
        old_log_probs,
        sum_pi_squared: flat.column(Column::Weights),
        is_weights: weighted.then(|| flat.column(Column::Returns)),
    }
}

macro_rules! optimal_baseline {
    ($case:ident, $function:ident) => {
        pub(crate) struct $case;
        impl Case for $case {
            const NAME: &'static str = stringify!($function);
            const UNITS: [f64; 2] = [80.0, 60.0];
            const DOMAINS: &'static [Row] = &[any().numbers(EPSILON)];
            const SEQUENCES_ALONE: bool = true;
            type Config = (bool, OptimalBaselineConfig);
            fn config(random: &mut Random) -> Self::Config {
                let zero_tail = random.pick(&[ZeroTail::NoBaseline, ZeroTail::OwnReturn]);
                (random.below(3) == 0, OptimalBaselineConfig { zero_tail, epsilon: random.pick(&[1e-8, 1e-2]) })
            }
            fn run<R: Number>(flat: &Flat<R>, (weighted, config): Self::Config) -> Result<Outcome<R>> {
                call(Self::NAME, flat, config, |name| match name {
                    "old_log_probs" => Some(Array::Real(unlikely(flat))),
                    "sum_pi_squared" => Some(Array::Real(flat.column(Column::Weights).to_vec())),
                    "is_weights" => weighted.then(|| Array::Real(flat.column(Column::Returns).to_vec())),
                    _ => None,
                })
            }
            fn naive(flat: &Flat<f64>, (weighted, config): Self::Config) -> Outcome<f64> {
                let old_log_probs = unlikely(flat);
                let input = optimal_input(flat, &old_log_probs, weighted);
                let (advantages, returns) = naive::$function(tokens(flat), &flat.group_ids, input, &config);
                Outcome::tokens([advantages, returns])
            }
        }
    };
}
optimal_baseline!(OptimalTokenBaseline, optimal_token_baseline);
optimal_baseline!(TirOptimalTokenBaseline, tir_optimal_token_baseline);

pub(crate) struct OpdAdvantage;
impl Case for OpdAdvantage {
    const NAME: &'static str = "opd_advantage";
    const UNITS: [f64; 2] = [0.0, 1.5];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("coefficient", FINITE)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = (bool, f64);
    fn config(random: &mut Random) -> Self::Config {
        (random.below(2) == 0, random.pick(&[1.0, 0.25, -2.0]))
    }
    fn run<R: Number>(flat: &Flat<R>, (added, coefficient): Self::Config) -> Result<Outcome<R>> {
        let advantages = || Array::Real(flat.column(Column::Advantages).to_vec());
        let special = |name: &str| (name == "advantages" && added).then(advantages);
        call(Self::NAME, flat, OpdConfig { coefficient }, special)
    }
    fn naive(flat: &Flat<f64>, (added, coefficient): Self::Config) -> Outcome<f64> {
        let (teacher, student) = (flat.column(Column::RefLogProbs), flat.column(Column::OldLogProbs));
        let advantages = added.then(|| flat.column(Column::Advantages));
        Outcome::tokens([naive::opd_advantage(tokens(flat), teacher, student, advantages, coefficient)])
    }
}

pub(crate) struct MinillmAdvantage;
impl Case for MinillmAdvantage {
    const NAME: &'static str = "minillm_advantage";
    const UNITS: [f64; 2] = [30.0, 2.0];
    const DOMAINS: &'static [Row] = &[any().numbers(GAMMA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = MinillmConfig;
    fn config(random: &mut Random) -> Self::Config {
        MinillmConfig {
            gamma: discount(random),
            from: random.pick(&[DiscountFrom::Token, DiscountFrom::Start]),
            // TRL's depends on the padding and has its own test
            length: random.pick(&[LengthNormalization::Off, LengthNormalization::Kept]),
            across: random.pick(&ACROSS),
        }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: Self::Config) -> Outcome<f64> {
        let (teacher, student) = (flat.column(Column::RefLogProbs), flat.column(Column::OldLogProbs));
        Outcome::tokens([naive::minillm_advantage(tokens(flat), teacher, student, &config)])
    }
}

crate::case::tests! {
    reinforce_plus_plus: ReinforcePlusPlus {
        nan_stays_in_its_token(&[Column::Rewards]);
    },
    reinforce_plus_plus_baseline: ReinforcePlusPlusBaseline,
    remax: Remax {
        nan_stays_in_its_token(&[Column::Rewards]);
    },
    gdpo: Gdpo,
    optimal_token_baseline: OptimalTokenBaseline,
    tir_optimal_token_baseline: TirOptimalTokenBaseline,
    opd_advantage: OpdAdvantage {
        nan_stays_in_its_token(&[Column::RefLogProbs, Column::OldLogProbs]);
    },
    minillm_advantage: MinillmAdvantage {
        nan_stays_in_its_token(&[Column::RefLogProbs, Column::OldLogProbs]);
    },
}
