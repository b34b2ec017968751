//! Samples of one prompt, compared with each other.

use alloc::vec::Vec;

use tokenwise::{advantage as core, Either, Groups, Moments};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    error::Result,
    export::export,
    put::reals,
    read::read,
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("group.ts");

export! {
    #[cfg(feature = "full")]
    REST = 10;
    group_relative(groups:groups, scores, config:GroupConfig) -> (:F) => groupRelative, groupRelativeF64;
    leave_one_out(groups:groups, scores, config:LeaveOneOutConfig) -> (:F) => leaveOneOut, leaveOneOutF64;
    leave_one_out_scaled(groups:groups, scores, config:LeaveOneOutScaledConfig) -> (:F)
        => leaveOneOutScaled, leaveOneOutScaledF64;
    normalize_scores(groups:groups, scores, config:NormalizeConfig) -> (:F) => normalizeScores, normalizeScoresF64;
    gpg_advantage(groups:groups, scores, config:GpgConfig) -> (:F) => gpgAdvantage, gpgAdvantageF64;
    max_rl(groups:groups, scores, config:MaxRlConfig) -> (:F) => maxRl, maxRlF64;
    best_of_group(groups:groups, scores, config:BestOfGroupConfig) -> (:F) => bestOfGroup, bestOfGroupF64;
    length_weighted_baseline(batch:batch, groups:groups, scores, config:LengthWeightedConfig) -> (:S)
        => lengthWeightedBaseline, lengthWeightedBaselineF64;
    decoupled_scores(groups:groups, input{weights:doubles, sources}, config:GroupConfig) -> ()
        => decoupledScores, decoupledScoresF64;
    gdpo(batch:batch, groups:groups, input{weights:doubles, sources}, config:GdpoConfig) -> (:T) => gdpo, gdpoF64;
    reinforce_plus_plus_baseline(batch:batch, groups:groups, scores, config:ReinforcePlusPlusBaselineConfig) -> (:T)
        => reinforcePlusPlusBaseline, reinforcePlusPlusBaselineF64;
    optimal_token_baseline(
        batch:batch, groups:groups, input{is_weights?, rewards, old_log_probs, sum_pi_squared},
        config:OptimalBaselineConfig) -> (advantages:T, returns:T) => optimalTokenBaseline, optimalTokenBaselineF64;
    tir_optimal_token_baseline(
        batch:batch, groups:groups, input{is_weights?, rewards, old_log_probs, sum_pi_squared},
        config:OptimalBaselineConfig) -> (advantages:T, returns:T)
        => tirOptimalTokenBaseline, tirOptimalTokenBaselineF64;
}

/// Groups with the scratch that estimators need.
#[inline(never)]
fn grouped<'a>(call: &mut Call<'a>) -> Result<(&'a mut [Either], Groups<'a>, Vec<Moments>)> {
    let (scores, groups) = (call.real(), call.groups()?);
    Ok((scores, groups, zeros(groups.count())))
}

/// The estimators that differ in their config alone.
macro_rules! grouped {
    ($($name:ident)+) => {$(
        fn $name(call: &mut Call<'_>) -> Result {
            let config = read();
            let (scores, groups, mut scratch) = grouped(call)?;
            core::$name(&groups, scores, &config, &mut scratch, call.real())
        }
    )+};
}

grouped! { group_relative leave_one_out leave_one_out_scaled normalize_scores gpg_advantage max_rl }

fn best_of_group(call: &mut Call<'_>) -> Result {
    let config = read();
    let (scores, groups, mut moments) = grouped(call)?;
    let mut top: Vec<core::TopTwo> = zeros(groups.count());
    let scratch = core::BestOfGroupScratch { moments: &mut moments, top: &mut top };
    core::best_of_group(&groups, scores, &config, scratch, call.real())
}

fn length_weighted_baseline(call: &mut Call<'_>) -> Result {
    let (config, scores, groups) = (read(), call.real(), call.groups()?);
    let mut scratch = zeros(groups.count());
    core::length_weighted_baseline(call.batch, &groups, scores, &config, &mut scratch, call.real())
}

fn gdpo_input<'a>(call: &mut Call<'a>) -> core::GdpoInput<'a, Either> {
    core::GdpoInput { weights: call.double(), sources: call.real() }
}

fn decoupled_scores(call: &mut Call<'_>) -> Result {
    let (config, input, groups) = (read(), gdpo_input(call), call.groups()?);
    let mut out = zeros(groups.sequences());
    core::decoupled_scores(&groups, input, &config, &mut zeros(groups.count()), &mut out)?;
    reals(out);
    Ok(())
}

fn gdpo(call: &mut Call<'_>) -> Result {
    let (config, input, groups) = (read(), gdpo_input(call), call.groups()?);
    let (mut moments, mut scores) = (zeros(groups.count()), zeros(groups.sequences()));
    let scratch = core::GdpoScratch { moments: &mut moments, scores: &mut scores };
    core::gdpo(call.batch, &groups, input, &config, scratch, call.real())
}

fn reinforce_plus_plus_baseline(call: &mut Call<'_>) -> Result {
    let config = read();
    let (scores, groups, mut scratch) = grouped(call)?;
    core::reinforce_plus_plus_baseline(call.batch, &groups, scores, &config, &mut scratch, call.real())
}

fn optimal_token_baseline(call: &mut Call<'_>) -> Result {
    optimal(call, core::optimal_token_baseline)
}

fn tir_optimal_token_baseline(call: &mut Call<'_>) -> Result {
    optimal(call, core::tir_optimal_token_baseline)
}

type Optimal = fn(
    &tokenwise::Batch<'_>,
    &Groups<'_>,
    core::OptimalBaselineInput<'_, Either>,
    &core::OptimalBaselineConfig,
    core::OptimalBaselineScratch<'_>,
    core::OptimalBaselineOutput<'_, Either>,
) -> Result;

#[inline(never)]
fn optimal(call: &mut Call<'_>, kernel: Optimal) -> Result {
    let (config, is_weights) = (read(), call.optional_real());
    let input = core::OptimalBaselineInput {
        rewards: call.real(),
        old_log_probs: call.real(),
        sum_pi_squared: call.real(),
        is_weights,
    };
    let groups = call.groups()?;
    let mut columns = zeros(core::optimal_baseline_columns(call.batch, &groups)?);
    let mut lengths = zeros(groups.count());
    let scratch = core::OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths };
    let output = core::OptimalBaselineOutput { advantages: call.real(), returns: call.real() };
    kernel(call.batch, &groups, input, &config, scratch, output)
}
