//! Runs the golden cases below the folder given and says what became of them.

use std::{path::PathBuf, process::ExitCode};

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("usage: golden DIR    runs every *.json below DIR");
        return ExitCode::from(2);
    };
    match tokenwise_tests::golden::run(&PathBuf::from(folder)) {
        Ok(report) => {
            println!("{report}");
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
