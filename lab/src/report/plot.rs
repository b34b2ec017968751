//! Figures as SVG: lines with bands over steps, histograms as steps on a logarithmic axis, and dots in rows.

use std::fmt::Write;

use super::{
    series::range,
    text::{escape, Text},
};

mod ticks;

use ticks::{percents, power_of_ten, tick_labels, ticks};

const WIDTH: f64 = 420.0;
const LEFT: f64 = 50.0;
const RIGHT: f64 = 18.0;
const BOTTOM: f64 = 36.0;
const PLOT_HEIGHT: f64 = 170.0;
const ROW: f64 = 17.0;
/// The left side of a picture of rows, for their names.
const NAMES: f64 = 150.0;
/// What the classes of a picture look like.
pub(crate) const STYLE: &str = include_str!("plot/style.css");
/// The colours of a picture that stands alone; on the page they follow its theme.
const THEME: &str = include_str!("plot/theme.css");

/// Where a picture is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    /// On the page, in both languages.
    Page,
    /// In a file of its own, in English.
    File,
}

/// A line with an optional band around it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Line {
    pub(crate) name: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// Half the height of the band at each point; empty for none.
    pub(crate) band: Vec<f64>,
    /// A second quantity of the same variant: thin and dotted, and without an entry in the legend.
    pub(crate) second: bool,
}

/// A figure of lines.
#[derive(Clone, Debug)]
pub(crate) struct Chart {
    pub(crate) title: Text,
    pub(crate) x: Text,
    pub(crate) lines: Vec<Line>,
    /// Where the horizontal axis begins and ends; by default with the points.
    pub(crate) range: Option<(f64, f64)>,
    pub(crate) heights: Heights,
}

/// What the vertical axis shows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Heights {
    Linear,
    /// Logarithmic, for what spikes; smaller numbers are drawn at the bottom.
    Log {
        from: f64,
    },
    /// Shares of tokens in bins, logarithmic and drawn as steps.
    Shares,
}

impl Heights {
    /// Where a number lies, before it is scaled.
    fn of(self, y: f64) -> f64 {
        let decades = |x: f64| tokenwise::math::ln(x) / std::f64::consts::LN_10;
        match self {
            Self::Linear => y,
            Self::Log { from } => decades(y.max(from)),
            Self::Shares => decades(y.max(1e-4)),
        }
    }
}

/// A figure of rows, each with a dot per seed and a mark at the mean.
#[derive(Clone, Debug)]
pub(crate) struct Rows {
    pub(crate) title: Text,
    pub(crate) x: Text,
    pub(crate) rows: Vec<(String, Vec<f64>)>,
}

/// A class of the style sheet for a variant: a colour and a dash pattern.
pub(crate) fn class(variant: &str) -> &'static str {
    match variant {
        "C0" => "c0",
        "C0k" => "c0k",
        "C1" => "c1",
        "C2" => "c2",
        "C3" => "c3",
        _ => "cx",
    }
}

struct Svg {
    text: String,
    place: Place,
}

impl Svg {
    fn new(title: &Text, height: f64, place: Place) -> Self {
        let mut text = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"figure\" viewBox=\"0 0 {WIDTH} {height}\" role=\"img\" \
             aria-label=\"{}\">",
            escape(&title.en)
        );
        if place == Place::File {
            let _ = write!(
                text,
                "<style>{THEME}{STYLE}</style><rect class=\"paper\" width=\"{WIDTH}\" height=\"{height}\"/>"
            );
        }
        let mut svg = Self { text, place };
        svg.label(8.0, 18.0, "title", title);
        svg
    }

    fn put(&mut self, text: &str) {
        self.text += text;
    }

    fn label(&mut self, x: f64, y: f64, class: &str, text: &Text) {
        if self.place == Place::File || text.en == text.zh {
            let _ = write!(self.text, "<text x=\"{x:.0}\" y=\"{y:.0}\" class=\"{class}\">{}</text>", escape(&text.en));
            return;
        }
        for (language, text) in [("en", &text.en), ("zh", &text.zh)] {
            let _ = write!(
                self.text,
                "<text lang=\"{language}\" x=\"{x:.0}\" y=\"{y:.0}\" class=\"{class}\">{}</text>",
                escape(text)
            );
        }
    }

    fn line(&mut self, [x1, y1, x2, y2]: [f64; 4], class: &str) {
        let _ =
            write!(self.text, "<line x1=\"{x1:.1}\" y1=\"{y1:.1}\" x2=\"{x2:.1}\" y2=\"{y2:.1}\" class=\"{class}\"/>");
    }

    fn finish(mut self) -> String {
        self.text += "</svg>";
        self.text
    }
}

/// From numbers to places.
#[derive(Clone, Copy)]
struct Scale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl Scale {
    fn place(self, x: f64) -> f64 {
        self.from + (x - self.low) / (self.high - self.low) * (self.to - self.from)
    }
}

/// A path in tenths of a unit, by whole relative moves: short, and precise enough.
fn path(points: &[(f64, f64)]) -> String {
    let mut text = String::new();
    let mut at = (0_i64, 0_i64);
    for (index, (x, y)) in points.iter().enumerate() {
        let (x, y) = ((x * 10.0).round() as i64, (y * 10.0).round() as i64);
        let _ = match index {
            0 => write!(text, "M{x} {y}"),
            1 => write!(text, "l{} {}", x - at.0, y - at.1),
            _ => write!(text, " {} {}", x - at.0, y - at.1),
        };
        at = (x, y);
    }
    text.replace(" -", "-")
}

impl Chart {
    /// `None` without points.
    pub(crate) fn svg(&self, place: Place) -> Option<String> {
        let points = || self.lines.iter().flat_map(|line| &line.points);
        let (x_low, x_high) = self.range.unwrap_or_else(|| range(&points().map(|(x, _)| *x).collect::<Vec<_>>()));
        // what is never negative has no band below 0
        let floor = if points().all(|(_, y)| *y >= 0.0) { 0.0 } else { f64::NEG_INFINITY };
        let around = |line: &Line, index: usize, side: f64| {
            let band = line.band.get(index).copied().unwrap_or(0.0);
            self.heights.of((line.points[index].1 + side * band).max(floor))
        };
        let heights = self.lines.iter().flat_map(|line| {
            (0..line.points.len()).flat_map(move |index| [-1.0, 1.0].map(|side| around(line, index, side)))
        });
        let (mut y_low, mut y_high) = range(&heights.filter(|y| y.is_finite()).collect::<Vec<_>>());
        if !(x_low.is_finite() && y_low.is_finite()) {
            return None;
        }
        // a constant needs room around it; a curve near 0 shows where 0 is
        if y_high - y_low < 1e-12 * y_high.abs().max(1e-12) {
            (y_low, y_high) = (y_low - 0.5 * y_low.abs().max(1e-3), y_high + 0.5 * y_high.abs().max(1e-3));
        } else if self.heights == Heights::Linear && y_low >= 0.0 && y_low < 0.3 * y_high {
            y_low = 0.0;
        }
        let pad = 0.03 * (y_high - y_low);
        (y_low, y_high) = (if y_low == 0.0 { 0.0 } else { y_low - pad }, y_high + pad);

        let (legend, legend_height) = self.legend();
        let top = 34.0 + legend_height;
        let height = top + PLOT_HEIGHT + BOTTOM;
        let x = Scale { low: x_low, high: x_high.max(x_low + 1e-9), from: LEFT, to: WIDTH - RIGHT };
        let y = Scale { low: y_low, high: y_high, from: top + PLOT_HEIGHT, to: top };
        let mut svg = Svg::new(&self.title, height, place);
        svg.put(&legend);
        self.axes(&mut svg, x, y);
        svg.put("<g transform=\"scale(.1)\">");
        for line in &self.lines {
            let at = |i: usize, side: f64| (x.place(line.points[i].0), y.place(around(line, i, side)));
            let n = line.points.len();
            if !line.band.is_empty() {
                let upper = (0..n).map(|i| at(i, 1.0));
                let lower = (0..n).rev().map(|i| at(i, -1.0));
                let outline: Vec<(f64, f64)> = upper.chain(lower).collect();
                svg.put(&format!("<path class=\"band {}\" d=\"{}z\"/>", class(&line.name), path(&outline)));
            }
        }
        for line in &self.lines {
            let mut drawn: Vec<(f64, f64)> =
                line.points.iter().map(|(px, py)| (x.place(*px), y.place(self.heights.of(*py)))).collect();
            if self.heights == Heights::Shares {
                drawn = steps(&drawn);
            }
            let second = if line.second { " second" } else { "" };
            svg.put(&format!("<path class=\"line {}{second}\" d=\"{}\"/>", class(&line.name), path(&drawn)));
        }
        svg.put("</g>");
        Some(svg.finish())
    }

    fn axes(&self, svg: &mut Svg, x: Scale, y: Scale) {
        let (right, bottom) = (WIDTH - RIGHT, y.from);
        let (marks, labels, power) = match self.heights {
            Heights::Linear => {
                let marks = ticks(y.low, y.high, 5);
                let (labels, power) = tick_labels(&marks);
                (marks, labels, power)
            }
            heights => {
                let (low, high) = (y.low.ceil() as i32, y.high.floor() as i32);
                // not more than six
                let step = ((high - low) / 6 + 1) as usize;
                let powers = || (low..=high).rev().step_by(step);
                let label = |power: i32| match heights {
                    Heights::Shares => percents(power),
                    _ => power_of_ten(power),
                };
                (powers().map(f64::from).collect(), powers().map(label).collect(), None)
            }
        };
        for (mark, label) in marks.iter().zip(labels) {
            let at = y.place(*mark);
            svg.line([LEFT, at, right, at], "grid");
            svg.label(LEFT - 6.0, at + 4.0, "tick end", &Text::same(label));
        }
        if let Some(power) = power {
            svg.label(LEFT - 6.0, y.to - 9.0, "tick end", &Text::same(power));
        }
        let marks = ticks(x.low, x.high, 5);
        let (labels, power) = tick_labels(&marks);
        for (mark, label) in marks.iter().zip(labels) {
            let at = x.place(*mark);
            svg.line([at, bottom, at, bottom + 4.0], "axis");
            svg.label(at, bottom + 17.0, "tick middle", &Text::same(label));
        }
        svg.line([LEFT, bottom, right, bottom], "axis");
        let power = power.unwrap_or_default();
        let name = Text::new(format!("{}{power}", self.x.en), format!("{}{power}", self.x.zh));
        svg.label(right, bottom + 31.0, "tick end", &name);
    }

    /// Entries in rows as wide as the picture, so that none is cut.
    fn legend(&self) -> (String, f64) {
        let (mut text, mut x, mut y) = (String::new(), 8.0, 36.0);
        for line in self.lines.iter().filter(|line| !line.second) {
            let width = 30.0 + 7.2 * line.name.chars().count() as f64 + 10.0;
            if x > 8.0 && x + width > WIDTH - 8.0 {
                (x, y) = (8.0, y + ROW);
            }
            let (class, end) = (class(&line.name), x + 24.0);
            let _ = write!(
                text,
                "<line x1=\"{x:.0}\" y1=\"{:.0}\" x2=\"{end:.0}\" y2=\"{0:.0}\" class=\"key {class}\"/><text x=\"{:.0}\" \
                 y=\"{y:.0}\" class=\"tick\">{}</text>",
                y - 4.0,
                x + 29.0,
                escape(&line.name)
            );
            x += width;
        }
        (text, y - 36.0 + ROW)
    }
}

/// A point per bin becomes a horizontal piece; bins have the same width.
fn steps(points: &[(f64, f64)]) -> Vec<(f64, f64)> {
    let half = if points.len() > 1 { (points[1].0 - points[0].0) / 2.0 } else { 1.0 };
    points.iter().flat_map(|(x, y)| [(x - half, *y), (x + half, *y)]).collect()
}

impl Rows {
    /// `None` without numbers.
    pub(crate) fn svg(&self, place: Place) -> Option<String> {
        let (low, high) = range(&self.rows.iter().flat_map(|(_, values)| values).copied().collect::<Vec<_>>());
        if !low.is_finite() {
            return None;
        }
        let pad = (0.05 * (high - low)).max(1e-6);
        let top = 30.0;
        let bottom = top + 22.0 * self.rows.len() as f64 + 4.0;
        let x = Scale { low: low - pad, high: high + pad, from: NAMES, to: WIDTH - RIGHT };
        let mut svg = Svg::new(&self.title, bottom + BOTTOM, place);
        let marks = ticks(x.low, x.high, 4);
        let (labels, power) = tick_labels(&marks);
        for (mark, label) in marks.iter().zip(labels) {
            let at = x.place(*mark);
            svg.line([at, top, at, bottom], "grid");
            svg.label(at, bottom + 15.0, "tick middle", &Text::same(label));
        }
        let power = power.unwrap_or_default();
        let name = Text::new(format!("{}{power}", self.x.en), format!("{}{power}", self.x.zh));
        svg.label(WIDTH - RIGHT, bottom + 30.0, "tick end", &name);
        for (index, (name, values)) in self.rows.iter().enumerate() {
            let y = top + 22.0 * index as f64 + 13.0;
            svg.label(NAMES - 8.0, y + 4.0, "tick end", &Text::same(name.clone()));
            let class = class(name);
            for value in values {
                svg.put(&format!(
                    "<circle class=\"dot {class}\" cx=\"{:.1}\" cy=\"{y:.0}\" r=\"4\"/>",
                    x.place(*value)
                ));
            }
            let mean = x.place(super::statistics::mean(values));
            svg.line([mean, y - 8.0, mean, y + 8.0], &format!("key {class} solid"));
        }
        Some(svg.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_are_whole_numbers_and_relative() {
        assert_eq!(path(&[(1.0, 2.0), (3.0, 1.0), (3.0, 1.5)]), "M10 20l20-10 0 5");
    }

    #[test]
    fn a_legend_wraps_before_it_is_cut() {
        let line = |k: usize| Line {
            name: format!("C1+target=fixed{k}"),
            points: vec![(0.0, 0.0), (1.0, 1.0)],
            ..Line::default()
        };
        let lines = (0..6).map(line).collect();
        let chart = Chart { title: Text::same("t"), x: Text::same("x"), lines, range: None, heights: Heights::Linear };
        let (text, height) = chart.legend();
        assert_eq!(height, 3.0 * ROW);
        let starts = text
            .match_indices("x1=\"")
            .map(|(at, _)| text[at + 4..].split('"').next().unwrap().parse::<f64>().unwrap());
        assert!(starts.into_iter().all(|x| x + 30.0 + 16.0 * 7.2 <= WIDTH));
        assert!(chart.svg(Place::File).unwrap().ends_with("</svg>"));
        let none = Chart {
            title: Text::same("t"),
            x: Text::same("x"),
            lines: Vec::new(),
            range: None,
            heights: Heights::Linear,
        };
        assert!(none.svg(Place::Page).is_none());
    }
}
