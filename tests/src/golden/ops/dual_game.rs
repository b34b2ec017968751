//! The dual game, with the weights it is given or makes itself.

use tokenwise::loss::{
    self, BranchSpread, BranchValue, DualGameConfig, DualGameInput, DualGradient, ScoreScope, StructuralConfig,
    StructuralInput, TokenWeight, TokenWeightInput, TrieConfig, TrieInput, TriePrefix, TrieScratch,
};

use super::{
    loss::with_policy_input,
    spelling::{choice_of, flag_of, input_of, number_of, whole_of},
};
use crate::golden::{
    case::{Case, Failure, Number, Ran},
    compare::Output,
};

/// Weights in the case, under any of these names.
const GIVEN: &[&str] = &["structural_weights", "token_weights", "importance", "weights", "w"];

pub(super) fn dual_game<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |policy, aggregate| {
        let batch = case.batch()?;
        let tokens = policy.log_probs.len();
        let reference = match input_of(case, &["ref_log_probs", "ref_log_prob"]) {
            Some(key) => Some(case.tokens::<R>(key)?),
            None => None,
        };
        let kind = choice_of(
            case,
            &["weight", "token_weight", "weight_type"],
            &[&["plain"], &["kl-gated", "kl-gate", "gated"], &["structural"]],
            0,
        )?;
        let given = if kind == 2 { structural::<R>(case, policy.log_probs, policy.advantages)? } else { Vec::new() };
        let weight = [TokenWeight::Plain, TokenWeight::KlGated, TokenWeight::Structural(&given)][kind];
        let clip = number_of(case, &["clip", "clip_ratio", "epsilon"], Some(0.2))?;
        let default = DualGameConfig::default();
        let gradient = choice_of(case, &["gradient", "grad_mode"], &[&["detached", "detach"], &["through"]], 0)?;
        let config = DualGameConfig {
            gamma: number_of(case, &["gamma"], Some(default.gamma))?,
            lambda: number_of(case, &["lambda", "lam", "lambda_"], Some(0.0))?,
            beta: number_of(case, &["beta"], Some(0.0))?,
            clip_low: number_of(case, &["clip_low", "clip_ratio_low", "epsilon_low"], Some(clip))?,
            clip_high: number_of(case, &["clip_high", "clip_ratio_high", "epsilon_high"], Some(clip))?,
            gradient: [DualGradient::Detached, DualGradient::Through][gradient],
            log_ratio_bound: default.log_ratio_bound,
            aggregate,
            divisor: case.conventions.divisor,
        };
        let input = DualGameInput { policy, ref_log_probs: reference.as_deref(), weight };
        let mut grad = vec![R::zero(); tokens];
        let result = loss::dual_game(&batch, input, &config, &mut grad)?;
        let mut weights = vec![R::zero(); tokens];
        let weighing = TokenWeightInput {
            log_probs: policy.log_probs,
            ref_log_probs: reference.as_deref(),
            advantages: policy.advantages,
            weight,
        };
        loss::token_weights(&batch, weighing, &mut weights)?;
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("grad", Output::tokens(grad)),
            ("clip_fraction", Output::Scalar(result.clip_fraction)),
            ("clipfrac", Output::Scalar(result.clip_fraction)),
            ("clip_fraction_upper", Output::Scalar(result.clip_fraction_upper)),
            ("clip_fraction_lower", Output::Scalar(result.clip_fraction_lower)),
            ("kl", Output::Scalar(result.kl)),
            ("ppo_kl", Output::Scalar(result.kl)),
            ("weights", Output::tokens(weights)),
        ])
    })
}

/// The weights of the case, or those its complexity makes.
fn structural<R: Number>(case: &Case<'_>, log_probs: &[R], advantages: &[R]) -> Result<Vec<R>, Failure> {
    if let Some(key) = input_of(case, GIVEN) {
        return case.tokens(key);
    }
    let batch = case.batch()?;
    let mut complexity = vec![R::zero(); log_probs.len()];
    let kind = choice_of(case, &["complexity"], &[&["advantage-jump", "jump"], &["trie"]], 0)?;
    if let Some(key) = input_of(case, &["complexity"]) {
        complexity = case.tokens(key)?;
    } else if kind == 0 {
        loss::advantage_jump(&batch, advantages, &mut complexity)?;
    } else {
        let (ids, rewards) = (case.ids("tokens", complexity.len())?, case.tokens::<R>("rewards")?);
        let value = choice_of(case, &["branch_value", "branch"], &[&["mean"], &["median"]], 0)?;
        let spread = choice_of(
            case,
            &["branch_spread", "spread"],
            &[&["variance", "var"], &["iqr", "inter-quartile-range"], &["range", "max-min"]],
            0,
        )?;
        let same = choice_of(case, &["prefix"], &[&["any"], &["same", "exact"]], 0)? == 1;
        let config = TrieConfig {
            prefix: if same || flag_of(case, &["exact_prefix"])? { TriePrefix::Same } else { TriePrefix::Any },
            value: [BranchValue::Mean, BranchValue::Median][value],
            spread: [BranchSpread::Variance, BranchSpread::InterQuartileRange, BranchSpread::Range][spread],
            min_branch_size: whole_of(case, &["min_branch_size"], Some(1))? as usize,
        };
        let mut scratch = vec![TrieScratch::default(); case.rows];
        let input = TrieInput { tokens: &ids, rewards: &rewards };
        loss::trie_complexity(&batch, &case.groups()?, input, &config, &mut scratch, &mut complexity)?;
    }
    let alone = choice_of(case, &["scope", "z_scope"], &[&["batch"], &["sequence", "per-sequence"]], 0)? == 1;
    let config = StructuralConfig {
        complexity: number_of(case, &["c", "structural_c", "complexity_weight"], Some(1.0))?,
        surprisal: number_of(case, &["alpha", "structural_alpha", "surprisal_weight"], Some(0.3))?,
        drift: number_of(case, &["structural_beta", "beta_structural", "drift_weight"], Some(0.2))?,
        scope: if alone || flag_of(case, &["per_sequence"])? { ScoreScope::Sequence } else { ScoreScope::Batch },
    };
    let input = StructuralInput { log_probs, advantages, complexity: &complexity };
    let mut out = vec![R::zero(); log_probs.len()];
    loss::structural_weights(&batch, input, &config, &mut out)?;
    Ok(out)
}
