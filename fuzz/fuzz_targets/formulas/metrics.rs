//! Stage 6.

use tokenwise::{divergence::KlInput, loss::DualClip, metric::*, Batch};

use crate::reader::{others, tokens, Reader, UNTOUCHED};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (a, b, c, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let (rows, level) = (reader.len(sequences), reader.share());
    let divisor = reader.pick(&[Divisor::Count, Divisor::CountPlusEpsilon]);
    let _ = mean(batch, &a, divisor);
    let _ = variance(batch, &a, Spread::Sample, divisor);
    let _ = correlation(batch, PairInput { x: &a, y: &b });
    let input = ExplainedVarianceInput { values: &a, returns: &b };
    let _ = explained_variance(batch, input, &ExplainedVarianceConfig { epsilon: level, ..Default::default() });
    let _ = kl_means(batch, KlInput { log_probs: &a, ref_log_probs: &b }, divisor);
    let dual = 1.0 + reader.share();
    let dual_clip = reader.pick(&[DualClip::Off, DualClip::NegativeOnly(dual), DualClip::BothSigns(dual)]);
    let input = RatioInput { log_probs: &a, old_log_probs: &b, advantages: &c };
    let _ = clip_fractions(batch, input, &ClipConfig { dual_clip, ..Default::default() });
    let input = AnalysisInput { old_log_probs: &a, advantages: &b, rewards: &c };
    if let Ok(mut result) = analysis(batch, input) {
        let other = result;
        result.merge(&other);
        let _ = result.entries();
    }

    let _ = effective_sample_size(batch, &a);
    let exact = quantile(batch, &a, level);
    let mut histogram = Histogram::default();
    if histogram.add(batch, &a).is_ok() {
        assert_eq!(histogram.quantile(level).is_ok(), exact.is_ok());
        let other = histogram.clone();
        histogram.merge(&other);
        assert_eq!(histogram.count(), 2 * batch.kept() as u64);
        let _ = (histogram.p50(), histogram.p90());
    }
    others(rows, UNTOUCHED, |out| row_sums(batch, &a, out));
    others(rows, UNTOUCHED, |out| row_means(batch, &a, divisor, out));
    tokens(batch, len, 1, |out| row_normalize(batch, &a, level, out));
    let weights = reader.pick(&[None, Some(&a[..])]);
    let input = VarianceProxyInput { old_log_probs: &a, sum_pi_squared: &b, advantages: &c, weights };
    let _ = variance_proxy(batch, input, reader.number(), divisor).map(|found| found.entries());
    let mut running = RunningMoments::default();
    for values in [&a, &b] {
        assert_eq!(running.update(values).is_ok(), !values.is_empty());
    }
}
