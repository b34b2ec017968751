use crate::{
    error::{check_len, check_unit, refused, Error, Result},
    real::Real,
};

/// The running mean of one role's scores: what the next score of that role is compared with.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RoleBaseline {
    decay: f64,
    baseline: f64,
}

impl RoleBaseline {
    /// Starts at 0. `decay` in `[0, 1]` is the share of the old baseline that an update keeps.
    ///
    /// # Errors
    ///
    /// [`Error::Config`] if `decay` is outside `[0, 1]`.
    pub fn new(decay: f64) -> Result<Self> {
        check_unit("decay", decay)?;
        Ok(Self { decay, baseline: 0.0 })
    }

    /// What the next score is compared with.
    pub const fn baseline(&self) -> f64 {
        self.baseline
    }

    /// The advantage of a score; the baseline then moves towards the score.
    fn advantage(&mut self, score: f64) -> f64 {
        let advantage = score - self.baseline;
        self.baseline = self.decay * self.baseline + (1.0 - self.decay) * score;
        advantage
    }
}

/// Each score against what its role has scored so far: for games in which roles are unequal and answers come one by one (RAE).
///
/// ```text
/// A_i = s_i − b_role        then b_role ← d b_role + (1 − d) s_i
/// ```
///
/// Scores are taken in order; the baselines go on from one call to the next.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) lays them on the tokens.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`] if `scores` or `out` has not one entry per entry of `roles`; [`Error::Entry`] with the first role
/// that has no baseline, or the first score that is not finite, which would spoil the baseline for good.
///
/// **Reference.** Liu et al. 2025 (SPIRAL), arXiv:2506.24119; prime-rl (2026-08), which updates after use, from 0.
///
/// # Example
///
/// ```
/// use tokenwise::advantage::{role_baseline, RoleBaseline};
///
/// let mut baselines = [RoleBaseline::new(0.5)?; 2];
/// let mut out = [9.0; 4];
/// role_baseline(&[0, 1, 0, 1], &[1.0, -1.0, 1.0, 0.0], &mut baselines, &mut out)?;
/// assert_eq!(out, [1.0, -1.0, 0.5, 0.5]);
/// assert_eq!(baselines[0].baseline(), 0.75);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn role_baseline<R: Real>(
    roles: &[u32],
    scores: &[R],
    baselines: &mut [RoleBaseline],
    out: &mut [R],
) -> Result<()> {
    check_len("scores", scores, roles.len())?;
    check_len("out", out, roles.len())?;
    for (index, (&role, score)) in roles.iter().zip(scores).enumerate() {
        if role as usize >= baselines.len() {
            let must_be = "below the number of baselines";
            return refused(Error::Entry { what: "roles", index, must_be, got: f64::from(role) });
        }
        if !score.is_finite() {
            return refused(Error::Entry { what: "scores", index, must_be: "finite", got: score.widen() });
        }
    }
    for ((&role, score), out) in roles.iter().zip(scores).zip(out) {
        *out = R::narrow(baselines[role as usize].advantage(score.widen()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refused_call_moves_no_baseline() {
        let mut baselines = [RoleBaseline::new(0.9).unwrap()];
        let mut out = [9.0; 2];
        let error = role_baseline(&[0, 1], &[1.0, 1.0], &mut baselines, &mut out).unwrap_err();
        assert_eq!((error.parameter(), error.index()), ("roles", Some(1)));
        let error = role_baseline(&[0, 0], &[1.0, f64::INFINITY], &mut baselines, &mut out).unwrap_err();
        assert_eq!(error.index(), Some(1));
        assert_eq!((baselines[0].baseline(), out), (0.0, [9.0; 2]));
        assert!(RoleBaseline::new(f64::NAN).is_err());
    }
}
