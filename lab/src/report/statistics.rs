//! Means, deviations and tests over seeds.

use serde::Serialize;
use tokenwise::math::sqrt;

/// Sum, from left to right.
pub(crate) fn sum(values: impl IntoIterator<Item = f64>) -> f64 {
    values.into_iter().fold(0.0, |sum, x| sum + x)
}

/// NaN without values.
pub(crate) fn mean(values: &[f64]) -> f64 {
    sum(values.iter().copied()) / values.len() as f64
}

/// Standard deviation with divisor n − 1; `None` for fewer than two values.
pub(crate) fn deviation(values: &[f64]) -> Option<f64> {
    if values.len() < 2 {
        return None;
    }
    let mean = mean(values);
    let squares = sum(values.iter().map(|x| (x - mean) * (x - mean)));
    Some(sqrt(squares / (values.len() - 1) as f64))
}

/// The middle value, or the mean of the two in the middle; NaN without values.
pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    match sorted.len() {
        0 => f64::NAN,
        n if n % 2 == 1 => sorted[n / 2],
        n => 0.5 * (sorted[n / 2 - 1] + sorted[n / 2]),
    }
}

/// Area under a curve over an axis from 0 to 1, by trapezoids: for equal distances nearly the mean.
pub(crate) fn area(values: &[f64]) -> f64 {
    match values {
        [] => f64::NAN,
        [only] => *only,
        [first, .., last] => (sum(values.iter().copied()) - 0.5 * (first + last)) / (values.len() - 1) as f64,
    }
}

/// Least squares of `values` over an axis from 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Line {
    /// Change over the whole axis.
    pub(crate) slope: f64,
    /// Standard deviation of what is left (divisor n − 2): how much the curve swings around its trend.
    pub(crate) residual: f64,
}

/// `None` for fewer than three values.
pub(crate) fn line(values: &[f64]) -> Option<Line> {
    let n = values.len();
    if n < 3 {
        return None;
    }
    let centre = mean(values);
    let place = |index: usize| index as f64 / (n - 1) as f64 - 0.5;
    let over = sum((0..n).map(|i| place(i) * place(i)));
    let slope = sum(values.iter().enumerate().map(|(i, y)| place(i) * (y - centre))) / over;
    let squares = sum(values.iter().enumerate().map(|(i, y)| {
        let left = y - centre - slope * place(i);
        left * left
    }));
    Some(Line { slope, residual: sqrt(squares / (n - 2) as f64) })
}

/// Paired tests of differences, one per seed, against zero.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Paired {
    /// Number of pairs.
    pub(crate) pairs: usize,
    /// Mean difference.
    pub(crate) mean: f64,
    /// Standard deviation of the differences, divisor n − 1.
    pub(crate) deviation: Option<f64>,
    /// Student's t; `None` for fewer than two pairs or equal differences.
    pub(crate) t: Option<f64>,
    /// Two-sided p of the t test.
    pub(crate) t_p: Option<f64>,
    /// Two-sided p of the sign-flip test.
    pub(crate) flip_p: f64,
    /// p of the sign-flip test for a mean above zero.
    pub(crate) flip_p_greater: f64,
    /// p of the sign-flip test for a mean below zero.
    pub(crate) flip_p_less: f64,
}

/// Flipping every subset of signs takes 2ⁿ sums.
const MOST_PAIRS: usize = 20;

/// Paired t test and exact sign-flip test; `None` without pairs, with more than twenty, or with a difference that is
/// not finite.
pub(crate) fn paired(differences: &[f64]) -> Option<Paired> {
    let n = differences.len();
    if n == 0 || n > MOST_PAIRS || differences.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let centre = mean(differences);
    let deviation = deviation(differences);
    // differences that are equal but for rounding have no t
    let t = deviation.filter(|s| *s > 1e-12 * centre.abs()).map(|s| centre / (s / sqrt(n as f64)));
    let observed = sum(differences.iter().copied());
    // sums that are equal but for rounding count as equal
    let slack = 1e-12 * sum(differences.iter().map(|x| x.abs()));
    let (mut greater, mut less, mut extreme) = (0_u32, 0_u32, 0_u32);
    for flips in 0..1_u32 << n {
        let flipped = sum(differences.iter().enumerate().map(|(i, x)| if flips >> i & 1 == 1 { -x } else { *x }));
        greater += u32::from(flipped >= observed - slack);
        less += u32::from(flipped <= observed + slack);
        extreme += u32::from(flipped.abs() >= observed.abs() - slack);
    }
    let share = |count: u32| f64::from(count) / f64::from(1_u32 << n);
    Some(Paired {
        pairs: n,
        mean: centre,
        deviation,
        t,
        t_p: t.map(|t| two_sided(t, n - 1)),
        flip_p: share(extreme),
        flip_p_greater: share(greater),
        flip_p_less: share(less),
    })
}

/// Two-sided p of Student's t: the finite sums for whole degrees of freedom, Abramowitz and Stegun 26.7.3 and 26.7.4.
fn two_sided(t: f64, freedom: usize) -> f64 {
    let nu = freedom as f64;
    let angle = (t.abs() / sqrt(nu)).atan();
    let (sine, cosine) = (angle.sin(), angle.cos());
    let inside = if freedom.is_multiple_of(2) {
        // 1 + 1/2 cos² + (1·3)/(2·4) cos⁴ + … up to cos^(ν−2)
        let (mut term, mut series) = (1.0, 1.0);
        for k in 1..freedom / 2 {
            term *= cosine * cosine * (2 * k - 1) as f64 / (2 * k) as f64;
            series += term;
        }
        sine * series
    } else {
        // cos + 2/3 cos³ + (2·4)/(3·5) cos⁵ + … up to cos^(ν−2)
        let mut series = 0.0;
        let mut term = cosine;
        for k in 0..freedom / 2 {
            if k > 0 {
                term *= cosine * cosine * (2 * k) as f64 / (2 * k + 1) as f64;
            }
            series += term;
        }
        (angle + sine * series) * std::f64::consts::FRAC_2_PI
    };
    (1.0 - inside).clamp(0.0, 1.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(got: f64, wanted: f64) {
        assert!((got - wanted).abs() <= 1e-12 * wanted.abs().max(1.0), "{got} is not {wanted}");
    }

    /// `2 * scipy.stats.t.sf(abs(t), n)` of SciPy 1.17.1.
    #[test]
    fn the_t_distribution_is_that_of_scipy() {
        let cases = [
            (2.5, 1, 0.242_237_883_181_686_82),
            (2.5, 2, 0.129_611_720_221_510_82),
            (2.5, 3, 0.087_706_647_008_065_56),
            (2.5, 4, 0.066_766_544_811_988_14),
            (2.5, 7, 0.040_992_218_585_752_89),
            (-0.3, 9, 0.770_990_703_741_524_8),
            (12.0, 4, 0.000_276_428_548_502_973),
        ];
        for (t, freedom, wanted) in cases {
            close(two_sided(t, freedom), wanted);
        }
    }

    /// `scipy.stats.ttest_1samp(d, 0)` and `scipy.stats.permutation_test(…, permutation_type="samples")` over all
    /// 32 sign flips, SciPy 1.17.1.
    #[test]
    fn the_paired_tests_are_those_of_scipy() {
        let got = paired(&[0.012, -0.004, 0.021, 0.009, 0.015]).unwrap();
        close(got.t.unwrap(), 2.551_440_644_555_208);
        close(got.t_p.unwrap(), 0.063_208_777_770_336_61);
        assert_eq!((got.flip_p, got.flip_p_greater, got.flip_p_less), (0.125, 0.0625, 0.96875));
        let got = paired(&[-0.5, -0.4, -0.6, -0.2, -0.3]).unwrap();
        close(got.t.unwrap(), -5.656_854_249_492_381);
        close(got.t_p.unwrap(), 0.004_812_678_330_044_22);
        assert_eq!((got.flip_p_less, got.flip_p), (0.03125, 0.0625));
    }

    #[test]
    fn tests_of_nothing_say_nothing() {
        assert_eq!(paired(&[]), None);
        assert_eq!(paired(&[1.0, f64::NAN]), None);
        assert_eq!(paired(&[1.0; 21]), None);
        let one = paired(&[1.0]).unwrap();
        assert_eq!((one.t, one.flip_p, one.flip_p_greater), (None, 1.0, 0.5));
        assert_eq!(paired(&[0.0, 0.0]).unwrap().flip_p, 1.0);
        assert_eq!(paired(&[2.0, 2.0]).unwrap().t, None);
    }

    /// `scipy.stats.linregress` and `scipy.integrate.trapezoid`, SciPy 1.17.1.
    #[test]
    fn lines_and_areas() {
        let values = [1.0, 3.0, 2.0, 5.0, 4.0];
        let got = line(&values).unwrap();
        close(got.slope, 3.2);
        close(got.residual, 1.095_445_115_010_332_1);
        close(area(&values), 3.125);
        assert_eq!(line(&[1.0, 2.0]), None);
        assert_eq!((area(&[2.0]), median(&[3.0, 1.0, 2.0, 10.0])), (2.0, 2.5));
        assert!(area(&[]).is_nan() && mean(&[]).is_nan());
        close(deviation(&[1.0, 2.0, 4.0]).unwrap(), 1.527_525_231_651_946_8);
    }
}
