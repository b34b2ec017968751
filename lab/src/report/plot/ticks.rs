//! Round numbers on an axis.

/// Ticks at multiples of 1, 2 or 5 times a power of ten, and a scale that begins and ends at one or at the data.
pub(super) fn ticks(low: f64, high: f64, wanted: usize) -> Vec<f64> {
    let rough = (high - low) / wanted as f64;
    let mut power = 1.0;
    while power > rough {
        power /= 10.0;
    }
    while power * 10.0 <= rough {
        power *= 10.0;
    }
    let step =
        [1.0, 2.0, 5.0, 10.0].map(|k| k * power).into_iter().find(|step| *step >= rough * 0.999).unwrap_or(power);
    let (first, last) = ((low / step - 1e-9).ceil() as i64, (high / step + 1e-9).floor() as i64);
    (first..=last).map(|k| k as f64 * step).collect()
}

/// Labels of ticks with as many decimals as their distance needs, and a common power of ten for very small or large ones.
pub(super) fn tick_labels(ticks: &[f64]) -> (Vec<String>, Option<String>) {
    let most = ticks.iter().fold(0.0_f64, |most, x| most.max(x.abs()));
    let mut exponent = 0;
    let mut scaled = most;
    while scaled > 0.0 && scaled < 0.01 && exponent > -300 {
        scaled *= 1000.0;
        exponent -= 3;
    }
    while scaled >= 10_000.0 && exponent < 300 {
        scaled /= 1000.0;
        exponent += 3;
    }
    let factor = if most > 0.0 { scaled / most } else { 1.0 };
    let step = ticks.windows(2).map(|pair| (pair[1] - pair[0]) * factor).fold(1.0_f64, f64::min);
    let mut decimals = 0;
    let mut left = step;
    while left < 0.999 && decimals < 6 {
        left *= 10.0;
        decimals += 1;
    }
    let label = |x: &f64| {
        let x = x * factor;
        let text = format!("{:.decimals$}", x.abs());
        if x < 0.0 && text.chars().any(|c| c.is_ascii_digit() && c != '0') {
            format!("−{text}")
        } else {
            text
        }
    };
    let power = (exponent != 0).then(|| format!("·{}", power_of_ten(exponent)));
    (ticks.iter().map(label).collect(), power)
}

/// 10⁻³, or 0.1, 1 and 10 as they are.
pub(super) fn power_of_ten(exponent: i32) -> String {
    let digits = "⁰¹²³⁴⁵⁶⁷⁸⁹";
    let raised = |c: char| c.to_digit(10).and_then(|d| digits.chars().nth(d as usize)).unwrap_or('⁻');
    match exponent {
        -1 => "0.1".into(),
        0 => "1".into(),
        1 => "10".into(),
        _ => format!("10{}", exponent.to_string().chars().map(raised).collect::<String>()),
    }
}

/// A power of ten as a percentage.
pub(super) fn percents(exponent: i32) -> String {
    match exponent {
        -2 => "1 %".into(),
        -1 => "10 %".into(),
        0 => "100 %".into(),
        _ => format!("0.{}1 %", "0".repeat((-3 - exponent).max(0) as usize)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_their_labels_short() {
        assert_eq!(ticks(0.0, 1000.0, 5), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        let small = ticks(0.0, 0.000_9, 4);
        let (labels, power) = tick_labels(&small);
        assert_eq!((labels.join(" "), power.as_deref()), ("0.0 0.5".into(), Some("·10⁻³")));
        let (labels, power) = tick_labels(&ticks(-0.02, 0.05, 4));
        assert_eq!((labels.join(" "), power), ("−0.02 0.00 0.02 0.04".into(), None));
        assert_eq!([-4, -3, -1].map(percents), ["0.01 %", "0.1 %", "10 %"]);
        assert_eq!([-5, 0, 2].map(power_of_ten), ["10⁻⁵", "1", "10²"]);
        for k in 0..200 {
            let high = f64::from(k) * 0.37 + 1e-3;
            assert!((2..=7).contains(&ticks(0.0, high, 4).len()), "{high}");
        }
    }
}
