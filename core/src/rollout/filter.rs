use crate::{
    error::{check_config, check_len, check_not_negative, check_range, Result},
    groups::{group_scratch_len, Groups},
    math::sqrt,
    real::Real,
    statistics::{Divisor, Moments, Spread},
};

/// When [`dynamic_sampling_filter`] keeps a prompt.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum GroupRule {
    /// Unless all scores are exactly equal; a single sample is kept. verl 0.9.1 (`filter_groups`, where numpy's
    /// rounding lets three scores of 0.1 pass), NeMo-RL.
    #[default]
    NotConstant,
    /// If the standard deviation (divided by `n − 1`) is above `at_least`; a single sample is dropped. slime: 1e-6.
    Spread {
        /// Not negative.
        at_least: f64,
    },
    /// If the mean is strictly between the two. OpenRLHF 0.11 and TorchRL: 0 and 1; ROLL: 0.1 and 0.95.
    MeanBetween {
        /// Not NaN.
        low: f64,
        /// Not below `low`.
        high: f64,
    },
}

#[cfg(feature = "serde")]
crate::spelling::tagged! {
    GroupRule { at_least: f64, low: f64, high: f64 }
    "not-constant" NotConstant() = { Self::NotConstant }
    "spread" Spread(at_least) = { Self::Spread { at_least } }
    "mean-between" MeanBetween(low, high) = { Self::MeanBetween { low, high } }
}

/// Keeps the prompts whose samples differ enough to learn from.
///
/// ```text
/// NotConstant: std ≠ 0 or K = 1      Spread: std > at_least      MeanBetween: low < mean < high
/// ```
///
/// **Alignment.** `scores` has one entry per sequence, `scratch` ([`group_scratch_len`]) and `keep` one per group.
///
/// **Mask.** None: sequences, not tokens. A group without sequences is dropped.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `groups`;
/// [`Error::Config`](crate::Error::Config) if a bound is outside its domain.
///
/// **Reference.** Yu et al. 2025 (DAPO), arXiv:2503.14476, eq. 11. Rules by framework: [`GroupRule`].
///
/// # Example
///
/// ```
/// use tokenwise::{rollout::*, Groups, Moments};
///
/// let groups = Groups::contiguous(&[2, 2, 1])?;
/// let (mut scratch, mut keep) = ([Moments::default(); 3], [false; 3]);
/// dynamic_sampling_filter(&groups, &[1.0, 1.0, 0.0, 1.0, 1.0], &GroupRule::NotConstant, &mut scratch, &mut keep)?;
/// assert_eq!(keep, [false, true, true]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn dynamic_sampling_filter<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &GroupRule,
    scratch: &mut [Moments],
    keep: &mut [bool],
) -> Result<()> {
    check_len("scores", scores, groups.sequences())?;
    check_len("scratch", scratch, group_scratch_len(groups))?;
    check_len("keep", keep, groups.count())?;
    match *config {
        GroupRule::NotConstant => {}
        GroupRule::Spread { at_least } => check_not_negative::<R>("at_least", at_least)?,
        GroupRule::MeanBetween { low, high } => {
            check_config("low", "a number", low, !low.is_nan())?;
            check_config("high", "not below low", high, high >= low)?;
            check_range::<R>("low", low)?;
            check_range::<R>("high", high)?;
        }
    }
    scratch.fill(Moments::default());
    for (group, score) in groups.ids().zip(scores) {
        scratch[group].merge(&Moments { count: 1, mean: score.widen(), m2: 0.0 });
    }
    for (keep, moments) in keep.iter_mut().zip(scratch.iter()) {
        *keep = match *config {
            // equal scores cause no rounding error: every deviation is exactly 0
            GroupRule::NotConstant => moments.count == 1 || (moments.count > 1 && moments.m2 != 0.0),
            GroupRule::Spread { at_least } => {
                moments.variance(Spread::Sample, Divisor::Count).is_ok_and(|variance| sqrt(variance) > at_least)
            }
            GroupRule::MeanBetween { low, high } => moments.count > 0 && moments.mean > low && moments.mean < high,
        };
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rules_differ_on_a_lone_sample_and_on_dust() {
        let groups = Groups::contiguous(&[1, 3, 2]).unwrap();
        let scores = [0.5, 0.1, 0.1, 0.1, 0.5, 0.5 + 1e-9];
        let mut scratch = [Moments::default(); 3];
        for (rule, expected) in [
            (GroupRule::NotConstant, [true, false, true]),
            (GroupRule::Spread { at_least: 1e-6 }, [false, false, false]),
            (GroupRule::MeanBetween { low: 0.1, high: 0.95 }, [true, false, true]),
        ] {
            let mut keep = [false; 3];
            dynamic_sampling_filter(&groups, &scores, &rule, &mut scratch, &mut keep).unwrap();
            assert_eq!(keep, expected, "{rule:?}");
        }
    }
}
