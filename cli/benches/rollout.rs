//! Speed and memory of turning a JSON Lines file into metrics, compared with only parsing it.
//!
//! `cargo bench -p tokenwise-cli --bench rollout -- MEGABYTES` (500 by default). Both run as separate processes, in
//! turns; CPU time is compared rather than wall time, so that load on the machine does not matter.
#![allow(missing_docs, reason = "a program of its own")]

use std::{
    env,
    error::Error,
    fs::{self, File},
    hint::black_box,
    io::{BufRead, BufReader, BufWriter, Write},
    path::Path,
    process::{Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use serde::Deserialize;

/// The same input for a program that only parses it.
#[derive(Deserialize)]
#[allow(dead_code, reason = "read, then dropped")]
struct Sequence {
    step: Option<u64>,
    group: u64,
    score: f64,
    mask: Vec<u8>,
    log_probs: Vec<f64>,
    old_log_probs: Vec<f64>,
    ref_log_probs: Vec<f64>,
    advantages: Vec<f64>,
    rewards: Vec<f64>,
    values: Vec<f64>,
    returns: Vec<f64>,
}

const RUNS: usize = 3;

fn main() -> Result<(), Box<dyn Error>> {
    if let Ok(path) = env::var("TOKENWISE_PARSE") {
        return parse(Path::new(&path));
    }
    let megabytes: u64 = env::args().skip(1).find_map(|argument| argument.parse().ok()).unwrap_or(500);
    let path = env::temp_dir().join(format!("tokenwise-rollouts-{megabytes}.jsonl"));
    if path.metadata().map_or(0, |data| data.len()) < megabytes << 20 {
        generate(&path, megabytes << 20)?;
    }
    let mut parsing = Vec::new();
    let mut metrics = Vec::new();
    for _ in 0..RUNS {
        let mut parser = Command::new(env::current_exe()?);
        parser.env("TOKENWISE_PARSE", &path);
        parsing.push(measure(&mut parser)?);
        let mut command = Command::new(env!("CARGO_BIN_EXE_tokenwise"));
        command.arg("metrics").arg(&path);
        metrics.push(measure(&mut command)?);
    }
    let (parsing, metrics) = (median(parsing), median(metrics));
    for (name, run) in [("parse and drop", &parsing), ("tokenwise metrics", &metrics)] {
        let speed = megabytes as f64 / run.cpu.as_secs_f64();
        println!(
            "{name:18} {:>8.2?} CPU {:>8.2?} wall {speed:>7.0} MB/s {:>5} MB at most",
            run.cpu,
            run.wall,
            run.memory >> 10
        );
    }
    println!("speed of parsing kept: {:.1} %", 100.0 * parsing.cpu.as_secs_f64() / metrics.cpu.as_secs_f64());
    fs::remove_file(&path)?;
    Ok(())
}

fn parse(path: &Path) -> Result<(), Box<dyn Error>> {
    let mut file = BufReader::with_capacity(1 << 20, File::open(path)?);
    let mut line = Vec::new();
    while file.read_until(b'\n', &mut line)? > 0 {
        black_box(serde_json::from_slice::<Sequence>(&line)?);
        line.clear();
    }
    Ok(())
}

fn generate(path: &Path, bytes: u64) -> Result<(), Box<dyn Error>> {
    let mut out = BufWriter::new(File::create(path)?);
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state >> 40) as f32 / (1 << 24) as f32
    };
    let mut written = 0;
    let mut sequence = 0;
    while written < bytes {
        let tokens = 200 + (random() * 1400.0) as usize;
        let mut line = format!("{{\"group\":{},\"score\":{}", sequence / 8, (random() * 2.0) as u32);
        for (name, low, high) in [
            ("log_probs", -3.0, 0.0),
            ("old_log_probs", -3.0, 0.0),
            ("ref_log_probs", -3.0, 0.0),
            ("advantages", -1.0, 1.0),
            ("rewards", -0.01, 0.01),
            ("values", 0.0, 1.0),
            ("returns", 0.0, 1.0),
        ] {
            let numbers: Vec<String> = (0..tokens).map(|_| (low + (high - low) * random()).to_string()).collect();
            line += &format!(",\"{name}\":[{}]", numbers.join(","));
        }
        let mask: Vec<&str> = (0..tokens).map(|_| if random() < 0.97 { "1" } else { "0" }).collect();
        line += &format!(",\"mask\":[{}]}}\n", mask.join(","));
        out.write_all(line.as_bytes())?;
        written += line.len() as u64;
        sequence += 1;
    }
    out.flush()?;
    Ok(())
}

struct Run {
    cpu: Duration,
    wall: Duration,
    /// Kilobytes.
    memory: u64,
}

fn median(mut runs: Vec<Run>) -> Run {
    runs.sort_by_key(|run| run.cpu);
    runs.swap_remove(runs.len() / 2)
}

fn measure(command: &mut Command) -> Result<Run, Box<dyn Error>> {
    let before = children_cpu()?;
    let start = Instant::now();
    let mut child = command.stdout(Stdio::null()).spawn()?;
    let status_file = format!("/proc/{}/status", child.id());
    let mut memory = 0;
    let status = loop {
        // the peak so far; unavailable after the process has ended
        let text = fs::read_to_string(&status_file).unwrap_or_default();
        let peak = text.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix(" kB")?.parse().ok());
        memory = peak.unwrap_or(0).max(memory);
        if let Some(status) = child.try_wait()? {
            break status;
        }
        thread::sleep(Duration::from_millis(2));
    };
    if !status.success() {
        return Err("the command failed".into());
    }
    Ok(Run { cpu: children_cpu()?.saturating_sub(before), wall: start.elapsed(), memory })
}

/// User and system time of the ended child processes; Linux counts in hundredths of a second.
fn children_cpu() -> Result<Duration, Box<dyn Error>> {
    let stat = fs::read_to_string("/proc/self/stat")?;
    let after_name = stat.rsplit_once(')').ok_or("no such process")?.1;
    let ticks: Vec<u64> = after_name.split_whitespace().skip(13).take(2).map(str::parse).collect::<Result<_, _>>()?;
    Ok(Duration::from_millis(ticks.iter().fold(0, |sum, tick| sum + tick * 10)))
}
