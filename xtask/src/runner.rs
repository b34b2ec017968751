//! Runs the commands of a tier and writes everything they print to the tier's log.

use std::{
    fs::File,
    io::{BufRead, BufReader, Write},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use anyhow::{bail, Context, Result};

use crate::{terminal, workspace::shown};

const POLL: Duration = Duration::from_millis(50);
/// How long output may still arrive after a command ended, from a child process it left behind.
const LAST_OUTPUT: Duration = Duration::from_secs(2);

/// The log of one tier.
pub(crate) struct Runner {
    tier: &'static str,
    log: File,
    verbose: bool,
    /// A command that takes longer hangs.
    limit: Duration,
    start: Instant,
}

impl Runner {
    pub(crate) fn new(tier: &'static str, log: &Path, verbose: bool, limit: Duration) -> Result<Self> {
        let log = File::create(log).with_context(|| log.display().to_string())?;
        Ok(Self { tier, log, verbose, limit, start: Instant::now() })
    }

    /// Runs one command to its end.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<()> {
        let line = shown(command);
        writeln!(self.log, "$ {line}")?;
        if self.verbose {
            terminal::say(&format!("{} | $ {line}", self.tier));
        }
        let (output, input) = std::io::pipe()?;
        command.stdin(Stdio::null()).stdout(input.try_clone()?).stderr(input);
        let mut child = command.spawn().with_context(|| format!("cannot run `{line}`"))?;
        // drops the writing ends of the pipe: while `command` holds them, the reader would not see the end
        command.stdout(Stdio::null()).stderr(Stdio::null());

        let (mut log, verbose, tier) = (self.log.try_clone()?, self.verbose, self.tier);
        let (done, ended) = mpsc::channel::<()>();
        thread::spawn(move || {
            let _dropped_at_the_end = done;
            for line in BufReader::new(output).split(b'\n').map_while(Result::ok) {
                // a full disk makes the tier itself fail
                let _ = log.write_all(&[&line[..], b"\n"].concat());
                if verbose {
                    terminal::say(&format!("{tier} | {}", String::from_utf8_lossy(&line)));
                }
            }
        });

        terminal::begin(self.tier, self.start, &line);
        let waited = wait(&mut child, self.limit);
        let _ = ended.recv_timeout(LAST_OUTPUT);
        terminal::end(self.tier);
        match waited? {
            None => bail!("`{line}` did not end within {} minutes", self.limit.as_secs() / 60),
            Some(status) if !status.success() => bail!("`{line}` failed ({status})"),
            Some(_) => Ok(()),
        }
    }
}

/// Waits for a command to end; one that exceeds the limit is killed.
fn wait(child: &mut Child, limit: Duration) -> Result<Option<ExitStatus>> {
    let begin = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if begin.elapsed() > limit {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        terminal::refresh();
        thread::sleep(POLL);
    }
}

/// The end of a log, for the terminal.
pub(crate) fn last_lines(log: &Path, count: usize) -> String {
    let text = std::fs::read(log).unwrap_or_default();
    let lines: Vec<String> = text.lines().map_while(Result::ok).collect();
    lines[lines.len().saturating_sub(count)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn output_reaches_the_log_and_failures_and_hangs_are_errors() {
        let log = std::env::temp_dir().join(format!("tokenwise-runner-{}.log", std::process::id()));
        let mut runner = Runner::new("self-test", &log, false, Duration::from_millis(300)).unwrap();
        let mut shell = |script: &str| runner.run(Command::new("sh").args(["-c", script]));
        assert!(shell("echo one; echo two >&2").is_ok());
        assert!(shell("exit 3").unwrap_err().to_string().contains("exit status: 3"));
        assert!(shell("exec sleep 60").unwrap_err().to_string().contains("did not end"));
        let text = std::fs::read_to_string(&log).unwrap();
        assert!(text.contains("\none\n") && text.contains("\ntwo\n"), "{text}");
        assert_eq!(last_lines(&log, 1), "$ sh -c exec sleep 60");
        std::fs::remove_file(&log).unwrap();
    }
}
