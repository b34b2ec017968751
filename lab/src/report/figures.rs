//! Which figures a task has.

use super::{
    analysis::Task,
    curves::{Curve, Snapshot},
    plot::{Chart, Heights, Line, Rows},
    series::{
        BETA, BUDGET, CLIP_LOWER, CLIP_UPPER, CORRELATION, COVARIANCE, ENTROPY, KL, LAMBDA, REWARD, USAGE, WEIGHTED,
    },
    statistics::mean,
    text::{number, Text},
};

/// A picture with its file name and a sentence below it.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    pub(crate) name: String,
    pub(crate) caption: Text,
    pub(crate) picture: Picture,
}

#[derive(Clone, Debug)]
pub(crate) enum Picture {
    Lines(Chart),
    Rows(Rows),
}

impl Figure {
    pub(crate) fn svg(&self, place: super::plot::Place) -> Option<String> {
        match &self.picture {
            Picture::Lines(chart) => chart.svg(place),
            Picture::Rows(rows) => rows.svg(place),
        }
    }
}

/// Every curve, then the snapshots, then the areas of all variants. `thin` neighbouring points of a curve become one.
pub(crate) fn figures(task: &Task, thin: usize) -> Vec<Figure> {
    let mut figures = Vec::new();
    let captions: [(&str, &str, &str, &str); 11] = [
        (REWARD, "reward_sum_mean", "mean reward of a sequence", "每个序列的平均奖励"),
        (ENTROPY, "H_mean", "mean of −p·log p over kept tokens", "有效 token 上 −p·log p 的均值"),
        (
            WEIGHTED,
            "wH_per_token, B_token",
            "solid: wH per token; dotted: budget per token",
            "实线：每 token 的 wH；点线：每 token 预算",
        ),
        (USAGE, "usage_ratio", "wH_sum / B; lambda rises where it is above 1", "wH_sum / B；高于 1 时 lambda 上升"),
        (LAMBDA, "lambda", "weight of the entropy term", "熵项的权重"),
        (BETA, "beta", "weight of the KL term", "KL 项的权重"),
        (KL, "KL_per_token", "k3 estimate against the reference policy", "相对参考策略的 k3 估计"),
        (COVARIANCE, "cov_mean", "covariance of advantage and log-probability", "优势与对数概率的协方差"),
        (CORRELATION, "corr", "the same as a correlation", "同一量的相关系数"),
        (CLIP_UPPER, "clipfrac_upper", "share of tokens clipped above", "被上侧裁剪的 token 占比"),
        (CLIP_LOWER, "clipfrac_lower", "share of tokens clipped below", "被下侧裁剪的 token 占比"),
    ];
    let mut add = |key: &str, title: &str, caption: Text, second: Option<&str>| {
        let mut lines = lines(task, key, false, thin);
        if let Some(second) = second {
            lines.extend(self::lines(task, second, true, thin));
        }
        if lines.is_empty() {
            return;
        }
        let picture = Picture::Lines(Chart {
            title: Text::same(title),
            x: Text::new("step", "步"),
            heights: heights(key, &lines),
            lines,
            range: Some((0.0, task.steps() as f64)),
        });
        figures.push(Figure { name: format!("{}-{}", task.name, file_name(key)), caption, picture });
    };
    for (index, (key, title, en, zh)) in captions.iter().enumerate() {
        add(key, title, Text::new(*en, *zh), (*key == WEIGHTED).then_some(BUDGET));
        if index == 0 {
            for key in passes(task) {
                let caption = Text::new("share of prompts with a right answer", "答对的题目占比");
                add(&key, &key, caption, None);
            }
        }
    }
    for snapshot in &task.snapshots {
        figures.push(histogram(task, snapshot));
    }
    figures.push(areas(task));
    figures.extend(costly_switch(task, thin));
    figures
}

fn passes(task: &Task) -> Vec<String> {
    task.groups().next().map(|variant| variant.pass_area.keys().cloned().collect()).unwrap_or_default()
}

/// KL and beta spike, and are drawn on a logarithmic axis over at most five decades.
fn heights(key: &str, lines: &[Line]) -> Heights {
    let positive = || lines.iter().flat_map(|line| &line.points).map(|(_, y)| *y).filter(|y| *y > 0.0);
    let (least, most) = (positive().fold(f64::INFINITY, f64::min), positive().fold(0.0, f64::max));
    if [KL, BETA].contains(&key) && most > 0.0 {
        Heights::Log { from: least.max(1e-5 * most) }
    } else {
        Heights::Linear
    }
}

fn file_name(key: &str) -> String {
    key.rsplit('/').next().unwrap_or(key).replace('@', "-at-")
}

/// One line per group that has the metric.
fn lines(task: &Task, key: &str, second: bool, thin: usize) -> Vec<Line> {
    let is_group = |name: &str| task.groups().any(|variant| variant.name == name);
    lines_of(task, key, second, thin, is_group)
}

fn lines_of(task: &Task, key: &str, second: bool, thin: usize, is_drawn: impl Fn(&str) -> bool) -> Vec<Line> {
    let fewer = |values: &[f64]| -> Vec<f64> { values.chunks(thin.max(1)).map(mean).collect() };
    let of = |curve: &Curve| Line {
        name: curve.variant.clone(),
        points: fewer(&curve.steps).into_iter().zip(fewer(&curve.mean)).collect(),
        band: if second { Vec::new() } else { fewer(&curve.deviation) },
        second,
    };
    let curves = task.curves.iter().filter(|curve| curve.key == key && is_drawn(&curve.variant));
    curves.map(of).collect()
}

fn histogram(task: &Task, snapshot: &Snapshot) -> Figure {
    let centre = |edge: &[f64]| 0.5 * (edge[0] + edge[1]);
    let line = |(name, shares): &(String, Vec<f64>)| Line {
        name: name.clone(),
        points: snapshot.edges.windows(2).map(centre).zip(shares.iter().copied()).collect(),
        ..Line::default()
    };
    let (quantity, step) = (&snapshot.quantity, snapshot.step);
    let quantity_name = if quantity == "H" { "H" } else { "cov_t" };
    let chart = Chart {
        title: Text::new(format!("{quantity_name} at step {step}"), format!("第 {step} 步的 {quantity_name}")),
        x: Text::same(quantity_name),
        lines: snapshot.shares.iter().map(line).collect(),
        range: None,
        heights: Heights::Shares,
    };
    Figure {
        name: format!("{}-histogram-{quantity}-{step}", task.name),
        caption: Text::new(
            "share of tokens per bin, mean over seeds, logarithmic",
            "每个区间的 token 占比，种子均值，对数轴",
        ),
        picture: Picture::Lines(chart),
    }
}

/// The area under the reward of every variant, a dot per seed.
fn areas(task: &Task) -> Figure {
    let rows = task.variants.iter().map(|variant| (variant.name.clone(), variant.area.values.clone())).collect();
    let steps: Vec<u64> = task.variants.iter().map(|variant| variant.steps).collect();
    let caption = match (steps.iter().min(), steps.iter().max()) {
        (Some(low), Some(high)) if low < high => {
            let (low, high) = (number(*low as f64), number(*high as f64));
            Text::new(
                format!("a dot per seed, a bar at the mean; runs have {low} to {high} steps"),
                format!("每点一个种子，竖线为均值；各运行 {low} 至 {high} 步"),
            )
        }
        _ => Text::new("a dot per seed, a bar at the mean", "每点一个种子，竖线为均值"),
    };
    let picture = Picture::Rows(Rows {
        title: Text::new("AUC of the reward, all variants", "奖励 AUC，全部变体"),
        x: Text::same("AUC"),
        rows,
    });
    Figure { name: format!("{}-areas", task.name), caption, picture }
}

/// Reward, beta and KL of the switch that costs most, beside its group and C0.
fn costly_switch(task: &Task, thin: usize) -> Vec<Figure> {
    let Some(switch) = task.costly_switch() else { return Vec::new() };
    let drawn = |name: &str| name == "C0" || name == switch.group || name == switch.variant;
    let figure = |key: &str, title: &str| {
        let name = &switch.variant;
        let lines = lines_of(task, key, false, thin, drawn);
        let chart = Chart {
            title: Text::same(format!("{title}, {name}")),
            x: Text::new("step", "步"),
            heights: heights(key, &lines),
            lines,
            range: Some((0.0, switch.steps as f64)),
        };
        Figure {
            name: format!("{}-switch-{}", task.name, file_name(key)),
            caption: Text::new("the switch that costs most", "代价最大的开关"),
            picture: Picture::Lines(chart),
        }
    };
    vec![figure(REWARD, "reward_sum_mean"), figure(BETA, "beta"), figure(KL, "KL_per_token")]
}
