//! The compact Thrift encoding of Parquet's headers: enough to read the header of a page and to check the lengths in a
//! footer before anything is allocated for them.

/// A position in the bytes of a header.
pub(crate) struct Thrift<'b> {
    bytes: &'b [u8],
    at: usize,
}

/// Deeper than any header of Parquet.
const DEEPEST: usize = 32;

const STOP: u8 = 0;
const TRUE: u8 = 1;
const FALSE: u8 = 2;
const STRUCT: u8 = 12;

impl<'b> Thrift<'b> {
    pub(crate) fn new(bytes: &'b [u8]) -> Self {
        Self { bytes, at: 0 }
    }

    /// Bytes that were read.
    pub(crate) fn position(&self) -> usize {
        self.at
    }

    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.byte()?;
            value |= u64::from(byte & 0x7f) << shift;
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    fn zigzag(&mut self) -> Option<i64> {
        let x = self.varint()?;
        Some((x >> 1) as i64 ^ -((x & 1) as i64))
    }

    fn pass(&mut self, count: u64) -> Option<()> {
        let end = self.at.checked_add(usize::try_from(count).ok()?)?;
        self.at = (end <= self.bytes.len()).then_some(end)?;
        Some(())
    }

    /// Calls `field` with the number and type of every field of a structure; it returns whether it read the value.
    pub(crate) fn fields(&mut self, field: &mut dyn FnMut(&mut Self, i64, u8) -> Option<bool>) -> Option<()> {
        self.fields_at(0, field)
    }

    fn fields_at(&mut self, depth: usize, field: &mut dyn FnMut(&mut Self, i64, u8) -> Option<bool>) -> Option<()> {
        let mut number = 0_i64;
        loop {
            let header = self.byte()?;
            let kind = header & 0xf;
            if kind == STOP {
                return Some(());
            }
            number = match header >> 4 {
                0 => self.zigzag()?,
                delta => number.checked_add(i64::from(delta))?,
            };
            if !field(self, number, kind)? {
                self.skip(kind, depth + 1)?;
            }
        }
    }

    /// A whole number of any width.
    pub(crate) fn number(&mut self, kind: u8) -> Option<i64> {
        match kind {
            3 => self.byte().map(|byte| i64::from(byte as i8)),
            4..=6 => self.zigzag(),
            _ => None,
        }
    }

    /// A flag, which is in the type.
    pub(crate) fn flag(kind: u8) -> Option<bool> {
        match kind {
            TRUE => Some(true),
            FALSE => Some(false),
            _ => None,
        }
    }

    fn skip(&mut self, kind: u8, depth: usize) -> Option<()> {
        if depth > DEEPEST {
            return None;
        }
        match kind {
            TRUE | FALSE => Some(()),
            3 => self.pass(1),
            4..=6 => self.varint().map(|_| ()),
            7 => self.pass(8),
            8 => {
                let length = self.varint()?;
                self.pass(length)
            }
            9 | 10 => {
                let header = self.byte()?;
                let count = match header >> 4 {
                    15 => self.varint()?,
                    count => u64::from(count),
                };
                // every entry takes a byte at least
                if count > (self.bytes.len() - self.at) as u64 {
                    return None;
                }
                for _ in 0..count {
                    self.entry(header & 0xf, depth + 1)?;
                }
                Some(())
            }
            11 => {
                let count = self.varint()?;
                if count > (self.bytes.len() - self.at) as u64 {
                    return None;
                }
                let kinds = if count > 0 { self.byte()? } else { 0 };
                for _ in 0..count {
                    self.entry(kinds >> 4, depth + 1)?;
                    self.entry(kinds & 0xf, depth + 1)?;
                }
                Some(())
            }
            STRUCT => self.fields_at(depth, &mut |_, _, _| Some(false)),
            _ => None,
        }
    }

    /// An entry of a list or map, where a flag takes a byte.
    fn entry(&mut self, kind: u8, depth: usize) -> Option<()> {
        match kind {
            TRUE | FALSE => self.pass(1),
            kind => self.skip(kind, depth),
        }
    }
}

/// Whether a structure is complete, and all its lengths fit the bytes that are there.
pub(crate) fn is_complete(bytes: &[u8]) -> bool {
    Thrift::new(bytes).fields(&mut |_, _, _| Some(false)).is_some()
}

/// The header of a page.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct PageHeader {
    pub(crate) kind: i64,
    pub(crate) uncompressed: i64,
    pub(crate) compressed: i64,
    pub(crate) values: i64,
    pub(crate) encoding: i64,
    pub(crate) definition_encoding: i64,
    pub(crate) repetition_encoding: i64,
    pub(crate) nulls: i64,
    pub(crate) rows: i64,
    pub(crate) definition_bytes: i64,
    pub(crate) repetition_bytes: i64,
    pub(crate) is_compressed: bool,
}

pub(crate) const DATA_PAGE: i64 = 0;
pub(crate) const DICTIONARY_PAGE: i64 = 2;
pub(crate) const DATA_PAGE_V2: i64 = 3;

impl PageHeader {
    /// The header at the start of some bytes, and its length.
    pub(crate) fn read(bytes: &[u8]) -> Option<(Self, usize)> {
        let mut page = Self { is_compressed: true, ..Self::default() };
        let mut thrift = Thrift::new(bytes);
        thrift.fields(&mut |thrift, number, kind| {
            match number {
                1 => page.kind = thrift.number(kind)?,
                2 => page.uncompressed = thrift.number(kind)?,
                3 => page.compressed = thrift.number(kind)?,
                5 | 7 | 8 if kind == STRUCT => thrift.fields_at(1, &mut |thrift, inner, kind| {
                    let target = match (number, inner) {
                        (_, 1) => &mut page.values,
                        (5 | 7, 2) | (8, 4) => &mut page.encoding,
                        (5, 3) => &mut page.definition_encoding,
                        (5, 4) => &mut page.repetition_encoding,
                        (8, 2) => &mut page.nulls,
                        (8, 3) => &mut page.rows,
                        (8, 5) => &mut page.definition_bytes,
                        (8, 6) => &mut page.repetition_bytes,
                        (8, 7) => {
                            page.is_compressed = Thrift::flag(kind)?;
                            return Some(true);
                        }
                        _ => return Some(false),
                    };
                    *target = thrift.number(kind)?;
                    Some(true)
                })?,
                _ => return Some(false),
            }
            Some(true)
        })?;
        Some((page, thrift.position()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_read_and_a_lie_is_not() {
        // type 0, 16 bytes, 16 bytes, data page header: 4 values, PLAIN, RLE, RLE
        let bytes = [0x15, 0, 0x15, 32, 0x15, 32, 0x2c, 0x15, 8, 0x15, 0, 0x15, 6, 0x15, 6, 0, 0];
        let (page, length) = PageHeader::read(&bytes).unwrap();
        assert_eq!((length, page.compressed, page.values, page.repetition_encoding), (bytes.len(), 16, 4, 3));
        for cut in 0..bytes.len() {
            assert!(PageHeader::read(&bytes[..cut]).is_none());
        }
        // a list of 2^32 entries
        assert!(!is_complete(&[0x19, 0xf3, 0x80, 0x80, 0x80, 0x80, 0x10, 0]));
        assert!(is_complete(&[0x19, 0x13, 5, 0]));
        // structures without end
        assert!(!is_complete(&[0x1c; 100_000]));
    }
}
