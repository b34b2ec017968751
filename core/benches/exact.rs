//! What exactness costs: the states of `tokenwise::exact` against the plain functions, in alternation, as a ratio of the
//! least times. `cargo bench --package tokenwise --bench exact`; one thread.

#![allow(clippy::unwrap_used, reason = "a benchmark that is refused its input has to fail")]

use std::{
    hint::black_box,
    time::{Duration, Instant},
};

use tokenwise::{
    advantage::{whiten, WhitenConfig},
    divergence::KlInput,
    exact::{ExactAnalysis, ExactCoMoments, ExactKl, ExactMoments, ExactSum},
    metric::{analysis, kl_means, mean, AnalysisInput},
    Batch, CoMoments, Layout, Mask, MeanConfig, Moments, PairInput,
};

/// Sequences, and slots of each.
const SHAPES: [(usize, usize); 3] = [(256, 4096), (1024, 1024), (16_384, 64)];
const RUNS: usize = 81;

fn main() {
    println!("| tokens | | plain | exact | exact/plain |\n| --- | --- | --- | --- | --- |");
    for (sequences, len) in SHAPES {
        let columns = [1, 2, 3].map(|seed| uniform(sequences * len, seed));
        let keep: Vec<bool> = (0..sequences * len).map(|slot| slot % 16 != 5).collect();
        let batch = Batch::new(Layout::padded(sequences, len).unwrap(), Mask::new(&keep)).unwrap();
        compare(&batch, &columns, &format!("{sequences}×{len}"));
    }
}

/// Uniform numbers from −1 to 0, the same in every run.
fn uniform(len: usize, seed: u64) -> Vec<f32> {
    let mut state = seed;
    let next = |_| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1_u64 << 24) as f32 - 1.0
    };
    (0..len).map(next).collect()
}

fn compare(batch: &Batch<'_>, [a, b, c]: &[Vec<f32>; 3], shape: &str) {
    let mut out = vec![0.0; a.len()];
    let mut exact_out = out.clone();
    row(
        shape,
        "mean",
        || mean(batch, a, &MeanConfig::default()).unwrap(),
        || {
            let mut state = ExactSum::default();
            state.update(batch, a).unwrap();
            state.mean(&MeanConfig::default()).unwrap()
        },
    );
    row(
        shape,
        "moments",
        || Moments::of(batch, a).unwrap().m2,
        || {
            let mut state = ExactMoments::default();
            state.update(batch, a).unwrap();
            state.moments().m2
        },
    );
    row(
        shape,
        "moments, number by number",
        || Moments::of(batch, a).unwrap().m2,
        || {
            let mut state = ExactMoments::default();
            state.update_by_number(batch, a).unwrap();
            state.moments().m2
        },
    );
    let config = WhitenConfig::default();
    let whitened = || {
        whiten(batch, a, &config, &mut out).unwrap();
        f64::from(out[0])
    };
    row(shape, "whitening", whitened, || {
        let mut state = ExactMoments::default();
        state.update(batch, a).unwrap();
        state.whiten(batch, a, &config, &mut exact_out).unwrap();
        f64::from(exact_out[0])
    });
    let input = PairInput { x: &a[..], y: &b[..] };
    row(
        shape,
        "covariance and correlation",
        || CoMoments::of(batch, input).unwrap().co_moment,
        || {
            let mut state = ExactCoMoments::default();
            state.update(batch, input).unwrap();
            state.co_moments().co_moment
        },
    );
    let input = AnalysisInput { old_log_probs: &b[..], advantages: &a[..], rewards: &c[..] };
    row(
        shape,
        "analysis",
        || analysis(batch, input).unwrap().covariance_mean(),
        || {
            let mut state = ExactAnalysis::default();
            state.update(batch, input).unwrap();
            state.analysis().unwrap().covariance_mean()
        },
    );
    let input = KlInput { log_probs: &a[..], ref_log_probs: &b[..] };
    row(
        shape,
        "KL means",
        || kl_means(batch, input, &MeanConfig::default()).unwrap().k3,
        || {
            let mut state = ExactKl::default();
            state.update(batch, input).unwrap();
            state.means(&MeanConfig::default()).unwrap().k3
        },
    );
}

/// Times two ways to the same number.
fn row(shape: &str, what: &str, mut plain: impl FnMut() -> f64, mut exact: impl FnMut() -> f64) {
    let mut least = [Duration::MAX; 2];
    for _ in 0..RUNS {
        let (by_plain, by_exact) = (timed(&mut plain, &mut least[0]), timed(&mut exact, &mut least[1]));
        let near = (by_plain - by_exact).abs() <= 1e-9 * by_plain.abs().max(1e-3);
        assert!(near, "{what}: {by_plain} {by_exact}");
    }
    let [plain, exact] = least.map(|least| least.as_secs_f64() * 1e3);
    println!("| {shape} | {what} | {plain:.3} ms | {exact:.3} ms | {:.2} |", exact / plain);
}

fn timed(run: &mut impl FnMut() -> f64, least: &mut Duration) -> f64 {
    let start = Instant::now();
    let found = black_box(run());
    *least = start.elapsed().min(*least);
    found
}
