//! The folder that prime-rl writes since 2026-08-31.

use std::fs;

use crate::command::{fixture, Folder};

#[test]
fn a_folder_of_traces_is_read_with_its_annotations() {
    let folder = Folder::new("traces");
    let text = fs::read_to_string(fixture("readings/prime-rl-traces.jsonl")).unwrap();
    let (notes, stream): (Vec<&str>, Vec<&str>) = text.lines().partition(|line| line.contains("trace_id"));
    folder.file("traces/stream/00000.jsonl", stream[..2].join("\n"));
    folder.file("traces/stream/00001.jsonl", stream[2..].join("\n"));
    folder.file("traces/stream.index.jsonl", "{\"id\": \"e-a\", \"reward\": 7, \"advantage\": 9}\n");
    folder.file("traces/annotations/trainer/00000.jsonl", notes.join("\n"));
    folder.file("traces/annotations/trainer.index.jsonl", "{\"trace_id\": \"a\", \"info\": {}}\n");
    let done = folder.run(&["metrics", "traces", "--json", "--profile", "paper"]).done();
    let line = &done.json()[0];
    assert_eq!((&line["step"], &line["sequences"], &line["tokens"]), (&2.into(), &2.into(), &3.into()));
    assert_eq!(line["metrics"]["score/mean"], 0.5);
    assert_eq!(done.err, "warning: left out: 1 trace that no training step used\n");
    // without annotations: every trace, with the step of its start
    let lines = folder.run(&["metrics", "traces/stream", "--json"]).done().json();
    let steps: Vec<_> = lines.iter().filter_map(|line| line["step"].as_u64()).collect();
    assert_eq!(steps, [1, 2]);
    folder
        .run(&["lint", "traces/annotations/trainer/00000.jsonl"])
        .refused(3, &["annotations of traces; the traces themselves are in stream/"]);
    let lint = folder.run(&["lint", "traces"]).done();
    assert!(lint.out.contains("found: ") && lint.out.contains("trainer_logprobs"), "{}", lint.out);
}
