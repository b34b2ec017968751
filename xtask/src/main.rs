//! Builds, tests and serves tokenwise: `cargo xtask --help`.
#![forbid(unsafe_code)]

mod bench;
mod bits;
mod fingerprints;
mod golden;
mod install;
mod machines;
mod options;
mod playground;
mod runner;
mod seal;
mod server;
mod size;
mod test;
mod tiers;
mod wasm_build;
mod wasm_glue;
mod wasm_package;
mod workspace;

use std::{env, process::ExitCode};

use anyhow::{bail, Result};
use options::Options;
use workspace::Workspace;

const HELP: &str = "\
cargo xtask COMMAND

  test         installs what is missing, then runs every tier of tests
  bits         compares the bits of every formula across machines and with the record
  bench        measures speed, beside peers and the limits of the machine
  size         measures a training step on microcontrollers
  golden       runs the golden cases below a folder
  wasm         builds the WebAssembly package
  playground   builds the page and serves it

cargo xtask COMMAND --help says more.
";

type Run = fn(&Workspace, Options) -> Result<()>;

fn main() -> ExitCode {
    match command(env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn command(mut arguments: impl Iterator<Item = String>) -> Result<()> {
    let name = arguments.next().unwrap_or_else(|| "--help".into());
    let (help, run): (&str, Run) = match name.as_str() {
        "test" => (test::HELP, test::test),
        "bits" => (bits::HELP, bits::bits),
        "bench" => (bench::HELP, bench::bench),
        "size" => (size::HELP, size::size),
        "golden" => (golden::HELP, golden::golden),
        "wasm" => (wasm_build::HELP, wasm_build::wasm),
        "playground" => (playground::HELP, playground::playground),
        "help" | "--help" | "-h" => {
            print!("{HELP}");
            return Ok(());
        }
        _ => bail!("unknown command {name:?}\n\n{HELP}"),
    };
    let mut options = Options::new(arguments);
    if options.flag("--help") {
        print!("{help}");
        return Ok(());
    }
    run(&Workspace::find()?, options)
}
