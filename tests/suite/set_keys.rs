//! Every key that the frameworks log about tokens is there, by name.

use std::collections::BTreeSet;

use tokenwise::{
    loss::{PolicyLoss, ValueLoss, VespoLoss},
    metric::*,
    rollout::{Criterion, CriterionMetrics, GateReport, RejectionConfig, RejectionOption, RolloutConfig, WeightBound},
    Batch, Groups, Layout, Mask, Moments,
};

const ONES: &[f64] = &[-1.0, -0.5, -0.25, -2.0];

fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[true; 4])).unwrap()
}

/// All names of `prefix{a,b}suffix`, a list of them by white space.
fn expanded(text: &str) -> BTreeSet<String> {
    text.split_whitespace()
        .flat_map(|word| match word.split_once('{').and_then(|(head, rest)| Some((head, rest.split_once('}')?))) {
            Some((head, (list, tail))) => list.split(',').map(|name| format!("{head}{name}{tail}")).collect(),
            None => vec![word.to_string()],
        })
        .collect()
}

fn assert_keys(found: impl Iterator<Item = (&'static str, f64)>, wanted: &str) {
    let mut keys = BTreeSet::new();
    for (key, _) in found {
        assert!(keys.insert(key.to_string()), "{key} twice");
    }
    let wanted = expanded(wanted);
    let missing: Vec<_> = wanted.difference(&keys).collect();
    let more: Vec<_> = keys.difference(&wanted).collect();
    assert!(missing.is_empty() && more.is_empty(), "missing {missing:?}, unknown {more:?}");
}

fn all_of_verl<'a>() -> VerlInput<'a, f64> {
    let lengths = Some(Lengths { tokens: &[2, 1], limit: 2 });
    VerlInput {
        scores: Some(ONES),
        rewards: Some(ONES),
        advantages: Some(ONES),
        returns: Some(ONES),
        values: Some(ONES),
        predictions: Some(ONES),
        response_lengths: lengths,
        prompt_lengths: lengths,
        log_probs: Some(ONES),
        ref_log_probs: Some(ONES),
        old_log_probs: Some(ONES),
        rollout_log_probs: Some(ONES),
        old_entropies: Some(ONES),
        entropies: Some(ONES),
        sum_pi_squared: Some(ONES),
        weights: Some(ONES),
        gradient_norm: Some(1.0),
        policy_loss: Some(PolicyLoss::default()),
        value_loss: Some(ValueLoss::default()),
        reward_kl: Some(RewardKl::default()),
        mask_before_rejection: None,
    }
}

#[test]
fn verl_has_every_key() {
    let criteria = [Criterion { option: RejectionOption::TokenK1, ..Default::default() }];
    let config = VerlConfig {
        rollout_weights: Some(RolloutConfig {
            bound: WeightBound::Zero { lower: 0.5, upper: 2.0 },
            normalize: tokenwise::rollout::BatchNormalize::ByLevel,
            ..Default::default()
        }),
        rejection: Some(RejectionConfig { criteria: &criteria, ..Default::default() }),
        ..Default::default()
    };
    let mut per_criterion = [CriterionMetrics::default()];
    let metrics = verl_metrics(&batch(), all_of_verl(), &config, &mut per_criterion).unwrap();
    assert_keys(
        metrics.entries(),
        "critic/score/{mean,max,min} critic/rewards/{mean,max,min} critic/advantages/{mean,max,min}
        critic/returns/{mean,max,min} critic/values/{mean,max,min} critic/vf_explained_var
        response_length/{mean,max,min,clip_ratio} response_length_non_aborted/{mean,max,min,clip_ratio}
        response/aborted_ratio prompt_length/{mean,max,min,clip_ratio} perf/total_num_tokens
        actor/{pg_loss,pg_clipfrac,pg_clipfrac_lower,ppo_kl,entropy_loss,entropy,kl_loss,kl_coef,loss}
        actor/{reward_kl_penalty,reward_kl_penalty_coeff} critic/{vf_loss,vf_clipfrac,vpred_mean,loss}
        variance_proxy/{proxy1_signal_strength,proxy2_total_power,proxy3_pure_noise,expected_a_squared,expected_w}
        training/rollout_probs_diff_{valid,max,mean,std} training/rollout_actor_probs_pearson_corr
        rollout_corr/{training_ppl,training_log_ppl,kl,k3_kl,rollout_ppl,rollout_log_ppl,log_ppl_diff,log_ppl_abs_diff}
        rollout_corr/log_ppl_diff_{max,min} rollout_corr/{ppl_ratio,chi2_token,chi2_seq}
        rollout_corr/rollout_is_{mean,std,max,min,eff_sample_size,ratio_fraction_high,ratio_fraction_low,oob_ratio}
        rollout_corr/rollout_is_seq_{mean,std,max,min,max_deviation,fraction_high,fraction_low}
        rollout_corr/rollout_is_batch_norm_factor rollout_corr/rollout_rs_{masked_fraction,seq_masked_fraction}
        rollout_corr/rollout_rs_token_k1_{mean,max,min,fraction_high,fraction_low,std,masked_fraction,seq_masked_fraction}
        rollout_corr/rollout_rs_token_k1_seq_{mean,std,max,min,max_deviation,fraction_high,fraction_low}",
    );
}

#[test]
fn nothing_given_is_nothing_logged() {
    let nothing = VerlInput::<f64>::default();
    assert_eq!(verl_metrics(&batch(), nothing, &VerlConfig::default(), &mut []).unwrap().entries().count(), 0);
    let metrics = trl_metrics(&batch(), TrlInput::<f64>::default(), &TrlConfig::default(), TrlOutput::default());
    assert_eq!(metrics.unwrap().entries().count(), 0);
    let nothing = OpenRlhfInput::<f64>::default();
    let metrics = openrlhf_metrics(&batch(), nothing, &OpenRlhfConfig::default(), &mut []).unwrap();
    assert_keys(metrics.entries(), "train/response_length");
}

fn all_of_trl<'a>(loss: TrlLoss) -> TrlInput<'a, f64> {
    TrlInput {
        log_probs: Some(ONES),
        old_log_probs: Some(ONES),
        ref_log_probs: Some(ONES),
        rollout_log_probs: Some(ONES),
        weights: Some(ONES),
        advantages: Some(ONES),
        entropies: Some(ONES),
        loss: Some(loss),
        rewards: Some(TrlRewards {
            groups: Groups::contiguous(&[2]).unwrap(),
            sources: &ONES[..2],
            source_weights: &[1.0],
        }),
        completion_lengths: Some(&[2, 1]),
        truncated: Some(&[false, true]),
        prompt_lengths: Some(&[1, 1]),
    }
}

#[test]
fn trl_has_every_key() {
    let config = TrlConfig { entropy_coefficient: Some(0.1), ..Default::default() };
    let always = "reward reward_std frac_reward_zero_std kl entropy policy_loss entropy_coef num_tokens
        sampling/sampling_logp_difference/{mean,max} sampling/importance_sampling_ratio/{min,mean,max}
        completions/{mean,min,max}_length completions/{mean,min,max}_terminated_length completions/clipped_ratio";
    for (loss, own) in [
        (TrlLoss::Clipped(PolicyLoss::default()), "clip_ratio/{low_mean,high_mean,region_mean,low_min,high_max}"),
        (TrlLoss::Cispo(PolicyLoss::default()), "cispo_clip_ratio"),
        (TrlLoss::Vespo(VespoLoss::default()), "vespo/phi_seq_mean"),
        (TrlLoss::Sapo(PolicyLoss::default()), ""),
    ] {
        let (mut per_source, mut scratch) = ([RewardSource::default()], [Moments::default()]);
        let output = TrlOutput { per_source: &mut per_source, scratch: &mut scratch };
        let metrics = trl_metrics(&batch(), all_of_trl(loss), &config, output).unwrap();
        assert_keys(metrics.entries(), &format!("{always} {own}"));
        assert_eq!(metrics.sources.len(), 1);
    }
}

#[test]
fn openrlhf_has_every_key() {
    let input = OpenRlhfInput {
        log_probs: Some(ONES),
        ref_log_probs: Some(ONES),
        entropies: Some(ONES),
        rewards: Some(ONES),
        predictions: Some(ONES),
        scores: Some(&ONES[..2]),
        groups: Some(Groups::contiguous(&[2]).unwrap()),
        total_lengths: Some(Lengths { tokens: &[2, 1], limit: 2 }),
        truncated: Some(&[false, true]),
        policy_loss: Some(PolicyLoss::default()),
        gate: Some(GateReport::default()),
        value_loss: Some(ValueLoss::default()),
    };
    let metrics = openrlhf_metrics(&batch(), input, &OpenRlhfConfig::default(), &mut [Moments::default()]).unwrap();
    assert_keys(
        metrics.entries(),
        "train/{policy_loss,entropy_loss,ppo_clip_ratio,ppo_kl,vllm_kl,is_filter_ratio,kl,logprobs_diff,reward,return}
        train/{group_reward_std,response_length,total_length,response_clip_ratio,truncated,critic_loss,values}",
    );
}

#[test]
fn an_empty_selection_is_what_the_frameworks_make_of_it() {
    let none = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[false; 4])).unwrap();
    let lengths = Some(Lengths { tokens: &[0, 0], limit: 2 });
    let input = VerlInput { response_lengths: lengths, rollout_log_probs: None, gradient_norm: None, ..all_of_verl() };
    let metrics = verl_metrics(&none, input, &VerlConfig::default(), &mut []).unwrap();
    let value = |wanted: &str| metrics.entries().find(|(key, _)| *key == wanted).unwrap().1;
    for key in ["critic/score/mean", "critic/advantages/max", "critic/vf_explained_var", "actor/entropy_loss"] {
        assert!(value(key).is_nan(), "{key}");
    }
    assert!(value("response_length_non_aborted/clip_ratio").is_nan());
    assert_eq!(
        (value("response/aborted_ratio"), value("response_length/mean"), value("critic/vpred_mean")),
        (1.0, 0.0, 0.0)
    );

    let input = TrlInput { rewards: None, ..all_of_trl(TrlLoss::Clipped(PolicyLoss::default())) };
    let input = TrlInput { truncated: Some(&[true, true]), ..input };
    let metrics = trl_metrics(&none, input, &TrlConfig::default(), TrlOutput::default()).unwrap();
    let value = |wanted: &str| metrics.entries().find(|(key, _)| *key == wanted).unwrap().1;
    assert_eq!(
        (value("kl"), value("clip_ratio/low_mean"), value("sampling/sampling_logp_difference/max")),
        (0.0, 0.0, 0.0)
    );
    assert!(value("clip_ratio/low_min").is_nan());
    assert_eq!((value("completions/clipped_ratio"), value("completions/mean_terminated_length")), (1.0, 0.0));
}
