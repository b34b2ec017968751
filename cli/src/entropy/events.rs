//! The scalars of a TensorBoard event file: records with checksums, each a protocol buffer.

use std::io::Read;

/// A scalar: its tag, step and value.
pub(super) struct Scalar {
    pub(super) tag: String,
    pub(super) step: u64,
    pub(super) value: f64,
}

/// Whether a file begins with a record of this format.
pub(super) fn begins(start: &[u8]) -> bool {
    let Some((length, rest)) = start.split_first_chunk::<8>() else { return false };
    let Some((check, _)) = rest.split_first_chunk::<4>() else { return false };
    masked(length) == u32::from_le_bytes(*check)
}

/// Longer records hold pictures or graphs; they are skipped.
const LONGEST: u64 = 1 << 24;

/// Calls `found` with every scalar. A record that ends too early is the last one of a file that is being written.
pub(super) fn read(stream: &mut dyn Read, found: &mut dyn FnMut(Scalar) -> Result<(), String>) -> Result<(), String> {
    let mut at = 0_u64;
    let mut data = Vec::new();
    loop {
        let mut head = [0; 12];
        if !fill(stream, &mut head)? {
            return Ok(());
        }
        let (length, check) = head.split_at(8);
        if masked(length).to_le_bytes() != check {
            return Err(format!("the record at byte {at} is damaged: the checksum of its length is wrong"));
        }
        let length = length.try_into().map_or(0, u64::from_le_bytes);
        if length > LONGEST {
            let passed = std::io::copy(&mut stream.take(length.saturating_add(4)), &mut std::io::sink());
            if passed.map_err(|error| error.to_string())? < length.saturating_add(4) {
                return Ok(());
            }
        } else {
            data.resize(length as usize + 4, 0);
            if !fill(stream, &mut data)? {
                return Ok(());
            }
            let (body, check) = data.split_at(length as usize);
            if masked(body).to_le_bytes() != check {
                return Err(format!("the record at byte {at} is damaged: its checksum is wrong"));
            }
            event(body, found).ok_or_else(|| format!("the record at byte {at} is not an event"))??;
        }
        at = at.saturating_add(16).saturating_add(length);
    }
}

/// Whether there were as many bytes.
fn fill(stream: &mut dyn Read, out: &mut [u8]) -> Result<bool, String> {
    match stream.read_exact(out) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == std::io::ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error.to_string()),
    }
}

/// A field of a protocol buffer.
enum Value<'b> {
    Number(u64),
    Fixed32(u32),
    Fixed64(u64),
    Bytes(&'b [u8]),
}

/// The next field and its number; `Some(None)` at the end.
fn next<'b>(bytes: &mut &'b [u8]) -> Option<Option<(u64, Value<'b>)>> {
    if bytes.is_empty() {
        return Some(None);
    }
    let key = varint(bytes)?;
    let value = match key & 7 {
        0 => Value::Number(varint(bytes)?),
        1 => Value::Fixed64(u64::from_le_bytes(take(bytes, 8)?.try_into().ok()?)),
        2 => {
            let length = usize::try_from(varint(bytes)?).ok()?;
            Value::Bytes(take(bytes, length)?)
        }
        5 => Value::Fixed32(u32::from_le_bytes(take(bytes, 4)?.try_into().ok()?)),
        _ => return None,
    };
    Some(Some((key >> 3, value)))
}

fn take<'b>(bytes: &mut &'b [u8], length: usize) -> Option<&'b [u8]> {
    if length > bytes.len() {
        return None;
    }
    let (taken, rest) = bytes.split_at(length);
    *bytes = rest;
    Some(taken)
}

fn varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = *take(bytes, 1)?.first()?;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(value);
        }
    }
    None
}

fn event(mut bytes: &[u8], found: &mut dyn FnMut(Scalar) -> Result<(), String>) -> Option<Result<(), String>> {
    let (mut step, mut summaries) = (0, Vec::new());
    while let Some((number, value)) = next(&mut bytes)? {
        match (number, value) {
            (2, Value::Number(x)) => step = x,
            (5, Value::Bytes(summary)) => summaries.push(summary),
            _ => {}
        }
    }
    for mut summary in summaries {
        while let Some((number, value)) = next(&mut summary)? {
            let (1, Value::Bytes(value)) = (number, value) else { continue };
            if let Some((tag, value)) = scalar(value)? {
                if let Err(failure) = found(Scalar { tag, step, value }) {
                    return Some(Err(failure));
                }
            }
        }
    }
    Some(Ok(()))
}

/// The tag and value of a summary; `Some(None)` for pictures, histograms and texts.
fn scalar(mut bytes: &[u8]) -> Option<Option<(String, f64)>> {
    let (mut tag, mut number) = (String::new(), None);
    while let Some((field, value)) = next(&mut bytes)? {
        match (field, value) {
            (1, Value::Bytes(name)) => tag = String::from_utf8_lossy(name).into_owned(),
            (2, Value::Fixed32(bits)) => number = Some(f64::from(f32::from_bits(bits))),
            (8, Value::Bytes(tensor)) => number = number.or(single(tensor)?),
            _ => {}
        }
    }
    Some(number.map(|number| (tag, number)))
}

/// The number of a tensor with one entry.
fn single(mut bytes: &[u8]) -> Option<Option<f64>> {
    let (mut kind, mut content, mut found) = (0, &[][..], None);
    while let Some((field, value)) = next(&mut bytes)? {
        match (field, value) {
            (1, Value::Number(x)) => kind = x,
            (4, Value::Bytes(x)) => content = x,
            (5, Value::Fixed32(bits)) => found = Some(f64::from(f32::from_bits(bits))),
            (6, Value::Fixed64(bits)) => found = Some(f64::from_bits(bits)),
            (5 | 6, Value::Bytes(x)) => content = x,
            _ => {}
        }
    }
    let four = || Some(f64::from(f32::from_le_bytes(content.try_into().ok()?)));
    let eight = || Some(f64::from_le_bytes(content.try_into().ok()?));
    Some(found.or_else(|| match kind {
        1 => four(),
        2 => eight(),
        _ => None,
    }))
}

/// CRC-32C, rotated and offset as the format wants it.
fn masked(bytes: &[u8]) -> u32 {
    let crc = !bytes.iter().fold(!0, |crc: u32, byte| TABLE[((crc ^ u32::from(*byte)) & 0xff) as usize] ^ (crc >> 8));
    crc.rotate_right(15).wrapping_add(0xa282_ead8)
}

const TABLE: [u32; 256] = {
    let mut table = [0; 256];
    let mut index = 0;
    while index < 256 {
        let mut crc = index as u32;
        let mut bit = 0;
        while bit < 8 {
            crc = if crc & 1 == 1 { (crc >> 1) ^ 0x82f6_3b78 } else { crc >> 1 };
            bit += 1;
        }
        table[index] = crc;
        index += 1;
    }
    table
};

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(crate) fn record(body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u64).to_le_bytes();
        [&length[..], &masked(&length).to_le_bytes(), body, &masked(body).to_le_bytes()].concat()
    }

    fn message(field: u8, body: &[u8]) -> Vec<u8> {
        [&[field << 3 | 2, body.len() as u8], body].concat()
    }

    pub(crate) fn entropy(step: u8, value: f32) -> Vec<u8> {
        let value = [message(1, b"actor/entropy"), [&[2 << 3 | 5], &value.to_le_bytes()[..]].concat()].concat();
        record(&[vec![2 << 3, step], message(5, &message(1, &value))].concat())
    }

    fn all(bytes: &[u8]) -> Result<Vec<(u64, f64)>, String> {
        let mut found = Vec::new();
        read(&mut &bytes[..], &mut |scalar| {
            assert_eq!(scalar.tag, "actor/entropy");
            found.push((scalar.step, scalar.value));
            Ok(())
        })?;
        Ok(found)
    }

    #[test]
    fn scalars_are_read_and_damage_is_found() {
        // the check value of CRC-32C, masked
        assert_eq!(masked(b"123456789"), 0xe306_9283_u32.rotate_right(15).wrapping_add(0xa282_ead8));
        let bytes = [record(&[]), entropy(1, 2.5), entropy(2, 1.5)].concat();
        assert!(begins(&bytes) && !begins(b"[{\"step\": 1}]"));
        assert_eq!(all(&bytes).unwrap(), [(1, 2.5), (2, 1.5)]);
        // a file that is being written
        for cut in 0..bytes.len() {
            assert!(all(&bytes[..cut]).is_ok());
        }
        for place in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[place] ^= 4;
            assert!(all(&bad).is_err(), "{place}");
        }
        // the same as a tensor of doubles
        let tensor = [vec![1 << 3, 2], message(4, &0.75_f64.to_le_bytes())].concat();
        let value = [message(1, b"actor/entropy"), message(8, &tensor)].concat();
        assert_eq!(all(&record(&[vec![2 << 3, 7], message(5, &message(1, &value))].concat())).unwrap(), [(7, 0.75)]);
    }
}
