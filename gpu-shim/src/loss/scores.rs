//! Losses of the scores of sequences, or of groups of them.

use tokenwise::{
    loss::{GvpoConfig, PolicyLossInput, PositiveNllConfig, PositiveNllInput},
    Error, Groups, Moments,
};

use super::{check_config, plain, policy::PolicyLossColumns, LossResult};
use crate::{
    batch::{GpuBatch, GpuGroups},
    call::{batch, policy_input, real, runners, Answer, Request, Runner},
    column::Input,
    error::GpuError,
    fold::Fold,
    recording::{Pending, Recording},
    sequences::Rows,
    token::{bits, kernel, sequence, token, whole, Setting, Term, TokenKernel},
};

/// What [`Recording::positive_nll`] reads.
#[derive(Clone, Debug)]
pub struct PositiveNllColumns<'a> {
    /// Log-probabilities of the policy being trained.
    pub log_probs: Input<'a>,
    /// One score per sequence.
    pub scores: Input<'a>,
}

const GVPO: TokenKernel = kernel(
    "loss/gvpo",
    include_str!("../../shaders/loss/gvpo.wgsl"),
    &[token("centred"), token("advantages"), token("counts"), sequence("rests"), sequence("sizes")],
    &["factors"],
    &[Term::Number("loss")],
    &[Setting::F32("beta")],
);

const POSITIVE_TOKENS: TokenKernel = kernel(
    "loss/positive tokens",
    include_str!("../../shaders/loss/positive_tokens.wgsl"),
    &[token("scores"), token("counts")],
    &[],
    &[Term::Number("tokens")],
    &[],
);

const POSITIVE_NLL: TokenKernel = kernel(
    "loss/positive_nll",
    include_str!("../../shaders/loss/positive_nll.wgsl"),
    &[token("log_probs"), sequence("scores"), whole("totals")],
    &["grad"],
    &[Term::Number("sum")],
    &[Setting::F32("mu")],
);

impl Recording<'_> {
    /// The core's [`gvpo`](tokenwise::loss::gvpo) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn gvpo(
        &mut self,
        batch: &GpuBatch<'_>,
        groups: &GpuGroups<'_>,
        input: &PolicyLossColumns<'_>,
        config: &GvpoConfig,
    ) -> Result<LossResult<f64>, GpuError> {
        input.check(batch)?;
        let (got, expected) = (groups.host().sequences(), batch.host().sequences());
        if got != expected {
            return Err(Error::Length { what: "groups", expected, got }.into());
        }
        check_config(|_, _| {
            let pair = tokenwise::Batch::new(tokenwise::Layout::padded(2, 1)?, tokenwise::Mask::new(&[true; 2]))?;
            let (groups, mut scratch) = (Groups::from_ids(&[0, 0])?, [Moments::default()]);
            let zeros = PolicyLossInput::new(&[0.0_f32; 2], &[0.0; 2], &[0.0; 2]);
            tokenwise::loss::gvpo(&pair, &groups, zeros, config, &mut scratch, &mut [0.0; 2])
        })?;
        let mut sizes = vec![0_usize; groups.host().count()];
        groups.host().ids().for_each(|group| sizes[group] += 1);
        if sizes.contains(&1) {
            return Err(Error::TooFew { what: "groups", needed: 2, got: 1 }.into());
        }
        let rows = Rows::new(self, batch)?;
        let (log_ratios, _) = self.sequence_log_ratios(batch, &input.log_probs, &input.old_log_probs)?;
        let centred = self.centred(groups, &log_ratios)?;
        let advantages = self.column(&input.advantages)?;
        let advantages = self.fold(Fold::Sum, batch, &advantages)?;
        let given = [&centred.scores, &advantages, &rows.counts, &centred.rests, &centred.sizes].map(Some);
        let ([factors], record) = self.tokens(&GVPO, groups, &given, &[bits(config.beta)])?;
        let grad = self.spread(batch, None, &factors)?;
        let loss = Pending::new(move |done| {
            let [loss] = done.sums(record.header);
            loss
        });
        Ok(LossResult { grad, loss })
    }

    /// The core's [`positive_nll`](tokenwise::loss::positive_nll) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn positive_nll(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &PositiveNllColumns<'_>,
        config: &PositiveNllConfig,
    ) -> Result<LossResult<f64>, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.scores.check_len("scores", batch.host().sequences())?;
        check_config(|one, grad| {
            let input = PositiveNllInput { log_probs: &[0.0], scores: &[0.0] };
            tokenwise::loss::positive_nll(one, input, config, grad)
        })?;
        let rows = Rows::new(self, batch)?;
        let [new, scores] = self.columns([&input.log_probs, &input.scores])?;
        let ([], tokens) = self.tokens(&POSITIVE_TOKENS, &rows, &[Some(&scores), Some(&rows.counts)], &[])?;
        let given = [Some(&new), Some(&scores), Some(&tokens.column)];
        let ([grad], record) = self.tokens(&POSITIVE_NLL, batch, &given, &[bits(config.mu)])?;
        let mu = config.mu;
        let loss = Pending::new(move |done| {
            let ([tokens], [sum]) = (done.sums(tokens.header), done.sums(record.header));
            if tokens == 0.0 {
                0.0
            } else {
                0.0 - mu / tokens * sum
            }
        });
        Ok(LossResult { grad, loss })
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] = runners![gvpo, positive_nll];

fn gvpo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, groups) = (batch(call)?, GpuGroups::new(call.groups()?));
    Ok(plain(recording.gvpo(&batch, &groups, &policy_input(call)?, &call.config()?)?))
}

fn positive_nll(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let input = PositiveNllColumns { log_probs: real(call, "log_probs")?, scores: real(call, "scores")? };
    Ok(plain(recording.positive_nll(&batch(call)?, &input, &call.config()?)?))
}
