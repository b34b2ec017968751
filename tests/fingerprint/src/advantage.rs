//! Stage 4.

use tokenwise::{
    advantage::{
        self, Across, AttentionInput, Center, EpsilonPlace, GaeConfig, GaeInput, GaeOutput, GroupConfig, GroupScale,
        LeaveOneOutConfig, MonteCarloInput, MonteCarloOutput, ReturnsConfig, ReturnsInput, Scale, Singleton,
        WhitenConfig,
    },
    Divisor, Moments, Spread,
};

use crate::{
    cases::{Case, Out},
    hash::Value,
};

pub(crate) const ACROSS: [Across; 2] = [Across::StepOver, Across::ZeroStep];
pub(crate) const SINGLETONS: [Singleton; 3] = [Singleton::Zero, Singleton::Raw, Singleton::Undefined];
/// Of formulas that whiten at their end: verl's and OpenRLHF's.
pub(crate) const WHITENINGS: [WhitenConfig; 2] = [
    WhitenConfig {
        spread: Spread::Sample,
        epsilon: 1e-8,
        place: EpsilonPlace::InsideRoot,
        center: Center::Shift,
        scale: Scale::StandardDeviation,
        divisor: Divisor::CountPlusEpsilon,
    },
    WhitenConfig {
        spread: Spread::Population,
        epsilon: 1e-8,
        place: EpsilonPlace::FloorVariance,
        center: Center::Shift,
        scale: Scale::StandardDeviation,
        divisor: Divisor::Count,
    },
];

pub(crate) fn discounted_returns<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for across in ACROSS {
        let input = ReturnsInput { rewards: case.rewards, bootstrap: case.bootstrap };
        let result = advantage::discounted_returns(&case.batch, input, &ReturnsConfig { gamma: 0.99, across }, out.a);
        out.record(result);
    }
}

pub(crate) fn gae<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for across in ACROSS {
        let input = GaeInput { rewards: case.rewards, values: case.values, bootstrap: case.bootstrap };
        let output = GaeOutput { advantages: out.a, returns: out.b };
        let result = advantage::gae(&case.batch, input, &GaeConfig { gamma: 0.99, lambda: 0.95, across }, output);
        out.record(result);
    }
}

pub(crate) fn monte_carlo_advantage<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for across in ACROSS {
        let input = MonteCarloInput { rewards: case.rewards, values: case.values, bootstrap: case.bootstrap };
        let output = MonteCarloOutput { advantages: out.a, returns: out.b };
        let config = ReturnsConfig { gamma: 0.99, across };
        let result = advantage::monte_carlo_advantage(&case.batch, input, &config, output);
        out.record(result);
    }
}

pub(crate) fn uniform_credit<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let result = advantage::uniform_credit(&case.batch, case.scores, out.a);
    out.record(result);
}

pub(crate) fn last_k_credit<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for k in [0, 1, 3] {
        let result = advantage::last_k_credit(&case.batch, case.scores, k, out.a);
        out.record(result);
    }
}

pub(crate) fn attention_credit<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let input = AttentionInput { scores: case.scores, weights: case.weights };
    let result = advantage::attention_credit(&case.batch, input, out.a);
    out.record(result);
}

pub(crate) fn group_relative<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let scratch = &mut [Moments::default(); 9][..case.groups.count()];
    for scale in [GroupScale::StandardDeviation, GroupScale::Unit] {
        for singleton in SINGLETONS {
            for spread in [Spread::Sample, Spread::Population] {
                let config = GroupConfig { scale, singleton, spread, ..GroupConfig::default() };
                let result = advantage::group_relative(&case.groups, case.scores, &config, scratch, out.sequences);
                out.record(result);
            }
        }
    }
}

pub(crate) fn leave_one_out<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let scratch = &mut [Moments::default(); 9][..case.groups.count()];
    for singleton in SINGLETONS {
        let config = LeaveOneOutConfig { singleton };
        let result = advantage::leave_one_out(&case.groups, case.scores, &config, scratch, out.sequences);
        out.record(result);
    }
}

pub(crate) fn broadcast<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let result = advantage::broadcast(&case.batch, case.scores, out.a);
    out.record(result);
}

pub(crate) fn sequence_sums<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let result = advantage::sequence_sums(&case.batch, case.rewards, out.sequences);
    out.record(result);
}

pub(crate) fn whiten<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let usual = WhitenConfig::default();
    for config in [
        usual,
        WhitenConfig { divisor: Divisor::CountPlusEpsilon, center: Center::KeepMean, ..usual },
        WhitenConfig { spread: Spread::Population, place: EpsilonPlace::FloorVariance, ..usual },
        WhitenConfig { place: EpsilonPlace::Outside, ..usual },
        WhitenConfig { scale: Scale::Unit, ..usual },
    ] {
        let result = advantage::whiten(&case.batch, case.advantages, &config, out.a);
        out.record(result);
    }
}
