//! A policy, its critic and its reference, and a step of their training.

use tokenwise::{
    control::{DualGame, DualGameReport},
    loss::DualGameLoss,
    metric::{explained_variance, ExplainedVarianceInput},
};

use super::{
    stages::{self, ActorInput, Advantages, PricesInput, Rollout, Update},
    warm_up::{warm_up, WarmUp},
};
use crate::{
    adam::Adam,
    model::Network,
    random::{stream, Purpose},
    settings::{Algorithm, Settings},
    timing::Clock,
};

/// Steps between two quantiles of H and of the covariance terms.
const QUANTILES_EVERY: u64 = 10;

/// All that changes during a run.
#[derive(Debug)]
pub struct Trainer {
    /// The settings of the run.
    pub settings: Settings,
    /// Steps so far.
    pub step: u64,
    /// How the warm-up went.
    pub warm_up: WarmUp,
    /// The policy being trained.
    pub policy: Network,
    /// Its state of Adam.
    pub policy_adam: Adam,
    /// The critic.
    pub critic: Network,
    /// Its state of Adam.
    pub critic_adam: Adam,
    /// The policy before the first step.
    pub reference: Network,
    /// The prices of entropy and of KL.
    pub game: DualGame,
    /// What the last update of the policy reported.
    pub last_update: Option<DualGameLoss>,
}

/// What one step did.
#[derive(Debug)]
pub struct Step {
    /// Its number, from 0.
    pub step: u64,
    /// The responses.
    pub rollout: Rollout,
    /// Values of the critic.
    pub values: Vec<f32>,
    /// Log-probabilities of the reference.
    pub ref_log_probs: Vec<f32>,
    /// The score of each response.
    pub scores: Vec<f32>,
    /// Token rewards.
    pub rewards: Vec<f32>,
    /// Advantages and returns.
    pub learned: Advantages,
    /// What is logged.
    pub metrics: Vec<(&'static str, f64)>,
    /// Where the time went.
    pub clock: Clock,
}

impl Trainer {
    /// A run before its first step, after the warm-up of the policy.
    ///
    /// # Errors
    ///
    /// Those of candle, and settings out of their domain.
    pub fn new(settings: Settings) -> anyhow::Result<Self> {
        let random = |purpose| stream(settings.seed, purpose, 0);
        let policy = Network::random(settings.policy_shape(), &mut random(Purpose::Policy))?;
        let critic = Network::random(settings.critic_shape(), &mut random(Purpose::Critic))?;
        let warm_up = warm_up(&policy, &settings)?;
        let reference = Network::with_weights(settings.policy_shape(), policy.to_vecs()?)?;
        Ok(Self {
            settings,
            step: 0,
            warm_up,
            policy_adam: Adam::new(&policy),
            policy,
            critic_adam: Adam::new(&critic),
            critic,
            reference,
            game: DualGame::new(&settings.rules())?,
            last_update: None,
        })
    }

    /// Weights of policy and critic.
    pub fn parameter_count(&self) -> usize {
        self.policy.shape().parameter_count() + self.critic.shape().parameter_count()
    }

    /// One step: responses, what they are worth, and the updates that follow.
    ///
    /// # Errors
    ///
    /// Those of candle and of the formulas.
    pub fn step(&mut self) -> anyhow::Result<Step> {
        let (settings, step) = (self.settings, self.step);
        let mut clock = Clock::default();
        let mut random = stream(settings.seed, Purpose::Problems, step);
        let problems = (0..settings.size.prompts).map(|_| settings.task.problem(&mut random)).collect();
        let mut noise = stream(settings.seed, Purpose::Samples, step);

        let rollout =
            clock.stage("rollout", |clock| stages::rollout(&self.policy, &settings, problems, &mut noise, clock))?;
        let uses_critic = settings.algorithm == Algorithm::Ppo;
        let values = clock.stage("values", |_| match uses_critic {
            true => stages::values(&self.critic, &rollout),
            false => Ok(vec![0.0; rollout.tokens.len()]),
        })?;
        let ref_log_probs = clock
            .stage("reference_log_probs", |clock| stages::reference_log_probs(&self.reference, &rollout, clock))?;
        let scores = clock.stage("scores", |_| stages::scores(&rollout));
        let rewards = clock.stage("rewards", |clock| clock.formula(|| stages::rewards(&rollout, &scores)))?;
        let learned = clock.stage("advantages", |clock| {
            clock.formula(|| stages::advantages(&settings, &rollout, &scores, &rewards, &values))
        })?;
        let report = clock.stage("prices", |clock| {
            let input = PricesInput {
                ref_log_probs: &ref_log_probs,
                rewards: &rewards,
                advantages: &learned.advantages,
                last_update: self.last_update,
                quantiles: step.is_multiple_of(QUANTILES_EVERY) || step + 1 == settings.steps,
            };
            clock.formula(|| stages::prices(&mut self.game, &settings, &rollout, input))
        })?;
        let of_critic = clock.stage("critic_update", |clock| match uses_critic {
            true => {
                let (critic, adam) = (&self.critic, &mut self.critic_adam);
                stages::update_critic(critic, adam, &settings, &rollout, &values, &learned.returns, clock).map(Some)
            }
            false => Ok(None),
        })?;
        let of_actor = clock.stage("actor_update", |clock| {
            let input = ActorInput {
                ref_log_probs: &ref_log_probs,
                advantages: &learned.advantages,
                lambda: report.lambda(),
                beta: report.beta,
            };
            stages::update_actor(&self.policy, &mut self.policy_adam, &settings, &rollout, input, clock)
        })?;
        let metrics = clock.stage("metrics", |clock| {
            let measured = Measured { settings: &settings, report: &report, of_actor, of_critic };
            clock.formula(|| measured.metrics(&rollout, &values, &scores, &rewards, &learned))
        })?;
        self.last_update = Some(of_actor.loss);
        self.step += 1;
        Ok(Step { step, rollout, values, ref_log_probs, scores, rewards, learned, metrics, clock })
    }
}

/// What the stages of a step have reported.
struct Measured<'a> {
    settings: &'a Settings,
    report: &'a DualGameReport,
    of_actor: Update,
    of_critic: Option<Update>,
}

impl Measured<'_> {
    /// Every number that is logged for a step.
    fn metrics(
        &self,
        rollout: &Rollout,
        values: &[f32],
        scores: &[f32],
        rewards: &[f32],
        learned: &Advantages,
    ) -> anyhow::Result<Vec<(&'static str, f64)>> {
        let batch = rollout.one_row()?;
        let mean = |numbers: &[f32]| tokenwise::metric::mean(&batch, numbers, &Default::default());
        let mut all: Vec<(&'static str, f64)> = self.report.entries().collect();
        all.extend([
            ("actor/entropy", mean(&rollout.entropies)?),
            ("actor/pg_loss", self.of_actor.loss.loss),
            ("actor/ppo_kl", self.of_actor.loss.kl),
            ("actor/clipfrac_upper", self.of_actor.loss.clip_fraction_upper),
            ("actor/clipfrac_lower", self.of_actor.loss.clip_fraction_lower),
            ("actor/grad_norm", self.of_actor.norm),
            ("actor/lr", self.settings.actor_lr),
        ]);
        if let Some(update) = self.of_critic {
            let input = ExplainedVarianceInput { values, returns: &learned.returns };
            all.extend([
                ("critic/vf_loss", update.loss.loss),
                ("critic/vf_clipfrac", update.loss.clip_fraction),
                ("critic/grad_norm", update.norm),
                ("critic/lr", self.settings.critic_lr),
                ("critic/values/mean", mean(values)?),
                ("critic/vf_explained_var", explained_variance(&batch, input, &Default::default())?),
            ]);
        }
        let sequences = scores.len() as f64;
        let right = scores.iter().filter(|&&score| score > 0.0).count() as f64;
        let solved = scores.chunks(rollout.samples).filter(|scores| scores.iter().any(|&score| score > 0.0)).count();
        let limit = self.settings.task.response_limit();
        let cut = rollout.responses().filter(|tokens| tokens.len() == limit).count() as f64;
        all.extend([
            ("critic/score/mean", right / sequences),
            ("critic/rewards/mean", mean(rewards)? * rollout.tokens.len() as f64 / sequences),
            ("critic/advantages/mean", mean(&learned.advantages)?),
            ("critic/returns/mean", mean(&learned.returns)?),
            ("pass@1", right / sequences),
            ("pass@8", solved as f64 / rollout.problems.len() as f64),
            ("response_length/mean", rollout.tokens.len() as f64 / sequences),
            ("response_length/clip_ratio", cut / sequences),
        ]);
        Ok(all)
    }
}
