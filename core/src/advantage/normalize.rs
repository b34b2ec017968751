use super::group::{check_groups, group_moments, merged};
use crate::{
    error::{check_not_negative, Result},
    groups::Groups,
    math::sqrt,
    real::Real,
    reduce::Sum,
    statistics::{Moments, Spread},
};

/// The scores that a statistic is computed over.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Level {
    /// All scores of the batch.
    Batch,
    /// The scores of the same prompt.
    #[default]
    Group,
    /// None: no mean is subtracted, or nothing is divided.
    Off,
}

/// Whether a score counts in the mean it is compared with.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Own {
    /// Yes.
    #[default]
    Included,
    /// No: leave-one-out; a score without others is compared with 0.
    LeftOut,
}

/// The conventions of [`normalize_scores`]; the default is GRPO's rule with AReaL's ε.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct NormalizeConfig {
    /// Which mean is subtracted; default the group's.
    pub mean: Level,
    /// Whether a score counts in its own mean; default yes.
    pub own: Own,
    /// Which deviation to divide by; default the group's.
    pub deviation: Level,
    /// Variance divided by `n − 1` (default) or `n`.
    pub spread: Spread,
    /// The small number ε ≥ 0 added to the deviation; default 1e-5. Not used if there is no deviation.
    pub epsilon: f64,
}

impl Default for NormalizeConfig {
    fn default() -> Self {
        Self { mean: Level::Group, own: Own::Included, deviation: Level::Group, spread: Spread::Sample, epsilon: 1e-5 }
    }
}

/// Scores minus a mean, divided by a deviation, each over the batch, the prompt, or not at all.
///
/// ```text
/// c_i = s_i − m_i                        m over batch or group, with or without s_i itself, or 0
/// A_i = c_i / (√(Σ_j c_j² / d) + ε)      j over batch or group; d = n − 1 or n; without a deviation A = c
/// ```
///
/// The deviation is that of `c` around 0: with a leave-one-out mean or none, it is larger than that of the scores. A
/// single score has deviation 1 where `d = n − 1`.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `scores` or `out` does not have one entry per sequence of
/// `groups`, or `scratch` does not have [`group_scratch_len`](crate::group_scratch_len) entries;
/// [`Error::Config`](crate::Error::Config) if ε is negative or not finite.
///
/// **Reference.** AReaL (2026-08) `Normalization` of rewards: `mean_level`, `mean_leave1out`, `std_level`,
/// `std_unbiased`, `eps`; its groups are contiguous and of one size. Batch and batch with ε = 1e-4 is the last step of
/// TRL 1.16 `normalize_then_sum`; batch mean without deviation is OpenRLHF 0.11 `flash_reinforce`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments, Spread};
///
/// let groups = Groups::contiguous(&[2, 2])?;
/// let (mut scratch, mut out) = ([Moments::default(); 2], [9.0; 4]);
/// let config = NormalizeConfig {
///     deviation: Level::Batch,
///     spread: Spread::Population,
///     epsilon: 0.0,
///     ..Default::default()
/// };
/// normalize_scores(&groups, &[0.0, 2.0, 5.0, 7.0], &config, &mut scratch, &mut out)?;
/// assert_eq!(out, [-1.0, 1.0, -1.0, 1.0]);
/// let config = NormalizeConfig { own: Own::LeftOut, deviation: Level::Off, ..Default::default() };
/// normalize_scores(&groups, &[0.0, 2.0, 5.0, 7.0], &config, &mut scratch, &mut out)?;
/// assert_eq!(out, [-2.0, 2.0, -2.0, 2.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn normalize_scores<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &NormalizeConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_groups(groups, scores, scratch, out)?;
    check_not_negative::<R>("epsilon", config.epsilon)?;
    group_moments(groups, scores, scratch);
    let all = merged(scratch);
    let centred = |score: R, group: &Moments| {
        let (score, moments) = match config.mean {
            Level::Off => return score.widen(),
            Level::Batch => (score.widen(), &all),
            Level::Group => (score.widen(), group),
        };
        let n = moments.count as f64;
        match config.own {
            Own::Included => score - moments.mean,
            Own::LeftOut if moments.count < 2 => score,
            Own::LeftOut => (score - moments.mean) * (n / (n - 1.0)),
        }
    };
    // from here on m2 holds the squares of the centred scores
    for moments in scratch.iter_mut() {
        moments.m2 = 0.0;
    }
    let mut squares = Sum::default();
    for (group, &score) in groups.ids().zip(scores) {
        let c = centred(score, &scratch[group]);
        scratch[group].m2 += c * c;
        squares.add(c * c);
    }
    let deviation = |count: u64, squares: f64| match config.spread {
        Spread::Sample if count < 2 => 1.0,
        Spread::Sample => sqrt(squares / (count as f64 - 1.0)),
        Spread::Population => sqrt(squares / count as f64),
    };
    let over_batch = deviation(all.count, squares.value());
    for ((group, &score), out) in groups.ids().zip(scores).zip(out) {
        let group = &scratch[group];
        let c = centred(score, group);
        *out = R::narrow(match config.deviation {
            Level::Off => c,
            // equal scores with ε = 0: 0 rather than 0 / 0
            _ if c == 0.0 => 0.0,
            Level::Batch => c / (over_batch + config.epsilon),
            Level::Group => c / (deviation(group.count, group.m2) + config.epsilon),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};
    use crate::advantage::{group_relative, leave_one_out, GroupConfig, LeaveOneOutConfig};

    fn run(ids: &[u32], config: &NormalizeConfig) -> [f64; 4] {
        let groups = Groups::from_ids(ids).unwrap();
        let (mut scratch, mut out) = ([Moments::default(); 4], [9.0; 4]);
        normalize_scores(&groups, &SCORES, config, &mut scratch[..groups.count()], &mut out).unwrap();
        out
    }

    #[test]
    fn group_and_group_is_grpo_and_left_out_without_deviation_is_rloo() {
        let groups = Groups::from_ids(&PAIRS).unwrap();
        let (mut scratch, mut expected) = ([Moments::default(); 2], [9.0; 4]);
        let config = GroupConfig { epsilon: 1e-5, ..Default::default() };
        group_relative(&groups, &SCORES, &config, &mut scratch, &mut expected).unwrap();
        assert_close(&run(&PAIRS, &NormalizeConfig::default()), &expected);
        leave_one_out(&groups, &SCORES, &LeaveOneOutConfig::default(), &mut scratch, &mut expected).unwrap();
        let config = NormalizeConfig { own: Own::LeftOut, deviation: Level::Off, ..Default::default() };
        assert_close(&run(&PAIRS, &config), &expected);
    }

    #[test]
    fn the_deviation_is_around_the_mean_that_was_taken_away() {
        // no mean: the root mean square of 1, 0.75, −1, 2
        let config = NormalizeConfig {
            mean: Level::Off,
            deviation: Level::Batch,
            spread: Spread::Population,
            epsilon: 0.0,
            ..Default::default()
        };
        let root = sqrt((1.0 + 0.5625 + 1.0 + 4.0) / 4.0);
        assert_close(&run(&PAIRS, &config), &SCORES.map(|score| score / root));
        // leave-one-out over the batch: centred scores are 4/3 of the plain ones
        let config = NormalizeConfig { mean: Level::Batch, own: Own::LeftOut, epsilon: 0.0, ..Default::default() };
        let centred = SCORES.map(|score| (score - 0.6875) * 4.0 / 3.0);
        let pair = |a: f64, b: f64| sqrt(a * a + b * b);
        let (first, second) = (pair(centred[0], centred[1]), pair(centred[2], centred[3]));
        let expected = [centred[0] / first, centred[1] / first, centred[2] / second, centred[3] / second];
        assert_close(&run(&PAIRS, &config), &expected);
    }

    #[test]
    fn a_score_on_its_own_is_compared_with_zero_when_left_out() {
        let config = NormalizeConfig { own: Own::LeftOut, epsilon: 0.0, ..Default::default() };
        assert_eq!(run(&[0, 0, 1, 2], &config)[2..], [-1.0, 2.0]);
        assert_eq!(run(&[0, 0, 1, 2], &NormalizeConfig::default())[2..], [0.0, 0.0]);
    }
}
