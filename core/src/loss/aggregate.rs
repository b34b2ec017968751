use crate::{
    error::{check_config, check_count, check_len, check_positive, Error, Result},
    groups::Groups,
    layout::{Batch, Row},
    real::Real,
    reduce::{fold_row, Sum},
    simd::multiversion,
    statistics::Divisor,
};

#[cfg(feature = "serde")]
use crate::spelling::aggregate as spelling;

/// How token losses are reduced to one number.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "spelling::EitherMode", into = "spelling::EitherMode"))]
pub enum AggregateMode<'a> {
    /// `Σ L / N`: every token has the same weight. verl's default, TRL's `dapo` and `bnpo`, OpenRLHF.
    #[default]
    TokenMean,
    /// `Σ L`.
    TokenSum,
    /// `Σ_i Σ_t L / |S|`: the weight of a sequence is proportional to its length.
    SequenceMeanTokenSum,
    /// `Σ_i Σ_t L / (|S| · scale)`: Dr. GRPO; `scale` is a constant length such as the longest allowed.
    SequenceMeanTokenSumNorm {
        /// The constant length; positive.
        scale: f64,
    },
    /// `Σ_i (Σ_t L / n_i) / |S|`: every sequence has the same weight. TRL's `grpo`.
    SequenceMeanTokenMean,
    /// `Σ_p (Σ L / N_p) / P`: every prompt has the same weight. Deserialised without groups and tokens, which the
    /// caller must add.
    PromptMean {
        /// The prompt of each sequence.
        groups: Groups<'a>,
        /// Kept tokens of each prompt, over all micro-batches and ranks ([`group_tokens`] counts one batch).
        tokens: &'a [u64],
    },
}

/// Which tokens and sequences the denominators count.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Counts {
    /// Those of the current batch.
    #[default]
    Local,
    /// Those of the whole step, so that the losses of micro-batches and ranks add up to its loss.
    Global(GlobalCounts),
}

#[cfg(feature = "serde")]
crate::spelling::nullable! { Counts { Local, Global(GlobalCounts) } }

/// The counts of a whole optimiser step. Only those that the mode divides by are used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GlobalCounts {
    /// Kept tokens, `N`.
    pub tokens: u64,
    /// Sequences, `|S|`.
    pub sequences: u64,
    /// Prompts, `P`.
    pub prompts: u64,
    /// The result is multiplied by this: the number of ranks whose gradients are averaged afterwards; default 1.
    pub ranks: u64,
}

impl Default for GlobalCounts {
    fn default() -> Self {
        Self { tokens: 0, sequences: 0, prompts: 0, ranks: 1 }
    }
}

/// Whether a sequence without kept tokens counts in `|S|` of a local batch.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum EmptyRows {
    /// It does not: `|S|` counts sequences with a kept token. verl 0.9.1, OpenRLHF 0.11.
    #[default]
    Excluded,
    /// It does: `|S|` is the number of rows. TRL 1.16.
    Counted,
}

/// How token losses are aggregated: mode, counts, empty rows and divisor.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize))]
#[cfg_attr(feature = "serde", serde(try_from = "spelling::Given", into = "spelling::Written"))]
pub struct Aggregate<'a> {
    /// Default [`AggregateMode::TokenMean`].
    pub mode: AggregateMode<'a>,
    /// Default [`Counts::Local`].
    pub counts: Counts,
    /// Default [`EmptyRows::Excluded`].
    pub empty_rows: EmptyRows,
    /// Divisor of each sequence in [`AggregateMode::SequenceMeanTokenMean`]: `n_i`, or verl's and OpenRLHF's
    /// `n_i + 1e-8`.
    pub divisor: Divisor,
}

/// Aggregates token losses into one number and writes the weight of each token in it.
///
/// ```text
/// loss = Σ_i Σ_t W[i, t] L[i, t]        W = ∂loss/∂L, constant within a sequence; see AggregateMode
/// ```
///
/// With [`Counts::Global`] the weights do not depend on how the step was split: the losses of all micro-batches and
/// ranks add up to the loss of the whole (divided by `ranks`, which undoes a later average), and every gradient keeps
/// its bits.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get weight 0.
///
/// **Errors.** [`Error::Length`] if a slice or the groups do not fit `batch`; [`Error::Config`] if `scale` or a
/// required global count is not positive; [`Error::Entry`] if `tokens` counts fewer tokens for a prompt than one of its
/// sequences has; [`Error::EmptyMask`] for a mean by local counts without kept tokens.
///
/// **Reference.** verl 0.9.1 `agg_loss`; TRL 1.16 loss types; OpenRLHF 0.11 `aggregate_loss`; `PromptMean`: SkyRL
/// (2026-08). verl before 0.9 did not divide `SequenceMeanTokenSumNorm` by `|S|`: that is [`AggregateMode::TokenSum`]
/// over `scale`.
///
/// # Example
///
/// ```
/// use tokenwise::{loss::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, false, true, true]))?;
/// let mut weights = [9.0; 4];
/// let losses = [1.0, f64::NAN, 3.0, 4.0];
/// let config = Aggregate { mode: AggregateMode::SequenceMeanTokenMean, ..Default::default() };
/// assert_eq!(aggregate(&batch, &losses, &config, &mut weights)?, 2.25);
/// assert_eq!(weights, [0.5, 0.0, 0.25, 0.25]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn aggregate<R: Real>(batch: &Batch<'_>, losses: &[R], config: &Aggregate<'_>, weights: &mut [R]) -> Result<f64> {
    check_len("losses", losses, batch.tokens())?;
    check_len("weights", weights, batch.tokens())?;
    let plan = config.plan(batch)?;
    Ok(weigh(batch, losses, &plan, weights))
}

#[multiversion]
fn weigh<R: Real>(batch: &Batch<'_>, losses: &[R], plan: &Plan<'_>, weights: &mut [R]) -> f64 {
    let mut loss = Sum::default();
    for (row, weight) in plan.rows(batch) {
        let rounded = R::narrow(weight);
        let [sum] = fold_row(&row, [losses], [&mut *weights], |[x]| ([rounded], [x]));
        loss.add(weight * sum);
    }
    loss.value()
}

/// Number of kept tokens of each prompt in one batch; add up those of all batches for [`AggregateMode::PromptMean`].
///
/// ```text
/// out_p = Σ_{i of prompt p} n_i
/// ```
///
/// **Alignment.** `out` has one entry per group.
///
/// **Mask.** Only kept tokens are counted.
///
/// **Errors.** [`Error::Length`] if the groups or `out` do not fit.
///
/// **Reference.** The per-prompt denominators of SkyRL's `prompt_mean` (2026-08).
///
/// # Example
///
/// ```
/// use tokenwise::{loss::group_tokens, Batch, Groups, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(3, 2)?, Mask::new(&[true, true, true, false, true, false]))?;
/// let mut tokens = [9; 2];
/// group_tokens(&batch, &Groups::from_ids(&[1, 0, 1])?, &mut tokens)?;
/// assert_eq!(tokens, [1, 3]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn group_tokens(batch: &Batch<'_>, groups: &Groups<'_>, out: &mut [u64]) -> Result<()> {
    check_groups(batch, groups)?;
    check_len("out", out, groups.count())?;
    out.fill(0);
    for (row, group) in batch.token_rows().zip(groups.ids()) {
        out[group] += row.kept() as u64;
    }
    Ok(())
}

fn check_groups(batch: &Batch<'_>, groups: &Groups<'_>) -> Result<()> {
    check_count("groups", groups.sequences(), batch.sequences())
}

/// A validated aggregation: computes the weight of each sequence.
pub(crate) struct Plan<'a> {
    /// The weight of a token, before the division by a per-sequence or per-prompt count if the mode has one.
    share: f64,
    per: Per<'a>,
}

enum Per<'a> {
    Token,
    Sequence(Divisor),
    Prompt { groups: Groups<'a>, tokens: &'a [u64] },
}

impl<'a> Aggregate<'a> {
    /// The weight of the kept tokens of each sequence, for crates that compute losses elsewhere.
    #[doc(hidden)]
    pub fn sequence_weights(&self, batch: &Batch<'_>, mut weight: impl FnMut(f64)) -> Result<()> {
        let plan = self.plan(batch)?;
        for (_, of_sequence) in plan.all_rows(batch) {
            weight(of_sequence);
        }
        Ok(())
    }

    /// Validates the aggregation, before a loss writes anything.
    pub(crate) fn plan(&self, batch: &Batch<'_>) -> Result<Plan<'a>> {
        let (global, ranks) = match self.counts {
            // an empty sum is 0; an empty mean is undefined
            Counts::Local if batch.kept() == 0 && self.mode != AggregateMode::TokenSum => return Err(Error::EmptyMask),
            Counts::Local => (None, 1.0),
            Counts::Global(counts) => {
                check_config("ranks", "at least 1", counts.ranks as f64, counts.ranks > 0)?;
                (Some(counts), counts.ranks as f64)
            }
        };
        let needed = |what, count: u64| -> Result<f64> {
            check_config(what, "at least 1", count as f64, count > 0)?;
            Ok(count as f64)
        };
        let sequences = || -> Result<f64> {
            match global {
                Some(counts) => needed("sequences", counts.sequences),
                None => Ok(match self.empty_rows {
                    EmptyRows::Excluded => batch.kept_sequences(),
                    EmptyRows::Counted => batch.sequences(),
                } as f64),
            }
        };
        let (share, per) = match self.mode {
            AggregateMode::TokenMean => {
                let tokens = match global {
                    Some(counts) => needed("tokens", counts.tokens)?,
                    None => batch.kept() as f64,
                };
                (ranks / tokens, Per::Token)
            }
            AggregateMode::TokenSum => (ranks, Per::Token),
            AggregateMode::SequenceMeanTokenSum => (ranks / sequences()?, Per::Token),
            AggregateMode::SequenceMeanTokenSumNorm { scale } => {
                check_positive::<f64>("scale", scale)?;
                (ranks / (sequences()? * scale), Per::Token)
            }
            AggregateMode::SequenceMeanTokenMean => (ranks / sequences()?, Per::Sequence(self.divisor)),
            AggregateMode::PromptMean { groups, tokens } => {
                check_groups(batch, &groups)?;
                check_len("tokens", tokens, groups.count())?;
                for (row, group) in batch.token_rows().zip(groups.ids()) {
                    if tokens[group] < row.kept() as u64 {
                        return Err(Error::Entry {
                            what: "tokens",
                            index: group,
                            must_be: "at least the kept tokens of each sequence of the prompt",
                            got: tokens[group] as f64,
                        });
                    }
                }
                let prompts = match global {
                    Some(counts) => needed("prompts", counts.prompts)?,
                    None => groups.count() as f64,
                };
                (ranks / prompts, Per::Prompt { groups, tokens })
            }
        };
        Ok(Plan { share, per })
    }
}

impl Plan<'_> {
    /// The same plan with every weight multiplied by a coefficient.
    pub(crate) fn times(self, coefficient: f64) -> Self {
        Self { share: self.share * coefficient, ..self }
    }

    /// Each sequence with the weight of its kept tokens.
    #[inline(always)]
    pub(crate) fn rows<'b>(&'b self, batch: &'b Batch<'b>) -> impl Iterator<Item = (Row<'b>, f64)> + 'b {
        self.rows_from(batch, 0)
    }

    /// Like [`Self::rows`], but all sequences even if the batch has no slots, for what has a number per sequence.
    #[inline(always)]
    pub(crate) fn all_rows<'b>(&'b self, batch: &'b Batch<'b>) -> impl Iterator<Item = (Row<'b>, f64)> + 'b {
        self.weighted(batch.rows(), 0)
    }

    /// Like [`Self::rows`], for a part that begins with sequence `first` of the whole batch.
    #[inline(always)]
    pub(crate) fn rows_from<'b>(
        &'b self,
        part: &'b Batch<'b>,
        first: usize,
    ) -> impl Iterator<Item = (Row<'b>, f64)> + 'b {
        self.weighted(part.token_rows(), first)
    }

    #[inline(always)]
    fn weighted<'b>(
        &'b self,
        rows: impl Iterator<Item = Row<'b>> + 'b,
        first: usize,
    ) -> impl Iterator<Item = (Row<'b>, f64)> + 'b {
        let mut prompts = match &self.per {
            Per::Prompt { groups, .. } => Some(groups.ids().skip(first)),
            _ => None,
        };
        rows.map(move |row| {
            let group = prompts.as_mut().and_then(Iterator::next);
            let weight = match (&self.per, group) {
                (Per::Prompt { tokens, .. }, Some(group)) => self.share / tokens[group].max(1) as f64,
                (Per::Sequence(divisor), _) => self.share / divisor.of(row.kept().max(1) as f64),
                _ => self.share,
            };
            (row, weight)
        })
    }
}
