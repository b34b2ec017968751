//! Why a command ended without doing what it was asked, and its exit code.

use std::{fmt, path::Path};

/// What commands return.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The exit codes, as `tokenwise --help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The arguments do not fit each other, or the files given.
    Usage = 2,
    /// A file could not be read or is not what it should be.
    Input = 3,
    /// A result could not be written.
    Output = 4,
}

/// A message for people and a code for scripts.
#[derive(Debug)]
pub(crate) struct Failure {
    pub(crate) code: Code,
    pub(crate) message: String,
}

impl Failure {
    pub(crate) fn usage(message: impl Into<String>) -> Self {
        Self { code: Code::Usage, message: message.into() }
    }

    pub(crate) fn input(path: &Path, what: impl fmt::Display) -> Self {
        Self { code: Code::Input, message: format!("{}: {what}", path.display()) }
    }

    pub(crate) fn output(path: &Path, what: impl fmt::Display) -> Self {
        Self { code: Code::Output, message: format!("{}: {what}", path.display()) }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl From<tokenwise_recorder::Error> for Failure {
    fn from(error: tokenwise_recorder::Error) -> Self {
        Self { code: Code::Input, message: error.to_string() }
    }
}
