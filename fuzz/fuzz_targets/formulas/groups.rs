//! Stage 4: scores against those of other samples.

use tokenwise::{advantage::*, Batch, Groups, Moments, Spread};

use crate::{
    advantages::{singleton, whitening},
    reader::{others, tokens, Reader, UNTOUCHED},
};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let group_ids = reader.ids(sequences, 4);
    let groups = if reader.byte() < 128 { Groups::from_ids(&group_ids) } else { Groups::contiguous(&group_ids) };
    let Ok(groups) = groups else { return };
    let (scores, len, rows) = (reader.numbers(sequences), reader.len(n), reader.len(sequences));
    let room = reader.len(groups.count());
    let mut moments = vec![Moments::default(); room];
    let (singleton, epsilon) = (singleton(reader), reader.share());
    let factor = reader.pick(&[FactorPrecision::Exact, FactorPrecision::Single]);
    let scale = reader.pick(&[GroupScale::StandardDeviation, GroupScale::Unit]);
    let spread = reader.pick(&[Spread::Sample, Spread::Population]);

    let (config, mut sums) = (LengthWeightedConfig { singleton }, vec![WeightedSum::default(); room]);
    others(rows, UNTOUCHED, |out| length_weighted_baseline(batch, &groups, &scores, &config, &mut sums, out));
    let config = GpgConfig { norm: reader.number(), singleton, factor };
    others(rows, UNTOUCHED, |out| gpg_advantage(&groups, &scores, &config, &mut moments, out));
    let (config, mut top) = (BestOfGroupConfig { scale, spread, epsilon }, vec![TopTwo::default(); room]);
    others(rows, UNTOUCHED, |out| {
        let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };
        best_of_group(&groups, &scores, &config, scratch, out)
    });
    let config = LeaveOneOutScaledConfig { epsilon };
    others(rows, UNTOUCHED, |out| leave_one_out_scaled(&groups, &scores, &config, &mut moments, out));
    let divisor = reader.pick(&[MeanDivisor::PlusEpsilon, MeanDivisor::IfPositive]);
    let config = MaxRlConfig { divisor, epsilon, singleton };
    others(rows, UNTOUCHED, |out| max_rl(&groups, &scores, &config, &mut moments, out));
    let levels = [Level::Batch, Level::Group, Level::Off];
    let config = NormalizeConfig {
        mean: reader.pick(&levels),
        own: reader.pick(&[Own::Included, Own::LeftOut]),
        deviation: reader.pick(&levels),
        spread,
        epsilon,
    };
    others(rows, UNTOUCHED, |out| normalize_scores(&groups, &scores, &config, &mut moments, out));

    let weights = reader.numbers(2);
    let sources = reader.numbers(weights.len() * sequences);
    let input = GdpoInput { sources: &sources, weights: &weights };
    let group = GroupConfig { epsilon, singleton, scale, spread };
    others(rows, UNTOUCHED, |out| decoupled_scores(&groups, input, &group, &mut moments, out));
    let config = GdpoConfig { group, factors: factor, whiten: whitening(reader) };
    tokens(batch, len, 1, |out| {
        let scratch = GdpoScratch { moments: &mut moments, scores: &mut vec![UNTOUCHED; rows] };
        gdpo(batch, &groups, input, &config, scratch, out)
    });
    let config = ReinforcePlusPlusBaselineConfig { singleton, whiten: config.whiten };
    tokens(batch, len, 1, |out| reinforce_plus_plus_baseline(batch, &groups, &scores, &config, &mut moments, out));
    if let Ok(start) = RoleBaseline::new(reader.share()) {
        let (roles, mut baselines) = (reader.ids(sequences, 4), [start; 3]);
        let mut refused = false;
        others(rows, UNTOUCHED, |out| {
            let result = role_baseline(&roles, &scores, &mut baselines, out);
            refused = result.is_err();
            result
        });
        assert!(!refused || baselines == [start; 3], "an error moved a baseline");
    }

    let (rewards, log_probs, squares) = (reader.numbers(n), reader.numbers(n), reader.numbers(n));
    let input = OptimalBaselineInput {
        rewards: &rewards,
        old_log_probs: &log_probs,
        sum_pi_squared: &squares,
        is_weights: reader.pick(&[None, Some(&rewards[..])]),
    };
    let zero_tail = reader.pick(&[ZeroTail::NoBaseline, ZeroTail::OwnReturn]);
    let config = OptimalBaselineConfig { zero_tail, epsilon };
    let Ok(columns) = optimal_baseline_columns(batch, &groups) else { return };
    let mut columns = vec![WeightedSum::default(); reader.len(columns)];
    for by_slot in [true, false] {
        tokens(batch, len, 1, |advantages| {
            let scratch = OptimalBaselineScratch { columns: &mut columns, lengths: &mut top };
            let output = OptimalBaselineOutput { advantages, returns: &mut vec![UNTOUCHED; n] };
            if by_slot {
                optimal_token_baseline(batch, &groups, input, &config, scratch, output)
            } else {
                tir_optimal_token_baseline(batch, &groups, input, &config, scratch, output)
            }
        });
    }
}
