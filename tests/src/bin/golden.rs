//! Runs the golden cases below a folder and prints the results.

use std::{
    fs,
    io::{self, Write as _},
    path::{Path, PathBuf},
    process::ExitCode,
};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), option, file, None) = (arguments.next(), arguments.next(), arguments.next(), arguments.next())
    else {
        return usage();
    };
    let coverage = match (option, file) {
        (None, None) => false,
        (Some(option), None) if option == "--coverage" => true,
        (Some(option), Some(file)) if option == "--calls" => {
            return match write_calls(&PathBuf::from(folder), &PathBuf::from(file)) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => {
                    eprintln!("golden: {error}");
                    ExitCode::from(2)
                }
            };
        }
        (_, Some(_)) => return usage(),
        (Some(option), None) => {
            eprintln!("golden: unknown option {}", option.to_string_lossy());
            return ExitCode::from(2);
        }
    };
    match tokenwise_tests::golden::run(&PathBuf::from(folder)) {
        Ok(report) => {
            if coverage {
                print!("{}", report.coverage());
            } else {
                println!("{report}");
            }
            if report.failed() == 0 {
                ExitCode::SUCCESS
            } else {
                ExitCode::FAILURE
            }
        }
        Err(error) => {
            eprintln!("golden: {error}");
            ExitCode::from(2)
        }
    }
}

fn usage() -> ExitCode {
    eprintln!("usage: golden DIR [--coverage | --calls FILE]    runs every *.json below DIR");
    eprintln!("  --coverage    prints a table in Markdown instead");
    eprintln!("  --calls FILE  writes every call of a formula and its result in f64 instead, one JSON object per line");
    ExitCode::from(2)
}

/// For tests of other ways to call the formulas.
fn write_calls(folder: &Path, file: &Path) -> io::Result<()> {
    let mut out = io::BufWriter::new(fs::File::create(file)?);
    for call in tokenwise_tests::golden::calls(folder)? {
        writeln!(out, "{}", call.to_json())?;
    }
    out.flush()
}
