//! One fingerprint per formula and number type: a hash over the bits of its results on batches made to find differences
//! (holes, padding, empty rows, poison in dropped slots, lengths around the widths of lanes, extreme and undefined numbers).
//!
//! The same program runs on every target; equal fingerprints mean equal bits. It allocates nothing and needs less than 64 KiB of
//! stack, so that a microcontroller can run it.
//!
//! To add a formula, write a function of a case and an output in the file of its stage and name it in [`fingerprints`].
#![no_std]
#![forbid(unsafe_code)]

mod advantage;
mod advantage_group;
mod advantage_trace;
mod cases;
mod control;
mod distill;
mod divergence;
mod dual_game;
#[cfg(feature = "small")]
mod either;
mod hash;
mod inputs;
mod loss;
mod loss_sequence;
mod loss_token;
mod math;
mod metric;
mod metric_set;
mod policy;
mod profile;
mod reward;
mod rollout;
mod rollout_metric;
mod shapes;
mod statistics;

use cases::{tokens, vocabulary};
use math::sweep;

/// Calls `report` with the name (`"gae/f32"`) and the fingerprint of every formula, in a fixed order.
pub fn fingerprints(report: &mut dyn FnMut(&str, u64)) {
    macro_rules! each {
        ($($name:literal: $run:ident($formula:path),)*) => {$(
            // only a mistake in this crate can keep a case from being built; the 0 shows it
            #[cfg(not(feature = "small"))]
            {
                report(concat!($name, "/f32"), $run::<f32>($formula).unwrap_or(0));
                report(concat!($name, "/f64"), $run::<f64>($formula).unwrap_or(0));
            }
            #[cfg(feature = "small")]
            for (name, single) in [(concat!($name, "/f32"), true), (concat!($name, "/f64"), false)] {
                tokenwise::Either::choose(single);
                report(name, $run::<tokenwise::Either>($formula).unwrap_or(0));
            }
        )*};
    }
    each! {
        "exp": sweep(tokenwise::math::exp),
        "ln": sweep(tokenwise::math::ln),
        "sqrt": sweep(tokenwise::math::sqrt),
        "moments": tokens(statistics::moments),
        "co_moments": tokens(statistics::co_moments),

        "shift": tokens(policy::shift),
        "log_probs_and_entropy": vocabulary(policy::log_probs_and_entropy),
        "token_log_probs": vocabulary(policy::token_log_probs),
        "entropy": vocabulary(policy::entropy),
        "sum_squared_probs": vocabulary(policy::sum_squared_probs),
        "topk_log_probs": vocabulary(distill::topk_log_probs),
        "topk_logits_gradient": vocabulary(distill::topk_logits_gradient),
        "logits_gradient": vocabulary(policy::logits_gradient),

        "kl_estimate": tokens(divergence::kl_estimate),
        "kl_gradient": tokens(divergence::kl_gradient),
        "kl_exact": vocabulary(divergence::kl_exact),
        "kl_exact_gradient": vocabulary(divergence::kl_exact_gradient),
        "kl_importance_weighted": tokens(divergence::kl_importance_weighted),
        "kl_importance_weighted_gradient": tokens(divergence::kl_importance_weighted_gradient),

        "place_scores": tokens(reward::place_scores),
        "shape_rewards": tokens(reward::shape_rewards),
        "kl_in_reward": tokens(reward::kl_in_reward),
        "overlong_penalty": tokens(reward::overlong_penalty),
        "repetition_penalty": tokens(reward::repetition_penalty),
        "length_penalty_group": tokens(reward::length_penalty_group),
        "kl_in_scores": tokens(reward::kl_in_scores),
        "clipped_rewards": tokens(reward::clipped_rewards),
        "stop_properly_penalty": tokens(reward::stop_properly_penalty),
        "missing_eos_penalty": tokens(reward::missing_eos_penalty),
        "reward_scale_clip": tokens(reward::reward_scale_clip),

        "rollout_weights": tokens(rollout::rollout_weights),
        "rollout_gate": tokens(rollout::rollout_gate),
        "off_policy_sequence_mask": tokens(rollout::off_policy_sequence_mask),
        "kl_mask": tokens(rollout::kl_mask),
        "m2po_mask": tokens(rollout::m2po_mask),
        "sequence_veto": tokens(rollout::sequence_veto),
        "high_entropy_mask": tokens(rollout::high_entropy_mask),
        "response_mask_from_eos": tokens(rollout::response_mask_from_eos),
        "dynamic_sampling_filter": tokens(rollout::dynamic_sampling_filter),
        "rollout_rejection": tokens(rollout::rollout_rejection),
        "parse_rejection": tokens(rollout::parse_rejection),
        "parse_weight_bound": tokens(rollout::parse_weight_bound),
        "pf_ppo_weights": tokens(rollout::pf_ppo_weights),
        "pf_ppo_indices": tokens(rollout::pf_ppo_indices),
        "rollout_weight_metrics": tokens(rollout_metric::rollout_weight_metrics),
        "rollout_rejection_metrics": tokens(rollout_metric::rollout_rejection_metrics),
        "rollout_mismatch": tokens(rollout_metric::rollout_mismatch),
        "probability_difference": tokens(rollout_metric::probability_difference),

        "discounted_returns": tokens(advantage::discounted_returns),
        "gae": tokens(advantage::gae),
        "monte_carlo_advantage": tokens(advantage::monte_carlo_advantage),
        "uniform_credit": tokens(advantage::uniform_credit),
        "last_k_credit": tokens(advantage::last_k_credit),
        "attention_credit": tokens(advantage::attention_credit),
        "group_relative": tokens(advantage::group_relative),
        "leave_one_out": tokens(advantage::leave_one_out),
        "broadcast": tokens(advantage::broadcast),
        "sequence_sums": tokens(advantage::sequence_sums),
        "whiten": tokens(advantage::whiten),
        "gae_decoupled": tokens(advantage_trace::gae_decoupled),
        "td_lambda": tokens(advantage_trace::td_lambda),
        "n_step_returns": tokens(advantage_trace::n_step_returns),
        "upgo": tokens(advantage_trace::upgo),
        "vtrace": tokens(advantage_trace::vtrace),
        "retrace": tokens(advantage_trace::retrace),
        "puffer_advantage": tokens(advantage_trace::puffer_advantage),
        "remax": tokens(advantage_trace::remax),
        "reinforce_plus_plus": tokens(advantage_trace::reinforce_plus_plus),
        "opd_advantage": tokens(advantage_trace::opd_advantage),
        "minillm_advantage": tokens(advantage_trace::minillm_advantage),
        "length_weighted_baseline": tokens(advantage_group::length_weighted_baseline),
        "gpg_advantage": tokens(advantage_group::gpg_advantage),
        "best_of_group": tokens(advantage_group::best_of_group),
        "leave_one_out_scaled": tokens(advantage_group::leave_one_out_scaled),
        "max_rl": tokens(advantage_group::max_rl),
        "normalize_scores": tokens(advantage_group::normalize_scores),
        "decoupled_scores": tokens(advantage_group::decoupled_scores),
        "gdpo": tokens(advantage_group::gdpo),
        "reinforce_plus_plus_baseline": tokens(advantage_group::reinforce_plus_plus_baseline),
        "role_baseline": tokens(advantage_group::role_baseline),
        "optimal_token_baseline": tokens(advantage_group::optimal_token_baseline),
        "tir_optimal_token_baseline": tokens(advantage_group::tir_optimal_token_baseline),

        "aggregate": tokens(loss::aggregate),
        "group_tokens": tokens(loss::group_tokens),
        "entropy_bonus": tokens(loss::entropy_bonus),
        "surrogate": tokens(loss::surrogate),
        "surrogate_weighted": tokens(loss::surrogate_weighted),
        "ppo_clip": tokens(loss::ppo_clip),
        "ppo_clip_weighted": tokens(loss::ppo_clip_weighted),
        "value_loss": tokens(loss::value_loss),
        "reinforce": tokens(loss_token::reinforce),
        "cispo": tokens(loss_token::cispo),
        "tis_loss": tokens(loss_token::tis_loss),
        "dppo_tv": tokens(loss_token::dppo_tv),
        "dppo_kl": tokens(loss_token::dppo_kl),
        "dro": tokens(loss_token::dro),
        "sapo": tokens(loss_token::sapo),
        "clip_cov": tokens(loss_token::clip_cov),
        "clip_cov_selection": tokens(loss_token::clip_cov_selection),
        "kl_cov": tokens(loss_token::kl_cov),
        "gspo": tokens(loss_sequence::gspo),
        "luspo": tokens(loss_sequence::luspo),
        "gmpo": tokens(loss_sequence::gmpo),
        "gvpo": tokens(loss_sequence::gvpo),
        "topr": tokens(loss_sequence::topr),
        "vespo": tokens(loss_sequence::vespo),
        "positive_nll": tokens(loss_sequence::positive_nll),
        "kl_loss": tokens(distill::kl_loss),
        "bypass_loss": tokens(distill::bypass_loss),
        "opd_loss": tokens(distill::opd_loss),
        "forward_kl_topk": vocabulary(distill::forward_kl_topk),
        "generalized_jsd": vocabulary(distill::generalized_jsd),
        "topk_jsd": vocabulary(distill::topk_jsd),
        "iw_opd": tokens(distill::iw_opd),
        "ref_kl": tokens(distill::ref_kl),
        "mixed_kl_topk": vocabulary(distill::mixed_kl_topk),
        "token_weights": tokens(dual_game::token_weights),
        "advantage_jump": tokens(dual_game::advantage_jump),
        "structural_weights": tokens(dual_game::structural_weights),
        "trie_complexity": tokens(dual_game::trie_complexity),
        "dual_game": tokens(dual_game::dual_game),

        "mean": tokens(metric::mean),
        "variance": tokens(metric::variance),
        "correlation": tokens(metric::correlation),
        "explained_variance": tokens(metric::explained_variance),
        "analysis": tokens(metric::analysis),
        "kl_means": tokens(metric::kl_means),
        "clip_fractions": tokens(metric::clip_fractions),
        "effective_sample_size": tokens(metric::effective_sample_size),
        "quantile": tokens(metric::quantile),
        "row_sums": tokens(metric::row_sums),
        "row_means": tokens(metric::row_means),
        "row_normalize": tokens(metric::row_normalize),
        "variance_proxy": tokens(metric::variance_proxy),
        "verl_metrics": tokens(metric_set::verl_metrics),
        "trl_metrics": tokens(metric_set::trl_metrics),
        "openrlhf_metrics": tokens(metric_set::openrlhf_metrics),
        "running_moments": tokens(metric::running_moments),
        "histogram": vocabulary(metric::histogram),

        "fixed_kl": tokens(control::fixed_kl),
        "adaptive_kl": tokens(control::adaptive_kl),

        "compare": tokens(profile::compare),
        "linear_kl": tokens(dual_game::linear_kl),
        "entropy_budget": tokens(dual_game::entropy_budget),
        "dual_game_step": tokens(dual_game::dual_game_step),
    }
}
