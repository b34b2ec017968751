//! Scores compared within the samples of their prompt.

use alloc::{vec, vec::Vec};

use tokenwise::{
    advantage::{
        self, BestOfGroupScratch, GdpoInput, GdpoScratch, OptimalBaselineConfig, OptimalBaselineInput,
        OptimalBaselineOutput, OptimalBaselineScratch, TopTwo,
    },
    group_scratch_len, Batch, Groups, Moments,
};

use crate::{
    entry::{formulas, list, sequence, source, token},
    Call,
    Element::Double,
    Number, Refusal,
};

fn moments(groups: &Groups<'_>) -> Vec<Moments> {
    vec![Moments::default(); group_scratch_len(groups)]
}

fn gdpo_input<'a, R: Number>(call: &Call<'a, R>) -> Result<GdpoInput<'a, R>, Refusal> {
    Ok(GdpoInput { sources: call.real("sources")?, weights: call.inputs.double("weights")? })
}

type Optimal<R> = fn(
    &Batch<'_>,
    &Groups<'_>,
    OptimalBaselineInput<'_, R>,
    &OptimalBaselineConfig,
    OptimalBaselineScratch<'_>,
    OptimalBaselineOutput<'_, R>,
) -> tokenwise::Result<()>;

fn optimal<R: Number>(call: &mut Call<'_, R>, kernel: Optimal<R>) -> Result<(), Refusal> {
    let input = OptimalBaselineInput {
        rewards: call.real("rewards")?,
        old_log_probs: call.real("old_log_probs")?,
        sum_pi_squared: call.real("sum_pi_squared")?,
        is_weights: call.optional("is_weights")?,
    };
    let (batch, groups, config) = (call.batch()?, call.groups()?, call.config()?);
    let mut columns = vec![Default::default(); advantage::optimal_baseline_scratch_len(&batch, &groups)?];
    let mut lengths = vec![TopTwo::default(); groups.count()];
    let scratch = OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths };
    let [advantages, returns] = call.outputs.reals_mut(["advantages", "returns"])?;
    Ok(kernel(&batch, &groups, input, &config, scratch, OptimalBaselineOutput { advantages, returns })?)
}

formulas! { "advantage":
    group_relative(Groups; sequence("scores")) GroupConfig -> (sequence("out")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = moments(&groups);
        Ok(advantage::group_relative(&groups, scores, &config, &mut scratch, call.outputs.real_mut("out")?)?)
    }
    leave_one_out(Groups; sequence("scores")) LeaveOneOutConfig -> (sequence("out")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = moments(&groups);
        Ok(advantage::leave_one_out(&groups, scores, &config, &mut scratch, call.outputs.real_mut("out")?)?)
    }
    leave_one_out_scaled(Groups; sequence("scores")) LeaveOneOutScaledConfig -> (sequence("out")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = moments(&groups);
        Ok(advantage::leave_one_out_scaled(&groups, scores, &config, &mut scratch, call.outputs.real_mut("out")?)?)
    }
    normalize_scores(Groups; sequence("scores")) NormalizeConfig -> (sequence("out")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = moments(&groups);
        Ok(advantage::normalize_scores(&groups, scores, &config, &mut scratch, call.outputs.real_mut("out")?)?)
    }
    gpg_advantage(Groups; sequence("scores")) GpgConfig -> (sequence("out")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = moments(&groups);
        Ok(advantage::gpg_advantage(&groups, scores, &config, &mut scratch, call.outputs.real_mut("out")?)?)
    }
    max_rl(Groups; sequence("scores")) MaxRlConfig -> (sequence("out")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = moments(&groups);
        Ok(advantage::max_rl(&groups, scores, &config, &mut scratch, call.outputs.real_mut("out")?)?)
    }
    best_of_group(Groups; sequence("scores")) BestOfGroupConfig -> (sequence("out")) [] |call| {
        let (groups, scores, config) = (call.groups()?, call.real("scores")?, call.config()?);
        let (mut moments, mut top) = (moments(&groups), vec![TopTwo::default(); groups.count()]);
        let scratch = BestOfGroupScratch { moments: &mut moments, top: &mut top };
        Ok(advantage::best_of_group(&groups, scores, &config, scratch, call.outputs.real_mut("out")?)?)
    }
    length_weighted_baseline(BatchAndGroups; sequence("scores")) LengthWeightedConfig -> (sequence("out")) [] |call| {
        let (batch, groups, scores, config) = (call.batch()?, call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = vec![Default::default(); groups.count()];
        let out = call.outputs.real_mut("out")?;
        Ok(advantage::length_weighted_baseline(&batch, &groups, scores, &config, &mut scratch, out)?)
    }
    decoupled_scores(Groups; source("sources"), list("weights").of(Double)) GroupConfig
        -> (sequence("out")) [] |call|
    {
        let (groups, input, config) = (call.groups()?, gdpo_input(call)?, call.config()?);
        let mut scratch = moments(&groups);
        Ok(advantage::decoupled_scores(&groups, input, &config, &mut scratch, call.outputs.real_mut("out")?)?)
    }
    gdpo(BatchAndGroups; source("sources"), list("weights").of(Double)) GdpoConfig -> (token("advantages")) [] |call| {
        let (batch, groups, input, config) = (call.batch()?, call.groups()?, gdpo_input(call)?, call.config()?);
        let (mut moments, mut scores) = (moments(&groups), vec![R::narrow(0.0); groups.sequences()]);
        let scratch = GdpoScratch { moments: &mut moments, scores: &mut scores };
        Ok(advantage::gdpo(&batch, &groups, input, &config, scratch, call.outputs.real_mut("advantages")?)?)
    }
    reinforce_plus_plus_baseline(BatchAndGroups; sequence("scores")) ReinforcePlusPlusBaselineConfig
        -> (token("advantages")) [] |call|
    {
        let (batch, groups, scores, config) = (call.batch()?, call.groups()?, call.real("scores")?, call.config()?);
        let mut scratch = moments(&groups);
        let out = call.outputs.real_mut("advantages")?;
        Ok(advantage::reinforce_plus_plus_baseline(&batch, &groups, scores, &config, &mut scratch, out)?)
    }
    optimal_token_baseline(
        BatchAndGroups;
        token("rewards"), token("old_log_probs"), token("sum_pi_squared"), token("is_weights").optional()
    ) OptimalBaselineConfig -> (token("advantages"), token("returns")) [] |call| {
        optimal(call, advantage::optimal_token_baseline)
    }
    tir_optimal_token_baseline(
        BatchAndGroups;
        token("rewards"), token("old_log_probs"), token("sum_pi_squared"), token("is_weights").optional()
    ) OptimalBaselineConfig -> (token("advantages"), token("returns")) [] |call| {
        optimal(call, advantage::tir_optimal_token_baseline)
    }
}
