use super::{
    group::{batch_deviation, check_sequences, group_moments, relative},
    whiten::{check_whiten, whiten_in_place},
    FactorPrecision, GroupConfig, WhitenConfig,
};
use crate::{
    error::{check_len, check_not_negative, checked_size, Error, Result},
    groups::{group_scratch_len, Groups},
    layout::Batch,
    real::Real,
    statistics::Moments,
};

/// What [`decoupled_scores`] and [`gdpo`] read.
#[derive(Clone, Copy, Debug)]
pub struct GdpoInput<'a, R> {
    /// Scores of each reward source, one source after the other: `sources × sequences`.
    pub sources: &'a [R],
    /// One weight per source, finite.
    pub weights: &'a [f64],
}

impl<R: Real> GdpoInput<'_, R> {
    fn check(&self, groups: &Groups<'_>, config: &GroupConfig) -> Result<()> {
        check_len(
            "sources",
            self.sources,
            checked_size("weights × sequences", self.weights.len(), groups.sequences())?,
        )?;
        check_not_negative::<R>("epsilon", config.epsilon)?;
        match self.weights.iter().position(|weight| !weight.is_finite()) {
            None => Ok(()),
            Some(index) => Err(Error::Entry { what: "weights", index, must_be: "finite", got: self.weights[index] }),
        }
    }
}

/// Scores of several reward sources: each source is normalised within its prompt, then they are added up.
///
/// ```text
/// out_i = Σ_k w_k (s_{k,i} − mean_j s_{k,j}) / (std_j s_{k,j} + ε)        j over the samples of i's prompt
/// ```
///
/// If the scores of one source vary much more than those of another, [`group_relative`](super::group_relative) of their
/// sum would be dominated by that source.
///
/// **Alignment.** One entry per sequence (and source), in and out.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`] if `sources` does not have one entry per weight and sequence, `out` one per sequence
/// of `groups`, or `scratch` [`group_scratch_len`](crate::group_scratch_len) entries; [`Error::Config`] if ε is
/// negative or not finite; [`Error::Entry`] if a weight is not finite.
///
/// **Reference.** Liu et al. 2026 (GDPO), arXiv:2601.05242. TRL 1.16 `normalize_then_sum`: ε = 1e-4, then
/// [`normalize_scores`](super::normalize_scores) over the batch with the same ε.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments, Spread};
///
/// let groups = Groups::contiguous(&[2])?;
/// let config = GroupConfig { spread: Spread::Population, epsilon: 0.0, ..Default::default() };
/// let input = GdpoInput { sources: &[0.0, 100.0, 0.5, 0.25], weights: &[1.0, 0.5] };
/// let (mut scratch, mut out) = ([Moments::default(); 1], [9.0; 2]);
/// decoupled_scores(&groups, input, &config, &mut scratch, &mut out)?;
/// assert_eq!(out, [-0.5, 0.5]);      // −1 + 0.5, 1 − 0.5
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn decoupled_scores<R: Real>(
    groups: &Groups<'_>,
    input: GdpoInput<'_, R>,
    config: &GroupConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    weighted_sum(groups, input, config, FactorPrecision::Exact, scratch, out)
}

fn weighted_sum<R: Real>(
    groups: &Groups<'_>,
    input: GdpoInput<'_, R>,
    config: &GroupConfig,
    precision: FactorPrecision,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_len("scratch", scratch, group_scratch_len(groups))?;
    check_len("out", out, groups.sequences())?;
    input.check(groups, config)?;
    out.fill(R::zero());
    let lone = precision.rounded(1.0 + config.epsilon);
    // a chunk size of 0 would panic; without sequences there is nothing to split
    for (scores, &weight) in input.sources.chunks(groups.sequences().max(1)).zip(input.weights) {
        let weight = precision.rounded(weight);
        group_moments(groups, scores, scratch);
        let batch_deviation = batch_deviation(scratch, config.scale, config.spread)?;
        for ((group, &score), out) in groups.ids().zip(scores).zip(out.iter_mut()) {
            *out += R::narrow(weight * relative(score.widen(), &scratch[group], config, lone, batch_deviation)?);
        }
    }
    Ok(())
}

/// The conventions of [`gdpo`].
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GdpoConfig {
    /// How each source is normalised within its prompt; default as in [`group_relative`](super::group_relative).
    pub group: GroupConfig,
    /// How the weights of the sources and the divisor `1 + ε` of a lone score are rounded; by default they are not.
    pub factors: FactorPrecision,
    /// How the tokens are whitened; default as in [`whiten`](super::whiten).
    pub whiten: WhitenConfig,
}

/// Working memory of [`gdpo`]; the content before a call does not matter.
#[derive(Debug)]
pub struct GdpoScratch<'a, R> {
    /// [`group_scratch_len`](crate::group_scratch_len) entries.
    pub moments: &'a mut [Moments],
    /// [`gdpo_scratch_len`] entries.
    pub scores: &'a mut [R],
}

/// Entries of [`GdpoScratch::scores`]: one per sequence.
pub const fn gdpo_scratch_len(groups: &Groups<'_>) -> usize {
    groups.sequences()
}

/// [`decoupled_scores`] copied to the tokens and whitened over all of them (GDPO).
///
/// ```text
/// a_i = Σ_k w_k grpo(s_k)_i        A[i, t] = (a_i − μ) / √(σ² + ε)        μ, σ² over all kept tokens
/// ```
///
/// **Alignment.** `sources` has one entry per source and sequence, `out` is action-aligned.
///
/// **Mask.** Dropped slots enter neither μ nor σ² and get 0.
///
/// **Errors.** Those of [`decoupled_scores`] and [`whiten`](super::whiten); [`Error::Length`] if `groups`, `out` or a
/// scratch slice does not fit `batch`.
///
/// **Reference.** Liu et al. 2026, arXiv:2601.05242. verl 0.9.1: [`Singleton::Raw`](super::Singleton::Raw),
/// [`Divisor::CountPlusEpsilon`](crate::Divisor::CountPlusEpsilon), [`FactorPrecision::Single`]; it keeps named sources
/// in single precision too.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Groups, Layout, Mask, Moments, Spread};
///
/// let batch = Batch::new(Layout::padded(2, 2)?, Mask::new(&[true, false, false, true]))?;
/// let groups = Groups::contiguous(&[2])?;
/// let config = GdpoConfig {
///     group: GroupConfig { spread: Spread::Population, epsilon: 0.0, ..Default::default() },
///     whiten: WhitenConfig { spread: Spread::Population, epsilon: 0.0, ..Default::default() },
///     ..Default::default()
/// };
/// let scratch = GdpoScratch { moments: &mut [Moments::default(); 1], scores: &mut [0.0; 2] };
/// let mut out = [9.0; 4];
/// gdpo(
///     &batch,
///     &groups,
///     GdpoInput { sources: &[0.0, 100.0, 0.5, 0.25], weights: &[1.0, 0.5] },
///     &config,
///     scratch,
///     &mut out,
/// )?;
/// assert_eq!(out, [-1.0, 0.0, 0.0, 1.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn gdpo<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    input: GdpoInput<'_, R>,
    config: &GdpoConfig,
    scratch: GdpoScratch<'_, R>,
    out: &mut [R],
) -> Result<()> {
    check_sequences(batch, groups)?;
    check_len("moments", scratch.moments, group_scratch_len(groups))?;
    check_len("scores", scratch.scores, gdpo_scratch_len(groups))?;
    check_len("out", out, batch.tokens())?;
    check_whiten(batch, &config.whiten)?;
    weighted_sum(groups, input, &config.group, config.factors, scratch.moments, scratch.scores)?;
    for (row, &score) in batch.rows().zip(&*scratch.scores) {
        row.of_mut(out).fill(score);
    }
    whiten_in_place(batch, out, &config.whiten)
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::{advantage::Singleton, Divisor};

    fn verl(ids: &[u32], input: GdpoInput<'_, f64>) -> Result<[f64; 20]> {
        let groups = Groups::from_ids(ids)?;
        let (mut moments, mut scores, mut out) = ([Moments::default(); 4], [9.0; 4], [9.0; 20]);
        let config = GdpoConfig {
            group: GroupConfig { singleton: Singleton::Raw, ..Default::default() },
            factors: FactorPrecision::Single,
            whiten: WhitenConfig { divisor: Divisor::CountPlusEpsilon, ..Default::default() },
        };
        let scratch = GdpoScratch { moments: &mut moments[..groups.count()], scores: &mut scores };
        gdpo(&batch(), &groups, input, &config, scratch, &mut out).map(|()| out)
    }

    #[test]
    fn one_source_of_verl_0_9_1() {
        let input = GdpoInput { sources: &SCORES, weights: &[1.0] };
        for (ids, expected) in [
            (PAIRS, [0.7888077899648352, -1.1832142410726523, -1.183219353980795, 0.7888129028729779]),
            ([0, 0, 1, 2], [0.13946856404655428, -0.9955793039759148, -1.230659189183525, 1.1771522684730094]),
            ([0, 1, 0, 0], [-0.27897537259429317, 0.5209835665760358, -2.2485650492052653, 0.7058194657111928]),
        ] {
            assert_close(&verl(&ids, input).unwrap(), &on_tokens(expected));
        }
    }

    #[test]
    fn two_sources_of_verl_0_9_1_to_single_precision() {
        let sources = [1.0, 0.75, -1.0, 2.0, 0.3, 0.1, 0.2, 0.9];
        let out = verl(&PAIRS, GdpoInput { sources: &sources, weights: &[1.0, 0.3] }).unwrap();
        let expected = on_tokens([0.7888078133731836, -1.1832142387553175, -1.1832193727056857, 0.7888128897823877]);
        for (a, b) in out.iter().zip(expected) {
            approx::assert_abs_diff_eq!(*a, b, epsilon = 1e-7);
        }
    }

    #[test]
    fn refused_calls() {
        let input = GdpoInput { sources: &SCORES, weights: &[f64::NAN] };
        assert_eq!(verl(&PAIRS, input).unwrap_err().code(), "entry");
        let input = GdpoInput { sources: &SCORES, weights: &[1.0, 1.0] };
        assert_eq!(verl(&PAIRS, input).unwrap_err(), Error::Length { what: "sources", expected: 8, got: 4 });
    }
}
