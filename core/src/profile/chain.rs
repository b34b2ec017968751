//! The chain from rewards to losses, under one set of conventions.

use super::{
    results::{Record, Results},
    CompareConfig, Conventions, Empty, Quantity, ScoreSlots,
};
use crate::{
    advantage::{
        broadcast, discounted_returns, gae, gpg_advantage, group_relative, leave_one_out, length_weighted_baseline,
        sequence_sums, whiten, GaeConfig, GaeInput, GaeOutput, ReturnsConfig, ReturnsInput, WeightedSum,
    },
    divergence::{kl_estimate, kl_gradient, KlInput},
    error::{check_len, Result},
    groups::Groups,
    layout::{Batch, Mask},
    loss::{
        aggregate, cispo, gmpo, gspo, ppo_clip, sapo, value_loss, CispoConfig, PolicyLoss, PolicyLossInput, PpoConfig,
        ValueConfig, ValueLossInput,
    },
    metric::mean,
    real::Real,
    reward::{kl_in_reward, KlInRewardInput},
    rollout::{rollout_weights, RolloutInput},
    statistics::{MeanConfig, Moments},
};

/// What [`compare`](super::compare()) reads. An input that is `None` is left out of the chain, with all results that
/// need it.
#[derive(Clone, Copy, Debug)]
pub struct ProfileInput<'a, R> {
    /// Token rewards, action-aligned, before any KL.
    pub rewards: &'a [R],
    /// One score per sequence; `None` sums the rewards, over the slots that a profile defines.
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
    /// Those the sampler reported; with them every policy loss is weighted.
    pub rollout_log_probs: Option<&'a [R]>,
}

impl<'a, R> ProfileInput<'a, R> {
    /// The shortest chain: no critic, no reference, no sampler, and scores summed from the rewards.
    pub const fn new(rewards: &'a [R], log_probs: &'a [R], old_log_probs: &'a [R]) -> Self {
        Self {
            rewards,
            scores: None,
            values: None,
            predictions: None,
            log_probs,
            old_log_probs,
            ref_log_probs: None,
            rollout_log_probs: None,
        }
    }

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

/// Which advantages of the chain the losses use.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Estimator {
    /// [`Quantity::GroupRelative`], broadcast to the tokens.
    #[default]
    GroupRelative,
    /// [`Quantity::LeaveOneOut`], broadcast to the tokens.
    LeaveOneOut,
    /// [`Quantity::Whitened`].
    Whitened,
}

/// The scratch slices of the chain.
pub(super) struct Workspace<'a, R> {
    /// One per group.
    pub(super) moments: &'a mut [Moments],
    /// One per group.
    pub(super) sums: &'a mut [WeightedSum],
    /// A mask that keeps every slot.
    pub(super) every_slot: &'a [bool],
    /// One 0 per sequence: every sequence is terminal.
    pub(super) bootstrap: &'a [R],
    /// One per token.
    pub(super) spare: &'a mut [R],
}

/// The inputs common to all runs.
pub(super) struct Chain<'a, R> {
    pub(super) batch: Batch<'a>,
    pub(super) groups: Groups<'a>,
    pub(super) input: ProfileInput<'a, R>,
    pub(super) config: CompareConfig<'a>,
}

/// Splits a scratch slice into one part per result, in the order of [`Quantity::ALL`].
fn parts<R, const N: usize>(slice: &mut [R], len: usize) -> [&mut [R]; N] {
    let mut parts = slice.chunks_exact_mut(len.max(1));
    core::array::from_fn(|_| parts.next().unwrap_or_default())
}

/// The numbers of a result that has only one.
fn alone(number: f64) -> [f64; 4] {
    [number, 0.0, 0.0, 0.0]
}

fn all(loss: PolicyLoss) -> [f64; 4] {
    [loss.loss, loss.clip_fraction, loss.clip_fraction_lower, loss.kl]
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
                let mean = kl_in_reward(batch, input, &c.kl_reward(), rewards).map(alone);
                record.numbers(mean, Empty::Refused, rewards, &[Quantity::RewardKl], Some(Quantity::Rewards))?;
            }
            None => {
                for ((out, &reward), &keep) in rewards.iter_mut().zip(input.rewards).zip(batch.mask().as_slice()) {
                    *out = if keep { reward } else { R::zero() };
                }
            }
        }
        let of_rewards = ReturnsInput { rewards, bootstrap: work.bootstrap };
        let returns_config = ReturnsConfig { gamma: config.gamma, ..c.returns() };
        record.done(Quantity::Returns, discounted_returns(batch, of_rewards, &returns_config, returns))?;
        if let Some(values) = input.values {
            let of_values = GaeInput { rewards, values, bootstrap: work.bootstrap };
            let output = GaeOutput { advantages, returns: gae_returns };
            let done = gae(batch, of_values, &GaeConfig { gamma: config.gamma, ..c.gae() }, output);
            record.done(Quantity::Gae, done)?;
            record.done(Quantity::GaeReturns, record.ready(Quantity::Gae))?;
        }
        let raw = if input.values.is_some() { &*advantages } else { &*returns };
        record.done(Quantity::Whitened, whiten(batch, raw, &c.whiten(), whitened))?;

        match (input.scores, c.score_slots) {
            (Some(given), _) => scores.copy_from_slice(given),
            (None, ScoreSlots::Kept) => sequence_sums(batch, input.rewards, scores)?,
            (None, ScoreSlots::All) => {
                let every_slot = Batch::new(batch.layout(), Mask::new(work.every_slot))?;
                sequence_sums(&every_slot, input.rewards, scores)?;
            }
        }
        record.done(Quantity::Scores, Ok(()))?;
        let done = group_relative(groups, scores, &c.group(), work.moments, relative);
        record.done(Quantity::GroupRelative, done)?;
        let done = leave_one_out(groups, scores, &c.leave_one_out(), work.moments, others);
        record.done(Quantity::LeaveOneOut, done)?;
        let done = length_weighted_baseline(batch, groups, scores, &c.length_weighted(), work.sums, weighted);
        record.done(Quantity::LengthWeighted, done)?;
        record.done(Quantity::Gpg, gpg_advantage(groups, scores, &c.gpg(), work.moments, gpg))?;

        let choice = match config.estimator {
            Estimator::GroupRelative => broadcast(batch, relative, chosen),
            Estimator::LeaveOneOut => broadcast(batch, others, chosen),
            Estimator::Whitened => record.ready(Quantity::Whitened).map(|()| chosen.copy_from_slice(whitened)),
        };
        record.done(Quantity::Advantages, choice)?;
        let weights = match input.rollout_log_probs {
            None => None,
            Some(rollout_log_probs) => {
                let input = RolloutInput { old_log_probs: input.old_log_probs, rollout_log_probs };
                let done = rollout_weights(batch, input, &c.rollout(), weights).map(|_| ());
                record.done(Quantity::RolloutWeights, done)?;
                Some(&*weights)
            }
        };
        if let Some(ref_log_probs) = input.ref_log_probs {
            let input = KlInput { log_probs: input.log_probs, ref_log_probs };
            record.done(Quantity::Kl, kl_estimate(batch, input, &c.kl_loss(), kl))?;
            let of_kl = mean(batch, kl, &MeanConfig { divisor: c.divisor }).map(alone);
            record.numbers(of_kl, c.empty_mean, work.spare, &[Quantity::KlMean], None)?;
            let loss = aggregate(batch, kl, &c.aggregate(config.mode), kl_grad).map(alone);
            record.numbers(loss, c.empty_loss, kl_grad, &[Quantity::KlLoss], Some(Quantity::KlLossGrad))?;
            kl_gradient(batch, input, &c.kl_loss(), work.spare)?;
            for (grad, &slope) in kl_grad.iter_mut().zip(&*work.spare) {
                *grad *= slope;
            }
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
        let ready = |record: &Record| record.ready(Quantity::Advantages);
        let result = ready(record).and_then(|()| ppo_clip(batch, of_policy, &clip, ppo_grad)).map(all);
        let names = [Quantity::Ppo, Quantity::PpoClipFraction, Quantity::PpoClipFractionLower, Quantity::PpoKl];
        record.numbers(result, c.empty_loss, ppo_grad, &names, Some(Quantity::PpoGrad))?;
        let result = ready(record).and_then(|()| gspo(batch, of_policy, &c.gspo(), gspo_grad)).map(all);
        let names = [Quantity::Gspo, Quantity::GspoClipFraction];
        record.numbers(result, c.empty_loss, gspo_grad, &names, Some(Quantity::GspoGrad))?;
        let result = ready(record).and_then(|()| gmpo(batch, of_policy, &c.gmpo(), gmpo_grad)).map(all);
        let names = [Quantity::Gmpo, Quantity::GmpoClipFraction];
        record.numbers(result, c.empty_loss, gmpo_grad, &names, Some(Quantity::GmpoGrad))?;
        let bounded = CispoConfig { aggregate: mode, ..c.cispo() };
        let result = ready(record).and_then(|()| cispo(batch, of_policy, &bounded, cispo_grad)).map(all);
        let names = [Quantity::Cispo, Quantity::CispoClipFraction];
        record.numbers(result, c.empty_loss, cispo_grad, &names, Some(Quantity::CispoGrad))?;
        let result = ready(record).and_then(|()| sapo(batch, of_policy, &c.sapo(), sapo_grad));
        let loss = result.map(|sapo| alone(sapo.loss));
        record.numbers(loss, c.empty_loss, sapo_grad, &[Quantity::Sapo], Some(Quantity::SapoGrad))?;

        if let (Some(values), Some(predictions)) = (input.values, input.predictions) {
            let input = ValueLossInput { predictions, values, returns: gae_returns };
            let result = value_loss(batch, input, &ValueConfig { aggregate: mode, ..c.value() }, value_grad);
            let result = result.map(|value| [value.loss, value.clip_fraction, 0.0, 0.0]);
            let names = [Quantity::Value, Quantity::ValueClipFraction];
            record.numbers(result, c.empty_loss, value_grad, &names, Some(Quantity::ValueGrad))?;
        }
        Ok(())
    }
}
