//! Errors of a command, with exit codes.

use std::{fmt, path::Path};

/// Result of a command.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

/// The exit codes, as `tokenwise --help` lists them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Code {
    /// The arguments conflict with each other or with the files.
    Usage = 2,
    /// A file cannot be read or has the wrong format.
    Input = 3,
    /// A result cannot be written.
    Output = 4,
}

/// A message for users and a code for scripts.
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
