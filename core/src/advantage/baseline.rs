use super::{
    group::{check_groups, check_sequences, group_moments},
    Singleton,
};
use crate::{
    error::{check_len, check_positive, Result},
    groups::Groups,
    layout::Batch,
    real::Real,
    statistics::Moments,
};

/// A weighted sum and its total weight. Some estimators keep one per group, or one per group and column.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WeightedSum {
    pub(super) count: u64,
    pub(super) sum: f64,
    pub(super) weight: f64,
}

impl WeightedSum {
    pub(super) fn add(&mut self, x: f64, weight: f64) {
        self.count += 1;
        self.sum += x * weight;
        self.weight += weight;
    }
}

/// The conventions of [`length_weighted_baseline`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct LengthWeightedConfig {
    /// What a group of one gets; default 0.
    pub singleton: Singleton,
}

/// Entries of the scratch of [`length_weighted_baseline`]: one per group.
pub const fn length_weighted_scratch_len(groups: &Groups<'_>) -> usize {
    groups.count()
}

/// Each score minus the prompt's mean score *per token*: the minimum-variance baseline when longer answers weigh more
/// (OPO).
///
/// ```text
/// A_i = s_i − Σ_j n_j s_j / Σ_j n_j        n kept tokens, j over the samples of i's prompt
/// ```
///
/// Equal lengths give the advantages of Dr. GRPO. A group without any kept token gets 0.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens.
///
/// **Mask.** Kept tokens are counted, no token is read.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `groups`, `scores` or `out` does not have one entry per
/// sequence of `batch`, or `scratch` does not have [`length_weighted_scratch_len`] entries.
///
/// **Reference.** Hao et al. 2025 (OPO), arXiv:2505.23585; verl 0.9.1 `opo`, where a group of one is
/// [`Singleton::Raw`].
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Groups, Layout, Mask};
///
/// let batch = Batch::new(Layout::packed(&[0, 1, 5])?, Mask::new(&[true, true, false, true, true]))?;
/// let groups = Groups::contiguous(&[2])?;
/// let (mut scratch, mut out) = ([WeightedSum::default(); 1], [9.0; 2]);
/// length_weighted_baseline(&batch, &groups, &[0.0, 1.0], &LengthWeightedConfig::default(), &mut scratch, &mut out)?;
/// assert_eq!(out, [-0.75, 0.25]);      // one kept token against three
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn length_weighted_baseline<R: Real>(
    batch: &Batch<'_>,
    groups: &Groups<'_>,
    scores: &[R],
    config: &LengthWeightedConfig,
    scratch: &mut [WeightedSum],
    out: &mut [R],
) -> Result<()> {
    check_sequences(batch, groups)?;
    check_len("scores", scores, batch.sequences())?;
    check_len("scratch", scratch, length_weighted_scratch_len(groups))?;
    check_len("out", out, batch.sequences())?;
    scratch.fill(WeightedSum::default());
    for ((row, group), &score) in batch.rows().zip(groups.ids()).zip(scores) {
        scratch[group].add(score.widen(), row.kept() as f64);
    }
    for ((group, &score), out) in groups.ids().zip(scores).zip(out) {
        let (group, score) = (&scratch[group], score.widen());
        *out = R::narrow(if group.count < 2 {
            config.singleton.alone(score)
        } else if group.weight == 0.0 {
            0.0
        } else {
            score - group.sum / group.weight
        });
    }
    Ok(())
}

/// Precision of a factor that depends on counts alone.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum FactorPrecision {
    /// Double, regardless of the type of the scores.
    #[default]
    Exact,
    /// Single, regardless of the type of the scores: relative error up to 1.2e-7. verl 0.9.1.
    Single,
}

impl FactorPrecision {
    pub(super) fn rounded(self, factor: f64) -> f64 {
        match self {
            Self::Exact => factor,
            Self::Single => f64::from(factor as f32),
        }
    }

    /// `numerator / denominator`; in single precision via the reciprocal, as torch divides a number by a tensor.
    fn quotient(self, numerator: f64, denominator: f64) -> f64 {
        match self {
            Self::Exact => numerator / denominator,
            Self::Single => f64::from(1.0 / denominator as f32 * numerator as f32),
        }
    }
}

/// The conventions of [`gpg_advantage`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GpgConfig {
    /// F, the number every advantage is divided by; positive, default 1.
    pub norm: f64,
    /// What a group of one gets instead of its difference from the mean; default 0.
    pub singleton: Singleton,
    /// How α is rounded; by default it is not.
    pub factor: FactorPrecision,
}

impl Default for GpgConfig {
    fn default() -> Self {
        Self { norm: 1.0, singleton: Singleton::Zero, factor: FactorPrecision::Exact }
    }
}

/// Scores minus their prompt's mean, scaled up when many samples of the batch scored 0 (GPG).
///
/// ```text
/// A_i = α (s_i − mean_j s_j) / F        α = samples / max(samples with s ≠ 0, 1), over the whole batch
/// ```
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `scores` or `out` does not have one entry per sequence of
/// `groups`, or `scratch` does not have [`group_scratch_len`](crate::group_scratch_len) entries;
/// [`Error::Config`](crate::Error::Config) if `norm` is not positive.
///
/// **Reference.** Chu et al. 2025 (GPG), arXiv:2504.02546. verl 0.9.1 `gpg`: as here with
/// [`Singleton::Raw`], [`FactorPrecision::Single`].
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments};
///
/// let groups = Groups::contiguous(&[2, 2])?;
/// let (mut scratch, mut out) = ([Moments::default(); 2], [9.0; 4]);
/// gpg_advantage(&groups, &[1.0, 0.0, 0.0, 0.0], &GpgConfig::default(), &mut scratch, &mut out)?;
/// assert_eq!(out, [2.0, -2.0, 0.0, 0.0]);      // one of four scored: α = 4
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn gpg_advantage<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &GpgConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_groups(groups, scores, scratch, out)?;
    check_positive::<R>("norm", config.norm)?;
    group_moments(groups, scores, scratch);
    let scored = scores.iter().filter(|&&score| score != R::zero()).count().max(1);
    let alpha = config.factor.quotient(scores.len() as f64, scored as f64);
    for ((group, &score), out) in groups.ids().zip(scores).zip(out) {
        let (moments, score) = (&scratch[group], score.widen());
        let centred = if moments.count < 2 { config.singleton.alone(score) } else { score - moments.mean };
        *out = R::narrow(alpha * centred / config.norm);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::{Layout, Mask};

    fn opo(ids: &[u32], singleton: Singleton) -> [f64; 4] {
        let groups = Groups::from_ids(ids).unwrap();
        let (mut scratch, mut out) = ([WeightedSum::default(); 4], [9.0; 4]);
        let config = LengthWeightedConfig { singleton };
        length_weighted_baseline(&batch(), &groups, &SCORES, &config, &mut scratch[..groups.count()], &mut out)
            .unwrap();
        out
    }

    fn gpg(ids: &[u32], scores: &[f64; 4], config: &GpgConfig) -> [f64; 4] {
        let groups = Groups::from_ids(ids).unwrap();
        let (mut scratch, mut out) = ([Moments::default(); 4], [9.0; 4]);
        gpg_advantage(&groups, scores, config, &mut scratch[..groups.count()], &mut out).unwrap();
        out
    }

    #[test]
    fn opo_of_verl_0_9_1() {
        assert_close(&opo(&PAIRS, Singleton::Raw), &[0.125, -0.125, -2.142857142857143, 0.8571428571428572]);
        assert_close(&opo(&[0, 0, 1, 2], Singleton::Raw), &[0.125, -0.125, -1.0, 2.0]);
        let mixed = [-0.09090909090909083, 0.75, -2.090909090909091, 0.9090909090909092];
        assert_close(&opo(&[0, 1, 0, 0], Singleton::Raw), &mixed);
        assert_eq!(opo(&[0, 0, 1, 2], Singleton::Zero)[2..], [0.0, 0.0]);
    }

    #[test]
    fn a_group_without_kept_tokens_gets_zeros() {
        let batch = Batch::new(Layout::padded(2, 1).unwrap(), Mask::new(&[false; 2])).unwrap();
        let groups = Groups::contiguous(&[2]).unwrap();
        let (mut scratch, mut out) = ([WeightedSum::default(); 1], [9.0; 2]);
        let config = LengthWeightedConfig::default();
        length_weighted_baseline(&batch, &groups, &[1.0, 2.0], &config, &mut scratch, &mut out).unwrap();
        assert_eq!(out, [0.0; 2]);
        let other = Groups::contiguous(&[3]).unwrap();
        let error = length_weighted_baseline(&batch, &other, &[1.0, 2.0], &config, &mut scratch, &mut out);
        assert_eq!(error.unwrap_err().parameter(), "groups");
    }

    #[test]
    fn gpg_of_verl_0_9_1() {
        let config = GpgConfig { singleton: Singleton::Raw, factor: FactorPrecision::Single, ..Default::default() };
        assert_close(&gpg(&PAIRS, &SCORES, &config), &[0.125, -0.125, -1.5, 1.5]);
        let expected = [0.33333333333333337, 0.75, -1.6666666666666665, 1.3333333333333335];
        assert_close(&gpg(&[0, 1, 0, 0], &SCORES, &config), &expected);
        let scores = [0.0, 0.75, -1.0, 2.0];
        let expected = [-0.5000000149011612, 0.5000000149011612, -1.3333333730697632, 2.6666667461395264];
        assert_close(&gpg(&[0, 0, 1, 2], &scores, &config), &expected);
        assert_close(&gpg(&PAIRS, &scores, &GpgConfig { norm: 2.0, ..Default::default() }), &[-0.25, 0.25, -1.0, 1.0]);
    }
}
