//! Two recorders on one experiment: one writes, the other is refused, and no accepted record is lost.

use std::{env, fs, sync::Barrier, thread};

use tokenwise_recorder::{read_history, read_lines, Error, History, Recorder, RecorderConfig, Resume, Survive};

#[test]
fn a_second_recorder_is_refused_until_the_first_is_dropped() {
    let folder = env::temp_dir().join(format!("tokenwise-recorder-second-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    let config = RecorderConfig { survive: Survive::Kill, ..Default::default() };
    let first = Recorder::open(&folder, "x", &config).unwrap();
    let error = Recorder::open(&folder, "x", &config).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    assert!(error.to_string().ends_with("metrics_x.jsonl: another recorder is writing this file"), "{error}");
    let error = History::open(&folder.join("entropy_history_x.json"), Survive::Kill, Resume::End).unwrap_err();
    assert!(matches!(error, Error::Locked { .. }), "{error}");
    Recorder::open(&folder, "y", &config).unwrap();
    drop(first);
    Recorder::open(&folder, "x", &config).unwrap();
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn two_writers_lose_nothing() {
    let folder = env::temp_dir().join(format!("tokenwise-recorder-two-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    let config = RecorderConfig { survive: Survive::Kill, ..Default::default() };
    let start = Barrier::new(2);
    // each opens, appends a few records and closes, as often as there are rounds
    let writer = |_| {
        let (mut accepted, mut refused) = (0, 0);
        for _ in 0..crate::rounds() {
            start.wait();
            match Recorder::open(&folder, "x", &config) {
                Ok(mut recorder) => {
                    for _ in 0..3 {
                        let step = recorder.last_step().unwrap_or(0) + 1;
                        recorder.record(step, &[("policy/entropy", step as f64)]).unwrap();
                        accepted += 1;
                    }
                }
                Err(Error::Locked { .. }) => refused += 1,
                Err(error) => panic!("{error}"),
            }
        }
        (accepted, refused)
    };
    let [(first, first_refused), (second, second_refused)] = thread::scope(|scope| {
        let threads = [0, 1].map(|number| scope.spawn(move || writer(number)));
        threads.map(|thread| thread.join().unwrap())
    });
    let (accepted, refused): (usize, usize) = (first + second, first_refused + second_refused);
    println!("{accepted} records accepted, {refused} recorders refused");
    assert!(refused > 0, "the writers never met");
    let history = read_history(&folder.join("entropy_history_x.json")).unwrap();
    assert!(history.iter().zip(1..).all(|(record, step)| record.step == step && record.entropy == step as f64));
    assert_eq!(history.len(), accepted);
    assert_eq!(read_lines(&folder.join("metrics_x.jsonl")).unwrap().len(), accepted);
    fs::remove_dir_all(&folder).unwrap();
}
