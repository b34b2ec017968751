use super::{
    vocab_row::{check_logits, check_tokens, VocabRow},
    Logit,
};
use crate::{
    error::{check_len, Result},
    layout::Batch,
    parallel::{in_order, Work},
    real::Real,
    simd::multiversion,
};

/// What the log-probability functions read.
#[derive(Clone, Copy, Debug)]
pub struct LogProbInput<'a, L> {
    /// `[tokens, vocab]`, row-major: the row that predicted each token (see [`shift`](crate::shift)).
    pub logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
    /// The id of each token.
    pub tokens: &'a [u32],
}

/// Logits alone, for quantities that do not depend on the chosen token.
#[derive(Clone, Copy, Debug)]
pub struct LogitsInput<'a, L> {
    /// `[tokens, vocab]`, row-major: the row that predicted each token (see [`shift`](crate::shift)).
    pub logits: &'a [L],
    /// Size of the vocabulary.
    pub vocab: usize,
}

/// How logits become a distribution.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct PolicyConfig {
    /// Logits are divided by this before the soft-max; positive, default 1.
    pub temperature: f64,
}

impl Default for PolicyConfig {
    fn default() -> Self {
        Self { temperature: 1.0 }
    }
}

/// What [`log_probs_and_entropy`] writes.
#[derive(Debug)]
pub struct LogProbOutput<'a, R> {
    /// Log-probability of each token.
    pub log_probs: &'a mut [R],
    /// Entropy of the distribution each token was drawn from.
    pub entropy: &'a mut [R],
}

/// Log-probability of each token, and the entropy of the distribution it was drawn from, in one pass over the logits.
///
/// ```text
/// z = logits / τ      log_probs_i = z[a_i] − m − ln Σ_v e^{z_v − m}
/// entropy_i = ln Σ_v e^{z_v − m} − Σ_v p_v (z_v − m)
/// ```
///
/// with `m = max z`. An entry of −inf has probability 0 and contributes 0; a row with only such entries, or with +inf
/// or NaN, gives NaN.
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Rows and ids of dropped slots are never read; dropped slots get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch` and `vocab`;
/// [`Error::TokenId`](crate::Error::TokenId) if a kept id is not below `vocab`; [`Error::Config`](crate::Error::Config)
/// if `vocab` is 0 or τ is not positive; [`Error::Overflow`](crate::Error::Overflow) if `tokens × vocab` does not fit
/// into a `usize`.
///
/// **Reference.** verl 0.9.1 and TRL 1.16 take both from the temperature-scaled logits; OpenRLHF 0.11 takes the entropy
/// from the unscaled ones (call [`entropy`] with τ = 1 for that).
///
/// # Example
///
/// ```
/// use tokenwise::{policy::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let logits = [0.0, f64::NEG_INFINITY, f64::NAN, f64::NAN];      // certain of token 0; the second slot is dropped
/// let (mut log_probs, mut entropy) = ([9.0; 2], [9.0; 2]);
/// log_probs_and_entropy(
///     &batch,
///     LogProbInput { logits: &logits, vocab: 2, tokens: &[0, 99] },
///     &PolicyConfig::default(),
///     LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy },
/// )?;
/// assert_eq!((log_probs, entropy), ([0.0, 0.0], [0.0, 0.0]));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn log_probs_and_entropy<L: Logit>(
    batch: &Batch<'_>,
    input: LogProbInput<'_, L>,
    config: &PolicyConfig,
    output: LogProbOutput<'_, L::Compute>,
) -> Result<()> {
    let scale = check_log_probs(batch, &input, config, &output)?;
    let LogProbOutput { log_probs, entropy } = output;
    each_slot(batch, input.logits, input.vocab, scale, [log_probs, entropy], &|slot, logits, row| {
        row.log_prob_and_entropy(logits[input.tokens[slot] as usize].load() * scale)
    });
    Ok(())
}

/// The checks of [`log_probs_and_entropy`], for crates that compute it elsewhere and must reject the same calls;
/// returns 1/τ.
#[doc(hidden)]
pub fn check_log_probs<L: Logit>(
    batch: &Batch<'_>,
    input: &LogProbInput<'_, L>,
    config: &PolicyConfig,
    output: &LogProbOutput<'_, L::Compute>,
) -> Result<L::Compute> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_tokens(batch, input.tokens, input.vocab)?;
    check_len("log_probs", output.log_probs, batch.tokens())?;
    check_len("entropy", output.entropy, batch.tokens())?;
    Ok(scale)
}

/// Log-probability of each token.
///
/// ```text
/// out_i = z[a_i] − m − ln Σ_v e^{z_v − m}        z = logits / τ,  m = max z
/// ```
///
/// **Alignment.** Action-aligned in and out: row `i` is the one that predicted token `i`.
///
/// **Mask.** Rows and ids of dropped slots are never read; dropped slots get 0.
///
/// **Errors.** As [`log_probs_and_entropy`].
///
/// **Reference.** verl 0.9.1 `logprobs_from_logits`, TRL 1.16 `selective_log_softmax`, OpenRLHF 0.11
/// `log_probs_from_logits`.
///
/// # Example
///
/// ```
/// use tokenwise::{policy::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[false, true]))?;
/// let mut out = [9.0; 2];
/// let logits = [f64::NAN, f64::NAN, f64::NEG_INFINITY, 3.0];
/// token_log_probs(
///     &batch,
///     LogProbInput { logits: &logits, vocab: 2, tokens: &[7, 1] },
///     &PolicyConfig::default(),
///     &mut out,
/// )?;
/// assert_eq!(out, [0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn token_log_probs<L: Logit>(
    batch: &Batch<'_>,
    input: LogProbInput<'_, L>,
    config: &PolicyConfig,
    out: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_tokens(batch, input.tokens, input.vocab)?;
    check_len("out", out, batch.tokens())?;
    each_slot(batch, input.logits, input.vocab, scale, [out], &|slot, logits, row| {
        [row.log_prob(logits[input.tokens[slot] as usize].load() * scale)]
    });
    Ok(())
}

/// Entropy of the distribution each kept token was drawn from, in nats.
///
/// ```text
/// out_i = ln Σ_v e^{z_v} − Σ_v p_v z_v        z = logits / τ;  an entry of −inf counts 0
/// ```
///
/// 0 where one token is certain, ln(vocab) where all are equally likely.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Rows of dropped slots are never read; dropped slots get 0.
///
/// **Errors.** As [`log_probs_and_entropy`], without tokens.
///
/// **Reference.** verl 0.9.1 `entropy_from_logits`; TRL 1.16 sums −p ln p, the same number. verl gives NaN where a
/// logit is −inf.
///
/// # Example
///
/// ```
/// use tokenwise::{math, policy::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let mut out = [9.0; 2];
/// let logits = [1.5, 1.5, f64::NAN, f64::NAN];
/// entropy(&batch, LogitsInput { logits: &logits, vocab: 2 }, &PolicyConfig::default(), &mut out)?;
/// assert_eq!(out, [math::ln(2.0), 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn entropy<L: Logit>(
    batch: &Batch<'_>,
    input: LogitsInput<'_, L>,
    config: &PolicyConfig,
    out: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_len("out", out, batch.tokens())?;
    each_slot(batch, input.logits, input.vocab, scale, [out], &|_, _, row| [row.entropy()]);
    Ok(())
}

/// Sum of the squared probabilities: the chance that two draws from the same distribution agree.
///
/// ```text
/// out_i = Σ_v p_v²        p = soft-max of logits / τ
/// ```
///
/// 1 where one token is certain, 1/vocab where all are equally likely.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Rows of dropped slots are never read; dropped slots get 0.
///
/// **Errors.** As [`log_probs_and_entropy`], without tokens.
///
/// **Reference.** verl 0.9.1 `calculate_sum_pi_squared_from_logits`, read by its optimal token baseline.
///
/// # Example
///
/// ```
/// use tokenwise::{policy::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
/// let mut out = [9.0; 2];
/// let logits = [0.0, 0.0, 0.0, 0.0, f64::NAN, 0.0, 0.0, 0.0];
/// sum_squared_probs(&batch, LogitsInput { logits: &logits, vocab: 4 }, &PolicyConfig::default(), &mut out)?;
/// assert_eq!(out, [0.25, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn sum_squared_probs<L: Logit>(
    batch: &Batch<'_>,
    input: LogitsInput<'_, L>,
    config: &PolicyConfig,
    out: &mut [L::Compute],
) -> Result<()> {
    let scale = check_logits(batch, "logits", input.logits, input.vocab, config.temperature)?;
    check_len("out", out, batch.tokens())?;
    squared_probs(batch, input, scale, out);
    Ok(())
}

/// Writes `of(slot, its logits, their soft-max sums)` at every kept slot, and 0 at the others.
fn each_slot<L: Logit, const OUTS: usize>(
    batch: &Batch<'_>,
    logits: &[L],
    vocab: usize,
    scale: L::Compute,
    outputs: [&mut [L::Compute]; OUTS],
    of: &(impl Fn(usize, &[L], VocabRow<L::Compute>) -> [f64; OUTS] + Sync),
) {
    in_order(
        &batch.token_by_token(),
        Work { width: 1, per_token: vocab },
        outputs,
        |part, mut outputs, _| {
            let first = part.tokens.start;
            let logits = part.rows_of(logits, vocab);
            read_rows(&part.batch, logits, vocab, scale, &mut |slot, found: Option<(&[L], VocabRow<_>)>| {
                let results = found.map_or([0.0; OUTS], |(logits, row)| of(first + slot, logits, row));
                for (output, result) in outputs.iter_mut().zip(results) {
                    output[slot] = L::Compute::narrow(result);
                }
            });
        },
        |()| (),
    );
}

/// Called with every slot and, where it is kept, its logits and their soft-max sums.
type Visit<'v, L> = &'v mut dyn FnMut(usize, Option<(&[L], VocabRow<<L as Logit>::Compute>)>);

#[multiversion(avx512)]
fn read_rows<L: Logit>(batch: &Batch<'_>, logits: &[L], vocab: usize, scale: L::Compute, visit: Visit<'_, L>) {
    for (slot, (logits, &keep)) in logits.chunks_exact(vocab).zip(batch.mask().as_slice()).enumerate() {
        visit(slot, keep.then(|| (logits, VocabRow::read(logits, scale))));
    }
}

#[multiversion]
fn squared_probs<L: Logit>(batch: &Batch<'_>, input: LogitsInput<'_, L>, scale: L::Compute, out: &mut [L::Compute]) {
    let rows = input.logits.chunks_exact(input.vocab).zip(batch.mask().as_slice());
    for ((logits, &keep), out) in rows.zip(out) {
        *out = if keep {
            L::Compute::narrow(VocabRow::read_squares(logits, scale).squared_probs())
        } else {
            L::Compute::zero()
        };
    }
}
