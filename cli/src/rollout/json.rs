//! JSON Lines, and JSON documents of any depth.

use std::{
    fs::File,
    io::{BufRead, BufReader, Read},
    path::Path,
};

use serde::de::DeserializeSeed;

use super::{feeder::Feeder, fields::Names, object::ObjectSeed, plain};
use crate::progress::Progress;

const BUFFER: usize = 1 << 20;

/// A line that long is no line of a text file.
const LONGEST: usize = 1 << 30;

/// One object a line.
pub(super) fn lines(path: &Path, names: &Names, feeder: &mut Feeder<'_>, progress: &Progress) -> Result<(), String> {
    let mut file = BufReader::with_capacity(BUFFER, File::open(path).map_err(|error| error.to_string())?);
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let read = (&mut file)
            .take(LONGEST as u64)
            .read_until(b'\n', &mut line)
            .map_err(|error| format!("line {number}: {error}"))?;
        if read == 0 {
            return Ok(());
        }
        progress.advance(read);
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        feeder.place = number;
        object(&line, names, feeder).map_err(|what| format!("line {number}: {what}"))?;
    }
}

fn object(line: &[u8], names: &Names, feeder: &mut Feeder<'_>) -> Result<(), String> {
    if plain::record(line, names, feeder) {
        return feeder.end();
    }
    let quoted = bare_words(line).then(|| {
        let mut quoted = Vec::with_capacity(line.len() + 64);
        let mut quoter = Quoter::default();
        line.iter().for_each(|byte| quoter.push(*byte, &mut quoted));
        quoter.finish(&mut quoted);
        quoted
    });
    let mut parser = serde_json::Deserializer::from_slice(quoted.as_deref().unwrap_or(line));
    let seed = ObjectSeed { feeder, names, record: true };
    seed.deserialize(&mut parser).and_then(|()| parser.end()).map_err(|error| explained(&error, false, line))
}

/// Whether Python's `NaN` or `Infinity` may stand in it: no other word of JSON has these letters outside texts.
fn bare_words(line: &[u8]) -> bool {
    [&b"NaN"[..], b"Infinity"].iter().any(|word| memchr::memmem::find(line, word).is_some())
}

/// Documents, one or several; lists of records are read one record at a time.
pub(super) fn documents(
    path: &Path,
    names: &Names,
    feeder: &mut Feeder<'_>,
    progress: &Progress,
) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let quoted = Quoted {
        inner: BufReader::with_capacity(BUFFER, file),
        quoter: Quoter::default(),
        ready: Vec::new(),
        at: 0,
        progress,
    };
    let mut parser = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, quoted));
    feeder.counts_records = true;
    loop {
        // `end` is the only way to ask whether something follows
        if parser.end().is_ok() {
            return Ok(());
        }
        let seed = ObjectSeed { feeder, names, record: true };
        seed.deserialize(&mut parser).map_err(|error| explained(&error, true, b""))?;
    }
}

/// What is wrong, without the position where the caller knows it better.
fn explained(error: &serde_json::Error, with_line: bool, text: &[u8]) -> String {
    let message = error.to_string();
    let what = message.rfind(" at line ").map_or(message.as_str(), |end| &message[..end]);
    if let Err(error) = std::str::from_utf8(text) {
        return format!("byte {} is not UTF-8 text", error.valid_up_to() + 1);
    }
    let place = if with_line { format!("line {}, column {}: ", error.line(), error.column()) } else { String::new() };
    match error.is_eof() {
        true => format!("{place}the text ends too early ({what})"),
        false => format!("{place}{what}"),
    }
}

/// Puts quotes around the bare words `NaN`, `Infinity`, `-Infinity`, which Python writes and JSON does not know.
#[derive(Default)]
struct Quoter {
    inside_text: bool,
    escaped: bool,
    word: Vec<u8>,
}

impl Quoter {
    #[inline]
    fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.inside_text {
            out.push(byte);
            (self.inside_text, self.escaped) = (byte != b'"' || self.escaped, byte == b'\\' && !self.escaped);
            return;
        }
        // words and numbers wait until they end
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') {
            self.word.push(byte);
            return;
        }
        self.finish(out);
        self.inside_text = byte == b'"';
        out.push(byte);
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        let known = matches!(self.word.as_slice(), b"NaN" | b"Infinity" | b"-Infinity");
        if known {
            out.push(b'"');
        }
        out.append(&mut self.word);
        if known {
            out.push(b'"');
        }
    }
}

/// A file with quotes where they are missing.
struct Quoted<'p, R> {
    inner: R,
    quoter: Quoter,
    ready: Vec<u8>,
    at: usize,
    progress: &'p Progress,
}

impl<R: BufRead> Read for Quoted<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        while self.at == self.ready.len() {
            self.ready.clear();
            self.at = 0;
            let bytes = self.inner.fill_buf()?;
            let read = bytes.len();
            if read == 0 {
                self.quoter.finish(&mut self.ready);
                if self.ready.is_empty() {
                    return Ok(0);
                }
            } else {
                bytes.iter().for_each(|byte| self.quoter.push(*byte, &mut self.ready));
                self.inner.consume(read);
                self.progress.advance(read);
            }
        }
        let count = out.len().min(self.ready.len() - self.at);
        out[..count].copy_from_slice(&self.ready[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(text: &str) -> String {
        let (mut quoter, mut out) = (Quoter::default(), Vec::new());
        text.bytes().for_each(|byte| quoter.push(byte, &mut out));
        quoter.finish(&mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn only_bare_words_get_quotes() {
        assert_eq!(quoted("[NaN, -Infinity,Infinity]"), "[\"NaN\", \"-Infinity\",\"Infinity\"]");
        assert_eq!(
            quoted(r#"{"NaN": "a \" NaN", "b\\": NaN, "c": -1.5e-3}"#),
            r#"{"NaN": "a \" NaN", "b\\": "NaN", "c": -1.5e-3}"#
        );
        assert_eq!(quoted("NaN"), "\"NaN\"");
        assert_eq!(quoted("[true, null, -1]"), "[true, null, -1]");
    }
}
