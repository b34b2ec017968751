//! A stream of JSON with quotes around Python's `NaN` and `Infinity`, which remembers the last part of the text, so
//! that a fault can be located and described without opening the file again.

use std::{
    cell::RefCell,
    collections::VecDeque,
    io::{self, BufRead, Read},
    rc::Rc,
};

/// Bytes of the text that are handed on, and remembered, at a time.
const PART: usize = 1 << 16;
/// Parts that are remembered: the parser is behind by one at most, and a fault is described by what stands before it.
const PARTS: usize = 4;

/// Puts quotes around the bare words `NaN`, `Infinity`, `-Infinity`, which Python writes and JSON does not have.
#[derive(Clone, Default)]
pub(crate) struct Quoter {
    inside_text: bool,
    escaped: bool,
    word: Vec<u8>,
}

impl Quoter {
    #[inline]
    pub(crate) fn push(&mut self, byte: u8, out: &mut Vec<u8>) {
        if self.inside_text {
            out.push(byte);
            (self.inside_text, self.escaped) = (byte != b'"' || self.escaped, byte == b'\\' && !self.escaped);
            return;
        }
        // words and numbers are handled when they end
        if byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'+' | b'.') {
            // a word longer than any number is not one
            if self.word.len() == PART {
                out.append(&mut self.word);
            }
            self.word.push(byte);
            return;
        }
        self.finish(out);
        self.inside_text = byte == b'"';
        out.push(byte);
    }

    pub(crate) fn finish(&mut self, out: &mut Vec<u8>) {
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

/// A part of the text, and where it begins.
struct Part {
    raw: Vec<u8>,
    quoter: Quoter,
    /// Lines before it.
    lines: usize,
    /// Bytes of its first line before it: with quotes, and in the file.
    quoted: usize,
    column: u64,
}

/// The last parts of a text.
#[derive(Clone, Default)]
pub(crate) struct Recent(Rc<RefCell<State>>);

#[derive(Default)]
struct State {
    parts: VecDeque<Part>,
    lines: usize,
    quoted: usize,
    column: u64,
    /// Bytes of the text that is being read: a string of this length is kept by the parser.
    string: u64,
}

impl Recent {
    /// Where serde_json stopped: the column in the file, and what stands before and after it.
    pub(crate) fn around(&self, line: usize, column: usize) -> (u64, Vec<u8>, Vec<u8>) {
        let state = self.0.borrow();
        let begins = |part: &&Part| part.lines + 1 < line || (part.lines + 1 == line && part.quoted < column.max(1));
        let first = state.parts.iter().rposition(|part| begins(&part)).unwrap_or(0);
        let Some(part) = state.parts.get(first) else { return (column as u64, Vec::new(), Vec::new()) };
        let mut before: Vec<u8> = Vec::new();
        for part in state.parts.iter().take(first) {
            before.extend_from_slice(&part.raw);
        }
        if let Some(start) = before.iter().rposition(|byte| *byte == b'\n') {
            before.drain(..=start);
        }
        let (mut at, mut passed, mut read) = (part.lines + 1, part.quoted, part.column);
        let (mut quoter, mut out) = (part.quoter.clone(), Vec::new());
        let rest = || state.parts.iter().skip(first).flat_map(|part| part.raw.iter().copied());
        for (index, byte) in rest().enumerate() {
            let after = || rest().skip(index).take(PART).collect();
            quoter.push(byte, &mut out);
            passed += out.len();
            out.clear();
            if at == line && (passed + quoter.word.len() >= column || byte == b'\n') {
                return (read + 1, before, after());
            }
            read += 1;
            before.push(byte);
            if byte == b'\n' {
                at += 1;
                (passed, read) = (0, 0);
                before.clear();
            }
        }
        (read + 1, before, Vec::new())
    }

    /// Length of the text in quotes that is being read.
    pub(crate) fn string(&self) -> u64 {
        self.0.borrow().string
    }
}

/// A reader that adds the missing quotes.
pub(crate) struct Quoted<R> {
    inner: R,
    quoter: Quoter,
    ready: Vec<u8>,
    at: usize,
    recent: Recent,
    /// The longest text in quotes.
    longest: u64,
}

impl<R: BufRead> Quoted<R> {
    pub(crate) fn new(inner: R, longest: u64) -> (Self, Recent) {
        let recent = Recent::default();
        let quoter = Quoter::default();
        (Self { inner, quoter, ready: Vec::new(), at: 0, recent: recent.clone(), longest }, recent)
    }
}

impl<R: BufRead> Read for Quoted<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.at == self.ready.len() {
            self.ready.clear();
            self.at = 0;
            let bytes = self.inner.fill_buf()?;
            let bytes = &bytes[..bytes.len().min(PART)];
            if bytes.is_empty() {
                self.quoter.finish(&mut self.ready);
                if self.ready.is_empty() {
                    return Ok(0);
                }
                continue;
            }
            let state = &mut *self.recent.0.borrow_mut();
            let raw = bytes.to_vec();
            let (lines, quoted, column) = (state.lines, state.quoted, state.column);
            state.parts.push_back(Part { raw, quoter: self.quoter.clone(), lines, quoted, column });
            if state.parts.len() > PARTS {
                state.parts.pop_front();
            }
            let mut line = 0;
            for byte in bytes {
                self.quoter.push(*byte, &mut self.ready);
                state.column += 1;
                if *byte == b'\n' {
                    state.lines += 1;
                    state.column = 0;
                    state.quoted = 0;
                    line = self.ready.len();
                }
            }
            state.quoted += self.ready.len() - line;
            let last = bytes.iter().rposition(|byte| *byte == b'"');
            state.string = match (self.quoter.inside_text, last) {
                (false, _) => 0,
                (true, None) => state.string + bytes.len() as u64,
                (true, Some(last)) => (bytes.len() - last) as u64,
            };
            let (read, string) = (bytes.len(), state.string);
            self.inner.consume(read);
            if string > self.longest {
                return Err(io::Error::from(io::ErrorKind::OutOfMemory));
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

    /// Reads a text in pieces and asks for every place of it, as long as it is remembered.
    #[test]
    fn places_are_those_of_the_file() {
        let text = format!("[NaN,\n 1, Infinity, x{}\nNaN y", " ".repeat(200));
        let (mut stream, recent) = Quoted::new(io::BufReader::with_capacity(7, text.as_bytes()), 1 << 20);
        let mut out = Vec::new();
        stream.read_to_end(&mut out).unwrap();
        // only the last parts are left: the y
        let out = String::from_utf8(out).unwrap();
        let line = out.lines().last().unwrap();
        let (column, before, after) = recent.around(3, line.len());
        assert_eq!((column, before.as_slice(), after.as_slice()), (5, &b"NaN "[..], &b"y"[..]));
        // everything fits into one part
        let (mut stream, recent) = Quoted::new(text.as_bytes(), 1 << 20);
        stream.read_to_end(&mut Vec::new()).unwrap();
        let (column, before, _) = recent.around(2, " 1, \"Infinity\", x".len());
        assert_eq!((column, before.as_slice()), (15, &b" 1, Infinity, "[..]));
    }
}
