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
