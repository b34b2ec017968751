//! **Stage 4 of 7 — advantage.** Credit of one score over its tokens, and advantages made of returns.

use tokenwise::{
    advantage::{
        self, check_whiten, Across, DiscountFrom, GaeConfig, GaeDecoupledConfig, GaeInput, GaeOutput, LastKConfig,
        LengthNormalization, MinillmConfig, MinillmInput, OpdConfig, OpdInput, PolicyLambda, ReinforcePlusPlusConfig,
        ReturnsConfig,
    },
    Batch,
};

use crate::{
    advantage::{gae_factors, GaeColumns, GAE},
    batch::{GpuBatch, Segmented},
    call::{batch, column, estimates, gae_input, optional, real, runners, Answer, Request, Runner},
    column::{Column, Input},
    error::GpuError,
    fold::Fold,
    metric::two_tokens,
    recording::Recording,
    rows::kept_per_row,
    scan::{Factors, ScanKernel},
    token::{bits, kernel, sequence, token, Setting, TokenKernel},
    trace::SUBTRACT,
};

/// Counts in `f32` are exact up to here.
const EXACT_COUNT: usize = 1 << 24;

/// What [`Recording::attention_credit`] reads.
#[derive(Clone, Debug)]
pub struct AttentionColumns<'a> {
    /// One per sequence.
    pub scores: Input<'a>,
    /// One per token, not negative.
    pub weights: Input<'a>,
}

/// What [`Recording::remax`] reads.
#[derive(Clone, Debug)]
pub struct RemaxColumns<'a> {
    /// Token rewards.
    pub rewards: Input<'a>,
    /// The score of the greedy response, one per sequence.
    pub baselines: Input<'a>,
}

/// What [`Recording::opd_advantage`] and [`Recording::minillm_advantage`] read.
#[derive(Clone, Debug)]
pub struct TeacherColumns<'a> {
    /// Log-probabilities of the teacher.
    pub teacher_log_probs: Input<'a>,
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
}

const COUNTDOWN: ScanKernel = ScanKernel {
    label: "advantage/countdown",
    steps: include_str!("../shaders/advantage/countdown.wgsl"),
    inputs: 0,
    per_sequence: 0,
    outputs: 1,
};

const LAST_K: TokenKernel = kernel(
    "advantage/last_k",
    include_str!("../shaders/advantage/last_k.wgsl"),
    &[sequence("scores"), sequence("counts"), token("left")],
    &["credit"],
    &[],
    &[Setting::F32("k")],
);

const ATTENTION_CREDIT: TokenKernel = kernel(
    "advantage/attention_credit",
    include_str!("../shaders/advantage/attention_credit.wgsl"),
    &[sequence("scores"), sequence("totals"), token("weights")],
    &["credit"],
    &[],
    &[],
);

const OPD: TokenKernel = kernel(
    "advantage/opd",
    include_str!("../shaders/advantage/opd.wgsl"),
    &[token("teacher_log_probs"), token("old_log_probs"), token("base")],
    &["advantages"],
    &[],
    &[Setting::F32("coefficient")],
);

pub(crate) const MULTIPLY: TokenKernel = kernel(
    "advantage/multiply",
    include_str!("../shaders/advantage/multiply.wgsl"),
    &[token("x"), token("y")],
    &["product"],
    &[],
    &[],
);

pub(crate) const MINUS_BASELINE: TokenKernel = kernel(
    "advantage/minus_baseline",
    include_str!("../shaders/advantage/subtract.wgsl"),
    &[token("x"), sequence("y")],
    &["difference"],
    &[],
    &[],
);

impl Recording<'_> {
    /// The score of each sequence in equal parts on its kept tokens: the core's
    /// [`uniform_credit`](advantage::uniform_credit).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn uniform_credit(&mut self, batch: &GpuBatch<'_>, scores: &Input<'_>) -> Result<Column, GpuError> {
        self.last_k(batch, scores, None)
    }

    /// The score of each sequence in equal parts on its last `k` kept tokens: the core's
    /// [`last_k_credit`](advantage::last_k_credit).
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`].
    pub fn last_k_credit(
        &mut self,
        batch: &GpuBatch<'_>,
        scores: &Input<'_>,
        config: &LastKConfig,
    ) -> Result<Column, GpuError> {
        advantage::last_k_credit(&two_tokens()?, &[0.0_f32; 2], config, &mut [0.0; 2])?;
        self.last_k(batch, scores, Some(config.k))
    }

    fn last_k(&mut self, batch: &GpuBatch<'_>, scores: &Input<'_>, k: Option<usize>) -> Result<Column, GpuError> {
        scores.check_len("scores", batch.host().sequences())?;
        let longest = kept_per_row(batch.host()).into_iter().max().unwrap_or(0);
        if longest > EXACT_COUNT {
            let (needed, limit) = (longest as u64, EXACT_COUNT as u64);
            return Err(GpuError::Limit { what: "kept tokens of one sequence", needed, limit });
        }
        let scores = self.column(scores)?;
        let counts = batch.counts(self)?;
        let left = match k {
            Some(_) => {
                let slots = batch.slots(self)?;
                let factors = Factors { gamma: 0.0, decay: 1.0, across: Across::StepOver };
                let ([left], _) = self.scan(&COUNTDOWN, &slots, &[], factors)?;
                Some(left)
            }
            None => None,
        };
        let k = bits(k.unwrap_or(usize::MAX) as f64);
        let ([credit], _) = self.tokens(&LAST_K, batch, &[Some(&scores), Some(&counts), left.as_ref()], &[k])?;
        Ok(credit)
    }

    /// The score of each sequence by the weights of its tokens: the core's
    /// [`attention_credit`](advantage::attention_credit). The weights are not checked: a negative one, or a sequence
    /// without a positive one, sets [`Report::special`](crate::Report::special).
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`].
    pub fn attention_credit(&mut self, batch: &GpuBatch<'_>, input: &AttentionColumns<'_>) -> Result<Column, GpuError> {
        input.scores.check_len("scores", batch.host().sequences())?;
        input.weights.check_len("weights", batch.tokens())?;
        let [scores, weights] = self.columns([&input.scores, &input.weights])?;
        let totals = self.fold(Fold::Sum, batch, &weights)?;
        let given = [Some(&scores), Some(&totals), Some(&weights)];
        let ([credit], _) = self.tokens(&ATTENTION_CREDIT, batch, &given, &[])?;
        Ok(credit)
    }

    /// Discounted returns and what they exceed the values by: the core's
    /// [`monte_carlo_advantage`](advantage::monte_carlo_advantage). Returns advantages and returns.
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`].
    pub fn monte_carlo_advantage(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &GaeColumns<'_>,
        config: &ReturnsConfig,
    ) -> Result<(Column, Column), GpuError> {
        input.values.check_len("values", batch.tokens())?;
        let values = self.resident(&input.values)?;
        let returns = self.discounted_returns(batch, &input.rewards, &input.bootstrap, config)?;
        let values = self.column(&values)?;
        let ([advantages], _) = self.tokens(&SUBTRACT, batch, &[Some(&returns), Some(&values)], &[])?;
        Ok((advantages, returns))
    }

    /// Advantages with one λ and returns with another: the core's [`gae_decoupled`](advantage::gae_decoupled). Returns
    /// advantages and returns.
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`]; [`GpuError::Unsupported`] for a λ that depends on the length together with
    /// [`Across::ZeroStep`].
    pub fn gae_decoupled(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &GaeColumns<'_>,
        config: &GaeDecoupledConfig,
    ) -> Result<(Column, Column), GpuError> {
        input.check(batch)?;
        let two = [0.0_f32; 2];
        let output = GaeOutput { advantages: &mut [0.0; 2], returns: &mut [0.0; 2] };
        let two = GaeInput { rewards: &two, values: &two, bootstrap: &two };
        advantage::gae_decoupled(&two_tokens()?, two, config, output)?;
        let GaeDecoupledConfig { gamma, lambda_value, lambda_policy, across } = *config;
        if across == Across::ZeroStep && !matches!(lambda_policy, PolicyLambda::Fixed(_)) {
            return Err(GpuError::Unsupported("zero steps with a decay that depends on the sequence"));
        }
        let slots = batch.slots(self)?;
        let [rewards, values, bootstrap] = self.columns([&input.rewards, &input.values, &input.bootstrap])?;
        let columns = [&rewards, &values, &bootstrap];
        let factors = |lambda| gae_factors(&GaeConfig { gamma, lambda, across });
        let ([_, returns], _) = self.scan(&GAE, &slots, &columns, factors(lambda_value))?;
        let advantages = match lambda_policy {
            PolicyLambda::LengthAdaptive { alpha } => {
                let decay = |kept: usize| gamma * (1.0 - 1.0 / (alpha * kept as f64).max(1.0));
                let decays: Vec<f32> = kept_per_row(batch.host()).into_iter().map(|kept| decay(kept) as f32).collect();
                let decays = self.upload(&decays)?;
                let decays = self.broadcast(batch, &decays.into())?;
                let deltas = self.deltas(batch, &rewards, &values, &bootstrap, gamma)?;
                self.affine(batch, &deltas, &decays, None)?.0
            }
            PolicyLambda::Fixed(lambda) => {
                let ([advantages, _], _) = self.scan(&GAE, &slots, &columns, factors(lambda))?;
                advantages
            }
            _ => return Err(GpuError::Unsupported("a rule for λ that has no kernel")),
        };
        Ok((advantages, returns))
    }

    /// Undiscounted returns minus the score of the greedy response: the core's [`remax`](advantage::remax). Returns
    /// advantages and returns.
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`].
    pub fn remax(&mut self, batch: &GpuBatch<'_>, input: &RemaxColumns<'_>) -> Result<(Column, Column), GpuError> {
        input.rewards.check_len("rewards", batch.tokens())?;
        input.baselines.check_len("baselines", batch.host().sequences())?;
        let baselines = self.column(&input.baselines)?;
        let zeros = vec![0.0; batch.host().sequences()];
        let returns =
            self.discounted_returns(batch, &input.rewards, &Input::Host(&zeros), &ReturnsConfig::default())?;
        let ([advantages], _) = self.tokens(&MINUS_BASELINE, batch, &[Some(&returns), Some(&baselines)], &[])?;
        Ok((advantages, returns))
    }

    /// Whitened discounted returns: the core's [`reinforce_plus_plus`](advantage::reinforce_plus_plus). Returns
    /// advantages and returns.
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`].
    pub fn reinforce_plus_plus(
        &mut self,
        batch: &GpuBatch<'_>,
        rewards: &Input<'_>,
        bootstrap: &Input<'_>,
        config: &ReinforcePlusPlusConfig,
    ) -> Result<(Column, Column), GpuError> {
        let discount = ReturnsConfig { gamma: config.gamma, across: config.across };
        check_whiten(batch.host(), &config.whiten)?;
        let returns = self.discounted_returns(batch, rewards, bootstrap, &discount)?;
        let advantages = self.whiten(batch, &Input::Device(returns.clone()), &config.whiten)?;
        Ok((advantages, returns))
    }

    /// What the teacher thinks of each token, added to `advantages` if there are any: the core's
    /// [`opd_advantage`](advantage::opd_advantage).
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`].
    pub fn opd_advantage(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &TeacherColumns<'_>,
        advantages: Option<&Input<'_>>,
        config: &OpdConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        if let Some(advantages) = advantages {
            advantages.check_len("advantages", batch.tokens())?;
        }
        advantage::opd_advantage(&two_tokens()?, OpdInput::new(&[0.0_f32; 2], &[0.0; 2]), config, &mut [0.0; 2])?;
        let [teacher, old] = self.columns([&input.teacher_log_probs, &input.old_log_probs])?;
        let base = advantages.map(|advantages| self.column(advantages)).transpose()?;
        let given = [Some(&teacher), Some(&old), base.as_ref()];
        let ([out], _) = self.tokens(&OPD, batch, &given, &[bits(config.coefficient)])?;
        Ok(out)
    }

    /// Discounted sums of what the teacher thinks of the tokens ahead: the core's
    /// [`minillm_advantage`](advantage::minillm_advantage).
    ///
    /// # Errors
    ///
    /// As [`Self::uniform_credit`].
    pub fn minillm_advantage(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &TeacherColumns<'_>,
        config: &MinillmConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        let two = MinillmInput { teacher_log_probs: &[0.0_f32; 2], old_log_probs: &[0.0; 2] };
        advantage::minillm_advantage(&two_tokens()?, two, config, &mut [0.0; 2])?;
        let [teacher, old] = self.columns([&input.teacher_log_probs, &input.old_log_probs])?;
        let ([differences], _) = self.tokens(&SUBTRACT, batch, &[Some(&teacher), Some(&old)], &[])?;
        let discount = ReturnsConfig { gamma: config.gamma, across: config.across };
        let zeros = vec![0.0; batch.host().sequences()];
        let ahead = self.discounted_returns(batch, &Input::Device(differences), &Input::Host(&zeros), &discount)?;
        let Some(factors) = minillm_factors(batch.host(), config) else { return Ok(ahead) };
        let factors = self.upload(&factors)?;
        let ([out], _) = self.tokens(&MULTIPLY, batch, &[Some(&ahead), Some(&factors)], &[])?;
        Ok(out)
    }

    /// The input on the device, so that it is sent once for several kernels.
    pub(crate) fn resident<'a>(&mut self, input: &Input<'_>) -> Result<Input<'a>, GpuError> {
        Ok(Input::Device(self.column(input)?))
    }
}

impl TeacherColumns<'_> {
    fn check(&self, batch: &GpuBatch<'_>) -> Result<(), GpuError> {
        self.teacher_log_probs.check_len("teacher_log_probs", batch.tokens())?;
        self.old_log_probs.check_len("old_log_probs", batch.tokens())
    }
}

/// What each sum ahead is multiplied by; it depends on mask and config only. `None` if all factors are 1.
fn minillm_factors(batch: &Batch<'_>, config: &MinillmConfig) -> Option<Vec<f32>> {
    let (gamma, zero_step) = (config.gamma, config.across == Across::ZeroStep);
    let off = config.length == LengthNormalization::Off;
    if off && !(config.from == DiscountFrom::Start && gamma > 0.0) {
        return None;
    }
    let padding = if config.length == LengthNormalization::KeptAndPadding { 1e-4 } else { 0.0 };
    let mut factors = vec![0.0; batch.tokens()];
    for slots in (0..batch.sequences()).filter_map(|sequence| batch.layout().slots(sequence)) {
        let keep = &batch.mask().as_slice()[slots.clone()];
        let row = factors[slots].iter_mut().zip(keep);
        if off {
            let mut power = 1.0;
            for (factor, &keep) in row {
                *factor = power as f32;
                if keep || zero_step {
                    power *= gamma;
                }
            }
            continue;
        }
        let mut length = 0.0;
        for (factor, &keep) in row.rev() {
            if keep {
                length = 1.0 + gamma * length;
                *factor = (1.0 / length) as f32;
            } else {
                length = padding + if zero_step { gamma * length } else { length };
            }
        }
    }
    Some(factors)
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![gae_decoupled: GAE, monte_carlo_advantage: GAE, remax: GAE, reinforce_plus_plus: WHITENED, opd_advantage, minillm_advantage: GAE, uniform_credit, last_k_credit, attention_credit];

fn teacher<'a>(call: &Request<'_, 'a>) -> Result<TeacherColumns<'a>, GpuError> {
    Ok(TeacherColumns {
        teacher_log_probs: real(call, "teacher_log_probs")?,
        old_log_probs: real(call, "old_log_probs")?,
    })
}

fn gae_decoupled(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(estimates(recording.gae_decoupled(&batch(call)?, &gae_input(call)?, &call.config()?)?))
}

fn monte_carlo_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(estimates(recording.monte_carlo_advantage(&batch(call)?, &gae_input(call)?, &call.config()?)?))
}

fn remax(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = RemaxColumns { rewards: real(call, "rewards")?, baselines: real(call, "baselines")? };
    Ok(estimates(recording.remax(&batch(call)?, &input)?))
}

fn reinforce_plus_plus(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (rewards, bootstrap) = (real(call, "rewards")?, real(call, "bootstrap")?);
    Ok(estimates(recording.reinforce_plus_plus(&batch(call)?, &rewards, &bootstrap, &call.config()?)?))
}

fn opd_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let advantages = optional(call, "advantages")?;
    let out = recording.opd_advantage(&batch(call)?, &teacher(call)?, advantages.as_ref(), &call.config()?)?;
    Ok(column("advantages", out))
}

fn minillm_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("advantages", recording.minillm_advantage(&batch(call)?, &teacher(call)?, &call.config()?)?))
}

fn uniform_credit(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.uniform_credit(&batch(call)?, &real(call, "scores")?)?))
}

fn last_k_credit(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.last_k_credit(&batch(call)?, &real(call, "scores")?, &call.config()?)?))
}

fn attention_credit(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = AttentionColumns { scores: real(call, "scores")?, weights: real(call, "weights")? };
    Ok(column("out", recording.attention_credit(&batch(call)?, &input)?))
}
