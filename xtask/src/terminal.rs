//! The terminal while several tiers run: messages scroll, and the last line says what is running.

use std::{
    io::IsTerminal,
    sync::{Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// How often the last line is redrawn.
const REDRAW: Duration = Duration::from_millis(250);
/// How often a line per tier appears where lines cannot be redrawn.
const QUIET: Duration = Duration::from_secs(60);
/// Columns used, since a line that wraps cannot be redrawn.
const WIDTH: usize = 78;

struct Running {
    tier: &'static str,
    start: Instant,
    command: String,
    shown: Instant,
}

struct State {
    running: Vec<Running>,
    drawn: Option<Instant>,
}

static STATE: Mutex<State> = Mutex::new(State { running: Vec::new(), drawn: None });

fn state() -> MutexGuard<'static, State> {
    // a list of names stays valid if a thread panicked
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Prints a message of one or more lines, never in the middle of another one.
pub(crate) fn say(message: &str) {
    let mut state = state();
    clear(&mut state);
    eprintln!("{message}");
}

/// A tier begins a command.
pub(crate) fn begin(tier: &'static str, start: Instant, command: &str) {
    let mut state = state();
    state.running.retain(|running| running.tier != tier);
    state.running.push(Running { tier, start, command: command.to_owned(), shown: Instant::now() });
}

/// A tier has ended its command.
pub(crate) fn end(tier: &str) {
    let mut state = state();
    state.running.retain(|running| running.tier != tier);
    clear(&mut state);
}

/// Shows what is running, if it is time to.
pub(crate) fn refresh() {
    let mut state = state();
    if std::io::stderr().is_terminal() {
        if state.drawn.is_none_or(|drawn| drawn.elapsed() > REDRAW) {
            eprint!("\r\x1b[2K{}", line(&state.running));
            state.drawn = Some(Instant::now());
        }
        return;
    }
    for running in &mut state.running {
        if running.shown.elapsed() > QUIET {
            running.shown = Instant::now();
            eprintln!("{} … {} s  {}", running.tier, running.start.elapsed().as_secs(), running.command);
        }
    }
}

fn line(running: &[Running]) -> String {
    let width = WIDTH / running.len().max(1);
    let parts = running.iter().map(|running| {
        let text = format!("{} … {} s  {}", running.tier, running.start.elapsed().as_secs(), running.command);
        text.chars().take(width.saturating_sub(3)).collect::<String>()
    });
    parts.collect::<Vec<_>>().join(" | ")
}

fn clear(state: &mut State) {
    if state.drawn.take().is_some() {
        eprint!("\r\x1b[2K");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_fits_whatever_runs() {
        let now = Instant::now();
        let running = |tier| Running { tier, start: now, command: "cargo test ".repeat(20), shown: now };
        for tiers in [&["fmt"][..], &["tests", "browser"], &["tests", "browser", "miri"]] {
            let line = line(&tiers.iter().map(|tier| running(tier)).collect::<Vec<_>>());
            assert!(line.chars().count() <= WIDTH, "{line}");
            assert!(tiers.iter().all(|tier| line.contains(tier)), "{line}");
        }
    }
}
