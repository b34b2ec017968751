//! The kernels of the metrics.

use crate::token::{kernel, sequence, token, weight, whole, Setting, Term, TokenKernel};

pub(super) const TWO_SUMS: TokenKernel = kernel(
    "metric/two_sums",
    include_str!("../../shaders/metric/two_sums.wgsl"),
    &[token("x"), token("y")],
    &[],
    &[Term::Number("sum_x"), Term::Number("sum_y")],
    &[],
);

pub(super) const CO_SQUARES: TokenKernel = kernel(
    "metric/co_squares",
    concat!(include_str!("../../shaders/advantage/moments.wgsl"), include_str!("../../shaders/metric/co_squares.wgsl")),
    &[token("x"), token("y"), whole("sums")],
    &[],
    &[
        Term::Number("rest_x"),
        Term::Number("rest_y"),
        Term::Number("square_x"),
        Term::Number("square_y"),
        Term::Number("product"),
    ],
    &[Setting::F32("count")],
);

pub(super) const ANALYSIS: TokenKernel = kernel(
    "metric/analysis",
    include_str!("../../shaders/metric/analysis.wgsl"),
    &[token("advantages"), token("old_log_probs"), token("rewards")],
    &[],
    &[
        Term::Number("sum_x"),
        Term::Number("sum_y"),
        Term::Number("entropy"),
        Term::Number("wh"),
        Term::Number("reward"),
    ],
    &[],
);

pub(super) const KL_MEANS: TokenKernel = kernel(
    "metric/kl_means",
    include_str!("../../shaders/metric/kl_means.wgsl"),
    &[token("log_probs"), token("ref_log_probs")],
    &[],
    &[Term::Number("k1"), Term::Number("abs_d"), Term::Number("k2"), Term::Number("k3")],
    &[],
);

pub(super) const CLIP_FRACTIONS: TokenKernel = kernel(
    "metric/clip_fractions",
    concat!(include_str!("../../shaders/loss/clip.wgsl"), include_str!("../../shaders/metric/clip_fractions.wgsl")),
    &[token("log_probs"), token("old_log_probs"), token("advantages")],
    &[],
    &[Term::Count("low"), Term::Count("high"), Term::Count("dual")],
    &[
        Setting::F32("clip_low"),
        Setting::F32("clip_high"),
        Setting::F32("clip_free"),
        Setting::F32("clip_cap"),
        Setting::F32("flat_negative"),
        Setting::F32("flat_positive"),
        Setting::F32("dual_negative"),
        Setting::F32("dual_positive"),
    ],
);

pub(super) const EFFECTIVE_SAMPLE_SIZE: TokenKernel = kernel(
    "metric/effective_sample_size",
    include_str!("../../shaders/metric/effective_sample_size.wgsl"),
    &[token("weights")],
    &[],
    &[Term::Number("sum"), Term::Number("square")],
    &[],
);

pub(super) const ROW_MEANS: TokenKernel = kernel(
    "metric/row_means",
    include_str!("../../shaders/metric/row_means.wgsl"),
    &[token("sums"), token("counts")],
    &["means"],
    &[],
    &[],
);

pub(crate) const SPREAD: TokenKernel = kernel(
    "metric/spread",
    include_str!("../../shaders/metric/spread.wgsl"),
    &[token("values"), sequence("sums"), sequence("sizes")],
    &["centred", "square"],
    &[],
    &[],
);

pub(super) const ROW_NORMALIZE: TokenKernel = kernel(
    "metric/row_normalize",
    include_str!("../../shaders/metric/row_normalize.wgsl"),
    &[token("centred"), sequence("rests"), sequence("squares"), sequence("sizes")],
    &["normalized"],
    &[],
    &[Setting::F32("floor")],
);

pub(super) const VARIANCE_PROXY: TokenKernel = kernel(
    "metric/variance_proxy",
    include_str!("../../shaders/metric/variance_proxy.wgsl"),
    &[token("old_log_probs"), token("sum_pi_squared"), weight("weights")],
    &["original", "scaled"],
    &[],
    &[],
);
