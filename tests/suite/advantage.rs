//! Stage 4: advantages and returns.

use tokenwise::{advantage::*, Moments, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::advantage as naive,
};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
    metric::SPREADS,
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
    const FORMULA: Formula = Formula::DiscountedReturns;
    const SEQUENCES_ALONE: bool = true;
    type Config = ReturnsConfig;
    fn config(random: &mut Random) -> ReturnsConfig {
        returns_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: ReturnsConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        let input = ReturnsInput { rewards: flat.column(Column::Rewards), bootstrap: &flat.bootstrap };
        discounted_returns(&flat.batch(), input, &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: ReturnsConfig) -> Outcome<f64> {
        let rewards = flat.column(Column::Rewards);
        Outcome::tokens([naive::discounted_returns(tokens(flat), rewards, &flat.bootstrap, &config)])
    }
}

pub(crate) struct Gae;
impl Case for Gae {
    const FORMULA: Formula = Formula::Gae;
    const SEQUENCES_ALONE: bool = true;
    type Config = GaeConfig;
    fn config(random: &mut Random) -> GaeConfig {
        GaeConfig { gamma: discount(random), lambda: discount(random), across: random.pick(&ACROSS) }
    }
    fn run<R: Number>(flat: &Flat<R>, config: GaeConfig) -> Result<Outcome<R>> {
        let (mut advantages, mut returns) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        gae(&flat.batch(), GaeInput { rewards, values, bootstrap: &flat.bootstrap }, &config, output)?;
        Ok(Outcome::tokens([advantages, returns]))
    }
    fn naive(flat: &Flat<f64>, config: GaeConfig) -> Outcome<f64> {
        let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
        let (advantages, returns) = naive::gae(tokens(flat), rewards, values, &flat.bootstrap, &config);
        Outcome::tokens([advantages, returns])
    }
}

pub(crate) struct MonteCarloAdvantage;
impl Case for MonteCarloAdvantage {
    const FORMULA: Formula = Formula::MonteCarloAdvantage;
    const SEQUENCES_ALONE: bool = true;
    type Config = ReturnsConfig;
    fn config(random: &mut Random) -> ReturnsConfig {
        returns_config(random)
    }
    fn run<R: Number>(flat: &Flat<R>, config: ReturnsConfig) -> Result<Outcome<R>> {
        let (mut advantages, mut returns) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
        let output = MonteCarloOutput { advantages: &mut advantages, returns: &mut returns };
        let input = MonteCarloInput { rewards, values, bootstrap: &flat.bootstrap };
        monte_carlo_advantage(&flat.batch(), input, &config, output)?;
        Ok(Outcome::tokens([advantages, returns]))
    }
    fn naive(flat: &Flat<f64>, config: ReturnsConfig) -> Outcome<f64> {
        let (rewards, values) = (flat.column(Column::Rewards), flat.column(Column::Values));
        let (a, g) = naive::monte_carlo_advantage(tokens(flat), rewards, values, &flat.bootstrap, &config);
        Outcome::tokens([a, g])
    }
}

pub(crate) struct UniformCredit;
impl Case for UniformCredit {
    const FORMULA: Formula = Formula::UniformCredit;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        uniform_credit(&flat.batch(), &flat.scores, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::uniform_credit(tokens(flat), &flat.scores)])
    }
}

pub(crate) struct LastKCredit;
impl Case for LastKCredit {
    const FORMULA: Formula = Formula::LastKCredit;
    const SEQUENCES_ALONE: bool = true;
    type Config = usize;
    fn config(random: &mut Random) -> usize {
        random.pick(&[1, 2, 3, 17, usize::MAX])
    }
    fn run<R: Number>(flat: &Flat<R>, k: usize) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        last_k_credit(&flat.batch(), &flat.scores, k, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, k: usize) -> Outcome<f64> {
        Outcome::tokens([naive::last_k_credit(tokens(flat), &flat.scores, k)])
    }
}

pub(crate) struct AttentionCredit;
impl Case for AttentionCredit {
    const FORMULA: Formula = Formula::AttentionCredit;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        let input = AttentionInput { scores: &flat.scores, weights: flat.column(Column::Weights) };
        attention_credit(&flat.batch(), input, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::attention_credit(tokens(flat), &flat.scores, flat.column(Column::Weights))])
    }
}

pub(crate) struct GroupRelative;
impl Case for GroupRelative {
    const FORMULA: Formula = Formula::GroupRelative;
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
    fn run<R: Number>(flat: &Flat<R>, config: GroupConfig) -> Result<Outcome<R>> {
        let groups = flat.groups();
        let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], unwritten(flat.rows.len()));
        group_relative(&groups, &flat.outcomes, &config, &mut scratch, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, config: GroupConfig) -> Outcome<f64> {
        Outcome::sequences([naive::group_relative(&flat.group_ids, &flat.outcomes, &config)])
    }
}

pub(crate) struct LeaveOneOut;
impl Case for LeaveOneOut {
    const FORMULA: Formula = Formula::LeaveOneOut;
    const SEQUENCES_ALONE: bool = true;
    type Config = Singleton;
    fn config(random: &mut Random) -> Singleton {
        random.pick(&SINGLETONS)
    }
    fn run<R: Number>(flat: &Flat<R>, singleton: Singleton) -> Result<Outcome<R>> {
        let groups = flat.groups();
        let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], unwritten(flat.rows.len()));
        leave_one_out(&groups, &flat.outcomes, &LeaveOneOutConfig { singleton }, &mut scratch, &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, singleton: Singleton) -> Outcome<f64> {
        Outcome::sequences([naive::leave_one_out(&flat.group_ids, &flat.outcomes, singleton)])
    }
}

pub(crate) struct Broadcast;
impl Case for Broadcast {
    const FORMULA: Formula = Formula::Broadcast;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        broadcast(&flat.batch(), &flat.scores, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::tokens([naive::broadcast(tokens(flat), &flat.scores)])
    }
}

pub(crate) struct SequenceSums;
impl Case for SequenceSums {
    const FORMULA: Formula = Formula::SequenceSums;
    const SEQUENCES_ALONE: bool = true;
    type Config = ();
    fn config(_: &mut Random) {}
    fn run<R: Number>(flat: &Flat<R>, _: ()) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.rows.len());
        sequence_sums(&flat.batch(), flat.column(Column::Rewards), &mut out)?;
        Ok(Outcome::sequences([out]))
    }
    fn naive(flat: &Flat<f64>, _: ()) -> Outcome<f64> {
        Outcome::sequences([naive::sequence_sums(tokens(flat), flat.column(Column::Rewards))])
    }
}

pub(crate) struct Whiten;
impl Case for Whiten {
    const FORMULA: Formula = Formula::Whiten;
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
    fn run<R: Number>(flat: &Flat<R>, config: WhitenConfig) -> Result<Outcome<R>> {
        let mut out = unwritten(flat.tokens());
        whiten(&flat.batch(), flat.column(Column::Advantages), &config, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, config: WhitenConfig) -> Outcome<f64> {
        Outcome::tokens([naive::whiten(tokens(flat), flat.column(Column::Advantages), &config)])
    }
}
