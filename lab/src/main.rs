//! The command of the laboratory.

use std::{
    path::PathBuf,
    process::ExitCode,
    sync::{
        atomic::{AtomicBool, Ordering},
        Arc,
    },
    thread,
};

use clap::{Args, Parser, Subcommand};
use tokenwise_lab::{
    experiment::{execute, plan, sweep, Execution, Outcome},
    report,
    settings::{Algorithm, Group, Settings, Size, Switches},
    task::Task,
};

/// Trains a small transformer by PPO or GRPO, with and without the entropy budget of BNTO.
#[derive(Parser)]
#[command(name = "tokenwise-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Train the groups of the experiment, then write its report. Continues where it was interrupted.
    Run(Box<Run>),
    /// Write the report of the runs in a folder.
    Report {
        /// The folder that `run` has written.
        runs: PathBuf,
        /// Where the report goes; default `report` in that folder, with `--small` docs/experiment.
        #[arg(long)]
        out: Option<PathBuf>,
        /// The form for a repository: figures of at most 300 KB together, numbers, and a README with the findings.
        #[arg(long)]
        small: bool,
    },
}

#[derive(Args)]
struct Run {
    /// A small form of the experiment: both tasks, two seeds, 100 steps.
    #[arg(long)]
    quick: bool,
    /// The tasks; default both.
    #[arg(long, value_delimiter = ',')]
    task: Vec<Task>,
    /// The groups.
    #[arg(long, value_delimiter = ',', default_value = "C0,C0k,C1,C2,C3")]
    groups: Vec<Group>,
    /// The seeds; default 0 to 4, with `--quick` 0 and 1.
    #[arg(long, value_delimiter = ',')]
    seeds: Vec<u64>,
    /// Training steps of each run; default 1000, with `--quick` 100.
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    steps: Option<u64>,
    /// Also train C1 with one setting at a time changed, for these seeds.
    #[arg(long, value_delimiter = ',', value_name = "SEEDS")]
    sweep: Vec<u64>,
    /// Runs side by side, each on one thread; default one for each processor. Results do not depend on it.
    #[arg(long)]
    jobs: Option<usize>,
    /// The folder of the runs; the report is written to `report` in it.
    #[arg(long, default_value = "target/lab")]
    out: PathBuf,
    /// Where advantages come from.
    #[arg(long, value_enum, default_value_t = Algorithm::Ppo)]
    algorithm: Algorithm,
    #[command(flatten)]
    switches: Switches,
    /// Networks and batches of a size for tests.
    #[arg(long, hide = true)]
    tiny: bool,
    /// Steps between two checkpoints.
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u64).range(1..))]
    checkpoint_every: u64,
    /// Only the runs, no report.
    #[arg(long)]
    no_report: bool,
}

impl Run {
    fn plan(&self) -> Vec<Settings> {
        let or = |given: &[u64], default: &[u64]| if given.is_empty() { default.to_vec() } else { given.to_vec() };
        let (steps, seeds) = match self.quick {
            true => (self.steps.unwrap_or(100), or(&self.seeds, &[0, 1])),
            false => (self.steps.unwrap_or(1000), or(&self.seeds, &[0, 1, 2, 3, 4])),
        };
        let tasks = if self.task.is_empty() { vec![Task::TwoDigit, Task::OneDigit] } else { self.task.clone() };
        let mut runs: Vec<Settings> = Vec::new();
        for &task in &tasks {
            let groups = plan(task, &self.groups, &seeds, steps);
            runs.extend(groups.into_iter().map(|settings| Settings { switches: self.switches, ..settings }));
        }
        if !self.sweep.is_empty() {
            runs.extend(sweep(tasks[0], &self.sweep, steps));
        }
        let complete = |settings: Settings| Settings {
            algorithm: self.algorithm,
            size: if self.tiny { Size::TINY } else { settings.size },
            warm_up_limit: if self.tiny { 10 } else { settings.warm_up_limit },
            ..settings
        };
        runs.into_iter().map(complete).collect()
    }
}

fn main() -> anyhow::Result<ExitCode> {
    // before any thread: candle then computes every product on the thread of its run, with the same bits whatever the
    // number of runs side by side
    std::env::set_var("RAYON_NUM_THREADS", "1");
    match Cli::parse().command {
        Command::Run(run) => {
            let stop = Arc::new(AtomicBool::new(false));
            let asked = Arc::clone(&stop);
            ctrlc::set_handler(move || {
                // the second time nothing is saved
                if asked.swap(true, Ordering::Relaxed) {
                    std::process::exit(130);
                }
                eprintln!("stopping after this step; a second Ctrl-C stops at once");
            })?;
            let jobs = run.jobs.unwrap_or_else(|| thread::available_parallelism().map_or(1, usize::from));
            if execute(
                run.plan(),
                &Execution { out: &run.out, jobs, checkpoint_every: run.checkpoint_every, stop: &stop },
            )? == Outcome::Stopped
            {
                eprintln!("stopped; the same command continues");
                return Ok(ExitCode::from(130));
            }
            if !run.no_report {
                let out = run.out.join("report");
                report::write(&run.out, &out)?;
                println!("report: {}", out.display());
            }
        }
        Command::Report { runs, out, small } => {
            let default = if small { "docs/experiment".into() } else { runs.join("report") };
            let out = out.unwrap_or(default);
            let write = if small { report::write_small } else { report::write };
            write(&runs, &out)?;
            println!("report: {}", out.display());
        }
    }
    Ok(ExitCode::SUCCESS)
}
