use crate::{
    error::{check_config, check_finite, check_len, check_range, Result},
    groups::Groups,
    layout::{Batch, Row},
    real::Real,
    reduce::Sum,
};

/// The conventions of [`repetition_penalty`].
#[derive(Clone, Copy, Debug, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct RepetitionConfig {
    /// Length of an n-gram in tokens; at least 1, default 3.
    pub ngram: usize,
    /// The reward of a response that only repeats itself; not positive, default −1.
    pub penalty: f64,
}

impl Default for RepetitionConfig {
    fn default() -> Self {
        Self { ngram: 3, penalty: -1.0 }
    }
}

/// A penalty for repetition: the share of n-grams that occurred before in the same response.
///
/// ```text
/// out_i = (1 − distinct n-grams / n-grams) · penalty        0 for fewer than n tokens
/// ```
///
/// Needs no buffer, but takes O(T²) time in the length of a response: every n-gram is compared with every earlier one.
///
/// **Alignment.** `tokens` is action-aligned; `out` has one entry per sequence.
///
/// **Mask.** Dropped slots are never read; n-grams consist of consecutive kept tokens, skipping dropped ones between
/// them.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `batch`;
/// [`Error::Config`](crate::Error::Config) if `ngram` is 0 or the penalty is positive or not finite.
///
/// **Reference.** Yeo et al. 2025, arXiv:2502.03373, appendix C.2; TRL 1.16 `get_repetition_penalty_reward`.
///
/// # Example
///
/// ```
/// use tokenwise::{reward::*, Batch, Layout, Mask};
///
/// let batch = Batch::new(Layout::padded(1, 6)?, Mask::new(&[true, true, true, true, true, false]))?;
/// let mut out = [9.0];
/// repetition_penalty(&batch, &[5, 5, 5, 5, 5, 7], &RepetitionConfig { ngram: 2, ..Default::default() }, &mut out)?;
/// assert_eq!(out, [-0.75]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn repetition_penalty<R: Real>(
    batch: &Batch<'_>,
    tokens: &[u32],
    config: &RepetitionConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("tokens", tokens, batch.tokens())?;
    check_len("out", out, batch.sequences())?;
    check_config("ngram", "at least 1", config.ngram as f64, config.ngram > 0)?;
    let penalty = config.penalty;
    check_config("penalty", "finite and not positive", penalty, penalty.is_finite() && penalty <= 0.0)?;
    check_range::<R>("penalty", penalty)?;
    for (row, out) in batch.rows().zip(out) {
        let kept = row.kept();
        *out = R::zero();
        if kept >= config.ngram {
            let total = kept - config.ngram + 1;
            let distinct = distinct(&row, row.of(tokens), config.ngram, total);
            *out = R::narrow((1.0 - distinct as f64 / total as f64) * penalty);
        }
    }
    Ok(())
}

/// How many of the first `total` n-grams differ from all earlier ones.
fn distinct(row: &Row<'_>, tokens: &[u32], ngram: usize, total: usize) -> usize {
    let phrase = |start: usize| {
        let slots = tokens[start..].iter().zip(&row.keep[start..]);
        slots.filter(|(_, &keep)| keep).map(|(&token, _)| token).take(ngram)
    };
    let starts = || row.keep.iter().enumerate().filter(|(_, &keep)| keep).map(|(slot, _)| slot).take(total);
    starts()
        .filter(|&start| {
            !starts().take_while(|&earlier| earlier < start).any(|earlier| phrase(earlier).eq(phrase(start)))
        })
        .count()
}

/// What [`length_penalty_group`] reads; one entry per sequence.
#[derive(Clone, Copy, Debug)]
pub struct GroupLengthInput<'a, R> {
    /// The scores before the penalty.
    pub scores: &'a [R],
    /// Tokens the policy wrote.
    pub outputs: &'a [u32],
    /// Tokens it was given in between.
    pub inputs: &'a [u32],
    /// Turns taken.
    pub turns: &'a [u32],
}

/// The weight of each kind of length.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(default, deny_unknown_fields))]
pub struct GroupLengthConfig {
    /// Of `outputs`; finite, default 0.
    pub output_weight: f64,
    /// Of `inputs`; finite, default 0.
    pub input_weight: f64,
    /// Of `turns`; finite, default 0.
    pub turn_weight: f64,
}

/// Scores minus a length penalty, which is relative to the longest answer to the same prompt and scaled by the mean
/// score of that prompt.
///
/// ```text
/// f_i = w_o out_i / max_g out + w_in in_i / max_g in + w_t turns_i / max_g turns      (each max at least 1)
/// out_i = s_i − mean_g(s) · f_i
/// ```
///
/// The advantage is then `out_i − mean_g(out)`. Each group is a pass over the batch: O(groups × sequences), without a
/// buffer.
///
/// **Alignment.** One entry per sequence, in and out.
///
/// **Mask.** None: sequences, not tokens.
///
/// **Errors.** [`Error::Length`](crate::Error::Length) if a slice does not fit `groups`;
/// [`Error::Config`](crate::Error::Config) if a weight is not finite.
///
/// **Reference.** prime-rl (2026), length penalty.
///
/// # Example
///
/// ```
/// use tokenwise::{reward::*, Groups};
///
/// let groups = Groups::contiguous(&[2])?;
/// let input = GroupLengthInput { scores: &[1.0, 1.0], outputs: &[10, 20], inputs: &[0, 0], turns: &[1, 1] };
/// let mut out = [9.0; 2];
/// length_penalty_group(&groups, input, &GroupLengthConfig { output_weight: 0.5, ..Default::default() }, &mut out)?;
/// assert_eq!(out, [0.75, 0.5]);
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn length_penalty_group<R: Real>(
    groups: &Groups<'_>,
    input: GroupLengthInput<'_, R>,
    config: &GroupLengthConfig,
    out: &mut [R],
) -> Result<()> {
    check_len("scores", input.scores, groups.sequences())?;
    check_len("outputs", input.outputs, groups.sequences())?;
    check_len("inputs", input.inputs, groups.sequences())?;
    check_len("turns", input.turns, groups.sequences())?;
    check_len("out", out, groups.sequences())?;
    let weights = [config.output_weight, config.input_weight, config.turn_weight];
    for (what, weight) in ["output_weight", "input_weight", "turn_weight"].into_iter().zip(weights) {
        check_finite::<R>(what, weight)?;
    }
    let lengths = |index: usize| [input.outputs[index], input.inputs[index], input.turns[index]];
    for group in 0..groups.count() {
        let members = || groups.ids().enumerate().filter(move |&(_, of)| of == group).map(|(index, _)| index);
        let (mut longest, mut sum, mut size) = ([1; 3], Sum::default(), 0_u32);
        for index in members() {
            for (longest, length) in longest.iter_mut().zip(lengths(index)) {
                *longest = length.max(*longest);
            }
            sum.add(input.scores[index].widen());
            size += 1;
        }
        let mean = sum.value() / f64::from(size.max(1));
        for index in members() {
            let mut share = 0.0;
            for ((length, longest), weight) in lengths(index).into_iter().zip(longest).zip(weights) {
                share += weight * f64::from(length) / f64::from(longest);
            }
            out[index] = R::narrow(input.scores[index].widen() - mean * share);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Layout, Mask};

    #[test]
    fn phrases_step_over_dropped_tokens() {
        let keep = [true, true, false, true, true, true, true, false, false, false, false, false];
        let batch = Batch::new(Layout::padded(2, 6).unwrap(), Mask::new(&keep)).unwrap();
        let mut out = [9.0; 2];
        // 1 2 1 2 1: 12, 21, 12, 21
        let tokens = [1, 2, 9, 1, 2, 1, 1, 0, 0, 0, 0, 0];
        repetition_penalty(&batch, &tokens, &RepetitionConfig { ngram: 2, penalty: -1.0 }, &mut out).unwrap();
        assert_eq!(out, [-0.5, 0.0]);
        let bad = RepetitionConfig { ngram: 0, penalty: -1.0 };
        assert!(repetition_penalty(&batch, &tokens, &bad, &mut out).is_err());
    }
}
