//! Inputs in the other precision.

use tokenwise_catalogue::{Array, Columns, Number, Value};

/// The columns with their numbers converted.
fn converted<A: Number, B: Number>(columns: &Columns<A>, convert: impl Fn(A) -> B) -> Result<Columns<B>, String> {
    let mut other = Columns::new();
    for (name, array) in columns.iter() {
        match array {
            Array::Real(numbers) => other.set(name, Array::Real(numbers.iter().map(|&x| convert(x)).collect())),
            Array::Double(numbers) => other.set(name, Array::Double(numbers.clone())),
            Array::Index(numbers) => other.set(name, numbers.clone()),
            Array::Count(numbers) => other.set(name, numbers.clone()),
            Array::Flag(flags) => other.set(name, flags.clone()),
            Array::Size(size) => other.set(name, *size),
            Array::Number(number) => other.set(name, Array::Number(*number)),
            Array::Text(text) => other.set(name, Array::Text(text.clone())),
            unknown => return Err(format!("{name}: {unknown:?}")),
        }
    }
    Ok(other)
}

/// The same numbers in `f64`.
///
/// # Errors
///
/// A column of a type that this function does not know.
pub fn wide(columns: &Columns<f32>) -> Result<Columns<f64>, String> {
    converted(columns, f64::from)
}

/// The inputs rounded to `f32`.
pub(crate) fn narrow(columns: &Columns<f64>) -> Result<Columns<f32>, String> {
    converted(columns, |x| x as f32)
}

/// Whether both columns have the same bits; NaN is NaN.
pub(crate) fn same_bits(got: Option<&Array<f32>>, core: &Array<f32>) -> bool {
    match (got, core) {
        (Some(Array::Real(got)), Array::Real(core)) => {
            let same = |(got, core): (&f32, &f32)| got.to_bits() == core.to_bits() || (got.is_nan() && core.is_nan());
            got.len() == core.len() && got.iter().zip(core).all(same)
        }
        (got, core) => got == Some(core),
    }
}

/// The sum of the magnitudes of all kept inputs, which bounds those of any recursion over them.
pub(crate) fn magnitude(keep: &[bool], inputs: &Columns<f32>) -> f64 {
    let mut sum = 0.0;
    for (_, array) in inputs.iter() {
        if let Array::Real(numbers) = array {
            let kept = |slot: usize| numbers.len() != keep.len() || keep[slot];
            for (_, x) in numbers.iter().enumerate().filter(|(slot, _)| kept(*slot)) {
                sum += f64::from(x.abs());
            }
        }
    }
    sum
}

/// The config with `n` in place of `n + 1e-8`, which is `n` in `f32`.
pub(crate) fn in_single(config: &Value) -> Value {
    match config {
        Value::Map(pairs) => Value::Map(pairs.iter().map(|(key, value)| (key.clone(), in_single(value))).collect()),
        Value::Text(text) if text == "count-plus-epsilon" => Value::Text("count".into()),
        other => other.clone(),
    }
}
