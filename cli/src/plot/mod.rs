//! Curves over training steps as SVG, PNG or PDF.

mod axis;
mod letters;
mod paint;
mod pdf;

use std::path::Path;

use tokenwise_reader::Budget;

use crate::{
    failure::{Failure, Result},
    output::{number, printable, write_whole},
};
use axis::Axis;
use letters::{broken, width};

/// The first font is used in a .png; the others are for labels with characters it lacks, and for viewers of an .svg.
pub(crate) const FONTS: &str =
    "DejaVu Sans, Noto Sans CJK SC, Noto Sans SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, \
     WenQuanYi Micro Hei, sans-serif";

/// Points per unit of width: more would not be visible and would make the file large.
const POINTS_PER_UNIT: usize = 4;

/// One line of a figure.
#[derive(Debug, Default)]
pub(crate) struct Curve {
    pub(crate) label: String,
    pub(crate) points: Vec<(f64, f64)>,
    /// A paler curve behind it: the values before smoothing.
    pub(crate) behind: Vec<(f64, f64)>,
    /// Step, lowest and highest of several runs.
    pub(crate) band: Vec<(f64, f64, f64)>,
    /// A point with a vertical line.
    pub(crate) mark: Option<(f64, f64)>,
}

/// One pair of axes.
#[derive(Debug, Default)]
pub(crate) struct Panel {
    pub(crate) title: String,
    pub(crate) y_label: String,
    pub(crate) curves: Vec<Curve>,
}

/// What is drawn beside or below each other.
#[derive(Debug, Default)]
pub(crate) struct Figure {
    pub(crate) panels: Vec<Panel>,
    /// Bars for each curve of the first panel, by the name of the statistic.
    pub(crate) bars: Vec<(&'static str, Vec<f64>)>,
    pub(crate) width: f64,
    /// Height of a panel as a share of its width.
    pub(crate) shape: f64,
}

/// The format of a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Format {
    Png,
    Svg,
    Pdf,
}

impl Format {
    /// By the ending of a file.
    pub(crate) fn of(path: &Path) -> Result<Self> {
        let ending = path.extension().map(|extension| extension.to_string_lossy().to_lowercase());
        match ending.as_deref() {
            Some("png") => Ok(Self::Png),
            Some("svg") => Ok(Self::Svg),
            Some("pdf") => Ok(Self::Pdf),
            _ => Err(Failure::usage(format!("{}: the output must end in .png, .svg or .pdf", path.display()))),
        }
    }
}

/// Draws a figure into a file.
pub(crate) fn save(figure: &Figure, path: &Path, scale: f32, memory: Budget) -> Result<()> {
    let format = Format::of(path)?;
    let svg = figure.svg();
    let bytes = match format {
        Format::Svg => svg.into_bytes(),
        Format::Png => paint::png(&svg, scale, memory)?,
        Format::Pdf => pdf::write(&paint::tree(&svg)?),
    };
    write_whole(path, &bytes)
}

/// Palette of Okabe and Ito, safe for colour-blind viewers; without yellow, which is too pale on white.
const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// Distinct colours for any number of curves: after the palette, hues by the golden angle in changing lightness.
fn colour(index: usize) -> String {
    if let Some(colour) = COLOURS.get(index) {
        return (*colour).into();
    }
    let turn = (index - COLOURS.len()) as f64;
    let hue = (turn * 137.508 + 280.0) % 360.0;
    let lightness = [0.30, 0.42, 0.55][(index - COLOURS.len()) % 3];
    let chroma = (1.0 - (2.0 * lightness - 1.0_f64).abs()) * 0.75;
    let part = |offset: f64| {
        let k = (offset + hue / 30.0) % 12.0;
        let x = lightness - chroma / 2.0 * (k - 3.0).min(9.0 - k).clamp(-1.0, 1.0);
        (255.0 * x.clamp(0.0, 1.0)).round() as u8
    };
    format!("#{:02X}{:02X}{:02X}", part(0.0), part(8.0), part(4.0))
}

/// Dashes beyond the palette, in the curve and in the legend.
fn dashes(index: usize) -> &'static str {
    match index / COLOURS.len() {
        0 => "",
        1 => " stroke-dasharray=\"7 3\"",
        2 => " stroke-dasharray=\"2 3\"",
        _ => " stroke-dasharray=\"8 3 2 3\"",
    }
}

/// The colour mixed with three parts white.
fn pale(colour: &str) -> String {
    let part = |from: usize| u32::from_str_radix(colour.get(from..from + 2).unwrap_or("0"), 16).unwrap_or(0);
    let mixed = |from: usize| (part(from) + 3 * 255) / 4;
    format!("#{:02X}{:02X}{:02X}", mixed(1), mixed(3), mixed(5))
}

/// A text of a file, safe in SVG.
fn escaped(text: &str) -> String {
    let text = printable(&text.replace(['\n', '\r', '\t'], " "));
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

const TEXT: f64 = 12.0;
const TITLE: f64 = 15.0;
const LINE: f64 = 17.0;
const SWATCH: f64 = 30.0;
const GAP: f64 = 18.0;
const MARGIN: f64 = 14.0;

/// SVG that is being written.
#[derive(Default)]
struct Canvas(String);

impl Canvas {
    fn text(&mut self, (x, y): (f64, f64), size: f64, anchor: &str, more: &str, text: &str) {
        self.0 += &format!(
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{more}>{}</text>\n",
            escaped(text)
        );
    }

    fn line(&mut self, from: (f64, f64), to: (f64, f64), style: &str) {
        self.0 += &format!(
            "<line x1=\"{:.2}\" y1=\"{:.2}\" x2=\"{:.2}\" y2=\"{:.2}\" {style}/>\n",
            from.0, from.1, to.0, to.1
        );
    }

    fn path(&mut self, points: &[(f64, f64)], style: &str) {
        let mut data = String::new();
        for (index, (x, y)) in points.iter().enumerate() {
            data += &format!("{}{x:.2} {y:.2}", if index == 0 { "M" } else { "L" });
        }
        self.0 += &format!("<path d=\"{data}\" {style}/>\n");
    }
}

/// The place of a panel.
#[derive(Clone, Copy)]
struct Area {
    left: f64,
    top: f64,
    width: f64,
    height: f64,
}

impl Figure {
    pub(crate) fn svg(&self) -> String {
        let mut canvas = Canvas::default();
        let beside = if self.bars.is_empty() { 0.0 } else { self.width * 0.36 };
        let width = self.width - beside;
        let height = width * self.shape;
        let mut top = MARGIN;
        for (index, panel) in self.panels.iter().enumerate() {
            let area = Area { left: 0.0, top, width, height };
            let title = self.title(&mut canvas, &panel.title, area);
            self.panel(&mut canvas, panel, Area { top: top + title, ..area });
            if index == 0 && !self.bars.is_empty() {
                self.bars(&mut canvas, Area { left: width, top: top + title, width: beside, height });
            }
            top += height + title + 6.0;
        }
        let legend = self.panels.first().map_or(&[][..], |panel| &panel.curves);
        if legend.iter().any(|curve| !curve.label.is_empty()) {
            top = self.legend(&mut canvas, legend, top + 4.0);
        }
        let (width, height) = (self.width, top + MARGIN);
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width:.0}\" height=\"{height:.0}\" \
             viewBox=\"0 0 {width:.0} {height:.0}\" font-family=\"{FONTS}\" fill=\"#222222\">\n\
             <rect width=\"100%\" height=\"100%\" fill=\"#FFFFFF\"/>\n{}</svg>\n",
            canvas.0
        )
    }

    /// Height of the title, which may take several lines.
    fn title(&self, canvas: &mut Canvas, title: &str, area: Area) -> f64 {
        let lines = broken(title, self.width - 2.0 * MARGIN, TITLE);
        for (index, line) in lines.iter().enumerate() {
            let y = area.top + TITLE + index as f64 * (TITLE + 4.0);
            canvas.text((self.width / 2.0, y), TITLE, "middle", " font-weight=\"bold\"", line);
        }
        lines.len() as f64 * (TITLE + 4.0) + 4.0
    }

    fn panel(&self, canvas: &mut Canvas, panel: &Panel, area: Area) {
        let curves = &panel.curves;
        let all = || curves.iter().flat_map(|curve| curve.points.iter().chain(&curve.behind).copied());
        let bands =
            || curves.iter().flat_map(|curve| curve.band.iter().flat_map(|(x, low, high)| [(*x, *low), (*x, *high)]));
        let x_axis = Axis::new(all().chain(bands()).map(|(x, _)| x), 6.0, true);
        let y_axis = Axis::new(all().chain(bands()).map(|(_, y)| y), 5.0, false);
        let room = y_axis.ticks().map(|tick| width(&y_axis.label(tick), TEXT)).fold(0.0, f64::max);
        let inside = Area {
            left: area.left + MARGIN + TEXT + 8.0 + room + 8.0,
            top: area.top + 6.0,
            width: area.width - 2.0 * MARGIN - TEXT - room - 16.0,
            height: area.height - 2.0 * LINE - 14.0,
        };
        let bottom = inside.top + inside.height;
        let x = |value: f64| inside.left + x_axis.share(value) * inside.width;
        let y = |value: f64| bottom - y_axis.share(value) * inside.height;
        const GRID: &str = "stroke=\"#E3E3E3\" stroke-width=\"1\"";
        const AXIS: &str = "stroke=\"#444444\" stroke-width=\"1\"";
        for tick in y_axis.ticks() {
            canvas.line((inside.left, y(tick)), (inside.left + inside.width, y(tick)), GRID);
            canvas.text((inside.left - 8.0, y(tick) + 4.0), TEXT, "end", "", &y_axis.label(tick));
        }
        let mut end = f64::NEG_INFINITY;
        for tick in x_axis.ticks() {
            canvas.line((x(tick), inside.top), (x(tick), bottom), GRID);
            let label = x_axis.label(tick);
            let half = width(&label, TEXT) / 2.0;
            // labels that would touch are left out
            if x(tick) - half > end + 6.0 {
                canvas.text((x(tick), bottom + LINE), TEXT, "middle", "", &label);
                end = x(tick) + half;
            }
        }
        canvas.line((inside.left, bottom), (inside.left + inside.width, bottom), AXIS);
        canvas.line((inside.left, inside.top), (inside.left, bottom), AXIS);
        let middle = (inside.left + inside.width / 2.0, bottom + 2.0 * LINE);
        canvas.text(middle, 13.0, "middle", "", "training step");
        let (left, middle) = (area.left + MARGIN + TEXT, inside.top + inside.height / 2.0);
        let y_label = broken(&panel.y_label, inside.height, 13.0).into_iter().next().unwrap_or_default();
        let turned = format!(" transform=\"rotate(-90 {left:.1} {middle:.1})\"");
        canvas.text((left, middle), 13.0, "middle", &turned, &y_label);
        let most = self.width as usize * POINTS_PER_UNIT;
        let placed = |points: &[(f64, f64)]| -> Vec<(f64, f64)> {
            thinned(points, most).into_iter().map(|(step, value)| (x(step), y(value))).collect()
        };
        for (index, curve) in curves.iter().enumerate() {
            let low = curve.band.iter().map(|(step, low, _)| (x(*step), y(*low)));
            let high = curve.band.iter().rev().map(|(step, _, high)| (x(*step), y(*high)));
            let band: Vec<(f64, f64)> = low.chain(high).collect();
            if band.len() > 2 {
                canvas.path(&band, &format!("fill=\"{}\" stroke=\"none\"", pale(&colour(index))));
            }
        }
        for (index, curve) in curves.iter().enumerate() {
            let (strong, pale) = (colour(index), pale(&colour(index)));
            if curve.behind.len() > 1 {
                canvas.path(&placed(&curve.behind), &format!("fill=\"none\" stroke=\"{pale}\" stroke-width=\"1\""));
            }
            let style = format!(
                "fill=\"none\" stroke=\"{strong}\" stroke-width=\"1.8\" stroke-linejoin=\"round\"{}",
                dashes(index)
            );
            let points = placed(&curve.points);
            match &points[..] {
                [(cx, cy)] => {
                    canvas.0 += &format!("<circle cx=\"{cx:.2}\" cy=\"{cy:.2}\" r=\"4.5\" fill=\"{strong}\"/>\n");
                }
                points => canvas.path(points, &style),
            }
            if let Some((step, value)) = curve.mark {
                let style = format!("stroke=\"{strong}\" stroke-dasharray=\"2 3\"");
                canvas.line((x(step), inside.top), (x(step), bottom), &style);
                let (cx, cy) = (x(step), y(value));
                canvas.0 += &format!("<circle cx=\"{cx:.2}\" cy=\"{cy:.2}\" r=\"4.5\" fill=\"{strong}\"/>\n");
            }
        }
    }

    fn bars(&self, canvas: &mut Canvas, area: Area) {
        let values = self.bars.iter().flat_map(|(_, values)| values.iter().copied());
        let axis = Axis::new(values.chain([0.0]), 5.0, false);
        let room = axis.ticks().map(|tick| width(&axis.label(tick), TEXT)).fold(0.0, f64::max);
        let left = area.left + room + 12.0;
        let (right, top) = (area.left + area.width - MARGIN, area.top + 6.0);
        let bottom = top + area.height - 2.0 * LINE - 14.0;
        let y = |value: f64| bottom - axis.share(value) * (bottom - top);
        for tick in axis.ticks() {
            canvas.line((left, y(tick)), (right, y(tick)), "stroke=\"#E3E3E3\" stroke-width=\"1\"");
            canvas.text((left - 6.0, y(tick) + 4.0), TEXT, "end", "", &axis.label(tick));
        }
        let group = (right - left) / self.bars.len() as f64;
        for (place, (name, values)) in self.bars.iter().enumerate() {
            let bar = group * 0.8 / values.len().max(1) as f64;
            let start = left + group * (place as f64 + 0.1);
            for (index, value) in values.iter().enumerate() {
                let (from, to) = (y(value.max(0.0)), y(value.min(0.0)));
                canvas.0 += &format!(
                    "<rect x=\"{:.2}\" y=\"{from:.2}\" width=\"{:.2}\" height=\"{:.2}\" fill=\"{}\"/>\n",
                    start + index as f64 * bar,
                    (bar * 0.92).max(0.5),
                    (to - from).max(0.5),
                    colour(index)
                );
            }
            canvas.text((start + group * 0.4, bottom + LINE), TEXT, "middle", "", name);
        }
        canvas.line((left, y(0.0)), (right, y(0.0)), "stroke=\"#444444\" stroke-width=\"1\"");
        let middle = ((left + right) / 2.0, bottom + 2.0 * LINE);
        canvas.text(middle, 13.0, "middle", "", "over all steps");
    }

    /// Below the panels, in one row or in columns; returns where it ends.
    fn legend(&self, canvas: &mut Canvas, curves: &[Curve], mut top: f64) -> f64 {
        let right = self.width - MARGIN;
        let longest = right - MARGIN - SWATCH;
        let labels: Vec<Vec<String>> = curves.iter().map(|curve| broken(&curve.label, longest, TEXT)).collect();
        let wide = |lines: &Vec<String>| lines.iter().map(|line| width(line, TEXT)).fold(0.0, f64::max);
        let in_one_row = labels.iter().fold(MARGIN - GAP, |x, lines| x + GAP + SWATCH + wide(lines)) <= right;
        let widest = labels.iter().map(wide).fold(0.0, f64::max);
        let mut x = MARGIN;
        for (index, lines) in labels.iter().enumerate() {
            let wide = if in_one_row { wide(lines) } else { widest };
            if x > MARGIN && x + SWATCH + wide > right {
                x = MARGIN;
                top += LINE;
            }
            let style = format!("stroke=\"{}\" stroke-width=\"2.4\"{}", colour(index), dashes(index));
            canvas.line((x, top + 8.0), (x + SWATCH - 7.0, top + 8.0), &style);
            for (row, line) in lines.iter().enumerate() {
                canvas.text((x + SWATCH, top + 12.0 + row as f64 * LINE), TEXT, "start", "", line);
            }
            if lines.len() > 1 {
                top += lines.len() as f64 * LINE;
                x = MARGIN;
            } else {
                x += SWATCH + wide + GAP;
            }
        }
        top + LINE
    }
}

/// Downsamples to about `most` points: minimum and maximum of each interval, so that no spike is lost.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = (2 * points.len()).div_ceil(most);
    let mut thin = vec![points[0]];
    for part in points.chunks(stretch) {
        let by_value = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        if let (Some(low), Some(high)) = (part.iter().min_by(by_value), part.iter().max_by(by_value)) {
            let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            thin.extend([*first, *second]);
        }
    }
    thin.push(points[points.len() - 1]);
    thin.dedup();
    thin
}

/// A number of an axis.
fn tick_label(value: f64) -> String {
    number(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_spikes_and_ends() {
        let mut points: Vec<(f64, f64)> = (0..100_000).map(|x| (f64::from(x), 1.0)).collect();
        points[50_001].1 = 9.0;
        let thin = thinned(&points, 1000);
        assert!(thin.len() <= 1100, "{}", thin.len());
        assert!(thin.contains(&(50_001.0, 9.0)));
        assert_eq!((thin[0], thin[thin.len() - 1]), (points[0], points[99_999]));
        assert!(thin.windows(2).all(|pair| pair[0].0 < pair[1].0));
    }

    #[test]
    fn colours_are_distinct_and_swatches_have_the_dashes_of_their_curves() {
        assert_eq!((pale("#000000"), pale("#FFFFFF")), ("#BFBFBF".into(), "#FFFFFF".into()));
        let colours: std::collections::HashSet<String> = (0..40).map(colour).collect();
        assert_eq!(colours.len(), 40);
        let curves = (0..12).map(|run| Curve {
            label: format!("run {run}"),
            points: vec![(1.0, f64::from(run)), (2.0, 1.0)],
            ..Curve::default()
        });
        let panel = Panel { title: "t".into(), y_label: "y".into(), curves: curves.collect() };
        let svg = Figure { panels: vec![panel], width: 720.0, shape: 0.6, ..Figure::default() }.svg();
        // five dashed curves and five dashed swatches
        assert_eq!(svg.matches("stroke-dasharray=\"7 3\"").count(), 10);
    }

    /// The labels of curves and where each begins.
    fn legend_of(labels: &[&str]) -> Vec<(f64, f64)> {
        let curves = labels.iter().map(|label| Curve {
            label: label.to_string(),
            points: vec![(1.0, 1.0), (2.0, 2.0)],
            ..Curve::default()
        });
        let panel = Panel { curves: curves.collect(), ..Panel::default() };
        let svg = Figure { panels: vec![panel], width: 500.0, shape: 0.6, ..Figure::default() }.svg();
        let number = |line: &str, name: &str| -> f64 {
            line.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
        };
        let place = |label: &&str| {
            let line = svg.lines().find(|line| line.contains(&format!(">{label}<"))).unwrap();
            (number(line, "x"), number(line, "y"))
        };
        labels.iter().map(place).collect()
    }

    #[test]
    fn a_legend_of_several_rows_has_columns() {
        let places = legend_of(&["run_1", "run_2_with_a_longer_name", "run_3", "run_4_longer", "run_5", "run_6"]);
        let (first, row) = (places[0].0, places[0].1);
        let columns = places.iter().filter(|(_, y)| *y == row).count();
        assert!(columns > 1 && columns < places.len(), "{places:?}");
        for (index, (x, _)) in places.iter().enumerate() {
            assert_eq!(*x, places[index % columns].0, "{places:?}");
        }
        let one_row = legend_of(&["a", "bb", "c"]);
        assert!(one_row.iter().all(|(_, y)| *y == one_row[0].1) && one_row[2].0 < first + 150.0, "{one_row:?}");
    }

    #[test]
    fn legends_are_never_cut() {
        let curves = [300, 5, 40, 40, 40].map(|length| Curve {
            label: "x".repeat(length),
            points: vec![(1.0, 1.0), (2.0, 2.0)],
            ..Curve::default()
        });
        let panel = Panel { curves: curves.into(), ..Panel::default() };
        let svg = Figure { panels: vec![panel], width: 500.0, shape: 0.6, ..Figure::default() }.svg();
        assert!(svg.matches('x').count() - svg.matches("xmlns").count() - svg.matches("viewBox").count() >= 425);
        let height: f64 = svg.split("height=\"").nth(1).unwrap().split('"').next().unwrap().parse().unwrap();
        for line in svg.lines().filter(|line| line.starts_with("<text")) {
            let place = |name: &str| -> f64 {
                line.split(&format!(" {name}=\"")).nth(1).unwrap().split('"').next().unwrap().parse().unwrap()
            };
            let text = line.split('>').nth(1).unwrap().split('<').next().unwrap();
            if line.contains("\"start\"") {
                assert!(place("x") + width(text, TEXT) <= 500.0, "{line}");
            }
            assert!(place("y") < height, "{line}");
        }
    }
}
