//! Why a call was refused.

use std::{borrow::Cow, fmt};

use tokenwise_catalogue::{ConfigError, Element, Refusal};

/// Why a call was refused.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// The core refused it.
    Core(tokenwise::Error),
    /// The config could not be read.
    Config(ConfigError),
    /// An input, the batch or the groups are missing, or an input is of the wrong kind.
    Call(Box<Refusal>),
    /// candle refused it.
    Candle(candle_core::Error),
    /// There is no formula of this name.
    Formula {
        /// The name.
        name: String,
    },
    /// The formula is not a loss.
    NotALoss {
        /// The name.
        name: &'static str,
    },
    /// The formula has no input of this name.
    Input {
        /// The formula.
        formula: &'static str,
        /// The name.
        name: String,
    },
    /// An input is not what the formula reads.
    Kind {
        /// The input.
        input: &'static str,
        /// What it reads.
        expected: Element,
        /// What there was.
        got: &'static str,
    },
    /// A tensor has another type than expected.
    DType {
        /// The input.
        input: &'static str,
        /// The expected type, or several in words.
        expected: Cow<'static, str>,
        /// The type of the tensor.
        got: candle_core::DType,
    },
    /// A tensor has no last dimension for the vocabulary.
    Rank {
        /// The input.
        input: &'static str,
    },
    /// An entry cannot be an index or a count.
    Entry {
        /// The input.
        input: &'static str,
        /// Its index in the flattened tensor.
        index: usize,
        /// The entry.
        got: i64,
    },
    /// The formula returned no output or number of this name.
    Output {
        /// The name.
        name: String,
    },
}

/// The result of every function.
pub type Result<T> = std::result::Result<T, Error>;

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Core(error) => error.fmt(f),
            Self::Config(error) => error.fmt(f),
            Self::Call(error) => error.fmt(f),
            Self::Candle(error) => error.fmt(f),
            Self::Formula { name } => write!(f, "{name}: no formula has this name"),
            Self::NotALoss { name } => write!(f, "{name}: not a loss"),
            Self::Input { formula, name } => write!(f, "{name}: not an input of {formula}"),
            Self::Kind { input, expected, got } => write!(f, "{input}: expected {}, got {got}", expected.words()),
            Self::DType { input, expected, got } => write!(f, "{input}: expected {expected}, got {}", got.as_str()),
            Self::Rank { input } => write!(f, "{input}: expected a dimension for the vocabulary, got a scalar"),
            Self::Entry { input, index, got } => write!(f, "{input}[{index}]: expected 0 or more, got {got}"),
            Self::Output { name } => write!(f, "{name}: the formula returned nothing of this name"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Core(error) => Some(error),
            Self::Config(error) => Some(error),
            Self::Call(error) => Some(error.as_ref()),
            Self::Candle(error) => Some(error),
            _ => None,
        }
    }
}

impl From<tokenwise::Error> for Error {
    fn from(error: tokenwise::Error) -> Self {
        Self::Core(error)
    }
}

impl From<ConfigError> for Error {
    fn from(error: ConfigError) -> Self {
        Self::Config(error)
    }
}

impl From<Refusal> for Error {
    fn from(error: Refusal) -> Self {
        match error {
            Refusal::Core(error) => Self::Core(error),
            Refusal::Config(error) => Self::Config(error),
            other => Self::Call(other.into()),
        }
    }
}

impl From<candle_core::Error> for Error {
    fn from(error: candle_core::Error) -> Self {
        Self::Candle(error)
    }
}

/// For functions that return candle's own result.
impl From<Error> for candle_core::Error {
    fn from(error: Error) -> Self {
        match error {
            Error::Candle(error) => error,
            other => Self::wrap(other),
        }
    }
}
