//! Stage 4: scores against those of other samples.

use tokenwise::{
    advantage::{
        self, BestOfGroupConfig, BestOfGroupScratch, FactorPrecision, GdpoConfig, GdpoInput, GdpoScratch, GpgConfig,
        GroupConfig, GroupScale, LeaveOneOutScaledConfig, LengthWeightedConfig, Level, MaxRlConfig, MeanDivisor,
        NormalizeConfig, OptimalBaselineConfig, OptimalBaselineInput, OptimalBaselineOutput, OptimalBaselineScratch,
        Own, ReinforcePlusPlusBaselineConfig, RoleBaseline, TopTwo, WeightedSum, ZeroTail,
    },
    Batch, Groups, Moments, Result, Spread,
};

use crate::{
    advantage::{SINGLETONS, WHITENINGS},
    cases::{Case, Out},
    hash::Value,
};

const FACTORS: [FactorPrecision; 2] = [FactorPrecision::Exact, FactorPrecision::Single];
const SPREADS: [Spread; 2] = [Spread::Sample, Spread::Population];
/// Columns of the optimal baselines: as many as fit beside the inputs into a small memory.
const COLUMNS: usize = 400;

pub(crate) fn length_weighted_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let scratch = &mut [WeightedSum::default(); 9][..case.groups.count()];
    for singleton in SINGLETONS {
        let config = LengthWeightedConfig { singleton };
        let result = advantage::length_weighted_baseline(
            &case.batch,
            &case.groups,
            case.scores,
            &config,
            scratch,
            out.sequences,
        );
        out.record(result);
    }
}

pub(crate) fn gpg_advantage<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let scratch = &mut [Moments::default(); 9][..case.groups.count()];
    for singleton in SINGLETONS {
        for factor in FACTORS {
            let config = GpgConfig { norm: 0.7, singleton, factor };
            let result = advantage::gpg_advantage(&case.groups, case.scores, &config, scratch, out.sequences);
            out.record(result);
        }
    }
}

pub(crate) fn best_of_group<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for groups in [case.paired, case.groups] {
        let moments = &mut [Moments::default(); 9][..groups.count()];
        let top = &mut [TopTwo::default(); 9][..groups.count()];
        for scale in [GroupScale::StandardDeviation, GroupScale::Unit] {
            for spread in SPREADS {
                let config = BestOfGroupConfig { scale, spread, epsilon: 1e-6 };
                let scratch = BestOfGroupScratch { moments, top };
                let result = advantage::best_of_group(&groups, case.scores, &config, scratch, out.sequences);
                out.record(result);
            }
        }
    }
}

pub(crate) fn leave_one_out_scaled<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    for groups in [case.paired, case.groups] {
        let scratch = &mut [Moments::default(); 9][..groups.count()];
        for epsilon in [1e-6, 0.0] {
            let config = LeaveOneOutScaledConfig { epsilon };
            let result = advantage::leave_one_out_scaled(&groups, case.scores, &config, scratch, out.sequences);
            out.record(result);
        }
    }
}

pub(crate) fn max_rl<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let scratch = &mut [Moments::default(); 9][..case.groups.count()];
    for divisor in [MeanDivisor::PlusEpsilon, MeanDivisor::IfPositive] {
        for singleton in SINGLETONS {
            let config = MaxRlConfig { divisor, epsilon: 1e-6, singleton };
            let result = advantage::max_rl(&case.groups, case.scores, &config, scratch, out.sequences);
            out.record(result);
        }
    }
}

pub(crate) fn normalize_scores<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    const LEVELS: [Level; 3] = [Level::Batch, Level::Group, Level::Off];
    let scratch = &mut [Moments::default(); 9][..case.groups.count()];
    for mean in LEVELS {
        for deviation in LEVELS {
            for own in [Own::Included, Own::LeftOut] {
                for spread in SPREADS {
                    let config = NormalizeConfig { mean, own, deviation, spread, epsilon: 1e-5 };
                    let result =
                        advantage::normalize_scores(&case.groups, case.scores, &config, scratch, out.sequences);
                    out.record(result);
                }
            }
        }
    }
}

/// Two sources, the second much louder, one after the other.
fn sources<R: Value>(case: &Case<'_, R>) -> [R; 18] {
    let mut sources = [R::zero(); 18];
    let (first, second) = sources.split_at_mut(case.scores.len());
    first.copy_from_slice(case.scores);
    for (slot, &score) in second.iter_mut().zip(case.bootstrap) {
        *slot = R::narrow(64.0) * score;
    }
    sources
}

pub(crate) fn decoupled_scores<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let scratch = &mut [Moments::default(); 9][..case.groups.count()];
    let sources = &sources(case)[..2 * case.scores.len()];
    for scale in [GroupScale::StandardDeviation, GroupScale::Unit] {
        for singleton in SINGLETONS {
            let input = GdpoInput { sources, weights: &[0.7, -0.3] };
            let config = GroupConfig { scale, singleton, ..GroupConfig::default() };
            let result = advantage::decoupled_scores(&case.groups, input, &config, scratch, out.sequences);
            out.record(result);
        }
    }
}

pub(crate) fn gdpo<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let moments = &mut [Moments::default(); 9][..case.groups.count()];
    let sources = &sources(case)[..2 * case.scores.len()];
    for whiten in WHITENINGS {
        for factors in FACTORS {
            for singleton in SINGLETONS {
                let input = GdpoInput { sources, weights: &[0.7, -0.3] };
                let group = GroupConfig { singleton, ..GroupConfig::default() };
                let scratch = GdpoScratch { moments, scores: out.sequences };
                let config = GdpoConfig { group, factors, whiten };
                let result = advantage::gdpo(&case.batch, &case.groups, input, &config, scratch, out.a);
                out.record(result);
            }
        }
    }
}

pub(crate) fn reinforce_plus_plus_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    let scratch = &mut [Moments::default(); 9][..case.groups.count()];
    for singleton in SINGLETONS {
        for whiten in WHITENINGS {
            let config = ReinforcePlusPlusBaselineConfig { singleton, whiten };
            let result = advantage::reinforce_plus_plus_baseline(
                &case.batch,
                &case.groups,
                case.scores,
                &config,
                scratch,
                out.a,
            );
            out.record(result);
        }
    }
}

pub(crate) fn role_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    const ROLES: [u32; 9] = [0, 1, 0, 0, 1, 1, 0, 1, 0];
    for decay in [0.9, 0.0, 1.0, 2.0] {
        match RoleBaseline::new(decay) {
            Ok(start) => {
                let mut baselines = [start; 2];
                // the baselines go on from one call to the next
                for scores in [case.scores, case.bootstrap] {
                    let roles = &ROLES[..scores.len()];
                    let result = advantage::role_baseline(roles, scores, &mut baselines, out.sequences);
                    out.record((result, baselines.map(|role| role.baseline())));
                }
            }
            refused => out.record(refused.map(|_| ())),
        }
    }
}

pub(crate) fn optimal_token_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    optimal(case, out, advantage::optimal_token_baseline);
}

pub(crate) fn tir_optimal_token_baseline<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>) {
    optimal(case, out, advantage::tir_optimal_token_baseline);
}

type Optimal<R> = fn(
    &Batch<'_>,
    &Groups<'_>,
    OptimalBaselineInput<'_, R>,
    &OptimalBaselineConfig,
    OptimalBaselineScratch<'_>,
    OptimalBaselineOutput<'_, R>,
) -> Result<()>;

#[allow(clippy::needless_borrows_for_generic_args, reason = "with feature small a result on wasm32 cannot be copied")]
fn optimal<R: Value>(case: &Case<'_, R>, out: &mut Out<'_, R>, formula: Optimal<R>) {
    for groups in [case.groups, case.paired] {
        let entries = advantage::optimal_baseline_columns(&case.batch, &groups);
        out.record(&entries);
        let mut room = [WeightedSum::default(); COLUMNS];
        // the one long row of `f32` does not fit
        let Some(columns) = entries.ok().and_then(|entries| room.get_mut(..entries)) else { continue };
        let lengths = &mut [TopTwo::default(); 9][..groups.count()];
        for is_weights in [None, Some(case.weights)] {
            for zero_tail in [ZeroTail::NoBaseline, ZeroTail::OwnReturn] {
                let input = OptimalBaselineInput {
                    rewards: case.rewards,
                    old_log_probs: case.old_log_probs,
                    sum_pi_squared: case.weights,
                    is_weights,
                };
                let config = OptimalBaselineConfig { zero_tail, epsilon: 1e-8 };
                let scratch = OptimalBaselineScratch { columns, lengths };
                let output = OptimalBaselineOutput { advantages: out.a, returns: out.b };
                let result = formula(&case.batch, &groups, input, &config, scratch, output);
                out.record(result);
            }
        }
    }
}
