//! Which format a file has.

use crate::{fault::Fault, fields::Names, tensors};

/// The format of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One JSON object per line.
    JsonLines,
    /// JSON documents of any depth.
    Json,
    /// A table with one sequence or one token per row.
    Csv,
    /// Parquet, one sequence per row.
    Parquet,
    /// safetensors, padded or packed.
    Tensors,
}

impl Kind {
    /// Number of leading bytes that are examined.
    pub(crate) const START: usize = 1 << 16;

    /// By the file name extension; if that is unknown, by the first bytes. Refused if the file is empty or its format
    /// unknown.
    pub(crate) fn of(name: &str, start: &[u8], names: &Names) -> Result<Self, Fault> {
        let text = start.strip_prefix(BYTE_ORDER_MARK).unwrap_or(start).trim_ascii_start();
        if text.is_empty() && start.len() < Self::START {
            return Err(Fault::Empty {});
        }
        let ending = name.rsplit_once('.').map(|(_, ending)| ending.to_lowercase());
        Ok(match ending.as_deref() {
            Some("jsonl" | "ndjson") => Self::JsonLines,
            Some("json") => Self::Json,
            Some("csv") => Self::Csv,
            Some("parquet") => Self::Parquet,
            Some("safetensors") => Self::Tensors,
            _ if start.starts_with(b"PAR1") => Self::Parquet,
            _ if has_lines(text) => Self::JsonLines,
            _ if text.starts_with(b"{") || text.starts_with(b"[") => Self::Json,
            _ if tensors::begins(start) => Self::Tensors,
            _ if has_heading(start, names) => Self::Csv,
            _ => return Err(Fault::UnknownKind {}),
        })
    }

    /// Its usual file name extension.
    #[must_use]
    pub const fn ending(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Json => "json",
            Self::Csv => "csv",
            Self::Parquet => "parquet",
            Self::Tensors => "safetensors",
        }
    }
}

/// The byte order mark that some editors write before UTF-8 text.
pub(crate) const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Whether the first two lines are objects.
fn has_lines(text: &[u8]) -> bool {
    let mut lines = text.split(|byte| *byte == b'\n');
    let first = lines.next().unwrap_or_default().trim_ascii_end();
    let second = lines.find(|line| !line.trim_ascii().is_empty());
    first.starts_with(b"{") && first.ends_with(b"}") && second.is_some_and(|line| line.starts_with(b"{"))
}

/// Whether the first line names a field.
fn has_heading(start: &[u8], names: &Names) -> bool {
    let mut table = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(start);
    table.headers().is_ok_and(|header| header.iter().any(|name| names.find(name).is_some()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_without_an_ending_is_known_by_its_first_bytes() {
        let names = Names::default();
        let kind = |name: &str, start: &[u8]| Kind::of(name, start, &names);
        assert_eq!(kind("", b"PAR1"), Ok(Kind::Parquet));
        assert_eq!(kind("", b" \n{}"), Ok(Kind::Json));
        assert_eq!(kind("-", b"{}\n\n{\"sc"), Ok(Kind::JsonLines));
        assert_eq!(kind("-", b"{\n}\n{"), Ok(Kind::Json));
        assert_eq!(kind("x.txt", b"\xef\xbb\xbf[1]"), Ok(Kind::Json));
        assert_eq!(kind("", b"colour, score\n1,2\n"), Ok(Kind::Csv));
        assert_eq!(kind("", b"\x02\0\0\0\0\0\0\0{}"), Ok(Kind::Tensors));
        assert_eq!(kind("x.log", b"Dear all"), Err(Fault::UnknownKind {}));
        assert_eq!(kind("x.JSONL", b"Dear all"), Ok(Kind::JsonLines));
        assert_eq!(kind("x.json", b"\xef\xbb\xbf \n"), Err(Fault::Empty {}));
    }
}
