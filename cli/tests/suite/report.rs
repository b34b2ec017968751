//! `tokenwise report`: a page that stands alone.

use std::fs;

use serde_json::Value;

use crate::command::{fixture, Folder};

/// The data of a page.
fn data(page: &str) -> Value {
    let (_, rest) = page.split_once("<script id=\"data\" type=\"application/json\">").unwrap();
    let (text, _) = rest.split_once("</script>").unwrap();
    serde_json::from_str(text).unwrap()
}

#[test]
fn a_page_has_tokens_numbers_and_findings() {
    let folder = Folder::new("report");
    let done = folder.run(&["report", &fixture("unipo.json"), "-o", "x.html"]).done();
    assert_eq!(done.out, "x.html: 1 sequence, 6 tokens, 2 findings\n");
    let page = fs::read_to_string(folder.0.join("x.html")).unwrap();
    assert!(page.starts_with("<!doctype html>\n<html lang=\"en\">"));
    let data = data(&page);
    assert_eq!((&data["sequences"], &data["tokens"], &data["found"]), (&1.into(), &6.into(), &2.into()));
    let shown = &data["shown"][0];
    assert_eq!(shown["texts"].as_array().unwrap().len(), 6);
    assert_eq!(shown["keep"].as_array().unwrap().len(), 6);
    let columns = shown["columns"].as_object().unwrap();
    assert!(columns.len() > 3 && columns.values().all(|column| column.as_array().unwrap().len() == 6), "{columns:?}");
    let rules: Vec<&str> =
        data["findings"].as_array().unwrap().iter().filter_map(|finding| finding["rule"].as_str()).collect();
    assert_eq!(rules, ["ratio-at-first-update", "returns-disagree"]);
    assert_eq!(data["findings"][0]["token"], 6);
    folder.run(&["report", &fixture("unipo.json"), "-o", "zh.html", "--lang", "zh"]).done();
    assert!(fs::read_to_string(folder.0.join("zh.html")).unwrap().contains("<html lang=\"zh\">"));
}

#[test]
fn a_page_needs_nothing_else_and_no_text_of_a_file_becomes_markup() {
    let folder = Folder::new("report-alone");
    let hostile = "</script><script>alert(1)</script><!--";
    let line = serde_json::json!({
        "prompt": hostile, "token_strings": [hostile, "\u{1b}[2J"], "values": [1.0, null], "score": 1, hostile: 1,
    });
    folder.file("x.jsonl", line.to_string());
    folder.run(&["report", "x.jsonl", "-o", "x.html"]).done();
    let page = fs::read_to_string(folder.0.join("x.html")).unwrap();
    assert_eq!(page.matches("<script").count(), 2, "the data and the program");
    assert!(!page.contains("alert(1)</script>"));
    for word in ["http://", "https://", "src=", "@import", "url("] {
        let places = page.matches(word).count();
        // the name of SVG's elements is not fetched
        assert_eq!(
            places,
            usize::from(word == "http://") * page.matches("http://www.w3.org/2000/svg").count(),
            "{word}"
        );
    }
    let data = data(&page);
    let shown = &data["shown"][0];
    assert_eq!((&shown["prompt"], &shown["texts"][0]), (&hostile.into(), &hostile.into()));
    // what is not finite is a text
    assert_eq!(shown["columns"]["values"], serde_json::json!([1.0, "NaN"]));
    assert_eq!(data["findings"][0]["rule"], "not-a-number");
}

#[test]
fn limits_and_wrong_arguments_leave_no_page() {
    let folder = Folder::new("report-limits");
    let many: String = (0..300).map(|row| format!("{{\"score\": {row}, \"values\": [1, 2]}}\n")).collect();
    folder.file("x.jsonl", many);
    folder.run(&["report", "x.jsonl", "-o", "x.html", "--sequences", "3"]).done();
    let data = data(&fs::read_to_string(folder.0.join("x.html")).unwrap());
    assert_eq!((data["shown"].as_array().unwrap().len(), &data["sequences"]), (3, &300.into()));
    fs::remove_file(folder.0.join("x.html")).unwrap();
    folder.run(&["report", "x.jsonl", "-o", "x.html", "--sequences", "0"]).refused(2, &["--sequences"]);
    folder.run(&["report", "x.jsonl", "-o", "x.jsonl"]).refused(2, &["would replace the input"]);
    folder.run(&["report", "none.jsonl", "-o", "x.html"]).refused(3, &["none.jsonl"]);
    folder.run(&["report", "x.jsonl", "-o", "no/folder/x.html"]).refused(4, &["cannot be written"]);
    let long = format!("{{\"values\": [{}1]}}\n", "1,".repeat(200_000));
    folder.file("long.jsonl", long);
    folder
        .run(&["report", "long.jsonl", "-o", "x.html", "--memory", "16MiB"])
        .refused(3, &["--sequences", "of memory, the limit is 16 MiB"]);
    assert_eq!(folder.names(), ["long.jsonl", "x.jsonl"]);
}
