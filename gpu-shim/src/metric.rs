//! **Stage 6 of 7 — metric.** Reads what the other stages read and wrote, returns the numbers that a trainer logs.
//!
//! Token sums are made on the device in one pass, or in two where a mean has to be known first; the last steps, over
//! sums or one number per sequence, run on the host in `f64`.

use tokenwise::{
    metric::{
        self, Analysis, ClipConfig, ClipFractions, ExplainedVarianceConfig, ExplainedVarianceInput, KlMeans,
        RatioInput, RowNormalizeConfig, VarianceConfig, VarianceProxy, VarianceProxyConfig, VarianceProxyInput,
    },
    Batch, CoMoments, Error, Layout, Mask, MeanConfig, Spread,
};

use crate::{
    batch::{GpuBatch, Segmented},
    column::{Column, Input},
    divergence::KlColumns,
    error::GpuError,
    fold::Fold,
    loss::clip_settings,
    recording::{Done, Download, Pending, Recording},
    rows::{kept_per_row, Rows},
    token::bits,
};

mod by_name;
mod kernels;

pub(crate) use by_name::RUNNERS;
pub(crate) use kernels::SPREAD;
use kernels::{
    ANALYSIS, CLIP_FRACTIONS, CO_SQUARES, EFFECTIVE_SAMPLE_SIZE, KL_MEANS, ROW_MEANS, ROW_NORMALIZE, TWO_SUMS,
    VARIANCE_PROXY,
};

/// Two quantities of each token.
#[derive(Clone, Debug)]
pub struct PairColumns<'a> {
    /// The first.
    pub x: Input<'a>,
    /// The second.
    pub y: Input<'a>,
}

/// What [`Recording::explained_variance`] reads.
#[derive(Clone, Debug)]
pub struct ExplainedVarianceColumns<'a> {
    /// Values.
    pub values: Input<'a>,
    /// Returns.
    pub returns: Input<'a>,
}

/// What [`Recording::analysis`] reads.
#[derive(Clone, Debug)]
pub struct AnalysisColumns<'a> {
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Advantages.
    pub advantages: Input<'a>,
    /// Token rewards.
    pub rewards: Input<'a>,
}

/// What [`Recording::clip_fractions`] reads.
#[derive(Clone, Debug)]
pub struct RatioColumns<'a> {
    /// Log-probabilities of the policy being trained.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Advantages.
    pub advantages: Input<'a>,
}

/// What [`Recording::variance_proxy`] reads.
#[derive(Clone, Debug)]
pub struct VarianceProxyColumns<'a> {
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Σ π² over the vocabulary.
    pub sum_pi_squared: Input<'a>,
    /// Advantages.
    pub advantages: Input<'a>,
    /// Rollout weights; `None` gives weight 1.
    pub weights: Option<Input<'a>>,
}

/// Distances of entries from the mean of their segment, with what corrects the rounding of that mean: the exact
/// distance is `centred − rests / sizes`, the sum of the squared ones `squares − rests² / sizes`.
#[derive(Debug)]
pub(crate) struct Spreads {
    /// Per entry.
    pub(crate) centred: Column,
    /// Per segment.
    pub(crate) rests: Column,
    /// Per segment.
    pub(crate) squares: Column,
}

/// A batch of two kept tokens, one per sequence, on which the core checks a config.
pub(crate) fn two_tokens() -> Result<Batch<'static>, GpuError> {
    Ok(Batch::new(Layout::padded(2, 1)?, Mask::new(&[true, true]))?)
}

/// The moments of two quantities from the records of their two passes; the first two sums of the first are theirs.
pub(crate) fn co_moments(done: &Done, count: usize, sums: [f64; 2], squares: Download) -> CoMoments {
    if count == 0 {
        return CoMoments::default();
    }
    let n = count as f64;
    let [rest_x, rest_y, xx, yy, xy] = done.sums(squares);
    CoMoments {
        count: count as u64,
        mean_x: sums[0] / n,
        mean_y: sums[1] / n,
        m2_x: (xx - rest_x * rest_x / n).max(0.0),
        m2_y: (yy - rest_y * rest_y / n).max(0.0),
        co_moment: xy - rest_x * rest_y / n,
    }
}

impl Recording<'_> {
    /// The mean of the kept tokens: the core's [`mean`](metric::mean).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn mean(
        &mut self,
        batch: &GpuBatch<'_>,
        values: &Input<'_>,
        config: &MeanConfig,
    ) -> Result<Pending<f64>, GpuError> {
        values.check_len("values", batch.tokens())?;
        batch.check_some_kept()?;
        let values = self.column(values)?;
        let sums = self.sum(batch, &values)?.header;
        let n = config.divisor.of(batch.host().kept() as f64);
        Ok(Pending::new(move |done| {
            let [sum] = done.sums(sums);
            sum / n
        }))
    }

    /// The variance of the kept tokens: the core's [`variance`](metric::variance).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn variance(
        &mut self,
        batch: &GpuBatch<'_>,
        values: &Input<'_>,
        config: &VarianceConfig,
    ) -> Result<Pending<f64>, GpuError> {
        values.check_len("values", batch.tokens())?;
        batch.check_some_kept()?;
        check_count("variance", batch, config.spread)?;
        let moments = self.moments(batch, values)?;
        let VarianceConfig { spread, divisor } = *config;
        Ok(Pending::new(move |done| done.get(&moments).variance(spread, divisor).unwrap_or(f64::NAN)))
    }

    /// Means, squared distances and co-moment of two quantities: the core's [`CoMoments::of`].
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn co_moments(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &PairColumns<'_>,
    ) -> Result<Pending<CoMoments>, GpuError> {
        input.x.check_len("x", batch.tokens())?;
        input.y.check_len("y", batch.tokens())?;
        self.joint(batch, &input.x, &input.y)
    }

    fn joint(&mut self, batch: &GpuBatch<'_>, x: &Input<'_>, y: &Input<'_>) -> Result<Pending<CoMoments>, GpuError> {
        let [x, y] = self.columns([x, y])?;
        let ([], sums) = self.tokens(&TWO_SUMS, batch, &[Some(&x), Some(&y)], &[])?;
        let count = batch.host().kept();
        let given = [Some(&x), Some(&y), Some(&sums.column)];
        let ([], squares) = self.tokens(&CO_SQUARES, batch, &given, &[bits(count as f64)])?;
        let (sums, squares) = (sums.header, squares.header);
        Ok(Pending::new(move |done| co_moments(done, count, done.sums(sums), squares)))
    }

    /// Pearson's correlation of two quantities: the core's [`correlation`](metric::correlation).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn correlation(&mut self, batch: &GpuBatch<'_>, input: &PairColumns<'_>) -> Result<Pending<f64>, GpuError> {
        check_count("correlation", batch, Spread::Sample)?;
        let moments = self.co_moments(batch, input)?;
        Ok(Pending::new(move |done| done.get(&moments).correlation().unwrap_or(f64::NAN)))
    }

    /// The share of the returns' variance that the values explain: the core's
    /// [`explained_variance`](metric::explained_variance).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn explained_variance(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &ExplainedVarianceColumns<'_>,
        config: &ExplainedVarianceConfig,
    ) -> Result<Pending<f64>, GpuError> {
        input.values.check_len("values", batch.tokens())?;
        input.returns.check_len("returns", batch.tokens())?;
        let two = ExplainedVarianceInput { values: &[0.0_f32; 2], returns: &[0.0; 2] };
        metric::explained_variance(&two_tokens()?, two, config)?;
        batch.check_some_kept()?;
        check_count("explained_variance", batch, config.spread)?;
        let moments = self.joint(batch, &input.returns, &input.values)?;
        let ExplainedVarianceConfig { epsilon, spread } = *config;
        Ok(Pending::new(move |done| {
            let CoMoments { count, m2_x, m2_y, co_moment, .. } = done.get(&moments);
            let divisor = count as f64 - if spread == Spread::Sample { 1.0 } else { 0.0 };
            1.0 - (m2_x + m2_y - 2.0 * co_moment) / divisor / (m2_x / divisor + epsilon)
        }))
    }

    /// Entropy, covariance and weighted entropy of a batch: the core's [`analysis`](metric::analysis).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn analysis(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &AnalysisColumns<'_>,
    ) -> Result<Pending<Analysis>, GpuError> {
        input.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        input.advantages.check_len("advantages", batch.tokens())?;
        input.rewards.check_len("rewards", batch.tokens())?;
        batch.check_some_kept()?;
        let [advantages, old, rewards] = self.columns([&input.advantages, &input.old_log_probs, &input.rewards])?;
        let given = [Some(&advantages), Some(&old), Some(&rewards)];
        let ([], sums) = self.tokens(&ANALYSIS, batch, &given, &[])?;
        let (count, sequences) = (batch.host().kept(), batch.host().sequences() as u64);
        let given = [Some(&advantages), Some(&old), Some(&sums.column)];
        let ([], squares) = self.tokens(&CO_SQUARES, batch, &given, &[bits(count as f64)])?;
        let (sums, squares) = (sums.header, squares.header);
        Ok(Pending::new(move |done| {
            let [x, y, entropy_sum, wh_sum, reward_sum] = done.sums(sums);
            let mut analysis = Analysis::default();
            analysis.moments = co_moments(done, count, [x, y], squares);
            analysis.entropy_sum = entropy_sum;
            analysis.wh_sum = wh_sum;
            analysis.reward_sum = reward_sum;
            analysis.sequences = sequences;
            analysis
        }))
    }

    /// The means of all four KL estimators in one pass: the core's [`kl_means`](metric::kl_means).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn kl_means(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &KlColumns<'_>,
        config: &MeanConfig,
    ) -> Result<Pending<KlMeans>, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.ref_log_probs.check_len("ref_log_probs", batch.tokens())?;
        batch.check_some_kept()?;
        let [new, reference] = self.columns([&input.log_probs, &input.ref_log_probs])?;
        let ([], sums) = self.tokens(&KL_MEANS, batch, &[Some(&new), Some(&reference)], &[])?;
        let (n, sums) = (config.divisor.of(batch.host().kept() as f64), sums.header);
        Ok(Pending::new(move |done| {
            let mut means = KlMeans::default();
            [means.k1, means.abs, means.k2, means.k3] = done.sums::<4>(sums).map(|sum| sum / n);
            means
        }))
    }

    /// Shares of tokens beyond the clip bounds: the core's [`clip_fractions`](metric::clip_fractions).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn clip_fractions(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &RatioColumns<'_>,
        config: &ClipConfig,
    ) -> Result<Pending<ClipFractions>, GpuError> {
        input.log_probs.check_len("log_probs", batch.tokens())?;
        input.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        input.advantages.check_len("advantages", batch.tokens())?;
        let two = [0.0_f32; 2];
        let two = RatioInput { log_probs: &two, old_log_probs: &two, advantages: &two };
        metric::clip_fractions(&two_tokens()?, two, config)?;
        batch.check_some_kept()?;
        let [new, old, advantages] = self.columns([&input.log_probs, &input.old_log_probs, &input.advantages])?;
        let settings = clip_settings(config.clip_low, config.clip_high, config.dual_clip);
        let given = [Some(&new), Some(&old), Some(&advantages)];
        let ([], sums) = self.tokens(&CLIP_FRACTIONS, batch, &given, &settings)?;
        let (n, sums) = (config.divisor.of(batch.host().kept() as f64), sums.header);
        Ok(Pending::new(move |done| {
            let mut shares = ClipFractions::default();
            [shares.low, shares.high, shares.dual] = done.sums::<3>(sums).map(|count| count / n);
            shares.clipped = shares.low + shares.high;
            shares
        }))
    }

    /// (Σ w)² / Σ w²: the core's [`effective_sample_size`](metric::effective_sample_size).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn effective_sample_size(
        &mut self,
        batch: &GpuBatch<'_>,
        weights: &Input<'_>,
    ) -> Result<Pending<f64>, GpuError> {
        weights.check_len("weights", batch.tokens())?;
        batch.check_some_kept()?;
        let weights = self.column(weights)?;
        let ([], sums) = self.tokens(&EFFECTIVE_SAMPLE_SIZE, batch, &[Some(&weights)], &[])?;
        let sums = sums.header;
        Ok(Pending::new(move |done| {
            let [sum, squares] = done.sums(sums);
            if squares == 0.0 {
                0.0
            } else {
                sum * sum / squares
            }
        }))
    }

    /// The mean of each sequence: the core's [`row_means`](metric::row_means).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn row_means(&mut self, batch: &GpuBatch<'_>, values: &Input<'_>) -> Result<Column, GpuError> {
        values.check_len("values", batch.tokens())?;
        let values = self.column(values)?;
        let sums = self.fold(Fold::Sum, batch, &values)?;
        let counts = batch.counts(self)?;
        // a divisor of n + 1e-8 is n in f32
        let rows = Rows(batch.host().sequences());
        let ([means], _) = self.tokens(&ROW_MEANS, &rows, &[Some(&sums), Some(&counts)], &[])?;
        Ok(means)
    }

    /// Distances from the means of segments with `sizes` kept entries.
    pub(crate) fn spreads(
        &mut self,
        over: &dyn Segmented,
        values: &Column,
        sizes: &Column,
    ) -> Result<Spreads, GpuError> {
        let sums = self.fold(Fold::Sum, over, values)?;
        let given = [Some(values), Some(&sums), Some(sizes)];
        let ([centred, square], _) = self.tokens(&SPREAD, over, &given, &[])?;
        let rests = self.fold(Fold::Sum, over, &centred)?;
        let squares = self.fold(Fold::Sum, over, &square)?;
        Ok(Spreads { centred, rests, squares })
    }

    /// Shifts and scales every sequence to mean 0 and deviation 1: the core's [`row_normalize`](metric::row_normalize).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn row_normalize(
        &mut self,
        batch: &GpuBatch<'_>,
        values: &Input<'_>,
        config: &RowNormalizeConfig,
    ) -> Result<Column, GpuError> {
        values.check_len("values", batch.tokens())?;
        metric::row_normalize(&two_tokens()?, &[0.0_f32; 2], config, &mut [0.0; 2])?;
        let values = self.column(values)?;
        let sizes = batch.counts(self)?;
        let of = self.spreads(batch, &values, &sizes)?;
        let given = [Some(&of.centred), Some(&of.rests), Some(&of.squares), Some(&sizes)];
        let ([out], _) = self.tokens(&ROW_NORMALIZE, batch, &given, &[bits(config.floor)])?;
        Ok(out)
    }

    /// Estimates of the gradient's signal and noise: the core's [`variance_proxy`](metric::variance_proxy).
    ///
    /// # Errors
    ///
    /// As [`Self::mean`].
    pub fn variance_proxy(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &VarianceProxyColumns<'_>,
        config: &VarianceProxyConfig,
    ) -> Result<Pending<VarianceProxy>, GpuError> {
        input.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        input.sum_pi_squared.check_len("sum_pi_squared", batch.tokens())?;
        input.advantages.check_len("advantages", batch.tokens())?;
        if let Some(weights) = &input.weights {
            weights.check_len("weights", batch.tokens())?;
        }
        let two = [0.0_f32; 2];
        metric::variance_proxy(&two_tokens()?, VarianceProxyInput::new(&two, &two, &two), config)?;
        if batch.host().sequences() == 0 {
            return Err(Error::EmptyMask.into());
        }
        let [old, squares, advantages] =
            self.columns([&input.old_log_probs, &input.sum_pi_squared, &input.advantages])?;
        let weights = input.weights.as_ref().map(|weights| self.column(weights)).transpose()?;
        let given = [Some(&old), Some(&squares), weights.as_ref()];
        let ([original, scaled], _) = self.tokens(&VARIANCE_PROXY, batch, &given, &[])?;
        let columns = [Some(&advantages), weights.as_ref(), Some(&original), Some(&scaled)];
        let mut sums = [None; 4];
        for (sum, column) in sums.iter_mut().zip(columns) {
            if let Some(column) = column {
                let folded = self.fold(Fold::Sum, batch, column)?;
                *sum = Some(self.download(&folded));
            }
        }
        let (kept, config) = (kept_per_row(batch.host()), *config);
        Ok(Pending::new(move |done| {
            let sums = sums.map(|sum| sum.map(|sum| done.floats(sum)));
            let of = |sum: usize, row: usize| sums[sum].map_or(0.0, |sums| f64::from(sums[row]));
            let mut totals = [0.0; 3];
            for (row, &kept) in kept.iter().enumerate().filter(|(_, &kept)| kept > 0) {
                let n = config.divisor.of(kept as f64);
                let a = of(0, row) / n;
                let mean_weight = if sums[1].is_some() { of(1, row) / n } else { 1.0 };
                totals[0] += mean_weight * mean_weight * (a * a) * of(2, row).max(0.0);
                totals[1] += a * a;
                totals[2] += of(3, row);
            }
            let rows = kept.len() as f64;
            let [power, a_squared, w] = totals.map(|total| total / rows);
            let signal = config.gradient_norm * config.gradient_norm;
            let mut proxy = VarianceProxy::default();
            proxy.signal_strength = signal;
            proxy.total_power = power;
            proxy.pure_noise = if kept.len() > 1 { ((power - signal) / (rows - 1.0)).max(0.0) } else { 0.0 };
            proxy.expected_a_squared = a_squared;
            proxy.expected_w = w;
            proxy
        }))
    }
}

/// The core's error if the batch has too few kept tokens for this spread.
fn check_count(what: &'static str, batch: &GpuBatch<'_>, spread: Spread) -> Result<(), GpuError> {
    let (needed, got) = (if spread == Spread::Sample { 2 } else { 1 }, batch.host().kept());
    match got < needed {
        true => Err(Error::TooFew { what, needed, got }.into()),
        false => Ok(()),
    }
}
