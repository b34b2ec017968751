//! Samples of one prompt, compared with each other.

use alloc::vec::Vec;

use tokenwise::{advantage as core, Groups, Moments};
use wasm_bindgen::{prelude::wasm_bindgen, JsValue};

use crate::{
    array::{zeros, Real},
    batch::{shared, Owned, OwnedGroups},
    call::{array, arrays, call, call_free, call_one, Size},
    config,
    error::Result,
    export::export,
    object::{object, Fields},
    state::RoleBaselines,
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("group.ts");

export! {
    #[cfg(feature = "full")]
    REST = 10;
    group_relative(groups, scores, config) => groupRelative, groupRelativeF64;
    leave_one_out(groups, scores, config) => leaveOneOut, leaveOneOutF64;
    leave_one_out_scaled(groups, scores, config) => leaveOneOutScaled, leaveOneOutScaledF64;
    normalize_scores(groups, scores, config) => normalizeScores, normalizeScoresF64;
    gpg_advantage(groups, scores, config) => gpgAdvantage, gpgAdvantageF64;
    max_rl(groups, scores, config) => maxRl, maxRlF64;
    best_of_group(groups, scores, config) => bestOfGroup, bestOfGroupF64;
    length_weighted_baseline(batch, groups, scores, config) => lengthWeightedBaseline, lengthWeightedBaselineF64;
    decoupled_scores(groups, input, config) => decoupledScores, decoupledScoresF64;
    gdpo(batch, groups, input, config) => gdpo, gdpoF64;
    reinforce_plus_plus_baseline(batch, groups, scores, config)
        => reinforcePlusPlusBaseline, reinforcePlusPlusBaselineF64;
    optimal_token_baseline(batch, groups, input, config) => optimalTokenBaseline, optimalTokenBaselineF64;
    tir_optimal_token_baseline(batch, groups, input, config) => tirOptimalTokenBaseline, tirOptimalTokenBaselineF64;
    role_baseline(baselines, input) => roleBaseline, roleBaselineF64;
}

/// A call of the core: groups, scores, scratch, output.
type GroupKernel<'k, R> = &'k mut dyn FnMut(&Groups<'_>, &[R], &mut [Moments], &mut [R]) -> tokenwise::Result<()>;

#[inline(never)]
fn grouped<R: Real>(groups: &JsValue, scores: &JsValue, kernel: GroupKernel<'_, R>) -> Result<JsValue> {
    let groups = OwnedGroups::read("groups", groups)?;
    let groups = groups.view()?;
    let mut scratch = zeros(groups.count())?;
    call_free::<R, 1>(array("scores", scores)?, &mut |[scores], out| kernel(&groups, scores, &mut scratch, out))
}

/// The estimators that differ in their config alone.
macro_rules! grouped {
    ($($name:ident by $config:ident;)+) => {$(
        fn $name<R: Real>(groups: &JsValue, scores: &JsValue, config: &JsValue) -> Result<JsValue> {
            let config = config::$config(config)?;
            grouped::<R>(groups, scores, &mut |groups, scores, scratch, out| {
                core::$name(groups, scores, &config, scratch, out)
            })
        }
    )+};
}

grouped! {
    group_relative by group;
    leave_one_out by leave_one_out;
    leave_one_out_scaled by leave_one_out_scaled;
    normalize_scores by normalize;
    gpg_advantage by gpg;
    max_rl by max_rl;
}

fn best_of_group<R: Real>(groups: &JsValue, scores: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (config, mut top) = (config::best_of_group(config)?, Vec::new());
    grouped::<R>(groups, scores, &mut |groups, scores, moments, out| {
        // as many as `moments`, for which there was room
        top.resize(groups.count(), core::TopTwo::default());
        core::best_of_group(groups, scores, &config, core::BestOfGroupScratch { moments, top: &mut top }, out)
    })
}

fn length_weighted_baseline<R: Real>(
    batch: &JsValue,
    groups: &JsValue,
    scores: &JsValue,
    config: &JsValue,
) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::length_weighted(config)?);
    let groups = groups.view()?;
    let mut scratch = zeros(groups.count())?;
    call_one::<R, 1>(batch, array("scores", scores)?, Size::Sequences, &mut |batch, [scores], [out]| {
        core::length_weighted_baseline(batch, &groups, scores, &config, &mut scratch, out)
    })
}

fn decoupled_scores<R: Real>(groups: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::group(config)?);
    let (groups, weights) = (groups.view()?, source_weights(input)?);
    let [sources] = arrays::<R, 1>(input, ["sources"])?;
    let (mut scratch, mut out) = (zeros(groups.count())?, zeros::<R>(groups.sequences())?);
    let input = core::GdpoInput { sources: &sources, weights: &weights };
    core::decoupled_scores(&groups, input, &config, &mut scratch, &mut out)?;
    Ok(R::array(&out))
}

fn gdpo<R: Real>(batch: &JsValue, groups: &JsValue, input: &JsValue, config: &JsValue) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::gdpo(config)?);
    let (groups, weights) = (groups.view()?, source_weights(input)?);
    let (mut moments, mut scores) = (zeros(groups.count())?, zeros::<R>(groups.sequences())?);
    call_one::<R, 1>(batch, arrays(input, ["sources"])?, Size::Tokens, &mut |batch, [sources], [out]| {
        let scratch = core::GdpoScratch { moments: &mut moments, scores: &mut scores };
        core::gdpo(batch, &groups, core::GdpoInput { sources, weights: &weights }, &config, scratch, out)
    })
}

fn source_weights(input: &JsValue) -> Result<Vec<f64>> {
    Fields::input("input", input)?.array("weights")
}

fn reinforce_plus_plus_baseline<R: Real>(
    batch: &JsValue,
    groups: &JsValue,
    scores: &JsValue,
    config: &JsValue,
) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::reinforce_plus_plus_baseline(config)?);
    let groups = groups.view()?;
    let mut scratch = zeros(groups.count())?;
    call_one::<R, 1>(batch, array("scores", scores)?, Size::Tokens, &mut |batch, [scores], [out]| {
        core::reinforce_plus_plus_baseline(batch, &groups, scores, &config, &mut scratch, out)
    })
}

fn optimal_token_baseline<R: Real>(
    batch: &JsValue,
    groups: &JsValue,
    input: &JsValue,
    config: &JsValue,
) -> Result<JsValue> {
    optimal::<R>(batch, groups, input, config, core::optimal_token_baseline)
}

fn tir_optimal_token_baseline<R: Real>(
    batch: &JsValue,
    groups: &JsValue,
    input: &JsValue,
    config: &JsValue,
) -> Result<JsValue> {
    optimal::<R>(batch, groups, input, config, core::tir_optimal_token_baseline)
}

type Optimal<R> = fn(
    &tokenwise::Batch<'_>,
    &Groups<'_>,
    core::OptimalBaselineInput<'_, R>,
    &core::OptimalBaselineConfig,
    core::OptimalBaselineScratch<'_>,
    core::OptimalBaselineOutput<'_, R>,
) -> tokenwise::Result<()>;

#[inline(never)]
fn optimal<R: Real>(
    batch: &JsValue,
    groups: &JsValue,
    input: &JsValue,
    config: &JsValue,
    kernel: Optimal<R>,
) -> Result<JsValue> {
    let (groups, config) = (OwnedGroups::read("groups", groups)?, config::optimal_baseline(config)?);
    let groups = groups.view()?;
    let columns = core::optimal_baseline_columns(&Owned::read(batch)?.view()?, &groups)?;
    let (mut columns, mut lengths) = (zeros(columns)?, zeros(groups.count())?);
    let weights = Fields::input("input", input)?.optional_array::<R>("isWeights")?;
    let inputs = arrays::<R, 3>(input, ["rewards", "oldLogProbs", "sumPiSquared"])?;
    let [advantages, returns] = call(batch, inputs, Size::Tokens, &mut |batch, inputs, [advantages, returns]| {
        let [rewards, old_log_probs, sum_pi_squared] = inputs;
        let is_weights = weights.as_deref();
        let input = core::OptimalBaselineInput { rewards, old_log_probs, sum_pi_squared, is_weights };
        let scratch = core::OptimalBaselineScratch { columns: &mut columns, lengths: &mut lengths };
        kernel(batch, &groups, input, &config, scratch, core::OptimalBaselineOutput { advantages, returns })
    })?;
    object([("advantages", advantages), ("returns", returns)])
}

fn role_baseline<R: Real>(baselines: &JsValue, input: &JsValue) -> Result<JsValue> {
    let baselines = shared::<RoleBaselines>("baselines", "a RoleBaselines", baselines)?;
    let roles: Vec<u32> = Fields::input("input", input)?.array("roles")?;
    call_free::<R, 1>(arrays(input, ["scores"])?, &mut |[scores], out| {
        baselines.with(&mut |baselines| core::role_baseline(&roles, scores, baselines, out))
    })
}
