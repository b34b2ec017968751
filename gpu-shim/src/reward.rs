//! **Stage 3 of 7 — reward.** Reads scores and KL, writes token rewards.

use tokenwise::{
    reward::{
        self, check_shape_config, ClippedRewardsConfig, ClippedRewardsInput, KlInRewardInput, KlInScoresConfig,
        KlInScoresInput, KlRewardConfig, ShapeConfig,
    },
    Error,
};

use crate::{
    batch::GpuBatch,
    call::{batch, column, numbers, real, runners, Answer, Request, Runner},
    column::{Column, Input},
    divergence::{kl_settings, KlColumns},
    error::GpuError,
    fold::Fold,
    metric::two_tokens,
    recording::{Pending, Recording},
    rows::{kept_per_row, Rows},
    token::{bits, kernel, sequence, token, Setting, TokenKernel},
    trace::SUBTRACT,
};

/// What [`Recording::shape_rewards`] reads.
#[derive(Clone, Debug)]
pub struct ShapeColumns<'a> {
    /// Scores, one per token.
    pub scores: Input<'a>,
    /// KL of each token.
    pub kl: Input<'a>,
}

const PLACE_SCORES: TokenKernel = TokenKernel {
    label: "reward/place_scores",
    formula: include_str!("../shaders/reward/place_scores.wgsl"),
    inputs: &[sequence("scores")],
    outputs: &["rewards"],
    terms: &[],
    settings: &[],
    last_only: true,
};

const SHAPE_REWARDS: TokenKernel = TokenKernel {
    label: "reward/shape_rewards",
    formula: include_str!("../shaders/reward/shape_rewards.wgsl"),
    inputs: &[token("scores"), token("kl")],
    outputs: &["rewards"],
    terms: &[],
    settings: &[Setting::F32("beta")],
    last_only: false,
};

const KL_IN_REWARD: TokenKernel = kernel(
    "reward/kl_in_reward",
    concat!(include_str!("../shaders/divergence/kl.wgsl"), include_str!("../shaders/reward/kl_in_reward.wgsl")),
    &[token("scores"), token("old_log_probs"), token("ref_log_probs")],
    &["rewards", "kl"],
    &[],
    &[
        Setting::F32("beta"),
        Setting::U32("estimator"),
        Setting::U32("straight_through"),
        Setting::F32("low"),
        Setting::F32("high"),
        Setting::F32("most"),
    ],
);

const KL_IN_SCORES: TokenKernel = kernel(
    "reward/kl_in_scores",
    include_str!("../shaders/reward/kl_in_scores.wgsl"),
    &[token("scores"), token("sums")],
    &["out"],
    &[],
    &[Setting::F32("beta")],
);

const CLIPPED_REWARDS: TokenKernel = kernel(
    "reward/clipped_rewards",
    include_str!("../shaders/reward/clipped_rewards.wgsl"),
    &[sequence("scores"), token("kl")],
    &["rewards"],
    &[],
    &[Setting::F32("beta"), Setting::F32("low"), Setting::F32("high")],
);

impl Recording<'_> {
    /// The score of each sequence at its last kept token: the core's
    /// [`place_scores`](tokenwise::reward::place_scores).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if the column does not fit the batch; [`GpuError::Limit`].
    pub fn place_scores(&mut self, batch: &GpuBatch<'_>, scores: &Input<'_>) -> Result<Column, GpuError> {
        scores.check_len("scores", batch.host().sequences())?;
        let scores = self.column(scores)?;
        let ([rewards], _) = self.tokens(&PLACE_SCORES, batch, &[Some(&scores)], &[])?;
        Ok(rewards)
    }

    /// Scores minus β times KL: the core's [`shape_rewards`](tokenwise::reward::shape_rewards).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn shape_rewards(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &ShapeColumns<'_>,
        config: &ShapeConfig,
    ) -> Result<Column, GpuError> {
        input.scores.check_len("scores", batch.tokens())?;
        input.kl.check_len("kl", batch.tokens())?;
        check_shape_config::<f32>(config)?;
        let [scores, kl] = self.columns([&input.scores, &input.kl])?;
        let ([rewards], _) = self.tokens(&SHAPE_REWARDS, batch, &[Some(&scores), Some(&kl)], &[bits(config.beta)])?;
        Ok(rewards)
    }
    /// Scores of tokens minus β times the KL estimate of their log-probabilities, and the mean of that KL: the core's
    /// [`kl_in_reward`](reward::kl_in_reward). The policy's log-probabilities are those of the policy that sampled.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn kl_in_reward(
        &mut self,
        batch: &GpuBatch<'_>,
        scores: &Input<'_>,
        policy: &KlColumns<'_>,
        config: &KlRewardConfig,
    ) -> Result<(Column, Pending<f64>), GpuError> {
        scores.check_len("scores", batch.tokens())?;
        policy.log_probs.check_len("old_log_probs", batch.tokens())?;
        policy.ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        let two = KlInRewardInput { scores: &[0.0_f32; 2], old_log_probs: &[0.0; 2], ref_log_probs: &[0.0; 2] };
        reward::kl_in_reward(&two_tokens()?, two, config, &mut [0.0; 2])?;
        if batch.host().sequences() == 0 {
            return Err(Error::EmptyMask.into());
        }
        let [scores, old, reference] = self.columns([scores, &policy.log_probs, &policy.ref_log_probs])?;
        let settings = [&[bits(config.beta)], kl_settings(&config.kl).as_slice()].concat();
        let given = [Some(&scores), Some(&old), Some(&reference)];
        let ([rewards, kl], _) = self.tokens(&KL_IN_REWARD, batch, &given, &settings)?;
        let sums = self.fold(Fold::Sum, batch, &kl)?;
        let sums = self.download(&sums);
        let (kept, divisor) = (kept_per_row(batch.host()), config.divisor);
        let mean = Pending::new(move |done| {
            let rows = done.floats(sums).iter().zip(&kept).filter(|(_, &kept)| kept > 0);
            let means = rows.map(|(&sum, &kept)| f64::from(sum) / divisor.of(kept as f64));
            means.fold(0.0, |sum, mean| sum + mean) / kept.len() as f64
        });
        Ok((rewards, mean))
    }

    /// Scores of sequences minus β times the log-ratio of the sequence: the core's
    /// [`kl_in_scores`](reward::kl_in_scores).
    ///
    /// # Errors
    ///
    /// As [`Self::kl_in_reward`].
    pub fn kl_in_scores(
        &mut self,
        batch: &GpuBatch<'_>,
        scores: &Input<'_>,
        policy: &KlColumns<'_>,
        config: &KlInScoresConfig,
    ) -> Result<Column, GpuError> {
        scores.check_len("scores", batch.host().sequences())?;
        policy.log_probs.check_len("old_log_probs", batch.tokens())?;
        policy.ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        let two = KlInScoresInput { scores: &[0.0_f32; 2], old_log_probs: &[0.0; 2], ref_log_probs: &[0.0; 2] };
        reward::kl_in_scores(&two_tokens()?, two, config, &mut [0.0; 2])?;
        let [scores, old, reference] = self.columns([scores, &policy.log_probs, &policy.ref_log_probs])?;
        let ([difference], _) = self.tokens(&SUBTRACT, batch, &[Some(&old), Some(&reference)], &[])?;
        let sums = self.fold(Fold::Sum, batch, &difference)?;
        let rows = Rows(batch.host().sequences());
        let ([out], _) = self.tokens(&KL_IN_SCORES, &rows, &[Some(&scores), Some(&sums)], &[bits(config.beta)])?;
        Ok(out)
    }

    /// −β times KL, and the clipped score at the last kept token: the core's
    /// [`clipped_rewards`](reward::clipped_rewards). `scores` has one entry per sequence.
    ///
    /// # Errors
    ///
    /// As [`Self::kl_in_reward`].
    pub fn clipped_rewards(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &ShapeColumns<'_>,
        config: &ClippedRewardsConfig,
    ) -> Result<Column, GpuError> {
        input.scores.check_len("scores", batch.host().sequences())?;
        input.kl.check_len("kl", batch.tokens())?;
        let two = ClippedRewardsInput { scores: &[0.0_f32; 2], kl: &[0.0; 2] };
        reward::clipped_rewards(&two_tokens()?, two, config, &mut [0.0; 2])?;
        let [scores, kl] = self.columns([&input.scores, &input.kl])?;
        let settings = [bits(config.beta.max(0.0)), bits(config.low), bits(config.high)];
        let ([rewards], _) = self.tokens(&CLIPPED_REWARDS, batch, &[Some(&scores), Some(&kl)], &settings)?;
        Ok(rewards)
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] =
    runners![place_scores, shape_rewards, kl_in_reward, kl_in_scores: SUM, clipped_rewards];

fn sampled<'a>(call: &Request<'_, 'a>) -> Result<KlColumns<'a>, GpuError> {
    Ok(KlColumns { log_probs: real(call, "old_log_probs")?, ref_log_probs: real(call, "ref_log_probs")? })
}

fn place_scores(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("rewards", recording.place_scores(&batch(call)?, &real(call, "scores")?)?))
}

fn shape_rewards(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = ShapeColumns { scores: real(call, "scores")?, kl: real(call, "kl")? };
    Ok(column("rewards", recording.shape_rewards(&batch(call)?, &input, &call.config()?)?))
}

fn kl_in_reward(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let scores = real(call, "scores")?;
    let (rewards, mean_kl) = recording.kl_in_reward(&batch(call)?, &scores, &sampled(call)?, &call.config()?)?;
    Ok(Answer { columns: vec![("rewards", rewards)], ..numbers(mean_kl, |kl| vec![("mean_kl", kl)]) })
}

fn kl_in_scores(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let scores = real(call, "scores")?;
    Ok(column("out", recording.kl_in_scores(&batch(call)?, &scores, &sampled(call)?, &call.config()?)?))
}

fn clipped_rewards(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = ShapeColumns { scores: real(call, "scores")?, kl: real(call, "kl")? };
    Ok(column("rewards", recording.clipped_rewards(&batch(call)?, &input, &call.config()?)?))
}
