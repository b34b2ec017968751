use super::*;
use crate::{Batch, Layout, Mask};

fn total(values: &[f32], keep: &[bool]) -> f64 {
    let layout = Layout::padded(1, values.len()).unwrap();
    let batch = Batch::new(layout, Mask::new(keep)).unwrap();
    let row = batch.rows().next().unwrap();
    let [sum] = fold_row(&row, [values], [], |[x]| ([], [x.widen()]));
    sum
}

#[test]
fn a_mean_of_a_million_is_within_one_ulp_of_f64() {
    // equal values make every rounding error point the same way: the worst case for plain lanes
    for value in [0.1_f32, 1.0 / 3.0, 1e-3, 12345.678] {
        let values = vec![value; if cfg!(miri) { 2_051 } else { 1_000_003 }];
        let mean = (total(&values, &vec![true; values.len()]) / values.len() as f64) as f32;
        assert_eq!(mean, value);
    }
}

#[test]
fn padding_and_poison_change_no_bit() {
    for len in [0, 1, 7, 8, 9, 15, 16, 17, 1023, 1024, 1025, 2050] {
        let mut values: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).fract() - 0.4).collect();
        let mut keep: Vec<bool> = (0..len).map(|i| i % 5 != 3).collect();
        let plain = total(&values, &keep);
        for (value, keep) in values.iter_mut().zip(&keep) {
            if !keep {
                *value = f32::NAN;
            }
        }
        values.extend([f32::INFINITY; 21]);
        keep.extend([false; 21]);
        assert_eq!(plain.to_bits(), total(&values, &keep).to_bits(), "length {len}");
    }
}

#[test]
fn the_compensated_sum_keeps_what_a_plain_one_loses() {
    for sign in [1.0, -1.0] {
        let mut sum = Sum::default();
        for x in [1.0, 1e100, 1.0, -1e100] {
            sum.add(sign * x);
        }
        assert_eq!(sum.value(), sign * 2.0);
    }
    let mut sum = Sum::default();
    sum.add(f64::INFINITY);
    sum.add(1.0);
    assert_eq!(sum.value(), f64::INFINITY);
    sum.add(f64::NEG_INFINITY);
    assert!(sum.value().is_nan());
}

#[test]
fn one_sum_alone_has_the_bits_of_the_engine() {
    for len in [63, 64, 65, 1023, 1024, 1025, 3100] {
        let values: Vec<f32> = (0..len).map(|i| (i as f32 * 0.37).fract() - 0.4).collect();
        for keep in [vec![true; len], (0..len).map(|i| i % 7 != 3).collect()] {
            let batch = Batch::new(Layout::padded(1, len).unwrap(), Mask::new(&keep)).unwrap();
            let row = batch.rows().next().unwrap();
            // squares have more digits than f64 keeps in a sum of a thousand
            let square = |x: f32| x.widen() * x.widen() * 0.1;
            let [engine] = fold_row(&row, [&values], [], |[x]| ([], [square(x)]));
            assert_eq!(sum_row(&row, &values, square).to_bits(), engine.to_bits(), "length {len}");
        }
    }
}
