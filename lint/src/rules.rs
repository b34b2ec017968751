//! Rules that look at one sequence.

use tokenwise::math::exp;

use crate::{
    column::{Column, COLUMNS},
    finding::Finding,
    size, Options, Sequence,
};

/// Reports every fault of a sequence to `found`.
pub fn check(sequence: &Sequence<'_>, options: &Options, found: &mut dyn FnMut(Finding)) {
    if sequence.expects_tokens && sequence.keep.is_empty() {
        found(Finding::EmptySequence);
    }
    if sequence.expects_score && sequence.score.is_none() {
        found(Finding::ScoreMissing);
    }
    not_a_number(sequence, found);
    above_zero(sequence, options.tolerance, found);
    lost_reward(sequence, found);
    hidden_end(sequence, found);
    if options.first_update || sequence.first_update {
        ratio(sequence, options.tolerance, found);
    }
    returns(sequence, options.tolerance, found);
}

/// At most one finding per sequence: the first value that is not finite, and what follows from it.
fn not_a_number(sequence: &Sequence<'_>, found: &mut dyn FnMut(Finding)) {
    let mut origin: Option<(Column, usize, f64, usize)> = None;
    let mut spoilt = [0; COLUMNS];
    for column in Column::BY_ORIGIN {
        let (mut first, mut faults) = (None, 0);
        sequence.each_kept(column, &mut |token, x| {
            if !x.is_finite() {
                first = first.or(Some((token, x)));
                faults += 1;
            }
        });
        match (origin, first) {
            (_, None) => {}
            (None, Some((token, x))) => origin = Some((column, token, x, faults - 1)),
            (Some(_), Some(_)) => spoilt[column as usize] = faults,
        }
    }
    if let Some((column, token, value, more)) = origin {
        found(Finding::NotANumber { column, token, value, more, spoilt });
    } else if let Some(value) = sequence.score.filter(|score| !score.is_finite()) {
        found(Finding::ScoreNotANumber { value });
    }
}

fn is_something(x: f64) -> bool {
    x.is_finite() && x != 0.0
}

/// A reward on a dropped token.
fn lost_reward(sequence: &Sequence<'_>, found: &mut dyn FnMut(Finding)) {
    for column in [Column::Scores, Column::Rewards] {
        for (token, keep) in sequence.keep.iter().enumerate() {
            let value = sequence.at(column, token);
            if !keep && is_something(value) {
                found(Finding::RewardOnDroppedSlot { column, token, value });
                return;
            }
        }
    }
}

/// A response that continues after its last kept token.
fn hidden_end(sequence: &Sequence<'_>, found: &mut dyn FnMut(Finding)) {
    let Some(last) = sequence.keep.iter().rposition(|keep| *keep) else {
        if !sequence.keep.is_empty() {
            found(Finding::NothingKept);
        }
        return;
    };
    if let Some(length) = sequence.length {
        if length > last + 1 && length <= sequence.keep.len() {
            found(Finding::LastTokenHidden { token: length - 1, last });
        }
        return;
    }
    let tail = last + 1..sequence.keep.len();
    for column in [Column::OldLogProbs, Column::LogProbs, Column::RolloutLogProbs] {
        let Some(numbers) = sequence.column(column).and_then(|numbers| numbers.get(tail.clone())) else { continue };
        let padding = padding(numbers);
        let rest = numbers.len() - padding;
        // without visible padding a tail of several numbers may be what a model computed on it
        if rest > 0 && (padding > 0 || rest == 1) {
            found(Finding::LastTokenHidden { token: last + rest, last });
            return;
        }
    }
}

/// How many numbers at the end a trainer filled in: what no log-probability is, or the same number again and again.
fn padding(numbers: &[f64]) -> usize {
    // TRL pads with 1, others with 0 or with a number that stands for minus infinity
    let is_filler = |x: f64| !x.is_finite() || x >= 0.0 || x <= -100.0;
    let Some(&last) = numbers.last() else { return 0 };
    let run = numbers.iter().rev().take_while(|x| **x == last || (is_filler(**x) && is_filler(last))).count();
    if is_filler(last) || run > 1 {
        run
    } else {
        0
    }
}

/// The logarithm of a probability is never above 0.
fn above_zero(sequence: &Sequence<'_>, tolerance: f64, found: &mut dyn FnMut(Finding)) {
    for column in [Column::RolloutLogProbs, Column::OldLogProbs, Column::RefLogProbs, Column::LogProbs] {
        let (mut first, mut more) = (None, 0);
        sequence.each_kept(column, &mut |token, x| {
            if x > tolerance && x.is_finite() {
                more += usize::from(first.is_some());
                first = first.or(Some((token, x)));
            }
        });
        if let Some((token, value)) = first {
            found(Finding::LogProbAboveZero { column, token, value, more });
            return;
        }
    }
}

fn ratio(sequence: &Sequence<'_>, tolerance: f64, found: &mut dyn FnMut(Finding)) {
    let Some(old) = sequence.column(Column::OldLogProbs) else { return };
    let mut worst: Option<(usize, f64)> = None;
    let mut tokens = 0;
    sequence.each_kept(Column::LogProbs, &mut |token, new| {
        let ratio = exp(new - old.get(token).copied().unwrap_or(new));
        // NaN is reported by another rule
        if size(ratio - 1.0) > tolerance {
            tokens += 1;
            let farther = match worst {
                None => true,
                Some((_, before)) => size(ratio - 1.0) > size(before - 1.0),
            };
            if farther {
                worst = Some((token, ratio));
            }
        }
    });
    if let Some((token, ratio)) = worst {
        found(Finding::RatioAtFirstUpdate { token, ratio, tokens });
    }
}

fn returns(sequence: &Sequence<'_>, tolerance: f64, found: &mut dyn FnMut(Finding)) {
    if sequence.column(Column::Values).is_none() || sequence.column(Column::Advantages).is_none() {
        return;
    }
    let (mut first, mut wrong) = (None, 0);
    sequence.each_kept(Column::Returns, &mut |token, returned| {
        let (value, advantage) = (sequence.at(Column::Values, token), sequence.at(Column::Advantages, token));
        let wanted = value + advantage;
        if size(returned - wanted) > tolerance * size(returned).max(1.0) {
            first = first.or(Some((token, returned, value, advantage, wanted)));
            wrong += 1;
        }
    });
    if let Some((token, returned, value, advantage, wanted)) = first {
        found(Finding::ReturnsDisagree { token, returned, value, advantage, wanted, more: wrong - 1 });
    }
}
