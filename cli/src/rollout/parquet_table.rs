//! Parquet: one sequence a row, with list columns.

use std::{fs::File, path::Path};

use parquet::{
    file::reader::{FileReader, SerializedFileReader},
    record::Field as Cell,
};
use serde_json::Value;

use super::{
    feeder::Feeder,
    fields::{Field, Names},
    object::scalar,
};

pub(super) fn read(path: &Path, names: &Names, feeder: &mut Feeder<'_>) -> Result<(), String> {
    let file = File::open(path).map_err(|error| error.to_string())?;
    let table =
        SerializedFileReader::new(file).map_err(|error| format!("not a Parquet file that can be read: {error}"))?;
    let rows = table.get_row_iter(None).map_err(|error| error.to_string())?;
    for (index, row) in rows.enumerate() {
        let at = |what: String| format!("row {}: {what}", index + 1);
        let row = row.map_err(|error| at(error.to_string()))?;
        feeder.place = index as u64 + 1;
        for (name, cell) in row.get_column_iter() {
            if let Some(field) = names.find(name) {
                take(field, cell, names, feeder).map_err(at)?;
            }
        }
        feeder.end().map_err(at)?;
    }
    Ok(())
}

fn take(field: Field, cell: &Cell, names: &Names, feeder: &mut Feeder<'_>) -> Result<(), String> {
    let wrong = || format!("field {:?}: expected numbers, got {cell}", field.name());
    match (field, cell) {
        (_, Cell::Null) => {}
        (Field::Inside, Cell::Group(row)) => {
            for (name, cell) in row.get_column_iter() {
                if let Some(field) = names.find(name) {
                    take(field, cell, names, feeder)?;
                }
            }
        }
        (Field::Column(column), Cell::ListInternal(list)) => {
            let numbers = feeder.numbers(column);
            for entry in list.elements() {
                numbers.push(number(entry).ok_or_else(wrong)?);
            }
            feeder.row_added(column, list.elements().len());
        }
        (Field::Mask, Cell::ListInternal(list)) => {
            for entry in list.elements() {
                match number(entry) {
                    Some(x) if x == 0.0 || x == 1.0 => feeder.mask().push(x == 1.0),
                    _ => return Err(format!("field {:?}: expected 0 or 1, got {entry}", field.name())),
                }
            }
            feeder.mask_added(list.elements().len());
        }
        (Field::Prompt | Field::Group, Cell::Str(text)) => feeder.text(field, text),
        // a conversation
        (Field::Prompt, other) => scalar(feeder, field, &Value::from(other.to_string()))?,
        (Field::Inside | Field::List | Field::Sequence | Field::Mask, _) => {}
        (field, cell) => feeder.scalar(field, number(cell).ok_or_else(wrong)?),
    }
    Ok(())
}

fn number(cell: &Cell) -> Option<f64> {
    Some(match cell {
        Cell::Null => f64::NAN,
        Cell::Bool(x) => f64::from(u8::from(*x)),
        Cell::Byte(x) => f64::from(*x),
        Cell::Short(x) => f64::from(*x),
        Cell::Int(x) => f64::from(*x),
        Cell::Long(x) => *x as f64,
        Cell::UByte(x) => f64::from(*x),
        Cell::UShort(x) => f64::from(*x),
        Cell::UInt(x) => f64::from(*x),
        Cell::ULong(x) => *x as f64,
        Cell::Float16(x) => x.to_f64(),
        Cell::Float(x) => f64::from(*x),
        Cell::Double(x) => *x,
        _ => return None,
    })
}
