//! safetensors: tensors with the names of the fields, `[batch, len]` or packed with `cu_seqlens`; each is read row by
//! row.

use std::{
    io::{BufReader, Read},
    sync::Arc,
};

use half::{bf16, f16};
use serde_json::{Map, Value};

use crate::{
    fault::{excerpt, Error, Fault, Place},
    feeder::Feeder,
    fields::{Field, Match},
    source::{exactly, Source, Tail},
    texts::TextList,
};

/// The format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;
/// Bytes that a byte of the header can become.
const PER_HEADER_BYTE: u64 = 32;
/// What is read of a tensor at a time.
const BUFFER: usize = 1 << 18;

struct Tensor {
    name: String,
    found: Option<Match>,
    kind: String,
    shape: Vec<usize>,
    bytes: BufReader<Tail>,
}

impl Tensor {
    fn is_per_token(&self) -> bool {
        self.found.is_some_and(|found| matches!(found.field, Field::Column(_) | Field::Mask | Field::Id))
    }
}

pub(crate) fn read(source: &Arc<dyn Source>, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let mut tensors = open(source, feeder)?;
    let offsets = match tensors.iter().position(|tensor| tensor.name == "cu_seqlens") {
        Some(index) => Some(offsets(&mut tensors[index], feeder)?),
        None => None,
    };
    tensors.retain(|tensor| tensor.found.is_some());
    let shaped = tensors.iter().find(|tensor| tensor.is_per_token() && tensor.shape.len() == 2);
    let sequences = match (&offsets, shaped) {
        (Some(offsets), _) => offsets.len() - 1,
        (None, Some(tensor)) => tensor.shape[0],
        (None, None) => tensors.iter().find(|tensor| tensor.shape.len() == 1).map_or(0, |tensor| tensor.shape[0]),
    };
    for tensor in &tensors {
        let first = tensor.shape.first().copied().unwrap_or(0);
        let packed = offsets.as_ref().and_then(|offsets| offsets.last()).is_some_and(|total| *total == first)
            && tensor.is_per_token();
        let about = || (tensor.name.clone(), format!("{:?}", tensor.shape));
        if first != sequences && !packed && !tensor.shape.is_empty() {
            let (tensor, shape) = about();
            return Err(Fault::TensorRows { tensor, shape, sequences: sequences as u64 }.into());
        }
        // rows without entries take no bytes: the file would not limit their number
        if sequences as u64 > source.size()? {
            let (tensor, shape) = about();
            return Err(Fault::TensorEmpty { tensor, shape }.into());
        }
    }
    let mut numbers = Numbers::default();
    for row in 0..sequences {
        feeder.place = row as u64 + 1;
        for tensor in &mut tensors {
            let at = |fault: Fault| fault.at(Place::row(row as u64 + 1));
            let per_token = tensor.is_per_token();
            let length = match (&offsets, tensor.shape.len()) {
                (_, 2) => tensor.shape[1],
                (Some(offsets), 1) if per_token => offsets[row + 1] - offsets[row],
                (_, 0) if row > 0 => continue,
                _ => 1,
            };
            let flat = tensor.shape.len() < 2 && !(offsets.is_some() && per_token);
            let Some(found) = tensor.found else { continue };
            feeder.begin(found);
            numbers.read(&mut tensor.bytes, &tensor.kind, length, feeder).map_err(at)?;
            match (found.field, flat) {
                (field, true) => numbers.out.iter().try_for_each(|x| feeder.scalar(field, *x)).map_err(at)?,
                (Field::Column(column), false) => {
                    feeder.reserve(column, length).map_err(at)?;
                    feeder.numbers(column).extend(&numbers.out);
                    feeder.row_added(column, length).map_err(at)?;
                }
                (Field::Mask, false) => {
                    if let Some(x) = numbers.out.iter().find(|x| **x != 0.0 && **x != 1.0) {
                        return Err(at(Fault::NotAMask { found: x.to_string() }));
                    }
                    feeder.reserve_mask(length).map_err(at)?;
                    feeder.mask().extend(numbers.out.iter().map(|x| *x == 1.0));
                    feeder.mask_added(length).map_err(at)?;
                }
                (Field::Id, false) => {
                    feeder.check_buffer("the ids of tokens", 32 * length as u64).map_err(at)?;
                    let mut texts = TextList::default();
                    numbers.out.iter().for_each(|id| texts.push(&format!("#{id}")));
                    feeder.texts_added(Field::Id, texts).map_err(at)?;
                }
                _ => {}
            }
        }
        feeder.end().map_err(|fault| fault.at(Place::row(row as u64 + 1)))?;
    }
    Ok(())
}

/// Whether a file without an extension may be safetensors: the length of a header, then the header.
pub(crate) fn begins(start: &[u8]) -> bool {
    let Some((length, header)) = start.split_first_chunk() else { return false };
    u64::from_le_bytes(*length) <= LONGEST_HEADER && header.first() == Some(&b'{')
}

fn open(source: &Arc<dyn Source>, feeder: &mut Feeder<'_>) -> Result<Vec<Tensor>, Fault> {
    let foreign = |reason: &str| Fault::NotTensors { reason: reason.into() };
    let size = source.size()?;
    let length = exactly(&**source, 0, 8).map_err(|_| foreign("too short"))?;
    let length = length.first_chunk().map_or(0, |length| u64::from_le_bytes(*length));
    if length > LONGEST_HEADER || length > size.saturating_sub(8) {
        return Err(foreign("the header is longer than the file"));
    }
    feeder.check_buffer("the header", length * PER_HEADER_BYTE)?;
    let header = exactly(&**source, 8, length as usize)?;
    let header: Map<String, Value> =
        serde_json::from_slice(&header).map_err(|error| foreign(&format!("the header is not valid JSON ({error})")))?;
    let mut tensors: Vec<Tensor> = Vec::new();
    let mut ranges: Vec<(u64, u64, &str)> = Vec::new();
    for (name, about) in header.iter().filter(|(name, _)| *name != "__metadata__") {
        let list = |key: &str| -> Option<Vec<u64>> { about[key].as_array()?.iter().map(Value::as_u64).collect() };
        let range = list("data_offsets");
        if let Some([from, to]) = range.as_deref() {
            ranges.push((*from, *to, name));
        }
        let found = feeder.matching(name);
        if found.is_none() && name != "cu_seqlens" {
            feeder.ignore(name, about["shape"].as_array().is_some_and(|shape| shape.len() == 1));
            continue;
        }
        let tensor = || excerpt(name);
        let wrong = || Fault::TensorEntry { tensor: tensor() };
        let kind = about["dtype"].as_str().ok_or_else(wrong)?.to_string();
        let shape = list("shape").ok_or_else(wrong)?;
        let shape: Vec<usize> =
            shape.iter().map(|size| usize::try_from(*size)).collect::<Result<_, _>>().map_err(|_| wrong())?;
        let Some([from, to]) = range.as_deref() else { return Err(wrong()) };
        let width = width(&kind).ok_or_else(|| Fault::TensorKind { tensor: tensor(), kind: excerpt(&kind) })?;
        let count = shape.iter().try_fold(width, |count, size| count.checked_mul(*size)).ok_or_else(wrong)?;
        if to.checked_sub(*from) != Some(count as u64) || to.checked_add(8 + length).is_none_or(|end| end > size) {
            return Err(Fault::TensorCut { tensor: tensor() });
        }
        if shape.len() > 2 {
            return Err(Fault::TensorShape { tensor: tensor(), shape: format!("{shape:?}") });
        }
        feeder.buffered += BUFFER as u64;
        feeder.check_buffer("the tensors of the file", 0)?;
        let bytes = BufReader::with_capacity(BUFFER, Tail { source: Arc::clone(source), at: 8 + length + from });
        tensors.push(Tensor { name: name.clone(), found, kind, shape, bytes });
    }
    ranges.sort_unstable();
    if let Some(pair) = ranges.windows(2).find(|pair| pair[0].1 > pair[1].0 && pair[1].0 < pair[1].1) {
        return Err(Fault::TensorsOverlap { tensor: excerpt(pair[0].2), other: excerpt(pair[1].2) });
    }
    Ok(tensors)
}

fn offsets(tensor: &mut Tensor, feeder: &Feeder<'_>) -> Result<Vec<usize>, Fault> {
    let [count] = tensor.shape[..] else { return Err(Fault::Offsets {}) };
    let mut numbers = Numbers::default();
    numbers.read(&mut tensor.bytes, &tensor.kind, count, feeder)?;
    let whole = |x: &f64| (*x >= 0.0 && x.fract() == 0.0 && *x < f64::from(u32::MAX)).then_some(*x as usize);
    let offsets: Vec<usize> = numbers.out.iter().map(whole).collect::<Option<_>>().ok_or(Fault::Offsets {})?;
    if offsets.first() != Some(&0) || offsets.windows(2).any(|pair| pair[0] > pair[1]) {
        return Err(Fault::Offsets {});
    }
    Ok(offsets)
}

fn width(kind: &str) -> Option<usize> {
    Some(match kind {
        "F64" | "I64" | "U64" => 8,
        "F32" | "I32" | "U32" => 4,
        "F16" | "BF16" | "I16" | "U16" => 2,
        "I8" | "U8" | "BOOL" => 1,
        _ => return None,
    })
}

/// The numbers of a row, and the bytes they are made of.
#[derive(Default)]
struct Numbers {
    out: Vec<f64>,
    read: Vec<u8>,
}

impl Numbers {
    /// Reads the next numbers of a kind.
    fn read(&mut self, bytes: &mut impl Read, kind: &str, length: usize, feeder: &Feeder<'_>) -> Result<(), Fault> {
        let width = width(kind).unwrap_or(1);
        if length > self.out.capacity() {
            feeder.check_buffer("a row of a tensor", (length as u64).saturating_mul(8 + width as u64))?;
        }
        self.out.resize(length, 0.0);
        self.read.resize(width * length, 0);
        bytes.read_exact(&mut self.read)?;
        convert(kind, &self.read, &mut self.out);
        Ok(())
    }
}

fn convert(kind: &str, read: &[u8], out: &mut [f64]) {
    let width = width(kind).unwrap_or(1);
    macro_rules! each {
        ($type:ty, $x:ident => $number:expr) => {
            for (slot, part) in out.iter_mut().zip(read.chunks_exact(width)) {
                let mut whole = [0; size_of::<$type>()];
                whole.copy_from_slice(part);
                let $x = <$type>::from_le_bytes(whole);
                *slot = $number;
            }
        };
    }
    match kind {
        "F64" => each!(f64, x => x),
        "F32" => each!(f32, x => f64::from(x)),
        "F16" => each!(f16, x => x.to_f64()),
        "BF16" => each!(bf16, x => x.to_f64()),
        "I64" => each!(i64, x => x as f64),
        "U64" => each!(u64, x => x as f64),
        "I32" => each!(i32, x => f64::from(x)),
        "U32" => each!(u32, x => f64::from(x)),
        "I16" => each!(i16, x => f64::from(x)),
        "U16" => each!(u16, x => f64::from(x)),
        "I8" => each!(i8, x => f64::from(x)),
        _ => each!(u8, x => f64::from(x)),
    }
}
