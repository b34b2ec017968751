//! JSON Lines, and JSON documents of any depth.

use std::io::{self, BufRead, BufReader, Read};

use serde::de::DeserializeSeed;

use crate::{
    fault::{excerpt, Error, Fault, Place},
    feeder::Feeder,
    kind::BYTE_ORDER_MARK,
    object::ObjectSeed,
    plain,
    source::Source,
};

const BUFFER: usize = 1 << 20;

/// Maximum length of a line; a longer one is not from a text file.
const LONGEST: usize = 1 << 30;

/// The recursion limit of serde_json.
const DEEPEST: u64 = 128;

/// Bytes before a fault in a document that are used to describe it.
const WINDOW: usize = 1 << 16;

/// One object per line.
pub(crate) fn lines<S: Source>(source: &S, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let mut file = text(source)?;
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let at = |fault: Fault| fault.at(Place::line(number));
        let read = (&mut file).take(LONGEST as u64).read_until(b'\n', &mut line).map_err(|error| at(error.into()))?;
        if read == 0 {
            return Ok(());
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        feeder.place = number;
        object(&line, feeder).map_err(at)?;
    }
}

/// A text from its start, without a byte order mark.
fn text<S: Source>(source: &S) -> io::Result<BufReader<Box<dyn Read>>> {
    let mut file = BufReader::with_capacity(BUFFER, source.open(0)?);
    if file.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    Ok(file)
}

fn object(line: &[u8], feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    if plain::record(line, feeder) {
        return feeder.end();
    }
    let quoted = bare_words(line).then(|| {
        let mut quoted = Vec::with_capacity(line.len() + 64);
        let mut quoter = Quoter::default();
        line.iter().for_each(|byte| quoter.push(*byte, &mut quoted));
        quoter.finish(&mut quoted);
        quoted
    });
    let text = quoted.as_deref().unwrap_or(line);
    let mut parser = serde_json::Deserializer::from_slice(text);
    let seed = ObjectSeed { feeder, record: true };
    let done = seed.deserialize(&mut parser).and_then(|()| parser.end());
    done.map_err(|error| match (feeder.refused(), std::str::from_utf8(line)) {
        (Some(refused), _) => refused.fault,
        (None, Err(error)) => Fault::NotText { byte: error.valid_up_to() as u64 + 1 },
        (None, Ok(_)) => {
            let (before, after) = text.split_at(error.column().saturating_sub(1).min(text.len()));
            syntax(&error, before, after)
        }
    })
}

/// Whether it may contain Python's `NaN` or `Infinity`: outside of strings, JSON has these letters nowhere else.
fn bare_words(line: &[u8]) -> bool {
    [&b"NaN"[..], b"Infinity"].iter().any(|word| memchr::memmem::find(line, word).is_some())
}

/// Documents, one or several; lists of records are read one record at a time.
pub(crate) fn documents<S: Source>(source: &S, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let quoted = Quoted { inner: text(source)?, quoter: Quoter::default(), ready: Vec::new(), at: 0 };
    let mut parser = serde_json::Deserializer::from_reader(BufReader::with_capacity(BUFFER, quoted));
    feeder.counts_records = true;
    loop {
        // `end` is the only way to ask whether something follows
        if parser.end().is_ok() {
            return Ok(());
        }
        let seed = ObjectSeed { feeder, record: true };
        if let Err(error) = seed.deserialize(&mut parser) {
            return Err(located(source, feeder, &error));
        }
    }
}

/// Where a parser stopped. The file is read again up to there, because the stream has already been consumed.
fn located<S: Source>(source: &S, feeder: &mut Feeder<'_>, error: &serde_json::Error) -> Error {
    if error.is_io() {
        return Fault::Io { reason: error.to_string() }.into();
    }
    let refused = feeder.refused();
    if let Some(refused) = refused.as_ref().filter(|refused| refused.of_record) {
        return refused.fault.clone().at(Place::record(feeder.place));
    }
    let (column, before, after) = surroundings(source, error.line(), error.column()).unwrap_or_default();
    let place = Place { line: Some(error.line() as u64), column: Some(column), ..Place::default() };
    let fault = match refused {
        Some(refused) => refused.fault,
        None => syntax(error, &before, &after),
    };
    fault.at(place)
}

/// The column without the quotes that were added, and what stands before and after it.
fn surroundings<S: Source>(source: &S, line: usize, column: usize) -> io::Result<(u64, Vec<u8>, Vec<u8>)> {
    let mut file = text(source)?;
    for _ in 1..line {
        file.skip_until(b'\n')?;
    }
    let (mut quoter, mut quoted, mut before) = (Quoter::default(), Vec::new(), Vec::new());
    let (mut read, mut passed) = (0, 0);
    for byte in file.by_ref().bytes() {
        let byte = byte?;
        quoter.push(byte, &mut quoted);
        passed += quoted.len();
        quoted.clear();
        if passed + quoter.word.len() >= column || byte == b'\n' {
            let mut after = vec![byte];
            file.take(WINDOW as u64).read_to_end(&mut after)?;
            return Ok((read + 1, before, after));
        }
        read += 1;
        if before.len() == 2 * WINDOW {
            before.drain(..WINDOW);
        }
        before.push(byte);
    }
    Ok((read + 1, before, Vec::new()))
}

/// Why serde_json stopped, parsed from its message; `before` and `after` are the text around that position.
fn syntax(error: &serde_json::Error, before: &[u8], after: &[u8]) -> Fault {
    if error.is_eof() {
        return Fault::Ends {};
    }
    let message = error.to_string();
    let what = message.rfind(" at line ").map_or(message.as_str(), |end| &message[..end]);
    let is_word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'-' | b'.');
    let word = before.iter().rev().take_while(|byte| is_word(byte)).count();
    let mut found = before[before.len() - word..].to_vec();
    found.extend(after.iter().take(20).take_while(|byte| **byte != b'\n'));
    let found = excerpt(&String::from_utf8_lossy(&found));
    let expected = |wanted: &str| Fault::Expected { wanted: wanted.into(), found: found.clone() };
    match what {
        "expected value" | "expected ident" | "invalid number" | "trailing comma" => Fault::NoValue { found },
        "number out of range" => {
            let text: String = found.chars().take_while(|letter| is_word(&(*letter as u8))).collect();
            Fault::Range { text }
        }
        "recursion limit exceeded" => Fault::Deep { most: DEEPEST },
        "expected `:`" => expected(":"),
        "expected `,` or `]`" => expected(", ]"),
        "expected `,` or `}`" => expected(", }"),
        "key must be a string" => expected("\""),
        "trailing characters" => expected("\\n"),
        "invalid unicode code point" => Fault::NotText { byte: first_bad(before) },
        _ if what.starts_with("control character") => Fault::Control {},
        // all others are about escapes
        _ => {
            let start = before.iter().rposition(|byte| *byte == b'\\').unwrap_or(before.len());
            let escape = before[start..].iter().chain(after).take(6).take_while(|byte| **byte != b'"');
            let escape: Vec<u8> = escape.copied().collect();
            Fault::Escape { text: excerpt(&String::from_utf8_lossy(&escape)) }
        }
    }
}

/// Which byte of a line is not UTF-8; only the end of the line may be available.
fn first_bad(line: &[u8]) -> u64 {
    // a window may begin inside a character
    let start = line.iter().take(3).take_while(|byte| **byte & 0xc0 == 0x80).count();
    let good = std::str::from_utf8(&line[start..]).map_or_else(|error| error.valid_up_to(), str::len);
    (start + good) as u64 + 1
}

/// Puts quotes around the bare words `NaN`, `Infinity`, `-Infinity`, which Python writes and JSON does not have.
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
        // words and numbers are handled when they end
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

/// A reader that adds the missing quotes.
struct Quoted<R> {
    inner: R,
    quoter: Quoter,
    ready: Vec<u8>,
    at: usize,
}

impl<R: BufRead> Read for Quoted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
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
