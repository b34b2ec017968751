use crate::{
    error::{check_len, check_unit, Error, Result},
    real::Real,
};

/// The running mean of one role's scores, subtracted from the next score of that role.
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

    /// The baseline for the next score.
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

/// What [`role_baseline`] reads; one entry per sequence.
#[derive(Clone, Copy, Debug)]
pub struct RoleInput<'a, R> {
    /// Index of the sequence's baseline.
    pub roles: &'a [u32],
    /// One score per sequence.
    pub scores: &'a [R],
}

/// Each score minus the running mean of its role: for games whose roles are unequal and whose answers come one by one
/// (RAE).
///
/// ```text
/// A_i = s_i − b_role        then b_role ← d b_role + (1 − d) s_i
/// ```
///
/// Scores are processed in order; the baselines carry over from one call to the next.
///
/// **Alignment.** One entry per sequence, in and out; [`broadcast`](super::broadcast) copies them to the tokens.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`] if `scores` or `out` does not have one entry per entry of `roles`; [`Error::Entry`]
/// with the first role that has no baseline, or the first score that is not finite, which would corrupt the baseline
/// permanently.
///
/// **Reference.** Liu et al. 2025 (SPIRAL), arXiv:2506.24119; prime-rl (2026-08), which updates after use, from 0.
///
/// # Example
///
/// ```
/// use tokenwise::advantage::*;
///
/// let mut baselines = [RoleBaseline::new(0.5)?; 2];
/// let mut out = [9.0; 4];
/// let input = RoleInput { roles: &[0, 1, 0, 1], scores: &[1.0, -1.0, 1.0, 0.0] };
/// role_baseline(input, &mut baselines, &mut out)?;
/// assert_eq!(out, [1.0, -1.0, 0.5, 0.5]);
/// assert_eq!(baselines[0].baseline(), 0.75);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn role_baseline<R: Real>(input: RoleInput<'_, R>, baselines: &mut [RoleBaseline], out: &mut [R]) -> Result<()> {
    let RoleInput { roles, scores } = input;
    check_len("scores", scores, roles.len())?;
    check_len("out", out, roles.len())?;
    for (index, (&role, score)) in roles.iter().zip(scores).enumerate() {
        if role as usize >= baselines.len() {
            let must_be = "below the number of baselines";
            return Err(Error::Entry { what: "roles", index, must_be, got: f64::from(role) });
        }
        if !score.is_finite() {
            return Err(Error::Entry { what: "scores", index, must_be: "finite", got: score.widen() });
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
        let input = RoleInput { roles: &[0, 1], scores: &[1.0, 1.0] };
        let error = role_baseline(input, &mut baselines, &mut out).unwrap_err();
        assert_eq!((error.parameter(), error.index()), ("roles", Some(1)));
        let input = RoleInput { roles: &[0, 0], scores: &[1.0, f64::INFINITY] };
        let error = role_baseline(input, &mut baselines, &mut out).unwrap_err();
        assert_eq!(error.index(), Some(1));
        assert_eq!((baselines[0].baseline(), out), (0.0, [9.0; 2]));
        assert!(RoleBaseline::new(f64::NAN).is_err());
    }
}
