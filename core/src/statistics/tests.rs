use approx::{assert_abs_diff_eq, assert_relative_eq};

use super::*;
use crate::{Layout, Mask};

fn moments(values: &[f64]) -> Moments {
    let keep = vec![true; values.len()];
    let layout = Layout::padded(1, values.len()).unwrap();
    Moments::of(&Batch::new(layout, Mask::new(&keep)).unwrap(), values).unwrap()
}

#[test]
fn merged_shards_equal_the_whole() {
    let values: Vec<f64> = (0..100).map(|i| f64::from(i * i % 37) - 1e6).collect();
    let whole = moments(&values);
    let mut merged = Moments::default();
    for shard in values.chunks(17) {
        merged.merge(&moments(shard));
    }
    assert_eq!(merged.count, whole.count);
    assert_abs_diff_eq!(merged.mean, whole.mean, epsilon = 1e-9);
    assert_relative_eq!(merged.m2, whole.m2, max_relative = 1e-12);
}

#[test]
fn errors_name_the_need() {
    let none = Moments::default();
    assert_eq!(none.mean_by(Divisor::Count), Err(Error::EmptyMask));
    let one = moments(&[3.0]);
    assert_eq!(
        one.variance(Spread::Sample, Divisor::Count),
        Err(Error::TooFew { what: "variance", needed: 2, got: 1 })
    );
    assert_eq!(one.variance(Spread::Population, Divisor::Count), Ok(0.0));
    assert_eq!(one.mean_by(Divisor::CountPlusEpsilon), Ok(3.0 / (1.0 + 1e-8)));
}

#[test]
fn sums_near_the_largest_float_overflow_as_documented() {
    assert_eq!(moments(&[1e308; 4]).mean, f64::INFINITY);
    let wide = moments(&[1e155, -1e155]);
    assert_eq!((wide.mean, wide.m2), (0.0, f64::INFINITY));
    let within = moments(&[1e153, -1e153]);
    assert_eq!(within.mean, 0.0);
    assert_relative_eq!(within.m2, 2e306, max_relative = 1e-15);
    let batch = Batch::new(Layout::padded(1, 4).unwrap(), Mask::new(&[true; 4])).unwrap();
    let single = Moments::of(&batch, &[f32::MAX, -f32::MAX, f32::MAX, f32::MAX]).unwrap();
    let largest = f64::from(f32::MAX);
    assert_relative_eq!(single.mean, largest / 2.0, max_relative = 1e-15);
    assert_relative_eq!(single.m2, 3.0 * largest * largest, max_relative = 1e-15);
}
