//! All that a framework logs for a batch; the losses are this library's own.

use tokenwise::{
    divergence::{KlConfig, KlEstimator},
    loss::{GspoConfig, PpoConfig},
    metric::{OpenRlhfConfig, Reduction, TrlConfig, VerlConfig},
    rollout::GateConfig,
    Profile,
};
use tokenwise_catalogue::{Array, Kind, Number};

use crate::golden::{
    case::{Case, Failure, Ran},
    compare::Output,
    step::{Names, Run, Step},
};

const POLICY: Names = &[
    ("loss", "policy_loss.loss"),
    ("clip_fraction", "policy_loss.clip_fraction"),
    ("clip_fraction_lower", "policy_loss.clip_fraction_lower"),
    ("kl", "policy_loss.kl"),
    ("grad", "policy_loss.grad"),
    ("weights", "gate.weights"),
];
const VALUE: Names =
    &[("loss", "value_loss.loss"), ("clip_fraction", "value_loss.clip_fraction"), ("grad", "value_loss.grad")];
const TRL: Names = &[
    ("loss", "loss.loss"),
    ("clip_fraction", "loss.clip_fraction"),
    ("clip_fraction_lower", "loss.clip_fraction_lower"),
    ("kl", "loss.kl"),
    ("grad", "loss.grad"),
    ("weights", "none"),
];

/// Runs a loss; over an empty mask it is undefined, and its other numbers are 0.
fn loss<R: Number>(run: &mut Run<'_, R>, names: Names, step: Step) -> Result<(), Failure> {
    if run.case.batch()?.kept() > 0 {
        return run.step(step);
    }
    for (own, name) in names {
        run.numbers.insert((*name).into(), if *own == "loss" { f64::NAN } else { 0.0 });
    }
    Ok(())
}

/// The losses of actor and critic, as a profile has them.
fn losses<R: Number>(run: &mut Run<'_, R>, profile: Profile) -> Result<(), Failure> {
    loss(run, POLICY, Step::new("ppo_clip", POLICY)?.fixed(profile.ppo())?)?;
    loss(run, VALUE, Step::new("value_loss", VALUE)?.fixed(profile.value())?)
}

pub(super) fn verl_metrics<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let (case, profile) = (run.case, Profile::Verl0_9_1);
    losses(run, profile)?;
    let norm = case.number("gradient_norm", None)?;
    if case.has_input("rollout_log_probs") {
        run.numbers.insert("norm".into(), norm);
    }
    run.made.insert("limit", (Kind::Single, Array::Size(case.cols)));
    let names: Names = &[
        ("response_lengths.tokens", "response_lengths"),
        ("response_lengths.limit", "limit"),
        ("prompt_lengths.tokens", "prompt_lengths"),
        ("prompt_lengths.limit", "prompt_limit"),
        ("gradient_norm", "norm"),
    ];
    let config = VerlConfig {
        kl: KlConfig { estimator: KlEstimator::K3, ..profile.kl() },
        kl_coefficient: case.number("kl_coefficient", None)?,
        entropy_coefficient: case.number("entropy_coefficient", None)?,
        ..Default::default()
    };
    run.step(Step::new(case.op, names)?.fixed(config)?)
}

pub(super) fn reduce_metrics(case: &Case<'_>) -> Ran {
    let values = case.tokens::<f64>("values")?;
    let rule = Reduction::of_key(case.text("key", "")?, case.flag("global_counts", false)?);
    Ok(vec![("value".into(), Output::Scalar(rule.of(&values)?))])
}

pub(super) fn trl_metrics<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let (case, profile) = (run.case, Profile::Trl1_16);
    let (clip_low, clip_high) = (case.number("clip_low", Some(0.2))?, case.number("clip_high", Some(0.2))?);
    let ppo = PpoConfig { clip_low, clip_high, ..profile.ppo() };
    let step = match case.text("level", "token")? {
        "sequence" => {
            let config = GspoConfig { clip_low, clip_high, aggregate: ppo.aggregate, ..profile.gspo() };
            Step::new("gspo", TRL)?.fixed(config)?
        }
        _ => {
            let mut step = Step::new("ppo_clip", TRL)?.fixed(ppo)?;
            step.config.set("dual_clip", case.dual_clip()?);
            step
        }
    };
    loss(run, TRL, step)?;
    let missing = || Failure::Malformed("source_weights: expected numbers".into());
    let weights = case.list("source_weights")?.ok_or_else(missing)?;
    let sources = weights.len();
    run.made.insert("source_weights", (Kind::List, Array::Double(weights)));
    run.made.insert("loss.kind", (Kind::Single, Array::Text("clipped".into())));
    // follows from the groups
    case.whole("generations")?;
    case.whole("tokens_seen")?;
    case.number("entropy_coefficient", None)?;
    let names: Names = &[("rewards.sources", "sources"), ("rewards.source_weights", "source_weights")];
    let level = case.text("mode", "token_truncate")?.split('_').next().unwrap_or_default();
    run.step(Step::new(case.op, names)?.config(case, TrlConfig::default())?.set("weight_level", level)?)?;
    for (output, key) in [("source_means", "mean"), ("source_stds", "std")] {
        let found = (0..sources).filter_map(|place| run.numbers.get(&format!("rewards/{place}/{key}")).copied());
        let found = Array::Double(found.collect());
        run.made.insert(output, (Kind::List, found));
    }
    Ok(())
}

pub(super) fn openrlhf_metrics<R: Number>(run: &mut Run<'_, R>) -> Result<(), Failure> {
    let (case, profile) = (run.case, Profile::OpenRlhf0_11);
    let gate = match case.text("gate", "off")? {
        "seq" => "sequence",
        other => other,
    };
    let names: Names = &[("weights", "gate.weights"), ("filtered", "gate.filtered"), ("kl", "gate.kl")];
    run.step(Step::new("rollout_gate", names)?.fixed(GateConfig::default())?.set("level", gate)?)?;
    if gate == "off" {
        run.made.clear();
        run.numbers.clear();
    }
    losses(run, profile)?;
    let kl_use = case.text("kl_use", "reward")?;
    let names: Names = match kl_use {
        "loss" => &[("total_lengths.tokens", "total_lengths"), ("total_lengths.limit", "limit")],
        _ => &[
            ("total_lengths.tokens", "total_lengths"),
            ("total_lengths.limit", "limit"),
            ("log_probs", "old_log_probs"),
        ],
    };
    let step = Step::new(case.op, names)?.fixed(OpenRlhfConfig::default())?.set("kl_use", kl_use)?;
    case.groups()?;
    // follows from the groups
    let alone = case.whole("samples")? == 1;
    run.step(if alone { step.without_groups() } else { step })
}
