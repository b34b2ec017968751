//! A writer killed at any point leaves complete files and loses at most the record being written.
//!
//! `TOKENWISE_ROUNDS` sets the number of kills; `cargo xtask test` uses 1,000.

use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
    thread,
    time::Duration,
};

use tokenwise_recorder::{parse_history, read_lines, Map, Recorder, RecorderConfig, Survive, Value};

const FOLDER: &str = "TOKENWISE_KILL_FOLDER";

/// The process that gets killed: continues where the files end and prints each step once it is accepted.
#[test]
#[ignore = "runs only as the child of the test below"]
fn writer() {
    let Ok(folder) = env::var(FOLDER) else { return };
    let survive = if env::var("TOKENWISE_KILL_SYNC").is_ok() { Survive::PowerLoss } else { Survive::Kill };
    let config = RecorderConfig { survive, distributions_every: 10, ..Default::default() };
    let mut recorder = Recorder::open(Path::new(&folder), "run", &config).unwrap();
    let mut out = std::io::stdout();
    // long lines cross page boundaries more often
    let extra = Map::from_iter([("note".to_string(), Value::from("x".repeat(700)))]);
    for step in recorder.last_step().unwrap_or(0) + 1.. {
        recorder.record_with(step, &[("policy/entropy", 1.0 / step as f64)], &extra).unwrap();
        recorder.distributions(step, &[("H", &[1.0, 2.0, 3.0])]).unwrap();
        writeln!(out, "\nstep {step}").unwrap();
    }
}

fn fresh_folder(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("tokenwise-recorder-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).unwrap();
    folder
}

/// Starts the writer, kills it after a while, and returns the last step it printed.
fn killed_after(folder: &Path, wait: Duration, sync: bool) -> u64 {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["--exact", "kill::writer", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(FOLDER, folder).stdout(Stdio::piped()).stderr(Stdio::null());
    if sync {
        command.env("TOKENWISE_KILL_SYNC", "1");
    }
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = thread::spawn(move || {
        let steps = lines.map_while(Result::ok).filter_map(|line| line.strip_prefix("step ")?.parse().ok());
        steps.last().unwrap_or(0)
    });
    thread::sleep(wait);
    child.kill().unwrap();
    child.wait().unwrap();
    told.join().unwrap()
}

fn survives(kills: u32, sync: bool) {
    let folder = fresh_folder(if sync { "kill-sync" } else { "kill" });
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut told = 0;
    for kill in 0..kills {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        // some kills hit the start, the opening and the repair
        told = told.max(killed_after(&folder, Duration::from_micros(random % 60_000), sync));
        let path = folder.join("entropy_history_run.json");
        if !path.exists() {
            assert_eq!(told, 0);
            continue;
        }
        let records =
            parse_history(&path, &std::fs::read(&path).unwrap()).unwrap_or_else(|error| panic!("kill {kill}: {error}"));
        for (index, record) in records.iter().enumerate() {
            assert_eq!((record.step, record.entropy), (index as u64 + 1, 1.0 / (index as f64 + 1.0)));
        }
        assert!(
            records.len() as u64 >= told,
            "kill {kill}: step {told} was accepted, the history ends at {}",
            records.len()
        );
        let lines = read_lines(&folder.join("metrics_run.jsonl")).unwrap();
        let last = lines
            .iter()
            .filter(|line| line.contains_key("policy/entropy"))
            .filter_map(|line| line["step"].as_u64())
            .next_back();
        assert!(last.unwrap_or(0) >= told, "kill {kill}: step {told} was accepted, the lines end at {last:?}");
        if records.len() > 20_000 {
            std::fs::remove_dir_all(&folder).unwrap();
            std::fs::create_dir_all(&folder).unwrap();
            told = 0;
        }
    }
    assert!(kills < 20 || told > 0, "the writer never got to write");
    println!("{kills} kills, {told} steps, synced: {sync}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn no_kill_leaves_an_unreadable_file() {
    let kills = crate::rounds();
    survives(kills - kills / 5, false);
    survives(kills / 5, true);
}
