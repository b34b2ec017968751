//! Rollout files, handed to the reader.

use std::{
    ops::ControlFlow,
    path::{Path, PathBuf},
};

pub(crate) use tokenwise_reader::{Column, Field, Rollouts, Row, Summary};

use tokenwise_reader::{Budget, Error, File, LeftOut, Names, Options, Session};

use crate::{
    args::Reading,
    failure::{Failure, Result},
    input::{self, Opened},
    output::{count, warn},
};

/// The function that receives each batch.
pub(crate) type Sink<'a> = &'a mut dyn FnMut(&Rollouts) -> Result<()>;

/// The files that are read, and within which limits.
pub(crate) struct Files {
    pub(crate) paths: Vec<PathBuf>,
    options: Options,
    follow: bool,
}

impl Files {
    pub(crate) fn new(reading: &Reading, memory: Budget) -> Result<Self> {
        let names = Names::new(&reading.fields).map_err(|what| Failure::usage(format!("--field {what}")))?;
        let paths = input::expand(&reading.files)?;
        if reading.follow && paths.len() != 1 {
            return Err(Failure::usage("--follow: expected one file"));
        }
        let options = Options { names, batch_tokens: reading.batch_tokens, memory, ..Options::default() };
        Ok(Self { paths, options, follow: reading.follow })
    }

    /// Also collects the texts of tokens.
    pub(crate) fn with_labels(mut self) -> Self {
        self.options.labels = true;
        self
    }

    /// For messages: the file, or how many there are.
    pub(crate) fn name(&self) -> String {
        match &self.paths[..] {
            [path] => path.display().to_string(),
            paths => format!("{} files", paths.len()),
        }
    }

    /// The file of a row.
    pub(crate) fn path(&self, row: &Row) -> String {
        self.paths.get(row.file as usize).map_or(String::new(), |path| path.display().to_string())
    }

    /// Something is wrong with the files as a whole.
    pub(crate) fn failure(&self, what: impl std::fmt::Display) -> Failure {
        match &self.paths[..] {
            [path] => Failure::input(path, what),
            _ => Failure { code: crate::failure::Code::Input, message: format!("{}: {what}", self.name()) },
        }
    }

    /// Refuses a computation that needs more memory than is left beside a batch.
    pub(crate) fn check_memory(&self, what: &str, rollouts: &Rollouts, more: u64) -> Result<()> {
        self.options.memory.check(what, rollouts.bytes().saturating_add(more)).map_err(|fault| {
            let failure = self.failure(fault);
            Failure { message: format!("{}{MORE}", failure.message), ..failure }
        })
    }

    /// Hands the batches to `sink`, in order.
    pub(crate) fn read(&self, sink: Sink<'_>) -> Result<Summary> {
        let mut failure = None;
        let mut pass = |rollouts: &Rollouts| match sink(rollouts) {
            Ok(()) => ControlFlow::Continue(()),
            Err(refused) => {
                failure = Some(refused);
                ControlFlow::Break(())
            }
        };
        let mut session = Session::new(&self.options, &mut pass);
        let mut refused = None;
        for path in &self.paths {
            let opened = match input::open(path, self.follow) {
                Ok(opened) => opened,
                Err(failure) => {
                    refused = Some(failure);
                    break;
                }
            };
            let name = path.to_string_lossy();
            let (file, progress) = match opened {
                Opened::Disk(disk) => {
                    let progress = disk.progress.clone();
                    (File::open(&name, disk, &self.options), Some(progress))
                }
                Opened::Stream(stream) => (File::stream(&name, stream, &self.options), None),
            };
            let done = file.and_then(|file| session.add(file, input::step_of(path)));
            if let Some(progress) = progress {
                progress.done();
            }
            if let Err(error) = done {
                refused = Some(told(path, &error));
                break;
            }
        }
        let summary = match refused {
            Some(refused) => {
                drop(session);
                Err(refused)
            }
            None => session.finish().map_err(|error| {
                let failure = self.failure(&error);
                Failure { message: failure.message + hint(&error), ..failure }
            }),
        };
        if let Ok(summary) = &summary {
            warn_of(&summary.left_out);
        }
        failure.map_or(summary, Err)
    }
}

/// Tells which traces of prime-rl are not among the sequences.
fn warn_of(left_out: &LeftOut) {
    let reasons = [
        (left_out.evaluations, "of evaluations"),
        (left_out.not_trained, "of agents that are not trained"),
        (left_out.not_annotated, "that no training step used"),
    ];
    let told: Vec<String> = reasons
        .iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, reason)| format!("{} {reason}", count(*number, "trace")))
        .collect();
    if !told.is_empty() {
        warn(&format!("left out: {}", told.join(", ")));
    }
}

const MORE: &str = " (see --memory)";

fn hint(error: &Error) -> &'static str {
    if error.fault.code() == "memory" {
        MORE
    } else {
        ""
    }
}

fn told(path: &Path, error: &Error) -> Failure {
    Failure::input(path, format!("{error}{}", hint(error)))
}
