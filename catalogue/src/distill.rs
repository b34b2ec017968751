//! Losses towards a teacher or a reference, and verl's bypass mode.

use alloc::{borrow::Cow, format, vec};

use tokenwise::{
    loss::{
        self, BypassConfig, BypassForm, BypassOutput, ForwardKlTopKConfig, ForwardKlTopKInput, ForwardKlTopKOutput,
        IwOpdConfig, IwOpdInput, JsdConfig, JsdInput, KlLossConfig, MixedKlConfig, MixedKlInput, MixedKlOutput,
        OpdLossConfig, OpdLossInput, OutsideTopK, RefKlConfig, RefKlInput, TopKIds, TopKInput, TopKJsdConfig,
    },
    rollout::{CriterionMetrics, RejectionTotals},
};

use crate::{
    divergence::kl_input,
    entry::{formulas, logit, size, token, top_k},
    loss::{aggregates, give_policy_loss, policy, PROMPTS},
    rollout::take_criteria,
    Element::{Flag, Index},
};

aggregates! {
    ForwardKlTopKConfig IwOpdConfig JsdConfig KlLossConfig MixedKlConfig OpdLossConfig RefKlConfig TopKJsdConfig
}

formulas! { "loss":
    kl_loss(Batch; token("log_probs"), token("ref_log_probs"), PROMPTS) KlLossConfig
        -> (token("grad")) ["loss", "aggregated", "mean"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<KlLossConfig<'_>>()?);
        let result = loss::kl_loss(&batch, kl_input(call)?, &config, call.outputs.real_mut("grad")?)?;
        call.give([("loss", result.loss), ("aggregated", result.aggregated), ("mean", result.mean)]);
        Ok(())
    }
    opd_loss(
        Batch;
        token("log_probs"), token("old_log_probs"), token("teacher_log_probs"), token("weights").optional(), PROMPTS
    ) OpdLossConfig -> (token("grad"))
        ["loss", "clip_fraction", "clip_fraction_lower", "kl", "abs_loss", "loss_min", "loss_max"] |call|
    {
        let input = OpdLossInput {
            log_probs: call.real("log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
            teacher_log_probs: call.real("teacher_log_probs")?,
            weights: call.optional("weights")?,
        };
        let (batch, config) = (call.batch()?, call.loss_config::<OpdLossConfig<'_>>()?);
        let result = loss::opd_loss(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        call.give([
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
            ("abs_loss", result.abs_loss),
            ("loss_min", result.loss_min),
            ("loss_max", result.loss_max),
        ]);
        Ok(())
    }
    ref_kl(
        Batch; token("log_probs"), token("old_log_probs"), token("ref_log_probs"), token("weights").optional(), PROMPTS
    ) RefKlConfig -> (token("grad")) ["loss", "ref_kl", "fallen", "mismatch_fallen", "mismatch_kept"] |call| {
        let input = RefKlInput {
            log_probs: call.real("log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
            ref_log_probs: call.real("ref_log_probs")?,
            weights: call.optional("weights")?,
        };
        let (batch, config) = (call.batch()?, call.loss_config::<RefKlConfig<'_>>()?);
        let result = loss::ref_kl(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        call.give([
            ("loss", result.loss),
            ("ref_kl", result.ref_kl),
            ("fallen", result.fallen),
            ("mismatch_fallen", result.mismatch_fallen),
            ("mismatch_kept", result.mismatch_kept),
        ]);
        Ok(())
    }
    iw_opd(Batch; token("log_probs"), token("old_log_probs"), token("teacher_log_probs"), PROMPTS) IwOpdConfig
        -> (token("grad"))
        ["loss", "mean_advantage", "mean_abs_advantage", "mean_weight", "min_weight", "max_weight"] |call|
    {
        let input = IwOpdInput {
            log_probs: call.real("log_probs")?,
            old_log_probs: call.real("old_log_probs")?,
            teacher_log_probs: call.real("teacher_log_probs")?,
        };
        let (batch, config) = (call.batch()?, call.loss_config::<IwOpdConfig<'_>>()?);
        let result = loss::iw_opd(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        call.give([
            ("loss", result.loss),
            ("mean_advantage", result.mean_advantage),
            ("mean_abs_advantage", result.mean_abs_advantage),
            ("mean_weight", result.mean_weight),
            ("min_weight", result.min_weight),
            ("max_weight", result.max_weight),
        ]);
        Ok(())
    }
    forward_kl_topk(
        Batch;
        top_k("log_probs"), top_k("teacher_log_probs"), size("k"), top_k("teacher_ids").of(Index).optional(),
        top_k("student_ids").of(Index).optional(), PROMPTS
    ) ForwardKlTopKConfig -> (token("losses"), top_k("grad"))
        [
            "loss", "loss_min", "loss_max", "student_mass.mean", "student_mass.min", "student_mass.max",
            "teacher_mass.mean", "teacher_mass.min", "teacher_mass.max", "overlap.ratio", "overlap.token_advantage"
        ] |call|
    {
        // a list that is missing beside the other becomes empty, which the core rejects by its length
        let ids = match (call.inputs.optional_index("teacher_ids")?, call.inputs.optional_index("student_ids")?) {
            (None, None) => None,
            (teacher, student) => {
                Some(TopKIds { teacher: teacher.unwrap_or_default(), student: student.unwrap_or_default() })
            }
        };
        let input = ForwardKlTopKInput {
            log_probs: call.real("log_probs")?,
            teacher_log_probs: call.real("teacher_log_probs")?,
            k: call.inputs.size("k")?,
            ids,
        };
        let (batch, config) = (call.batch()?, call.loss_config::<ForwardKlTopKConfig<'_>>()?);
        let [losses, grad] = call.outputs.reals_mut(["losses", "grad"])?;
        let result = loss::forward_kl_topk(&batch, input, &config, ForwardKlTopKOutput { losses, grad })?;
        let ([mean, min, max], [teacher_mean, teacher_min, teacher_max]) = (result.student_mass, result.teacher_mass);
        call.give([
            ("loss", result.loss),
            ("loss_min", result.loss_min),
            ("loss_max", result.loss_max),
            ("student_mass.mean", mean),
            ("student_mass.min", min),
            ("student_mass.max", max),
            ("teacher_mass.mean", teacher_mean),
            ("teacher_mass.min", teacher_min),
            ("teacher_mass.max", teacher_max),
        ]);
        call.give_some("overlap.ratio", result.overlap.map(|overlap| overlap.ratio));
        call.give_some("overlap.token_advantage", result.overlap.map(|overlap| overlap.token_advantage));
        Ok(())
    }
    topk_jsd(
        Batch; top_k("log_probs"), top_k("teacher_log_probs"), size("k"), token("weights").optional(), PROMPTS
    ) TopKJsdConfig -> (top_k("grad")) ["loss"] |call| {
        let input = TopKInput {
            log_probs: call.real("log_probs")?,
            teacher_log_probs: call.real("teacher_log_probs")?,
            k: call.inputs.size("k")?,
            weights: call.optional("weights")?,
        };
        let (batch, config) = (call.batch()?, call.loss_config::<TopKJsdConfig<'_>>()?);
        let loss = loss::topk_jsd(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    mixed_kl_topk(
        Batch; top_k("log_probs"), top_k("teacher_log_probs"), size("k"), token("entropies").optional(), PROMPTS
    ) MixedKlConfig -> (top_k("grad"), token("grad_entropies")) ["loss"] |call| {
        let (batch, config) = (call.batch()?, call.loss_config::<MixedKlConfig<'_>>()?);
        let entropies = call.optional("entropies")?;
        // not read if the student's entries are renormalised
        let unread = match entropies {
            None if config.outside == OutsideTopK::Renormalize => vec![R::narrow(0.0); batch.tokens()],
            _ => vec![],
        };
        let input = MixedKlInput {
            log_probs: call.real("log_probs")?,
            teacher_log_probs: call.real("teacher_log_probs")?,
            k: call.inputs.size("k")?,
            entropies: entropies.unwrap_or(&unread),
        };
        let [grad, grad_entropies] = call.outputs.reals_mut(["grad", "grad_entropies"])?;
        let loss = loss::mixed_kl_topk(&batch, input, &config, MixedKlOutput { grad, grad_entropies })?;
        call.give([("loss", loss)]);
        Ok(())
    }
    generalized_jsd(
        Batch; logit("logits"), logit("teacher_logits"), size("vocab"), token("weights").optional(), PROMPTS
    ) JsdConfig -> (logit("grad_logits")) ["loss"] |call| {
        let input = JsdInput {
            logits: call.real("logits")?,
            teacher_logits: call.real("teacher_logits")?,
            vocab: call.inputs.size("vocab")?,
            weights: call.optional("weights")?,
        };
        let (batch, config) = (call.batch()?, call.loss_config::<JsdConfig<'_>>()?);
        let loss = loss::generalized_jsd(&batch, input, &config, call.outputs.real_mut("grad_logits")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    bypass_loss(Batch; token("log_probs"), token("old_log_probs"), token("advantages"), PROMPTS) BypassConfig
        -> (token("weights"), token("keep").of(Flag), token("grad"))
        ["loss", "clip_fraction", "clip_fraction_lower", "kl", "metrics.*"] |call|
    {
        let mut settings = call.config.clone();
        let criteria = take_criteria(settings.get_mut("rejection"))?;
        let mut config: BypassConfig<'_> = settings.read("config")?;
        config.rejection.criteria = &criteria;
        match &mut config.form {
            BypassForm::PpoClip(config) => call.bind(&mut config.aggregate)?,
            BypassForm::Reinforce(config) => call.bind(&mut config.aggregate)?,
            _ => (),
        }
        let (batch, input) = (call.batch()?, policy(call)?);
        let mut per_criterion = vec![CriterionMetrics::default(); criteria.len()];
        // the outputs cannot be borrowed as reals and flags at once: the mask is written separately and stored at the
        // end
        let mut keep = vec![false; call.outputs.flag_mut("keep")?.len()];
        let [weights, grad] = call.outputs.reals_mut(["weights", "grad"])?;
        let output = BypassOutput { weights, keep: &mut keep, per_criterion: &mut per_criterion, grad };
        let result = loss::bypass_loss(&batch, input, &config, output)?;
        call.outputs.flag_mut("keep")?.copy_from_slice(&keep);
        give_policy_loss(call, result.policy);
        let weights = result.weights.iter().flat_map(|weights| weights.entries());
        let metrics = result.mismatch.entries().into_iter().chain(weights);
        let metrics = metrics.chain(per_criterion.iter().flat_map(CriterionMetrics::entries));
        let metrics = metrics.chain(result.rejection.iter().flat_map(RejectionTotals::entries));
        call.numbers.extend(metrics.map(|(key, value)| (Cow::Owned(format!("metrics.{key}")), value)));
        Ok(())
    }
}
