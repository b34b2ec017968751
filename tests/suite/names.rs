//! Every name that verl 0.9.1, TRL 1.16 and OpenRLHF 0.11 register, and the function of this library that is meant by it.

use tokenwise_tests::formulas::FORMULAS;

/// A registered name and the functions that are meant by it.
type Name = (&'static str, &'static [&'static str]);

const NAMES: &[(&str, &[Name])] = &[
    (
        "verl advantage estimator",
        &[
            ("gae", &["gae", "whiten"]),
            ("grpo", &["group_relative", "broadcast"]),
            ("reinforce_plus_plus", &["reinforce_plus_plus"]),
            ("reinforce_plus_plus_baseline", &["reinforce_plus_plus_baseline"]),
            ("remax", &["remax"]),
            ("rloo", &["leave_one_out", "broadcast"]),
            ("opo", &["length_weighted_baseline", "broadcast"]),
            ("grpo_passk", &["best_of_group", "broadcast"]),
            ("gpg", &["gpg_advantage", "broadcast"]),
            ("rloo_vectorized", &["leave_one_out", "broadcast"]),
            ("grpo_vectorized", &["group_relative", "broadcast"]),
            ("optimal_token_baseline", &["optimal_token_baseline"]),
            ("tir_optimal_token_baseline", &["tir_optimal_token_baseline"]),
            ("gdpo", &["gdpo"]),
        ],
    ),
    (
        "verl policy loss",
        &[
            ("vanilla", &["ppo_clip"]),
            ("dppo_tv", &["dppo_tv"]),
            ("dppo_kl", &["dppo_kl"]),
            ("gspo", &["gspo"]),
            ("sapo", &["sapo"]),
            ("gpg", &["reinforce"]),
            ("clip_cov", &["clip_cov", "clip_cov_selection"]),
            ("kl_cov", &["kl_cov"]),
            ("geo_mean", &["gmpo"]),
            ("dro", &["dro"]),
            ("cispo", &["cispo"]),
            ("bypass_mode", &["bypass_loss"]),
        ],
    ),
    (
        "verl aggregation",
        &[
            ("token-mean", &["aggregate"]),
            ("token-sum", &["aggregate"]),
            ("seq-mean-token-sum", &["aggregate"]),
            ("seq-mean-token-mean", &["aggregate"]),
            ("seq-mean-token-sum-norm", &["aggregate"]),
        ],
    ),
    (
        "verl KL penalty",
        &[
            ("kl", &["kl_estimate", "kl_gradient"]),
            ("k1", &["kl_estimate", "kl_gradient"]),
            ("abs", &["kl_estimate", "kl_gradient"]),
            ("mse", &["kl_estimate", "kl_gradient"]),
            ("k2", &["kl_estimate", "kl_gradient"]),
            ("low_var_kl", &["kl_estimate", "kl_gradient"]),
            ("k3", &["kl_estimate", "kl_gradient"]),
            ("full", &["kl_exact", "kl_exact_gradient"]),
        ],
    ),
    (
        "verl distillation loss",
        &[
            ("forward_kl_topk", &["topk_log_probs", "forward_kl_topk", "topk_logits_gradient"]),
            ("kl", &["opd_loss"]),
            ("k1", &["opd_loss"]),
            ("abs", &["opd_loss"]),
            ("mse", &["opd_loss"]),
            ("k2", &["opd_loss"]),
            ("low_var_kl", &["opd_loss"]),
            ("k3", &["opd_loss"]),
        ],
    ),
    (
        "TRL distillation",
        &[
            ("generalized_jsd_loss", &["generalized_jsd", "topk_jsd"]),
            ("full_logits", &["generalized_jsd", "rollout_weights"]),
            ("topk_logits", &["topk_log_probs", "topk_jsd", "topk_logits_gradient", "rollout_weights"]),
            ("sampled_token", &["opd_loss", "rollout_weights"]),
            ("iw_opd", &["iw_opd"]),
        ],
    ),
    ("verl rollout correction", &[("rollout_is", &["rollout_weights"]), ("rollout_rs", &["rollout_rejection"])]),
    (
        "verl resampling",
        &[
            ("pow", &["pf_ppo_weights", "pf_ppo_indices"]),
            ("max_min", &["pf_ppo_weights", "pf_ppo_indices"]),
            ("max_random", &["pf_ppo_weights", "pf_ppo_indices"]),
        ],
    ),
    (
        "TRL loss type",
        &[
            ("grpo", &["ppo_clip"]),
            ("dr_grpo", &["ppo_clip"]),
            ("dapo", &["ppo_clip"]),
            ("bnpo", &["ppo_clip"]),
            ("cispo", &["cispo"]),
            ("sapo", &["sapo"]),
            ("luspo", &["luspo"]),
            ("vespo", &["vespo"]),
        ],
    ),
    (
        "TRL scale_rewards",
        &[("group", &["group_relative"]), ("batch", &["group_relative"]), ("none", &["group_relative"])],
    ),
    (
        "TRL multi-objective aggregation",
        &[
            ("sum_then_normalize", &["group_relative"]),
            ("normalize_then_sum", &["decoupled_scores", "normalize_scores"]),
        ],
    ),
    (
        "TRL importance sampling",
        &[
            ("token_truncate", &["rollout_weights"]),
            ("token_mask", &["rollout_weights"]),
            ("sequence_truncate", &["rollout_weights"]),
            ("sequence_mask", &["rollout_weights"]),
        ],
    ),
    (
        "OpenRLHF estimator",
        &[
            ("gae", &["gae", "whiten"]),
            ("reinforce", &["reinforce_plus_plus"]),
            ("rloo", &["leave_one_out"]),
            ("reinforce_baseline", &["group_relative", "discounted_returns", "whiten"]),
            ("group_norm", &["group_relative"]),
            ("dr_grpo", &["group_relative"]),
            ("flash_reinforce", &["normalize_scores"]),
        ],
    ),
    ("OpenRLHF loss", &[("ppo", &["ppo_clip"]), ("gspo", &["gspo"])]),
    ("OpenRLHF correction", &[("token", &["rollout_gate"]), ("seq", &["rollout_gate"])]),
];

#[test]
fn every_registered_name_has_its_functions() {
    let mut missing = Vec::new();
    for (registry, names) in NAMES {
        for (name, functions) in *names {
            for function in *functions {
                if !FORMULAS.iter().any(|entry| entry.name == *function) {
                    missing.push(format!("{registry} {name}: {function}"));
                }
            }
        }
    }
    assert!(missing.is_empty(), "missing:\n{}", missing.join("\n"));
}

#[test]
fn the_registries_are_whole() {
    let size = |registry: &str| NAMES.iter().find(|(name, _)| *name == registry).map_or(0, |(_, names)| names.len());
    assert_eq!(size("verl advantage estimator"), 14);
    assert_eq!(size("verl policy loss"), 12);
    assert_eq!(size("verl distillation loss"), 8);
    assert_eq!(size("TRL loss type"), 8);
}
