use std::{env, fs, io::ErrorKind, path::Path};

use serde_json::{Map, Value};

use super::journal::{self, Seen};
use crate::{read_history, read_lines, Error, History, JsonLines, Recorder, RecorderConfig, Resume, Survive};

const HISTORY: &str = "entropy_history_x.json";
const LINES: &str = "metrics_x.jsonl";

/// Steps and their entropies.
type Records = Vec<(u64, f64)>;

/// Runs calls on a watched folder, each of which leaves the records that it returns, and looks what a power loss at any
/// moment leaves of them: the state before the call in progress, or the state after it.
fn survives(name: &str, calls: impl FnOnce(&Path, &mut dyn FnMut(Records)), read: impl Fn(&Path) -> Records) {
    let folder = env::temp_dir().join(format!("tokenwise-disk-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    let (kept, left) = (folder.join("kept"), folder.join("left"));
    fs::create_dir_all(&kept).unwrap();
    journal::watch(&kept);
    let mut states = vec![Records::new()];
    calls(&kept, &mut |records| {
        states.push(records);
        journal::returned();
    });
    let journal = journal::finish();
    let mut seen = Seen::new();
    for (index, moment) in journal.moments.iter().enumerate() {
        let wanted = &states[moment.returned..states.len().min(moment.returned + 2)];
        journal.after_power_loss(index, &left, &mut seen, |what| {
            let found = read(&left);
            assert!(wanted.contains(&found), "{name}, {what}: {found:?} instead of {wanted:?}");
        });
    }
    println!("{name}: {} changes, {} states of the disk", journal.moments.len(), seen.len());
    assert!(seen.len() > 20, "{}", seen.len());
    fs::remove_dir_all(&folder).unwrap();
}

fn of_history(folder: &Path) -> Records {
    match read_history(&folder.join(HISTORY)) {
        Ok(records) => records.iter().map(|record| (record.step, record.entropy)).collect(),
        Err(Error::Empty { .. }) => Records::new(),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Records::new(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn a_history_survives_a_power_loss_at_any_moment() {
    let open = |folder: &Path, survive, resume| History::open(&folder.join(HISTORY), survive, resume).unwrap();
    let calls = |folder: &Path, returned: &mut dyn FnMut(Records)| {
        let mut records = Records::new();
        for (resume, steps) in [(Resume::End, 1..5), (Resume::End, 5..7), (Resume::At(4), 4..6)] {
            let mut history = open(folder, Survive::PowerLoss, resume);
            records.retain(|(step, _)| *step < steps.start);
            returned(records.clone());
            for step in steps {
                records.push((step, step as f64 + records.len() as f64 / 16.0));
                history.append(step, records[records.len() - 1].1, &Map::new()).unwrap();
                returned(records.clone());
            }
        }
    };
    survives("history", calls, of_history);
    // a lock and copies that a power loss leaves are no obstacle
    survives("open", calls, |folder| {
        let last = of_history(folder).last().map(|(step, _)| *step);
        assert_eq!(open(folder, Survive::Kill, Resume::End).last_step(), last);
        of_history(folder)
    });
}

#[test]
fn both_files_of_a_run_survive_a_power_loss_at_any_moment() {
    let open = |folder: &Path, survive, resume| {
        Recorder::open(folder, "x", &RecorderConfig { survive, resume, ..RecorderConfig::default() }).unwrap()
    };
    let calls = |folder: &Path, returned: &mut dyn FnMut(Records)| {
        let mut records = Records::new();
        for (resume, steps) in [(Resume::End, 1..4), (Resume::At(3), 3..5)] {
            let mut recorder = open(folder, Survive::PowerLoss, resume);
            records.retain(|(step, _)| *step < steps.start);
            returned(records.clone());
            for step in steps {
                records.push((step, step as f64 + records.len() as f64 / 16.0));
                recorder.record(step, &[("policy/entropy", records[records.len() - 1].1)]).unwrap();
                returned(records.clone());
            }
        }
    };
    survives("lines", calls, of_lines);
    survives("recorder", calls, |folder| {
        // a step that is in the lines only, or in the history only, is in both after the run was opened again
        drop(open(folder, Survive::Kill, Resume::End));
        of_history(folder)
    });
}

fn of_lines(folder: &Path) -> Records {
    match read_lines(&folder.join(LINES)) {
        Ok(lines) => lines
            .iter()
            .map(|line| (line["step"].as_u64().unwrap(), line["policy/entropy"].as_f64().unwrap()))
            .collect(),
        Err(Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => Records::new(),
        Err(error) => panic!("{error}"),
    }
}

#[test]
fn lines_alone_survive_a_power_loss_at_any_moment() {
    let calls = |folder: &Path, returned: &mut dyn FnMut(Records)| {
        let mut records = Records::new();
        for (resume, steps) in [(Resume::End, 1..4), (Resume::At(3), 3..5), (Resume::End, 5..6)] {
            let mut lines = JsonLines::open(&folder.join(LINES), Survive::PowerLoss, resume).unwrap();
            records.retain(|(step, _)| *step < steps.start);
            returned(records.clone());
            for step in steps {
                records.push((step, step as f64 + records.len() as f64 / 16.0));
                let line = [("step", Value::from(step)), ("policy/entropy", Value::from(records[records.len() - 1].1))];
                lines.append(&line.map(|(key, value)| (key.to_string(), value)).into_iter().collect()).unwrap();
                returned(records.clone());
            }
        }
    };
    survives("lines-alone", calls, of_lines);
}

#[cfg(feature = "tensorboard")]
#[test]
fn an_event_file_survives_a_power_loss_at_any_moment() {
    use crate::{read_events, EventFile};

    let calls = |folder: &Path, returned: &mut dyn FnMut(Records)| {
        let mut records = Records::new();
        for (resume, steps) in [(Resume::End, 1..5), (Resume::At(3), 3..6)] {
            let mut events = EventFile::open(folder, "x", Survive::PowerLoss, resume).unwrap();
            records.retain(|(step, _)| *step < steps.start);
            returned(records.clone());
            for step in steps {
                records.push((step, step as f64 + records.len() as f64 / 16.0));
                events.record(step, &[("policy/entropy", records[records.len() - 1].1)]).unwrap();
                returned(records.clone());
            }
        }
    };
    survives("events", calls, |folder| {
        let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let Some(path) = names.into_iter().find(|path| path.to_string_lossy().contains("tfevents")) else {
            return Records::new();
        };
        let events = read_events(&path).unwrap();
        events.iter().map(|event| (event.step, f64::from(event.scalars[0].1))).collect()
    });
}
