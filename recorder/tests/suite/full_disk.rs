//! Writes that fail half-way. A limit on the size of files stands in for a full disk: the system writes as much of a
//! line as fits, and then refuses.

use std::{env, fs, path::Path, process::Command};

use tokenwise_recorder::{
    read_history, read_lines, Error, History, Map, Recorder, RecorderConfig, Resume, Survive, Value,
};

const FOLDER: &str = "TOKENWISE_FULL_DISK_FOLDER";

fn note(len: usize) -> Map<String, Value> {
    Map::from_iter([("note".to_string(), Value::from("x".repeat(len)))])
}

/// The process whose files are limited.
#[test]
#[ignore = "runs only as the child of the test below, which limits the size of its files"]
fn writer() {
    let Ok(folder) = env::var(FOLDER) else { return };
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut retried = 0;
    for round in 0..crate::rounds() {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        let folder = Path::new(&folder).join(round.to_string());
        fs::create_dir(&folder).unwrap();
        let survive = if round % 10 == 0 { Survive::PowerLoss } else { Survive::Kill };
        let len = 500 + (random % 3000) as usize;
        let fill = if round % 2 == 0 { fill_lines } else { fill_history };
        retried += u32::from(fill(&folder, survive, len));
        fs::remove_dir_all(&folder).unwrap();
    }
    assert!(retried > crate::rounds() / 2, "{retried} steps were retried");
}

/// Records until a file is full, then the same step with less to write; whether there was room for that.
fn fill_lines(folder: &Path, survive: Survive, len: usize) -> bool {
    let config = RecorderConfig { survive, ..Default::default() };
    let mut recorder = Recorder::open(folder, "x", &config).unwrap();
    let mut step = 1;
    let error = loop {
        match recorder.record_with(step, &[("policy/entropy", 1.0)], &note(len)) {
            Ok(()) => step += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Io { .. }), "{error}");
    let steps = |end: u64| {
        let lines = read_lines(&folder.join("metrics_x.jsonl")).unwrap();
        let history = read_history(&folder.join("entropy_history_x.json")).unwrap();
        assert_eq!((lines.len() as u64, history.len() as u64), (end, end));
        assert!(fs::read(folder.join("metrics_x.jsonl")).unwrap().ends_with(b"}\n"), "half a line was left");
    };
    steps(step - 1);
    let fits = recorder.record(step, &[("policy/entropy", 1.0)]).is_ok();
    let last = if fits { step } else { step - 1 };
    steps(last);
    drop(recorder);
    let recorder = Recorder::open(folder, "x", &config).unwrap();
    assert_eq!(recorder.last_step(), Some(last));
    fits
}

fn fill_history(folder: &Path, survive: Survive, len: usize) -> bool {
    let path = folder.join("entropy_history_x.json");
    let mut history = History::open(&path, survive, Resume::End).unwrap();
    let mut step = 1;
    let error = loop {
        match history.append(step, 1.0, &note(len)) {
            Ok(()) => step += 1,
            Err(error) => break error,
        }
    };
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(read_history(&path).unwrap().len() as u64, step - 1);
    let fits = history.append(step, 1.0, &Map::new()).is_ok();
    assert_eq!(read_history(&path).unwrap().len() as u64, if fits { step } else { step - 1 });
    fits
}

#[test]
fn a_full_disk_leaves_no_half_record_and_the_step_can_be_retried() {
    let folder = env::temp_dir().join(format!("tokenwise-recorder-full-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    // without the signal, a write beyond the limit is an error; the unit of the limit is 512 or 1,024 bytes
    let script = "trap '' XFSZ; ulimit -f 32; exec \"$@\"";
    let output = Command::new("sh")
        .args(["-c", script, "sh"])
        .arg(env::current_exe().unwrap())
        .args(["--exact", "full_disk::writer", "--ignored", "--nocapture", "--test-threads=1"])
        .env(FOLDER, &folder)
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    fs::remove_dir_all(&folder).unwrap();
}
