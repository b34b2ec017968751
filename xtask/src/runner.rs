//! Runs the commands of a tier: everything they print goes to a log, one line of progress to the terminal.

use std::{
    fs::File,
    io::{BufRead, BufReader, IsTerminal, Write},
    path::Path,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{bail, Context, Result};

use crate::workspace::shown;

/// No command of ours takes this long; one that does hangs.
const LIMIT: Duration = Duration::from_secs(40 * 60);
const POLL: Duration = Duration::from_millis(50);
/// How often a line of progress appears where lines cannot be rewritten.
const QUIET: Duration = Duration::from_secs(60);
/// How long output may still come after a command ended, from a child it left behind.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// The log of one tier and its place on the terminal.
pub(crate) struct Runner<'a> {
    tier: &'a str,
    log: File,
    verbose: bool,
    start: Instant,
}

impl<'a> Runner<'a> {
    pub(crate) fn new(tier: &'a str, log: &Path, verbose: bool) -> Result<Self> {
        let log = File::create(log).with_context(|| log.display().to_string())?;
        Ok(Self { tier, log, verbose, start: Instant::now() })
    }

    /// Runs one command to its end.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<()> {
        let line = shown(command);
        writeln!(self.log, "$ {line}")?;
        if self.verbose {
            eprintln!("$ {line}");
        }
        let (output, input) = std::io::pipe()?;
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        let mut child = command.spawn().with_context(|| format!("cannot run `{line}`"))?;
        // the command holds the writing ends of the pipe; while it does, reading would never end
        command.stdout(Stdio::null()).stderr(Stdio::null());

        let (mut log, verbose) = (self.log.try_clone()?, self.verbose);
        let (done, ended) = mpsc::channel::<()>();
        thread::spawn(move || {
            let _dropped_at_the_end = done;
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                // a full disk shows in the tier's result soon enough
                let _ = log.write_all(&[&line[..], b"\n"].concat());
                if verbose {
                    eprintln!("{}", String::from_utf8_lossy(&line));
                }
            }
        });

        let (begin, mut last) = (Instant::now(), Instant::now());
        let status = loop {
            if let Some(status) = child.try_wait()? {
                break status;
            }
            if begin.elapsed() > LIMIT {
                child.kill()?;
                child.wait()?;
                bail!("`{line}` did not end within {} minutes", LIMIT.as_secs() / 60);
            }
            self.progress(&line, &mut last);
            thread::sleep(POLL);
        };
        let _ = ended.recv_timeout(LAST_OUTPUT);
        self.clear();
        if !status.success() {
            bail!("`{line}` failed ({status})");
        }
        Ok(())
    }

    fn progress(&self, line: &str, last: &mut Instant) {
        let seconds = self.start.elapsed().as_secs();
        if self.verbose {
            return;
        }
        if std::io::stderr().is_terminal() {
            let short: String = line.chars().take(80).collect();
            eprint!("\r\x1b[2K{} … {seconds} s  {short}", self.tier);
        } else if last.elapsed() > QUIET {
            *last = Instant::now();
            eprintln!("{} … {seconds} s  {line}", self.tier);
        }
    }

    fn clear(&self) {
        if !self.verbose && std::io::stderr().is_terminal() {
            eprint!("\r\x1b[2K");
        }
    }
}

/// The end of a log, for the terminal.
pub(crate) fn last_lines(log: &Path, count: usize) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let lines: Vec<String> = text.lines().map_while(Result::ok).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}
