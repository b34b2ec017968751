use crate::{
    error::{check_count, check_len, check_not_negative, Result},
    groups::{group_scratch_len, Groups},
    layout::Batch,
    math::sqrt,
    real::Real,
    statistics::{Divisor, Moments, Spread},
};

/// The advantage of the only sample of a prompt, which has no other sample to compare with.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Singleton {
    /// 0: no comparison, no signal. TRL 1.16; verl's `rloo_vectorized`.
    #[default]
    Zero,
    /// Its score, as if mean were 0 and deviation 1 (divided by `1 + ε` in single precision where GRPO scales). verl
    /// 0.9.1.
    Raw,
    /// NaN: the sample deviation of one score. OpenRLHF 0.11.
    Undefined,
}

impl Singleton {
    /// The advantage of a lone score that is not divided.
    pub(super) fn alone(self, score: f64) -> f64 {
        match self {
            Self::Zero => 0.0,
            Self::Raw => score,
            Self::Undefined => f64::NAN,
        }
    }
}

/// What group advantages are divided by.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum GroupScale {
    /// Divided by the standard deviation of the group (GRPO).
    #[default]
    StandardDeviation,
    /// Not divided (Dr. GRPO).
    Unit,
    /// Divided by the standard deviation of the raw scores of the whole batch (TRL 1.16 `scale_rewards="batch"`).
    BatchDeviation,
}

/// The conventions of [`group_relative`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GroupConfig {
    /// What to divide by; default the group's standard deviation.
    pub scale: GroupScale,
    /// Variance divided by `n − 1` (default) or `n`.
    pub spread: Spread,
    /// The small number ε ≥ 0 added to the deviation; default 1e-6.
    pub epsilon: f64,
    /// What a group of one gets; default 0.
    pub singleton: Singleton,
}

impl Default for GroupConfig {
    fn default() -> Self {
        Self { scale: GroupScale::StandardDeviation, spread: Spread::Sample, epsilon: 1e-6, singleton: Singleton::Zero }
    }
}

/// The conventions of [`leave_one_out`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct LeaveOneOutConfig {
    /// What a group of one gets; default 0.
    pub singleton: Singleton,
}

/// Scores of one prompt's samples, compared with each other (GRPO; [`GroupScale::Unit`] is Dr. GRPO).
///
/// ```text
/// A_i = (s_i − mean_j s_j) / (std_j s_j + ε)        j over the samples of i's prompt
/// ```
///
/// A group of equal scores gives zeros.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens,
/// [`sequence_sums`](super::sequence_sums) turns token rewards into scores.
///
/// **Mask.** None: sequences, not tokens. To exclude a sequence, leave it out of `groups` and `scores`.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `scores` or `out` does not have one entry per sequence of
/// `groups`, or `scratch` does not have [`group_scratch_len`](crate::group_scratch_len) entries;
/// [`Error::Config`](crate::Error::Config) if ε is negative or not finite.
///
/// **Reference.** Shao et al. 2024, arXiv:2402.03300, §4.1.2; Dr. GRPO: Liu et al. 2025, arXiv:2503.20783. All divide
/// by the sample deviation; ε is 1e-6 in verl 0.9.1 (`Singleton::Raw`), 1e-4 in TRL 1.16 (`Zero`), 1e-9 in OpenRLHF
/// 0.11 (`Undefined`). TRL's `scale_rewards` is `StandardDeviation` ("group"), [`GroupScale::BatchDeviation`] ("batch")
/// or `Unit` ("none").
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments, Spread};
///
/// let groups = Groups::from_ids(&[0, 1, 0, 1, 2])?;
/// let config = GroupConfig { spread: Spread::Population, epsilon: 0.0, ..Default::default() };
/// let (mut scratch, mut out) = ([Moments::default(); 3], [9.0; 5]);
/// group_relative(&groups, &[1.0, 4.0, 3.0, 4.0, 7.0], &config, &mut scratch, &mut out)?;
/// assert_eq!(out, [-1.0, 0.0, 1.0, 0.0, 0.0]);      // a pair, a tie, a group of one
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn group_relative<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &GroupConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_groups(groups, scores, scratch, out)?;
    check_not_negative::<R>("epsilon", config.epsilon)?;
    group_moments(groups, scores, scratch);
    let batch_deviation = batch_deviation(scratch, config.scale, config.spread)?;
    // verl keeps the deviation of 1 in single precision regardless of the type of the scores, and adds ε there
    let lone = f64::from((1.0 + config.epsilon) as f32);
    for ((group, &score), out) in groups.ids().zip(scores).zip(out) {
        *out = R::narrow(relative(score.widen(), &scratch[group], config, lone, batch_deviation)?);
    }
    Ok(())
}

/// The advantage of one score in its group; `lone` divides the raw score of a group of one.
pub(super) fn relative(
    score: f64,
    moments: &Moments,
    config: &GroupConfig,
    lone: f64,
    batch_deviation: f64,
) -> Result<f64> {
    let (mean, deviation) = if moments.count < 2 {
        match config.singleton {
            Singleton::Zero => (score, 1.0),
            Singleton::Raw => (0.0, lone),
            Singleton::Undefined => (f64::NAN, 1.0),
        }
    } else if config.scale == GroupScale::StandardDeviation {
        (moments.mean, sqrt(moments.variance(config.spread, Divisor::Count)?) + config.epsilon)
    } else {
        (moments.mean, 1.0)
    };
    let centred = score - mean;
    Ok(match config.scale {
        GroupScale::Unit => centred,
        // equal scores with ε = 0: 0 rather than 0 / 0
        _ if centred == 0.0 => 0.0,
        GroupScale::StandardDeviation => centred / deviation,
        GroupScale::BatchDeviation => centred / (batch_deviation + config.epsilon),
    })
}

/// The deviation of all scores if `scale` needs it, else 0; 0 also if there are too few scores.
pub(super) fn batch_deviation(groups: &[Moments], scale: GroupScale, spread: Spread) -> Result<f64> {
    if scale != GroupScale::BatchDeviation {
        return Ok(0.0);
    }
    let all = merged(groups);
    if all.count < spread.needs() {
        return Ok(0.0);
    }
    Ok(sqrt(all.variance(spread, Divisor::Count)?))
}

/// The moments of all scores.
pub(super) fn merged(groups: &[Moments]) -> Moments {
    let mut all = Moments::default();
    for moments in groups {
        all.merge(moments);
    }
    all
}

/// Each score minus the mean of the prompt's other samples (RLOO).
///
/// ```text
/// A_i = s_i − mean_{j≠i} s_j = (s_i − mean_j s_j) · K / (K − 1)        K samples of i's prompt
/// ```
///
/// **Alignment.** One entry per sequence, in and out.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `scores` or `out` does not have one entry per sequence of
/// `groups`, or `scratch` does not have [`group_scratch_len`](crate::group_scratch_len) entries.
///
/// **Reference.** Ahmadian et al. 2024, arXiv:2402.14740, eq. 8. A group of one: verl 0.9.1 `rloo` is `Raw`, its
/// `rloo_vectorized` and TRL 1.16 are `Zero`, OpenRLHF 0.11 is `Undefined`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments};
///
/// let groups = Groups::contiguous(&[3, 1])?;
/// let (mut scratch, mut out) = ([Moments::default(); 2], [9.0; 4]);
/// leave_one_out(&groups, &[0.0, 1.0, 5.0, 7.0], &LeaveOneOutConfig::default(), &mut scratch, &mut out)?;
/// assert_eq!(out, [-3.0, -1.5, 4.5, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn leave_one_out<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &LeaveOneOutConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_groups(groups, scores, scratch, out)?;
    group_moments(groups, scores, scratch);
    for ((group, &score), out) in groups.ids().zip(scores).zip(out) {
        let moments = &scratch[group];
        let size = moments.count as f64;
        *out = if moments.count < 2 {
            R::narrow(config.singleton.alone(score.widen()))
        } else {
            R::narrow((score.widen() - moments.mean) * (size / (size - 1.0)))
        };
    }
    Ok(())
}

/// Rejects groups whose number of sequences is not that of the batch.
pub(super) fn check_sequences(batch: &Batch<'_>, groups: &Groups<'_>) -> Result<()> {
    check_count("groups", groups.sequences(), batch.sequences())
}

pub(super) fn check_groups<R>(groups: &Groups<'_>, scores: &[R], scratch: &[Moments], out: &[R]) -> Result<()> {
    check_len("scores", scores, groups.sequences())?;
    check_len("scratch", scratch, group_scratch_len(groups))?;
    check_len("out", out, groups.sequences())
}

/// Three passes over the scores: the means, their correction, then the squared deviations.
pub(super) fn group_moments<R: Real>(groups: &Groups<'_>, scores: &[R], scratch: &mut [Moments]) {
    scratch.fill(Moments::default());
    for (group, &score) in groups.ids().zip(scores) {
        scratch[group].count += 1;
        scratch[group].mean += score.widen();
    }
    for moments in scratch.iter_mut().filter(|moments| moments.count > 0) {
        moments.mean /= moments.count as f64;
    }
    // adds back the rounding error of the first mean, which matters for nearly tied groups
    for (group, &score) in groups.ids().zip(scores) {
        scratch[group].m2 += score.widen() - scratch[group].mean;
    }
    for moments in scratch.iter_mut().filter(|moments| moments.count > 0) {
        moments.mean += moments.m2 / moments.count as f64;
        moments.m2 = 0.0;
    }
    for (group, &score) in groups.ids().zip(scores) {
        let deviation = score.widen() - scratch[group].mean;
        scratch[group].m2 += deviation * deviation;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batch_deviation_is_that_of_the_raw_scores() {
        let groups = Groups::contiguous(&[2, 2, 1]).unwrap();
        let config = GroupConfig { scale: GroupScale::BatchDeviation, epsilon: 0.0, ..Default::default() };
        let (mut scratch, mut out) = ([Moments::default(); 3], [9.0; 5]);
        // mean 2, squared deviations 4 + 0 + 0 + 4 + 0 over 4
        group_relative(&groups, &[0.0, 2.0, 2.0, 4.0, 2.0], &config, &mut scratch, &mut out).unwrap();
        let unit = 1.0 / sqrt(2.0);
        assert_eq!(out, [-unit, unit, -unit, unit, 0.0]);
        let groups = Groups::contiguous(&[1]).unwrap();
        group_relative(&groups, &[3.0], &config, &mut scratch[..1], &mut out[..1]).unwrap();
        assert_eq!(out[0], 0.0);
    }
}
