//! Ticks at round numbers.

use super::tick_label;

/// An axis from the lowest to the highest value.
pub(super) struct Axis {
    low: f64,
    high: f64,
    tick: f64,
}

impl Axis {
    /// With about `count` ticks; `whole` for steps, which have no fractions.
    pub(super) fn new(values: impl Iterator<Item = f64>, count: f64, whole: bool) -> Self {
        let (mut low, mut high) = (f64::INFINITY, f64::NEG_INFINITY);
        for value in values.filter(|value| value.is_finite()) {
            low = low.min(value);
            high = high.max(value);
        }
        if low > high {
            (low, high) = (0.0, 1.0);
        }
        if high - low <= f64::EPSILON * low.abs().max(high.abs()) || low == high {
            let room = if whole { 1.0 } else { (low.abs() * 0.1).max(1e-9) };
            (low, high) = (low - room, high + room);
            if whole && low < 0.0 {
                low = 0.0;
            }
        }
        let raw = (high - low) / count;
        let size = power(raw.log10().floor());
        let factor = [1.0, 2.0, 5.0, 10.0].into_iter().find(|factor| raw <= factor * size).unwrap_or(10.0);
        let tick = if whole { (factor * size).max(1.0).round() } else { factor * size };
        if whole {
            return Self { low, high, tick };
        }
        Self { low: (low / tick).floor() * tick, high: (high / tick).ceil() * tick, tick }
    }

    /// Where a value is, from 0 to 1.
    pub(super) fn share(&self, value: f64) -> f64 {
        ((value - self.low) / (self.high - self.low)).clamp(0.0, 1.0)
    }

    pub(super) fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        let first = (self.low / self.tick).ceil();
        let count = ((self.high - self.low) / self.tick).floor().clamp(0.0, 50.0) as u32;
        let all = (0..=count).map(move |index| (first + f64::from(index)) * self.tick);
        all.filter(|tick| *tick <= self.high * (1.0 + 1e-12) + 1e-300)
    }

    /// Without the rounding errors of adding ticks.
    pub(super) fn label(&self, tick: f64) -> String {
        if tick.abs() < self.tick * 1e-6 {
            return "0".into();
        }
        tick_label(tick)
    }
}

/// 10^x for a whole x.
#[allow(clippy::disallowed_methods, reason = "a picture, not a result")]
fn power(exponent: f64) -> f64 {
    10_f64.powi(exponent.clamp(-300.0, 300.0) as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_steps_are_whole() {
        let ticks =
            |values: &[f64], whole| -> Vec<f64> { Axis::new(values.iter().copied(), 5.0, whole).ticks().collect() };
        assert_eq!(ticks(&[1.0, 3.0], true), [1.0, 2.0, 3.0]);
        assert_eq!(ticks(&[1.0], true), [0.0, 1.0, 2.0]);
        assert_eq!(ticks(&[0.0, 1000.0], true), [0.0, 200.0, 400.0, 600.0, 800.0, 1000.0]);
        assert_eq!(ticks(&[0.0, 1.0], false).len(), 6);
        assert!(ticks(&[2.5, 2.5], false).len() > 2);
        assert!(ticks(&[1e15, 1e15 + 3.0], true).iter().all(|tick| tick.fract() == 0.0));
    }
}
