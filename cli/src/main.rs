//! The `tokenwise` command.
#![forbid(unsafe_code)]

mod args;
mod entropy;
mod explain;
mod failure;
mod input;
mod lint;
mod metrics;
mod output;
mod plot;
mod progress;
mod report;
mod rollout;

use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::args::{Arguments, Command};

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    output::watch_interrupts();
    let memory = arguments.memory;
    let done = match &arguments.command {
        Command::Entropy(command) => match entropy::run(command, memory) {
            Ok(true) => return ExitCode::from(1),
            other => other.map(|_| ()),
        },
        Command::Metrics(options) => metrics::run(options, memory),
        Command::Explain(options) => explain::run(options, memory),
        Command::Report(options) => report::run(options, memory),
        Command::Lint(options) => match lint::run(options, memory) {
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
            output::complain(&failure.to_string());
            ExitCode::from(failure.code as u8)
        }
    }
}
