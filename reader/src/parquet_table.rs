//! Parquet: one sequence per row, with list columns.

use std::{
    io::{self, BufReader, Read},
    sync::Arc,
};

use bytes::Bytes;
use parquet::{
    basic::Compression,
    errors::ParquetError,
    file::{
        metadata::ParquetMetaData,
        reader::{ChunkReader, FileReader, Length, SerializedFileReader},
    },
    record::Field as Cell,
    schema::types::Type,
};
use serde_json::Value;

use crate::{
    fault::{excerpt, Error, Fault, Place},
    feeder::Feeder,
    fields::Field,
    object::scalar,
    source::Source,
};

pub(crate) fn read<S: Source>(source: &S, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let refused = |error: ParquetError| Fault::NotParquet { reason: error.to_string() };
    let table = SerializedFileReader::new(Chunks { source: source.clone(), size: source.size()? }).map_err(refused)?;
    let schema = table.metadata().file_metadata().schema();
    let (wanted, others): (Vec<_>, Vec<_>) =
        schema.get_fields().iter().cloned().partition(|column| is_wanted(column.name(), feeder));
    for column in others.iter().filter(|column| is_number(column)) {
        feeder.pass_over(column.name());
    }
    if wanted.is_empty() {
        return Ok(());
    }
    check_codecs(table.metadata(), feeder)?;
    let projection = Type::group_type_builder(schema.name()).with_fields(wanted).build().map_err(refused)?;
    let rows = table.get_row_iter(Some(projection)).map_err(refused)?;
    for (index, row) in rows.enumerate() {
        let place = Place::row(index as u64 + 1);
        let row = row.map_err(|error| refused(error).at(place))?;
        feeder.place = index as u64 + 1;
        for (name, cell) in row.get_column_iter() {
            if let Some(field) = feeder.find(name) {
                take(field, cell, feeder).map_err(|fault| fault.at(place))?;
            }
        }
        feeder.end().map_err(|fault| fault.at(place))?;
    }
    Ok(())
}

/// Whether a column is read; the others are not decompressed.
fn is_wanted(name: &str, feeder: &Feeder<'_>) -> bool {
    feeder.find(name).is_some_and(|field| !matches!(field, Field::List | Field::Sequence))
}

fn is_number(column: &Arc<Type>) -> bool {
    use parquet::basic::{LogicalType, Type as Physical};
    column.is_primitive()
        && match column.get_physical_type() {
            Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE => true,
            Physical::FIXED_LEN_BYTE_ARRAY => {
                matches!(column.get_basic_info().logical_type_ref(), Some(LogicalType::Float16))
            }
            _ => false,
        }
}

/// Rejects a codec that is not built in, before reading starts.
fn check_codecs(metadata: &ParquetMetaData, feeder: &Feeder<'_>) -> Result<(), Fault> {
    for column in metadata.row_groups().iter().flat_map(|group| group.columns()) {
        let path = column.column_path();
        let is_read = path.parts().first().is_some_and(|root| is_wanted(root, feeder));
        let codec = match column.compression() {
            Compression::UNCOMPRESSED
            | Compression::SNAPPY
            | Compression::GZIP(_)
            | Compression::LZ4
            | Compression::LZ4_RAW => continue,
            #[cfg(feature = "zstd")]
            Compression::ZSTD(_) => continue,
            #[cfg(not(feature = "zstd"))]
            Compression::ZSTD(_) => "Zstandard",
            Compression::BROTLI(_) => "Brotli",
            Compression::LZO => "LZO",
        };
        if is_read {
            return Err(Fault::Codec { codec: codec.into(), column: path.string() });
        }
    }
    Ok(())
}

fn take(field: Field, cell: &Cell, feeder: &mut Feeder<'_>) -> Result<(), Fault> {
    let wrong = |cell: &Cell| Fault::NotANumber { field: field.name().into(), found: excerpt(&cell.to_string()) };
    match (field, cell) {
        (_, Cell::Null) => {}
        (Field::Inside, Cell::Group(row)) => {
            for (name, cell) in row.get_column_iter() {
                if let Some(field) = feeder.find(name) {
                    take(field, cell, feeder)?;
                }
            }
        }
        (Field::Text | Field::Id | Field::Inside, Cell::ListInternal(list)) if feeder.labels() => {
            feeder.texts_added(field, list.elements().iter().map(text).collect());
        }
        (Field::Column(column), Cell::ListInternal(list)) => {
            let numbers = feeder.numbers(column);
            for entry in list.elements() {
                numbers.push(number(entry).ok_or_else(|| wrong(entry))?);
            }
            feeder.row_added(column, list.elements().len());
        }
        (Field::Mask, Cell::ListInternal(list)) => {
            for entry in list.elements() {
                match number(entry) {
                    Some(x) if x == 0.0 || x == 1.0 => feeder.mask().push(x == 1.0),
                    _ => return Err(Fault::NotAMask { found: excerpt(&entry.to_string()) }),
                }
            }
            feeder.mask_added(list.elements().len());
        }
        (Field::Prompt | Field::Group, Cell::Str(text)) => feeder.text(field, text),
        // a conversation
        (Field::Prompt, other) => scalar(feeder, field, &Value::from(other.to_string()))?,
        (Field::Inside | Field::List | Field::Sequence | Field::Mask | Field::Text | Field::Id, _) => {}
        (field, cell) => feeder.scalar(field, number(cell).ok_or_else(|| wrong(cell))?),
    }
    Ok(())
}

/// The text of a token.
fn text(cell: &Cell) -> String {
    match cell {
        Cell::Str(text) => text.clone(),
        Cell::Null => String::new(),
        other => number(other).map_or_else(String::new, |id| format!("#{id}")),
    }
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

/// A source as the Parquet reader asks for it.
struct Chunks<S> {
    source: S,
    size: u64,
}

impl<S: Source> Length for Chunks<S> {
    fn len(&self) -> u64 {
        self.size
    }
}

impl<S: Source> ChunkReader for Chunks<S> {
    type T = BufReader<Box<dyn Read>>;

    fn get_read(&self, start: u64) -> Result<Self::T, ParquetError> {
        Ok(BufReader::new(self.source.open(start)?))
    }

    fn get_bytes(&self, start: u64, length: usize) -> Result<Bytes, ParquetError> {
        // a broken file may claim any length: memory is allocated only for bytes that were read
        let mut bytes = Vec::new();
        self.source.open(start)?.take(length as u64).read_to_end(&mut bytes)?;
        if bytes.len() != length {
            return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into());
        }
        Ok(bytes.into())
    }
}
