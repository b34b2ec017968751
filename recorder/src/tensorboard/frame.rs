//! The records of an event file: TensorFlow's `TFRecord` framing.
//!
//! ```text
//! u64 length | u32 masked CRC-32C of the length | data | u32 masked CRC-32C of the data      all little-endian
//! ```

use std::io::{self, Read};

/// The longest record that is read or written: a damaged length must not become an allocation.
pub(crate) const LONGEST: u64 = 1 << 26;
/// What a record has beside its data.
pub(crate) const FRAME: u64 = 8 + 4 + 4;

/// A rotated CRC plus a constant: a CRC of data that contains CRCs would be weak.
fn masked(crc: u32) -> u32 {
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

/// The bytes of a record.
pub(crate) fn framed(data: &[u8]) -> Vec<u8> {
    let length = (data.len() as u64).to_le_bytes();
    let mut bytes = Vec::with_capacity(data.len() + FRAME as usize);
    bytes.extend(length);
    bytes.extend(masked(crc32c::crc32c(&length)).to_le_bytes());
    bytes.extend(data);
    bytes.extend(masked(crc32c::crc32c(data)).to_le_bytes());
    bytes
}

/// What stands at the current position of a file.
#[derive(Debug, PartialEq)]
pub(crate) enum Next {
    /// The data of a complete record.
    Data(Vec<u8>),
    /// The end of the file, at a boundary or inside of a record that was cut short.
    End,
    /// Something else.
    Damaged(String),
}

/// Reads one record.
pub(crate) fn next(source: &mut impl Read) -> io::Result<Next> {
    let mut head = [0; 12];
    if fill(source, &mut head)? < head.len() {
        return Ok(Next::End);
    }
    let (length, check) = head.split_at(8);
    let wanted = masked(crc32c::crc32c(length));
    if check != wanted.to_le_bytes() {
        return Ok(Next::Damaged(mismatch("length", check, wanted)));
    }
    let length = u64::from_le_bytes(length.try_into().unwrap_or_default());
    if length > LONGEST {
        return Ok(Next::Damaged(format!("a record has at most {LONGEST} bytes, got {length}")));
    }
    let mut data = vec![0; length as usize];
    let mut check = [0; 4];
    if fill(source, &mut data)? < data.len() || fill(source, &mut check)? < check.len() {
        return Ok(Next::End);
    }
    let wanted = masked(crc32c::crc32c(&data));
    Ok(if check == wanted.to_le_bytes() { Next::Data(data) } else { Next::Damaged(mismatch("data", &check, wanted)) })
}

fn mismatch(of: &str, found: &[u8], wanted: u32) -> String {
    let found = u32::from_le_bytes(found.try_into().unwrap_or_default());
    format!("the masked CRC-32C of the {of} is {wanted:#010x}, the file has {found:#010x}")
}

/// Reads until the buffer is full or the source ends; how many bytes were read.
fn fill(source: &mut impl Read, buffer: &mut [u8]) -> io::Result<usize> {
    let mut read = 0;
    while read < buffer.len() {
        match source.read(&mut buffer[read..]) {
            Ok(0) => break,
            Ok(more) => read += more,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(read)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// CRC-32C by its definition, bit by bit: reflected polynomial 0x1edc6f41.
    fn bit_by_bit(data: &[u8]) -> u32 {
        !data.iter().fold(!0_u32, |crc, &byte| {
            (0..8).fold(crc ^ u32::from(byte), |crc, _| (crc >> 1) ^ if crc & 1 == 1 { 0x82f6_3b78 } else { 0 })
        })
    }

    #[test]
    fn the_checksum_is_castagnoli_and_masked() {
        // the check value of CRC-32C/iSCSI, RFC 3720 appendix B.4
        assert_eq!(bit_by_bit(b"123456789"), 0xe306_9283);
        let bytes = framed(b"123456789");
        assert_eq!(bytes[..8], 9_u64.to_le_bytes());
        assert_eq!(bytes[8..12], masked(bit_by_bit(&bytes[..8])).to_le_bytes());
        assert_eq!(bytes[12..21], *b"123456789");
        // ((crc >> 15) | (crc << 17)) + 0xa282ead8
        assert_eq!(bytes[21..], 0xc78a_b0e5_u32.to_le_bytes());
    }

    #[test]
    fn a_cut_is_an_end_and_a_changed_byte_is_damage() {
        let bytes = framed(b"some data");
        for end in 0..bytes.len() {
            assert_eq!(next(&mut &bytes[..end]).unwrap(), Next::End, "{end}");
        }
        assert_eq!(next(&mut &bytes[..]).unwrap(), Next::Data(b"some data".to_vec()));
        for place in 0..bytes.len() {
            let mut changed = bytes.clone();
            changed[place] ^= 4;
            assert!(matches!(next(&mut &changed[..]).unwrap(), Next::Damaged(_)), "{place}");
        }
        let mut long = (LONGEST + 1).to_le_bytes().to_vec();
        long.extend(masked(bit_by_bit(&long)).to_le_bytes());
        assert_eq!(
            next(&mut &long[..]).unwrap(),
            Next::Damaged("a record has at most 67108864 bytes, got 67108865".into())
        );
    }
}
