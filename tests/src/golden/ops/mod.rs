//! The operations by name.

mod advantage;
mod control;
mod distill;
mod divergence;
mod dual_game;
mod estimators;
mod loss;
mod masks;
mod metric;
mod metric_sets;
mod peers;
mod policy;
mod policy_loss;
mod reward;
mod rollout;
mod shaping;
mod spelling;

use super::case::{Case, Failure, Number, Ran};

/// Runs the operation a case names.
pub(super) fn run<R: Number>(case: &Case<'_>) -> Ran {
    match case.op {
        "token_log_probs" => policy::token_log_probs::<R>(case),
        "entropy" => policy::entropy::<R>(case),
        "logits_grad" => policy::logits_grad::<R>(case),
        "sum_pi_squared" => policy::sum_pi_squared::<R>(case),
        "kl" => divergence::kl::<R>(case),
        "kl_full" => divergence::kl_full::<R>(case),
        "place_scores" => reward::place_scores::<R>(case),
        "shape_rewards" => reward::shape_rewards::<R>(case),
        "kl_in_reward" => reward::kl_in_reward::<R>(case),
        "overlong_penalty" => reward::overlong_penalty::<R>(case),
        "discounted_returns" => advantage::discounted_returns::<R>(case),
        "gae" => advantage::gae::<R>(case),
        "masked_whiten" => advantage::masked_whiten::<R>(case),
        "uniform_credit" => advantage::uniform_credit::<R>(case),
        "last_k_credit" => advantage::last_k_credit::<R>(case),
        "attention_credit" => advantage::attention_credit::<R>(case),
        "monte_carlo_advantage" => advantage::monte_carlo_advantage::<R>(case),
        "grpo" | "grpo_vectorized" => advantage::grpo::<R>(case),
        "rloo" => advantage::rloo::<R>(case),
        "rloo_vectorized" => estimators::rloo_vectorized::<R>(case),
        "td_lambda" => estimators::td_lambda::<R>(case),
        "upgo" => estimators::upgo::<R>(case),
        "vtrace" => estimators::vtrace::<R>(case),
        "grpo_passk" => estimators::grpo_passk::<R>(case),
        "opo" => estimators::opo::<R>(case),
        "gpg_advantage" => estimators::gpg_advantage::<R>(case),
        "gdpo" => estimators::gdpo::<R>(case),
        "reinforce_plus_plus" => estimators::reinforce_plus_plus::<R>(case),
        "reinforce_plus_plus_baseline" => estimators::reinforce_plus_plus_baseline::<R>(case),
        "remax" => estimators::remax::<R>(case),
        "optimal_token_baseline" | "tir_optimal_token_baseline" => estimators::optimal_token_baseline::<R>(case),
        "aggregate" => loss::aggregate::<R>(case),
        "surrogate" => loss::surrogate::<R>(case),
        "ppo_clip" => loss::ppo_clip::<R>(case),
        "reinforce" => policy_loss::reinforce::<R>(case),
        "tis_loss" => policy_loss::tis_loss::<R>(case),
        "cispo" => policy_loss::cispo::<R>(case),
        "sapo" => policy_loss::sapo::<R>(case),
        "dppo_tv" => policy_loss::dppo_tv::<R>(case),
        "dppo_kl" => policy_loss::dppo_kl::<R>(case),
        "dro" => policy_loss::dro::<R>(case),
        "gspo" => policy_loss::gspo::<R>(case),
        "luspo" => policy_loss::luspo::<R>(case),
        "gmpo" => policy_loss::gmpo::<R>(case),
        "vespo" => policy_loss::vespo::<R>(case),
        "topr" => policy_loss::topr::<R>(case),
        "clip_cov" => policy_loss::clip_cov::<R>(case),
        "kl_cov" => policy_loss::kl_cov::<R>(case),
        "kl_loss" => distill::kl_loss::<R>(case),
        "opd_loss" => distill::opd_loss::<R>(case),
        "iw_opd" => distill::iw_opd::<R>(case),
        "forward_kl_topk" => distill::forward_kl_topk::<R>(case),
        "generalized_jsd" => distill::generalized_jsd::<R>(case),
        "topk_jsd" => distill::topk_jsd::<R>(case),
        "bypass_mode" => distill::bypass_mode::<R>(case),
        "dual_game" => dual_game::dual_game::<R>(case),
        "value_loss" => loss::value_loss::<R>(case),
        "entropy_bonus" => loss::entropy_bonus::<R>(case),
        "rollout_is" => rollout::rollout_is::<R>(case),
        "rollout_rejection" => rollout::rollout_rejection::<R>(case),
        "rollout_metrics" => rollout::rollout_metrics::<R>(case),
        "masked_mean" => metric::masked_mean::<R>(case),
        "masked_var" => metric::masked_var::<R>(case),
        "correlation" => metric::correlation::<R>(case),
        "explained_variance" => metric::explained_variance::<R>(case),
        "kl_means" => metric::kl_means::<R>(case),
        "clip_fractions" => metric::clip_fractions::<R>(case),
        "analysis" => metric::analysis::<R>(case),
        "verl_metrics" => metric_sets::verl_metrics::<R>(case),
        "reduce_metrics" => metric_sets::reduce_metrics(case),
        "trl_metrics" => metric_sets::trl_metrics::<R>(case),
        "openrlhf_metrics" => metric_sets::openrlhf_metrics::<R>(case),
        "kl_importance_weighted" => divergence::kl_importance_weighted::<R>(case),
        "kl_in_scores" => shaping::kl_in_scores::<R>(case),
        "repetition_penalty" => shaping::repetition_penalty::<R>(case),
        "stop_properly_penalty" => shaping::stop_properly_penalty::<R>(case),
        "clipped_rewards" => shaping::clipped_rewards::<R>(case),
        "reward_scale_clip" => shaping::reward_scale_clip::<R>(case),
        "n_step_returns" => peers::n_step_returns::<R>(case),
        "retrace" => peers::retrace::<R>(case),
        "normalize_scores" => peers::normalize_scores::<R>(case),
        "max_rl" => peers::max_rl::<R>(case),
        "rollout_gate" => masks::rollout_gate::<R>(case),
        "off_policy_sequence_mask" => masks::off_policy_sequence_mask::<R>(case),
        "kl_mask" => masks::kl_mask::<R>(case),
        "m2po_mask" => masks::m2po_mask::<R>(case),
        "sequence_veto" => masks::sequence_veto::<R>(case),
        "high_entropy_mask" => masks::high_entropy_mask::<R>(case),
        "response_mask_from_eos" => masks::response_mask_from_eos(case),
        "probability_difference" => masks::probability_difference::<R>(case),
        "dynamic_sampling_filter" => masks::dynamic_sampling_filter::<R>(case),
        "pf_ppo_weights" => masks::pf_ppo_weights::<R>(case),
        "row_sums" | "row_means" | "row_normalize" => metric::rows::<R>(case),
        "quantile" => metric::quantile::<R>(case),
        "effective_sample_size" => metric::effective_sample_size::<R>(case),
        "variance_proxy" => metric::variance_proxy::<R>(case),
        "adaptive_kl" => control::adaptive_kl(case),
        "linear_kl" => control::linear_kl(case),
        "entropy_budget" => control::entropy_budget(case),
        other => Err(Failure::Malformed(format!("op: unknown operation \"{other}\""))),
    }
}
