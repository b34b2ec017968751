//! Starts measuring programs with raised priority and shows their progress.

use std::{
    ffi::{OsStr, OsString},
    fs::{self, File},
    io::{BufRead, BufReader, IsTerminal},
    path::PathBuf,
    process::{Command, Stdio},
    time::Instant,
};

use anyhow::{bail, Context, Result};

use super::records::Records;
use crate::{
    runner::last_lines,
    workspace::{find_program, shown, Workspace},
};

/// Raises the priority of its session (for schedulers that group by session) and of the process; without permission
/// both do nothing.
const RAISE: &str = r#"echo -10 2>/dev/null >/proc/self/autogroup; exec nice -n -10 "$@" "#;

/// A command with raised priority, if permitted.
pub(super) fn raised(workspace: &Workspace, program: impl AsRef<OsStr>) -> Command {
    let may_raise = Command::new("nice").args(["-n", "-1", "nice"]).output();
    // without permission `nice` prints a warning and continues
    let may_raise = may_raise.is_ok_and(|output| output.status.success() && output.stderr.is_empty());
    if !may_raise || find_program("setsid").is_none() {
        return workspace.command(program);
    }
    let mut command = workspace.command("setsid");
    command.args(["--wait", "sh", "-c", RAISE, "sh"]).arg(program);
    command
}

/// One line on the terminal, and a log of the standard error of the programs.
pub(super) struct Progress {
    pub(super) folder: PathBuf,
    start: Instant,
    records: usize,
}

impl Progress {
    pub(super) fn new(workspace: &Workspace) -> Result<Self> {
        let folder = workspace.target.join("bench");
        fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
        Ok(Self { folder, start: Instant::now(), records: 0 })
    }

    /// Shows the current step.
    pub(super) fn show(&self, what: &str) {
        let seconds = self.start.elapsed().as_secs();
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2Kbench {seconds} s, {} results: {what}", self.records);
        } else {
            eprintln!("bench {seconds} s, {} results: {what}", self.records);
        }
    }

    pub(super) fn end(&self) {
        if std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
    }

    /// Runs a program that prints records.
    pub(super) fn run(&mut self, run: &str, command: &mut Command, records: &mut Records) -> Result<()> {
        self.show(run);
        let log = self.folder.join(format!("{run}.log"));
        let complaints = File::create(&log).with_context(|| log.display().to_string())?;
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(complaints);
        let mut child = command.spawn().with_context(|| format!("cannot run `{}`", shown(command)))?;
        let output = child.stdout.take().context("no pipe")?;
        let mut last = String::new();
        for line in BufReader::new(output).lines() {
            let line = line?;
            // frameworks print other lines too
            if !line.starts_with('{') {
                continue;
            }
            records.add_line(run, &line)?;
            self.records += 1;
            let record: serde_json::Value = serde_json::from_str(&line)?;
            let item = ["item", "growth"].iter().find_map(|key| record[key].as_str()).unwrap_or_default();
            let now = format!("{run}: {item} {}", record["shape"].as_str().unwrap_or_default());
            if now != last {
                self.show(&now);
                last = now;
            }
        }
        let status = child.wait()?;
        if !status.success() {
            bail!("`{}` failed ({status})\n{}", shown(command), last_lines(&log, 30));
        }
        Ok(())
    }
}

/// Environment variables that set the size of every thread pool.
pub(super) fn pools(threads: usize) -> Vec<(&'static str, OsString)> {
    ["RAYON_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "BENCH_THREADS"]
        .map(|name| (name, threads.to_string().into()))
        .to_vec()
}
