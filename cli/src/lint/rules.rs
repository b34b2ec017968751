//! Faults that one sequence shows by itself.

use tokenwise::math::exp;

use super::{Findings, Rule};
use crate::{
    args::Lint,
    output::{count, number},
    rollout::{Column, Rollouts},
};

/// Inputs before what is computed from them, so that the first one with a fault is its origin.
const ORDER: [Column; 12] = [
    Column::RolloutLogProbs,
    Column::OldLogProbs,
    Column::RefLogProbs,
    Column::LogProbs,
    Column::OldEntropies,
    Column::Entropies,
    Column::Values,
    Column::Predictions,
    Column::Scores,
    Column::Rewards,
    Column::Advantages,
    Column::Returns,
];

pub(super) fn sequence(rollouts: &Rollouts, row: usize, options: &Lint, findings: &mut Findings<'_>) {
    not_a_number(rollouts, row, findings);
    dropped(rollouts, row, findings);
    let about = &rollouts.rows[row];
    if options.first_step || about.first_update {
        ratio(rollouts, row, options.tolerance, findings);
    }
    returns(rollouts, row, options.tolerance, findings);
}

/// One finding a sequence: where the numbers stop being numbers, and what else that spoilt.
fn not_a_number(rollouts: &Rollouts, row: usize, findings: &mut Findings<'_>) {
    let about = &rollouts.rows[row];
    let slots = rollouts.slots(row);
    let keep = &rollouts.kept()[slots.clone()];
    let faults = |column: Column| -> Vec<usize> {
        let Some(numbers) = rollouts.column(column) else { return Vec::new() };
        let numbers = numbers[slots.clone()].iter().zip(keep).enumerate();
        numbers.filter(|(_, (x, keep))| **keep && !x.is_finite()).map(|(token, _)| token).collect()
    };
    let mut origin: Option<(Column, Vec<usize>)> = None;
    let mut spoilt = Vec::new();
    for column in ORDER {
        let found = faults(column);
        match &origin {
            _ if found.is_empty() => {}
            None => origin = Some((column, found)),
            Some(_) => spoilt.push(format!("{} ({})", column.name(), found.len())),
        }
    }
    let score = about.score.is_some_and(|score| !score.is_finite());
    if let Some((column, found)) = origin {
        let x = rollouts.column(column).map_or(f64::NAN, |numbers| numbers[slots.start + found[0]]);
        let mut message = format!("{} is {}", column.name(), number(x));
        if found.len() > 1 {
            message += &format!(", and {} more", found.len() - 1);
        }
        if !spoilt.is_empty() {
            message += &format!("; spoilt after it: {}", spoilt.join(", "));
        }
        findings.add(Rule::NotANumber, about, Some(found[0] + 1), &message);
    } else if score {
        findings.add(Rule::NotANumber, about, None, "the score is not a finite number");
    }
}

/// Rewards where nobody reads them, and responses that go on after the last kept token.
fn dropped(rollouts: &Rollouts, row: usize, findings: &mut Findings<'_>) {
    let about = &rollouts.rows[row];
    let slots = rollouts.slots(row);
    let keep = &rollouts.kept()[slots.clone()];
    let at = |column: Column, token: usize| rollouts.column(column).map_or(0.0, |numbers| numbers[slots.start + token]);
    for column in [Column::Scores, Column::Rewards] {
        let lost =
            (0..keep.len()).find(|token| !keep[*token] && at(column, *token).is_finite() && at(column, *token) != 0.0);
        if let Some(token) = lost {
            let message =
                format!("{} of {} lies on a dropped slot and is lost", column.name(), number(at(column, token)));
            findings.add(Rule::RewardOnDroppedSlot, about, Some(token + 1), &message);
            break;
        }
    }
    let Some(last) = keep.iter().rposition(|keep| *keep) else {
        if !keep.is_empty() {
            findings.add(
                Rule::NothingKept,
                about,
                None,
                "no token is kept: the sequence takes no part, but may be counted",
            );
        }
        return;
    };
    // padding is 0; what is not was generated
    let log_probs = [Column::OldLogProbs, Column::LogProbs, Column::RolloutLogProbs];
    let generated =
        |token: &usize| log_probs.iter().any(|column| at(*column, *token).is_finite() && at(*column, *token) != 0.0);
    if let Some(token) = (last + 1..keep.len()).rev().find(generated) {
        let message = format!(
            "the mask ends at token {}, but token {} was generated too: is the end of the response hidden?",
            last + 1,
            token + 1
        );
        findings.add(Rule::LastTokenHidden, about, Some(token + 1), &message);
    }
}

fn ratio(rollouts: &Rollouts, row: usize, tolerance: f64, findings: &mut Findings<'_>) {
    let (Some(new), Some(old)) = (rollouts.column(Column::LogProbs), rollouts.column(Column::OldLogProbs)) else {
        return;
    };
    let slots = rollouts.slots(row);
    let mut worst: Option<(usize, f64)> = None;
    let mut found = 0;
    for slot in slots.clone().filter(|slot| rollouts.kept()[*slot]) {
        let ratio = exp(new[slot] - old[slot]);
        // NaN is told elsewhere
        if (ratio - 1.0).abs() > tolerance {
            found += 1;
            if worst.is_none_or(|(_, before)| (ratio - 1.0).abs() > (before - 1.0).abs()) {
                worst = Some((slot - slots.start, ratio));
            }
        }
    }
    if let Some((token, ratio)) = worst {
        let message = format!(
            "the ratio is {} before anything was learned (at {}): two ways to compute log-probabilities disagree",
            number(ratio),
            count(found, "token")
        );
        findings.add(Rule::RatioAtFirstUpdate, &rollouts.rows[row], Some(token + 1), &message);
    }
}

fn returns(rollouts: &Rollouts, row: usize, tolerance: f64, findings: &mut Findings<'_>) {
    let columns = [Column::Returns, Column::Values, Column::Advantages].map(|column| rollouts.column(column));
    let [Some(returns), Some(values), Some(advantages)] = columns else { return };
    let slots = rollouts.slots(row);
    let differs = |slot: usize| {
        let wanted = values[slot] + advantages[slot];
        (returns[slot] - wanted).abs() > tolerance * returns[slot].abs().max(1.0)
    };
    let mut found = slots.clone().filter(|slot| rollouts.kept()[*slot] && differs(*slot));
    if let Some(slot) = found.next() {
        let message = format!(
            "return {} is not value {} + advantage {} = {}{}; returns use the advantages before whitening",
            number(returns[slot]),
            number(values[slot]),
            number(advantages[slot]),
            number(values[slot] + advantages[slot]),
            match found.count() {
                0 => String::new(),
                more => format!(" (and at {} more)", count(more as u64, "token")),
            }
        );
        findings.add(Rule::ReturnsDisagree, &rollouts.rows[row], Some(slot - slots.start + 1), &message);
    }
}
