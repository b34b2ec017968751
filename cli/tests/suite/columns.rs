//! Everything that is printed fits into 80 columns, with the widths that letters have on a terminal.

use unicode_width::UnicodeWidthStr;

use crate::command::{fixture, Folder};

const PROFILES: [&str; 4] = ["verl-0.9.1", "trl-1.16", "openrlhf-0.11", "paper"];

fn fits(folder: &Folder, arguments: &[&str]) -> String {
    let done = folder.run(arguments);
    for line in done.out.lines().filter(|line| !line.contains('/') || !line.contains(".jsonl")) {
        assert!(line.width() <= 80, "{arguments:?}: {} columns: {line}", line.width());
    }
    assert!(!done.out.is_empty(), "{arguments:?}: {done:?}");
    done.out
}

#[test]
fn help_is_wrapped() {
    let folder = Folder::new("columns-help");
    for command in [
        &[][..],
        &["metrics"],
        &["lint"],
        &["report"],
        &["explain"],
        &["completions"],
        &["entropy"],
        &["entropy", "plot"],
        &["entropy", "compare"],
        &["entropy", "scan"],
        &["entropy", "check"],
    ] {
        fits(&folder, &[command, &["--help"]].concat());
    }
}

#[test]
fn tables_are_no_wider_than_a_terminal() {
    let folder = Folder::new("columns");
    let file = fixture("rollouts.jsonl");
    for profile in PROFILES {
        fits(&folder, &["metrics", &file, "--profile", profile]);
        fits(&folder, &["metrics", &file, "--profile", profile, "--steps"]);
        for other in PROFILES.into_iter().filter(|other| *other != profile) {
            let text = fits(&folder, &["metrics", &file, "--profile", profile, "--diff", other]);
            assert!(text.contains("; farthest apart: row "), "{text}");
        }
    }
    let keys = "critic/score/mean,critic/score/max,critic/score/min,response_length/mean,critic/rewards/mean";
    let text = fits(&folder, &["metrics", &file, "--steps", "--keys", keys]);
    assert!(keys.split(',').all(|key| text.contains(key)), "{text}");
    assert!(text.matches("\nstep ").count() >= 1, "the others continue below: {text}");
    for language in ["en", "zh"] {
        fits(&folder, &["explain", "--lang", language]);
        for row in ["score", "kl", "reward", "value", "delta", "advantage", "return", "whitened"] {
            fits(&folder, &["explain", "--cell", &format!("{row}:3"), "--lang", language]);
        }
    }
    let history = "[{\"step\": 1, \"entropy\": 4.123456}, {\"step\": 2, \"entropy\": 0.123456}]";
    let names = ["1", "2"].map(|end| format!("entropy_history_{}_{end}.json", "long".repeat(20)));
    for name in &names {
        folder.file(name, history);
    }
    let compared = ["entropy", "compare", names[0].as_str(), names[1].as_str(), "--collapse", "0.5", "-o", "x.svg"];
    let text = fits(&folder, &compared);
    assert!(text.contains("_1 ") && text.contains("_2 "), "{text}");
    fits(&folder, &["entropy", "check"]);
}
