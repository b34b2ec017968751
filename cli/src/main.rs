//! The `tokenwise` command.
#![forbid(unsafe_code)]

mod args;
mod entropy;
mod explain;
mod failure;
mod lint;
mod metrics;
mod output;
mod progress;
mod rollout;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let done = match &arguments.command {
        Command::Entropy(command) => match entropy::run(command) {
            Ok(true) => return ExitCode::from(1),
            other => other.map(|_| ()),
        },
        Command::Metrics(options) => metrics::run(options),
        Command::Explain(options) => explain::run(options),
        Command::Lint(options) => match lint::run(options) {
            Ok(true) => return ExitCode::from(1),
            other => other.map(|_| ()),
        },
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(*shell, &mut Arguments::command(), "tokenwise", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::from(failure.code as u8)
        }
    }
}
