//! Tables on the terminal, and atomic writes of files.

use std::{
    fs,
    io::{ErrorKind, IsTerminal, Write},
    path::{Path, PathBuf},
    process,
    sync::Mutex,
};

use unicode_width::UnicodeWidthStr;

use crate::failure::{Failure, Result};

/// The temporary file that exists at the moment; an interrupt removes it.
static TEMPORARY: Mutex<Option<PathBuf>> = Mutex::new(None);

/// Exit code after an interrupt, as shells have it.
const INTERRUPTED: i32 = 130;

/// Removes what is half done when the command is interrupted.
pub(crate) fn watch_interrupts() {
    // without a handler an interrupt ends the process, too
    let _ = ctrlc::set_handler(|| {
        if let Some(path) = TEMPORARY.lock().ok().and_then(|mut temporary| temporary.take()) {
            let _ = fs::remove_file(path);
        }
        process::exit(INTERRUPTED);
    });
}

/// Writes a file under a temporary name and renames it, so that a partial file is never visible.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    path.file_name().ok_or_else(|| Failure::output(path, "not a file name"))?;
    // short, because the name of the output may be as long as the file system allows
    let temporary = path.with_file_name(format!(".tokenwise-{}", process::id()));
    let mark = |name: Option<PathBuf>| {
        if let Ok(mut temporary) = TEMPORARY.lock() {
            *temporary = name;
        }
    };
    mark(Some(temporary.clone()));
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // it may not exist
        let _ = fs::remove_file(&temporary);
    }
    mark(None);
    written.map_err(|error| Failure::output(path, format!("cannot be written: {error}")))
}

/// Prints to standard output; a closed pipe (`| head`) is not an error. Other programs get a plain minus.
pub(crate) fn print(text: &str) -> Result<()> {
    let out = std::io::stdout();
    let text = printable(text);
    let text = if out.is_terminal() { text } else { text.replace('−', "-") };
    let mut out = out.lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::output(Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
}

/// Prints an error.
pub(crate) fn complain(text: &str) {
    eprintln!("error: {}", printable(text));
}

/// Prints a warning.
pub(crate) fn warn(text: &str) {
    eprintln!("warning: {}", printable(text));
}

/// Control characters of files, labels and tokens, which could command a terminal, are written as escapes.
pub(crate) fn printable(text: &str) -> String {
    let is_control = |letter: char| {
        let directions = matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
        (letter.is_control() && letter != '\n') || directions
    };
    if !text.contains(is_control) {
        return text.into();
    }
    text.chars().fold(String::with_capacity(text.len() + 16), |mut out, letter| {
        match is_control(letter) {
            true => out.extend(letter.escape_default()),
            false => out.push(letter),
        }
        out
    })
}

/// A cell of a table: one line, at most `most` columns wide.
pub(crate) fn cell(text: &str, most: usize) -> String {
    let text = printable(&text.replace(['\n', '\r', '\t'], " "));
    if text.width() <= most {
        return text;
    }
    let mut short = String::new();
    for letter in text.chars() {
        if short.width() + unicode_width::UnicodeWidthChar::width(letter).unwrap_or(0) + 1 > most {
            break;
        }
        short.push(letter);
    }
    short + "…"
}

/// Like [`cell`], without the middle: names of runs differ at their ends.
fn middle(text: &str, most: usize) -> String {
    let text = cell(text, usize::MAX);
    if text.width() <= most {
        return text;
    }
    let part = most.saturating_sub(1) / 2;
    let start: String = cell(&text, part + 1).trim_end_matches('…').into();
    let back: String = text.chars().rev().collect();
    let end = cell(&back, most - start.width());
    let end: String = end.trim_end_matches('…').chars().rev().collect();
    format!("{start}…{end}")
}

/// Columns of a terminal.
pub(crate) const COLUMNS: usize = 80;

/// Breaks a paragraph into lines of at most 80 columns.
pub(crate) fn wrapped(text: &str, indent: &str) -> String {
    let (mut out, mut line) = (String::new(), String::new());
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        if !line.is_empty() && line.width() + 1 + word.width() > COLUMNS {
            out += line.trim_end();
            out.push('\n');
            line = indent.to_string();
        } else if !line.is_empty() {
            line.push(' ');
        }
        line += word;
    }
    out + line.trim_end() + "\n"
}

/// `1 file`, `2 files`.
pub(crate) fn count(n: u64, what: &str) -> String {
    let end = match what.ends_with("ch") {
        _ if n == 1 => "",
        true => "es",
        false => "s",
    };
    format!("{n} {what}{end}")
}

/// Aligns cells in columns, the first to the left, the others to the right. Wide characters count twice. Names in the
/// first column are shortened if the table is wider than a terminal.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    aligned(rows, &[0])
}

/// Like [`table`], with the given columns aligned to the left.
pub(crate) fn aligned(rows: &[Vec<String>], left: &[usize]) -> String {
    /// Shorter names would say nothing.
    const SHORTEST: usize = 12;
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..columns).map(width).collect();
    let excess = table_width(&widths).saturating_sub(COLUMNS);
    if let Some(first) = widths.first_mut() {
        *first = first.saturating_sub(excess).max(SHORTEST.min(*first));
    }
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            let cell = if column == 0 { middle(cell, widths[0]) } else { cell.clone() };
            let pad = " ".repeat(widths[column] - cell.width());
            if column > 0 {
                line += "  ";
            }
            line += &if left.contains(&column) { format!("{cell}{pad}") } else { format!("{pad}{cell}") };
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}

/// Columns that a table takes: its cells and two blanks between them.
pub(crate) fn table_width(widths: &[usize]) -> usize {
    widths.iter().fold(0, |sum, width| sum + width + 2).saturating_sub(2)
}

/// Six significant digits without trailing zeros; −0, NaN and ∞ as such.
pub(crate) fn number(x: f64) -> String {
    if !x.is_finite() {
        return if x.is_nan() { "NaN".into() } else { if x > 0.0 { "∞" } else { "−∞" }.into() };
    }
    let size = x.abs();
    let text = if size != 0.0 && !(1e-4..1e9).contains(&size) {
        let text = format!("{x:.5e}");
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{}e{exponent}", trimmed(mantissa))
    } else {
        let mut before = 1;
        let mut bound = 10.0;
        while size >= bound && before < 6 {
            before += 1;
            bound *= 10.0;
        }
        // leading zeros are not significant
        let mut zeros = 0;
        let mut bound = 1.0;
        while size != 0.0 && size < bound && zeros < 4 {
            zeros += 1;
            bound /= 10.0;
        }
        let digits = if zeros > 0 { 5 + zeros } else { 6 - before };
        trimmed(&format!("{x:.digits$}"))
    };
    text.replace('-', "−")
}

fn trimmed(text: &str) -> String {
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        text.into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_six_digits() {
        let cases = [
            (0.0, "0"),
            (-0.0, "−0"),
            (0.621081, "0.621081"),
            (0.0621081, "0.0621081"),
            (1.0 / 3.0, "0.333333"),
            (-12.345678, "−12.3457"),
            (1234567.0, "1234567"),
            (1e-7, "1e−7"),
            (1.5e12, "1.5e12"),
            (f64::NAN, "NaN"),
            (f64::NEG_INFINITY, "−∞"),
        ];
        for (x, wanted) in cases {
            assert_eq!(number(x), wanted);
        }
    }

    #[test]
    fn control_characters_are_escaped_and_lines_are_short() {
        assert_eq!(printable("a\u{1b}[2J\u{9b}\tb\n"), "a\\u{1b}[2J\\u{9b}\\tb\n");
        assert_eq!(printable("的 −1 \u{202e}x"), "的 −1 \\u{202e}x");
        assert_eq!((cell("a\nb", 9), cell("的的的", 5)), ("a b".into(), "的的…".into()));
        let text = wrapped(&"word ".repeat(40), "  ");
        assert!(text.lines().all(|line| line.len() <= 80) && text.lines().nth(1).unwrap().starts_with("  word"));
        assert_eq!(text.split_whitespace().count(), 40);
    }

    #[test]
    fn chinese_cells_line_up() {
        let rows = [vec!["优势".into(), "1".into()], vec!["ab".into(), "的".into()]];
        assert_eq!(table(&rows), "优势   1\nab    的\n");
    }

    #[test]
    fn names_in_a_wide_table_lose_their_middle() {
        let rows = ["run", &"x".repeat(70), &"的".repeat(40)].map(|name| vec![format!("{name}-7"), "1".repeat(40)]);
        let text = table(&rows);
        assert!(text.lines().all(|line| line.width() <= COLUMNS), "{text}");
        assert!(text.contains("x…x") && text.contains("的…的") && text.matches("-7 ").count() == 3, "{text}");
        assert_eq!((middle("abcdef", 6), middle("abcdefg", 6)), ("abcdef".into(), "ab…efg".into()));
    }
}
