//! JSON Lines, and JSON documents of any depth.

use std::io::{self, BufRead, BufReader, Read};

use serde::de::DeserializeSeed;

use crate::{
    fault::{excerpt, Error, Fault, Place},
    feeder::Feeder,
    kind::BYTE_ORDER_MARK,
    object::ObjectSeed,
    plain,
    position::{Quoted, Quoter, Recent},
    traces,
};

const BUFFER: usize = 1 << 20;

/// What the parser of documents reads ahead.
const AHEAD: usize = 1 << 15;

/// The recursion limit of serde_json.
const DEEPEST: u64 = 128;

/// One object per line.
pub(crate) fn lines(stream: Box<dyn Read>, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let mut file = text(stream)?;
    let mut line = Vec::new();
    let mut number = 0;
    loop {
        line.clear();
        number += 1;
        let at = |fault: Fault| fault.at(Place::line(number));
        next_line(&mut file, &mut line, feeder).map_err(at)?;
        if line.is_empty() {
            return Ok(());
        }
        if line.iter().all(u8::is_ascii_whitespace) {
            continue;
        }
        feeder.place = number;
        feeder.buffered = line.capacity() as u64;
        object(&line, feeder).map_err(|fault| match fault {
            // the rest of the object is in other lines
            Fault::Ends {} if line.ends_with(b"\n") => at(Fault::Incomplete {}),
            fault => at(fault),
        })?;
    }
}

/// Reads a line with its end.
fn next_line(file: &mut impl BufRead, line: &mut Vec<u8>, feeder: &Feeder<'_>) -> Result<(), Fault> {
    loop {
        let bytes = match file.fill_buf() {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            bytes => bytes?,
        };
        let end = memchr::memchr(b'\n', bytes);
        let part = end.map_or(bytes, |end| &bytes[..=end]);
        let read = part.len();
        if line.capacity() - line.len() < read {
            let capacity = crate::budget::grown(line, read);
            feeder.check_buffer("one line", (capacity - line.capacity()) as u64)?;
            line.reserve_exact(capacity - line.len());
        }
        line.extend_from_slice(part);
        file.consume(read);
        if end.is_some() || read == 0 {
            return Ok(());
        }
    }
}

/// A text from its start, without a byte order mark.
fn text(stream: Box<dyn Read>) -> io::Result<BufReader<Box<dyn Read>>> {
    let mut file = BufReader::with_capacity(BUFFER, stream);
    if file.fill_buf()?.starts_with(BYTE_ORDER_MARK) {
        file.consume(BYTE_ORDER_MARK.len());
    }
    Ok(file)
}

fn object(line: &[u8], feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    if plain::record(line, feeder) {
        return feeder.end();
    }
    let quoted = if bare_words(line) {
        feeder.check_buffer("one line", 2 * line.len() as u64)?;
        let mut quoted = Vec::with_capacity(line.len() + 64);
        let mut quoter = Quoter::default();
        line.iter().for_each(|byte| quoter.push(*byte, &mut quoted));
        quoter.finish(&mut quoted);
        Some(quoted)
    } else {
        None
    };
    let text = quoted.as_deref().unwrap_or(line);
    if traces::line(text, feeder)? {
        return Ok(());
    }
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
pub(crate) fn documents(stream: Box<dyn Read>, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    // a text in quotes is kept by the parser, which doubles its buffer
    let (quoted, recent) = Quoted::new(text(stream)?, feeder.spare() / 4);
    let mut parser = serde_json::Deserializer::from_reader(BufReader::with_capacity(AHEAD, quoted));
    feeder.counts_records = true;
    loop {
        // `end` is the only way to ask whether something follows
        if parser.end().is_ok() {
            return Ok(());
        }
        let seed = ObjectSeed { feeder, record: true };
        if let Err(error) = seed.deserialize(&mut parser) {
            return Err(located(&recent, feeder, &error));
        }
    }
}

/// Where a parser stopped.
fn located(recent: &Recent, feeder: &mut Feeder<'_>, error: &serde_json::Error) -> Error {
    if error.io_error_kind() == Some(io::ErrorKind::OutOfMemory) {
        let needed = recent.string().saturating_mul(4);
        let fault = feeder.check_buffer("one text in quotes", needed).err();
        return fault.unwrap_or(Fault::Io { reason: error.to_string() }).at(Place::line(error.line() as u64));
    }
    if error.is_io() {
        return Fault::Io { reason: error.to_string() }.into();
    }
    let refused = feeder.refused();
    if let Some(refused) = refused.as_ref().filter(|refused| refused.of_record) {
        return refused.fault.clone().at(Place::record(feeder.place));
    }
    let (column, before, after) = recent.around(error.line(), error.column());
    let place = Place { line: Some(error.line() as u64), column: Some(column), ..Place::default() };
    let fault = match refused {
        Some(refused) => refused.fault,
        None => syntax(error, &before, &after),
    };
    fault.at(place)
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
