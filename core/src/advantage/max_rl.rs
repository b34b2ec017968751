use super::{
    group::{check_groups, group_moments},
    Singleton,
};
use crate::{
    error::{check_not_negative, Result},
    groups::Groups,
    real::Real,
    statistics::Moments,
};

/// What keeps a division by the mean score finite.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum MeanDivisor {
    /// `mean + ε`. SkyRL (2026-08).
    #[default]
    PlusEpsilon,
    /// The mean where it is positive; 0 for the whole group where it is not. prime-rl (2026-08).
    IfPositive,
}

/// The conventions of [`max_rl`]; the default is SkyRL's rule except for groups of one.
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct MaxRlConfig {
    /// How the mean is used as a divisor; default with ε.
    pub divisor: MeanDivisor,
    /// The small number ε ≥ 0; default 1e-6. [`MeanDivisor::IfPositive`] does not use it.
    pub epsilon: f64,
    /// What a group of one gets, undivided; default 0.
    pub singleton: Singleton,
}

impl Default for MaxRlConfig {
    fn default() -> Self {
        Self { divisor: MeanDivisor::PlusEpsilon, epsilon: 1e-6, singleton: Singleton::Zero }
    }
}

/// Scores minus their prompt's mean, divided by that mean: rare successes count most (MaxRL).
///
/// ```text
/// A_i = (s_i − mean_j s_j) / (mean_j s_j + ε)        j over the samples of i's prompt
/// ```
///
/// With scores of 0 and 1 and a share p of successes: `(1 − p) / p` for a success, −1 for a failure.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `scores` or `out` does not have one entry per sequence of
/// `groups`, or `scratch` does not have [`group_scratch_len`](crate::group_scratch_len) entries;
/// [`Error::Config`](crate::Error::Config) if ε is negative or not finite.
///
/// **Reference.** Tajwar et al. 2026, arXiv:2602.02710. SkyRL (2026-08): `PlusEpsilon` with [`Singleton::Raw`];
/// prime-rl (2026-08): `IfPositive` with [`Singleton::Zero`].
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments};
///
/// let groups = Groups::contiguous(&[4, 2])?;
/// let config = MaxRlConfig { divisor: MeanDivisor::IfPositive, ..Default::default() };
/// let (mut scratch, mut out) = ([Moments::default(); 2], [9.0; 6]);
/// max_rl(&groups, &[1.0, 0.0, 0.0, 0.0, 0.0, 0.0], &config, &mut scratch, &mut out)?;
/// assert_eq!(out, [3.0, -1.0, -1.0, -1.0, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn max_rl<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &MaxRlConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_groups(groups, scores, scratch, out)?;
    check_not_negative::<R>("epsilon", config.epsilon)?;
    group_moments(groups, scores, scratch);
    for ((group, &score), out) in groups.ids().zip(scores).zip(out) {
        let (moments, score) = (&scratch[group], score.widen());
        let centred = score - moments.mean;
        *out = R::narrow(if moments.count < 2 {
            config.singleton.alone(score)
        } else if centred == 0.0 {
            // equal scores of 0 with ε = 0: 0 rather than 0 / 0
            0.0
        } else {
            match config.divisor {
                MeanDivisor::PlusEpsilon => centred / (moments.mean + config.epsilon),
                MeanDivisor::IfPositive if moments.mean <= 0.0 => 0.0,
                MeanDivisor::IfPositive => centred / moments.mean,
            }
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};

    fn run(ids: &[u32], config: &MaxRlConfig) -> [f64; 4] {
        let groups = Groups::from_ids(ids).unwrap();
        let (mut scratch, mut out) = ([Moments::default(); 4], [9.0; 4]);
        max_rl(&groups, &SCORES, config, &mut scratch[..groups.count()], &mut out).unwrap();
        out
    }

    #[test]
    fn both_rules_by_hand() {
        let skyrl = MaxRlConfig { singleton: Singleton::Raw, ..Default::default() };
        let (first, second) = (0.125 / 0.875_001, 1.5 / 0.500_001);
        assert_close(&run(&PAIRS, &skyrl), &[first, -first, -second, second]);
        assert_close(&run(&[0, 0, 1, 2], &skyrl), &[first, -first, -1.0, 2.0]);
        let prime = MaxRlConfig { divisor: MeanDivisor::IfPositive, ..Default::default() };
        assert_close(&run(&PAIRS, &prime), &[0.125 / 0.875, -0.125 / 0.875, -3.0, 3.0]);
        assert_close(&run(&[0, 1, 1, 2], &prime), &[0.0; 4]); // means −0.125 and groups of one
    }
}
