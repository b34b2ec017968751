//! The operations by name: which formulas of the catalogue each runs, and with which settings.
//!
//! An operation that is not listed here is the formula of that name, with the names of its columns and settings.

mod control;
mod distill;
mod dual_game;
mod metric_sets;
mod policy_loss;
mod rollout;
mod spelling;

use tokenwise::{
    advantage::{
        GaeConfig, LeaveOneOutConfig, Level, MaxRlConfig, MeanDivisor, NormalizeConfig, Own, RetraceConfig, Singleton,
        TdLambdaConfig, VtraceConfig,
    },
    loss::{AggregateMode, EntropyBonusConfig, IwOpdConfig, JsdConfig, KlLossConfig, OpdLossConfig, SurrogateConfig},
    metric::{RowNormalizeConfig, VarianceConfig},
    policy::PolicyConfig,
    profile::ScoreSlots,
    reward::{ClippedRewardsConfig, KlInScoresConfig, RepetitionConfig, RewardScaleConfig},
    rollout::{GroupRule, OffPolicyConfig, PfPpoRule, VetoConfig},
    MeanConfig, Profile, Spread,
};
use tokenwise_catalogue::{Array, Kind, Number};

pub(super) use spelling::canonical;

use super::{
    case::{word, Case, Failure, Ran},
    step::{Names, Run, Step},
};

/// Runs the operation a case names.
pub(super) fn run<R: Number>(case: &Case<'_>) -> Ran {
    let mut run = Run::<R>::new(case);
    match case.op {
        "adaptive_kl" => return control::adaptive_kl(case),
        "linear_kl" => return control::linear_kl(case),
        "entropy_budget" => return control::entropy_budget(case),
        "reduce_metrics" => return metric_sets::reduce_metrics(case),
        "verl_metrics" => metric_sets::verl_metrics(&mut run)?,
        "trl_metrics" => metric_sets::trl_metrics(&mut run)?,
        "openrlhf_metrics" => metric_sets::openrlhf_metrics(&mut run)?,
        "dual_game" => dual_game::dual_game(&mut run)?,
        "forward_kl_topk" => distill::forward_kl_topk(&mut run)?,
        "topk_jsd" => distill::topk_jsd(&mut run)?,
        "gspo" | "luspo" => policy_loss::of_sequences(&mut run)?,
        "vespo" => policy_loss::vespo(&mut run)?,
        "gdpo" => gdpo(&mut run)?,
        "dynamic_sampling_filter" => dynamic_sampling_filter(&mut run)?,
        op if policy_loss::reads_scores(op) => policy_loss::of_scores(&mut run)?,
        _ => {
            for step in steps(case)? {
                run.step(step)?;
            }
        }
    }
    Ok(run.outputs())
}

/// The outputs of a mask.
const MASK: Names = &[("keep", "mask")];
/// Inputs and outputs of the statistics.
const VALUE: Names = &[
    ("values", "x"),
    ("rewards", "x"),
    ("mean", "value"),
    ("variance", "value"),
    ("quantile", "value"),
    ("correlation", "value"),
    ("effective_sample_size", "value"),
];
const CREDIT: Names = &[("out", "advantages")];
const SCORES: Names = &[("out", "scores")];

/// The formulas of an operation, one after the other.
fn steps(case: &Case<'_>) -> Result<Vec<Step>, Failure> {
    let (c, op) = (&case.conventions, case.op);
    let step = Step::new;
    let own = || step(op, &[]);
    Ok(match op {
        "token_log_probs" | "entropy" => vec![own()?.config(case, PolicyConfig::default())?],
        "logits_grad" => vec![step("logits_gradient", &[])?.config(case, PolicyConfig::default())?],
        "sum_pi_squared" => vec![step("sum_squared_probs", &[])?.config(case, PolicyConfig::default())?],
        "kl" => both("kl_estimate", "kl_gradient", &[], |step| step.config(case, c.kl()))?,
        "kl_full" => both("kl_exact", "kl_exact_gradient", &[], |step| step.config(case, PolicyConfig::default()))?,
        "kl_importance_weighted" => both(op, "kl_importance_weighted_gradient", &[("weight", "level")], |step| {
            step.config(case, c.kl_weighted())
        })?,
        "shape_rewards" => vec![own()?.needs(case, &["beta"])?.params(case)?],
        "stop_properly_penalty" => vec![step(op, SCORES)?.needs(case, &["coefficient"])?.params(case)?],
        "overlong_penalty" => {
            vec![step(op, SCORES)?.needs(case, &["max_len", "buffer"])?.config(case, c.overlong())?]
        }
        "kl_in_reward" => vec![step(op, &[("mean_kl", "current_kl")])?.config(case, c.kl_reward())?],
        "kl_in_scores" => vec![step(op, SCORES)?.config(case, KlInScoresConfig { beta: c.kl_reward_beta })?],
        "repetition_penalty" => vec![step(op, SCORES)?.config(case, RepetitionConfig::default())?],
        "clipped_rewards" => vec![own()?.config(case, ClippedRewardsConfig::default())?],
        "reward_scale_clip" => {
            let config = match case.param("bound") {
                Some(_) => RewardScaleConfig::ShiftScaleClip {
                    bias: case.number("bias", Some(0.0))?,
                    scale: case.number("scale", Some(1.0))?,
                    bound: case.number("bound", None)?,
                },
                None => RewardScaleConfig::Clip { low: case.number("low", None)?, high: case.number("high", None)? },
            };
            vec![step(op, &[("clip_fraction", "held")])?.config(case, config)?]
        }
        "discounted_returns" | "monte_carlo_advantage" => vec![own()?.config(case, c.returns())?],
        "td_lambda" => vec![own()?.config(case, TdLambdaConfig { lambda: 1.0, ..c.td_lambda() })?],
        "vtrace" => vec![step(op, &[("rho_bar_pg", "rho_bar")])?.config(case, VtraceConfig::default())?],
        "retrace" => vec![step(op, &[("targets", "returns")])?.config(case, RetraceConfig::default())?],
        "gae" => {
            let mut steps = vec![own()?.config(case, GaeConfig { lambda: 1.0, ..c.gae() })?];
            if case.flag("whiten", true)? {
                steps.push(
                    step("whiten", &[("values", "advantages"), ("out", "advantages")])?.config(case, c.whiten())?,
                );
            }
            steps
        }
        "masked_whiten" => {
            let center = if case.flag("shift_mean", true)? { "shift" } else { "keep-mean" };
            vec![step("whiten", VALUE)?.config(case, c.whiten())?.set("center", center)?]
        }
        "n_step_returns" => vec![own()?.needs(case, &["n"])?.config(case, c.n_step())?],
        "last_k_credit" => vec![step(op, CREDIT)?.needs(case, &["k"])?.params(case)?],
        "uniform_credit" | "attention_credit" => vec![step(op, CREDIT)?],
        "reinforce_plus_plus" => vec![own()?.config(case, c.reinforce_plus_plus())?],
        "reinforce_plus_plus_baseline" => {
            vec![sums(case)?, own()?.config(case, c.reinforce_plus_plus_baseline())?]
        }
        "grpo" | "grpo_vectorized" => {
            let scale = case.text("scale", if case.flag("norm_by_std", true)? { "group" } else { "none" })?;
            let scale = word(scale, "scale", |scale| match scale {
                "group" => Some("standard-deviation"),
                "batch" => Some("batch-deviation"),
                "none" => Some("unit"),
                _ => None,
            })?;
            of_scores(case, step("group_relative", &[])?.config(case, c.group())?.set("scale", scale)?)?
        }
        "grpo_passk" => {
            let scale = if case.flag("norm_by_std", true)? { "standard-deviation" } else { "unit" };
            of_scores(case, step("best_of_group", &[])?.config(case, c.best_of_group())?.set("scale", scale)?)?
        }
        "rloo" => {
            let mut steps = of_scores(case, step("leave_one_out", &[])?.config(case, c.leave_one_out())?)?;
            if case.flag("normalize", false)? {
                steps.insert(2, over_batch(case, 1e-4)?);
            }
            steps
        }
        "rloo_vectorized" => {
            // unlike rloo, a lone score gets 0
            let config = LeaveOneOutConfig { singleton: Singleton::Zero };
            of_scores(case, step("leave_one_out", &[])?.config(case, config)?)?
        }
        "opo" => of_scores(case, step("length_weighted_baseline", &[])?.config(case, c.length_weighted())?)?,
        "gpg_advantage" => of_scores(case, own()?.config(case, c.gpg())?)?,
        "optimal_token_baseline" | "tir_optimal_token_baseline" => {
            let tail = if case.flag("handle_zero_tail", true)? { "no-baseline" } else { "own-return" };
            vec![own()?.set("zero_tail", tail)?]
        }
        "normalize_scores" => {
            let level = |key| {
                word(case.text(key, "group")?, key, |name| match name {
                    "batch" => Some(Level::Batch),
                    "group" => Some(Level::Group),
                    "none" => Some(Level::Off),
                    _ => None,
                })
            };
            let config = NormalizeConfig {
                mean: level("mean")?,
                own: if case.flag("leave_one_out", false)? { Own::LeftOut } else { Own::Included },
                deviation: level("deviation")?,
                spread: if case.flag("unbiased", true)? { Spread::Sample } else { Spread::Population },
                epsilon: case.number("epsilon", Some(1e-5))?,
            };
            vec![step(op, SCORES)?.fixed(config)?]
        }
        // SkyRL's rule
        "max_rl" => {
            let config =
                MaxRlConfig { divisor: MeanDivisor::PlusEpsilon, singleton: Singleton::Raw, ..Default::default() };
            vec![step(op, SCORES)?.config(case, config)?]
        }
        "aggregate" => {
            let mut found = step(op, &[("loss", "value")])?.or_empty(c.empty_loss, &["loss"]);
            found = found.fixed(c.aggregate(AggregateMode::TokenMean))?;
            found.config = case.aggregate("mode", found.config)?;
            vec![found]
        }
        "ppo_clip" => vec![policy_loss::loss(case, op, c.ppo())?],
        "reinforce" | "tis_loss" => vec![policy_loss::loss(case, op, c.reinforce())?],
        "dppo_tv" | "dppo_kl" => vec![policy_loss::loss(case, op, c.dppo())?],
        "dro" => vec![policy_loss::loss(case, op, c.dro(case.number("beta", None)?))?],
        "gmpo" => vec![policy_loss::loss(case, op, c.gmpo())?],
        "clip_cov" => vec![policy_loss::loss(case, op, c.clip_cov())?],
        "kl_cov" => vec![policy_loss::loss(case, op, c.kl_cov())?],
        "surrogate" => vec![policy_loss::loss(case, op, SurrogateConfig::default())?],
        "cispo" => vec![policy_loss::cispo(case)?],
        "sapo" => vec![policy_loss::sapo(case)?],
        "bypass_mode" => vec![policy_loss::bypass_mode(case)?],
        "value_loss" => vec![own()?.config(case, c.value())?.or_empty(c.empty_loss, &["loss"])],
        "entropy_bonus" => {
            let config = EntropyBonusConfig { coefficient: 0.01, ..c.entropy_bonus() };
            vec![own()?.config(case, config)?.or_empty(c.empty_loss, &["loss"])]
        }
        "kl_loss" => {
            let (kl, aggregate) = (c.kl(), c.aggregate(AggregateMode::TokenMean));
            vec![own()?.config(case, KlLossConfig { kl, aggregate, ..Default::default() })?]
        }
        "opd_loss" => {
            let (kl, aggregate) = (c.kl(), c.aggregate(AggregateMode::TokenMean));
            vec![own()?.config(case, OpdLossConfig { kl, aggregate, divisor: c.divisor, ..Default::default() })?]
        }
        "iw_opd" => vec![distill::with_aggregate(case, own()?, IwOpdConfig::default())?],
        "generalized_jsd" => vec![distill::with_aggregate(case, own()?, JsdConfig::default())?],
        "rollout_is" => rollout::weights(case)?,
        "rollout_rejection" => rollout::rejection(case)?,
        "rollout_metrics" => vec![step("rollout_mismatch", &[])?.config(case, MeanConfig { divisor: c.divisor })?],
        "rollout_gate" => vec![rollout::gate(case)?],
        "off_policy_sequence_mask" => {
            vec![step(op, MASK)?.config(case, OffPolicyConfig { unscored: c.unscored, ..Default::default() })?]
        }
        "sequence_veto" => vec![step(op, MASK)?.config(case, VetoConfig::default())?],
        "high_entropy_mask" => {
            let names: Names = &[("entropies", "entropy"), ("keep", "mask")];
            vec![step(op, names)?.needs(case, &["share"])?.params(case)?]
        }
        "kl_mask" | "m2po_mask" => {
            let names: Names = &[("tau", "threshold"), ("keep", "mask")];
            vec![step(op, names)?.needs(case, &["threshold"])?.params(case)?]
        }
        "response_mask_from_eos" => vec![step(op, MASK)?],
        "pf_ppo_weights" => {
            let rule = match case.text("method", "pow")? {
                "pow" => PfPpoRule::Power { power: case.number("power", Some(2.0))? },
                "max_min" => PfPpoRule::MaxMin,
                "max_random" => PfPpoRule::MaxRandom,
                other => return word(other, "method", |_| None),
            };
            vec![own()?.fixed(rule)?]
        }
        "masked_mean" => {
            let found = step("mean", VALUE)?.config(case, MeanConfig { divisor: c.divisor })?;
            vec![found.or_empty(c.empty_mean, &["mean"])]
        }
        "masked_var" => {
            vec![step("variance", VALUE)?.fixed(VarianceConfig { spread: Spread::Sample, divisor: c.divisor })?]
        }
        "row_sums" => vec![step("sequence_sums", VALUE)?],
        "row_means" => vec![step(op, VALUE)?.config(case, MeanConfig { divisor: c.divisor })?],
        "row_normalize" => vec![step(op, VALUE)?.config(case, RowNormalizeConfig::default())?],
        "quantile" => vec![step(op, VALUE)?.needs(case, &["level"])?.params(case)?],
        "variance_proxy" => {
            let found = step(op, &[("weights", "rollout_weights")])?.needs(case, &["gradient_norm"])?;
            vec![found.params(case)?.set("divisor", c.divisor)?]
        }
        "correlation" | "effective_sample_size" => vec![step(op, VALUE)?],
        "explained_variance" => vec![step(op, &[("explained_variance", "value")])?],
        "kl_means" => {
            let found = own()?.config(case, MeanConfig { divisor: c.divisor })?;
            vec![found.or_empty(c.empty_mean, &["k1", "abs", "k2", "k3"])]
        }
        "clip_fractions" => {
            let found = own()?.config(case, c.clip_fractions())?;
            vec![found.or_empty(c.empty_mean, &["clipped", "low", "high", "dual"])]
        }
        _ => vec![own()?.params(case)?],
    })
}

/// A formula and its gradient.
fn both(
    formula: &str,
    gradient: &str,
    names: Names,
    with: impl Fn(Step) -> Result<Step, Failure>,
) -> Result<Vec<Step>, Failure> {
    Ok(vec![with(Step::new(formula, names)?)?, with(Step::new(gradient, names)?)?])
}

/// One score per sequence, counted as the profile counts.
fn sums(case: &Case<'_>) -> Result<Step, Failure> {
    // the estimators of this family all carry it
    case.param("norm_by_std");
    let step = Step::new("sequence_sums", SCORES)?;
    Ok(match case.conventions.score_slots {
        ScoreSlots::All => step.mask(vec![true; case.rows * case.cols]),
        _ => step,
    })
}

/// Sums of rewards, a formula of them, and the result broadcast to the kept tokens.
fn of_scores(case: &Case<'_>, step: Step) -> Result<Vec<Step>, Failure> {
    Ok(vec![sums(case)?, step, Step::new("broadcast", &[("values", "out"), ("out", "advantages")])?])
}

/// Scores minus their mean over the batch, divided by their deviation.
fn over_batch(case: &Case<'_>, epsilon: f64) -> Result<Step, Failure> {
    let config = NormalizeConfig { mean: Level::Batch, deviation: Level::Batch, epsilon, ..Default::default() };
    Step::new("normalize_scores", &[("scores", "out")])?.config(case, config)
}

/// TRL normalises the sums over the sequences of the batch, not over their tokens.
fn gdpo<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    const NAMES: Names = &[("sources", "reward_sources")];
    let (case, sources) = (run.case, run.case.input_len("reward_sources"));
    let weights = case.list("weights")?.unwrap_or_else(|| vec![1.0; sources / case.rows.max(1)]);
    run.made.insert("weights", (Kind::List, Array::Double(weights)));
    let config = case.conventions.gdpo();
    if case.profile != Some(Profile::Trl1_16) {
        return run.step(Step::new("gdpo", NAMES)?.fixed(config)?);
    }
    run.step(Step::new("decoupled_scores", NAMES)?.fixed(config.group)?)?;
    run.step(over_batch(case, config.group.epsilon)?)?;
    run.step(Step::new("broadcast", &[("values", "out"), ("out", "advantages")])?)
}

/// One entry per sequence: whether its prompt stays.
fn dynamic_sampling_filter<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let case = run.case;
    let usual = if case.profile == Some(Profile::OpenRlhf0_11) { "mean" } else { "constant" };
    let rule = match case.text("rule", usual)? {
        "constant" => GroupRule::NotConstant,
        "spread" => GroupRule::Spread { at_least: case.number("at_least", Some(1e-6))? },
        "mean" => GroupRule::MeanBetween { low: case.number("low", Some(0.0))?, high: case.number("high", Some(1.0))? },
        other => return word(other, "rule", |_| None),
    };
    run.step(Step::new(case.op, &[])?.fixed(rule)?)?;
    if let Array::Flag(keep) = run.take("keep") {
        let keep = case.groups()?.ids().map(|group| keep[group]).collect();
        run.made.insert("keep", (Kind::Sequence, Array::Flag(keep)));
    }
    Ok(())
}
