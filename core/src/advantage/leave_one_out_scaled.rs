use super::group::{check_groups, group_moments};
use crate::{
    error::{check_not_negative, Result},
    groups::Groups,
    math::sqrt,
    real::Real,
    statistics::Moments,
};

/// The conventions of [`leave_one_out_scaled`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct LeaveOneOutScaledConfig {
    /// The small number ε ≥ 0 added to the deviation; default 1e-6.
    pub epsilon: f64,
}

impl Default for LeaveOneOutScaledConfig {
    fn default() -> Self {
        Self { epsilon: 1e-6 }
    }
}

/// Each score relative to the mean *and* the spread of the prompt's other samples.
///
/// ```text
/// A_i = (s_i − b_i) / (σ_i + ε)    b_i, σ_i: mean and sample deviation of the prompt's other samples
///       s_i − b_i                  where σ_i is 0, or undefined (a group of two)
/// ```
///
/// A group of one gets 0.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if `scores` or `out` does not have one entry per sequence of
/// `groups`, or `scratch` does not have [`group_scratch_len`](crate::group_scratch_len) entries;
/// [`Error::Config`](crate::Error::Config) if ε is negative or not finite.
///
/// **Reference.** NeMo-RL (2026-08) `calculate_baseline_and_std_per_prompt` with its default leave-one-out baseline;
/// without that baseline it is [`group_relative`](super::group_relative).
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments};
///
/// let groups = Groups::contiguous(&[4, 1])?;
/// let config = LeaveOneOutScaledConfig { epsilon: 0.0 };
/// let (mut scratch, mut out) = ([Moments::default(); 2], [9.0; 5]);
/// leave_one_out_scaled(&groups, &[8.0, 1.0, 2.0, 3.0, 7.0], &config, &mut scratch, &mut out)?;
/// assert_eq!(out[0], 6.0);      // the others have mean 2 and deviation 1
/// leave_one_out_scaled(&groups, &[3.0, 0.0, 0.0, 0.0, 7.0], &config, &mut scratch, &mut out)?;
/// assert_eq!((out[0], out[4]), (3.0, 0.0));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn leave_one_out_scaled<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &LeaveOneOutScaledConfig,
    scratch: &mut [Moments],
    out: &mut [R],
) -> Result<()> {
    check_groups(groups, scores, scratch, out)?;
    check_not_negative::<R>("epsilon", config.epsilon)?;
    group_moments(groups, scores, scratch);
    for (sequence, ((group, &score), out)) in groups.ids().zip(scores).zip(out).enumerate() {
        let moments = &scratch[group];
        if moments.count < 2 {
            *out = R::zero();
            continue;
        }
        let size = moments.count as f64;
        let distance = score.widen() - moments.mean;
        let centred = distance * (size / (size - 1.0));
        let deviation = if moments.count < 3 {
            0.0
        } else {
            let mut rest = moments.m2 - distance * centred;
            // This score caused nearly all of the spread: the subtraction leaves only rounding errors, which must not
            // be a divisor. At most one score of a group is that far out, so recomputing from the others stays cheap.
            if moments.m2 > 0.0 && rest < moments.m2 * CANCELLED {
                rest = spread_of_others(groups, scores, sequence, group);
            }
            sqrt(rest / (size - 2.0))
        };
        // NaN is not equal to 0, so it propagates
        *out = R::narrow(if deviation == 0.0 { centred } else { centred / (deviation + config.epsilon) });
    }
    Ok(())
}

/// If the remaining share of a group's spread is below this, the subtraction has lost 20 of its 52 bits.
const CANCELLED: f64 = 1.0 / 1048576.0;

/// The sum of squared deviations of a group without one sequence; exactly 0 if the others are equal.
fn spread_of_others<R: Real>(groups: &Groups<'_>, scores: &[R], without: usize, group: usize) -> f64 {
    let others = || {
        let members = groups.ids().zip(scores).enumerate();
        members.filter(move |&(sequence, (g, _))| g == group && sequence != without).map(|(_, (_, x))| x.widen())
    };
    let Some(origin) = others().next() else { return 0.0 };
    let (mut count, mut sum) = (0.0, 0.0);
    for x in others() {
        count += 1.0;
        sum += x - origin;
    }
    let mean = sum / count;
    let mut squares = 0.0;
    for x in others() {
        let deviation = (x - origin) - mean;
        squares += deviation * deviation;
    }
    squares
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::assert_close, *};

    fn run(scores: &[f64]) -> Vec<f64> {
        let groups = vec![0; scores.len()];
        let groups = Groups::from_ids(&groups).unwrap();
        let (mut scratch, mut out) = ([Moments::default(); 1], vec![9.0; scores.len()]);
        leave_one_out_scaled(&groups, scores, &Default::default(), &mut scratch, &mut out).unwrap();
        out
    }

    #[test]
    fn the_textbook_says_the_same() {
        let scores = [0.3, -1.7, 2.2, 0.1, 0.9];
        let out = run(&scores);
        for (i, &score) in scores.iter().enumerate() {
            let others: Vec<f64> = (0..5).filter(|&j| j != i).map(|j| scores[j]).collect();
            let mean = (others[0] + others[1] + others[2] + others[3]) / 4.0;
            let square = |j: usize| (others[j] - mean) * (others[j] - mean);
            let deviation = sqrt((square(0) + square(1) + square(2) + square(3)) / 3.0);
            assert_close(&[out[i]], &[(score - mean) / (deviation + 1e-6)]);
        }
    }

    #[test]
    fn the_odd_one_out_among_equals_is_not_divided_by_rounding() {
        for (odd, rest) in [(1.0, 0.1), (0.3, 0.7), (-1e3, 1.0 / 3.0)] {
            for size in 3..40 {
                let mut scores = vec![rest; size];
                scores[size / 2] = odd;
                let out = run(&scores);
                assert!(approx::relative_eq!(out[size / 2], odd - rest, max_relative = 1e-9), "{odd} {rest} {size}");
            }
        }
        assert_close(&run(&[1.0, 3.0]), &[-2.0, 2.0]);
        assert_eq!(run(&[0.5; 4]), [0.0; 4]);
    }

    #[test]
    fn an_outlier_is_compared_with_the_spread_of_its_own_group() {
        let ids = [0, 1, 0, 1, 0, 0, 1];
        let scores = [1e6, 7.0, 1.0, -3.0, 1.5, 2.75, 2.0];
        let (mut scratch, mut out) = ([Moments::default(); 2], [9.0; 7]);
        let groups = Groups::from_ids(&ids).unwrap();
        leave_one_out_scaled(&groups, &scores, &Default::default(), &mut scratch, &mut out).unwrap();
        // 1, 1.5 and 2.75 have mean 1.75 and squared deviations 0.5625, 0.0625 and 1, with divisor 2
        assert!(approx::relative_eq!(out[0], (1e6 - 1.75) / (sqrt(0.8125) + 1e-6), max_relative = 1e-12), "{}", out[0]);
    }
}
