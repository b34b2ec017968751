//! Tables on the terminal, and atomic writes of files.

use std::{
    fs,
    io::{ErrorKind, Write},
    path::Path,
    process,
};

use unicode_width::UnicodeWidthStr;

use crate::failure::{Failure, Result};

/// Writes a file under a temporary name and renames it, so that a partial file is never visible.
pub(crate) fn write_whole(path: &Path, bytes: &[u8]) -> Result<()> {
    let name = path.file_name().ok_or_else(|| Failure::output(path, "not a file name"))?;
    let temporary = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), process::id()));
    let written = fs::write(&temporary, bytes).and_then(|()| fs::rename(&temporary, path));
    written.map_err(|error| {
        // it may not exist
        let _ = fs::remove_file(&temporary);
        Failure::output(path, format!("cannot be written: {error}"))
    })
}

/// Prints to standard output; a closed pipe (`| head`) is not an error.
pub(crate) fn print(text: &str) -> Result<()> {
    let mut out = std::io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            Err(Failure::output(Path::new("standard output"), error))
        }
        _ => Ok(()),
    }
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

/// Aligns cells in columns, the first to the left, the others to the right. Wide characters count twice.
pub(crate) fn table(rows: &[Vec<String>]) -> String {
    aligned(rows, &[0])
}

/// Like [`table`], with the given columns aligned to the left.
pub(crate) fn aligned(rows: &[Vec<String>], left: &[usize]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width =
        |column: usize| rows.iter().filter_map(|row| row.get(column)).map(|cell| cell.width()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
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
    fn chinese_cells_line_up() {
        let rows = [vec!["优势".into(), "1".into()], vec!["ab".into(), "的".into()]];
        assert_eq!(table(&rows), "优势   1\nab    的\n");
    }
}
