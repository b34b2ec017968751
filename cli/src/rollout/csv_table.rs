//! CSV: one sequence a row, with lists in brackets, or one token a row.

use std::{fs::File, path::Path};

use serde_json::Value;

use super::{
    feeder::Feeder,
    fields::{Column, Field, Names},
    object::scalar,
};
use crate::progress::Progress;

pub(super) fn read(path: &Path, names: &Names, feeder: &mut Feeder<'_>, progress: &Progress) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let mut table = csv::ReaderBuilder::new().buffer_capacity(1 << 20).trim(csv::Trim::All).from_reader(file);
    let header = table.headers().map_err(|error| told(&error))?.clone();
    let fields: Vec<Option<Field>> = header.iter().map(|name| names.find(name)).collect();
    let sequence = fields.iter().position(|field| *field == Some(Field::Sequence));
    let mut row = csv::StringRecord::new();
    let mut current: Option<(String, usize)> = None;
    let mut before = 0;
    while table.read_record(&mut row).map_err(|error| told(&error))? {
        let position = table.position();
        progress.advance((position.byte() - before) as usize);
        before = position.byte();
        let line = row.position().map_or(0, csv::Position::line);
        let at = |what: String| format!("line {line}: {what}");
        match sequence {
            None => {
                feeder.place = line;
                cells(&row, &fields, feeder).and_then(|()| feeder.end()).map_err(at)?;
            }
            Some(column) => {
                let id = row.get(column).unwrap_or_default();
                if current.as_ref().is_some_and(|(current, _)| current != id) {
                    close(&mut current, &fields, feeder).map_err(at)?;
                }
                if current.is_none() {
                    feeder.place = line;
                }
                token(&row, &fields, feeder, current.is_none()).map_err(at)?;
                let tokens = current.map_or(0, |(_, tokens)| tokens);
                current = Some((id.to_string(), tokens + 1));
            }
        }
    }
    close(&mut current, &fields, feeder)
}

/// A row that is a sequence.
fn cells(row: &csv::StringRecord, fields: &[Option<Field>], feeder: &mut Feeder<'_>) -> Result<(), String> {
    for (cell, field) in row.iter().zip(fields) {
        let Some(field) = field.filter(|_| !cell.is_empty()) else { continue };
        let wrong = || format!("field {:?}: expected a number or a list, got {cell:?}", field.name());
        match field {
            Field::Column(column) if cell.starts_with('[') => {
                let numbers = list(cell).ok_or_else(wrong)?;
                feeder.numbers(column).extend(&numbers);
                feeder.row_added(column, numbers.len());
            }
            Field::Mask => {
                let numbers = list(cell).ok_or_else(wrong)?;
                for &x in &numbers {
                    push_mask(x, feeder)?;
                }
                feeder.mask_added(numbers.len());
            }
            Field::Prompt | Field::Group => scalar(feeder, field, &Value::from(cell))?,
            Field::Inside | Field::List | Field::Sequence => {}
            _ => feeder.scalar(field, number(cell).ok_or_else(wrong)?),
        }
    }
    Ok(())
}

/// A row that is a token.
fn token(
    row: &csv::StringRecord,
    fields: &[Option<Field>],
    feeder: &mut Feeder<'_>,
    first: bool,
) -> Result<(), String> {
    for (cell, field) in row.iter().zip(fields) {
        let wrong = || format!("field {:?}: expected a number, got {cell:?}", field.map_or("", Field::name));
        match field {
            Some(Field::Column(column)) => {
                let x = if cell.is_empty() { f64::NAN } else { number(cell).ok_or_else(wrong)? };
                feeder.numbers(*column).push(x);
            }
            Some(Field::Mask) => push_mask(number(cell).ok_or_else(wrong)?, feeder)?,
            Some(field @ (Field::Prompt | Field::Group)) if first => scalar(feeder, *field, &Value::from(cell))?,
            Some(field @ (Field::Score | Field::Step | Field::Truncated | Field::Length | Field::PromptLength))
                if !cell.is_empty() =>
            {
                feeder.scalar(*field, number(cell).ok_or_else(wrong)?);
            }
            _ => {}
        }
    }
    Ok(())
}

fn close(
    current: &mut Option<(String, usize)>,
    fields: &[Option<Field>],
    feeder: &mut Feeder<'_>,
) -> Result<(), String> {
    let Some((_, tokens)) = current.take() else { return Ok(()) };
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

fn push_mask(x: f64, feeder: &mut Feeder<'_>) -> Result<(), String> {
    if x != 0.0 && x != 1.0 {
        return Err(format!("field {:?}: expected 0 or 1, got {x}", Field::Mask.name()));
    }
    feeder.mask().push(x == 1.0);
    Ok(())
}

fn number(cell: &str) -> Option<f64> {
    match cell {
        "true" | "True" | "TRUE" => Some(1.0),
        "false" | "False" | "FALSE" => Some(0.0),
        "None" | "null" => Some(f64::NAN),
        _ => cell.parse().ok(),
    }
}

/// `[1, 2.5, NaN]`, with commas or blanks between.
fn list(cell: &str) -> Option<Vec<f64>> {
    let inside = cell.strip_prefix('[')?.strip_suffix(']')?;
    inside.split([',', ' ', '\n']).filter(|part| !part.is_empty()).map(number).collect()
}

fn told(error: &csv::Error) -> String {
    let line = error.position().map_or(String::new(), |position| format!("line {}: ", position.line()));
    match error.kind() {
        csv::ErrorKind::Utf8 { err, .. } => format!("{line}field {} is not UTF-8 text", err.field() + 1),
        csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
            format!("{line}expected {expected_len} fields, got {len}")
        }
        _ => format!("{line}{error}"),
    }
}
