use super::Across;
use crate::{
    error::{check_finite, check_len, check_unit, Result},
    layout::Batch,
    real::Real,
    reduce::map_row,
};

/// What [`opd_advantage`] reads, all action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct OpdInput<'a, R> {
    /// Log-probabilities of the tokens under the teacher.
    pub teacher_log_probs: &'a [R],
    /// Log-probabilities of the tokens under the student, before the update.
    pub old_log_probs: &'a [R],
    /// Advantages to add to; `None` if the teacher is the only signal.
    pub advantages: Option<&'a [R]>,
}

impl<'a, R> OpdInput<'a, R> {
    /// Without advantages to add to: the teacher is the only signal.
    pub const fn new(teacher_log_probs: &'a [R], old_log_probs: &'a [R]) -> Self {
        Self { teacher_log_probs, old_log_probs, advantages: None }
    }
}

/// The conventions of [`opd_advantage`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct OpdConfig {
    /// Weight β of the teacher's signal, finite; default 1.
    pub coefficient: f64,
}

impl Default for OpdConfig {
    fn default() -> Self {
        Self { coefficient: 1.0 }
    }
}

/// On-policy distillation: the advantage of a token is how much more likely it is under the teacher than under the
/// student.
///
/// ```text
/// A_t = A⁰_t + β (log π_teacher,t − log π_old,t)
/// ```
///
/// Its mean over samples of the student is −β times the reverse KL.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if β is not finite.
///
/// **Reference.** NeMo-RL (2026-08): β = 1, no A⁰. slime (2026-08) adds to the task's advantages with its `opd`
/// coefficient as β; ROLL (2026-08) does the same for its k1 estimate of one teacher; for several teachers, call this
/// once per teacher.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = OpdInput {
///     teacher_log_probs: &[-0.5, f64::NAN, -2.0],
///     old_log_probs: &[-1.0, f64::NAN, -1.0],
///     advantages: Some(&[1.0, f64::NAN, 1.0]),
/// };
/// let mut out = [9.0; 3];
/// opd_advantage(&batch, input, &OpdConfig { coefficient: 0.5 }, &mut out)?;
/// assert_eq!(out, [1.25, 0.0, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn opd_advantage<R: Real>(
    batch: &Batch<'_>,
    input: OpdInput<'_, R>,
    config: &OpdConfig,
    out: &mut [R],
) -> Result<()> {
    let OpdInput { teacher_log_probs, old_log_probs, advantages } = input;
    check_len("teacher_log_probs", teacher_log_probs, batch.tokens())?;
    check_len("old_log_probs", old_log_probs, batch.tokens())?;
    if let Some(advantages) = advantages {
        check_len("advantages", advantages, batch.tokens())?;
    }
    check_len("out", out, batch.tokens())?;
    check_finite::<R>("coefficient", config.coefficient)?;
    let beta = R::narrow(config.coefficient);
    for row in batch.token_rows() {
        match advantages {
            None => {
                let inputs = [teacher_log_probs, old_log_probs];
                map_row(&row, inputs, out, |[teacher, old]| beta * (teacher - old))
            }
            Some(advantages) => {
                let inputs = [teacher_log_probs, old_log_probs, advantages];
                map_row(&row, inputs, out, |[teacher, old, base]| base + beta * (teacher - old))
            }
        };
    }
    Ok(())
}

/// Where the powers of γ start in [`minillm_advantage`].
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum DiscountFrom {
    /// At the token itself: `γ^{u−t}`. MiniLLM; TRL's documentation.
    #[default]
    Token,
    /// At the start of the sequence: `γ^u`, so that late tokens count less as a whole. TRL's code.
    Start,
}

/// What [`minillm_advantage`] divides by.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum LengthNormalization {
    /// Nothing.
    Off,
    /// The discounted number of kept tokens from this token on.
    #[default]
    Kept,
    /// The same, with every dropped slot up to the end of the row counting 1e-4: depends on the padding. TRL.
    KeptAndPadding,
}

/// What [`minillm_advantage`] reads, action-aligned.
#[derive(Clone, Copy, Debug)]
pub struct MinillmInput<'a, R> {
    /// Log-probabilities of the tokens under the teacher.
    pub teacher_log_probs: &'a [R],
    /// Log-probabilities of the tokens under the student.
    pub old_log_probs: &'a [R],
}

/// The conventions of [`minillm_advantage`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct MinillmConfig {
    /// Discount γ per step, in `[0, 1]`; default 1. 0 gives `ρ` itself.
    pub gamma: f64,
    /// Where the powers of γ start; default at the token.
    pub from: DiscountFrom,
    /// Whether to divide by the remaining length; default [`LengthNormalization::Kept`].
    pub length: LengthNormalization,
    /// How a dropped token between two kept ones is treated; default [`Across::StepOver`].
    pub across: Across,
}

impl Default for MinillmConfig {
    fn default() -> Self {
        Self { gamma: 1.0, from: DiscountFrom::Token, length: LengthNormalization::Kept, across: Across::StepOver }
    }
}

/// How much more likely a token *and all that follow it* are under the teacher, per remaining token (MiniLLM).
///
/// ```text
/// ρ_t = log π_teacher,t − log π_old,t        A_t = Σ_{u ≥ t} γ^{u−t} ρ_u / Σ_{u ≥ t} γ^{u−t}        γ = 0: A = ρ
/// ```
///
/// With [`DiscountFrom::Start`] both sums have `γ^u`, which makes a difference only without the division.
///
/// **Alignment.** Action-aligned in and out.
///
/// **Mask.** Dropped slots are never read and get 0. `u` counts kept tokens, or slots under [`Across::ZeroStep`].
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if γ is outside `[0, 1]`.
///
/// **Reference.** Gu et al. 2024, arXiv:2306.08543 (MiniLLM). TRL's MiniLLM trainer (2026-08) is `Start`,
/// `KeptAndPadding` (`length_normalization`) or `Off`, `ZeroStep`, and adds the result to the group advantages.
///
/// # Example
///
/// ```
/// use tokenwise::{advantage::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 3)?, Mask::new(&[true, false, true]))?;
/// let input = MinillmInput { teacher_log_probs: &[-0.5, f64::NAN, -2.0], old_log_probs: &[-1.0, f64::NAN, -1.0] };
/// let mut out = [9.0; 3];
/// minillm_advantage(&batch, input, &MinillmConfig::default(), &mut out)?;
/// assert_eq!(out, [-0.25, 0.0, -1.0]);      // (0.5 − 1) / 2
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn minillm_advantage<R: Real>(
    batch: &Batch<'_>,
    input: MinillmInput<'_, R>,
    config: &MinillmConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("teacher_log_probs", input.teacher_log_probs, batch.tokens())?;
    check_len("old_log_probs", input.old_log_probs, batch.tokens())?;
    check_len("out", out, batch.tokens())?;
    check_unit("gamma", config.gamma)?;
    let gamma = config.gamma;
    let zero_step = config.across == Across::ZeroStep;
    let padding = if config.length == LengthNormalization::KeptAndPadding { 1e-4 } else { 0.0 };
    for row in batch.token_rows() {
        let (teacher, old) = (row.of(input.teacher_log_probs), row.of(input.old_log_probs));
        let out = row.of_mut(out);
        let (mut ahead, mut length) = (0.0, 0.0);
        // A_t needs the sums from t + 1 on
        for t in (0..row.keep.len()).rev() {
            out[t] = if row.keep[t] {
                ahead = (teacher[t] - old[t]).widen() + gamma * ahead;
                length = 1.0 + gamma * length;
                // γ = 0 needs no special case: both sums then contain only the token itself
                R::narrow(if config.length == LengthNormalization::Off { ahead } else { ahead / length })
            } else {
                if zero_step {
                    ahead *= gamma;
                    length *= gamma;
                }
                length += padding;
                R::zero()
            };
        }
        if config.from == DiscountFrom::Start && config.length == LengthNormalization::Off && gamma > 0.0 {
            let mut power = 1.0;
            for (out, &keep) in out.iter_mut().zip(row.keep) {
                if keep {
                    *out = R::narrow(out.widen() * power);
                }
                if keep || zero_step {
                    power *= gamma;
                }
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{super::fixture::*, *};

    fn minillm(config: &MinillmConfig) -> [f64; 20] {
        let mut out = [9.0; 20];
        let input = MinillmInput { teacher_log_probs: &LOG_PROBS, old_log_probs: &OLD_LOG_PROBS };
        minillm_advantage(&batch(), input, config, &mut out).unwrap();
        out
    }

    #[test]
    fn trl_by_its_definition_on_the_second_sequence() {
        // ρ = −0.3, 0.8, dropped, −0.05, −0.05
        let g: f64 = 0.9;
        let off = MinillmConfig {
            gamma: 0.9,
            from: DiscountFrom::Start,
            length: LengthNormalization::Off,
            across: Across::ZeroStep,
        };
        let powers = [1.0, g, g * g, g * g * g, g * g * g * g];
        let last = -0.05 * powers[4];
        let fourth = -0.05 * powers[3] + last;
        let second = 0.8 * powers[1] + fourth;
        let sums = [-0.3 + second, second, 0.0, fourth, last];
        assert_close(&minillm(&off)[5..10], &sums);
        let normalized = MinillmConfig { length: LengthNormalization::KeptAndPadding, ..off };
        let from_fourth = powers[3] + powers[4];
        let from_second = powers[1] + 1e-4 * powers[2] + from_fourth;
        let lengths = [1.0 + from_second, from_second, 1.0, from_fourth, powers[4]];
        let expected: [f64; 5] = core::array::from_fn(|t| sums[t] / lengths[t]);
        assert_close(&minillm(&normalized)[5..10], &expected);
    }

    #[test]
    fn no_discount_left_is_the_plain_difference() {
        let mut expected = [9.0; 20];
        let input = OpdInput { teacher_log_probs: &LOG_PROBS, old_log_probs: &OLD_LOG_PROBS, advantages: None };
        opd_advantage(&batch(), input, &OpdConfig::default(), &mut expected).unwrap();
        for from in [DiscountFrom::Token, DiscountFrom::Start] {
            for length in [LengthNormalization::Off, LengthNormalization::Kept] {
                let config = MinillmConfig { gamma: 0.0, from, length, across: Across::StepOver };
                assert_close(&minillm(&config), &expected);
            }
        }
    }
}
