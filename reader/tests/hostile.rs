//! Hostile files: those that once took gigabytes or gave wrong numbers, and ten thousand mutations of valid ones. None
//! may panic, hang, or take more memory than the budget; what is accepted is consistent.
#![allow(missing_docs, reason = "a program of its own")]
#![allow(unsafe_code, reason = "an allocator that counts")]
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test that cannot go on has failed")]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    fs,
    io::Write,
    ops::ControlFlow,
    panic::catch_unwind,
    path::Path,
    time::{Duration, Instant},
};

use tokenwise_reader::{Budget, Bytes, Column, Error, File, Names, Options, Rollouts, Summary};

/// Counts the bytes of the current thread.
struct Counting;

thread_local! {
    static HELD: Cell<i64> = const { Cell::new(0) };
    static PEAK: Cell<i64> = const { Cell::new(0) };
}

fn count(bytes: i64) {
    let _ = HELD.try_with(|held| {
        held.set(held.get() + bytes);
        let _ = PEAK.try_with(|peak| peak.set(peak.get().max(held.get())));
    });
}

// SAFETY: every call is passed on to the allocator of the system
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as i64);
        // SAFETY: the caller's promise
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(-(layout.size() as i64));
        // SAFETY: the caller's promise
        unsafe { System.dealloc(pointer, layout) }
    }

    unsafe fn realloc(&self, pointer: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as i64 - layout.size() as i64);
        // SAFETY: the caller's promise
        unsafe { System.realloc(pointer, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MEMORY: u64 = 32 << 20;
/// Buffers of a fixed size beside the budget.
const BUFFERS: i64 = 8 << 20;
const LONGEST: Duration = Duration::from_secs(20);

/// Time that this thread has had a processor, where the system tells: other work on the machine does not count.
fn processor_time() -> Option<Duration> {
    let text = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    text.split_whitespace().next()?.parse().ok().map(Duration::from_nanos)
}

/// What reading takes at most.
fn watched<T>(work: impl FnOnce() -> T) -> (T, i64, Duration) {
    let (spent, start) = (processor_time(), Instant::now());
    let before = HELD.get();
    PEAK.set(before);
    let done = work();
    let peak = PEAK.get() - before;
    let time = match (spent, processor_time()) {
        (Some(before), Some(now)) => now - before,
        _ => start.elapsed(),
    };
    (done, peak, time)
}

fn options(labels: bool) -> Options {
    Options { memory: Budget::new(MEMORY), labels, ..Options::default() }
}

fn consistent(rollouts: &Rollouts) {
    let tokens = rollouts.tokens();
    assert_eq!(rollouts.kept().len(), tokens);
    assert_eq!(rollouts.offsets.len(), rollouts.rows.len() + 1);
    assert!(rollouts.offsets.windows(2).all(|pair| pair[0] <= pair[1]));
    for column in Column::ALL {
        assert!(rollouts.column(column).is_none_or(|numbers| numbers.len() == tokens));
    }
}

fn read(name: &str, bytes: Bytes, options: &Options) -> Result<Summary, Error> {
    File::open(name, bytes, options)?.read(options, &mut |rollouts| {
        consistent(rollouts);
        ControlFlow::Continue(())
    })
}

/// Reads within the limits.
fn tried(name: &str, bytes: &[u8], labels: bool) -> Result<Summary, Error> {
    let bytes = Bytes::copy_from_slice(bytes);
    let what = || format!("{name}, {} bytes, labels {labels}", bytes.len());
    let (done, peak, time) = watched(|| catch_unwind(|| read(name, bytes.clone(), &options(labels))));
    let kept = std::env::temp_dir().join("tokenwise-hostile");
    if done.is_err() || peak > MEMORY as i64 + BUFFERS || time > LONGEST {
        fs::write(&kept, &bytes).unwrap();
    }
    let done = done.unwrap_or_else(|_| panic!("panic in {}, kept in {}", what(), kept.display()));
    assert!(peak <= MEMORY as i64 + BUFFERS, "{peak} bytes in {}, kept in {}", what(), kept.display());
    assert!(time < LONGEST, "{time:?} in {}", what());
    done
}

fn code(name: &str, bytes: &[u8]) -> String {
    match tried(name, bytes, false) {
        Ok(summary) => format!("{} sequences", summary.sequences),
        Err(error) => error.fault.code().to_string(),
    }
}

fn safetensors(header: &str, data: &[u8]) -> Vec<u8> {
    [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), data].concat()
}

#[test]
fn files_that_lie_about_their_size_are_refused() {
    let empty = r#"{"values": {"dtype": "F32", "shape": [1152921504606846976, 0], "data_offsets": [0, 0]}}"#;
    assert_eq!(code("a.safetensors", &safetensors(empty, &[])), "tensorEmpty");
    let long = format!("{{\"input\": \"{}\"}}", "x".repeat(40 << 20));
    assert_eq!(code("a.jsonl", long.as_bytes()), "memory");
    assert_eq!(code("a.json", long.as_bytes()), "memory");
    assert_eq!(code("a.csv", format!("score\n\"{}\"\n", "1".repeat(40 << 20)).as_bytes()), "memory");
    let numbers = format!("{{\"values\": [{}1]}}", "1,".repeat(8 << 20));
    assert_eq!(code("a.jsonl", numbers.as_bytes()), "memory");
    assert_eq!(code("a.json", numbers.as_bytes()), "memory");
    let sequences = format!("{{\"values\": [{}[]]}}", "[],".repeat(1 << 20));
    assert_eq!(code("a.json", sequences.as_bytes()), "memory");
    // token-less rows are cut into batches
    let rows = "{\"score\": 1}\n".repeat(2_000_000);
    assert_eq!(code("a.jsonl", rows.as_bytes()), "2000000 sequences");
    // one step is one batch
    let step = "{\"score\": 1, \"step\": 1}\n".repeat(1_000_000);
    assert_eq!(code("a.jsonl", step.as_bytes()), "memory");
    // a bomb
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    zipped.write_all(numbers.as_bytes()).unwrap();
    assert_eq!(code("a.jsonl.gz", &zipped.finish().unwrap()), "memory");
    // a bad cell of 10 MB is not told as a whole
    let cell = format!("score\n{}\n", "x".repeat(4 << 20));
    let error = tried("a.csv", cell.as_bytes(), false).unwrap_err().to_string();
    assert!(error.len() < 200, "{}", error.len());
}

#[test]
fn nothing_is_wrong_in_silence() {
    let tensor = |shape: &str, from: u32, to: u32| {
        format!("{{\"dtype\": \"F32\", \"shape\": {shape}, \"data_offsets\": [{from}, {to}]}}")
    };
    let overlap = format!("{{\"values\": {}, \"returns\": {}}}", tensor("[1, 2]", 0, 8), tensor("[1, 2]", 4, 12));
    let packed = format!("{{\"values\": {}, \"cu_seqlens\": {}}}", tensor("[2]", 0, 8), tensor("[2]", 8, 16));
    let nan = [&0.0_f32.to_le_bytes()[..], &[0; 4], &0.0_f32.to_le_bytes(), &f32::NAN.to_le_bytes()].concat();
    let fp8 = "{\"values\": {\"dtype\": \"F8_E4M3\", \"shape\": [1, 1], \"data_offsets\": [0, 1]}}";
    let cases: [(&str, Vec<u8>, &str); 24] = [
        ("a.jsonl", b"{\"log_probs\": [-1], \"logprobs\": [-1]}\n".into(), "twice"),
        ("a.jsonl", b"{\"values\": [1], \"values\": [1]}\n".into(), "repeated"),
        ("a.jsonl", b"{\"response_mask\": [1, 1], \"loss_mask\": [1, 1]}\n".into(), "twice"),
        ("a.jsonl", b"{\"values\": [1, 2], \"rewards\": 1}\n".into(), "notPerToken"),
        ("a.jsonl", b"{\"rewards\": 1}\n".into(), "notPerToken"),
        ("a.jsonl", b"{\"score\": 1, \"reward\": 0.5}\n".into(), "twice"),
        ("a.jsonl", b"{\"score\": 1, \"reward\": 1}\n".into(), "1 sequences"),
        ("a.jsonl", b"{\"score\": 1, \"step\": -1}\n".into(), "notAStep"),
        ("a.jsonl", b"{\"score\": 1, \"step\": 1.7}\n".into(), "notAStep"),
        ("a.jsonl", b"{\"score\": 1, \"step\": 1e30}\n".into(), "notAStep"),
        ("a.json", b"{\"score\": [1, 0], \"step\": [1, 2]}".into(), "differs"),
        ("a.json", b"{\"score\": [1, 0], \"step\": [2, 2]}".into(), "2 sequences"),
        (
            "a.jsonl",
            b"{\"score\": 1, \"step\": 1}\n{\"score\": 1, \"step\": 2}\n{\"score\": 1, \"step\": 1}\n".into(),
            "stepAgain",
        ),
        ("a.json", b"{\"step\": 1, \"samples\": [{\"score\": 1}], \"score\": 0.5}".into(), "1 sequences"),
        ("a.safetensors", safetensors(&overlap, &[0; 12]), "tensorsOverlap"),
        ("a.safetensors", safetensors(&packed, &nan), "offsets"),
        ("a.safetensors", safetensors(fp8, &[0]), "tensorKind"),
        ("a.csv", b"score,input\n1,\"a\n2,b\n".into(), "openQuote"),
        ("a.csv", b"score,input\n1,\"a\"\"b\"\n2,b\"c\n".into(), "2 sequences"),
        ("a.csv", b"sequence,reward,values\na,0,1\na,1,1\n".into(), "differs"),
        ("a.csv", b"Step,loss\n1,2\n".into(), "noRollout"),
        ("a.jsonl", b"{\n  \"score\": 1\n}\n".into(), "incomplete"),
        ("a.json", b"{\"score\": 1, \"group\": [1, 2]}".into(), "lengths"),
        ("a.jsonl", b"{\"values\": [1], \"truncated\": [true, false]}".into(), "lengths"),
    ];
    let found: Vec<(String, &str)> = cases.iter().map(|(name, bytes, wanted)| (code(name, bytes), *wanted)).collect();
    let wrong: Vec<_> = found.iter().enumerate().filter(|(_, (found, wanted))| found != wanted).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let given = Options { names: Names::new(&["score=typo".into()]).unwrap(), ..options(false) };
    let error = read("a.jsonl", Bytes::from_static(b"{\"score\": 1, \"values\": [1]}\n"), &given).unwrap_err();
    assert_eq!(error.fault.code(), "noSuchName");
    assert!(error.to_string().contains("\"typo\"") && error.to_string().contains("values"), "{error}");
}

/// Numbers that are the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self, below: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) as usize % below.max(1)
    }
}

fn mutated(bytes: &[u8], random: &mut Random) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    for _ in 0..=random.next(3) {
        let (at, to) = (random.next(bytes.len()), random.next(bytes.len()));
        match random.next(9) {
            0 => bytes.truncate(at),
            1 => bytes.drain(at.min(to)..at.max(to)).for_each(drop),
            2 => {
                let part = bytes[at.min(to)..at.max(to)].to_vec();
                bytes.splice(at..at, part).for_each(drop);
            }
            3 => {
                // the numbers that headers are full of
                let number = [0, 1, 0x7fff_ffff, 0xffff_ffff, u64::MAX, 1 << 60, 255][random.next(7)];
                let width = [1, 2, 4, 8][random.next(4)];
                let end = (at + width).min(bytes.len());
                bytes[at..end].copy_from_slice(&number.to_le_bytes()[..end - at]);
            }
            4 => {
                let words =
                    ["NaN", "1e999", "null", "[", "]", "{", "}", "\"", "-1", "18446744073709551616", "\\ud800", ",,"];
                bytes.splice(at..at, words[random.next(words.len())].bytes()).for_each(drop);
            }
            _ => {
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = [*byte ^ (1 << random.next(8)), random.next(256) as u8][random.next(2)];
                }
            }
        }
    }
    bytes
}

#[test]
fn ten_thousand_mutations_of_valid_files() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let mut files: Vec<(String, Vec<u8>)> = Vec::new();
    for folder in [folder.clone(), folder.join("readings")] {
        let mut entries: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        entries.sort();
        for path in entries.into_iter().filter(|path| path.is_file()) {
            files.push((path.file_name().unwrap().to_string_lossy().into_owned(), fs::read(path).unwrap()));
        }
    }
    let mut zipped = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    zipped.write_all(&fs::read(folder.join("rollouts.jsonl")).unwrap()).unwrap();
    files.push(("rollouts.jsonl.gz".into(), zipped.finish().unwrap()));
    files.push(("a.csv".into(), b"sequence,score,group,log_probs,mask\na,1,x,-1,1\na,1,x,-2,0\nb,0,x,-1,1\n".into()));
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let (mut accepted, mut refused) = (0, 0);
    // the messages of caught panics would hide the one that matters
    std::panic::set_hook(Box::new(|_| {}));
    for round in 0..10_000 {
        let (name, bytes) = &files[round % files.len()];
        match tried(name, &mutated(bytes, &mut random), round % 2 == 0) {
            Ok(_) => accepted += 1,
            Err(_) => refused += 1,
        }
    }
    let _ = std::panic::take_hook();
    assert!(accepted > 500 && refused > 500, "{accepted} accepted, {refused} refused");
}

/// The numbers of a column under its first name, one record after another, as another parser reads them; `None` where a
/// record has none or a list of anything else.
fn parsed(records: &[serde_json::Value], name: &str) -> Option<Vec<f64>> {
    let mut numbers = Vec::new();
    for record in records {
        for number in record.get(name)?.as_array()? {
            numbers.push(number.as_f64()?);
        }
    }
    Some(numbers)
}

/// A mutation that is still a rollout file is read as what it says.
#[test]
fn accepted_mutations_have_the_numbers_of_the_file() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let bytes = fs::read(folder.join("rollouts.jsonl")).unwrap();
    let mut random = Random(0x1234_5678_9abc_def1);
    let (mut compared, mut changed) = (0, 0);
    for _ in 0..10_000 {
        let mutation = mutated(&bytes, &mut random);
        let lines = mutation.split(|&byte| byte == b'\n').filter(|line| !line.trim_ascii().is_empty());
        let records: Result<Vec<serde_json::Value>, _> = lines.map(serde_json::from_slice).collect();
        let (mut columns, mut scores) = (vec![Vec::new(); Column::ALL.len()], Vec::new());
        let file = File::open("a.jsonl", Bytes::copy_from_slice(&mutation), &options(false));
        let summary = file.and_then(|file| {
            file.read(&options(false), &mut |rollouts| {
                for (column, all) in Column::ALL.into_iter().zip(&mut columns) {
                    all.extend(rollouts.column(column).unwrap_or_default().iter().map(|number| number.to_bits()));
                }
                scores.extend(rollouts.rows.iter().map(|row| row.score.map(f64::to_bits)));
                ControlFlow::Continue(())
            })
        });
        let Ok(summary) = summary else { continue };
        let text = String::from_utf8_lossy(&mutation);
        let records = match records {
            Ok(records) => records,
            // not looked for in the strings that are skipped
            Err(error) if error.to_string().contains("control character") => continue,
            Err(error) => panic!("accepted, but not JSON: {error}\n{text}"),
        };
        assert_eq!(summary.sequences, records.len() as u64, "{text}");
        for (column, found) in Column::ALL.into_iter().zip(&columns) {
            let Some(numbers) = parsed(&records, column.name()) else { continue };
            let numbers: Vec<u64> = numbers.iter().map(|number| number.to_bits()).collect();
            assert_eq!(found, &numbers, "{} in\n{text}", column.name());
            compared += 1;
        }
        let wanted =
            records.iter().map(|record| record.get("score").and_then(|score| score.as_f64()).map(f64::to_bits));
        for (found, wanted) in scores.iter().zip(wanted) {
            assert!(wanted.is_none() || *found == wanted, "score in\n{text}");
        }
        changed += usize::from(mutation != bytes);
    }
    assert!(compared > 1_000 && changed > 100, "{compared} columns of {changed} files");
}
