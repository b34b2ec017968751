//! Words in two languages, and how numbers are printed.

use serde::Serialize;

/// The same sentence in English and Chinese.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub(crate) struct Text {
    pub(crate) en: String,
    pub(crate) zh: String,
}

impl Text {
    pub(crate) fn new(en: impl Into<String>, zh: impl Into<String>) -> Self {
        Self { en: en.into(), zh: zh.into() }
    }

    /// The same in both languages: names and numbers.
    pub(crate) fn same(text: impl Into<String>) -> Self {
        let text = text.into();
        Self { en: text.clone(), zh: text }
    }

    /// Both languages as HTML; the style sheet shows one of them.
    pub(crate) fn html(&self) -> String {
        if self.en == self.zh {
            return escape(&self.en);
        }
        format!("<span lang=\"en\">{}</span><span lang=\"zh\">{}</span>", escape(&self.en), escape(&self.zh))
    }

    /// This text and then that one.
    pub(crate) fn then(mut self, next: &Self) -> Self {
        if !self.en.is_empty() {
            self.en.push(' ');
        }
        self.en += &next.en;
        self.zh += &next.zh;
        self
    }
}

/// Text for HTML and SVG, also inside of attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Three significant digits; a minus sign instead of a hyphen, exponents below 0.001 and from 100 000 on.
pub(crate) fn number(x: f64) -> String {
    let text = if x.is_nan() {
        return "–".into();
    } else if x.is_infinite() {
        "∞".into()
    } else if x == 0.0 {
        return "0".into();
    } else if x.abs() < 0.000_999_5 || x.abs() >= 99_999.5 {
        let text = format!("{:.1e}", x.abs());
        let (mantissa, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        format!("{mantissa}·10{}", superscript(exponent))
    } else {
        let decimals = match x.abs() {
            x if x < 0.009_995 => 5,
            x if x < 0.099_95 => 4,
            x if x < 9.995 => 3,
            x if x < 99.95 => 2,
            x if x < 999.5 => 1,
            _ => 0,
        };
        format!("{:.decimals$}", x.abs())
    };
    if x < 0.0 {
        format!("−{text}")
    } else {
        text
    }
}

/// The sign is always printed.
pub(crate) fn signed(x: f64) -> String {
    if x > 0.0 {
        format!("+{}", number(x))
    } else {
        number(x)
    }
}

/// `mean ± deviation`, without the deviation where there is none.
pub(crate) fn plus_minus(mean: f64, deviation: Option<f64>) -> String {
    match deviation {
        Some(deviation) => format!("{} ± {}", number(mean), number(deviation)),
        None => number(mean),
    }
}

/// A share as a percentage.
pub(crate) fn percent(share: f64) -> String {
    match share * 100.0 {
        x if x.is_nan() => "–".into(),
        x if x > 0.0 && x < 0.1 => format!("{x:.2} %"),
        x if x < 10.0 => format!("{x:.1} %"),
        x => format!("{x:.0} %"),
    }
}

/// A number of seeds.
pub(crate) fn seeds(count: usize) -> String {
    if count == 1 {
        "1 seed".into()
    } else {
        format!("{count} seeds")
    }
}

/// A probability of a test.
pub(crate) fn probability(p: f64) -> String {
    if p < 0.001 {
        "< 0.001".into()
    } else {
        format!("{p:.3}")
    }
}

fn superscript(exponent: &str) -> String {
    let digit = |sign| match sign {
        '-' => '⁻',
        '0' => '⁰',
        '1' => '¹',
        '2' => '²',
        '3' => '³',
        '4' => '⁴',
        '5' => '⁵',
        '6' => '⁶',
        '7' => '⁷',
        '8' => '⁸',
        _ => '⁹',
    };
    exponent.chars().map(digit).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_sign() {
        let cases = [
            (0.0, "0"),
            (0.123_45, "0.123"),
            (-1.5, "−1.500"),
            (0.001, "0.00100"),
            (0.000_12, "1.2·10⁻⁴"),
            (12.345, "12.35"),
            (999.96, "1000"),
            (1e9, "1.0·10⁹"),
            (f64::NAN, "–"),
        ];
        for (x, wanted) in cases {
            assert_eq!(number(x), wanted);
        }
        assert_eq!((signed(0.5).as_str(), signed(-0.5).as_str()), ("+0.500", "−0.500"));
        assert_eq!(
            (percent(0.05).as_str(), percent(0.5).as_str(), percent(1e-4).as_str()),
            ("5.0 %", "50 %", "0.01 %")
        );
    }

    #[test]
    fn both_languages_are_there_and_marked_up() {
        assert_eq!(Text::same("a < b").html(), "a &lt; b");
        assert_eq!(Text::new("a", "甲").html(), "<span lang=\"en\">a</span><span lang=\"zh\">甲</span>");
    }
}
