//! Pictures as PDF: the structure of the file, and what is drawn.

use std::fs;

use crate::command::Folder;

/// The number after a word.
fn after(text: &str, word: &str) -> usize {
    let rest = text.split_once(word).unwrap_or_else(|| panic!("no {word}: {text}")).1.trim_start();
    rest.split(|letter: char| !letter.is_ascii_digit()).next().unwrap().parse().unwrap()
}

/// The objects of a file, found through its table of references.
fn objects(file: &str) -> Vec<&str> {
    assert!(file.starts_with("%PDF-1.") && file.ends_with("%%EOF\n"));
    let start = after(&file[file.rfind("startxref").unwrap()..], "startxref");
    let table = file[start..].strip_prefix("xref\n0 ").unwrap();
    let (count, rows) = table.split_once('\n').unwrap();
    let count: usize = count.parse().unwrap();
    // each row has 20 bytes
    let rows = &rows.as_bytes()[..20 * count];
    let rows: Vec<&str> = rows.chunks(20).map(|row| std::str::from_utf8(row).unwrap()).collect();
    assert_eq!(rows[0], "0000000000 65535 f \n");
    assert!(rows[1..].iter().all(|row| row.ends_with(" 00000 n \n")), "{rows:?}");
    assert_eq!(after(&file[start..], "/Size"), count);
    let object = |(index, row): (usize, &&str)| {
        let place: usize = row[..10].parse().unwrap();
        let body = file[place..].strip_prefix(&format!("{} 0 obj\n", index + 1)).unwrap();
        body.split_once("\nendobj\n").unwrap().0
    };
    rows[1..].iter().enumerate().map(object).collect()
}

fn drawn(folder: &Folder, arguments: &[&str]) -> String {
    folder.run(&[arguments, &["-o", "x.pdf"]].concat()).done();
    String::from_utf8(fs::read(folder.0.join("x.pdf")).unwrap()).unwrap()
}

#[test]
fn a_picture_is_a_page_of_paths() {
    let folder = Folder::new("pdf");
    let record = |step: u32| format!("{{\"step\": {step}, \"entropy\": {}}}", 4.0 / f64::from(step));
    let history: Vec<String> = (1..50).map(record).collect();
    folder.file("a.json", format!("[{}]", history.join(",")));
    folder.file("b.json", format!("[{}]", history[..20].join(",")));
    let file = drawn(&folder, &["entropy", "compare", "a.json", "b.json", "--collapse", "0.5", "--title", "Ω 熵"]);
    let objects = objects(&file);
    let root = after(&file[file.rfind("trailer").unwrap()..], "/Root");
    assert!(objects[root - 1].contains("/Type /Catalog"));
    let pages = objects[after(objects[root - 1], "/Pages") - 1];
    assert!(pages.contains("/Type /Pages") && after(pages, "/Count") == 1, "{pages}");
    let page = objects[after(pages, "/Kids [") - 1];
    assert!(page.contains("/Type /Page "), "{page}");
    let media: Vec<f64> = page
        .split_once("/MediaBox [")
        .unwrap()
        .1
        .split_once(']')
        .unwrap()
        .0
        .split(' ')
        .map(|x| x.parse().unwrap())
        .collect();
    assert!(media[..2] == [0.0, 0.0] && media[2] > 300.0 && media[3] > 200.0, "{media:?}");
    let content = objects[after(page, "/Contents") - 1];
    let (head, stream) = content.split_once("stream\n").unwrap();
    let stream = stream.strip_suffix("endstream").unwrap();
    assert_eq!(after(head, "/Length"), stream.len());
    // operators with their operands; everything lies on the page
    let (mut paths, mut dashed, mut colours) = (0, 0, std::collections::BTreeSet::new());
    let mut operands: Vec<&str> = Vec::new();
    for word in stream.split_whitespace() {
        let wanted = match word {
            "m" | "l" => 2,
            "c" | "cm" => 6,
            "rg" | "RG" => 3,
            "w" | "j" => 1,
            "h" | "f" | "S" | "B" | "n" => 0,
            "d" => operands.len(),
            _ => {
                operands.push(word);
                continue;
            }
        };
        assert_eq!(operands.len(), wanted, "{operands:?} {word}");
        match word {
            "m" | "l" | "c" => {
                for (index, x) in operands.iter().enumerate() {
                    let x: f64 = x.parse().unwrap();
                    assert!((-1.0..=media[2 + index % 2] + 1.0).contains(&x), "{operands:?} {word}");
                }
            }
            "f" | "S" | "B" => paths += 1,
            "d" => dashed += usize::from(operands[0] != "[]"),
            "rg" | "RG" => drop(colours.insert(operands.join(" "))),
            _ => {}
        }
        operands.clear();
    }
    assert!(operands.is_empty() && paths > 20 && dashed > 0 && colours.len() > 3, "{paths} {dashed} {colours:?}");
}

#[test]
fn metrics_are_drawn_as_pdf_too() {
    let folder = Folder::new("pdf-metrics");
    folder.file("x.jsonl", "{\"score\": 1, \"step\": 1}\n{\"score\": 2, \"step\": 2}\n");
    folder.run(&["metrics", "x.jsonl", "--plot", "m.pdf"]).done();
    assert_eq!(objects(&fs::read_to_string(folder.0.join("m.pdf")).unwrap()).len(), 4);
}
