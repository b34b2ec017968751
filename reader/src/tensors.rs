//! safetensors: tensors with the names of the fields, `[batch, len]` or packed with `cu_seqlens`; each is read row by
//! row.

use std::io::{BufReader, Read};

use half::{bf16, f16};
use serde_json::{Map, Value};

use crate::{
    fault::{Error, Fault, Place},
    feeder::Feeder,
    fields::Field,
    source::Source,
};

/// The format's own limit.
const LONGEST_HEADER: u64 = 100_000_000;

struct Tensor {
    name: String,
    field: Option<Field>,
    kind: String,
    shape: Vec<usize>,
    bytes: BufReader<Box<dyn Read>>,
}

pub(crate) fn read<S: Source>(source: &S, feeder: &mut Feeder<'_>) -> Result<(), Error> {
    let mut tensors = open(source, feeder)?;
    let offsets = match tensors.iter().position(|tensor| tensor.name == "cu_seqlens") {
        Some(index) => Some(offsets(&mut tensors[index])?),
        None => None,
    };
    tensors.retain(|tensor| tensor.field.is_some());
    let token = |tensor: &Tensor| matches!(tensor.field, Some(Field::Column(_) | Field::Mask | Field::Id));
    let shaped = tensors.iter().find(|tensor| token(tensor) && tensor.shape.len() == 2);
    let sequences = match (&offsets, shaped) {
        (Some(offsets), _) => offsets.len() - 1,
        (None, Some(tensor)) => tensor.shape[0],
        (None, None) => tensors.iter().find(|tensor| tensor.shape.len() == 1).map_or(0, |tensor| tensor.shape[0]),
    };
    for tensor in &tensors {
        let first = tensor.shape.first().copied().unwrap_or(0);
        let packed =
            offsets.as_ref().and_then(|offsets| offsets.last()).is_some_and(|total| *total == first) && token(tensor);
        if first != sequences && !packed && !tensor.shape.is_empty() {
            let (tensor, shape) = (tensor.name.clone(), format!("{:?}", tensor.shape));
            return Err(Fault::TensorRows { tensor, shape, sequences: sequences as u64 }.into());
        }
    }
    for row in 0..sequences {
        feeder.place = row as u64 + 1;
        for tensor in &mut tensors {
            let at = |fault: Fault| fault.at(Place::row(row as u64 + 1));
            let length = match (&offsets, tensor.shape.len()) {
                (_, 2) => tensor.shape[1],
                (Some(offsets), 1) if token(tensor) => offsets[row + 1] - offsets[row],
                (_, 0) if row > 0 => continue,
                _ => 1,
            };
            let flat = tensor.shape.len() < 2 && !(offsets.is_some() && token(tensor));
            let mut numbers = vec![0.0; length];
            fill(&mut tensor.bytes, &tensor.kind, &mut numbers).map_err(at)?;
            match (tensor.field, flat) {
                (Some(field), true) => numbers.iter().for_each(|x| feeder.scalar(field, *x)),
                (Some(Field::Column(column)), false) => {
                    feeder.numbers(column).extend(&numbers);
                    feeder.row_added(column, length);
                }
                (Some(Field::Mask), false) => {
                    if let Some(x) = numbers.iter().find(|x| **x != 0.0 && **x != 1.0) {
                        return Err(at(Fault::NotAMask { found: x.to_string() }));
                    }
                    feeder.mask().extend(numbers.iter().map(|x| *x == 1.0));
                    feeder.mask_added(length);
                }
                (Some(Field::Id), false) => {
                    feeder.texts_added(Field::Id, numbers.iter().map(|id| format!("#{id}")).collect());
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

fn open<S: Source>(source: &S, feeder: &mut Feeder<'_>) -> Result<Vec<Tensor>, Fault> {
    let foreign = |reason: &str| Fault::NotTensors { reason: reason.into() };
    let mut file = source.open(0)?;
    let size = source.size()?;
    let mut length = [0; 8];
    file.read_exact(&mut length).map_err(|_| foreign("too short"))?;
    let length = u64::from_le_bytes(length);
    if length > LONGEST_HEADER || length > size.saturating_sub(8) {
        return Err(foreign("the header is longer than the file"));
    }
    let mut header = vec![0; length as usize];
    file.read_exact(&mut header)?;
    let header: Map<String, Value> =
        serde_json::from_slice(&header).map_err(|error| foreign(&format!("the header is not JSON ({error})")))?;
    let mut tensors = Vec::new();
    for (name, about) in header.iter().filter(|(name, _)| *name != "__metadata__") {
        let field = feeder.find(name);
        if field.is_none() && name != "cu_seqlens" {
            if about["shape"].as_array().is_some_and(|shape| shape.len() == 1) {
                feeder.pass_over(name);
            }
            continue;
        }
        let tensor = || name.clone();
        let wrong = || Fault::TensorEntry { tensor: tensor() };
        let list = |key: &str| -> Option<Vec<u64>> { about[key].as_array()?.iter().map(Value::as_u64).collect() };
        let kind = about["dtype"].as_str().ok_or_else(wrong)?.to_string();
        let shape: Vec<usize> = list("shape").ok_or_else(wrong)?.iter().map(|size| *size as usize).collect();
        let range = list("data_offsets").ok_or_else(wrong)?;
        let width = width(&kind).ok_or_else(|| Fault::TensorKind { tensor: tensor(), kind: kind.clone() })?;
        let count = shape.iter().try_fold(width, |count, size| count.checked_mul(*size)).ok_or_else(wrong)?;
        let (from, to) = (*range.first().ok_or_else(wrong)?, *range.get(1).ok_or_else(wrong)?);
        if to.checked_sub(from) != Some(count as u64) || to.checked_add(8 + length).is_none_or(|end| end > size) {
            return Err(Fault::TensorCut { tensor: tensor() });
        }
        if shape.len() > 2 {
            return Err(Fault::TensorShape { tensor: tensor(), shape: format!("{shape:?}") });
        }
        let file = source.open(8 + length + from)?;
        tensors.push(Tensor { name: name.clone(), field, kind, shape, bytes: BufReader::with_capacity(1 << 18, file) });
    }
    Ok(tensors)
}

fn offsets(tensor: &mut Tensor) -> Result<Vec<usize>, Fault> {
    let [count] = tensor.shape[..] else { return Err(Fault::Offsets {}) };
    let mut numbers = vec![0.0; count];
    fill(&mut tensor.bytes, &tensor.kind, &mut numbers)?;
    let offsets: Vec<usize> = numbers.iter().map(|x| *x as usize).collect();
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

/// Reads the next numbers of a kind.
fn fill(bytes: &mut impl Read, kind: &str, out: &mut [f64]) -> Result<(), Fault> {
    let width = width(kind).unwrap_or(1);
    let mut read = vec![0; width * out.len()];
    bytes.read_exact(&mut read)?;
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
    Ok(())
}
