//! The pages of a Parquet column, read and decompressed within the budget. What a page needs when it is decoded (its
//! own bytes, its dictionary, the longest record in it) is known from its headers and repetition levels, before the
//! decoder of the `parquet` crate sees it.

use std::{
    io::Read,
    sync::{
        atomic::{AtomicU64, Ordering},
        Arc,
    },
};

use bytes::Bytes;
use parquet::{
    basic::{Compression, Encoding, Type as Physical},
    column::page::{Page, PageMetadata, PageReader},
    errors::{ParquetError, Result},
};

use crate::{
    source::{exactly, Source},
    thrift::{PageHeader, DATA_PAGE, DATA_PAGE_V2, DICTIONARY_PAGE},
};

/// Longer than any page header: statistics of two strings may be in it.
const LONGEST_HEADER: usize = 1 << 16;
/// Bytes that a value takes while a row is made of it: its levels, the value, a cell, and room to grow.
const PER_VALUE: u64 = 96;
/// Values per byte of a file: more are a lie or a bomb.
const MOST_PER_BYTE: u64 = 1 << 16;

/// What the pages of all columns may take, shared by them.
pub(crate) struct Meter {
    /// Bytes that may be used.
    spare: AtomicU64,
    /// Bytes of the pages in memory.
    pages: AtomicU64,
    /// Values that may still be decoded.
    values: AtomicU64,
    /// What was asked for when there was not enough.
    wanted: AtomicU64,
}

impl Meter {
    pub(crate) fn new(file_bytes: u64) -> Self {
        let values = file_bytes.saturating_mul(MOST_PER_BYTE);
        Self { spare: 0.into(), pages: 0.into(), values: values.into(), wanted: 0.into() }
    }

    pub(crate) fn allow(&self, spare: u64) {
        self.spare.store(spare, Ordering::Relaxed);
    }

    /// Bytes of the pages in memory.
    pub(crate) fn held(&self) -> u64 {
        self.pages.load(Ordering::Relaxed)
    }

    /// What was asked for, if that was too much.
    pub(crate) fn wanted(&self) -> Option<u64> {
        Some(self.wanted.load(Ordering::Relaxed)).filter(|wanted| *wanted > 0)
    }

    fn check(&self, bytes: u64) -> Result<()> {
        if bytes > self.spare.load(Ordering::Relaxed) {
            self.wanted.store(bytes, Ordering::Relaxed);
            return Err(ParquetError::General("a page does not fit into memory".into()));
        }
        Ok(())
    }

    fn spend(&self, values: u64) -> Result<()> {
        let spent = self.values.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(values));
        spent.map(|_| ()).map_err(|_| wrong("more values than the file can hold"))
    }
}

fn wrong(what: &str) -> ParquetError {
    ParquetError::General(what.into())
}

/// A column of a row group.
pub(crate) struct Chunk {
    pub(crate) start: u64,
    pub(crate) length: u64,
    pub(crate) compression: Compression,
    pub(crate) physical: Physical,
    /// Bytes of a value of fixed length.
    pub(crate) width: usize,
    pub(crate) max_repetition: i16,
}

/// The pages of a column.
pub(crate) struct Pages {
    source: Arc<dyn Source>,
    chunk: Chunk,
    at: u64,
    meter: Arc<Meter>,
    /// Bytes of the dictionary and of the current page.
    held: [u64; 2],
    /// Values so far of a record that may continue in the next page.
    open: u64,
}

impl Pages {
    pub(crate) fn new(source: Arc<dyn Source>, chunk: Chunk, meter: Arc<Meter>) -> Self {
        let at = chunk.start;
        Self { source, chunk, at, meter, held: [0; 2], open: 0 }
    }

    fn header(&self) -> Result<Option<(PageHeader, u64)>> {
        let left = (self.chunk.start + self.chunk.length).saturating_sub(self.at);
        if left == 0 {
            return Ok(None);
        }
        let mut length = left.min(256) as usize;
        loop {
            let bytes = exactly(&*self.source, self.at, length)?;
            if let Some((header, length)) = PageHeader::read(&bytes) {
                return Ok(Some((header, length as u64)));
            }
            if length as u64 == left || length >= LONGEST_HEADER {
                return Err(wrong("invalid page header"));
            }
            length = (2 * length).min(left as usize);
        }
    }

    fn next_page(&mut self) -> Result<Option<Page>> {
        loop {
            let Some((header, length)) = self.header()? else { return Ok(None) };
            let body = self.at + length;
            let left = (self.chunk.start + self.chunk.length).saturating_sub(body);
            let compressed = unsigned(header.compressed)?;
            if u64::from(compressed) > left {
                return Err(wrong("a page is longer than its column"));
            }
            self.at = body + u64::from(compressed);
            if matches!(header.kind, DATA_PAGE | DATA_PAGE_V2 | DICTIONARY_PAGE) {
                return self.page(&header, body, compressed).map(Some);
            }
            // an index page
        }
    }

    fn page(&mut self, header: &PageHeader, body: u64, compressed: u32) -> Result<Page> {
        let (values, size) = (unsigned(header.values)?, unsigned(header.uncompressed)?);
        let place = usize::from(header.kind != DICTIONARY_PAGE);
        let others = self.meter.held() - self.held[place];
        // both the compressed bytes and what becomes of them
        self.meter.check(others + u64::from(compressed) + u64::from(size))?;
        self.meter.spend(u64::from(values))?;
        let bytes = exactly(&*self.source, body, compressed as usize)?;
        // the levels of the second kind of page are not compressed
        let plain = match header.kind {
            DATA_PAGE_V2 => unsigned(header.definition_bytes)?.checked_add(unsigned(header.repetition_bytes)?),
            _ => Some(0),
        };
        let plain =
            plain.filter(|plain| *plain <= size && *plain <= compressed).ok_or_else(|| wrong("invalid levels"))?;
        let buf = match self.chunk.compression {
            Compression::UNCOMPRESSED => bytes,
            _ if header.kind == DATA_PAGE_V2 && !header.is_compressed => bytes,
            codec => decompress(codec, &bytes, plain as usize, size as usize)?,
        };
        if buf.len() != size as usize {
            return Err(wrong("a page has another length than its header says"));
        }
        let buf = Bytes::from(buf);
        self.meter.pages.fetch_add(u64::from(size), Ordering::Relaxed);
        self.meter.pages.fetch_sub(self.held[place], Ordering::Relaxed);
        self.held[place] = u64::from(size);
        let encoding = encoding(header.encoding)?;
        if header.kind == DICTIONARY_PAGE {
            self.check_dictionary(values, &buf)?;
            return Ok(Page::DictionaryPage { buf, num_values: values, encoding, is_sorted: false });
        }
        self.check_records(header, values, &buf)?;
        self.check_lengths(header, encoding, values, &buf)?;
        Ok(match header.kind {
            DATA_PAGE => Page::DataPage {
                buf,
                num_values: values,
                encoding,
                def_level_encoding: self::encoding(header.definition_encoding)?,
                rep_level_encoding: self::encoding(header.repetition_encoding)?,
                statistics: None,
            },
            _ => Page::DataPageV2 {
                buf,
                num_values: values,
                encoding,
                num_nulls: unsigned(header.nulls)?.min(values),
                num_rows: unsigned(header.rows)?,
                def_levels_byte_len: unsigned(header.definition_bytes)?,
                rep_levels_byte_len: unsigned(header.repetition_bytes)?,
                // it is not any more
                is_compressed: false,
                statistics: None,
            },
        })
    }

    /// A dictionary has an entry for each of its values.
    fn check_dictionary(&self, values: u32, buf: &Bytes) -> Result<()> {
        let least = match self.chunk.physical {
            Physical::BOOLEAN => 1,
            Physical::INT32 | Physical::FLOAT | Physical::BYTE_ARRAY => 4,
            Physical::INT64 | Physical::DOUBLE => 8,
            Physical::INT96 => 12,
            Physical::FIXED_LEN_BYTE_ARRAY => self.chunk.width,
        };
        if (values as usize).checked_mul(least).is_none_or(|bytes| bytes > buf.len()) {
            return Err(wrong("a dictionary is shorter than its header says"));
        }
        self.meter.check(self.meter.held() + u64::from(values) * 48)
    }

    /// A record is decoded as a whole; its length is in the repetition levels.
    fn check_records(&mut self, header: &PageHeader, values: u32, buf: &Bytes) -> Result<()> {
        if self.chunk.max_repetition == 0 {
            return Ok(());
        }
        let invalid = || wrong("invalid repetition levels");
        let levels = match header.kind {
            DATA_PAGE_V2 => buf.get(..unsigned(header.repetition_bytes)? as usize).ok_or_else(invalid)?,
            _ if header.repetition_encoding != RLE => return Err(wrong("repetition levels are not RLE")),
            _ => {
                let (length, rest) = buf.split_first_chunk().ok_or_else(invalid)?;
                rest.get(..u32::from_le_bytes(*length) as usize).ok_or_else(invalid)?
            }
        };
        let width = 16 - (self.chunk.max_repetition as u16).leading_zeros();
        let longest = longest_record(levels, width, values.into(), &mut self.open).ok_or_else(invalid)?;
        self.meter.check(self.meter.held().saturating_add(longest.saturating_mul(PER_VALUE)))
    }

    /// Some encodings begin with a number of lengths, for which the decoder allocates.
    fn check_lengths(&self, header: &PageHeader, encoding: Encoding, values: u32, buf: &Bytes) -> Result<()> {
        if !matches!(encoding, Encoding::DELTA_LENGTH_BYTE_ARRAY | Encoding::DELTA_BYTE_ARRAY) {
            return Ok(());
        }
        // the levels may hide the start of the values, so the page is bounded as a whole
        self.meter.check(self.meter.held() + u64::from(values) * 64)?;
        if header.kind == DATA_PAGE && self.chunk.max_repetition == 0 && values as usize > 64 * buf.len() {
            return Err(wrong("more lengths than a page can hold"));
        }
        Ok(())
    }
}

/// The number of RLE in the format.
const RLE: i64 = 3;

/// How many values the longest record of a page has; `open` is what the last record of the page before had.
fn longest_record(mut levels: &[u8], width: u32, values: u64, open: &mut u64) -> Option<u64> {
    let (mut left, mut longest) = (values, *open);
    let bytes = width.div_ceil(8) as usize;
    while left > 0 {
        let mut header = 0_u64;
        for shift in (0..35).step_by(7) {
            let (byte, rest) = levels.split_first()?;
            levels = rest;
            header |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                break;
            }
        }
        let count = header >> 1;
        if header & 1 == 0 {
            // a run of one level
            let level = levels.get(..bytes)?;
            levels = &levels[bytes..];
            let count = count.min(left);
            if count == 0 {
                return None;
            }
            *open = if level.iter().all(|byte| *byte == 0) { 1 } else { *open + count };
            longest = longest.max(*open);
            left -= count;
            continue;
        }
        // groups of eight levels, packed; the last may be cut
        let packed = levels.get(..levels.len().min((count * u64::from(width)) as usize))?;
        let count = (8 * count).min(left).min(8 * packed.len() as u64 / u64::from(width));
        if count == 0 {
            return None;
        }
        for index in 0..count {
            let mut level = 0_u32;
            for bit in 0..u64::from(width) {
                let at = index * u64::from(width) + bit;
                level |= u32::from(packed[(at / 8) as usize] >> (at % 8) & 1) << bit;
            }
            *open = if level == 0 { 1 } else { *open + 1 };
            longest = longest.max(*open);
        }
        levels = &levels[packed.len()..];
        left -= count;
    }
    Some(longest)
}

fn unsigned(x: i64) -> Result<u32> {
    u32::try_from(x).ok().filter(|x| *x <= i32::MAX as u32).ok_or_else(|| wrong("invalid page header"))
}

fn encoding(number: i64) -> Result<Encoding> {
    Ok(match number {
        0 => Encoding::PLAIN,
        2 => Encoding::PLAIN_DICTIONARY,
        RLE => Encoding::RLE,
        5 => Encoding::DELTA_BINARY_PACKED,
        6 => Encoding::DELTA_LENGTH_BYTE_ARRAY,
        7 => Encoding::DELTA_BYTE_ARRAY,
        8 => Encoding::RLE_DICTIONARY,
        9 => Encoding::BYTE_STREAM_SPLIT,
        _ => return Err(wrong("unsupported encoding")),
    })
}

/// The bytes of a page of which the first `plain` are not compressed; never more than `size`.
fn decompress(codec: Compression, bytes: &[u8], plain: usize, size: usize) -> Result<Vec<u8>> {
    let (first, rest) = bytes.split_at(plain);
    let mut out = Vec::with_capacity(size);
    out.extend_from_slice(first);
    let left = size - plain;
    if left == 0 {
        return Ok(out);
    }
    let corrupt = |reason: &dyn std::fmt::Display| ParquetError::General(format!("a page is corrupt ({reason})"));
    match codec {
        Compression::SNAPPY => {
            let length = snap::raw::decompress_len(rest).map_err(|error| corrupt(&error))?;
            if length != left {
                return Err(corrupt(&"its length is another"));
            }
            out.resize(size, 0);
            snap::raw::Decoder::new().decompress(rest, &mut out[plain..]).map_err(|error| corrupt(&error))?;
        }
        Compression::GZIP(_) => {
            let stream = flate2::read::MultiGzDecoder::new(rest);
            stream.take(left as u64).read_to_end(&mut out).map_err(|error| corrupt(&error))?;
        }
        Compression::ZSTD(_) => {
            let most = (left as u64).next_power_of_two().max(1 << 20);
            let stream = ruzstd::decoding::StreamingDecoder::new_with_max_window_size(rest, most)
                .map_err(|error| corrupt(&error))?;
            stream.take(left as u64).read_to_end(&mut out).map_err(|error| corrupt(&error))?;
        }
        Compression::LZ4_RAW => lz4(rest, left, &mut out).map_err(|error| corrupt(&error))?,
        Compression::LZ4 => {
            // three ways to frame it were in use
            if hadoop(rest, left, &mut out).is_none() {
                out.truncate(plain);
                let stream = lz4_flex::frame::FrameDecoder::new(rest);
                if stream.take(left as u64).read_to_end(&mut out).is_err() {
                    out.truncate(plain);
                    lz4(rest, left, &mut out).map_err(|error| corrupt(&error))?;
                }
            }
        }
        codec => return Err(ParquetError::NYI(format!("{codec}"))),
    }
    Ok(out)
}

fn lz4(bytes: &[u8], size: usize, out: &mut Vec<u8>) -> std::result::Result<(), lz4_flex::block::DecompressError> {
    let before = out.len();
    out.resize(before + size, 0);
    let written = lz4_flex::block::decompress_into(bytes, &mut out[before..])?;
    out.truncate(before + written);
    Ok(())
}

/// Blocks with two lengths each.
fn hadoop(mut bytes: &[u8], size: usize, out: &mut Vec<u8>) -> Option<()> {
    let end = out.len() + size;
    while !bytes.is_empty() {
        let (plain, rest) = bytes.split_first_chunk()?;
        let (packed, rest) = rest.split_first_chunk()?;
        let (plain, packed) = (u32::from_be_bytes(*plain) as usize, u32::from_be_bytes(*packed) as usize);
        if packed > rest.len() || plain > end - out.len() {
            return None;
        }
        let before = out.len();
        lz4(&rest[..packed], plain, out).ok()?;
        (out.len() == before + plain).then_some(())?;
        bytes = &rest[packed..];
    }
    (out.len() == end).then_some(())
}

impl Iterator for Pages {
    type Item = Result<Page>;

    fn next(&mut self) -> Option<Self::Item> {
        self.get_next_page().transpose()
    }
}

impl PageReader for Pages {
    fn get_next_page(&mut self) -> Result<Option<Page>> {
        self.next_page()
    }

    fn peek_next_page(&mut self) -> Result<Option<PageMetadata>> {
        let Some((header, _)) = self.header()? else { return Ok(None) };
        Ok(Some(PageMetadata {
            num_rows: if header.kind == DATA_PAGE_V2 { Some(unsigned(header.rows)? as usize) } else { None },
            num_levels: Some(unsigned(header.values)? as usize),
            is_dict: header.kind == DICTIONARY_PAGE,
        }))
    }

    fn skip_next_page(&mut self) -> Result<()> {
        self.next_page().map(|_| ())
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        self.meter.pages.fetch_sub(self.held.iter().sum(), Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_record_is_found_before_it_is_decoded() {
        let longest = |levels: &[u8], values, open: &mut u64| longest_record(levels, 1, values, open);
        let mut open = 0;
        // 0 1 1 0 0 1 1 1, packed
        assert_eq!((longest(&[3, 0b1110_0110], 8, &mut open), open), (Some(4), 4));
        // a run of 2^27 ones continues it
        assert_eq!(longest(&[0x80, 0x80, 0x80, 0x80, 1, 1], 1 << 27, &mut open), Some(4 + (1 << 27)));
        // a run of zeros
        assert_eq!((longest(&[200, 1, 0], 100, &mut 0), open), (Some(1), 4 + (1 << 27)));
        assert_eq!(longest(&[], 1, &mut 0), None);
        assert_eq!(longest(&[0, 0], 1, &mut 0), None);
    }
}
