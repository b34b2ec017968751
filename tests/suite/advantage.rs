//! Stage 4: advantages and returns.

use tokenwise::advantage::*;
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{by_name, tokens, Case, Outcome},
    errors::domains::*,
    metric::SPREADS,
    naive::advantage as naive,
    reward::DIVISORS,
};

pub(crate) const ACROSS: [Across; 2] = [Across::StepOver, Across::ZeroStep];
pub(crate) const SINGLETONS: [Singleton; 3] = [Singleton::Zero, Singleton::Raw, Singleton::Undefined];

/// Exact in both types, so that the textbook discounts by the same number.
pub(crate) fn discount(random: &mut Random) -> f64 {
    random.pick(&[0.0, 0.5, 0.9375, 0.984375, 1.0])
}

fn returns_config(random: &mut Random) -> ReturnsConfig {
    ReturnsConfig { gamma: discount(random), across: random.pick(&ACROSS) }
}

pub(crate) struct DiscountedReturns;
impl Case for DiscountedReturns {
    const NAME: &'static str = "discounted_returns";
    const UNITS: [f64; 2] = [100.0, 60.0];
    const DOMAINS: &'static [Row] = &[any().numbers(GAMMA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = ReturnsConfig;
    fn config(random: &mut Random) -> ReturnsConfig {
        returns_config(random)
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: ReturnsConfig) -> Outcome<f64> {
        let rewards = flat.column(Column::Rewards);
        Outcome::tokens([naive::discounted_returns(tokens(flat), rewards, &flat.bootstrap, &config)])
    }
}

pub(crate) struct Gae;
impl Case for Gae {
    const NAME: &'static str = "gae";
    const UNITS: [f64; 2] = [30.0, 10.0];
    const DOMAINS: &'static [Row] = &[any().numbers(GAMMA_LAMBDA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = GaeConfig;
    fn config(random: &mut Random) -> GaeConfig {
        GaeConfig { gamma: discount(random), lambda: discount(random), across: random.pick(&ACROSS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: GaeConfig) -> Outcome<f64> {
        let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
        let (advantages, returns) = naive::gae(tokens(flat), rewards, values, &flat.bootstrap, &config);
        Outcome::tokens([advantages, returns])
    }
}

pub(crate) struct MonteCarloAdvantage;
impl Case for MonteCarloAdvantage {
    const NAME: &'static str = "monte_carlo_advantage";
    const UNITS: [f64; 2] = [200.0, 60.0];
    const DOMAINS: &'static [Row] = &[any().numbers(GAMMA)];
    const SEQUENCES_ALONE: bool = true;
    type Config = ReturnsConfig;
    fn config(random: &mut Random) -> ReturnsConfig {
        returns_config(random)
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: ReturnsConfig) -> Outcome<f64> {
        let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
        let (a, g) = naive::monte_carlo_advantage(tokens(flat), rewards, values, &flat.bootstrap, &config);
        Outcome::tokens([a, g])
    }
}

pub(crate) struct UniformCredit;
impl Case for UniformCredit {
    const NAME: &'static str = "uniform_credit";
    const UNITS: [f64; 2] = [0.0, 0.3];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::uniform_credit(tokens(flat), &flat.scores)])
    }
}

pub(crate) struct LastKCredit;
impl Case for LastKCredit {
    const NAME: &'static str = "last_k_credit";
    const UNITS: [f64; 2] = [0.0, 0.3];
    const DOMAINS: &'static [Row] = &[any().numbers(&[key("k", AT_LEAST_1)])];
    const SEQUENCES_ALONE: bool = true;
    type Config = LastKConfig;
    fn config(random: &mut Random) -> LastKConfig {
        LastKConfig { k: random.pick(&[1, 2, 3, 17, 1 << 31]) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, LastKConfig { k }: LastKConfig) -> Outcome<f64> {
        Outcome::tokens([naive::last_k_credit(tokens(flat), &flat.scores, k)])
    }
}

pub(crate) struct AttentionCredit;
impl Case for AttentionCredit {
    const NAME: &'static str = "attention_credit";
    const UNITS: [f64; 2] = [2.0, 0.6];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::attention_credit(tokens(flat), &flat.scores, flat.column(Column::Weights))])
    }
}

pub(crate) struct GroupRelative;
impl Case for GroupRelative {
    const NAME: &'static str = "group_relative";
    const UNITS: [f64; 2] = [3.0, 0.8];
    const DOMAINS: &'static [Row] = &[any().numbers(EPSILON)];
    const SEQUENCES_ALONE: bool = true;
    type Config = GroupConfig;
    fn config(random: &mut Random) -> GroupConfig {
        GroupConfig {
            scale: random.pick(&[GroupScale::StandardDeviation, GroupScale::Unit]),
            spread: random.pick(&SPREADS),
            epsilon: random.pick(&[1e-6, 1e-2]),
            singleton: random.pick(&SINGLETONS),
        }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, config: GroupConfig) -> Outcome<f64> {
        Outcome::sequences([naive::group_relative(&flat.group_ids, &flat.outcomes, &config)])
    }
}

pub(crate) struct LeaveOneOut;
impl Case for LeaveOneOut {
    const NAME: &'static str = "leave_one_out";
    const UNITS: [f64; 2] = [3.0, 0.8];
    const SEQUENCES_ALONE: bool = true;
    type Config = LeaveOneOutConfig;
    fn config(random: &mut Random) -> LeaveOneOutConfig {
        LeaveOneOutConfig { singleton: random.pick(&SINGLETONS) }
    }
    by_name!();
    fn naive(flat: &Flat<f64>, LeaveOneOutConfig { singleton }: LeaveOneOutConfig) -> Outcome<f64> {
        Outcome::sequences([naive::leave_one_out(&flat.group_ids, &flat.outcomes, singleton)])
    }
}

pub(crate) struct Broadcast;
impl Case for Broadcast {
    const NAME: &'static str = "broadcast";
    const UNITS: [f64; 2] = [0.0, 0.0];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::broadcast(tokens(flat), &flat.scores)])
    }
}

pub(crate) struct SequenceSums;
impl Case for SequenceSums {
    const NAME: &'static str = "sequence_sums";
    const UNITS: [f64; 2] = [60.0, 0.8];
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    by_name!();
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::sequences([naive::sequence_sums(tokens(flat), flat.column(Column::Rewards))])
    }
}

pub(crate) struct Whiten;
impl Case for Whiten {
    const NAME: &'static str = "whiten";
    const UNITS: [f64; 2] = [4.0, 0.8];
    const DOMAINS: &'static [Row] = &[whitens().numbers(EPSILON)];
    const SEQUENCES_ALONE: bool = false;
    type Config = WhitenConfig;
    fn config(random: &mut Random) -> WhitenConfig {
        WhitenConfig {
            spread: random.pick(&SPREADS),
            epsilon: random.pick(&[1e-8, 1e-2]),
            place: random.pick(&[EpsilonPlace::InsideRoot, EpsilonPlace::Outside, EpsilonPlace::FloorVariance]),
            center: random.pick(&[Center::Shift, Center::KeepMean]),
            scale: random.pick(&[Scale::StandardDeviation, Scale::StandardDeviation, Scale::Unit]),
            divisor: random.pick(&DIVISORS),
        }
    }
    by_name!("values": |flat: &Flat<R>| Array::Real(flat.column(Column::Advantages).to_vec()));
    fn naive(flat: &Flat<f64>, config: WhitenConfig) -> Outcome<f64> {
        Outcome::tokens([naive::whiten(tokens(flat), flat.column(Column::Advantages), &config)])
    }
}

crate::case::tests! {
    discounted_returns: DiscountedReturns {
        nan_stays_in_its_token(&[Column::Rewards]);
    },
    gae: Gae {
        nan_stays_in_its_token(&[Column::Rewards, Column::Values]);
    },
    monte_carlo_advantage: MonteCarloAdvantage,
    uniform_credit: UniformCredit,
    last_k_credit: LastKCredit,
    attention_credit: AttentionCredit {
        nan_stays_in_its_token(&[Column::Weights]);
    },
    group_relative: GroupRelative,
    leave_one_out: LeaveOneOut,
    broadcast: Broadcast,
    sequence_sums: SequenceSums,
    whiten: Whiten {
        nan_stays_in_its_token(&[Column::Advantages]);
    },
}
