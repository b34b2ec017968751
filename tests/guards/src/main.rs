//! Counts the instructions of the kernels under callgrind and fails if one needs more per token than it should: an inner loop that is
//! no longer vectorised takes several times as many. Counts, unlike times, are the same on a busy machine.
//!
//! Without arguments: measures every kernel and prints a table; with `--json` a line each, for the page of benchmarks. With a kernel's name and
//! a number: calls it so many times, which is what is measured.

mod kernels;

use std::{
    env,
    process::{Command, ExitCode, Stdio},
};

use kernels::{Kernel, KERNELS};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<ExitCode, Failure> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    match &arguments[..] {
        [] => measure(false),
        [json] if json == "--json" => measure(true),
        [name, calls] => {
            let kernel = KERNELS.iter().find(|kernel| kernel.name == name).ok_or("there is no such kernel")?;
            (kernel.run)(calls.parse()?);
            Ok(ExitCode::SUCCESS)
        }
        _ => Err("expected nothing, --json, or the name of a kernel and a number of calls".into()),
    }
}

fn measure(json: bool) -> Result<ExitCode, Failure> {
    let mut failed = false;
    if !json {
        println!("{:28} instructions per slot   limit", "");
    }
    for kernel in &KERNELS {
        // what comes before the calls cancels out
        let (few, many) = (instructions(kernel, 2)?, instructions(kernel, 6)?);
        let each = many.saturating_sub(few) as f64 / (4 * kernel.slots) as f64;
        let (name, limit) = (kernel.name, kernel.limit);
        failed |= each > limit;
        if json {
            println!(r#"{{"kernel": "{name}", "instructions": {each}, "limit": {limit}}}"#);
        } else {
            println!("{name:28} {each:21.2} {limit:7.2} {}", if each > limit { "TOO MANY" } else { "" });
        }
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn instructions(kernel: &Kernel, calls: usize) -> Result<u64, Failure> {
    let mut valgrind = Command::new("valgrind");
    valgrind.args(["--tool=callgrind", "--callgrind-out-file=/dev/null"]).arg(env::current_exe()?);
    let output = valgrind.args([kernel.name, &calls.to_string()]).stdout(Stdio::null()).output()?;
    let text = String::from_utf8_lossy(&output.stderr);
    let count = text.lines().find_map(|line| line.split("Collected :").nth(1));
    let count = count.ok_or_else(|| format!("valgrind counted nothing for {}: {text}", kernel.name))?;
    Ok(count.trim().parse()?)
}
