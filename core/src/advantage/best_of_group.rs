use super::{
    group::{batch_deviation, group_moments},
    GroupScale,
};
use crate::{
    error::{check_len, check_not_negative, Error, Result},
    groups::{group_scratch_len, Groups},
    math::sqrt,
    real::Real,
    statistics::{Divisor, Moments, Spread},
};

/// The conventions of [`best_of_group`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct BestOfGroupConfig {
    /// What to divide by; default the group's spread.
    pub scale: GroupScale,
    /// Variance divided by `n − 1` (default) or `n`.
    pub spread: Spread,
    /// The small number ε ≥ 0 added to the deviation; default 1e-6.
    pub epsilon: f64,
}

impl Default for BestOfGroupConfig {
    fn default() -> Self {
        Self { scale: GroupScale::StandardDeviation, spread: Spread::Sample, epsilon: 1e-6 }
    }
}

/// The two largest numbers of a group. Some estimators keep one of these per group.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct TopTwo {
    pub(super) count: u64,
    /// The sequence with the largest number; the first one in a tie.
    pub(super) first: usize,
    pub(super) largest: f64,
    pub(super) second: f64,
}

impl TopTwo {
    /// NaN counts as larger than every number, so that it propagates.
    pub(super) fn add(&mut self, sequence: usize, x: f64) {
        if self.count == 0 || x > self.largest || (x.is_nan() && !self.largest.is_nan()) {
            self.second = self.largest;
            (self.first, self.largest) = (sequence, x);
        } else if self.count == 1 || x > self.second || x.is_nan() {
            self.second = x;
        }
        self.count += 1;
    }
}

const SHARED: &str = "an id that another sequence has too";

/// Working memory of [`best_of_group`]; the content before a call does not matter.
#[derive(Debug)]
pub struct BestOfGroupScratch<'a> {
    /// [`group_scratch_len`](crate::group_scratch_len) entries.
    pub moments: &'a mut [Moments],
    /// [`best_of_group_scratch_len`] entries.
    pub top: &'a mut [TopTwo],
}

/// Entries of [`BestOfGroupScratch::top`]: one per group.
pub const fn best_of_group_scratch_len(groups: &Groups<'_>) -> usize {
    groups.count()
}

/// The best sample of a prompt gets its lead over the second best, all others get 0: for training pass@k.
///
/// ```text
/// A_i = (s_i − second best s) / (std_j s_j + ε)    for the best sample of a prompt, else 0
/// ```
///
/// A tie for the best sample gives zeros.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`] if `scores` or `out` does not have one entry per sequence of `groups`, or a scratch
/// slice does not have its length; [`Error::Config`] if ε is negative or not finite; [`Error::Entry`] with the index of
/// the first sequence that is alone in its group.
///
/// **Reference.** Tang et al. 2025, arXiv:2503.19595, in the form of verl 0.9.1 `grpo_passk`: `StandardDeviation`, or
/// `Unit` without `norm_adv_by_std_in_grpo`.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Groups, Moments};
///
/// let groups = Groups::from_ids(&[0, 1, 0, 1, 0])?;
/// let config = BestOfGroupConfig { scale: GroupScale::Unit, ..Default::default() };
/// let scratch = BestOfGroupScratch { moments: &mut [Moments::default(); 2], top: &mut [TopTwo::default(); 2] };
/// let mut out = [9.0; 5];
/// best_of_group(&groups, &[1.0, 2.0, 4.0, 2.0, 3.5], &config, scratch, &mut out)?;
/// assert_eq!(out, [0.0, 0.0, 0.5, 0.0, 0.0]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn best_of_group<R: Real>(
    groups: &Groups<'_>,
    scores: &[R],
    config: &BestOfGroupConfig,
    scratch: BestOfGroupScratch<'_>,
    out: &mut [R],
) -> Result<()> {
    check_len("scores", scores, groups.sequences())?;
    check_len("moments", scratch.moments, group_scratch_len(groups))?;
    check_len("top", scratch.top, best_of_group_scratch_len(groups))?;
    check_len("out", out, groups.sequences())?;
    check_not_negative::<R>("epsilon", config.epsilon)?;
    scratch.top.fill(TopTwo::default());
    for (sequence, (group, &score)) in groups.ids().zip(scores).enumerate() {
        scratch.top[group].add(sequence, score.widen());
    }
    if let Some((index, group)) = groups.ids().enumerate().find(|&(_, group)| scratch.top[group].count == 1) {
        return Err(Error::Entry { what: "groups", index, must_be: SHARED, got: group as f64 });
    }
    group_moments(groups, scores, scratch.moments);
    let batch_deviation = batch_deviation(scratch.moments, config.scale, config.spread)?;
    for (sequence, (group, out)) in groups.ids().zip(out).enumerate() {
        let top = &scratch.top[group];
        let lead = top.largest - top.second;
        // equal scores with ε = 0: 0 rather than 0 / 0
        if sequence != top.first || lead == 0.0 {
            *out = R::zero();
            continue;
        }
        let deviation = match config.scale {
            GroupScale::Unit => {
                *out = R::narrow(lead);
                continue;
            }
            GroupScale::StandardDeviation => sqrt(scratch.moments[group].variance(config.spread, Divisor::Count)?),
            GroupScale::BatchDeviation => batch_deviation,
        };
        *out = R::narrow(lead / (deviation + config.epsilon));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};

    fn run(ids: &[u32], scores: &[f64; 4], config: &BestOfGroupConfig) -> Result<[f64; 4]> {
        let groups = Groups::from_ids(ids)?;
        let (mut moments, mut top) = ([Moments::default(); 4], [TopTwo::default(); 4]);
        let n = groups.count();
        let mut out = [9.0; 4];
        let scratch = BestOfGroupScratch { moments: &mut moments[..n], top: &mut top[..n] };
        best_of_group(&groups, scores, config, scratch, &mut out).map(|()| out)
    }

    #[test]
    fn verl_0_9_1() {
        let scaled = run(&PAIRS, &SCORES, &BestOfGroupConfig::default()).unwrap();
        assert_close(&scaled, &[1.4142055624183496, 0.0, 0.0, 1.4142128957067426]);
        let unit = BestOfGroupConfig { scale: GroupScale::Unit, ..Default::default() };
        assert_close(&run(&PAIRS, &SCORES, &unit).unwrap(), &[0.25, 0.0, 0.0, 3.0]);
    }

    #[test]
    fn a_group_of_one_is_refused_and_an_empty_one_is_not() {
        let config = BestOfGroupConfig::default();
        let error = Error::Entry { what: "groups", index: 2, must_be: SHARED, got: 1.0 };
        assert_eq!(run(&[0, 0, 1, 2], &SCORES, &config), Err(error));
        assert!(run(&[3, 3, 1, 1], &SCORES, &config).is_ok());
    }

    #[test]
    fn ties_give_zeros_and_nan_stays() {
        let config = BestOfGroupConfig { epsilon: 0.0, ..Default::default() };
        assert_eq!(run(&[0; 4], &[1.0; 4], &config), Ok([0.0; 4]));
        let out = run(&[0; 4], &[1.0, f64::NAN, 3.0, 2.0], &config).unwrap();
        assert!(out[1].is_nan() && out[0] == 0.0 && out[2] == 0.0);
    }

    #[test]
    fn the_first_of_two_equals_is_the_best() {
        let mut top = TopTwo::default();
        [1.0, 2.0, 2.0].iter().enumerate().for_each(|(sequence, &x)| top.add(sequence, x));
        assert_eq!((top.first, top.largest, top.second), (1, 2.0, 2.0));
    }
}
