//! The errors of broken files: code, values and position.
#![allow(missing_docs, reason = "a program of its own")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on has failed")]

use std::{fs, ops::ControlFlow, path::Path};

use tokenwise_reader::{Bytes, Error, File, Options, Rollouts, Summary};

fn options() -> Options {
    Options { labels: true, ..Options::default() }
}

fn read_all(
    name: &str,
    bytes: impl Into<Bytes>,
    options: &Options,
    mut each: impl FnMut(&Rollouts),
) -> Result<Summary, Error> {
    File::open(name, bytes.into(), options)?.read(options, &mut |rollouts| {
        each(rollouts);
        ControlFlow::Continue(())
    })
}

fn refused(name: &str, bytes: &'static [u8]) -> String {
    let error = read_all(name, bytes, &options(), |_| {}).expect_err(name);
    let place: Vec<String> = error.place.numbers().iter().map(|(name, number)| format!("{name} {number} ")).collect();
    let values: Vec<String> = error.fault.values().iter().map(|(name, value)| format!(" {name}={value}")).collect();
    format!("{}{}{}", place.concat(), error.fault.code(), values.concat())
}

#[test]
fn every_fault_has_its_code_values_and_place() {
    let cases: [(&str, &[u8], &str); 42] = [
        ("a.jsonl", b" \n", "empty"),
        ("a.exe", b"MZ\0\x01", "unknownKind"),
        ("a.json", b"{\"colour\": 1}", "noRollout found=colour"),
        ("a.jsonl", b"{\"score\": 1}\n{\"input\": \"\xff\"}\n", "line 2 notText byte=12"),
        ("a.json", b"[{\"score\": 1},\n{\"input\": \"\xffabc\"}]\n", "line 2 column 12 notText byte=12"),
        ("a.csv", b"score,step\n\xff,2\n", "line 2 notTextCell field=1"),
        ("a.jsonl", b"hello\n", "line 1 noValue found=hello"),
        ("a.jsonl", b"{'score': 1}\n", "line 1 expected wanted=\" found='score': 1}"),
        ("a.jsonl", b"{\"score\" 1}\n", "line 1 expected wanted=: found=1}"),
        ("a.jsonl", b"{\"score\": 1} x\n", "line 1 expected wanted=\\n found=x"),
        ("a.json", b"{\"values\": [1, NaN}", "line 1 column 19 expected wanted=, ] found=NaN}"),
        ("a.json", b"[{\"score\": 1},]", "line 1 column 15 noValue found=]"),
        ("a.jsonl", b"{\"values\": [1,", "line 1 ends"),
        ("a.jsonl", b"{\"values\": [1,\n2]}\n", "line 1 incomplete"),
        ("a.jsonl", b"{\"values\": [1e400]}\n", "line 1 range text=1e400"),
        ("a.jsonl", b"{\"input\": \"a\x01\"}\n", "line 1 control"),
        ("a.jsonl", b"{\"input\": \"a\\q\"}\n", "line 1 escape text=\\q"),
        ("a.jsonl", b"{\"input\": \"\\ud800\"}\n", "line 1 escape text=\\ud800"),
        ("a.jsonl", b"42\n", "line 1 noObject found=42"),
        ("a.json", b"null", "line 1 column 4 noObject found=null"),
        ("a.jsonl", b"{\"values\": [1, \"x\"]}\n", "line 1 notANumber field=values found=x"),
        ("a.jsonl", b"{\"values\": [[[1]]]}\n", "line 1 notANumber field=values found=["),
        ("a.jsonl", b"{\"values\": {\"a\": 1}}\n", "line 1 notANumber field=values found={"),
        ("a.jsonl", b"{\"score\": {}}\n", "line 1 notANumber field=score found={"),
        ("a.jsonl", b"{\"mask\": [1, 2]}\n", "line 1 notAMask found=2"),
        ("a.jsonl", b"{\"mask\": \"yes\"}\n", "line 1 notAMask found=yes"),
        ("a.jsonl", b"{\"values\": [1, [2]]}\n", "line 1 mixed field=values"),
        (
            "a.json",
            b"[{\"score\": 1}, {\"advantages\": [1, 2], \"returns\": [1]}]",
            "record 2 lengths field=returns got=1 first=advantages expected=2",
        ),
        (
            "a.json",
            b"{\"advantages\": [[1], [1, 2]], \"returns\": [[1, 2], [1]]}",
            "record 1 lengths field=returns got=2 × [2, 1] first=advantages expected=2 × [1, 2]",
        ),
        ("a.jsonl", b"{\"score\": [1, 2, 3], \"values\": [[1], [1]]}\n", "line 1 scoreCount got=3 expected=2"),
        ("a.jsonl", b"{\"values\": [1], \"returns\": [1]}\n{\"values\": [1]}\n", "line 2 missingField field=returns"),
        ("a.jsonl", b"{\"values\": [1]}\n{\"values\": [1], \"returns\": [1]}\n", "line 2 newField field=returns"),
        ("a.csv", b"score,step\n1,2\n1\n", "line 3 csvWidth expected=2 got=1"),
        ("a.csv", b"score,step\nx,2\n", "line 2 notANumber field=score found=x"),
        ("a.csv", b"mask\n1\n", "line 2 notAList field=mask found=1"),
        ("a.csv", b"sequence,mask\na,1\na,2\n", "line 3 notAMask found=2"),
        ("a.parquet", b"PAR1", "notParquet reason="),
        ("a.safetensors", b"abc", "notTensors reason=too short"),
        ("a.safetensors", b"hello hello", "notTensors reason=the header is longer than the file"),
        ("a.safetensors", b"\x0c\0\0\0\0\0\0\0{\"values\":5}", "tensorEntry tensor=values"),
        (
            "a.safetensors",
            b"\x3e\0\0\0\0\0\0\0{\"values\":{\"dtype\":\"C64\",\"shape\":[1],\"data_offsets\":[0,8]}}   12345678",
            "tensorKind tensor=values kind=C64",
        ),
        (
            "a.safetensors",
            b"\x3f\0\0\0\0\0\0\0{\"mask\":{\"dtype\":\"U8\",\"shape\":[1,2],\"data_offsets\":[0,2]}}     \x01\x02",
            "row 1 notAMask found=2",
        ),
    ];
    let found = cases.map(|(name, bytes, wanted)| (refused(name, bytes), wanted));
    let differ =
        |(found, wanted): &&(String, &str)| found != wanted && !(wanted.ends_with('=') && found.starts_with(wanted));
    assert_eq!(found.iter().filter(differ).collect::<Vec<_>>(), Vec::<&(String, &str)>::new());
}

#[test]
fn limits_are_kept() {
    let few = Options { most_tokens: 3, most_sequences: 2, ..options() };
    let code = |text: &'static str| read_all("a.jsonl", text, &few, |_| {}).map_err(|error| error.fault.code());
    assert_eq!(code("{\"values\": [1, 2, 3]}\n").map(|summary| summary.sequences), Ok(1));
    assert_eq!(code("{\"values\": [1, 2, 3, 4]}\n"), Err("tooManyTokens"));
    assert_eq!(code("{\"score\": [1, 2, 3]}\n"), Err("tooManySequences"));
}

#[test]
fn zstandard_is_read() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures");
    let bytes = fs::read(folder.join("zstd.parquet")).unwrap();
    let mut sum = 0.0;
    let mut add = |rollouts: &Rollouts| {
        sum += rollouts.column(tokenwise_reader::Column::Values).unwrap().iter().fold(0.0, |all, value| all + value)
    };
    assert_eq!(read_all("a.parquet", bytes, &options(), &mut add).unwrap().sequences, 2);
    assert!(sum.is_finite() && sum != 0.0);
}

#[test]
fn tokens_prompts_and_groups_are_named_where_that_is_asked_for() {
    let text = concat!(
        "{\"step\": 1, \"prompt\": \"2+2?\", \"values\": [1, 2], \"response_tokens\": [\"a\", 7], \"length\": 3}\n",
        "{\"step\": 1, \"group\": 5, \"values\": [3], \"tokens\": [\"\\ud800\"], \"ids\": [8]}\n",
        "{\"step\": 2, \"group\": \"g\", \"values\": [NaN], \"ids\": [8], \"temperature\": 0.5}\n",
    );
    let (mut texts, mut labels) = (Vec::new(), Vec::new());
    let mut collect = |rollouts: &Rollouts| {
        texts.extend(rollouts.texts().map(String::from));
        labels.extend(rollouts.labels().iter().map(|label| (label.group.clone(), label.prompt.clone())));
    };
    let summary = read_all("a.jsonl", text, &options(), &mut collect).unwrap();
    assert_eq!(summary.passed_over, ["length", "temperature"]);
    assert_eq!([&texts[0], &texts[1], &texts[3]], ["a", "#7", "#8"]);
    let named = |group: &str, prompt: &str| (group.to_string(), prompt.to_string());
    assert_eq!(labels, [named("2+2?", "2+2?"), named("5", ""), named("g", "")]);
    let mut none = true;
    read_all("a.jsonl", text, &Options::default(), |rollouts| none &= rollouts.texts().next().is_none()).unwrap();
    assert!(none);
}

#[test]
fn padding_after_the_numbers_is_left_out_of_the_texts() {
    let texts_of = |tokens: &str| {
        let text = format!("{{\"values\": [1, 2], \"response_tokens\": {tokens}}}\n");
        let (mut texts, mut padding) = (Vec::new(), Vec::new());
        read_all("a.jsonl", text, &options(), |rollouts: &Rollouts| {
            texts.extend(rollouts.texts().map(str::to_owned));
            padding.extend(rollouts.labels().iter().map(|label| label.padding));
        })
        .unwrap();
        (texts, padding)
    };
    let some = |texts: [&str; 2]| texts.map(String::from).to_vec();
    assert_eq!(texts_of("[\"a\", \"b\"]"), (some(["a", "b"]), vec![0]));
    assert_eq!(texts_of("[\"a\", \"b\", \"<PAD>\"]"), (some(["a", "b"]), vec![1]));
    assert_eq!(texts_of("[\"a\", \"b\", \"[pad]\", \"<|endoftext|>\"]"), (some(["a", "b"]), vec![2]));
    // another word may belong anywhere: none is shown rather than a wrong one
    assert_eq!(texts_of("[\"a\", \"b\", \"c\"]"), (some(["", ""]), vec![0]));
}

#[test]
fn a_byte_order_mark_is_stepped_over() {
    for (name, text) in [
        ("a.jsonl", "\u{feff}{\"score\": 1}\n"),
        ("a.json", "\u{feff}[{\"score\": 1}]"),
        ("a.csv", "\u{feff}score\n1\n"),
    ] {
        assert_eq!(read_all(name, text, &options(), |_| {}).unwrap().sequences, 1, "{name}");
    }
}
