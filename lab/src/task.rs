//! The two tasks: additions written as characters, with answers whose digits are reversed.

use clap::ValueEnum;
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

use crate::random::below;

/// A token of the vocabulary: the digits are their own numbers.
pub type Token = u32;

/// `+`.
pub const PLUS: Token = 10;
/// `=`.
pub const EQUALS: Token = 11;
/// The end of an answer.
pub const END: Token = 12;
/// Size of the vocabulary.
pub const VOCABULARY: usize = 13;

/// How a token is written in files.
pub fn text(token: Token) -> &'static str {
    const TEXTS: [&str; VOCABULARY] = ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "+", "=", "."];
    TEXTS.get(token as usize).copied().unwrap_or("?")
}

/// What is to be learned.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Task {
    /// The sum of two numbers from 10 to 99, from weights that a supervised warm-up has prepared.
    TwoDigit,
    /// The sum of two numbers from 0 to 9, from random weights.
    OneDigit,
}

/// One addition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Problem {
    left: u32,
    right: u32,
    digits: usize,
}

impl Task {
    /// Its name in paths.
    pub const fn name(self) -> &'static str {
        match self {
            Self::TwoDigit => "two-digit",
            Self::OneDigit => "one-digit",
        }
    }

    const fn digits(self) -> usize {
        match self {
            Self::TwoDigit => 2,
            Self::OneDigit => 1,
        }
    }

    /// Tokens of every prompt.
    pub const fn prompt_len(self) -> usize {
        2 * self.digits() + 2
    }

    /// The most tokens of a response: one more than the longest right answer with its end mark.
    pub const fn response_limit(self) -> usize {
        self.digits() + 3
    }

    /// Whether the policy is trained on right answers first.
    pub const fn warms_up(self) -> bool {
        matches!(self, Self::TwoDigit)
    }

    /// A random addition.
    pub fn problem(self, random: &mut ChaCha8Rng) -> Problem {
        let (from, to) = match self {
            Self::TwoDigit => (10, 100),
            Self::OneDigit => (0, 10),
        };
        let left = from + below(random, to - from);
        let right = from + below(random, to - from);
        Problem { left, right, digits: self.digits() }
    }
}

impl Problem {
    /// The prompt, such as `27+81=`.
    pub fn prompt(&self) -> Vec<Token> {
        let mut tokens = Vec::with_capacity(2 * self.digits + 2);
        for (number, mark) in [(self.left, PLUS), (self.right, EQUALS)] {
            let mut digits: Vec<Token> = reversed(number);
            digits.resize(self.digits, 0);
            tokens.extend(digits.iter().rev());
            tokens.push(mark);
        }
        tokens
    }

    /// The right answer with its end mark, such as `801.` for 108: the carry moves in the order of writing.
    pub fn answer(&self) -> Vec<Token> {
        let mut tokens = reversed(self.left + self.right);
        tokens.push(END);
        tokens
    }

    /// 1 for the right answer, else 0.
    pub fn score(&self, response: &[Token]) -> f32 {
        if response == self.answer() {
            1.0
        } else {
            0.0
        }
    }
}

fn reversed(mut number: u32) -> Vec<Token> {
    let mut digits = vec![number % 10];
    while number > 9 {
        number /= 10;
        digits.push(number % 10);
    }
    digits
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prompts_and_answers_are_written_out() {
        let problem = Problem { left: 27, right: 81, digits: 2 };
        let written = |tokens: Vec<Token>| tokens.iter().map(|&token| text(token)).collect::<String>();
        assert_eq!(written(problem.prompt()), "27+81=");
        assert_eq!(written(problem.answer()), "801.");
        assert_eq!(problem.score(&[8, 0, 1, END]), 1.0);
        for wrong in [&[8, 0, 1][..], &[1, 0, 8, END], &[8, 0, 1, END, END], &[]] {
            assert_eq!(problem.score(wrong), 0.0, "{wrong:?}");
        }
        let problem = Problem { left: 3, right: 0, digits: 1 };
        assert_eq!((written(problem.prompt()), written(problem.answer())), ("3+0=".into(), "3.".into()));
    }

    #[test]
    fn every_answer_fits_the_limit() {
        let mut random = crate::random::stream(0, crate::random::Purpose::Problems, 0);
        for task in [Task::TwoDigit, Task::OneDigit] {
            for _ in 0..1000 {
                let problem = task.problem(&mut random);
                assert_eq!(problem.prompt().len(), task.prompt_len());
                assert!(problem.answer().len() < task.response_limit());
            }
        }
    }
}
