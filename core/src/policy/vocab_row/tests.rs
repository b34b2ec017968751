use super::*;

#[test]
fn infinite_entries_count_nothing_wherever_they_stand() {
    let inf = f64::NEG_INFINITY;
    let plain = VocabRow::read_squares(&[0.0, 1.0, -2.0], 1.0);
    for holes in [vec![0, 3], vec![1, 700], vec![2, 1500]] {
        let mut logits = vec![inf; holes[1]];
        logits.extend([0.0, 1.0, -2.0]);
        logits.extend(vec![inf; holes[0] * 600]);
        let row = VocabRow::read_squares(&logits, 1.0);
        approx::assert_abs_diff_eq!(row.entropy(), plain.entropy(), epsilon = 1e-15);
        approx::assert_abs_diff_eq!(row.squared_probs(), plain.squared_probs(), epsilon = 1e-15);
    }
    assert!(VocabRow::read(&[inf; 3], 1.0).entropy().is_nan());
    assert!(VocabRow::read(&[0.0, f64::NAN], 1.0).entropy().is_nan());
    assert!(VocabRow::read(&[0.0, f64::INFINITY], 1.0).entropy().is_nan());
}

#[test]
fn a_rising_maximum_rescales() {
    // ascending logits raise the maximum in every block
    let logits: Vec<f64> = (0..3000).map(|i| f64::from(i) * 0.01).collect();
    let mut reversed = logits.clone();
    reversed.reverse();
    let (up, down) = (VocabRow::read_squares(&logits, 1.0), VocabRow::read_squares(&reversed, 1.0));
    approx::assert_relative_eq!(up.entropy(), down.entropy(), max_relative = 1e-13);
    approx::assert_relative_eq!(up.squared_probs(), down.squared_probs(), max_relative = 1e-13);
}

/// ln(1 + rest), and the entropy, of a row with one entry of 0 and `others` of `−distance`.
fn exact(distance: f64, others: f64) -> (f64, f64) {
    let rest = others * libm::exp(-distance);
    let log_sum = libm::log1p(rest);
    (log_sum, log_sum + distance * rest / (1.0 + rest))
}

#[test]
fn nearly_certain_tokens_are_relatively_accurate() {
    // miri needs a second for a row of 2000
    let distances: &[f64] = if cfg!(miri) { &[20.0] } else { &[1.0, 5.0, 15.0, 20.0, 30.0, 60.0] };
    for &distance in distances {
        // the maximum in the first, a middle and the last block, and in one that is not full
        for (len, place) in [(2, 0), (2, 1), (512, 100), (2000, 0), (2000, 1000), (2000, 1999)] {
            let mut logits = vec![-distance; len];
            logits[place] = 0.0;
            let (log_sum, entropy) = exact(distance, (len - 1) as f64);
            let row = VocabRow::read(&logits, 1.0);
            approx::assert_relative_eq!(row.log_prob(0.0), -log_sum, max_relative = 1e-14);
            approx::assert_relative_eq!(row.entropy(), entropy, max_relative = 1e-14);
            let single: Vec<f32> = logits.iter().map(|&z| z as f32).collect();
            let row = VocabRow::read(&single, 1.0_f32);
            approx::assert_relative_eq!(row.log_prob(0.0), -log_sum, max_relative = 1e-6);
            approx::assert_relative_eq!(row.entropy(), entropy, max_relative = 1e-6);
        }
    }
}

#[test]
fn every_block_may_raise_a_dominating_maximum() {
    // the last entry of each block is 30 above everything before it
    let logits: Vec<f32> = (0..5 * BLOCK).map(|i| ((i + 1) / BLOCK) as f32 * 30.0).collect();
    let row = VocabRow::read(&logits, 1.0_f32);
    let (log_sum, _) = exact(30.0, BLOCK as f64);
    approx::assert_relative_eq!(row.log_prob(row.max), -log_sum, max_relative = 1e-6);
}

#[test]
fn several_maxima_are_all_counted() {
    for places in [vec![0, 1], vec![3, 700], vec![600, 601, 1500]] {
        let mut logits = vec![-50.0_f32; 1600];
        places.iter().for_each(|&place| logits[place] = 1.0);
        let row = VocabRow::read(&logits, 1.0_f32);
        approx::assert_relative_eq!(row.sum, places.len() as f64, max_relative = 1e-7);
    }
}

/// A row by short blocks, and by the blocks of long rows.
fn assert_same_bits<R: Real + Logit<Compute = R>>(logits: &[R], scale: R) {
    let (short, long) = (read_short(logits, scale), VocabRow::read_blocks::<R, 3, BLOCK>(logits, scale));
    let numbers = |row: VocabRow<R>| [row.max.widen(), row.rest, row.sum, row.weighted, row.squares];
    let bits = |row| numbers(row).map(|x| if x.is_nan() { 0 } else { x.to_bits() });
    assert_eq!((bits(short), short.near), (bits(long), long.near), "{} entries", logits.len());
}

#[test]
fn short_rows_have_the_bits_of_padded_blocks() {
    let mut state = 1_u32;
    for len in (0..=SHORT).step_by(if cfg!(miri) { 5 } else { 1 }) {
        for round in 0..if cfg!(miri) { 2 } else { 40 } {
            let mut logits = [0.0_f64; SHORT];
            for logit in &mut logits {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                *logit = f64::from(state >> 8) / f64::from(1 << 19) - 16.0;
            }
            // near and far, nearly certain, tied, and special values
            match round % 5 {
                1 => logits[round % len.max(1)] = [f64::NEG_INFINITY, f64::NAN, f64::INFINITY][round / 5 % 3],
                2 => logits.iter_mut().for_each(|logit| *logit *= 50.0),
                3 => logits[round % len.max(1)] = 40.0,
                4 => logits.iter_mut().for_each(|logit| *logit = if *logit > 0.0 { 2.0 } else { f64::NEG_INFINITY }),
                _ => {}
            }
            assert_same_bits(&logits[..len], 1.0);
            assert_same_bits(&logits[..len], 0.7);
            assert_same_bits(&logits.map(|logit| logit as f32)[..len], 1.0);
            assert_same_bits(&logits.map(|logit| logit as f32)[..len], 0.7);
        }
    }
}
