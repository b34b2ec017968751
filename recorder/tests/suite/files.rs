//! Formats, resuming, and a reader beside the writer.

use std::{
    env, fs,
    path::PathBuf,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::{Duration, Instant},
};

use tokenwise_recorder::{
    parse_history, read_history, read_lines, Error, History, JsonLines, Map, Recorder, RecorderConfig, Resume, Survive,
    Value,
};

struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let folder = env::temp_dir().join(format!("tokenwise-recorder-{name}-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        fs::create_dir_all(&folder).unwrap();
        Self(folder)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn names(folder: &Folder) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(&folder.0).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn the_array_has_the_exact_documented_format() {
    let folder = Folder::new("format");
    let mut recorder = Recorder::open(&folder.0, "qwen3-4b_solver_v1", &RecorderConfig::default()).unwrap();
    for (step, entropy) in [(1, 4.532), (2, 4.201), (3, 3.987)] {
        recorder.record(step, &[("policy/entropy", entropy), ("actor/grad_norm", f64::NAN)]).unwrap();
    }
    let path = folder.0.join("entropy_history_qwen3-4b_solver_v1.json");
    let wanted = "[\n  {\"step\": 1, \"entropy\": 4.532},\n  {\"step\": 2, \"entropy\": 4.201},\n\
                  \x20 {\"step\": 3, \"entropy\": 3.987}\n]\n";
    assert_eq!(fs::read_to_string(&path).unwrap(), wanted);
    let lines = fs::read_to_string(folder.0.join("metrics_qwen3-4b_solver_v1.jsonl")).unwrap();
    assert_eq!(lines.lines().next(), Some("{\"step\":1,\"policy/entropy\":4.532,\"actor/grad_norm\":null}"));
    drop(recorder);
    assert_eq!(names(&folder), ["entropy_history_qwen3-4b_solver_v1.json", "metrics_qwen3-4b_solver_v1.jsonl"]);
}

#[test]
fn a_history_of_another_program_is_extended_and_keeps_its_keys() {
    let folder = Folder::new("foreign");
    let path = folder.0.join("entropy_history_x.json");
    let foreign = "[{\"step\": 5, \"entropy\": 2.5, \"世\": {\"a\": [1, null]}}   \n\n   ]   \n";
    fs::write(&path, foreign).unwrap();
    let mut history = History::open(&path, Survive::Kill, Resume::End).unwrap();
    assert_eq!(history.last_step(), Some(5));
    for step in 6..10 {
        let extra = Map::from_iter([("lr".to_string(), Value::from(0.1))]);
        history.append(step, 1.0, &extra).unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let wanted = "[{\"step\": 5, \"entropy\": 2.5, \"世\": {\"a\": [1, null]}},\n\
                      \x20 {\"step\": 6, \"entropy\": 1.0, \"lr\": 0.1}";
        assert!(text.starts_with(wanted));
        assert_eq!(parse_history(&path, text.as_bytes()).unwrap().len() as u64, step - 4);
    }
    assert_eq!(read_history(&path).unwrap()[0].extra["世"]["a"][0], 1);
}

#[test]
fn what_must_not_be_written_leaves_the_file_alone() {
    let folder = Folder::new("refused");
    let path = folder.0.join("entropy_history_x.json");
    let mut history = History::open(&path, Survive::Kill, Resume::End).unwrap();
    assert!(matches!(read_history(&path), Err(Error::Empty { .. })));
    history.append(3, 1.0, &Map::new()).unwrap();
    let before = fs::read(&path).unwrap();
    for (step, entropy) in [(3, 1.0), (2, 1.0), (4, f64::NAN), (4, f64::INFINITY)] {
        assert!(matches!(history.append(step, entropy, &Map::new()), Err(Error::Refused { .. })));
    }
    let clash = Map::from_iter([("step".to_string(), Value::from(1))]);
    assert!(matches!(history.append(4, 1.0, &clash), Err(Error::Refused { .. })));
    assert_eq!(fs::read(&path).unwrap(), before);
    for name in ["", "a/b", "a\\b"] {
        assert!(Recorder::open(&folder.0, name, &RecorderConfig::default()).is_err());
    }
    fs::write(&path, "[{\"step\": 1,").unwrap();
    assert!(matches!(History::open(&path, Survive::Kill, Resume::End), Err(Error::Malformed { .. })));
    assert_eq!(fs::read(&path).unwrap(), b"[{\"step\": 1,", "a file that is not understood is not changed");
}

#[test]
fn a_run_resumes_at_a_checkpoint() {
    let folder = Folder::new("resume");
    let config = RecorderConfig { survive: Survive::Kill, distributions_every: 2, ..Default::default() };
    let mut recorder = Recorder::open(&folder.0, "x", &config).unwrap();
    for step in 1..=10 {
        recorder.record(step, &[("policy/entropy", step as f64)]).unwrap();
        recorder.distributions(step, &[("H", &[1.0, 3.0])]).unwrap();
    }
    drop(recorder);
    // a line that was cut short
    let lines = folder.0.join("metrics_x.jsonl");
    let mut bytes = fs::read(&lines).unwrap();
    bytes.extend(b"{\"step\": 11, \"pol");
    fs::write(&lines, bytes).unwrap();
    assert_eq!(read_lines(&lines).unwrap().len(), 15);
    let mut recorder = Recorder::open(&folder.0, "x", &RecorderConfig { resume: Resume::At(7), ..config }).unwrap();
    assert_eq!(recorder.last_step(), Some(6));
    recorder.record(7, &[("policy/entropy", 70.0)]).unwrap();
    let history = read_history(&folder.0.join("entropy_history_x.json")).unwrap();
    let entropies: Vec<f64> = history.iter().map(|record| record.entropy).collect();
    assert_eq!(entropies, [1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 70.0]);
    let steps: Vec<_> = read_lines(&lines).unwrap().iter().map(|line| line["step"].as_u64().unwrap()).collect();
    assert_eq!(steps, [1, 2, 2, 3, 4, 4, 5, 6, 6, 7]);
    assert_eq!(read_lines(&lines).unwrap()[2]["distributions"]["H"]["mean"], 2.0);
    fs::write(&lines, "{\"step\": 1}\nnot json\n").unwrap();
    let error = JsonLines::open(&lines, Survive::Kill, Resume::End).unwrap_err().to_string();
    assert!(error.contains("metrics_x.jsonl, line 2: expected ident"), "{error}");
}

#[test]
fn a_reader_beside_the_writer_never_sees_half_a_file() {
    let folder = Folder::new("beside");
    let path = folder.0.join("entropy_history_x.json");
    let mut history = History::open(&path, Survive::Kill, Resume::End).unwrap();
    let done = AtomicBool::new(false);
    // odd while the file is being read
    let reads = AtomicU64::new(0);
    thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let mut longest = 0;
            while !done.load(Ordering::SeqCst) {
                reads.fetch_add(1, Ordering::SeqCst);
                let bytes = fs::read(&path);
                reads.fetch_add(1, Ordering::SeqCst);
                let records = parse_history(&path, &bytes.unwrap()).unwrap();
                assert!(records.len() >= longest);
                longest = records.len();
            }
        });
        for step in 1..=400 {
            history.append(step, 1.0, &Map::new()).unwrap();
            // a training step takes longer than a read: no read overlaps two appends, and every second append overlaps
            // one
            let before = reads.load(Ordering::SeqCst);
            while reads.load(Ordering::SeqCst) == before && !reader.is_finished() {
                thread::sleep(Duration::from_micros(50));
            }
        }
        done.store(true, Ordering::SeqCst);
        reader.join().unwrap();
    });
}

#[test]
fn an_append_costs_the_same_however_long_the_history() {
    let folder = Folder::new("long");
    let [short, long] = ["short", "long"].map(|name| folder.0.join(format!("entropy_history_{name}.json")));
    let text: Vec<String> = (1..=200_000).map(|step| format!("{{\"step\": {step}, \"entropy\": 1.5}}")).collect();
    fs::write(&long, format!("[{}]", text.join(", "))).unwrap();
    let mut histories = [&short, &long].map(|path| History::open(path, Survive::Kill, Resume::End).unwrap());
    let mut times = [Vec::new(), Vec::new()];
    for step in 200_001..200_202 {
        for (history, times) in histories.iter_mut().zip(&mut times) {
            let start = Instant::now();
            history.append(step, 1.0, &Map::new()).unwrap();
            times.push(start.elapsed());
        }
    }
    let [short, long_median] = times.map(|mut times| {
        times.sort_unstable();
        times[times.len() / 2]
    });
    println!("an append takes {short:?} at the start and {long_median:?} after 200,000 records");
    // writing all records anew would take a hundred times as long
    assert!(long_median < short * 10, "{long_median:?} instead of {short:?}");
    assert_eq!(read_history(&long).unwrap().len(), 200_201);
}
