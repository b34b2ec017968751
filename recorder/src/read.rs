//! Reads entropy histories, written by this crate or by other programs.

use std::{
    cell::Cell,
    fmt,
    fs::File,
    io::{self, Read},
    path::Path,
};

use serde::de::{DeserializeSeed, Deserializer, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::{
    error::{Error, Result},
    lock::is_at,
};

/// How often a file that changes is read, so that a program that never stops writing cannot keep a reader for ever.
const READS: usize = 1000;

/// One step of an entropy history.
#[derive(Clone, Debug, PartialEq)]
pub struct Record {
    /// The training step.
    pub step: u64,
    /// Mean policy entropy of the step, in nats.
    pub entropy: f64,
    /// All other keys of the record, unchanged.
    pub extra: Map<String, Value>,
}

/// Reads a file `entropy_history_<experiment>.json`, also while [`History`](crate::History) writes it.
///
/// # Errors
///
/// [`Error::Io`]; [`Error::Empty`] for an array without records; [`Error::Malformed`] with line and record for anything
/// but a JSON array of objects with an integer `step`, larger than the previous one, and a finite `entropy`.
pub fn read_history(path: &Path) -> Result<Vec<Record>> {
    let bytes = read_settled(path).map_err(Error::io(path))?;
    let records = parse_history(path, &bytes)?;
    if records.is_empty() {
        return Err(Error::Empty { path: path.into() });
    }
    Ok(records)
}

/// The bytes of a file that did not change while it was read. A copy that lost its public name is extended by the next
/// append but one: a read that takes as long as two appends is repeated.
fn read_settled(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    for _ in 0..READS {
        bytes.clear();
        let mut file = File::open(path)?;
        let before = file.metadata()?;
        file.read_to_end(&mut bytes)?;
        // in this order: while a copy is extended it does not have the name, and afterwards it is longer
        let same = is_at(&file, path) && file.metadata()?.len() == before.len() && bytes.len() as u64 == before.len();
        if same || !before.is_file() {
            break;
        }
    }
    Ok(bytes)
}

/// Parses the bytes of such a file, which may have no records yet; `path` only appears in errors.
///
/// # Errors
///
/// [`Error::Malformed`], see [`read_history`].
pub fn parse_history(path: &Path, bytes: &[u8]) -> Result<Vec<Record>> {
    let malformed = |line, record, why: String| Error::Malformed { path: path.into(), line, record, why };
    if bytes.iter().all(u8::is_ascii_whitespace) {
        return Err(malformed(None, None, "expected a JSON array, got an empty file".into()));
    }
    if let Err(error) = std::str::from_utf8(bytes) {
        let line = line_at(bytes, error.valid_up_to());
        return Err(malformed(Some(line), None, format!("byte {} is not UTF-8 text", error.valid_up_to())));
    }
    let count = Cell::new(0);
    let mut parser = serde_json::Deserializer::from_slice(bytes);
    let objects = Objects { count: &count }.deserialize(&mut parser).and_then(|objects| {
        parser.end()?;
        Ok(objects)
    });
    let objects = objects.map_err(|error| {
        let mut why = strip_position(&error.to_string());
        if not_a_json_number(bytes, &error) {
            why = "NaN and Infinity are not JSON numbers".into();
        } else if error.is_eof() {
            why = format!("the file ends too early ({why})");
        }
        malformed(Some(error.line()), (!error.is_data() || count.get() > 0).then(|| count.get() + 1), why)
    })?;
    let mut records: Vec<Record> = Vec::with_capacity(objects.len());
    for (index, object) in objects.into_iter().enumerate() {
        let previous = records.last().map(|record| record.step);
        records.push(checked(object, previous).map_err(|why| malformed(None, Some(index + 1), why))?);
    }
    Ok(records)
}

fn checked(mut object: Map<String, Value>, previous: Option<u64>) -> std::result::Result<Record, String> {
    let mut take = |key: &str| object.shift_remove(key).ok_or_else(|| format!("field {key:?} is missing"));
    let (step, entropy) = (take("step")?, take("entropy")?);
    let step = whole(&step).ok_or_else(|| format!("field \"step\": expected a whole number, got {step}"))?;
    let entropy = match entropy.as_f64() {
        Some(entropy) if entropy.is_finite() => entropy,
        _ => return Err(format!("field \"entropy\": expected a finite number, got {entropy}")),
    };
    match previous {
        Some(previous) if step == previous => Err(format!("step {step} occurs twice")),
        Some(previous) if step < previous => {
            Err(format!("step {step} comes after step {previous}: steps must increase"))
        }
        _ => Ok(Record { step, entropy, extra: object }),
    }
}

/// Some programs write integers as floats.
fn whole(value: &Value) -> Option<u64> {
    let float = || value.as_f64().filter(|x| *x >= 0.0 && *x < 9e15 && *x == (*x as u64) as f64).map(|x| x as u64);
    value.as_u64().or_else(float)
}

/// Removes the position from the parser's messages, which do not name the file.
pub(crate) fn strip_position(message: &str) -> String {
    message.rfind(" at line ").map_or(message, |end| &message[..end]).into()
}

fn line_at(bytes: &[u8], at: usize) -> usize {
    bytes[..at].iter().filter(|&&byte| byte == b'\n').count() + 1
}

fn not_a_json_number(bytes: &[u8], error: &serde_json::Error) -> bool {
    let line = bytes.split(|&byte| byte == b'\n').nth(error.line().saturating_sub(1)).unwrap_or_default();
    let from = error.column().saturating_sub(2).min(line.len());
    let near = &line[from..line.len().min(from + 12)];
    ["NaN", "nan", "Infinity", "inf"].iter().any(|word| near.windows(word.len()).any(|part| part == word.as_bytes()))
}

/// An array of objects; counts the complete ones, so that an error can name the record.
struct Objects<'a> {
    count: &'a Cell<usize>,
}

impl<'de> DeserializeSeed<'de> for Objects<'_> {
    type Value = Vec<Map<String, Value>>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> std::result::Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Objects<'_> {
    type Value = Vec<Map<String, Value>>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON array of objects")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> std::result::Result<Self::Value, A::Error> {
        let mut objects = Vec::new();
        while let Some(object) = sequence.next_element()? {
            objects.push(object);
            self.count.set(objects.len());
        }
        Ok(objects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(text: &str) -> String {
        parse_history(Path::new("h.json"), text.as_bytes()).unwrap_err().to_string()
    }

    #[test]
    fn the_format_is_read_and_extra_keys_are_kept() {
        let text = "[\n  {\"step\": 1, \"entropy\": 4.532},\n  {\"step\": 2.0, \"entropy\": 4, \"kl\": [1, 2]}\n]";
        let records = parse_history(Path::new("h.json"), text.as_bytes()).unwrap();
        assert_eq!((records[0].step, records[0].entropy), (1, 4.532));
        assert_eq!((records[1].step, records[1].entropy), (2, 4.0));
        assert_eq!(records[1].extra["kl"], serde_json::json!([1, 2]));
        assert!(parse_history(Path::new("h.json"), b" [ ] ").unwrap().is_empty());
    }

    #[test]
    fn every_fault_names_its_place() {
        let cases = [
            ("", "h.json: expected a JSON array, got an empty file"),
            ("{}", "h.json, line 1: invalid type: map, expected a JSON array of objects"),
            (
                "[{\"step\": 1, \"entropy\": 1},\n 5]",
                "h.json, line 2, record 2: invalid type: integer `5`, expected a map",
            ),
            ("[{\"step\": 1, \"entropy\": 1},\n {\"st", "h.json, line 2, record 2: the file ends too early (EOF while"),
            ("[{\"step\": 1, \"entropy\": NaN}]", "h.json, line 1, record 1: NaN and Infinity are not JSON numbers"),
            ("[{\"step\": 1}]", "h.json, record 1: field \"entropy\" is missing"),
            ("[{\"step\": 1.5, \"entropy\": 1}]", "h.json, record 1: field \"step\": expected a whole number, got 1.5"),
            ("[{\"step\": 1, \"entropy\": null}]", "record 1: field \"entropy\": expected a finite number, got null"),
            ("[{\"step\": 2, \"entropy\": 1}, {\"step\": 2, \"entropy\": 1}]", "record 2: step 2 occurs twice"),
            ("[{\"step\": 2, \"entropy\": 1}, {\"step\": 1, \"entropy\": 1}]", "record 2: step 1 comes after step 2"),
            ("[] x", "h.json, line 1, record 1: trailing characters"),
        ];
        for (text, wanted) in cases {
            assert!(why(text).contains(wanted), "{text}: {}", why(text));
        }
        let binary = parse_history(Path::new("h.json"), b"[\n\xff]").unwrap_err().to_string();
        assert_eq!(binary, "h.json, line 2: byte 2 is not UTF-8 text");
    }
}
