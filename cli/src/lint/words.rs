//! What was found, in words.

use tokenwise_lint::{Column, Finding};

use crate::output::{count, number};

pub(super) fn message(finding: &Finding) -> String {
    match *finding {
        Finding::NotANumber { column, value, more, spoilt, .. } => {
            let mut message = format!("{} is {}", column.name(), number(value));
            if more > 0 {
                message += &format!(", and {more} more");
            }
            let spoilt: Vec<String> = Column::BY_ORIGIN
                .iter()
                .filter(|column| spoilt[**column as usize] > 0)
                .map(|column| format!("{} ({})", column.name(), spoilt[*column as usize]))
                .collect();
            if !spoilt.is_empty() {
                message += &format!("; spoilt after it: {}", spoilt.join(", "));
            }
            message
        }
        Finding::ScoreNotANumber { .. } => "the score is not a finite number".into(),
        Finding::RewardOnDroppedSlot { column, value, .. } => {
            format!("{} of {} lies on a dropped slot and is lost", column.name(), number(value))
        }
        Finding::LastTokenHidden { token, last } => format!(
            "the mask ends at token {}, but token {} was generated too: is the end of the response hidden?",
            last + 1,
            token + 1
        ),
        Finding::NothingKept => "no token is kept: the sequence takes no part, but may be counted".into(),
        Finding::RatioAtFirstUpdate { ratio, tokens, .. } => format!(
            "the ratio is {} before anything was learned (at {}): two ways to compute log-probabilities disagree",
            number(ratio),
            count(tokens as u64, "token")
        ),
        Finding::ReturnsDisagree { returned, value, advantage, wanted, more, .. } => format!(
            "return {} is not value {} + advantage {} = {}{}; returns use the advantages before whitening",
            number(returned),
            number(value),
            number(advantage),
            number(wanted),
            match more {
                0 => String::new(),
                more => format!(" (and at {} more)", count(more as u64, "token")),
            }
        ),
        Finding::GroupNotCentred { size, sum } => {
            format!("the advantages of the {size} samples of this prompt add up to {}, not 0", number(sum))
        }
        Finding::TiedGroup { size, score } => {
            format!("all {size} samples of this prompt scored {}: nothing can be learned from them", number(score))
        }
        _ => String::new(),
    }
}
