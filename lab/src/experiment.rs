//! Many runs, some of them side by side.

use std::{
    collections::VecDeque,
    path::Path,
    sync::{
        atomic::{AtomicBool, Ordering},
        Mutex, MutexGuard, PoisonError,
    },
    thread,
};

use anyhow::Context;
use indicatif::{MultiProgress, ProgressBar, ProgressStyle};

use crate::{
    checkpoint,
    logs::{run_folder, Logs},
    settings::{Group, Settings, Switches, Target},
    task::Task,
    training::Trainer,
};

/// How runs are executed; nothing of it changes a result.
#[derive(Clone, Copy, Debug)]
pub struct Execution<'a> {
    /// The folder of all runs.
    pub out: &'a Path,
    /// Runs side by side, each on one thread.
    pub jobs: usize,
    /// Steps between two checkpoints.
    pub checkpoint_every: u64,
    /// Set from outside to stop all runs after their current step.
    pub stop: &'a AtomicBool,
}

/// How a run or an experiment ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All steps are done.
    Finished,
    /// It was asked to stop, and left a checkpoint.
    Stopped,
}

/// The groups of a task for several seeds; complete seeds come early.
pub fn plan(task: Task, groups: &[Group], seeds: &[u64], steps: u64) -> Vec<Settings> {
    let of_seed = |&seed: &u64| groups.iter().map(move |&group| Settings::new(task, group, seed, steps));
    seeds.iter().flat_map(of_seed).collect()
}

/// C1 with one setting at a time changed.
pub fn sweep(task: Task, seeds: &[u64], steps: u64) -> Vec<Settings> {
    let none = Switches::default();
    let changed = [
        Switches { target: Some(Target::Fixed), ..none },
        Switches { gamma: Some(0.8), ..none },
        Switches { gamma: Some(1.5), ..none },
        Switches { rho: Some(0.3), ..none },
        Switches { rho: Some(0.6), ..none },
        Switches { eta_lambda: Some(0.02), ..none },
        Switches { eta_beta: Some(0.02), ..none },
        Switches { target_kl: Some(0.05), ..none },
        // with the adaptive target, the configured one counts in the first ten steps only
        Switches { target_kl: Some(0.05), target: Some(Target::Fixed), ..none },
    ];
    let of_switches = |switches: Switches| {
        plan(task, &[Group::C1], seeds, steps).into_iter().map(move |settings| Settings { switches, ..settings })
    };
    changed.into_iter().flat_map(of_switches).collect()
}

/// Runs all. Finished ones are skipped, unfinished ones continue.
///
/// # Errors
///
/// The first error of a run; the others are stopped with a checkpoint.
pub fn execute(runs: Vec<Settings>, execution: &Execution<'_>) -> anyhow::Result<Outcome> {
    let stop = execution.stop;
    let progress = MultiProgress::new();
    let all = progress.add(ProgressBar::new(runs.len() as u64));
    all.set_style(style("{wide_bar} {pos}/{len} runs, {elapsed} so far, {eta} left"));
    let queue = Mutex::new(VecDeque::from(runs));
    let failed = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..execution.jobs.max(1) {
            scope.spawn(|| loop {
                let next = locked(&queue).pop_front();
                let Some(settings) = next.filter(|_| !stop.load(Ordering::Relaxed)) else { break };
                let bar = progress.insert_from_back(1, ProgressBar::new(settings.steps));
                bar.set_style(style("{prefix:32} {wide_bar} {pos}/{len} {msg}"));
                bar.set_prefix(format!("{} {} seed {}", settings.task.name(), settings.variant(), settings.seed));
                match train(&settings, execution, &bar) {
                    Ok(Outcome::Finished) => all.inc(1),
                    Ok(Outcome::Stopped) => {}
                    Err(error) => {
                        locked(&failed).get_or_insert(error);
                        stop.store(true, Ordering::Relaxed);
                    }
                }
                bar.finish_and_clear();
            });
        }
    });
    if let Some(error) = locked(&failed).take() {
        return Err(error);
    }
    let outcome = if stop.load(Ordering::Relaxed) { Outcome::Stopped } else { Outcome::Finished };
    Ok(outcome)
}

/// A thread that panicked has left nothing half-done in what the mutexes hold.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
}

/// One run, from its last checkpoint or its beginning.
///
/// # Errors
///
/// If a file of the run cannot be read or written, or a formula refuses its numbers.
pub fn train(settings: &Settings, execution: &Execution<'_>, bar: &ProgressBar) -> anyhow::Result<Outcome> {
    let folder = run_folder(execution.out, settings);
    let run = || -> anyhow::Result<Outcome> {
        let found = checkpoint::load(&folder, settings)?;
        if found.as_ref().is_some_and(|found| found.step == settings.steps) {
            return Ok(Outcome::Finished);
        }
        let mut trainer = match found {
            Some(trainer) => trainer,
            None => {
                bar.set_message("warm-up");
                Trainer::new(*settings)?
            }
        };
        let mut logs = Logs::open(&folder, &trainer)?;
        bar.set_position(trainer.step);
        while trainer.step < settings.steps {
            if execution.stop.load(Ordering::Relaxed) {
                checkpoint::save(&folder, &trainer)?;
                return Ok(Outcome::Stopped);
            }
            let step = trainer.step()?;
            logs.record(settings, &step)?;
            let ended = trainer.step == settings.steps;
            if ended {
                // before the last checkpoint: after a kill between the two, the last steps are repeated
                logs.finish(&trainer, &step)?;
            }
            if ended || trainer.step.is_multiple_of(execution.checkpoint_every) {
                checkpoint::save(&folder, &trainer)?;
            }
            bar.set_message(format!("reward {:.2}", mean(&step.scores)));
            bar.inc(1);
        }
        Ok(Outcome::Finished)
    };
    run().with_context(|| format!("the run in {}", folder.display()))
}

fn mean(scores: &[f32]) -> f32 {
    scores.iter().fold(0.0, |sum, score| sum + score) / scores.len().max(1) as f32
}
