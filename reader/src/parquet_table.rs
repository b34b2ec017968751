//! Parquet: one sequence per row, with list columns.

use std::sync::Arc;

use parquet::{
    basic::Compression,
    bloom_filter::Sbbf,
    column::page::PageReader,
    errors::ParquetError,
    file::{
        metadata::{ParquetMetaData, ParquetMetaDataReader, RowGroupMetaData},
        reader::RowGroupReader,
    },
    record::{reader::RowIter, Field as Cell},
    schema::types::Type,
};

use crate::{
    fault::{excerpt, Error, Fault, Place},
    feeder::Feeder,
    fields::Field,
    pages::{Chunk, Meter, Pages},
    source::{exactly, Source},
    texts::TextList,
    thrift,
};

/// Bytes that a byte of a footer can become.
const PER_FOOTER_BYTE: u64 = 256;
/// Rows per byte of a file: more are a lie.
const MOST_PER_BYTE: u64 = 64;
/// Values that are decoded at once, in all rows of a batch of the decoder.
const DECODED: usize = 1 << 14;

pub(crate) fn read(source: &Arc<dyn Source>, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let refused = |error: ParquetError| Fault::NotParquet { reason: excerpt(&error.to_string()) };
    let size = source.size()?;
    let metadata = footer(&**source, size, feeder)?;
    let schema = metadata.file_metadata().schema();
    let (wanted, others): (Vec<_>, Vec<_>) =
        schema.get_fields().iter().cloned().partition(|column| is_wanted(column.name(), feeder));
    for column in &others {
        feeder.ignore(column.name(), is_number(column));
    }
    if wanted.is_empty() {
        return Ok(());
    }
    check_codecs(&metadata, feeder)?;
    let rows: u64 = metadata.row_groups().iter().map(|group| group.num_rows().max(0) as u64).sum();
    if rows > size.saturating_mul(MOST_PER_BYTE) {
        return Err(Fault::NotParquet { reason: format!("it claims {rows} rows in {size} bytes") }.into());
    }
    let projection = Type::group_type_builder(schema.name()).with_fields(wanted).build().map_err(refused)?;
    let meter = Arc::new(Meter::new(size));
    let mut index = 0;
    for group in metadata.row_groups() {
        let group = Group { metadata: group, source: Arc::clone(source), meter: Arc::clone(&meter) };
        let at = |index: u64| Place::row(index + 1);
        meter.allow(feeder.spare());
        let too_much = |feeder: &Feeder<'_>, error: ParquetError| {
            let memory =
                meter.wanted().and_then(|wanted| feeder.check_buffer("a row of the Parquet file", wanted).err());
            memory.unwrap_or_else(|| refused(error))
        };
        let rows = RowIter::from_row_group(Some(projection.clone()), &group)
            .map_err(|error| too_much(feeder, error).at(at(index)))?;
        for row in rows.with_batch_size(batch_size(group.metadata)) {
            let row = row.map_err(|error| too_much(feeder, error).at(at(index)))?;
            feeder.place = index + 1;
            feeder.buffered = meter.held();
            for (name, cell) in row.get_column_iter() {
                if let Some(field) = feeder.find(name) {
                    take(field, cell, feeder).map_err(|fault| fault.at(at(index)))?;
                }
            }
            feeder.end().map_err(|fault| fault.at(at(index)))?;
            meter.allow(feeder.spare().saturating_add(meter.held()));
            index += 1;
        }
    }
    Ok(())
}

/// So many rows that about [`DECODED`] values of a column are decoded at once.
fn batch_size(group: &RowGroupMetaData) -> usize {
    let values = group.columns().iter().map(|column| column.num_values().max(0) as u64).max().unwrap_or(0);
    let per_row = values / (group.num_rows().max(1) as u64);
    (DECODED / (per_row.clamp(16, DECODED as u64) as usize)).max(1)
}

/// The metadata at the end of a file. The lengths in it are checked before anything is allocated.
fn footer(source: &dyn Source, size: u64, feeder: &Feeder<'_>) -> Result<ParquetMetaData, Fault> {
    let wrong = |reason: &str| Fault::NotParquet { reason: reason.into() };
    let end = size.checked_sub(12).ok_or_else(|| wrong("the file is too short"))?;
    let last = exactly(source, end + 4, 8)?;
    let (length, mark) = last.split_first_chunk::<4>().ok_or_else(|| wrong("the file is too short"))?;
    if mark != b"PAR1" {
        return Err(wrong(if mark == b"PARE" {
            "it is encrypted"
        } else {
            "it does not end in PAR1: is it complete?"
        }));
    }
    let length = u32::from_le_bytes(*length);
    let start = (end + 4).checked_sub(length.into()).filter(|start| *start >= 4);
    let start = start.ok_or_else(|| wrong("the footer is longer than the file"))?;
    feeder.check_buffer("the footer", u64::from(length) * PER_FOOTER_BYTE)?;
    let bytes = exactly(source, start, length as usize)?;
    if !thrift::is_complete(&bytes) {
        return Err(wrong("the footer is damaged"));
    }
    let metadata = ParquetMetaDataReader::decode_metadata(&bytes)
        .map_err(|error| Fault::NotParquet { reason: excerpt(&error.to_string()) })?;
    Ok(metadata)
}

/// A row group whose pages are read within the budget.
struct Group<'m> {
    metadata: &'m RowGroupMetaData,
    source: Arc<dyn Source>,
    meter: Arc<Meter>,
}

impl RowGroupReader for Group<'_> {
    fn metadata(&self) -> &RowGroupMetaData {
        self.metadata
    }

    fn num_columns(&self) -> usize {
        self.metadata.num_columns()
    }

    fn get_column_page_reader(&self, index: usize) -> Result<Box<dyn PageReader>, ParquetError> {
        let wrong = || ParquetError::General("invalid place of a column".into());
        let column = self.metadata.columns().get(index).ok_or_else(wrong)?;
        let start = column.dictionary_page_offset().filter(|start| *start > 0).unwrap_or(column.data_page_offset());
        let start = u64::try_from(start).map_err(|_| wrong())?;
        let length = u64::try_from(column.compressed_size()).map_err(|_| wrong())?;
        if start.checked_add(length).is_none_or(|end| end > self.source.size().unwrap_or(0)) {
            return Err(wrong());
        }
        let descriptor = column.column_descr();
        let chunk = Chunk {
            start,
            length,
            compression: column.compression(),
            physical: descriptor.physical_type(),
            width: usize::try_from(descriptor.type_length()).unwrap_or(1).max(1),
            max_repetition: descriptor.max_rep_level(),
        };
        Ok(Box::new(Pages::new(Arc::clone(&self.source), chunk, Arc::clone(&self.meter))))
    }

    fn get_column_bloom_filter(&self, _: usize) -> Option<&Sbbf> {
        None
    }

    fn get_row_iter(&self, projection: Option<Type>) -> Result<RowIter<'_>, ParquetError> {
        RowIter::from_row_group(projection, self)
    }
}

/// Whether a column is read; the others are not decompressed.
fn is_wanted(name: &str, feeder: &Feeder<'_>) -> bool {
    feeder.matching(name).is_some_and(|found| !matches!(found.field, Field::List | Field::Sequence))
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
            Compression::BROTLI(_) => "Brotli",
            Compression::LZO => "LZO",
            _ => continue,
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
            let mut texts = TextList::default();
            list.elements().iter().for_each(|entry| texts.push(&text(entry)));
            feeder.texts_added(if field == Field::Id { field } else { Field::Text }, texts)?;
        }
        (Field::Column(column), Cell::ListInternal(list)) => {
            feeder.reserve(column, list.elements().len())?;
            for entry in list.elements() {
                feeder.push(column, number(entry).ok_or_else(|| wrong(entry))?)?;
            }
            feeder.row_added(column, list.elements().len())?;
        }
        (Field::Mask, Cell::ListInternal(list)) => {
            for entry in list.elements() {
                match number(entry) {
                    Some(x) if x == 0.0 || x == 1.0 => feeder.push_mask(x == 1.0)?,
                    _ => return Err(Fault::NotAMask { found: excerpt(&entry.to_string()) }),
                }
            }
            feeder.mask_added(list.elements().len())?;
        }
        (Field::Prompt | Field::Group, Cell::Str(text)) => feeder.text(field, text)?,
        // a conversation
        (Field::Prompt, other) => feeder.text(field, &other.to_string())?,
        (Field::Inside | Field::List | Field::Sequence | Field::Mask | Field::Text | Field::Id, _) => {}
        (field, cell) => feeder.scalar(field, number(cell).ok_or_else(|| wrong(cell))?)?,
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
