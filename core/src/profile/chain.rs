//! The chain from rewards to losses, under one set of conventions.

use super::{results::Results, CompareConfig, Conventions, Quantity, ScoreSlots};
use crate::{
    advantage::{
        broadcast, discounted_returns, gae, gpg_advantage, group_relative, leave_one_out, length_weighted_baseline,
        sequence_sums, whiten, GaeConfig, GaeInput, GaeOutput, ReturnsConfig, ReturnsInput, WeightedSum,
    },
    divergence::{kl_estimate, kl_gradient, KlInput},
    error::{check_len, kept, Result},
    groups::Groups,
    layout::{Batch, Mask},
    loss::{
        aggregate, cispo, gmpo, gspo, ppo_clip, sapo, value_loss, CispoConfig, PolicyLossInput, PpoConfig, ValueConfig,
        ValueLoss, ValueLossInput,
    },
    metric::mean,
    real::Real,
    reward::{kl_in_reward, KlInRewardInput},
    rollout::{rollout_weights, RolloutInput},
    statistics::Moments,
};

/// What [`compare`](super::compare()) reads. What is `None` is left out of the chain, with all that needs it.
#[derive(Clone, Copy, Debug)]
pub struct ProfileInput<'a, R> {
    /// Token rewards, action-aligned, before any KL.
    pub rewards: &'a [R],
    /// One score per sequence; `None` adds the rewards up, over the slots a profile says.
    pub scores: Option<&'a [R]>,
    /// The critic's values when the batch was collected, state-aligned.
    pub values: Option<&'a [R]>,
    /// Its new values; with them and `values` there is a value loss.
    pub predictions: Option<&'a [R]>,
    /// Log-probabilities of the policy being trained, action-aligned like the next three.
    pub log_probs: &'a [R],
    /// Those of the policy that sampled, as the trainer computes them.
    pub old_log_probs: &'a [R],
    /// Those of the reference; with them there is a KL in the reward, and a KL loss.
    pub ref_log_probs: Option<&'a [R]>,
    /// Those the sampler reported; with them every policy loss is weighed.
    pub rollout_log_probs: Option<&'a [R]>,
}

impl<R> ProfileInput<'_, R> {
    pub(super) fn check(&self, batch: &Batch<'_>) -> Result<()> {
        for (what, slice, expected) in [
            ("rewards", Some(self.rewards), batch.tokens()),
            ("scores", self.scores, batch.sequences()),
            ("values", self.values, batch.tokens()),
            ("predictions", self.predictions, batch.tokens()),
            ("log_probs", Some(self.log_probs), batch.tokens()),
            ("old_log_probs", Some(self.old_log_probs), batch.tokens()),
            ("ref_log_probs", self.ref_log_probs, batch.tokens()),
            ("rollout_log_probs", self.rollout_log_probs, batch.tokens()),
        ] {
            slice.map_or(Ok(()), |slice| check_len(what, slice, expected))?;
        }
        Ok(())
    }
}

/// Which of the chain's advantages the losses are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Estimator {
    /// [`Quantity::GroupRelative`], laid on the tokens.
    #[default]
    GroupRelative,
    /// [`Quantity::LeaveOneOut`], laid on the tokens.
    LeaveOneOut,
    /// [`Quantity::Whitened`].
    Whitened,
}

/// Where the chain works.
pub(super) struct Workspace<'a, R> {
    /// One per group.
    pub(super) moments: &'a mut [Moments],
    /// One per group.
    pub(super) sums: &'a mut [WeightedSum],
    /// A mask that keeps every slot.
    pub(super) every_slot: &'a [bool],
    /// One 0 per sequence: every sequence ends for good.
    pub(super) bootstrap: &'a [R],
    /// One per token.
    pub(super) spare: &'a mut [R],
}

/// What every run has in common.
pub(super) struct Chain<'a, R> {
    pub(super) batch: Batch<'a>,
    pub(super) groups: Groups<'a>,
    pub(super) input: ProfileInput<'a, R>,
    pub(super) config: CompareConfig<'a>,
}

/// Cuts a scratch slice into one part per result, in the order of [`Quantity::ALL`].
fn parts<R, const N: usize>(slice: &mut [R], len: usize) -> [&mut [R]; N] {
    let mut parts = slice.chunks_exact_mut(len.max(1));
    core::array::from_fn(|_| parts.next().unwrap_or_default())
}

impl<R: Real> Chain<'_, R> {
    /// Runs the chain under one set of conventions.
    pub(super) fn run(&self, c: &Conventions, work: &mut Workspace<'_, R>, out: &mut Results<'_, R>) -> Result<()> {
        let Self { batch, groups, input, config } = self;
        let [rewards, returns, advantages, gae_returns, whitened, chosen, weights, kl, kl_grad, grads @ ..] =
            parts::<R, 15>(out.tokens, batch.tokens());
        let [scores, relative, others, weighted, gpg] = parts::<R, 5>(out.sequences, batch.sequences());
        let record = &mut out.record;

        match input.ref_log_probs {
            Some(ref_log_probs) => {
                let input =
                    KlInRewardInput { scores: input.rewards, old_log_probs: input.old_log_probs, ref_log_probs };
                let mean = kept(kl_in_reward(batch, input, &c.kl_reward(), rewards));
                record.note(Quantity::Rewards, mean.map(|_| ()))?;
                record.scalar(Quantity::RewardKl, mean)?;
            }
            None => {
                for ((out, &reward), &keep) in rewards.iter_mut().zip(input.rewards).zip(batch.mask().as_slice()) {
                    *out = if keep { reward } else { R::zero() };
                }
            }
        }
        let of_rewards = ReturnsInput { rewards, bootstrap: work.bootstrap };
        let returns_config = ReturnsConfig { gamma: config.gamma, ..c.returns() };
        record.note(Quantity::Returns, kept(discounted_returns(batch, of_rewards, &returns_config, returns)))?;
        if let Some(values) = input.values {
            let of_values = GaeInput { rewards, values, bootstrap: work.bootstrap };
            let output = GaeOutput { advantages, returns: gae_returns };
            let done = kept(gae(batch, of_values, &GaeConfig { gamma: config.gamma, ..c.gae() }, output));
            record.note(Quantity::Gae, done)?;
            record.note(Quantity::GaeReturns, done)?;
        }
        let raw = if input.values.is_some() { &*advantages } else { &*returns };
        let whitening = kept(whiten(batch, raw, &c.whiten(), whitened));
        record.note(Quantity::Whitened, whitening)?;

        match (input.scores, c.score_slots) {
            (Some(given), _) => scores.copy_from_slice(given),
            (None, ScoreSlots::Kept) => sequence_sums(batch, input.rewards, scores)?,
            (None, ScoreSlots::All) => {
                let every_slot = Batch::new(batch.layout(), Mask::new(work.every_slot))?;
                sequence_sums(&every_slot, input.rewards, scores)?;
            }
        }
        record.note(Quantity::Scores, Ok(()))?;
        let done = kept(group_relative(groups, scores, &c.group(), work.moments, relative));
        record.note(Quantity::GroupRelative, done)?;
        let done = kept(leave_one_out(groups, scores, &c.leave_one_out(), work.moments, others));
        record.note(Quantity::LeaveOneOut, done)?;
        let done = kept(length_weighted_baseline(batch, groups, scores, &c.length_weighted(), work.sums, weighted));
        record.note(Quantity::LengthWeighted, done)?;
        record.note(Quantity::Gpg, kept(gpg_advantage(groups, scores, &c.gpg(), work.moments, gpg)))?;

        let choice = match config.estimator {
            Estimator::GroupRelative => kept(broadcast(batch, relative, chosen)),
            Estimator::LeaveOneOut => kept(broadcast(batch, others, chosen)),
            Estimator::Whitened => whitening.map(|()| chosen.copy_from_slice(whitened)),
        };
        record.note(Quantity::Advantages, choice)?;
        let weights = match input.rollout_log_probs {
            None => None,
            Some(rollout_log_probs) => {
                let input = RolloutInput { old_log_probs: input.old_log_probs, rollout_log_probs };
                record.note(
                    Quantity::RolloutWeights,
                    kept(rollout_weights(batch, input, &c.rollout(), weights)).map(|_| ()),
                )?;
                Some(&*weights)
            }
        };
        if let Some(ref_log_probs) = input.ref_log_probs {
            let input = KlInput { log_probs: input.log_probs, ref_log_probs };
            record.note(Quantity::Kl, kept(kl_estimate(batch, input, &c.kl_loss(), kl)))?;
            record.scalar(
                Quantity::KlMean,
                c.empty_mean.instead(kept(mean(batch, kl, c.divisor)), work.spare, |mean| mean),
            )?;
            let loss = kept(aggregate(batch, kl, &c.aggregate(config.mode), kl_grad));
            let loss = c.empty_loss.instead(loss, kl_grad, |loss| loss);
            kl_gradient(batch, input, &c.kl_loss(), work.spare)?;
            for (grad, &slope) in kl_grad.iter_mut().zip(&*work.spare) {
                *grad *= slope;
            }
            record.scalar(Quantity::KlLoss, loss)?;
            record.note(Quantity::KlLossGrad, loss.map(|_| ()))?;
        }

        let [ppo_grad, gspo_grad, gmpo_grad, cispo_grad, sapo_grad, value_grad] = grads;
        let of_policy = PolicyLossInput {
            log_probs: input.log_probs,
            old_log_probs: input.old_log_probs,
            advantages: chosen,
            weights,
        };
        let mode = c.aggregate(config.mode);
        let (clip_low, clip_high) = (config.clip_low, config.clip_high);
        let clip = PpoConfig { clip_low, clip_high, aggregate: mode, ..c.ppo() };
        // without advantages there is no loss
        let result = choice.and_then(|()| kept(ppo_clip(batch, of_policy, &clip, ppo_grad)));
        let names = [Quantity::Ppo, Quantity::PpoGrad, Quantity::PpoClipFraction];
        let ppo = record.policy(result, c.empty_loss, ppo_grad, names)?;
        record.scalar(Quantity::PpoClipFractionLower, ppo.map(|ppo| ppo.clip_fraction_lower))?;
        record.scalar(Quantity::PpoKl, ppo.map(|ppo| ppo.kl))?;
        let result = choice.and_then(|()| kept(gspo(batch, of_policy, &c.gspo(), gspo_grad)));
        let names = [Quantity::Gspo, Quantity::GspoGrad, Quantity::GspoClipFraction];
        record.policy(result, c.empty_loss, gspo_grad, names)?.ok();
        let result = choice.and_then(|()| kept(gmpo(batch, of_policy, &c.gmpo(), gmpo_grad)));
        let names = [Quantity::Gmpo, Quantity::GmpoGrad, Quantity::GmpoClipFraction];
        record.policy(result, c.empty_loss, gmpo_grad, names)?.ok();
        let bounded = CispoConfig { aggregate: mode, ..c.cispo() };
        let result = choice.and_then(|()| kept(cispo(batch, of_policy, &bounded, cispo_grad)));
        let names = [Quantity::Cispo, Quantity::CispoGrad, Quantity::CispoClipFraction];
        record.policy(result, c.empty_loss, cispo_grad, names)?.ok();
        let result = choice.and_then(|()| kept(sapo(batch, of_policy, &c.sapo(), sapo_grad)));
        let result = c.empty_loss.instead(result.map(|sapo| sapo.loss), sapo_grad, |loss| loss);
        record.scalar(Quantity::Sapo, result)?;
        record.note(Quantity::SapoGrad, result.map(|_| ()))?;

        if let (Some(values), Some(predictions)) = (input.values, input.predictions) {
            let input = ValueLossInput { predictions, values, returns: gae_returns };
            let result = kept(value_loss(batch, input, &ValueConfig { aggregate: mode, ..c.value() }, value_grad));
            let none = |loss| ValueLoss { loss, ..Default::default() };
            let result = c.empty_loss.instead(result, value_grad, none);
            record.scalar(Quantity::Value, result.map(|value| value.loss))?;
            record.note(Quantity::ValueGrad, result.map(|_| ()))?;
            record.scalar(Quantity::ValueClipFraction, result.map(|value| value.clip_fraction))?;
        }
        Ok(())
    }
}
