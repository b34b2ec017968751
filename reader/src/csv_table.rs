//! CSV: one sequence per row, with lists in brackets, or one token per row.

use serde_json::Value;

use crate::{
    fault::{excerpt, Error, Fault, Place},
    feeder::Feeder,
    fields::{Column, Field},
    object::scalar,
    source::Source,
};

pub(crate) fn read<S: Source>(source: &S, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let file = source.open(0)?;
    let mut table = csv::ReaderBuilder::new().buffer_capacity(1 << 20).trim(csv::Trim::All).from_reader(file);
    let header = table.headers().map_err(|error| told(&error))?.clone();
    let fields: Vec<Option<Field>> = header.iter().map(|name| feeder.find(name)).collect();
    for (name, _) in header.iter().zip(&fields).filter(|(name, field)| field.is_none() && !name.is_empty()) {
        feeder.pass_over(name);
    }
    let sequence = fields.iter().position(|field| *field == Some(Field::Sequence));
    let mut row = csv::StringRecord::new();
    let mut current: Option<Current> = None;
    let mut last = 1;
    while table.read_record(&mut row).map_err(|error| told(&error))? {
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
                    current.texts.push(text);
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
    texts: Vec<String>,
}

/// A row that is a sequence.
fn cells(row: &csv::StringRecord, fields: &[Option<Field>], feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    for (cell, field) in row.iter().zip(fields) {
        let Some(field) = field.filter(|_| !cell.is_empty()) else { continue };
        let unlisted = || Fault::NotAList { field: field.name().into(), found: excerpt(cell) };
        match field {
            Field::Column(column) if cell.starts_with('[') => {
                let numbers = list(cell, field)?.ok_or_else(unlisted)?;
                feeder.numbers(column).extend(&numbers);
                feeder.row_added(column, numbers.len());
            }
            Field::Mask => {
                let numbers = list(cell, field)?.ok_or_else(unlisted)?;
                for &x in &numbers {
                    push_mask(x, feeder)?;
                }
                feeder.mask_added(numbers.len());
            }
            Field::Prompt | Field::Group => scalar(feeder, field, &Value::from(cell))?,
            Field::Inside | Field::List | Field::Sequence | Field::Text | Field::Id => {}
            _ => feeder.scalar(field, number(cell, field)?),
        }
    }
    Ok(())
}

/// A row that is a token; returns its text.
fn token(
    row: &csv::StringRecord,
    fields: &[Option<Field>],
    feeder: &mut Feeder<'_>,
    first: bool,
) -> Result<String, Fault> {
    let mut text = String::new();
    for (cell, field) in row.iter().zip(fields) {
        match field {
            Some(field @ Field::Column(column)) => {
                let x = if cell.is_empty() { f64::NAN } else { number(cell, *field)? };
                feeder.numbers(*column).push(x);
            }
            Some(field @ Field::Mask) => push_mask(number(cell, *field)?, feeder)?,
            Some(Field::Text) => text = cell.into(),
            Some(Field::Id) if text.is_empty() => text = format!("#{cell}"),
            Some(field @ (Field::Prompt | Field::Group)) if first => scalar(feeder, *field, &Value::from(cell))?,
            Some(field @ (Field::Score | Field::Step | Field::Truncated | Field::Length | Field::PromptLength))
                if !cell.is_empty() =>
            {
                feeder.scalar(*field, number(cell, *field)?);
            }
            _ => {}
        }
    }
    Ok(text)
}

fn close(current: &mut Option<Current>, fields: &[Option<Field>], feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    let Some(Current { tokens, texts, .. }) = current.take() else { return Ok(()) };
    feeder.texts_added(Field::Text, texts);
    for column in Column::ALL {
        if fields.contains(&Some(Field::Column(column))) {
            feeder.row_added(column, tokens);
        }
    }
    if fields.contains(&Some(Field::Mask)) {
        feeder.mask_added(tokens);
    }
    feeder.end()
}

fn push_mask(x: f64, feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    if x != 0.0 && x != 1.0 {
        return Err(Fault::NotAMask { found: x.to_string() });
    }
    feeder.mask().push(x == 1.0);
    Ok(())
}

fn number(cell: &str, field: Field) -> Result<f64, Fault> {
    match cell {
        "true" | "True" | "TRUE" => Ok(1.0),
        "false" | "False" | "FALSE" => Ok(0.0),
        "None" | "null" => Ok(f64::NAN),
        _ => cell.parse().map_err(|_| Fault::NotANumber { field: field.name().into(), found: excerpt(cell) }),
    }
}

/// `[1, 2.5, NaN]`, separated by commas or blanks; `None` without brackets.
fn list(cell: &str, field: Field) -> Result<Option<Vec<f64>>, Fault> {
    let Some(inside) = cell.strip_prefix('[').and_then(|cell| cell.strip_suffix(']')) else { return Ok(None) };
    let parts = inside.split([',', ' ', '\n']).filter(|part| !part.is_empty());
    parts.map(|part| number(part, field)).collect::<Result<_, _>>().map(Some)
}

fn told(error: &csv::Error) -> Error {
    let place = error.position().map_or_else(Place::default, |position| Place::line(position.line()));
    let fault = match error.kind() {
        csv::ErrorKind::Utf8 { err, .. } => Fault::NotTextCell { field: err.field() as u64 + 1 },
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            Fault::CsvWidth { expected: *expected_len, got: *len }
        }
        _ => Fault::Io { reason: error.to_string() },
    };
    fault.at(place)
}
