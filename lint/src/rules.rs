//! Faults that one sequence shows by itself.

use tokenwise::math::exp;

use crate::{
    column::{Column, COLUMNS},
    finding::Finding,
    size, Options, Sequence,
};

/// Hands every fault of a sequence to `found`.
pub fn check(sequence: &Sequence<'_>, options: &Options, found: &mut dyn FnMut(Finding)) {
    not_a_number(sequence, found);
    lost_reward(sequence, found);
    hidden_end(sequence, found);
    if options.first_update || sequence.first_update {
        ratio(sequence, options.tolerance, found);
    }
    returns(sequence, options.tolerance, found);
}

/// One finding a sequence: where the numbers stop being numbers, and what else that spoilt.
fn not_a_number(sequence: &Sequence<'_>, found: &mut dyn FnMut(Finding)) {
    let mut origin: Option<(Column, usize, f64, usize)> = None;
    let mut spoilt = [0; COLUMNS];
    for column in Column::BY_ORIGIN {
        let mut faults = sequence.kept(column).filter(|(_, x)| !x.is_finite());
        let Some((token, x)) = faults.next() else { continue };
        let more = faults.count();
        match origin {
            None => origin = Some((column, token, x, more)),
            Some(_) => spoilt[column as usize] = more + 1,
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

/// A reward where nobody reads it.
fn lost_reward(sequence: &Sequence<'_>, found: &mut dyn FnMut(Finding)) {
    for column in [Column::Scores, Column::Rewards] {
        let dropped = sequence.keep.iter().enumerate().filter(|(_, keep)| !**keep);
        let lost = dropped.map(|(token, _)| (token, sequence.at(column, token))).find(|(_, x)| is_something(*x));
        if let Some((token, value)) = lost {
            found(Finding::RewardOnDroppedSlot { column, token, value });
            return;
        }
    }
}

/// A response that goes on after its last kept token.
fn hidden_end(sequence: &Sequence<'_>, found: &mut dyn FnMut(Finding)) {
    let Some(last) = sequence.keep.iter().rposition(|keep| *keep) else {
        if !sequence.keep.is_empty() {
            found(Finding::NothingKept);
        }
        return;
    };
    // padding is 0; what is not was generated
    let log_probs = [Column::OldLogProbs, Column::LogProbs, Column::RolloutLogProbs];
    let generated = |token: &usize| log_probs.iter().any(|column| is_something(sequence.at(*column, *token)));
    if let Some(token) = (last + 1..sequence.keep.len()).rev().find(generated) {
        found(Finding::LastTokenHidden { token, last });
    }
}

fn ratio(sequence: &Sequence<'_>, tolerance: f64, found: &mut dyn FnMut(Finding)) {
    let Some(old) = sequence.column(Column::OldLogProbs) else { return };
    let mut worst: Option<(usize, f64)> = None;
    let mut tokens = 0;
    for (token, new) in sequence.kept(Column::LogProbs) {
        let ratio = exp(new - old[token]);
        // NaN is told elsewhere
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
    }
    if let Some((token, ratio)) = worst {
        found(Finding::RatioAtFirstUpdate { token, ratio, tokens });
    }
}

fn returns(sequence: &Sequence<'_>, tolerance: f64, found: &mut dyn FnMut(Finding)) {
    let columns = [Column::Values, Column::Advantages].map(|column| sequence.column(column));
    let [Some(values), Some(advantages)] = columns else { return };
    let differs = |(token, returned): &(usize, f64)| {
        let wanted = values[*token] + advantages[*token];
        size(returned - wanted) > tolerance * size(*returned).max(1.0)
    };
    let mut wrong = sequence.kept(Column::Returns).filter(differs);
    if let Some((token, returned)) = wrong.next() {
        let (value, advantage) = (values[token], advantages[token]);
        let more = wrong.count();
        found(Finding::ReturnsDisagree { token, returned, value, advantage, wanted: value + advantage, more });
    }
}
