//! Bytes to every function: nothing may panic, an error writes nothing, and a dropped slot gets 0.
//!
//! Run with `cargo +nightly fuzz run formulas -- -max_total_time=60`.
#![no_main]

use libfuzzer_sys::fuzz_target;
use tokenwise::{
    advantage::*, divergence::*, loss::*, metric::*, policy::*, reward::*, shift, Batch, Groups, Layout, Mask, Moments,
    Result,
};

/// Numbers made of the input's bytes; zeros when they run out.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn byte(&mut self) -> u8 {
        let (&first, rest) = self.0.split_first().unwrap_or((&0, &[]));
        self.0 = rest;
        first
    }

    /// Usually tame, sometimes any bit pattern.
    fn number(&mut self) -> f64 {
        match self.byte() {
            255 => f64::from_bits(u64::from_le_bytes(core::array::from_fn(|_| self.byte()))),
            254 => f64::NAN,
            253 => f64::INFINITY,
            252 => f64::NEG_INFINITY,
            tame => (f64::from(tame) - 126.0) / 32.0,
        }
    }

    /// Usually in `[0, 1]`.
    fn share(&mut self) -> f64 {
        match self.byte() {
            255 => self.number(),
            tame => f64::from(tame) / 254.0,
        }
    }

    /// The right length, or now and then one that is wrong.
    fn len(&mut self, right: usize) -> usize {
        match self.byte() {
            0 => right + 1,
            1 => right.saturating_sub(1),
            _ => right,
        }
    }

    fn numbers(&mut self, right: usize) -> Vec<f64> {
        (0..self.len(right)).map(|_| self.number()).collect()
    }

    fn ids(&mut self, right: usize, below: u8) -> Vec<u32> {
        (0..self.len(right)).map(|_| u32::from(self.byte() % below.max(1))).collect()
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[usize::from(self.byte()) % choices.len()]
    }
}

const UNTOUCHED: f64 = 1234.5;

/// Runs a kernel with one output per token slot.
fn tokens(batch: &Batch<'_>, len: usize, width: usize, run: impl FnOnce(&mut [f64]) -> Result<()>) {
    let mut out = vec![UNTOUCHED; len];
    match run(&mut out) {
        Ok(()) => {
            for (row, keep) in out.chunks(width.max(1)).zip(batch.mask().as_slice()) {
                assert!(*keep || row.iter().all(|x| x.to_bits() == 0), "a dropped slot is not +0");
            }
        }
        Err(_) => assert!(out.iter().all(|x| *x == UNTOUCHED), "an error wrote something"),
    }
}

fuzz_target!(|data: &[u8]| {
    let mut reader = Reader(data);
    let offsets = reader.ids(usize::from(reader.0.first().copied().unwrap_or(0) % 5), 12);
    let (rows, cols) = (usize::from(reader.byte() % 4), usize::from(reader.byte() % 20));
    let layout = if reader.byte() % 2 == 0 { Layout::padded(rows, cols) } else { Layout::packed(&offsets) };
    let Ok(layout) = layout else { return };
    let keep: Vec<bool> = (0..reader.len(layout.tokens())).map(|_| reader.byte() % 4 != 0).collect();
    let Ok(batch) = Batch::new(layout, Mask::new(&keep)) else { return };
    let (n, sequences) = (batch.tokens(), batch.sequences());
    stages_one_to_four(&mut reader, &batch, n, sequences);
    stages_five_and_six(&mut reader, &batch, n, sequences);
});

fn stages_one_to_four(reader: &mut Reader<'_>, batch: &Batch<'_>, n: usize, sequences: usize) {
    let vocab = usize::from(reader.byte() % 5);
    let (logits, ref_logits) = (reader.numbers(n * vocab), reader.numbers(n * vocab));
    let (ids, policy) = (reader.ids(n, 6), PolicyConfig { temperature: reader.share() });
    let (g, h, len) = (reader.numbers(n), reader.numbers(n), reader.len(n));
    let chosen = LogProbInput { logits: &logits, vocab, tokens: &ids };
    let alone = LogitsInput { logits: &logits, vocab };
    tokens(batch, len, 1, |out| token_log_probs(batch, chosen, &policy, out));
    tokens(batch, len, 1, |out| entropy(batch, alone, &policy, out));
    tokens(batch, len, 1, |out| sum_squared_probs(batch, alone, &policy, out));
    tokens(batch, len, 1, |log_probs| {
        let mut entropy = vec![UNTOUCHED; n];
        log_probs_and_entropy(batch, chosen, &policy, LogProbOutput { log_probs, entropy: &mut entropy })
    });
    let backward =
        LogitsGradientInput { logits: &logits, vocab, tokens: &ids, grad_log_probs: &g, grad_entropy: &h };
    tokens(batch, len * vocab, vocab, |out| logits_gradient(batch, backward, &policy, out));
    let pair = KlExactInput { logits: &logits, ref_logits: &ref_logits, vocab };
    tokens(batch, len, 1, |out| kl_exact(batch, pair, &policy, out));
    let pair = KlExactGradientInput { logits: &logits, ref_logits: &ref_logits, vocab, grad_kl: &g };
    tokens(batch, len * vocab, vocab, |out| kl_exact_gradient(batch, pair, &policy, out));
    let _ = shift(&batch.layout(), &batch.layout(), &g, 1, &mut vec![0.0; len]);

    let kl = KlConfig {
        estimator: reader.pick(&[KlEstimator::K1, KlEstimator::Abs, KlEstimator::K2, KlEstimator::K3]),
        gradient: reader.pick(&[KlGradient::Own, KlGradient::StraightThrough]),
        bounds: reader.pick(&[KlBounds::Unbounded, KlBounds::K3Only, KlBounds::Every]),
    };
    let (a, b, c, per_row) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.numbers(sequences));
    let two = KlInput { log_probs: &a, ref_log_probs: &b };
    tokens(batch, len, 1, |out| kl_estimate(batch, two, &kl, out));
    tokens(batch, len, 1, |out| kl_gradient(batch, two, &kl, out));
    let beta = reader.number();
    tokens(batch, len, 1, |out| place_scores(batch, &per_row, out));
    tokens(batch, len, 1, |out| shape_rewards(batch, ShapeInput { scores: &a, kl: &b }, beta, out));
    let input = KlInRewardInput { scores: &a, old_log_probs: &b, ref_log_probs: &c };
    tokens(batch, len, 1, |out| {
        kl_in_reward(batch, input, &KlRewardConfig { beta, kl, ..Default::default() }, out).map(drop)
    });
    let overlong = OverlongConfig {
        max_len: reader.byte().into(),
        buffer: reader.byte().into(),
        factor: reader.share(),
        floor: reader.pick(&[OverlongFloor::Unlimited, OverlongFloor::Factor]),
    };
    let _ = overlong_penalty(OverlongInput { scores: &a, lengths: &ids }, &overlong, &mut vec![0.0; len]);

    let across = reader.pick(&[Across::StepOver, Across::ZeroStep]);
    let config = GaeConfig { gamma: reader.share(), lambda: reader.share(), across };
    tokens(batch, len, 1, |advantages| {
        let mut returns = vec![UNTOUCHED; n];
        let input = GaeInput { rewards: &a, values: &b, bootstrap: &per_row };
        gae(batch, input, &config, GaeOutput { advantages, returns: &mut returns })
    });
    let config = ReturnsConfig { gamma: config.gamma, across };
    tokens(batch, len, 1, |out| {
        discounted_returns(batch, ReturnsInput { rewards: &a, bootstrap: &per_row }, &config, out)
    });
    tokens(batch, len, 1, |advantages| {
        let mut returns = vec![UNTOUCHED; n];
        let input = MonteCarloInput { rewards: &a, values: &b, bootstrap: &per_row };
        monte_carlo_advantage(batch, input, &config, MonteCarloOutput { advantages, returns: &mut returns })
    });
    let config = WhitenConfig {
        spread: reader.pick(&[Spread::Sample, Spread::Population]),
        epsilon: reader.share(),
        place: reader.pick(&[EpsilonPlace::InsideRoot, EpsilonPlace::Outside, EpsilonPlace::FloorVariance]),
        center: reader.pick(&[Center::Shift, Center::KeepMean]),
        scale: reader.pick(&[Scale::StandardDeviation, Scale::Unit]),
        divisor: reader.pick(&[Divisor::Count, Divisor::CountPlusEpsilon]),
    };
    tokens(batch, len, 1, |out| whiten(batch, &a, &config, out));
    tokens(batch, len, 1, |out| uniform_credit(batch, &per_row, out));
    let k = reader.byte().into();
    tokens(batch, len, 1, |out| last_k_credit(batch, &per_row, k, out));
    let input = AttentionInput { scores: &per_row, weights: &a };
    tokens(batch, len, 1, |out| attention_credit(batch, input, out));
    tokens(batch, len, 1, |out| broadcast(batch, &per_row, out));
    let _ = sequence_sums(batch, &a, &mut vec![0.0; sequences]);
    let group_ids = reader.ids(sequences, 4);
    let groups = if reader.byte() % 2 == 0 { Groups::from_ids(&group_ids) } else { Groups::contiguous(&group_ids) };
    if let Ok(groups) = groups {
        let singleton = reader.pick(&[Singleton::Zero, Singleton::Raw, Singleton::Undefined]);
        let (mut scratch, mut out) = (vec![Moments::default(); groups.count()], vec![0.0; groups.sequences()]);
        let config = GroupConfig { epsilon: reader.share(), singleton, ..Default::default() };
        let _ = group_relative(&groups, &per_row, &config, &mut scratch, &mut out);
        let _ = leave_one_out(&groups, &per_row, &LeaveOneOutConfig { singleton }, &mut scratch, &mut out);
    }
}

fn stages_five_and_six(reader: &mut Reader<'_>, batch: &Batch<'_>, n: usize, sequences: usize) {
    let (a, b, c, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(n), reader.len(n));
    let group_ids = reader.ids(sequences, 4);
    let groups = Groups::from_ids(&group_ids);
    let mut per_group = vec![0; groups.as_ref().map_or(0, Groups::count)];
    if let Ok(groups) = &groups {
        let _ = group_tokens(batch, groups, &mut per_group);
    }
    let mode = match (reader.byte() % 6, groups) {
        (0, _) => AggregateMode::TokenMean,
        (1, _) => AggregateMode::TokenSum,
        (2, _) => AggregateMode::SequenceMeanTokenSum,
        (3, _) => AggregateMode::SequenceMeanTokenSumNorm { scale: reader.number() },
        (4, Ok(groups)) => AggregateMode::PromptMean { groups, tokens: &per_group },
        _ => AggregateMode::SequenceMeanTokenMean,
    };
    let mut count = || u64::from(reader.byte());
    let counts = GlobalCounts { tokens: count(), sequences: count(), prompts: count(), ranks: count() };
    let aggregation = Aggregate {
        mode,
        counts: reader.pick(&[Counts::Local, Counts::Global(counts)]),
        empty_rows: reader.pick(&[EmptyRows::Excluded, EmptyRows::Counted]),
        divisor: reader.pick(&[Divisor::Count, Divisor::CountPlusEpsilon]),
    };
    tokens(batch, len, 1, |out| aggregate(batch, &a, &aggregation, out).map(drop));
    let input = PolicyLossInput { log_probs: &a, old_log_probs: &b, advantages: &c };
    let bound = reader.share() * 20.0;
    let config =
        SurrogateConfig { log_ratio_bound: reader.pick(&[None, Some(bound)]), aggregate: aggregation };
    tokens(batch, len, 1, |grad| surrogate(batch, input, &config, grad).map(drop));
    let dual = 1.0 + reader.share();
    let dual_clip = reader.pick(&[DualClip::Off, DualClip::NegativeOnly(dual), DualClip::BothSigns(dual)]);
    let config = PpoConfig {
        clip_low: reader.share(),
        clip_high: reader.share(),
        dual_clip,
        log_ratio_bound: config.log_ratio_bound,
        aggregate: aggregation,
        ..Default::default()
    };
    tokens(batch, len, 1, |grad| ppo_clip(batch, input, &config, grad).map(drop));
    let clip = reader.share();
    let config =
        ValueConfig { clip: reader.pick(&[None, Some(clip)]), aggregate: aggregation, ..Default::default() };
    let input = ValueLossInput { predictions: &a, values: &b, returns: &c };
    tokens(batch, len, 1, |grad| value_loss(batch, input, &config, grad).map(drop));
    let config = EntropyBonusConfig { coefficient: reader.number(), aggregate: aggregation };
    tokens(batch, len, 1, |grad| entropy_bonus(batch, &a, &config, grad).map(drop));

    let divisor = aggregation.divisor;
    let _ = mean(batch, &a, divisor);
    let _ = variance(batch, &a, Spread::Sample, divisor);
    let _ = correlation(batch, PairInput { x: &a, y: &b });
    let input = ExplainedVarianceInput { values: &a, returns: &b };
    let _ = explained_variance(batch, input, &ExplainedVarianceConfig { epsilon: reader.share(), ..Default::default() });
    let _ = kl_means(batch, KlInput { log_probs: &a, ref_log_probs: &b }, divisor);
    let input = RatioInput { log_probs: &a, old_log_probs: &b, advantages: &c };
    let _ = clip_fractions(batch, input, &ClipConfig { dual_clip, ..Default::default() });
    let input = AnalysisInput { old_log_probs: &a, advantages: &b, rewards: &c };
    if let Ok(mut result) = analysis(batch, input) {
        let other = result;
        result.merge(&other);
        let _ = result.entries();
    }
}
