//! Builds, tests and serves tokenwise: `cargo xtask --help`.
#![forbid(unsafe_code)]

mod bench;
mod bits;
mod declarations;
mod deep;
mod fingerprints;
mod fuzz;
mod golden;
mod install;
mod machines;
mod modules;
mod mutants;
mod playground;
mod python;
mod runner;
mod schedule;
mod seal;
mod server;
mod size;
mod soak;
mod terminal;
mod test;
mod tiers;
mod wasm;
mod workspace;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, Subcommand};
use workspace::Workspace;

/// Builds, tests and serves tokenwise
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

// in the order of the help; the text of a variant is the doc comment of its options
#[derive(Subcommand)]
enum Command {
    Test(test::Options),
    Deep(deep::Options),
    Fuzz(fuzz::Options),
    Soak(soak::Options),
    Mutants(mutants::Options),
    Bits(bits::Options),
    Golden(golden::Options),
    Size(size::Options),
    Bench(bench::Options),
    Wasm(wasm::Options),
    Playground(playground::Options),
    Python(python::Options),
}

fn main() -> ExitCode {
    match run(&Arguments::parse().command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: &Command) -> Result<()> {
    let workspace = &Workspace::find()?;
    match command {
        Command::Test(options) => test::test(workspace, options),
        Command::Deep(options) => deep::deep(workspace, options),
        Command::Fuzz(options) => fuzz::fuzz(workspace, options),
        Command::Soak(options) => soak::soak(workspace, options),
        Command::Mutants(options) => mutants::mutants(workspace, options),
        Command::Bits(options) => bits::bits(workspace, options),
        Command::Golden(options) => golden::golden(workspace, options),
        Command::Size(options) => size::size(workspace, options),
        Command::Bench(options) => bench::bench(workspace, options),
        Command::Wasm(options) => wasm::wasm(workspace, options),
        Command::Playground(options) => playground::playground(workspace, options),
        Command::Python(options) => python::python(workspace, options),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_of_the_arguments_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn documented_command_lines_are_accepted() {
        for line in [
            "test --only fmt,speed --verbose --jobs 1",
            "test --only=fmt",
            "deep --only long-miri,api",
            "fuzz --minutes 3",
            "soak --minutes 3 --seed 7",
            "mutants --count 10 --seed 7",
            "bits --bless --json",
            "golden tests/golden",
            "golden --browser",
            "size",
            "bench --quick --only gae --threads 2 --json",
            "bench --write",
            "wasm",
            "playground --build-only --port=80 --package pkg",
        ] {
            let words = std::iter::once("cargo xtask").chain(line.split(' '));
            assert!(Arguments::try_parse_from(words).is_ok(), "{line}");
        }
        for line in
            ["test --only nonsense", "golden", "bench --threads 3", "bench --write --quick", "playground --port x"]
        {
            let words = std::iter::once("cargo xtask").chain(line.split(' '));
            assert!(Arguments::try_parse_from(words).is_err(), "{line}");
        }
    }
}
