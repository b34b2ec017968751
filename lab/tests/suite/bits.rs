//! The same settings give the same bits, however often a run is interrupted and whatever runs beside it.

use std::{
    process::{Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

use rand_chacha::{
    rand_core::{RngCore, SeedableRng},
    ChaCha8Rng,
};

use crate::folder::Folder;

const RUN: &[&str] = &[
    "--task",
    "one-digit",
    "--groups",
    "C1",
    "--seeds",
    "3",
    "--steps",
    "40",
    "--jobs",
    "1",
    "--checkpoint-every",
    "7",
];

fn assert_same(got: &Folder, expected: &Folder, what: &str) {
    let (got, expected) = (got.files(), expected.files());
    assert_eq!(got.keys().collect::<Vec<_>>(), expected.keys().collect::<Vec<_>>(), "{what}");
    for (path, bytes) in &expected {
        assert!(got[path] == *bytes, "{what}: {} differs", path.display());
    }
}

/// Starts the run, lets it go on for a while, and kills it.
fn killed(folder: &Folder, after: Duration) -> ExitStatus {
    let mut child = folder.command(RUN).spawn().unwrap();
    thread::sleep(after);
    child.kill().unwrap();
    child.wait().unwrap()
}

#[test]
fn a_run_killed_at_any_point_continues_to_the_same_bits() {
    let expected = Folder::new();
    let start = Instant::now();
    expected.run(RUN);
    let whole = start.elapsed();
    let mut random = ChaCha8Rng::seed_from_u64(20);
    let mut cut_short = 0;
    for point in 0..20 {
        let share = f64::from(random.next_u32()) / f64::from(u32::MAX);
        let folder = Folder::new();
        cut_short += u32::from(!killed(&folder, whole.mul_f64(share)).success());
        folder.run(RUN);
        assert_same(&folder, &expected, &format!("kill {point} after {share:.2} of the run"));
    }
    assert!(cut_short >= 10, "only {cut_short} of 20 runs were killed before their end");

    let folder = Folder::new();
    for _ in 0..6 {
        killed(&folder, whole.mul_f64(0.5));
    }
    folder.run(RUN);
    assert_same(&folder, &expected, "killed six times in a row");

    // the last numbers are there, the last checkpoint perhaps not
    let folder = Folder::new();
    let mut child = folder.command(RUN).spawn().unwrap();
    while !folder.path().join("one-digit/C1/seed-3/final.json").exists() && child.try_wait().unwrap().is_none() {
        thread::sleep(Duration::from_micros(50));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    folder.run(RUN);
    assert_same(&folder, &expected, "killed at the end");
}

#[cfg(unix)]
#[test]
fn an_interrupt_leaves_a_checkpoint_and_the_same_command_continues() {
    let (expected, folder) = (Folder::new(), Folder::new());
    // long enough that the signal comes before the end
    let long: Vec<&str> = RUN.iter().map(|&word| if word == "40" { "150" } else { word }).collect();
    expected.run(&long);
    let child = folder.command(&long).spawn().unwrap();
    let run = folder.path().join("one-digit/C1/seed-3");
    while !run.join("metrics.jsonl").exists() {
        thread::sleep(Duration::from_millis(5));
    }
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(130), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(run.join("checkpoint.safetensors").exists());
    assert!(!run.join("final.json").exists());

    // another number of steps is another run: the folder is refused, not mixed
    let refused = folder.command(RUN).output().unwrap();
    let message = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert!(!refused.status.success() && message.contains("other settings"), "{message}");

    folder.run(&long);
    assert_same(&folder, &expected, "interrupted and continued");
}

#[test]
fn runs_side_by_side_have_the_bits_of_runs_one_after_another() {
    let arguments = ["--task", "two-digit", "--groups", "C0,C0k,C1,C2,C3", "--seeds", "0", "--steps", "12"];
    let folders = ["1", "3"].map(|jobs| {
        let folder = Folder::new();
        folder.run(&[&arguments[..], &["--jobs", jobs]].concat());
        folder
    });
    assert_same(&folders[0], &folders[1], "--jobs 1 and --jobs 3");

    // all groups of a seed start from the same weights and see the same problems
    let files = folders[0].files();
    let first = |group: &str| {
        let path = format!("two-digit/{group}/seed-0/rollouts.jsonl");
        let text = String::from_utf8(files[std::path::Path::new(&path)].clone()).unwrap();
        let line: serde_json::Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
        line
    };
    for group in ["C0k", "C1", "C2", "C3"] {
        assert_eq!(first(group), first("C0"), "{group}");
    }
    let metrics = |group: &str| &files[std::path::Path::new(&format!("two-digit/{group}/seed-0/metrics.jsonl"))];
    assert!(metrics("C0") != metrics("C1"), "the groups do not differ");
}

#[test]
fn a_finished_run_is_not_run_again() {
    let folder = Folder::new();
    folder.run(RUN);
    let checkpoint = folder.path().join("one-digit/C1/seed-3/checkpoint.safetensors");
    let written = checkpoint.metadata().unwrap().modified().unwrap();
    folder.run(RUN);
    assert_eq!(checkpoint.metadata().unwrap().modified().unwrap(), written);
}
