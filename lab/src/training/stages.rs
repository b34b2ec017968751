//! The stages of a training step, in their order. The network is candle's, every formula is tokenwise's.

use std::ops::Range;

use candle_core::{Device, Tensor};
use rand_chacha::ChaCha8Rng;
use tokenwise::{
    advantage::{
        broadcast, gae, group_relative, whiten_in_place, GaeConfig, GaeInput, GaeOutput, GroupConfig, WhitenConfig,
    },
    control::{DualGame, DualGameDistribution, DualGameReport, DualGameStep},
    loss::{DualGameLoss, ValueConfig},
    metric::Histogram,
    policy::{self, PolicyConfig},
    reward::place_scores,
    weight::TokenWeight,
    Batch, Groups, Layout, Mask, Moments,
};
use tokenwise_candle::{loss, token_log_probs, value_loss, Inputs, LogProbInput, ValueInput};

use crate::{
    adam::{Adam, AdamConfig},
    model::{sample, Limits, Network, Pass, Rows},
    random::uniform,
    settings::{Algorithm, Settings, Weight},
    task::{Problem, END, VOCABULARY},
    timing::{Clock, Watch},
};

/// The responses of a step.
#[derive(Clone, Debug)]
pub struct Rollout {
    /// The problems.
    pub problems: Vec<Problem>,
    /// Responses to each.
    pub samples: usize,
    /// All response tokens, one response after another.
    pub tokens: Vec<u32>,
    /// Where each response starts, and the end of the last.
    pub starts: Vec<u32>,
    /// Every response token was chosen by the policy.
    pub keep: Vec<bool>,
    /// Log-probabilities of the tokens when they were drawn.
    pub log_probs: Vec<f32>,
    /// Entropies of the distributions they were drawn from.
    pub entropies: Vec<f32>,
    /// The responses in as many parts as there are updates per pass.
    pub parts: Vec<Part>,
}

/// The responses to some of the problems.
#[derive(Clone, Debug)]
pub struct Part {
    /// Their tokens among all.
    pub tokens: Range<usize>,
    /// Prompts and responses for the networks.
    rows: Rows,
    /// The rows that predict tokens.
    predictors: Tensor,
}

impl Rollout {
    /// The domain of all formulas.
    ///
    /// # Errors
    ///
    /// None that the samples of a policy can cause.
    pub fn batch(&self) -> tokenwise::Result<Batch<'_>> {
        Batch::new(Layout::packed(&self.starts)?, Mask::new(&self.keep))
    }

    /// The tokens of each response.
    pub fn responses(&self) -> impl ExactSizeIterator<Item = &[u32]> {
        self.starts.windows(2).map(|ends| &self.tokens[ends[0] as usize..ends[1] as usize])
    }

    /// The problem of a response.
    pub fn problem(&self, response: usize) -> &Problem {
        &self.problems[response / self.samples]
    }

    /// All tokens as one row. Means over tokens do not depend on where responses end, and a kernel needs less time for
    /// one long row than for many short ones.
    ///
    /// # Errors
    ///
    /// None that the samples of a policy can cause.
    pub fn one_row(&self) -> tokenwise::Result<Batch<'_>> {
        row(&self.keep)
    }

    /// The tokens of a part as one row: losses here are means over tokens.
    fn row<'a>(&'a self, part: &Part) -> tokenwise::Result<Batch<'a>> {
        row(&self.keep[part.tokens.clone()])
    }
}

fn row(keep: &[bool]) -> tokenwise::Result<Batch<'_>> {
    Batch::new(Layout::padded(1, keep.len())?, Mask::new(keep))
}

/// Draws responses from the policy.
///
/// # Errors
///
/// Those of candle.
pub fn rollout(
    policy: &Network,
    settings: &Settings,
    problems: Vec<Problem>,
    random: &mut ChaCha8Rng,
    clock: &mut Clock,
) -> anyhow::Result<Rollout> {
    let prompts: Vec<Vec<u32>> = problems.iter().map(Problem::prompt).collect();
    let samples = settings.size.samples;
    let limits = Limits { end: END, length: settings.task.response_limit() };
    let noise: Vec<f64> = (0..problems.len() * samples * limits.length).map(|_| uniform(random)).collect();
    let sampled = sample(policy, &prompts, samples, limits, &noise)?;

    let count = sampled.tokens.len();
    let keep = vec![true; count];
    let (mut log_probs, mut entropies) = (vec![0.0; count], vec![0.0; count]);
    clock.formula(|| {
        // every token is on its own
        let batch = row(&keep)?;
        let input = policy::LogProbInput { logits: &sampled.logits, vocab: VOCABULARY, tokens: &sampled.tokens };
        let output = policy::LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropies };
        policy::log_probs_and_entropy(&batch, input, &PolicyConfig::default(), output)
    })?;

    let per_part = problems.len().div_ceil(settings.minibatches);
    let mut parts = Vec::new();
    for (index, prompts) in prompts.chunks(per_part).enumerate() {
        let first = index * per_part * samples;
        let starts = &sampled.starts[first..=first + prompts.len() * samples];
        let tokens = starts[0] as usize..starts[starts.len() - 1] as usize;
        let starts: Vec<u32> = starts.iter().map(|start| start - starts[0]).collect();
        let of_part = &sampled.tokens[tokens.clone()];
        let rows = Rows::new(prompts, starts.windows(2).map(|ends| &of_part[ends[0] as usize..ends[1] as usize]));
        let predictors = Tensor::new(rows.predictors.as_slice(), &Device::Cpu)?;
        parts.push(Part { tokens, rows, predictors });
    }
    let (tokens, starts) = (sampled.tokens, sampled.starts);
    Ok(Rollout { problems, samples, tokens, starts, keep, log_probs, entropies, parts })
}

/// What the critic expects before each token.
///
/// # Errors
///
/// Those of candle.
pub fn values(critic: &Network, rollout: &Rollout) -> anyhow::Result<Vec<f32>> {
    let mut values = Vec::with_capacity(rollout.tokens.len());
    for part in &rollout.parts {
        values.extend(predictions(critic, part, Pass::Forward)?.flatten_all()?.to_vec1::<f32>()?);
    }
    Ok(values)
}

/// Log-probabilities of the tokens under the reference.
///
/// # Errors
///
/// Those of candle.
pub fn reference_log_probs(reference: &Network, rollout: &Rollout, clock: &mut Clock) -> anyhow::Result<Vec<f32>> {
    let mut all = Vec::with_capacity(rollout.tokens.len());
    for part in &rollout.parts {
        let logits = predictions(reference, part, Pass::Forward)?.flatten_all()?.to_vec1::<f32>()?;
        let tokens = &rollout.tokens[part.tokens.clone()];
        let mut log_probs = vec![0.0; tokens.len()];
        clock.formula(|| {
            let input = policy::LogProbInput { logits: &logits, vocab: VOCABULARY, tokens };
            policy::token_log_probs(&rollout.row(part)?, input, &PolicyConfig::default(), &mut log_probs)
        })?;
        all.extend(log_probs);
    }
    Ok(all)
}

/// 1 for every right answer.
pub fn scores(rollout: &Rollout) -> Vec<f32> {
    rollout.responses().enumerate().map(|(index, response)| rollout.problem(index).score(response)).collect()
}

/// The score of each response, on its last token.
///
/// # Errors
///
/// Those of the formula.
pub fn rewards(rollout: &Rollout, scores: &[f32]) -> anyhow::Result<Vec<f32>> {
    let mut rewards = vec![0.0; rollout.tokens.len()];
    place_scores(&rollout.batch()?, scores, &mut rewards)?;
    Ok(rewards)
}

/// What the policy and the critic learn from.
#[derive(Clone, Debug)]
pub struct Advantages {
    /// How much better each token was than expected.
    pub advantages: Vec<f32>,
    /// The critic's targets; with GRPO, the score of the response.
    pub returns: Vec<f32>,
}

/// Advantages by GAE, whitened, or by the scores of the same prompt.
///
/// # Errors
///
/// Those of the formulas.
pub fn advantages(
    settings: &Settings,
    rollout: &Rollout,
    scores: &[f32],
    rewards: &[f32],
    values: &[f32],
) -> anyhow::Result<Advantages> {
    let batch = rollout.batch()?;
    let count = rollout.tokens.len();
    let (mut advantages, mut returns) = (vec![0.0; count], vec![0.0; count]);
    match settings.algorithm {
        Algorithm::Ppo => {
            // every response ends: nothing is expected after it
            let bootstrap = vec![0.0; scores.len()];
            let config = GaeConfig { gamma: settings.discount, lambda: settings.trace, ..Default::default() };
            let input = GaeInput { rewards, values, bootstrap: &bootstrap };
            gae(&batch, input, &config, GaeOutput { advantages: &mut advantages, returns: &mut returns })?;
            whiten_in_place(&batch, &mut advantages, &WhitenConfig::default())?;
        }
        Algorithm::Grpo => {
            let sizes = vec![rollout.samples as u32; rollout.problems.len()];
            let groups = Groups::contiguous(&sizes)?;
            let mut relative = vec![0.0; scores.len()];
            let mut scratch = vec![Moments::default(); tokenwise::group_scratch_len(&groups)];
            group_relative(&groups, scores, &GroupConfig::default(), &mut scratch, &mut relative)?;
            broadcast(&batch, &relative, &mut advantages)?;
            broadcast(&batch, scores, &mut returns)?;
        }
    }
    Ok(Advantages { advantages, returns })
}

/// What the controllers of the prices read beside the rollout.
#[derive(Clone, Copy, Debug)]
pub struct PricesInput<'a> {
    /// Log-probabilities of the reference.
    pub ref_log_probs: &'a [f32],
    /// Token rewards.
    pub rewards: &'a [f32],
    /// Advantages.
    pub advantages: &'a [f32],
    /// What the last update of the policy reported.
    pub last_update: Option<DualGameLoss>,
    /// Whether quantiles are wanted, which take longer than everything else here.
    pub quantiles: bool,
}

/// Measures the step and moves the prices of entropy and of KL.
///
/// # Errors
///
/// Those of the controllers.
pub fn prices(
    game: &mut DualGame,
    settings: &Settings,
    rollout: &Rollout,
    input: PricesInput<'_>,
) -> anyhow::Result<DualGameReport> {
    let measured = DualGameStep {
        ref_log_probs: Some(input.ref_log_probs),
        weight: match settings.weight() {
            Weight::Plain => TokenWeight::Plain,
            Weight::KlGated => TokenWeight::KlGated,
        },
        last_update: input.last_update,
        ..DualGameStep::new(&rollout.log_probs, input.advantages, input.rewards)
    };
    let batch = rollout.batch()?;
    if !input.quantiles {
        return Ok(game.step(&batch, measured, None)?);
    }
    let mut scratch = vec![0.0; rollout.tokens.len()];
    let (mut entropy, mut covariance) = (Histogram::default(), Histogram::default());
    let distribution =
        DualGameDistribution { scratch: &mut scratch, entropy: &mut entropy, covariance: &mut covariance };
    Ok(game.step(&batch, measured, Some(distribution))?)
}

/// What an update of a network reports, as means over its parts and passes.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Update {
    /// The loss; for the policy with its clip fractions and KL.
    pub loss: DualGameLoss,
    /// The norm of the gradient before it was limited.
    pub norm: f64,
}

/// Moves the critic towards the returns.
///
/// # Errors
///
/// Those of candle and of the loss.
pub fn update_critic(
    critic: &Network,
    adam: &mut Adam,
    settings: &Settings,
    rollout: &Rollout,
    values: &[f32],
    returns: &[f32],
    clock: &mut Clock,
) -> anyhow::Result<Update> {
    let config = AdamConfig { learning_rate: settings.critic_lr, norm_limit: settings.norm_limit };
    let mut means = Means::default();
    for _ in 0..settings.epochs {
        for part in &rollout.parts {
            let predictions = predictions(critic, part, Pass::Differentiable)?.flatten_all()?;
            let [values, returns] = [values, returns].map(|numbers| tensor(&numbers[part.tokens.clone()]));
            let (values, returns) = (values?, returns?);
            let watch = Watch::default();
            let predictions = watch.over(&predictions)?;
            let found = clock.formula(|| {
                let input = ValueInput { predictions: &predictions, values: &values, returns: &returns };
                value_loss(&rollout.row(part)?, input, &ValueConfig::default())
            })?;
            let gradients = watch.backward(&found, clock)?;
            let norm = adam.update(critic, &gradients, &config)?;
            let mut loss = DualGameLoss::default();
            (loss.loss, loss.clip_fraction) = (found.value()?, found.number("clip_fraction")?);
            means.add(&Update { loss, norm });
        }
    }
    Ok(means.value())
}

/// What the policy's update reads beside the rollout.
#[derive(Clone, Copy, Debug)]
pub struct ActorInput<'a> {
    /// Log-probabilities of the reference.
    pub ref_log_probs: &'a [f32],
    /// Advantages.
    pub advantages: &'a [f32],
    /// The price of entropy.
    pub lambda: f64,
    /// The price of KL.
    pub beta: f64,
}

/// Moves the policy along its clipped loss.
///
/// # Errors
///
/// Those of candle and of the loss.
pub fn update_actor(
    policy: &Network,
    adam: &mut Adam,
    settings: &Settings,
    rollout: &Rollout,
    input: ActorInput<'_>,
    clock: &mut Clock,
) -> anyhow::Result<Update> {
    let config = AdamConfig { learning_rate: settings.actor_lr, norm_limit: settings.norm_limit };
    let priced = settings.loss(input.lambda, input.beta);
    let mut means = Means::default();
    for _ in 0..settings.epochs {
        for part in &rollout.parts {
            let watch = Watch::default();
            let logits = watch.over(&predictions(policy, part, Pass::Differentiable)?)?;
            let tokens = Tensor::new(&rollout.tokens[part.tokens.clone()], &Device::Cpu)?;
            let columns = [&rollout.log_probs, input.ref_log_probs, input.advantages];
            let [old, reference, advantages] = columns.map(|numbers| tensor(&numbers[part.tokens.clone()]));
            let (old, reference, advantages) = (old?, reference?, advantages?);
            let loss = clock.formula(|| {
                let batch = rollout.row(part)?;
                let found = LogProbInput { logits: &logits, tokens: &tokens };
                let log_probs = token_log_probs(&batch, found, &PolicyConfig::default())?;
                let inputs = Inputs::new()
                    .with("log_probs", &log_probs)
                    .with("old_log_probs", &old)
                    .with("ref_log_probs", &reference)
                    .with("advantages", &advantages)
                    .with("weight", settings.weight().name());
                loss("dual_game", &batch, &inputs, &priced)
            })?;
            let gradients = watch.backward(&loss, clock)?;
            let norm = adam.update(policy, &gradients, &config)?;
            let mut update = Update { norm, ..Default::default() };
            update.loss.loss = loss.value()?;
            update.loss.clip_fraction = loss.number("clip_fraction")?;
            update.loss.clip_fraction_upper = loss.number("clip_fraction_upper")?;
            update.loss.clip_fraction_lower = loss.number("clip_fraction_lower")?;
            update.loss.kl = loss.number("kl")?;
            means.add(&update);
        }
    }
    Ok(means.value())
}

/// What a network says before each response token.
fn predictions(network: &Network, part: &Part, pass: Pass) -> anyhow::Result<Tensor> {
    Ok(network.forward(&part.rows, pass)?.index_select(&part.predictors, 0)?)
}

fn tensor(numbers: &[f32]) -> candle_core::Result<Tensor> {
    Tensor::new(numbers, &Device::Cpu)
}

/// Means of updates.
#[derive(Default)]
struct Means {
    count: f64,
    sum: Update,
}

impl Means {
    fn add(&mut self, update: &Update) {
        self.count += 1.0;
        for (sum, number) in numbers(&mut self.sum).into_iter().zip(numbers(&mut update.clone())) {
            *sum += *number;
        }
    }

    fn value(mut self) -> Update {
        let count = self.count;
        numbers(&mut self.sum).into_iter().for_each(|number| *number /= count);
        self.sum
    }
}

fn numbers(update: &mut Update) -> [&mut f64; 6] {
    let DualGameLoss { loss, clip_fraction, clip_fraction_upper, clip_fraction_lower, kl, .. } = &mut update.loss;
    [loss, clip_fraction, clip_fraction_upper, clip_fraction_lower, kl, &mut update.norm]
}
