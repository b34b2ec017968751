/// The smallest and the largest of some numbers; NaN once one of them is.
#[derive(Clone, Copy)]
pub(crate) struct Extremes {
    pub(crate) min: f64,
    pub(crate) max: f64,
}

impl Extremes {
    pub(crate) const NONE: Self = Self { min: f64::INFINITY, max: f64::NEG_INFINITY };

    #[inline]
    pub(crate) fn add(&mut self, x: f64) {
        // a comparison with NaN is false: the first NaN enters by the second test and stays
        if x < self.min || x.is_nan() {
            self.min = x;
        }
        if x > self.max || x.is_nan() {
            self.max = x;
        }
    }

    /// Takes in the extremes of other numbers.
    #[inline]
    pub(crate) fn merge(&mut self, other: Self) {
        if other.min < self.min || other.min.is_nan() {
            self.min = other.min;
        }
        if other.max > self.max || other.max.is_nan() {
            self.max = other.max;
        }
    }
}
