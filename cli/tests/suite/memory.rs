//! Memory does not grow with the file.
#![cfg(target_os = "linux")]

use std::{
    fs,
    io::{BufWriter, Write},
    process::{Command, Stdio},
    time::Duration,
};

use crate::command::Folder;

/// The most memory that a process held, in bytes, as the system counts it until the process ends.
fn peak(folder: &Folder, arguments: &[&str]) -> u64 {
    let mut child = Command::new(env!("CARGO_BIN_EXE_tokenwise"))
        .args(arguments)
        .current_dir(&folder.0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let mut most = 0;
    while child.try_wait().unwrap().is_none() {
        let status = fs::read_to_string(format!("/proc/{}/status", child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kilobytes = line.and_then(|line| line.split_whitespace().next()?.parse::<u64>().ok());
        most = most.max(kilobytes.unwrap_or(0) << 10);
        std::thread::sleep(Duration::from_millis(2));
    }
    assert!(child.wait().unwrap().success());
    most
}

/// A file of 64 MB, in steps of 2 MB and as one batch after another.
#[test]
fn a_large_file_needs_the_memory_of_a_batch() {
    let folder = Folder::new("memory");
    let numbers = vec!["-0.123456"; 500].join(",");
    for (name, steps) in [("steps.jsonl", true), ("plain.jsonl", false)] {
        let mut file = BufWriter::new(fs::File::create(folder.0.join(name)).unwrap());
        for row in 0..4400 {
            let step = if steps { format!("\"step\": {}, ", row / 140) } else { String::new() };
            let columns = ["log_probs", "old_log_probs", "advantages"].map(|name| format!("\"{name}\": [{numbers}]"));
            writeln!(file, "{{{step}\"score\": 1, {}}}", columns.join(", ")).unwrap();
        }
        drop(file);
        assert!(folder.0.join(name).metadata().unwrap().len() > 64_000_000);
    }
    for (command, name, limit) in [("metrics", "steps.jsonl", 48 << 20), ("lint", "plain.jsonl", 112 << 20)] {
        let most = peak(&folder, &[command, name]);
        assert!((1 << 20..limit).contains(&most), "{command} {name}: {most} bytes");
    }
}

/// A history of a million records, 37 MB of text.
#[test]
fn a_long_history_needs_little_more_than_its_numbers() {
    let folder = Folder::new("history");
    let mut file = BufWriter::new(fs::File::create(folder.0.join("h.json")).unwrap());
    for step in 0..1_000_000 {
        let before = if step == 0 { '[' } else { ',' };
        writeln!(file, "{before}{{\"step\": {step}, \"entropy\": 1.{step:07}}}").unwrap();
    }
    file.write_all(b"]").unwrap();
    drop(file);
    let most = peak(&folder, &["entropy", "plot", "h.json", "-o", "x.svg"]);
    assert!((16 << 20..200 << 20).contains(&most), "{most} bytes");
}
