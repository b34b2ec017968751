//! Why a file was not read or written.

use std::{
    fmt, io,
    path::{Path, PathBuf},
};

/// Result of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Why a file was not read or written; every variant names the file.
#[non_exhaustive]
#[derive(Debug)]
pub enum Error {
    /// An I/O error.
    Io {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The file has the wrong format.
    Malformed {
        /// The file.
        path: PathBuf,
        /// The line, counted from 1, if known.
        line: Option<usize>,
        /// The record, counted from 1, if known.
        record: Option<usize>,
        /// What was found and what was expected.
        why: String,
    },
    /// The file has no records.
    Empty {
        /// The file.
        path: PathBuf,
    },
    /// Another writer, in this process or another, has the file open.
    Locked {
        /// The file.
        path: PathBuf,
    },
    /// A record that must not be written; the file is unchanged.
    Refused {
        /// The file.
        path: PathBuf,
        /// What is wrong with the record.
        why: String,
    },
}

impl Error {
    pub(crate) fn io(path: &Path) -> impl FnOnce(io::Error) -> Self + '_ {
        move |source| Self::Io { path: path.into(), source }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Io { path, source } => write!(f, "{}: {source}", path.display()),
            Self::Malformed { path, line, record, why } => {
                write!(f, "{}", path.display())?;
                if let Some(line) = line {
                    write!(f, ", line {line}")?;
                }
                if let Some(record) = record {
                    write!(f, ", record {record}")?;
                }
                write!(f, ": {why}")
            }
            Self::Empty { path } => write!(f, "{}: no records", path.display()),
            Self::Locked { path } => write!(f, "{}: another recorder is writing this file", path.display()),
            Self::Refused { path, why } => write!(f, "{}: {why}", path.display()),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}
