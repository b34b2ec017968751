//! The messages of the findings.

use tokenwise_lint::{Column, Finding};

use crate::output::{count, number};

pub(crate) fn message(finding: &Finding) -> String {
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
                message += &format!("; then also in {}", spoilt.join(", "));
            }
            message
        }
        Finding::ScoreNotANumber { value } => format!("the score is {}", number(value)),
        Finding::RewardOnDroppedSlot { column, value, .. } => {
            format!("{} of {} is on a dropped slot and is lost", column.name(), number(value))
        }
        Finding::LastTokenHidden { token, last } => format!(
            "the mask ends at token {}, but token {} was generated too: is the end of the response masked out?",
            last + 1,
            token + 1
        ),
        Finding::NothingKept => "no token is kept: the sequence contributes nothing, but may be counted".into(),
        Finding::RatioAtFirstUpdate { ratio, tokens, .. } => format!(
            "the ratio is {} before the first update (at {}): sampler and trainer compute different log-probabilities",
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
            format!("the advantages of the {size} samples of this prompt sum to {}, not 0", number(sum))
        }
        Finding::TiedGroup { size, score } => {
            format!("all {size} samples of this prompt scored {}: nothing can be learned from them", number(score))
        }
        Finding::LogProbAboveZero { column, value, more, .. } => format!(
            "{} is {}{}: the logarithm of a probability is never above 0",
            column.name(),
            number(value),
            match more {
                0 => String::new(),
                more => format!(" (and at {} more)", count(more as u64, "token")),
            }
        ),
        Finding::ScoreMissing => "there is no score, but other sequences have one".into(),
        Finding::EmptySequence => "there are no tokens".into(),
        _ => String::new(),
    }
}
