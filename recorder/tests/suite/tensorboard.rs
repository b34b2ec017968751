//! Event files that are cut, damaged, resumed, written by two, and read by TensorBoard itself.

use std::{
    env, fs,
    io::Write,
    path::{Path, PathBuf},
    process::Command,
};

use tokenwise_recorder::{read_events, Error, EventFile, Resume, Survive};

fn fresh(name: &str) -> PathBuf {
    let folder = env::temp_dir().join(format!("tokenwise-events-{name}-{}", std::process::id()));
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

fn open(folder: &Path, resume: Resume) -> EventFile {
    EventFile::open(folder, "run.1", Survive::Kill, resume).unwrap()
}

fn steps(path: &Path) -> Vec<u64> {
    read_events(path).unwrap().iter().map(|event| event.step).collect()
}

/// CRC-32C by its definition, so that the bytes are checked without the crate that wrote them.
fn masked_crc(data: &[u8]) -> [u8; 4] {
    let crc = !data.iter().fold(!0_u32, |crc, &byte| {
        (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
    });
    crc.rotate_right(15).wrapping_add(0xa282_ead8).to_le_bytes()
}

#[test]
fn the_bytes_are_those_of_the_format() {
    let folder = fresh("bytes");
    let mut events = open(&folder, Resume::End);
    events.record(7, &[("a/b", 0.5), ("nan", f64::NAN)]).unwrap();
    let mut rest = &fs::read(events.path()).unwrap()[..];
    let mut records = Vec::new();
    while !rest.is_empty() {
        let length = u64::from_le_bytes(rest[..8].try_into().unwrap()) as usize;
        assert_eq!(rest[8..12], masked_crc(&rest[..8]));
        let data = &rest[12..12 + length];
        assert_eq!(rest[12 + length..16 + length], masked_crc(data));
        records.push(data);
        rest = &rest[16 + length..];
    }
    // field 1 is the time, a double; then field 3, a string
    assert_eq!(records[0][0], 0x09);
    assert_eq!(records[0][9..], *b"\x1a\x0dbrain.Event:2");
    // field 2: step 7; field 5: a summary of two values, each a tag and a float
    let nan = (f64::NAN as f32).to_le_bytes();
    let wanted = [&b"\x10\x07\x2a\x18\x0a\x0a\x0a\x03a/b\x15\0\0\0\x3f\x0a\x0a\x0a\x03nan\x15"[..], &nan[..]].concat();
    assert_eq!(records[1][9..], wanted);
    assert_eq!(records.len(), 2);
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_run_goes_on_after_its_last_step_or_at_a_checkpoint() {
    let folder = fresh("resume");
    let mut events = open(&folder, Resume::End);
    for step in 1..=5 {
        events.record(step, &[("x", step as f64)]).unwrap();
    }
    let path = events.path().to_path_buf();
    drop(events);
    let mut events = open(&folder, Resume::End);
    assert_eq!((events.path(), events.last_step()), (&*path, Some(5)));
    let error = events.record(5, &[("x", 0.0)]).unwrap_err().to_string();
    assert!(error.ends_with("step 5 does not come after step 5"), "{error}");
    drop(events);
    let mut events = open(&folder, Resume::At(3));
    assert_eq!(events.last_step(), Some(2));
    events.record(3, &[("x", 30.0)]).unwrap();
    drop(events);
    assert_eq!(steps(&path), [1, 2, 3]);
    assert_eq!(read_events(&path).unwrap()[2].scalars, [("x".to_string(), 30.0)]);
    drop(open(&folder, Resume::At(0)));
    assert!(steps(&path).is_empty());
    assert_eq!(fs::read_dir(&folder).unwrap().count(), 1, "one file per experiment");
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn a_file_cut_anywhere_loses_at_most_its_last_record() {
    let folder = fresh("cut");
    let mut events = open(&folder, Resume::End);
    let mut ends = vec![fs::metadata(events.path()).unwrap().len()];
    for step in 1..=3 {
        events.record_with(step, &[("x", 1.0)], &[("h", &[1.0, 2.0])]).unwrap();
        ends.push(fs::metadata(events.path()).unwrap().len());
    }
    let path = events.path().to_path_buf();
    drop(events);
    let whole = fs::read(&path).unwrap();
    for len in 0..=whole.len() {
        fs::write(&path, &whole[..len]).unwrap();
        let complete = ends.iter().filter(|&&end| end <= len as u64).count().saturating_sub(1) as u64;
        assert_eq!(steps(&path), (1..=complete).collect::<Vec<_>>(), "{len}");
        let mut events = open(&folder, Resume::End);
        events.record(complete + 1, &[("x", 2.0)]).unwrap();
        drop(events);
        assert_eq!(steps(&path), (1..=complete + 1).collect::<Vec<_>>(), "{len}");
    }
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn faults_are_named_and_change_nothing() {
    let folder = fresh("faults");
    let mut events = open(&folder, Resume::End);
    events.record(1, &[("x", 1.0)]).unwrap();
    let refused = [
        (events.record(2, &[("x", 1.0), ("x", 2.0)]), "step 2: the tag \"x\" is given twice"),
        (events.record_with(2, &[("x", 1.0)], &[("x", &[1.0])]), "step 2: the tag \"x\" is given twice"),
        (events.record(2, &[("", 1.0)]), "step 2: a tag must not be empty"),
        (events.record(u64::MAX, &[]), "is larger than 9223372036854775807, the largest of the format"),
        (events.record(2, &[(&"long".repeat(1 << 24)[..], 1.0)]), "a record has at most 67108864 bytes, got 67108"),
    ];
    for (result, wanted) in refused {
        let error = result.unwrap_err();
        assert!(matches!(error, Error::Refused { .. }) && error.to_string().contains(wanted), "{error}");
    }
    let second = EventFile::open(&folder, "run.1", Survive::Kill, Resume::End).unwrap_err();
    assert!(matches!(second, Error::Locked { .. }), "{second}");
    events.record(2, &[("x", 2.0)]).unwrap();
    let path = events.path().to_path_buf();
    drop(events);
    assert_eq!(steps(&path), [1, 2]);
    let mut bytes = fs::read(&path).unwrap();
    let last = bytes.len() - 6;
    bytes[last] ^= 1;
    fs::write(&path, &bytes).unwrap();
    for error in
        [read_events(&path).unwrap_err(), EventFile::open(&folder, "run.1", Survive::Kill, Resume::End).unwrap_err()]
    {
        assert!(error.to_string().contains(", record 3: the masked CRC-32C of the data is 0x"), "{error}");
    }
    assert_eq!(fs::read(&path).unwrap(), bytes);
    fs::File::create(&path).unwrap().write_all(b"not an event file, but a text").unwrap();
    let error = read_events(&path).unwrap_err().to_string();
    assert!(error.contains(", record 1: the masked CRC-32C of the length is 0x"), "{error}");
    assert!(EventFile::open(&folder, "a/b", Survive::Kill, Resume::End).is_err());
    fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn histograms_count_finite_values() {
    let folder = fresh("histograms");
    let mut events = EventFile::open(&folder, "h", Survive::PowerLoss, Resume::End).unwrap();
    let values: Vec<f64> = (0..40).map(f64::from).chain([f64::NAN]).collect();
    events.record_with(1, &[], &[("ramp", &values), ("same", &[3.0, 3.0]), ("none", &[f64::INFINITY])]).unwrap();
    let found = read_events(events.path()).unwrap().remove(0).histograms;
    let (tag, ramp) = &found[0];
    assert_eq!((&tag[..], ramp.min, ramp.max, ramp.count, ramp.sum), ("ramp", 0.0, 39.0, 40.0, 780.0));
    // 0² + … + 39²
    assert!((ramp.sum_squares - 20540.0).abs() < 1e-9, "{}", ramp.sum_squares);
    assert_eq!(ramp.buckets.len(), 20);
    assert!(ramp.buckets.iter().all(|&(_, count)| count == 2.0), "{:?}", ramp.buckets);
    assert_eq!(ramp.buckets[19].0, 39.0);
    assert_eq!(found[1].1.buckets, [(3.0, 2.0)]);
    assert_eq!(found.len(), 2);
    fs::remove_dir_all(&folder).unwrap();
}

/// Installs TensorBoard into an environment under target/ and compares what its reader finds with what was written.
#[test]
#[ignore = "installs TensorBoard from PyPI; run by `cargo xtask deep --only tensorboard`"]
fn tensorboard_reads_the_same_numbers() {
    let python = environment("tensorboard", "requirements.txt");
    let (folder, wanted) = interrupted_run("python");
    let printed = printed(Command::new(&python).arg(reference("check.py")).arg(&folder).arg(&wanted));
    assert!(printed.contains("300 steps, 900 scalars, 6 histograms"), "{printed}");
    fs::remove_dir_all(&folder).unwrap();
}

/// The same with trackio, which imports event files.
#[test]
#[ignore = "installs trackio from PyPI; run by `cargo xtask deep --only tensorboard`"]
fn trackio_imports_the_same_numbers() {
    let python = environment("imports", "requirements-imports.txt");
    let (folder, wanted) = interrupted_run("imports");
    let printed = printed(Command::new(&python).arg(reference("imports.py")).arg(&folder).arg(&wanted));
    assert!(printed.contains("trackio: 300 steps, 900 scalars"), "{printed}");
    fs::remove_dir_all(&folder).unwrap();
}

fn reference(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/reference/tensorboard").join(name)
}

fn printed(command: &mut Command) -> String {
    let output = command.output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{command:?}\n{}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

/// Python with packages of its own, under target/.
fn environment(name: &str, requirements: &str) -> PathBuf {
    let environment = Path::new(env!("CARGO_MANIFEST_DIR")).join("../target/xtask").join(name);
    let python = environment.join("bin/python");
    if !python.exists() {
        printed(Command::new("python3").args(["-m", "venv"]).arg(&environment));
    }
    printed(Command::new(&python).args(["-m", "pip", "install", "--quiet", "-r"]).arg(reference(requirements)));
    python
}

/// The folder of a run that was killed and went on, and the file with what it recorded.
fn interrupted_run(name: &str) -> (PathBuf, PathBuf) {
    let folder = fresh(name);
    let wanted = folder.join("wanted.json");
    let mut events = open(&folder, Resume::End);
    let mut lines = Vec::new();
    for step in 1..=300_u64 {
        // every step twice over: the run is killed at 200 and goes on from a checkpoint at 150
        if step == 200 {
            drop(events);
            fs::OpenOptions::new().append(true).open(path_of(&folder)).unwrap().write_all(b"torn record").unwrap();
            events = open(&folder, Resume::At(150));
            lines.truncate(149);
            for again in 150..200 {
                lines.push(recorded(&mut events, again));
            }
        }
        lines.push(recorded(&mut events, step));
    }
    fs::write(&wanted, format!("[{}]", lines.join(",\n"))).unwrap();
    (folder, wanted)
}

fn path_of(folder: &Path) -> PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.to_string_lossy().contains("tfevents")).max().unwrap()
}

/// Records a step and returns what a reader must find, as JSON.
fn recorded(events: &mut EventFile, step: u64) -> String {
    let reward = 1.0 - 1.0 / step as f64;
    let values: Vec<f64> = (0..step * 3).map(|index| (index * index % 97) as f64 / 7.0).collect();
    let metrics =
        [("analysis/reward_sum_mean", reward), ("dual_game/lambda", 1e-7 * step as f64), ("步数", step as f64)];
    let due: &[(&str, &[f64])] = &[("H", &values)];
    let due = if step.is_multiple_of(50) { due } else { &[] };
    events.record_with(step, &metrics, due).unwrap();
    let scalars: Vec<String> = metrics.iter().map(|(tag, value)| format!("{tag:?}: {value:?}")).collect();
    let values = if due.is_empty() { "null".to_string() } else { format!("{values:?}") };
    format!("{{\"step\": {step}, \"scalars\": {{{}}}, \"values\": {values}}}", scalars.join(", "))
}
