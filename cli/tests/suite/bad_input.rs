//! Broken, empty, binary and truncated rollout files give a message and an exit code, never a panic.

use std::fs;

use crate::command::{fixture, Folder};

#[test]
fn each_fault_names_file_line_and_field() {
    let folder = Folder::new("bad");
    let cases: [(&str, &[u8], &[&str]); 22] = [
        ("empty.jsonl", b"", &["empty.jsonl", "the file is empty"]),
        ("blank.json", b"\n \n", &["blank.json", "the file is empty"]),
        ("word.jsonl", b"hello\n", &["word.jsonl: line 1", "expected a value"]),
        ("cut.jsonl", b"{\"score\": 1}\n{\"score\": 1, \"advan", &["line 2", "ends too early"]),
        (
            "kind.jsonl",
            b"{\"advantages\": [1, \"x\"]}\n",
            &["line 1", "field \"advantages\": expected a number", "\"x\""],
        ),
        ("deep.jsonl", b"{\"advantages\": [[[1]]]}\n", &["line 1", "field \"advantages\""]),
        ("mixed.jsonl", b"{\"advantages\": [1, [2]]}\n", &["line 1", "lists among numbers"]),
        ("mask.jsonl", b"{\"mask\": [1, 2]}\n", &["line 1", "field \"mask\": expected 0 or 1, got 2"]),
        (
            "length.jsonl",
            b"{\"advantages\": [1, 2], \"returns\": [1]}\n",
            &["line 1", "field \"returns\" has 1 entries", "\"advantages\" has 2"],
        ),
        ("score.jsonl", b"{\"score\": {}}\n", &["line 1", "field \"score\": expected a number"]),
        (
            "missing.jsonl",
            b"{\"values\": [1], \"returns\": [1]}\n{\"values\": [1]}\n",
            &["line 2", "field \"returns\" is missing"],
        ),
        (
            "added.jsonl",
            b"{\"values\": [1]}\n{\"values\": [1], \"returns\": [1]}\n",
            &["line 2", "field \"returns\" appears here, but not"],
        ),
        ("utf8.jsonl", b"{\"score\": 1, \"input\": \"\xff\xfe\"}\n", &["line 1", "byte 24 is not UTF-8"]),
        ("binary.json", b"\x7fELF\x02\x01\x01\x00", &["binary.json: line 1", "expected a value"]),
        ("cut.json", b"[{\"score\": 1}, {\"score\":", &["line 1, column", "ends too early"]),
        ("nothing.json", b"{\"colour\": [1, 2]}", &["no known field; found colour. Map one with --field score=NAME"]),
        ("ragged.csv", b"score,step\n1,2\n1\n", &["line 3", "expected 2 fields, got 1"]),
        ("word.csv", b"score,step\nx,2\n", &["line 2", "field \"score\"", "\"x\""]),
        ("utf8.csv", b"score,step\n\xff,2\n", &["line 2", "not UTF-8"]),
        ("text.parquet", b"PAR1 and then nothing", &["text.parquet", "cannot read the Parquet file"]),
        ("text.safetensors", b"hello hello hello", &["text.safetensors", "not a safetensors file"]),
        ("short.safetensors", b"abc", &["short.safetensors", "too short"]),
    ];
    for command in ["metrics", "lint"] {
        for (name, bytes, words) in cases {
            folder.file(name, bytes);
            folder.run(&[command, name]).refused(3, words);
        }
        folder.run(&[command, "none.jsonl"]).refused(3, &["none.jsonl", "No such file"]);
        fs::create_dir_all(folder.0.join("empty")).unwrap();
        folder.run(&[command, "empty"]).refused(3, &["no .jsonl", "below this folder"]);
        folder.file("x.bin", b"\x00\x01\x02");
        folder.run(&[command, "x.bin"]).refused(3, &["unknown file format", ".safetensors"]);
        folder.run(&[command, "x.bin", "--field", "score"]).refused(2, &["FIELD=NAME"]);
    }
}

#[test]
fn files_cut_anywhere_are_refused_or_read_but_never_end_in_a_panic() {
    let folder = Folder::new("cut");
    for name in ["rollouts.jsonl", "rollouts.parquet", "unipo.json", "7.jsonl"] {
        let bytes = fs::read(fixture(name)).unwrap();
        for part in 0..12 {
            folder.file(name, &bytes[..bytes.len() * part / 12]);
            let output = folder.run(&["metrics", name]);
            assert!([0, 3].contains(&output.code) && !output.err.contains("panicked"), "{name} {part}: {output:?}");
            assert!(output.code == 0 || !output.err.is_empty());
        }
    }
}

#[test]
fn a_header_that_lies_is_refused() {
    let folder = Folder::new("lies");
    let file = |header: &str, data: usize| {
        [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &vec![0; data]].concat()
    };
    let cases = [
        (r#"{"values": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}}"#, 8, "ends too early"),
        (r#"{"values": {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 20]}}"#, 24, "its header is wrong"),
        (r#"{"values": {"dtype": "C64", "shape": [1], "data_offsets": [0, 8]}}"#, 8, "unsupported dtype C64"),
        (
            r#"{"values": {"dtype": "F32", "shape": [18446744073709551615, 2], "data_offsets": [0, 8]}}"#,
            8,
            "invalid header entry",
        ),
        (r#"{"values": 5}"#, 8, "invalid header entry"),
        (r#"{"values": {"dtype": "F32", "shape": [1, 1, 1], "data_offsets": [0, 4]}}"#, 4, "one or two dimensions"),
    ];
    for (header, data, word) in cases {
        folder.file("x.safetensors", file(header, data));
        folder.run(&["metrics", "x.safetensors"]).refused(3, &["tensor \"values\"", word]);
    }
}
