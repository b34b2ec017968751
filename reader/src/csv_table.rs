//! CSV: one sequence per row, with lists in brackets, or one token per row.

use std::{
    cell::Cell,
    io::{self, Read},
    rc::Rc,
};

use crate::{
    fault::{excerpt, Error, Fault, Place},
    feeder::Feeder,
    fields::{Field, Match},
    texts::TextList,
};

pub(crate) fn read(stream: Box<dyn Read>, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    // a row is kept as bytes and as text
    let longest = feeder.spare() / 4;
    let (file, open) = Watched::new(stream, longest);
    let mut table = csv::ReaderBuilder::new().buffer_capacity(1 << 20).trim(csv::Trim::All).from_reader(file);
    let told = |feeder: &Feeder<'_>, error: &csv::Error| told(feeder, error, longest);
    let header = table.headers().map_err(|error| told(feeder, &error))?.clone();
    let fields: Vec<Option<Match>> = header.iter().map(|name| feeder.matching(name)).collect();
    for (name, _) in header.iter().zip(&fields).filter(|(name, field)| field.is_none() && !name.is_empty()) {
        feeder.ignore(name, true);
    }
    let sequence = fields.iter().position(|found| found.is_some_and(|found| found.field == Field::Sequence));
    let mut row = csv::StringRecord::new();
    let mut current: Option<Current> = None;
    let mut last = 1;
    while table.read_record(&mut row).map_err(|error| told(feeder, &error))? {
        if let Some(line) = open.get() {
            return Err(Fault::OpenQuote {}.at(Place::line(line)));
        }
        let line = row.position().map_or(0, csv::Position::line);
        let at = |fault: Fault| fault.at(Place::line(line));
        last = line;
        match sequence {
            None => {
                feeder.place = line;
                cells(&row, &fields, feeder).and_then(|()| feeder.end()).map_err(at)?;
            }
            Some(column) => {
                let id = row.get(column).unwrap_or_default();
                if current.as_ref().is_some_and(|current| current.id != id) {
                    close(&mut current, &fields, feeder).map_err(at)?;
                }
                if current.is_none() {
                    feeder.place = line;
                }
                let text = token(&row, &fields, feeder, current.is_none()).map_err(at)?;
                let current = current.get_or_insert_with(|| Current { id: id.into(), ..Current::default() });
                current.tokens += 1;
                if feeder.labels() {
                    feeder
                        .check_buffer("the texts of tokens", current.texts.bytes() + text.len() as u64)
                        .map_err(at)?;
                    current.texts.push(&text);
                }
            }
        }
    }
    close(&mut current, &fields, feeder).map_err(|fault| fault.at(Place::line(last)))
}

/// The sequence whose tokens are being read.
#[derive(Default)]
struct Current {
    id: String,
    tokens: usize,
    texts: TextList,
}

/// A row that is a sequence.
fn cells(row: &csv::StringRecord, fields: &[Option<Match>], feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    for (cell, found) in row.iter().zip(fields) {
        let Some(found) = found.filter(|_| !cell.is_empty()) else { continue };
        feeder.begin(found);
        let field = found.field;
        let unlisted = || Fault::NotAList { field: field.name().into(), found: excerpt(cell) };
        match field {
            Field::Column(column) if cell.starts_with('[') => {
                let mut count = 0;
                for x in list(cell, field).ok_or_else(unlisted)? {
                    feeder.push(column, x?)?;
                    count += 1;
                }
                feeder.row_added(column, count)?;
            }
            Field::Mask => {
                let mut count = 0;
                for x in list(cell, field).ok_or_else(unlisted)? {
                    push_mask(x?, feeder)?;
                    count += 1;
                }
                feeder.mask_added(count)?;
            }
            Field::Prompt | Field::Group => feeder.text(field, cell)?,
            Field::Inside | Field::List | Field::Sequence | Field::Text | Field::Id => {}
            _ => feeder.scalar(field, number(cell, field)?)?,
        }
    }
    Ok(())
}

/// A row that is a token; returns its text.
fn token(
    row: &csv::StringRecord,
    fields: &[Option<Match>],
    feeder: &mut Feeder<'_>,
    first: bool,
) -> Result<String, Fault> {
    let mut text = String::new();
    for (cell, found) in row.iter().zip(fields) {
        let Some(found) = *found else { continue };
        feeder.begin(found);
        match found.field {
            field @ Field::Column(column) => {
                let x = if cell.is_empty() { f64::NAN } else { number(cell, field)? };
                feeder.push(column, x)?;
            }
            field @ Field::Mask => push_mask(number(cell, field)?, feeder)?,
            Field::Text => text = cell.into(),
            Field::Id if text.is_empty() => text = format!("#{cell}"),
            field @ (Field::Prompt | Field::Group) if first => feeder.text(field, cell)?,
            field @ (Field::Score
            | Field::Step
            | Field::Truncated
            | Field::FirstUpdate
            | Field::Length
            | Field::PromptLength)
                if !cell.is_empty() =>
            {
                feeder.scalar(field, number(cell, field)?)?;
            }
            _ => {}
        }
    }
    Ok(text)
}

fn close(current: &mut Option<Current>, fields: &[Option<Match>], feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    let Some(Current { tokens, texts, .. }) = current.take() else { return Ok(()) };
    feeder.texts_added(Field::Text, texts)?;
    for found in fields.iter().flatten() {
        feeder.begin(*found);
        match found.field {
            Field::Column(column) => feeder.row_added(column, tokens)?,
            Field::Mask => feeder.mask_added(tokens)?,
            _ => {}
        }
    }
    feeder.end()
}

fn push_mask(x: f64, feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    if x != 0.0 && x != 1.0 {
        return Err(Fault::NotAMask { found: x.to_string() });
    }
    feeder.push_mask(x == 1.0)
}

fn number(cell: &str, field: Field) -> Result<f64, Fault> {
    match cell {
        "true" | "True" | "TRUE" => Ok(1.0),
        "false" | "False" | "FALSE" => Ok(0.0),
        "None" | "null" => Ok(f64::NAN),
        _ => cell.parse().map_err(|_| Fault::NotANumber { field: field.name().into(), found: excerpt(cell) }),
    }
}

/// The numbers of `[1, 2.5, NaN]`, separated by commas or blanks; `None` without brackets.
fn list(cell: &str, field: Field) -> Option<impl Iterator<Item = Result<f64, Fault>> + '_> {
    let inside = cell.strip_prefix('[')?.strip_suffix(']')?;
    let parts = inside.split([',', ' ', '\n', '\r', '\t']).filter(|part| !part.is_empty());
    Some(parts.map(move |part| number(part, field)))
}

fn told(feeder: &Feeder<'_>, error: &csv::Error, longest: u64) -> Error {
    let place = error.position().map_or_else(Place::default, |position| Place::line(position.line()));
    let fault = match error.kind() {
        csv::ErrorKind::Utf8 { err, .. } => Fault::NotTextCell { field: err.field() as u64 + 1 },
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Fault::CsvWidth { expected: *expected_len, got: *len }
        }
        csv::ErrorKind::Io(error) if error.kind() == io::ErrorKind::OutOfMemory => {
            let needed = longest.saturating_add(1).saturating_mul(4);
            feeder.check_buffer("one row", needed).err().unwrap_or(Fault::Io { reason: error.to_string() })
        }
        _ => Fault::Io { reason: error.to_string() },
    };
    fault.at(place)
}

/// Where in a table the next byte stands.
#[derive(Clone, Copy, PartialEq)]
enum State {
    CellStart,
    Plain,
    Quoted,
    /// After a quote inside quotes: the end, or the first of two.
    Ending,
}

/// Follows the quotes of a table, because the parser takes the end of the file for the end of a quoted cell, and keeps
/// rows short enough for memory.
struct Watched {
    inner: Box<dyn Read>,
    state: State,
    line: u64,
    /// The line in which the last quoted cell began.
    quote: u64,
    row: u64,
    longest: u64,
    /// Set at the end of the file if a quote is open.
    open: Rc<Cell<Option<u64>>>,
}

impl Watched {
    fn new(inner: Box<dyn Read>, longest: u64) -> (Self, Rc<Cell<Option<u64>>>) {
        let open = Rc::new(Cell::new(None));
        let state = State::CellStart;
        (Self { inner, state, line: 1, quote: 1, row: 0, longest, open: Rc::clone(&open) }, open)
    }

    fn push(&mut self, byte: u8) {
        self.row += 1;
        self.line += u64::from(byte == b'\n');
        self.state = match (self.state, byte) {
            (State::CellStart, b'"') => {
                self.quote = self.line;
                State::Quoted
            }
            (State::Quoted, b'"') => State::Ending,
            (State::Quoted, _) => State::Quoted,
            (State::Ending, b'"') => State::Quoted,
            (_, b',') => State::CellStart,
            (_, b'\n' | b'\r') => {
                self.row = 0;
                State::CellStart
            }
            // the byte order mark is no part of a cell
            (State::CellStart, 0xef | 0xbb | 0xbf) if self.line == 1 && self.row <= 3 => State::CellStart,
            _ => State::Plain,
        };
    }
}

impl Read for Watched {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let read = self.inner.read(out)?;
        for byte in &out[..read] {
            self.push(*byte);
        }
        if read == 0 && !out.is_empty() && self.state == State::Quoted {
            self.open.set(Some(self.quote));
        }
        if self.row > self.longest {
            return Err(io::ErrorKind::OutOfMemory.into());
        }
        Ok(read)
    }
}
