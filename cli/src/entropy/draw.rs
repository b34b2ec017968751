//! The plot as SVG.

use kuva::{
    backend::svg::SvgBackend,
    plot::{legend::LegendPosition, BarPlot, LinePlot, ScatterPlot},
    render::{
        annotations::ReferenceLine,
        figure::{Figure, FigureLegendPosition},
        layout::Layout,
        plots::Plot,
        render::render_multiple,
        theme::Theme,
    },
};

use super::runs::Run;
use crate::{args::Drawing, output::number};

/// Palette of Okabe and Ito, safe for colour-blind viewers; without yellow, which is too pale on white.
const COLOURS: [&str; 7] = ["#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000"];

/// The first font is used in a .png; the others are for labels with characters it lacks, and for viewers of an .svg.
pub(super) const FONTS: &str =
    "DejaVu Sans, Noto Sans CJK SC, Noto Sans SC, Source Han Sans SC, PingFang SC, Microsoft YaHei, \
     WenQuanYi Micro Hei, sans-serif";

/// Points per unit of width: more would not be visible and would make the file large.
const POINTS_PER_UNIT: usize = 4;

pub(super) fn svg(runs: &[Run], drawing: &Drawing) -> String {
    let title = drawing.title.clone().unwrap_or_else(|| "Policy entropy".into());
    let width = f64::from(drawing.width);
    let curves = curves(runs, drawing);
    let axes = axes(&curves, runs, drawing);
    let scene = if drawing.with_stats {
        let bars = bars(runs);
        let bar_axes = base(Layout::auto_from_plots(&bars)).with_y_axis_min(0.0).with_title("Over all steps");
        let legend = FigureLegendPosition::BottomCenter;
        Figure::new(1, 2)
            .with_plots(vec![curves, bars])
            .with_layouts(vec![axes.with_title(title), bar_axes])
            .with_col_width(0, width * 0.62)
            .with_col_width(1, width * 0.38)
            .with_row_height(0, width * 0.45)
            .with_shared_legend_position(legend)
            .render()
    } else {
        let axes = axes.with_title(title).with_width(width).with_height(width * 0.6);
        render_multiple(curves, axes.with_legend_position(LegendPosition::OutsideBottomColumns))
    };
    SvgBackend.render_scene(&scene)
}

fn colour(index: usize) -> &'static str {
    COLOURS[index % COLOURS.len()]
}

fn curves(runs: &[Run], drawing: &Drawing) -> Vec<Plot> {
    let most = drawing.width as usize * POINTS_PER_UNIT;
    let mut plots = Vec::new();
    for (index, run) in runs.iter().enumerate() {
        let mut line =
            LinePlot::new().with_color(colour(index)).with_stroke_width(1.8).with_legend(legend(run, drawing));
        // when the colours repeat, dashes distinguish the runs
        line = match index / COLOURS.len() {
            0 => line,
            1 => line.with_dashed(),
            2 => line.with_dotted(),
            _ => line.with_dashdot(),
        };
        if drawing.smooth > 1 {
            let pale = LinePlot::new().with_color(pale(colour(index))).with_stroke_width(1.0);
            plots.push(pale.with_data(thinned(&run.points, most)).into());
            line = line.with_data(thinned(&run.smoothed(drawing.smooth as usize), most));
        } else {
            line = line.with_data(thinned(&run.points, most));
        }
        plots.push(line.into());
        if let [only] = run.points[..] {
            plots.push(point(only, index));
        }
        if let Some(at) = collapse_point(run, drawing) {
            plots.push(point(at, index));
        }
    }
    plots
}

fn point(at: (f64, f64), index: usize) -> Plot {
    ScatterPlot::new().with_data([at]).with_color(colour(index)).with_size(4.5).into()
}

fn collapse_point(run: &Run, drawing: &Drawing) -> Option<(f64, f64)> {
    let step = run.collapse(drawing.collapse?)? as f64;
    run.points.iter().find(|point| point.0 == step).copied()
}

/// The colour mixed with three parts white.
fn pale(colour: &str) -> String {
    let part = |from: usize| u32::from_str_radix(&colour[from..from + 2], 16).unwrap_or(0);
    let mixed = |from: usize| (part(from) + 3 * 255) / 4;
    format!("#{:02X}{:02X}{:02X}", mixed(1), mixed(3), mixed(5))
}

/// A collapse is noted in the legend, because labels at the curves would overlap.
fn legend(run: &Run, drawing: &Drawing) -> String {
    match collapse_point(run, drawing) {
        Some((step, _)) => {
            let share = drawing.collapse.unwrap_or(0.0) * 100.0;
            format!("{} (below {} % from step {step})", run.label, number(share))
        }
        None => run.label.clone(),
    }
}

fn axes(curves: &[Plot], runs: &[Run], drawing: &Drawing) -> Layout {
    let mut axes =
        base(Layout::auto_from_plots(curves)).with_x_label("training step").with_y_label("policy entropy (nats)");
    for (index, run) in runs.iter().enumerate() {
        if let Some((step, _)) = collapse_point(run, drawing) {
            let line = ReferenceLine::vertical(step).with_color(colour(index)).with_dasharray("2 3");
            axes = axes.with_reference_line(line);
        }
    }
    axes
}

fn base(layout: Layout) -> Layout {
    let theme = Theme {
        grid_color: "#E3E3E3".into(),
        axis_color: "#444444".into(),
        tick_color: "#444444".into(),
        text_color: "#222222".into(),
        // the full box would cover the axis label
        legend_bg: "none".into(),
        legend_border: "none".into(),
        ..Theme::light()
    };
    layout
        .with_theme(theme)
        .with_show_grid(true)
        .with_legend_box(false)
        .with_font_family(FONTS)
        .with_title_size(15)
        .with_label_size(13)
        .with_tick_size(12)
        .with_body_size(12)
}

/// Bars of mean, maximum and minimum for each run.
fn bars(runs: &[Run]) -> Vec<Plot> {
    let mut bars = BarPlot::new().with_width(0.8);
    type Of = fn(&Run) -> f64;
    let kinds: [(&str, Of); 3] = [("mean", |run| run.mean), ("max", |run| run.max), ("min", |run| run.min)];
    for (name, value) in kinds {
        bars = bars.with_group(name, runs.iter().enumerate().map(|(index, run)| (value(run), colour(index))));
    }
    vec![bars.into()]
}

/// Downsamples to about `most` points: minimum and maximum of each interval, so that no spike is lost.
fn thinned(points: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    if points.len() <= most {
        return points.to_vec();
    }
    let stretch = (2 * points.len()).div_ceil(most);
    let mut thin = vec![points[0]];
    for part in points.chunks(stretch) {
        let by_entropy = |a: &&(f64, f64), b: &&(f64, f64)| a.1.total_cmp(&b.1);
        if let (Some(low), Some(high)) = (part.iter().min_by(by_entropy), part.iter().max_by(by_entropy)) {
            let (first, second) = if low.0 <= high.0 { (low, high) } else { (high, low) };
            thin.extend([*first, *second]);
        }
    }
    thin.push(points[points.len() - 1]);
    thin.dedup();
    thin
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
    fn pale_is_three_parts_white() {
        assert_eq!(pale("#000000"), "#BFBFBF");
        assert_eq!(pale("#FFFFFF"), "#FFFFFF");
    }
}
