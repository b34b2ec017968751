//! What the experiment's design claims, as checks over numbers of the runs.

use super::{
    compare::Variant,
    judge::{Builder, Judgement, Wanted, SMOOTH},
    series::{
        Cut, BETA, CORRELATION, COVARIANCE, COVARIANCE_P50, COVARIANCE_P90, EARLY, ENTROPY, LAMBDA, REWARD, USAGE,
        WEIGHTED,
    },
    statistics::{line, mean},
    text::Text,
};

/// All judgements of a task. `baseline` is C0, `controlled` is C0k if there is one.
pub(crate) fn judge(variants: &[&Variant], baseline: &Variant, controlled: Option<&Variant>) -> Vec<Judgement> {
    let mut both: Vec<(&Variant, &Variant)> = Vec::new();
    for variant in variants {
        both.push((variant, baseline));
        both.extend(controlled.map(|controlled| (*variant, controlled)));
    }
    let alone: Vec<(&Variant, &Variant)> = variants.iter().map(|variant| (*variant, baseline)).collect();
    let same_target: Vec<(&Variant, &Variant)> =
        variants.iter().map(|variant| (*variant, controlled.unwrap_or(baseline))).collect();
    vec![
        early(both.clone()),
        whole_run(alone),
        result(both.clone()),
        stability(both.clone()),
        first(both.clone()),
        second(same_target),
        third(both),
    ]
}

fn early(columns: Vec<(&Variant, &Variant)>) -> Judgement {
    let mut checks = Builder::new(columns);
    checks
        .by(0, Text::new("H_mean above the baseline", "H_mean 高于基线"), Wanted::Higher, |cut| cut.early(ENTROPY));
    checks.by(1, Text::new("wH_per_token above the baseline", "wH_per_token 高于基线"), Wanted::Higher, |cut| {
        cut.early(WEIGHTED)
    });
    let swing = |key: &'static str| move |cut: Cut<'_>| cut.swing(key, 0.0, EARLY);
    checks.by(
        2,
        Text::new("H_mean swings less around its trend", "H_mean 围绕趋势的波动更小"),
        Wanted::Lower,
        swing(ENTROPY),
    );
    checks.by(
        3,
        Text::new("wH_per_token swings less around its trend", "wH_per_token 围绕趋势的波动更小"),
        Wanted::Lower,
        swing(WEIGHTED),
    );
    let claim = Text::new(
        "Early (first 10 % of the steps): H and wH clearly above C0, and steadier",
        "早期（前 10 % 步）：H 与 wH 显著高于 C0，且更平稳",
    );
    checks.finish("J1", claim)
}

fn whole_run(columns: Vec<(&Variant, &Variant)>) -> Judgement {
    let mut checks = Builder::new(columns);
    checks.every_seed(
        0,
        Text::new("usage_ratio falls: its trend over the run is below 0", "usage_ratio 下行：全程趋势为负"),
        &|cut| line(&cut.part(USAGE, 0.0, 1.0)).map(|line| (line.slope < 0.0, line.slope)),
    );
    checks.every_seed(
        1,
        Text::new(
            "it falls slowly: no tenth of the run takes more than half of the fall",
            "下行缓慢：任何十分之一的步数都不超过总降幅的一半",
        ),
        &|cut| slow_fall(&cut.tenths(USAGE)),
    );
    for (part, key, name) in [(2, LAMBDA, "lambda"), (3, BETA, "beta")] {
        let what = Text::new(
            format!("{name} is smooth: no step changes it by more than 10 % of its range"),
            format!("{name} 平滑：单步变化不超过其取值范围的 10 %"),
        );
        checks.every_seed(part, what, &|cut| Some(cut.jump(key)).filter(|x| x.is_finite()).map(|x| (x <= SMOOTH, x)));
    }
    let claim = Text::new(
        "Whole run: usage_ratio falls slowly, lambda and beta are smooth",
        "全程：usage_ratio 缓慢下行，lambda 与 beta 曲线平滑",
    );
    checks.finish("J2", claim)
}

/// Whether a curve of ten means falls, and the largest share of its fall that lies between two neighbours.
fn slow_fall(tenths: &[f64]) -> Option<(bool, f64)> {
    let (first, last) = (tenths.first()?, tenths.last()?);
    if tenths.iter().any(|x| !x.is_finite()) {
        return None;
    }
    let fall = first - last;
    let largest = tenths.windows(2).fold(0.0_f64, |most, pair| most.max(pair[0] - pair[1]));
    let share = if fall > 0.0 { largest / fall } else { f64::INFINITY };
    Some((share <= 0.5, share.min(99.0)))
}

fn result(columns: Vec<(&Variant, &Variant)>) -> Judgement {
    let passes = columns.first().map(|(variant, _)| variant.pass_area.keys().cloned().collect::<Vec<_>>());
    let mut checks = Builder::new(columns);
    checks.by(0, Text::new("AUC of the reward larger", "奖励曲线 AUC 更大"), Wanted::Higher, |cut| {
        cut.area(REWARD)
    });
    checks.by(1, Text::new("end value of the reward higher", "奖励终值更高"), Wanted::Higher, |cut| {
        cut.end(REWARD)
    });
    for (index, key) in passes.unwrap_or_default().iter().enumerate() {
        let part = 2 + 2 * index;
        checks.by(
            part,
            Text::new(format!("AUC of {key} larger"), format!("{key} 的 AUC 更大")),
            Wanted::Higher,
            |cut| cut.area(key),
        );
        let end = Text::new(format!("end value of {key} higher"), format!("{key} 终值更高"));
        checks.by(part + 1, end, Wanted::Higher, |cut| cut.end(key));
    }
    let spread = Text::new("end value of the reward varies less over seeds", "奖励终值的跨种子标准差更小");
    checks.less_spread(99, spread, |cut| cut.end(REWARD));
    let claim = Text::new(
        "Result: larger AUC, higher end, smaller variance over seeds",
        "结果：AUC 更大、终值更高、跨种子方差更小",
    );
    checks.finish("J3", claim)
}

fn stability(columns: Vec<(&Variant, &Variant)>) -> Judgement {
    let mut checks = Builder::new(columns);
    checks.by(0, Text::new("|cov_mean| lower", "|cov_mean| 更低"), Wanted::Lower, |cut| cut.size(COVARIANCE));
    checks.by(
        0,
        Text::new("or its tail shorter: cov_p90 − cov_p50", "或尾部更短：cov_p90 − cov_p50"),
        Wanted::Lower,
        tail,
    );
    checks.by(1, Text::new("|corr| lower", "|corr| 更低"), Wanted::Lower, |cut| cut.size(CORRELATION));
    checks.by(1, Text::new("or corr steadier", "或 corr 更平稳"), Wanted::Lower, |cut| {
        cut.swing(CORRELATION, 0.0, 1.0)
    });
    checks.by(2, Text::new("clip fraction lower", "裁剪比例更低"), Wanted::Lower, |cut| mean(&cut.clipped()));
    checks.by(2, Text::new("or clip fraction steadier", "或裁剪比例更平稳"), Wanted::Lower, |cut| {
        line(&cut.clipped()).map_or(f64::NAN, |line| line.residual)
    });
    let claim = Text::new(
        "Stability: cov and corr lower or tighter, clip fraction lower or steadier",
        "稳定性：cov 与 corr 更低或更集中，裁剪比例更低或更平稳",
    );
    checks.finish("J4", claim)
}

fn tail(cut: Cut<'_>) -> f64 {
    mean(&cut.part(COVARIANCE_P90, 0.0, 1.0)) - mean(&cut.part(COVARIANCE_P50, 0.0, 1.0))
}

fn first(columns: Vec<(&Variant, &Variant)>) -> Judgement {
    let mut checks = Builder::new(columns);
    checks.by(0, Text::new("early wH_per_token higher", "早期 wH_per_token 更高"), Wanted::Higher, |cut| {
        cut.early(WEIGHTED)
    });
    checks.every_seed(
        1,
        Text::new(
            "no collapse: the last tenth keeps at least 10 % of the first",
            "不崩塌：最后十分之一的均值不低于最初十分之一的 10 %",
        ),
        &|cut| {
            let tenths = cut.tenths(WEIGHTED);
            let share = tenths.last()? / tenths.first()?;
            share.is_finite().then_some((share >= 0.1, share))
        },
    );
    checks.every_seed(2, Text::new("it falls in the second half", "后半程下降"), &|cut| {
        line(&cut.part(WEIGHTED, 0.5, 1.0)).map(|line| (line.slope < 0.0, line.slope))
    });
    checks.every_seed(
        3,
        Text::new(
            "within the budget: mean usage in the second half at most 1.1",
            "在预算之内：后半程平均使用率不超过 1.1",
        ),
        &|cut| {
            let usage = mean(&cut.part(USAGE, 0.5, 1.0));
            usage.is_finite().then_some((usage <= 1.1, usage))
        },
    );
    let claim = Text::new(
        "H1: wH_per_token early clearly above the baseline and no collapse; later a slow fall within the budget",
        "H1：早期 wH_per_token 显著高于基线且不崩塌；中后期按预算缓慢下降",
    );
    checks.finish("H1", claim)
}

fn second(columns: Vec<(&Variant, &Variant)>) -> Judgement {
    let passes = columns.first().map(|(variant, _)| variant.pass_area.keys().cloned().collect::<Vec<_>>());
    let mut checks = Builder::new(columns);
    checks.by(0, Text::new("AUC of the reward larger", "奖励曲线 AUC 更大"), Wanted::Higher, |cut| {
        cut.area(REWARD)
    });
    for (index, key) in passes.unwrap_or_default().iter().enumerate() {
        let what = Text::new(format!("AUC of {key} larger"), format!("{key} 的 AUC 更大"));
        checks.by(1 + index, what, Wanted::Higher, |cut| cut.area(key));
    }
    checks.paired(
        99,
        Text::new(
            "fewer steps to 90 % of the baseline's end value (never: all steps)",
            "达到基线终值 90 % 的步数更少（未达到按全部步数计）",
        ),
        Wanted::Lower,
        &|a, b| {
            let threshold = 0.9 * b.end(REWARD);
            let steps = |cut: Cut<'_>| cut.time_to(REWARD, threshold).unwrap_or(cut.steps) as f64;
            (steps(a), steps(b))
        },
    );
    let claim = Text::new(
        "H2: under the same KL control, reward and Pass@k rise faster and have a larger AUC",
        "H2：在相同 KL 控制下，奖励与 Pass@k 上升更快、AUC 更大",
    );
    checks.finish("H2", claim)
}

fn third(columns: Vec<(&Variant, &Variant)>) -> Judgement {
    let mut checks = Builder::new(columns);
    checks.paired(
        0,
        Text::new(
            "smaller share of tokens above the baseline's 90th percentile of cov (same seed and step)",
            "协方差高于基线第 90 百分位（同种子、同步）的 token 占比更低",
        ),
        Wanted::Lower,
        &high_covariance,
    );
    checks.by(1, Text::new("cov_p90 lower", "cov_p90 更低"), Wanted::Lower, |cut| {
        mean(&cut.part(COVARIANCE_P90, 0.0, 1.0))
    });
    let claim = Text::new(
        "H3: fewer tokens of high covariance, and lower covariance there",
        "H3：高协方差 token 的占比与强度降低",
    );
    checks.finish("H3", claim)
}

/// Shares of tokens above the 90th percentile of the second run, mean over the snapshots that both have.
fn high_covariance(a: Cut<'_>, b: Cut<'_>) -> (f64, f64) {
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    for own in a.run.distributions.iter().filter(|own| own.step as usize <= a.steps) {
        let Some(other) = b.run.distributions.iter().find(|other| other.step == own.step) else { continue };
        if own.covariance.is_valid() && other.covariance.is_valid() {
            let limit = other.covariance.quantile(0.9);
            of_a.push(own.covariance.between(limit, f64::INFINITY) / own.covariance.total());
            of_b.push(other.covariance.between(limit, f64::INFINITY) / other.covariance.total());
        }
    }
    (mean(&of_a), mean(&of_b))
}
