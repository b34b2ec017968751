//! Log-probabilities and advantages to one loss and its gradient.

use tokenwise::loss::{self, Aggregate, CispoConfig, PolicyLoss, PolicyLossInput, PpoConfig, SurrogateConfig};
#[cfg(feature = "full")]
use tokenwise::{
    group_scratch_len,
    loss::{
        ClipCovConfig, ClipCovInput, ClipCovSelectionConfig, DppoConfig, DroConfig, DualGameConfig, DualGameInput,
        EntropyBonusConfig, GspoConfig, KlCovConfig, PositiveNllInput, ReinforceConfig, SapoConfig, TisLossConfig,
        ToprConfig, ToprInput, ValueConfig, ValueLossInput, VespoConfig,
    },
    Moments,
};

use crate::{
    entry::{formulas, group_counts, token, Aggregates, Column},
    Call, Number, Refusal,
};
#[cfg(feature = "full")]
use crate::{
    entry::{sequence, text},
    weight::token_weight,
    Element::Flag,
};

const NEW: Column = token("log_probs");
const OLD: Column = token("old_log_probs");
const ADVANTAGES: Column = token("advantages");
/// Rollout weights.
const WEIGHTS: Column = token("weights").optional();
/// Kept tokens per prompt over all micro-batches, for the aggregation `prompt-mean`.
pub(crate) const PROMPTS: Column = group_counts("group_tokens").optional();

/// Implements [`Aggregates`] for configs with a field `aggregate`.
macro_rules! aggregates {
    ($($config:ident)*) => {$(
        impl<'a> $crate::entry::Aggregates<'a> for $config<'a> {
            fn aggregate(&mut self) -> &mut tokenwise::loss::Aggregate<'a> {
                &mut self.aggregate
            }
        }
    )*};
}
pub(crate) use aggregates;

aggregates! { CispoConfig PpoConfig SurrogateConfig }
#[cfg(feature = "full")]
aggregates! {
    ClipCovConfig DppoConfig DroConfig DualGameConfig EntropyBonusConfig GspoConfig KlCovConfig
    ReinforceConfig SapoConfig ToprConfig ValueConfig VespoConfig
}
#[cfg(feature = "full")]
impl<'a> Aggregates<'a> for ClipCovSelectionConfig<'a> {
    fn aggregate(&mut self) -> &mut Aggregate<'a> {
        &mut self.clip.aggregate
    }
}
impl<'a> Aggregates<'a> for Aggregate<'a> {
    fn aggregate(&mut self) -> &mut Self {
        self
    }
}

pub(crate) fn policy<'a, R: Number>(call: &Call<'a, R>) -> Result<PolicyLossInput<'a, R>, Refusal> {
    let (log_probs, old_log_probs) = (call.real("log_probs")?, call.real("old_log_probs")?);
    let mut input = PolicyLossInput::new(log_probs, old_log_probs, call.real("advantages")?);
    input.weights = call.optional("weights")?;
    Ok(input)
}

pub(crate) fn give_policy_loss<R: Number>(call: &mut Call<'_, R>, result: PolicyLoss) {
    call.give([
        ("loss", result.loss),
        ("clip_fraction", result.clip_fraction),
        ("clip_fraction_lower", result.clip_fraction_lower),
        ("kl", result.kl),
    ]);
}

formulas! { "loss":
    surrogate(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) SurrogateConfig -> (token("grad")) ["loss"] |call| {
        let (batch, config) = (call.batch()?, call.loss_config::<SurrogateConfig<'_>>()?);
        let loss = loss::surrogate(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    ppo_clip(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) PpoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<PpoConfig<'_>>()?);
        let result = loss::ppo_clip(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    reinforce(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) ReinforceConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<ReinforceConfig<'_>>()?);
        let result = loss::reinforce(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    cispo(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) CispoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<CispoConfig<'_>>()?);
        let result = loss::cispo(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    tis_loss(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) TisLossConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<TisLossConfig<'_>>()?);
        let result = loss::tis_loss(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    kl_cov(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) KlCovConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<KlCovConfig<'_>>()?);
        let result = loss::kl_cov(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    dppo_tv(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) DppoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<DppoConfig<'_>>()?);
        let result = loss::dppo_tv(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    dppo_kl(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) DppoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<DppoConfig<'_>>()?);
        let result = loss::dppo_kl(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    dro(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) DroConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<DroConfig<'_>>()?);
        let result = loss::dro(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    gspo(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) GspoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<GspoConfig<'_>>()?);
        let result = loss::gspo(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    sapo(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) SapoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<SapoConfig<'_>>()?);
        let result = loss::sapo(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    gmpo(Batch; NEW, OLD, ADVANTAGES, WEIGHTS) GmpoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.config()?);
        let result = loss::gmpo(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    luspo(Batch; NEW, OLD, ADVANTAGES, WEIGHTS) LuspoConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.config()?);
        let result = loss::luspo(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    clip_cov(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS, token("selected").of(Flag)) ClipCovConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<ClipCovConfig<'_>>()?);
        let input = ClipCovInput { policy: policy(call)?, selected: call.inputs.flag("selected")? };
        let result = loss::clip_cov(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        give_policy_loss(call, result);
        Ok(())
    }
    #[cfg(feature = "full")]
    clip_cov_selection(Batch; NEW, OLD, ADVANTAGES, PROMPTS) ClipCovSelectionConfig
        -> (token("selected").of(Flag)) [] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<ClipCovSelectionConfig<'_>>()?);
        loss::clip_cov_selection(&batch, policy(call)?, &config, call.outputs.flag_mut("selected")?)?;
        Ok(())
    }
    #[cfg(feature = "full")]
    vespo(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS) VespoConfig -> (token("grad")) ["loss", "phi_mean"] |call| {
        let (batch, config) = (call.batch()?, call.loss_config::<VespoConfig<'_>>()?);
        let result = loss::vespo(&batch, policy(call)?, &config, call.outputs.real_mut("grad")?)?;
        call.give([("loss", result.loss), ("phi_mean", result.phi_mean)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    topr(Batch; NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS, sequence("scores")) ToprConfig
        -> (token("grad")) ["loss"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<ToprConfig<'_>>()?);
        let input = ToprInput { policy: policy(call)?, scores: call.real("scores")? };
        let loss = loss::topr(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    gvpo(BatchAndGroups; NEW, OLD, ADVANTAGES, WEIGHTS) GvpoConfig -> (token("grad")) ["loss"] |call| {
        let (batch, groups, input, config) = (call.batch()?, call.groups()?, policy(call)?, call.config()?);
        let mut scratch = alloc::vec![Moments::default(); group_scratch_len(&groups)];
        let loss = loss::gvpo(&batch, &groups, input, &config, &mut scratch, call.outputs.real_mut("grad")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    positive_nll(Batch; NEW, sequence("scores")) PositiveNllConfig -> (token("grad")) ["loss"] |call| {
        let input = PositiveNllInput { log_probs: call.real("log_probs")?, scores: call.real("scores")? };
        let loss = loss::positive_nll(&call.batch()?, input, &call.config()?, call.outputs.real_mut("grad")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    aggregate(Batch; token("losses"), PROMPTS) Aggregate -> (token("weights")) ["loss"] |call| {
        let (batch, losses, config) = (call.batch()?, call.real("losses")?, call.loss_config::<Aggregate<'_>>()?);
        let loss = loss::aggregate(&batch, losses, &config, call.outputs.real_mut("weights")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    group_tokens(BatchAndGroups;) -> (group_counts("tokens")) [] |call| {
        Ok(loss::group_tokens(&call.batch()?, &call.groups()?, call.outputs.count_mut("tokens")?)?)
    }
    #[cfg(feature = "full")]
    value_loss(Batch; token("predictions"), token("values"), token("returns"), PROMPTS) ValueConfig
        -> (token("grad")) ["loss", "clip_fraction"] |call|
    {
        let input = ValueLossInput {
            predictions: call.real("predictions")?,
            values: call.real("values")?,
            returns: call.real("returns")?,
        };
        let (batch, config) = (call.batch()?, call.loss_config::<ValueConfig<'_>>()?);
        let result = loss::value_loss(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        call.give([("loss", result.loss), ("clip_fraction", result.clip_fraction)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    entropy_bonus(Batch; token("entropy"), PROMPTS) EntropyBonusConfig -> (token("grad")) ["loss"] |call| {
        let (batch, config) = (call.batch()?, call.loss_config::<EntropyBonusConfig<'_>>()?);
        let loss = loss::entropy_bonus(&batch, call.real("entropy")?, &config, call.outputs.real_mut("grad")?)?;
        call.give([("loss", loss)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    dual_game(
        Batch;
        NEW, OLD, ADVANTAGES, WEIGHTS, PROMPTS, token("ref_log_probs").optional(), text("weight").optional(),
        token("structural").optional()
    ) DualGameConfig
        -> (token("grad")) ["loss", "clip_fraction", "clip_fraction_upper", "clip_fraction_lower", "kl"] |call|
    {
        let (batch, config) = (call.batch()?, call.loss_config::<DualGameConfig<'_>>()?);
        let input = DualGameInput {
            policy: policy(call)?,
            ref_log_probs: call.optional("ref_log_probs")?,
            weight: token_weight(call)?,
        };
        let result = loss::dual_game(&batch, input, &config, call.outputs.real_mut("grad")?)?;
        call.give([
            ("loss", result.loss),
            ("clip_fraction", result.clip_fraction),
            ("clip_fraction_upper", result.clip_fraction_upper),
            ("clip_fraction_lower", result.clip_fraction_lower),
            ("kl", result.kl),
        ]);
        Ok(())
    }
}
