//! verl's strings.

use tokenwise::rollout::{RejectionOption, WeightBound};

/// The option's place in the list, the lower and the upper bound, concatenated.
pub(crate) fn parse_rejection(options: &str, thresholds: &str) -> Vec<f64> {
    let thresholds: Vec<&str> = thresholds.split(',').collect();
    let mut names: Vec<&str> = Vec::new();
    for name in options.split(',').map(str::trim).filter(|name| !name.is_empty()) {
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let mut out = Vec::new();
    for (index, name) in names.iter().enumerate() {
        let threshold = thresholds[if thresholds.len() == 1 { 0 } else { index }];
        let numbers: Vec<f64> = threshold.split('_').map(|part| part.trim().parse().unwrap_or(f64::NAN)).collect();
        let upper = numbers[numbers.len() - 1];
        let lower = match (name.ends_with("k1"), numbers.len()) {
            (true, 2) => numbers[0],
            (true, _) => 1.0 / upper,
            (false, _) => 0.0,
        };
        let place = RejectionOption::ALL.iter().position(|option| option.name() == *name);
        out.extend([place.map_or(f64::NAN, |place| place as f64), lower, upper]);
    }
    out
}

/// One number truncates, two are a band.
pub(crate) fn parse_weight_bound(threshold: &str) -> WeightBound {
    let numbers: Vec<f64> = threshold.split('_').map(|part| part.trim().parse().unwrap_or(f64::NAN)).collect();
    match numbers[..] {
        [lower, upper] => WeightBound::Zero { lower, upper },
        _ => WeightBound::Truncate { upper: numbers[0] },
    }
}
