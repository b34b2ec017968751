//! Runs the golden cases below a folder and prints the results.

use std::{path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), option, None) = (arguments.next(), arguments.next(), arguments.next()) else {
        eprintln!("usage: golden DIR [--coverage]    runs every *.json below DIR; --coverage prints a table in Markdown instead");
        return ExitCode::from(2);
    };
    let coverage = match option {
        None => false,
        Some(option) if option == "--coverage" => true,
        Some(option) => {
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
