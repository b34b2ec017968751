//! Runs tiers side by side and sums up.

use std::{
    fs,
    sync::{Condvar, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

use anyhow::{bail, Result};

use crate::{
    runner::{last_lines, Runner},
    terminal::say,
    tiers::{in_ci, Tier},
    workspace::Workspace,
};

/// Lines of a failed tier's log that are shown.
const SHOWN: usize = 60;

/// How tiers are run.
#[derive(Clone, Copy)]
pub(crate) struct Plan {
    /// Tiers at the same time.
    pub(crate) jobs: usize,
    /// Shows what the tiers print.
    pub(crate) verbose: bool,
    /// Limit of one command.
    pub(crate) limit: Duration,
}

#[derive(Clone, Copy, PartialEq)]
enum Outcome {
    Passed,
    Failed,
    Skipped,
}

/// Tiers not yet started, and the build folders in use.
struct Queue<'a> {
    waiting: Vec<&'a Tier>,
    folders: Vec<&'static str>,
    done: Vec<(&'static str, Outcome, String)>,
}

impl<'a> Queue<'a> {
    /// The first tier whose build folder is not in use: cargo would only wait for the lock of the folder.
    fn take(&mut self) -> Option<&'a Tier> {
        let free = |tier: &&Tier| tier.folder.is_empty() || !self.folders.contains(&tier.folder);
        let index = self.waiting.iter().position(free)?;
        let tier = self.waiting.remove(index);
        self.folders.push(tier.folder);
        Some(tier)
    }

    fn release(&mut self, folder: &str) {
        if let Some(index) = self.folders.iter().position(|used| *used == folder) {
            self.folders.swap_remove(index);
        }
    }
}

/// Runs the tiers, prints a line for each and the totals, and fails if one did.
pub(crate) fn run_tiers(workspace: &Workspace, tiers: &[&Tier], plan: Plan) -> Result<()> {
    let logs = workspace.target.join("xtask");
    fs::create_dir_all(&logs)?;
    announce(workspace, tiers);

    let queue = Queue { waiting: tiers.to_vec(), folders: Vec::new(), done: Vec::new() };
    let (queue, changed) = (Mutex::new(queue), Condvar::new());
    thread::scope(|scope| {
        for _ in 0..plan.jobs.clamp(1, tiers.len().max(1)) {
            scope.spawn(|| work(workspace, plan, &queue, &changed));
        }
    });

    let mut done = queue.into_inner().unwrap_or_else(PoisonError::into_inner).done;
    done.sort_by_key(|(name, ..)| tiers.iter().position(|tier| tier.name == *name));
    let count = |wanted| done.iter().filter(|(_, outcome, _)| *outcome == wanted).count();
    let (passed, failed, skipped) = (count(Outcome::Passed), count(Outcome::Failed), count(Outcome::Skipped));
    let lines: Vec<&str> = done.iter().map(|(_, _, line)| line.as_str()).collect();
    let skipped = if skipped > 0 { format!(", {skipped} skipped") } else { String::new() };
    println!("\n{}\n{passed} passed, {failed} failed{skipped}", lines.join("\n"));
    if failed > 0 {
        bail!("not all tiers passed; their logs are in {}", logs.display());
    }
    Ok(())
}

/// Says what will be installed before anything is.
fn announce(workspace: &Workspace, tiers: &[&Tier]) {
    let mut steps: Vec<String> = Vec::new();
    for step in tiers.iter().flat_map(|tier| tier.needs).filter_map(|need| need.missing(workspace)) {
        if !steps.contains(&step) {
            steps.push(step);
        }
    }
    if !steps.is_empty() {
        say(&format!("missing here and installed when a tier needs it:\n    {}", steps.join("\n    ")));
    }
}

/// One of the threads: takes tiers until none is left.
fn work(workspace: &Workspace, plan: Plan, queue: &Mutex<Queue<'_>>, changed: &Condvar) {
    loop {
        let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
        let tier = loop {
            if state.waiting.is_empty() {
                return;
            }
            match state.take() {
                Some(tier) => break tier,
                None => state = changed.wait(state).unwrap_or_else(PoisonError::into_inner),
            }
        };
        drop(state);

        say(&format!("{} … {}", tier.name, tier.about));
        let start = Instant::now();
        let (outcome, remark) = run(workspace, tier, plan);
        let word = match outcome {
            Outcome::Passed => "ok",
            Outcome::Failed => "FAILED",
            Outcome::Skipped => "skipped",
        };
        let line = format!("{:9} … {word:8} {:4} s  {remark}", tier.name, start.elapsed().as_secs());
        say(line.trim_end());
        let mut state = queue.lock().unwrap_or_else(PoisonError::into_inner);
        state.done.push((tier.name, outcome, line.trim_end().to_owned()));
        state.release(tier.folder);
        changed.notify_all();
    }
}

/// Runs one tier; the remark is for the summary and has one line.
fn run(workspace: &Workspace, tier: &Tier, plan: Plan) -> (Outcome, String) {
    let missing = tier.needs.iter().find_map(|need| need.ensure(workspace).err().map(|error| (need, error)));
    if let Some((need, error)) = missing {
        let reason = format!("{need:?}: {error:#}");
        say(&reason);
        let outcome = if in_ci() { Outcome::Failed } else { Outcome::Skipped };
        return (outcome, reason.lines().next().unwrap_or_default().to_owned());
    }
    let log = workspace.target.join("xtask").join(format!("{}.log", tier.name));
    let result = (|| {
        let mut runner = Runner::new(tier.name, &log, plan.verbose, plan.limit)?;
        // all steps are made before the first one runs: a folder without tests fails at once
        let mut steps = (tier.steps)(workspace)?;
        steps.iter_mut().try_for_each(|step| runner.run(step))
    })();
    match result {
        Ok(()) => (Outcome::Passed, String::new()),
        Err(error) => {
            let shown = if plan.verbose { String::new() } else { last_lines(&log, SHOWN) + "\n" };
            let reason = format!("{error:#}");
            say(&format!("{shown}{}: {reason}", tier.name));
            (Outcome::Failed, reason.lines().next().unwrap_or_default().to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiers_of_one_folder_run_one_after_the_other() {
        let tier = |name, folder| Tier { name, about: "", folder, needs: &[], steps: |_| Ok(Vec::new()) };
        let tiers = [tier("a", "debug"), tier("b", "debug"), tier("c", ""), tier("d", "")];
        let mut queue = Queue { waiting: tiers.iter().collect(), folders: Vec::new(), done: Vec::new() };
        let next = |queue: &mut Queue<'_>| queue.take().map(|tier| tier.name);
        assert_eq!(next(&mut queue), Some("a"));
        assert_eq!(next(&mut queue), Some("c"));
        assert_eq!(next(&mut queue), Some("d"));
        assert_eq!(next(&mut queue), None);
        queue.release("debug");
        assert_eq!(next(&mut queue), Some("b"));
    }
}
