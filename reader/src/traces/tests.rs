use std::ops::ControlFlow;

use super::*;
use crate::{Bytes, File, Label, Options, Row, Session, Summary};

/// What a batch had: rows, mask, and the columns by name.
type Batch = (Vec<Row>, Vec<bool>, Vec<(&'static str, Vec<f64>)>, Vec<Label>);

fn read(files: &[&str], options: &Options) -> Result<(Vec<Batch>, Summary), crate::Error> {
    let mut batches = Vec::new();
    let mut keep = |rollouts: &crate::Rollouts| {
        let columns =
            Column::ALL.into_iter().filter_map(|column| Some((column.name(), rollouts.column(column)?.to_vec())));
        batches.push((rollouts.rows.clone(), rollouts.kept().to_vec(), columns.collect(), rollouts.labels().to_vec()));
        ControlFlow::Continue(())
    };
    let mut session = Session::new(options, &mut keep);
    for text in files {
        session.add(File::open("00000.jsonl", Bytes::from(text.to_string()), options)?, None)?;
    }
    let summary = session.finish()?;
    Ok((batches, summary))
}

/// An episode with one trace: a prompt of two tokens, an answer of one token of template and two sampled ones.
fn episode(id: &str, step: u64, score: f64, more: &str) -> String {
    format!(
        concat!(
            r#"{{"id":"e-{id}","env":{{"id":"sums"}},"task":{{"type":"T","data":{{"prompt":"1+1"}}}},"#,
            r#""group":{{"id":"g"}},"run":{{"type":"train","id":"r","work":{{"type":"train","step":{step}}}}},"#,
            r#""ok":true,"errors":[],"traces":[{{"version":1,"id":"{id}","agent":{{"config":{{}},"trainable":true}},"#,
            r#""nodes":[{{"message":{{"role":"user","content":"1+1"}},"sampled":false,"token_ids":[1,2],"#,
            r#""mask":[false,false],"is_content":[],"logprobs":[]}},{{"parent":0,"message":{{"role":"assistant"}},"#,
            r#""sampled":true,"token_ids":[3,4,5],"mask":[false,true,true],"logprobs":[-0.5,-0.25]}}{more}],"#,
            r#""calls":[{{"node":1,"finish_reason":"stop"}}],"rewards":{{"correct":{{"score":{score},"weight":1.0}},"#,
            r#""style":{{"score":1.0,"weight":0.5}},"judge":null}},"info":{{"judge":["x"]}},"stop_condition":null}}]}}"#
        ),
        id = id,
        step = step,
        score = score,
        more = more
    ) + "\n"
}

fn update(id: &str, step: u64, branch: usize, numbers: &str) -> String {
    format!(
        concat!(
            r#"{{"version":1,"trace_id":"{id}","info":{{"train":{{"trained_at_step":{step}}}}},"branches":["#,
            r#"{{"index":{branch},"trainer_logprobs":{numbers},"entropies":{numbers},"advantages":{numbers}}}]}}"#
        ),
        id = id,
        step = step,
        branch = branch,
        numbers = numbers
    ) + "\n"
}

#[test]
fn episodes_alone_have_what_the_sampler_wrote() {
    let text = episode("a", 3, 1.0, "") + &episode("b", 2, 0.0, "");
    let (batches, summary) = read(&[&text], &Options::default()).unwrap();
    assert_eq!(summary.left_out, LeftOut::default());
    // sorted by step; the prompt and the template before the first sampled token are left out
    let (rows, kept, columns, _) = &batches[0];
    assert_eq!((rows[0].step, rows[0].place, rows[0].score), (Some(2), 2, Some(0.5)));
    assert_eq!((rows[0].prompt_length, rows[0].truncated), (Some(3.0), Some(false)));
    assert_eq!(
        (kept.as_slice(), columns.as_slice()),
        (&[true, true][..], &[("rollout_log_probs", vec![-0.5, -0.25])][..])
    );
    assert_eq!((batches[1].0[0].step, batches[1].0[0].score), (Some(3), Some(1.5)));
    assert_eq!(batches[0].0[0].group, batches[1].0[0].group);
}

#[test]
fn annotations_are_put_onto_traces_wherever_they_stand() {
    let stream = episode("a", 3, 1.0, "") + &episode("b", 3, 0.0, "") + &episode("c", 3, 0.0, "");
    // the first entry is always unknown; null elsewhere was not finite; the newest wins; the last is of no trace here
    let notes = update("a", 7, 0, "[null,-1,-1,-2,-3]")
        + &update("b", 8, 0, "[null,-1,-1,-9,-9]")
        + &update("b", 8, 0, "[null,-1,-1,-2,null]")
        + &update("elsewhere", 9, 0, "[null]");
    for files in [[stream.as_str(), notes.as_str()], [notes.as_str(), stream.as_str()]] {
        let (batches, summary) = read(&files, &Options::default()).unwrap();
        assert_eq!(summary.left_out, LeftOut { not_annotated: 1, ..LeftOut::default() });
        assert_eq!(batches.iter().map(|(rows, ..)| rows[0].step).collect::<Vec<_>>(), [Some(7), Some(8)]);
        let (_, kept, columns, _) = &batches[0];
        assert_eq!(kept.as_slice(), [true, true]);
        let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
        assert_eq!(names, ["log_probs", "rollout_log_probs", "advantages", "entropies"]);
        assert_eq!((&columns[0].1, &columns[1].1), (&vec![-2.0, -3.0], &vec![-0.5, -0.25]));
        let b = &batches[1].2[0].1;
        assert!(b[0] == -2.0 && b[1].is_nan(), "{b:?}");
        assert!(batches[1].1[1], "a number that is not finite is kept, so that lint finds it");
    }
}

#[test]
fn a_shared_message_counts_for_its_first_branch() {
    // two answers to the tool's reply after the same first answer
    let more = r#",{"parent":1,"message":{},"token_ids":[6],"mask":[false],"logprobs":[]},
        {"parent":2,"message":{},"sampled":true,"token_ids":[7],"mask":[true],"logprobs":[-1]},
        {"parent":2,"message":{},"sampled":true,"token_ids":[8,9],"mask":[true,true],"logprobs":[-2,-3]},
        {"parent":1,"message":{},"token_ids":[6],"mask":[false],"logprobs":[]}"#;
    let text = episode("a", 0, 1.0, &more.replace('\n', ""));
    let (batches, _) = read(&[&text], &Options::default()).unwrap();
    let (rows, kept, columns, _) = &batches[0];
    assert_eq!(rows.len(), 2, "a branch that samples nothing of its own is no sequence");
    assert_eq!(kept.as_slice(), [true, true, false, true, false, false, false, true, true]);
    assert_eq!(columns[0].1, [-0.5, -0.25, 0.0, -1.0, -0.5, -0.25, 0.0, -2.0, -3.0]);
}

#[test]
fn a_sample_that_was_cut_ends_where_the_trainer_stopped() {
    let text = episode("a", 0, 1.0, "") + &update("a", 1, 0, "[null,-1,-1,-2]");
    let (batches, _) = read(&[&text], &Options::default()).unwrap();
    assert_eq!((batches[0].1.as_slice(), &batches[0].2[0].1), (&[true][..], &vec![-2.0]));
}

#[test]
fn evaluations_and_untrained_agents_are_left_out() {
    let text = episode("a", 0, 1.0, "")
        + &episode("b", 0, 1.0, "").replace(r#""work":{"type":"train""#, r#""work":{"type":"eval""#)
        + &episode("c", 0, 1.0, "").replace(r#""trainable":true"#, r#""trainable":false"#);
    let (batches, summary) = read(&[&text], &Options::default()).unwrap();
    assert_eq!(batches[0].0.len(), 1);
    assert_eq!(summary.left_out, LeftOut { evaluations: 1, not_trained: 1, not_annotated: 0 });
}

#[test]
fn a_trace_may_stand_without_its_episode() {
    let episode = episode("a", 0, 1.0, "");
    let start = episode.find(r#"{"version""#).unwrap();
    let (batches, _) = read(&[&episode[start..episode.len() - 3]], &Options::default()).unwrap();
    assert_eq!((batches[0].0[0].score, batches[0].1.len()), (Some(1.5), 2));
}

#[test]
fn what_is_wrong_is_told() {
    let bad = |text: &str| read(&[text], &Options::default()).unwrap_err().to_string();
    let good = episode("a", 0, 1.0, "");
    let cases = [
        (good.replace("[-0.5,-0.25]", "[-0.5]"), "line 1: field \"logprobs\" has 1 entries, field \"mask\" has 2"),
        (
            good.replace("\"parent\":0", "\"parent\":1"),
            "line 1: this is not a trace of prime-rl: node 1 has node 1 as its parent",
        ),
        (good.replace("[1,2]", "[1]"), "line 1: field \"token_ids\" has 1 entries, field \"mask\" has 2"),
        (
            good.replace("[-0.5,-0.25]", "\"x\""),
            "line 1: this is not a trace of prime-rl: invalid type: string \"x\", expected a sequence",
        ),
        (update("a", 0, 0, "[null]"), "these are annotations of traces; the traces themselves are in stream/"),
    ];
    for (text, message) in cases {
        assert_eq!(bad(&text), message);
    }
    // memory is bounded also for what is kept until the end
    let options = Options { memory: crate::Budget::new(40_000), ..Options::default() };
    let many: String = (0..1000).map(|index| episode(&index.to_string(), index, 1.0, "")).collect();
    let message = read(&[&many], &options).unwrap_err().to_string();
    assert!(message.contains("a run of traces, which is sorted by step, needs"), "{message}");
}

/// A chain of messages with a leaf at each: the paths together are much longer than the file.
#[test]
fn paths_are_bounded_by_the_memory() {
    let nodes: String =
        (1..4000).map(|node| format!(",{{\"parent\":{}}},{{\"parent\":{}}}", 2 * node - 1, 2 * node - 1)).collect();
    let text = episode("a", 0, 1.0, &nodes);
    let options = Options { memory: crate::Budget::new(8 << 20), ..Options::default() };
    let message = read(&[&text], &options).unwrap_err().to_string();
    assert!(message.contains("a run of traces, which is sorted by step, needs"), "{message}");
}

#[test]
fn other_files_may_have_these_names() {
    let text = "{\"nodes\": 3, \"trace_id\": \"x\", \"log_probs\": [-1]}\n{\"nodes\": [1], \"log_probs\": [-1]}\n";
    let (batches, _) = read(&[text], &Options::default()).unwrap();
    assert_eq!(batches[0].0.len(), 2);
}

#[test]
fn ids_are_the_texts_of_tokens() {
    let options = Options { labels: true, ..Options::default() };
    let text = episode("a", 0, 1.0, "");
    let mut texts = Vec::new();
    let file = File::open("00000.jsonl", Bytes::from(text), &options).unwrap();
    file.read(&options, &mut |rollouts| {
        texts.extend(rollouts.texts().map(String::from));
        ControlFlow::Continue(())
    })
    .unwrap();
    assert_eq!(texts, ["4", "5"]);
}
