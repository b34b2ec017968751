//! The calls: each loss with the settings that change its gradient.

use serde_json::{json, Value};

use super::{
    distill::{bypass_loss, kl_loss, opd_loss, ref_kl},
    rows::{forward_kl_topk, generalized_jsd, mixed_kl_topk, topk_jsd},
    sequence::{gmpo, gspo, gvpo, iw_opd, vespo},
    token::{
        aggregate, cispo, clip_cov, dppo_kl, dppo_tv, dro, dual_game, entropy_bonus, kl_cov, positive_nll, ppo_clip,
        reinforce, sapo, surrogate, tis_loss, topr, value_loss,
    },
    Case, Given,
    Mode::{self, PromptMean, SequenceMeanTokenMean, SequenceMeanTokenSum, TokenMean, TokenSum},
    Tensor,
};

struct List<T>(Vec<Case<T>>);

impl<T: Tensor> List<T> {
    /// A loss with an aggregation, which is written into its config.
    fn add(
        &mut self,
        name: &'static str,
        plain: fn(&Given<'_, T>) -> T,
        mode: Mode,
        with: &'static [&'static str],
        mut config: Value,
    ) {
        let how = json!({ "mode": mode.name() });
        if name == "aggregate" {
            config = how;
        } else if name == "bypass_loss" {
            config["policy"] = json!({ "aggregate": how });
        } else {
            config["aggregate"] = how;
        }
        self.0.push(Case { name, config, with, weight: None, mode, plain });
    }

    /// A loss whose aggregation is part of its formula.
    fn fixed(
        &mut self,
        name: &'static str,
        plain: fn(&Given<'_, T>) -> T,
        mode: Mode,
        with: &'static [&'static str],
        config: Value,
    ) {
        self.0.push(Case { name, config, with, weight: None, mode, plain });
    }
}

const WEIGHTS: &[&str] = &["weights"];
const GROUPED: &[&str] = &["group_tokens"];

/// All cases.
pub(crate) fn cases<T: Tensor>() -> Vec<Case<T>> {
    let mut list = List(Vec::new());
    policy(&mut list);
    sequences(&mut list);
    distillation(&mut list);
    list.0
}

fn policy<T: Tensor>(list: &mut List<T>) {
    for mode in [TokenMean, TokenSum, SequenceMeanTokenSum, SequenceMeanTokenMean] {
        list.add("aggregate", aggregate, mode, &[], Value::Null);
        list.add("ppo_clip", ppo_clip, mode, &[], json!({ "clip_low": 0.2, "clip_high": 0.28 }));
    }
    list.add("aggregate", aggregate, PromptMean, GROUPED, Value::Null);
    list.add("ppo_clip", ppo_clip, PromptMean, GROUPED, json!({ "clip_low": 0.2, "clip_high": 0.28 }));
    let dual = json!({ "clip_low": 0.2, "clip_high": 0.28, "dual_clip": { "negative_only": 1.3 } });
    list.add("ppo_clip", ppo_clip, TokenMean, WEIGHTS, dual);
    list.add("surrogate", surrogate, TokenMean, WEIGHTS, json!({}));
    list.add("reinforce", reinforce, TokenMean, WEIGHTS, json!({}));
    list.add("cispo", cispo, TokenMean, &[], json!({ "bounds": { "kind": "relative", "low": 0.2, "high": 0.3 } }));
    list.add("cispo", cispo, TokenMean, WEIGHTS, json!({ "bounds": { "kind": "absolute", "high": 1.1 } }));
    list.add("tis_loss", tis_loss, TokenMean, WEIGHTS, json!({}));
    for (name, plain) in [("dppo_tv", dppo_tv as fn(&Given<'_, T>) -> T), ("dppo_kl", dppo_kl)] {
        list.add(name, plain, TokenMean, &[], json!({ "clip_low": 0.05, "clip_high": 0.06, "ratio_cap": 1.25 }));
    }
    list.add("dro", dro, TokenMean, WEIGHTS, json!({ "beta": 0.3, "divisor": "count" }));
    list.add("sapo", sapo, SequenceMeanTokenMean, &[], json!({ "tau_positive": 1.0, "tau_negative": 1.05 }));
    list.add("kl_cov", kl_cov, TokenMean, WEIGHTS, json!({ "ratio": 0.3, "kl_coef": 0.5 }));
    list.add("clip_cov", clip_cov, TokenMean, &[], json!({ "clip_low": 0.2, "clip_high": 0.2 }));
    list.add("topr", topr, SequenceMeanTokenSum, &[], json!({ "positive": 1.0, "negative": 0.5 }));
    list.fixed("positive_nll", positive_nll, TokenMean, &[], json!({ "mu": 0.3 }));
    for factor in ["half", "whole"] {
        list.add("value_loss", value_loss, TokenMean, &[], json!({ "clip": 0.2, "factor": factor }));
    }
    list.add("entropy_bonus", entropy_bonus, SequenceMeanTokenMean, &[], json!({ "coefficient": 0.01 }));
    for gradient in ["detached", "through"] {
        for (weight, with) in [
            ("plain", &["weights", "weight"][..]),
            ("kl-gated", &["ref_log_probs", "weight"]),
            ("structural", &["ref_log_probs", "weight", "structural"]),
        ] {
            let config = json!({
                "gamma": 0.7, "lambda": 0.3, "beta": 0.1, "clip_low": 0.2, "clip_high": 0.25, "gradient": gradient,
            });
            list.add("dual_game", dual_game, TokenMean, with, config);
            if let Some(case) = list.0.last_mut() {
                case.weight = Some(weight);
            }
        }
    }
}

fn sequences<T: Tensor>(list: &mut List<T>) {
    for form in ["sequence", "token"] {
        let config = json!({ "clip_low": 0.03, "clip_high": 0.1, "form": form });
        list.add("gspo", gspo, SequenceMeanTokenMean, &[], config);
    }
    list.fixed("luspo", gspo, SequenceMeanTokenSum, WEIGHTS, json!({ "clip_low": 0.03, "clip_high": 0.1 }));
    list.fixed("gmpo", gmpo, TokenMean, &[], json!({ "clip_low": 0.2, "clip_high": 0.3 }));
    list.fixed("gmpo", gmpo, TokenMean, WEIGHTS, json!({ "clip_low": 0.2, "clip_high": 0.3 }));
    let vespo_config = json!({ "k_positive": 1.0, "lambda_positive": 1.5, "k_negative": 1.5, "lambda_negative": 1.0 });
    list.add("vespo", vespo, TokenMean, &[], vespo_config.clone());
    list.add("vespo", vespo, TokenMean, WEIGHTS, vespo_config);
    list.fixed("gvpo", gvpo, TokenMean, &[], json!({ "beta": 0.25 }));
    list.add("iw_opd", iw_opd, TokenMean, &[], json!({ "gamma": 0.5, "epsilon": 1e-6 }));
}

fn distillation<T: Tensor>(list: &mut List<T>) {
    for estimator in ["k1", "abs", "k2", "k3"] {
        for gradient in ["own", "straight-through"] {
            let config = json!({ "coefficient": 0.3, "kl": { "estimator": estimator, "gradient": gradient } });
            list.add("kl_loss", kl_loss, TokenMean, &[], config);
        }
    }
    // K1 as a supervised loss is refused: its gradient is that of nothing
    for (route, estimators) in [
        ("clipped", ["k1", "k3"]),
        ("surrogate", ["k1", "k3"]),
        ("reinforce", ["k1", "k3"]),
        ("supervised", ["k2", "k3"]),
    ] {
        for estimator in estimators {
            let config = json!({
                "route": route, "max_loss": 0.3, "coefficient": 0.7, "clip_low": 0.2, "clip_high": 0.2,
                "kl": { "estimator": estimator },
            });
            list.add("opd_loss", opd_loss, TokenMean, WEIGHTS, config);
        }
    }
    list.add("ref_kl", ref_kl, TokenMean, WEIGHTS, json!({ "fall": 0.05, "drift": 0.1 }));
    list.add("forward_kl_topk", forward_kl_topk, TokenMean, &[], json!({ "max_loss": 0.1 }));
    for rest in ["tail", "renormalize"] {
        for beta in [0.0, 0.5, 1.0] {
            list.add("topk_jsd", topk_jsd, TokenMean, WEIGHTS, json!({ "rest": rest, "beta": beta }));
        }
    }
    for outside in [Value::Null, json!(-10.0)] {
        let config = json!({ "forward": 0.3, "outside": outside });
        list.add("mixed_kl_topk", mixed_kl_topk, TokenMean, &["entropies"], config);
    }
    for (beta, temperature) in [(0.0, 1.0), (0.5, 0.7), (1.0, 1.0)] {
        let config = json!({ "beta": beta, "temperature": temperature });
        list.add("generalized_jsd", generalized_jsd, TokenMean, WEIGHTS, config);
    }
    list.add("bypass_loss", bypass_loss, TokenMean, &[], json!({ "form": "ppo-clip" }));
    let truncated = json!({ "form": "reinforce", "weights": { "bound": { "kind": "truncate", "upper": 1.1 } } });
    list.add("bypass_loss", bypass_loss, TokenMean, &[], truncated);
}
