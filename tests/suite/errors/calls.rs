//! The table: one row a function.

mod distill;
mod dual_game;
mod estimators;
mod policy_losses;
mod profiles;
mod returns;
mod rollout;
mod sets;
mod shaping;
mod tokens;
mod totals;

use tokenwise::Error;

use super::Function;
use distill::*;
use dual_game::*;
use estimators::*;
use policy_losses::*;
use profiles::*;
use returns::*;
use rollout::*;
use sets::*;
use shaping::*;
use tokens::*;
use totals::*;

const EMPTY: Option<Error> = Some(Error::EmptyMask);

const fn too_few(what: &'static str, got: usize) -> Option<Error> {
    Some(Error::TooFew { what, needed: 2, got })
}

/// A function that takes any mask.
const fn any(name: &'static str, run: fn(&mut super::Call) -> super::Ended) -> Function {
    Function { name, run, all_dropped: None, one_kept: None }
}

/// A function that needs a kept token.
const fn needs_one(name: &'static str, run: fn(&mut super::Call) -> super::Ended) -> Function {
    Function { name, run, all_dropped: EMPTY, one_kept: None }
}

/// A function that needs two, to have a variance.
const fn whitens(name: &'static str, run: fn(&mut super::Call) -> super::Ended) -> Function {
    Function { name, run, all_dropped: EMPTY, one_kept: too_few("variance", 1) }
}

pub(crate) const FUNCTIONS: &[Function] = &[
    any("compare", compare),
    any("log_probs_and_entropy", log_probs_and_entropy),
    any("token_log_probs", token_log_probs),
    any("entropy", entropy),
    any("sum_squared_probs", sum_squared_probs),
    any("topk_log_probs", topk_log_probs),
    any("topk_logits_gradient", topk_logits_gradient),
    any("logits_gradient", logits_gradient),
    any("kl_estimate", kl_estimate),
    any("kl_gradient", kl_gradient),
    any("kl_exact", kl_exact),
    any("kl_exact_gradient", kl_exact_gradient),
    any("place_scores", place_scores),
    any("shape_rewards", shape_rewards),
    any("kl_in_reward", kl_in_reward),
    any("overlong_penalty", overlong_penalty),
    any("discounted_returns", discounted_returns),
    any("gae", gae),
    any("monte_carlo_advantage", monte_carlo_advantage),
    any("uniform_credit", uniform_credit),
    any("last_k_credit", last_k_credit),
    any("attention_credit", attention_credit),
    any("group_relative", group_relative),
    any("leave_one_out", leave_one_out),
    any("broadcast", broadcast),
    any("sequence_sums", sequence_sums),
    whitens("whiten", whiten),
    any("td_lambda", td_lambda),
    any("n_step_returns", n_step_returns),
    any("upgo", upgo),
    any("vtrace", vtrace),
    any("puffer_advantage", puffer_advantage),
    any("retrace", retrace),
    any("gae_decoupled", gae_decoupled),
    any("gae_decoupled", gae_length_adaptive),
    any("best_of_group", best_of_group),
    any("length_weighted_baseline", length_weighted_baseline),
    any("gpg_advantage", gpg_advantage),
    any("leave_one_out_scaled", leave_one_out_scaled),
    any("max_rl", max_rl),
    any("normalize_scores", normalize_scores),
    any("decoupled_scores", decoupled_scores),
    any("role_baseline", role_baseline),
    whitens("reinforce_plus_plus", reinforce_plus_plus),
    whitens("reinforce_plus_plus_baseline", reinforce_plus_plus_baseline),
    any("remax", remax),
    whitens("gdpo", gdpo),
    whitens("gdpo", gdpo_whitened),
    any("optimal_token_baseline", optimal_token_baseline),
    any("tir_optimal_token_baseline", tir_optimal_token_baseline),
    any("opd_advantage", opd_advantage),
    any("minillm_advantage", minillm_advantage),
    needs_one("aggregate", aggregate),
    any("group_tokens", group_tokens),
    needs_one("surrogate", surrogate),
    needs_one("ppo_clip", ppo_clip),
    needs_one("reinforce", reinforce),
    needs_one("cispo", cispo),
    needs_one("cispo with an absolute bound", cispo_absolute),
    needs_one("tis_loss", tis_loss),
    needs_one("sapo", sapo),
    needs_one("dro", dro),
    needs_one("dppo_tv", dppo_tv),
    needs_one("dppo_kl", dppo_kl),
    needs_one("gspo", gspo),
    needs_one("luspo", luspo),
    needs_one("gmpo", gmpo),
    needs_one("vespo", vespo),
    needs_one("clip_cov", clip_cov),
    any("clip_cov_selection", clip_cov_selection),
    needs_one("kl_cov", kl_cov),
    needs_one("topr", topr),
    any("gvpo", gvpo),
    any("positive_nll", positive_nll),
    needs_one("kl_loss", kl_loss),
    needs_one("bypass_loss", bypass_loss),
    needs_one("opd_loss", opd_loss),
    needs_one("forward_kl_topk", forward_kl_topk),
    needs_one("generalized_jsd", generalized_jsd),
    needs_one("topk_jsd", topk_jsd),
    needs_one("iw_opd", iw_opd),
    needs_one("ref_kl", ref_kl),
    needs_one("mixed_kl_topk", mixed_kl_topk),
    any("token_weights", token_weights),
    any("advantage_jump", advantage_jump),
    any("structural_weights", structural_weights),
    any("trie_complexity", trie_complexity),
    needs_one("dual_game", dual_game),
    needs_one("value_loss", value_loss),
    needs_one("entropy_bonus", entropy_bonus),
    needs_one("mean", mean),
    Function { name: "variance", run: variance, all_dropped: EMPTY, one_kept: too_few("variance", 1) },
    Function {
        name: "correlation",
        run: correlation,
        all_dropped: too_few("correlation", 0),
        one_kept: too_few("correlation", 1),
    },
    Function {
        name: "explained_variance",
        run: explained_variance,
        all_dropped: EMPTY,
        one_kept: too_few("explained_variance", 1),
    },
    needs_one("kl_means", kl_means),
    needs_one("clip_fractions", clip_fractions),
    needs_one("analysis", analysis),
    any("kl_importance_weighted", kl_importance_weighted),
    any("kl_importance_weighted_gradient", kl_importance_weighted_gradient),
    any("kl_in_scores", kl_in_scores),
    any("clipped_rewards", clipped_rewards),
    any("stop_properly_penalty", stop_properly_penalty),
    any("missing_eos_penalty", missing_eos_penalty),
    any("reward_scale_clip", reward_scale_clip),
    any("repetition_penalty", repetition_penalty),
    any("length_penalty_group", length_penalty_group),
    any("rollout_weights", rollout_weights),
    any("rollout_weights, truncated", rollout_weights_truncated),
    needs_one("rollout_weights, normalized", rollout_weights_normalized),
    needs_one("rollout_weight_metrics", rollout_weight_metrics),
    any("rollout_rejection", rollout_rejection),
    needs_one("rollout_rejection_metrics", rollout_rejection_metrics),
    needs_one("rollout_mismatch", rollout_mismatch),
    any("parse_rejection", parse_rejection),
    any("parse_weight_bound", parse_weight_bound),
    needs_one("rollout_gate", rollout_gate),
    any("off_policy_sequence_mask", off_policy_sequence_mask),
    any("kl_mask", kl_mask),
    any("m2po_mask", m2po_mask),
    any("sequence_veto", sequence_veto),
    any("high_entropy_mask", high_entropy_mask),
    needs_one("probability_difference", probability_difference),
    any("response_mask_from_eos", response_mask_from_eos),
    any("dynamic_sampling_filter", dynamic_sampling_filter),
    any("pf_ppo_weights", pf_ppo_weights),
    any("pf_ppo_indices", pf_ppo_indices),
    any("row_sums", row_sums),
    any("row_means", row_means),
    any("row_normalize", row_normalize),
    needs_one("quantile", quantile),
    needs_one("effective_sample_size", effective_sample_size),
    any("variance_proxy", variance_proxy),
    needs_one("verl_metrics", verl_metrics),
    any("trl_metrics", trl_metrics),
    any("openrlhf_metrics", openrlhf_metrics),
    any("shift", shift),
    any("Moments::of", moments),
    any("CoMoments::of", co_moments),
];
