//! The weight of each token in the dual game.

use crate::{
    batch::{GpuBatch, Segmented},
    call::{batch, column, optional, real, runners, Answer, Request, Runner},
    column::{Column, Input},
    error::GpuError,
    recording::Recording,
    token::{token, whole, Setting, TokenKernel},
};

/// A token's weight in the dual game: the core's [`TokenWeight`](tokenwise::weight::TokenWeight).
#[non_exhaustive]
#[derive(Clone, Debug, Default)]
pub enum WeightColumn<'a> {
    /// `p (1 − p) |A|`.
    #[default]
    Plain,
    /// The same times the distance to the reference; without a reference, as `Plain`.
    KlGated,
    /// Precomputed weights.
    Structural(Input<'a>),
}

impl<'a> WeightColumn<'a> {
    /// The weight of a call by name. An unknown name is left to the core's error.
    pub(crate) fn of(call: &Request<'_, 'a>) -> Result<Self, GpuError> {
        Ok(match call.inputs.optional_text("weight")? {
            None | Some("plain") => Self::Plain,
            Some("kl-gated") => Self::KlGated,
            Some("structural") => Self::Structural(real(call, "structural")?),
            Some(_) => return Err(GpuError::Unsupported("a weight of this name")),
        })
    }

    /// The number of the weight in `shaders/weight/token_weight.wgsl`, and its column.
    pub(crate) fn check(&self, batch: &GpuBatch<'_>, reference: bool) -> Result<(u32, Option<&Input<'a>>), GpuError> {
        match self {
            Self::Structural(weights) => {
                weights.check_len("weight", batch.tokens())?;
                Ok((2, Some(weights)))
            }
            Self::KlGated if reference => Ok((1, None)),
            _ => Ok((0, None)),
        }
    }
}

/// What [`Recording::token_weights`] reads.
#[derive(Clone, Debug)]
pub struct TokenWeightColumns<'a> {
    /// Log-probabilities of the policy.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the reference.
    pub ref_log_probs: Option<Input<'a>>,
    /// Advantages.
    pub advantages: Input<'a>,
    /// Which weight.
    pub weight: WeightColumn<'a>,
}

const TOKEN_WEIGHTS: TokenKernel = TokenKernel {
    label: "weight/token_weights",
    formula: concat!(
        include_str!("../shaders/weight/token_weight.wgsl"),
        include_str!("../shaders/weight/token_weights.wgsl"),
    ),
    inputs: &[token("log_probs"), token("ref_log_probs"), token("advantages"), token("structural")],
    outputs: &["out"],
    terms: &[],
    settings: &[Setting::U32("weight")],
    last_only: false,
};

const ADVANTAGE_JUMP: TokenKernel = TokenKernel {
    label: "weight/advantage_jump",
    formula: include_str!("../shaders/weight/advantage_jump.wgsl"),
    inputs: &[token("advantages"), whole("all_advantages"), whole("befores")],
    outputs: &["out"],
    terms: &[],
    settings: &[],
    last_only: false,
};

impl Recording<'_> {
    /// The core's [`token_weights`](tokenwise::weight::token_weights).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if a column does not fit the batch; [`GpuError::Limit`].
    pub fn token_weights(&mut self, batch: &GpuBatch<'_>, input: &TokenWeightColumns<'_>) -> Result<Column, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        if let Some(ref_log_probs) = &input.ref_log_probs {
            ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        }
        input.advantages.check_len("advantages", batch.tokens())?;
        let (kind, structural) = input.weight.check(batch, input.ref_log_probs.is_some())?;
        let [new, advantages] = self.columns([&input.log_probs, &input.advantages])?;
        let reference = input.ref_log_probs.as_ref().map(|column| self.column(column)).transpose()?;
        let structural = structural.map(|column| self.column(column)).transpose()?;
        let given = [Some(&new), reference.as_ref(), Some(&advantages), structural.as_ref()];
        let ([out], _) = self.tokens(&TOKEN_WEIGHTS, batch, &given, &[kind])?;
        Ok(out)
    }

    /// The core's [`advantage_jump`](tokenwise::weight::advantage_jump).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if the column does not fit the batch; [`GpuError::Limit`], also beyond the size of one
    /// binding.
    pub fn advantage_jump(&mut self, batch: &GpuBatch<'_>, advantages: &Input<'_>) -> Result<Column, GpuError> {
        advantages.check_len("advantages", batch.tokens())?;
        let mut befores = vec![0_u32; batch.entries()];
        for sequence in 0..batch.host().sequences() {
            let mut before = 0;
            for slot in batch.host().layout().slots(sequence).unwrap_or_default() {
                if batch.host().mask().as_slice()[slot] {
                    befores[slot] = before;
                    // fits: a batch on the device has fewer than 2³² slots
                    before = slot as u32 + 1;
                }
            }
        }
        let (advantages, befores) = (self.column(advantages)?, self.upload_words(&befores)?);
        let given = [Some(&advantages), Some(&advantages), Some(&befores)];
        let ([out], _) = self.tokens(&ADVANTAGE_JUMP, batch, &given, &[])?;
        Ok(out)
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![token_weights, advantage_jump];

fn token_weights(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = TokenWeightColumns {
        log_probs: real(call, "log_probs")?,
        ref_log_probs: optional(call, "ref_log_probs")?,
        advantages: real(call, "advantages")?,
        weight: WeightColumn::of(call)?,
    };
    Ok(column("weights", recording.token_weights(&batch(call)?, &input)?))
}

fn advantage_jump(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.advantage_jump(&batch(call)?, &real(call, "advantages")?)?))
}
