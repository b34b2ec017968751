//! The policy losses beyond the clip.

use serde_json::Value;
use tokenwise::{
    loss::{
        self, Aggregate, AggregateMode, CispoConfig, ClipCovConfig, DppoConfig, DroConfig, GmpoConfig, GspoConfig,
        KlCovConfig, LuspoConfig, PolicyLoss, PolicyLossInput, ReinforceConfig, SapoConfig, ToprConfig, VespoConfig,
    },
    Batch, Error, Layout, Mask, Profile,
};

use super::loss::with_policy_input;
use crate::golden::{
    case::{Case, Number, Ran},
    compare::Output,
};

/// What every policy loss gives.
fn outputs<R: Number>(result: PolicyLoss, grad: Vec<R>) -> Ran {
    Ok(vec![
        ("loss", Output::Scalar(result.loss)),
        ("grad", Output::tokens(grad)),
        ("clip_fraction", Output::Scalar(result.clip_fraction)),
        ("clip_fraction_lower", Output::Scalar(result.clip_fraction_lower)),
        ("kl", Output::Scalar(result.kl)),
    ])
}

pub(super) fn reinforce<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let config = ReinforceConfig { aggregate, ..case.conventions.reinforce() };
        outputs(loss::reinforce(&case.batch()?, input, &config, &mut grad)?, grad)
    })
}

pub(super) fn tis_loss<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let config = ReinforceConfig { aggregate, ..case.conventions.reinforce() };
        outputs(loss::tis_loss(&case.batch()?, input, &config, &mut grad)?, grad)
    })
}

pub(super) fn cispo<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let config = CispoConfig {
            bounds: case
                .conventions
                .cispo_bounds_at(case.number("clip_low", Some(0.2))?, case.number("clip_high", Some(0.2))?),
            aggregate,
            ..case.conventions.cispo()
        };
        outputs(loss::cispo(&case.batch()?, input, &config, &mut grad)?, grad)
    })
}

pub(super) fn sapo<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        // verl and TRL weigh every sequence the same, whatever their configured mode
        let named = case.param("aggregate").is_some() && case.profile != Some(Profile::Verl0_9_1);
        let mode = if named { aggregate.mode } else { AggregateMode::SequenceMeanTokenMean };
        let aggregate = Aggregate { mode, ..aggregate };
        let config = SapoConfig {
            tau_positive: case.number("tau_pos", Some(1.0))?,
            tau_negative: case.number("tau_neg", Some(1.05))?,
            aggregate,
            ..case.conventions.sapo()
        };
        outputs(loss::sapo(&case.batch()?, input, &config, &mut grad)?, grad)
    })
}

fn dppo_config<'a>(case: &Case<'_>, aggregate: Aggregate<'a>) -> Result<DppoConfig<'a>, super::Failure> {
    let default = case.conventions.dppo();
    Ok(DppoConfig {
        clip_low: case.number("clip_low", Some(0.2))?,
        clip_high: case.number("clip_high", Some(0.2))?,
        ratio_cap: match case.param("dual_clip") {
            None | Some(Value::Null) => default.ratio_cap,
            Some(_) => case.number("dual_clip", None)?,
        },
        aggregate,
        ..default
    })
}

pub(super) fn dppo_tv<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        outputs(loss::dppo_tv(&case.batch()?, input, &dppo_config(case, aggregate)?, &mut grad)?, grad)
    })
}

pub(super) fn dppo_kl<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        outputs(loss::dppo_kl(&case.batch()?, input, &dppo_config(case, aggregate)?, &mut grad)?, grad)
    })
}

pub(super) fn dro<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let config = DroConfig { aggregate, ..case.conventions.dro(case.number("beta", None)?) };
        outputs(loss::dro(&case.batch()?, input, &config, &mut grad)?, grad)
    })
}

/// TRL counts the sequences that are held, among all of them; we and the others count tokens.
fn held_sequences<R: Number>(
    case: &Case<'_>,
    input: PolicyLossInput<'_, R>,
    config: &GspoConfig<'_>,
    result: PolicyLoss,
) -> Result<f64, super::Failure> {
    if case.profile != Some(Profile::Trl1_16) {
        return Ok(result.clip_fraction);
    }
    let (batch, cols) = (case.batch()?, case.cols);
    let mut held = 0;
    for row in 0..case.rows {
        let keep: Vec<bool> =
            (0..batch.tokens()).map(|slot| batch.mask().as_slice()[slot] && slot / cols == row).collect();
        let alone = Batch::new(Layout::padded(case.rows, cols)?, Mask::new(&keep))?;
        let aggregate = Aggregate { mode: AggregateMode::TokenSum, ..Default::default() };
        let mut unused = vec![R::zero(); keep.len()];
        let share = loss::gspo(&alone, input, &GspoConfig { aggregate, ..*config }, &mut unused)?.clip_fraction;
        held += usize::from(share > 0.0);
    }
    Ok(held as f64 / case.rows as f64)
}

pub(super) fn gspo<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let default = case.conventions.gspo();
        // OpenRLHF weighs every sequence the same, whatever its configured mode
        let forced = case.profile == Some(Profile::OpenRlhf0_11);
        let mode = if forced { default.aggregate.mode } else { aggregate.mode };
        let config = GspoConfig {
            clip_low: case.number("clip_low", Some(default.clip_low))?,
            clip_high: case.number("clip_high", Some(default.clip_high))?,
            aggregate: Aggregate { mode, ..aggregate },
            ..default
        };
        let result = loss::gspo(&case.batch()?, input, &config, &mut grad)?;
        outputs(PolicyLoss { clip_fraction: held_sequences(case, input, &config, result)?, ..result }, grad)
    })
}

pub(super) fn luspo<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, _| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let config = LuspoConfig {
            clip_low: case.number("clip_low", Some(0.2))?,
            clip_high: case.number("clip_high", Some(0.2))?,
        };
        let result = loss::luspo(&case.batch()?, input, &config, &mut grad)?;
        let LuspoConfig { clip_low, clip_high } = config;
        let of_gspo = GspoConfig { clip_low, clip_high, ..Default::default() };
        outputs(PolicyLoss { clip_fraction: held_sequences(case, input, &of_gspo, result)?, ..result }, grad)
    })
}

pub(super) fn gmpo<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let default = case.conventions.gmpo();
        let config = GmpoConfig {
            clip_low: case.number("clip_low", Some(default.clip_low))?,
            clip_high: case.number("clip_high", Some(default.clip_high))?,
            counts: aggregate.counts,
            ..default
        };
        outputs(loss::gmpo(&case.batch()?, input, &config, &mut grad)?, grad)
    })
}

pub(super) fn vespo<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let mut grad = vec![R::zero(); input.log_probs.len()];
        let batch = case.batch()?;
        let result = loss::vespo(&batch, input, &VespoConfig { aggregate, ..case.conventions.vespo() }, &mut grad)?;
        // TRL's mean counts rows without kept tokens, whose ratio is 1
        let (kept, rows) = (batch.kept_sequences() as f64, batch.sequences() as f64);
        let phi_mean = (result.phi_mean * kept + (rows - kept)) / rows;
        Ok(vec![
            ("loss", Output::Scalar(result.loss)),
            ("grad", Output::tokens(grad)),
            ("phi_mean", Output::Scalar(phi_mean)),
        ])
    })
}

/// Where the case gives no scores, the sign of each advantage stands for that of the score.
pub(super) fn topr<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let (batch, config) = (case.batch()?, ToprConfig { aggregate, ..Default::default() });
        let run = |scores: &[R]| {
            let mut grad = vec![R::zero(); input.log_probs.len()];
            let loss = loss::topr(&batch, input, scores, &config, &mut grad)?;
            Ok::<_, Error>((loss, grad))
        };
        let (loss, grad) = if case.has_input("scores") {
            run(&case.input("scores", case.rows)?)?
        } else {
            let ((_, mut grad), (_, bad)) = (run(&vec![R::one(); case.rows])?, run(&vec![R::zero(); case.rows])?);
            // the loss of a token is its gradient times log π, so the losses follow from the gradients
            let mut loss = 0.0;
            for (slot, _) in batch.mask().as_slice().iter().enumerate().filter(|(_, keep)| **keep) {
                if input.advantages[slot] <= R::zero() {
                    grad[slot] = bad[slot];
                }
                loss += (grad[slot] * input.log_probs[slot]).widen();
            }
            (loss, grad)
        };
        Ok(vec![("loss", Output::Scalar(loss)), ("grad", Output::tokens(grad))])
    })
}

pub(super) fn clip_cov<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let selected: Vec<bool> = case.tokens::<f64>("selected")?.into_iter().map(|x| x != 0.0).collect();
        let default = case.conventions.clip_cov();
        let config = ClipCovConfig {
            clip_low: case.number("clip_low", Some(0.2))?,
            clip_high: case.number("clip_high", Some(0.2))?,
            lower: case.number("lower", Some(default.lower))?,
            upper: case.number("upper", Some(default.upper))?,
            ratio: case.number("ratio", Some(default.ratio))?,
            aggregate,
            ..default
        };
        let mut grad = vec![R::zero(); input.log_probs.len()];
        outputs(loss::clip_cov(&case.batch()?, input, &config, &selected, &mut grad)?, grad)
    })
}

pub(super) fn kl_cov<R: Number>(case: &Case<'_>) -> Ran {
    with_policy_input::<R>(case, |input, aggregate| {
        let default = case.conventions.kl_cov();
        let config = KlCovConfig {
            ratio: case.number("ratio", Some(default.ratio))?,
            kl_coef: case.number("kl_coef", Some(default.kl_coef))?,
            aggregate,
            ..default
        };
        let mut grad = vec![R::zero(); input.log_probs.len()];
        outputs(loss::kl_cov(&case.batch()?, input, &config, &mut grad)?, grad)
    })
}
