use super::{partial::Piece, *};
use crate::{
    divergence::KlInput,
    metric::{
        analysis, verl_metrics, AnalysisInput, Lengths, OpenRlhfConfig, TrlConfig, VarianceProxyInput, VerlConfig,
        VerlInput,
    },
    rollout::{Criterion, RejectionConfig, RejectionOption, RolloutConfig, RolloutInput, RolloutLevel},
    Batch, CoMoments, Divisor, Layout, Mask, MeanConfig, Moments, PairInput,
};

mod accuracy;
mod selection;
mod sets;

/// A small generator: enough for data, splits and orders.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ (self.0 >> 29)
    }

    fn below(&mut self, bound: usize) -> usize {
        (self.next() >> 33) as usize % bound
    }

    /// Uniform in (−1, 1), some of them with a far exponent.
    fn number(&mut self) -> f64 {
        let x = (self.next() >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
        match self.below(12) {
            0 => x * 1e-12,
            1 => x * 1e9,
            2 => 0.0,
            _ => x,
        }
    }
}

fn sum_of(values: &[f64]) -> ExactSum {
    let mut sum = ExactSum::default();
    values.iter().for_each(|&x| sum.add(x));
    sum
}

fn batch_of(keep: &[bool]) -> Batch<'_> {
    Batch::new(Layout::padded(1, keep.len()).unwrap(), Mask::new(keep)).unwrap()
}

fn bytes<P: Partial>(state: &P) -> Vec<u8> {
    let mut bytes = vec![0; P::bytes_len()];
    state.write_bytes(&mut bytes).unwrap();
    bytes
}

#[test]
fn nothing_is_lost_to_cancellation() {
    assert_eq!(sum_of(&[1e308, -1e308, 1e-308]).value(), 1e-308);
    assert_eq!(sum_of(&[1.0, 1e100, 1.0, -1e100]).value(), 2.0);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX, -f64::MAX]).value(), f64::MAX);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX]).value(), f64::INFINITY);
    assert_eq!(sum_of(&[-f64::MAX, -f64::MAX]).value(), f64::NEG_INFINITY);
    assert_eq!(sum_of(&[f64::MAX, f64::MAX]).mean(&MeanConfig::default()), Ok(f64::MAX));
    assert_eq!(sum_of(&[]).value().to_bits(), 0.0_f64.to_bits());
    assert_eq!(sum_of(&[-0.0]).value().to_bits(), 0.0_f64.to_bits());
}

#[test]
fn the_smallest_numbers_are_numbers() {
    let least = f64::from_bits(1);
    assert_eq!(sum_of(&[least; 3]).value(), f64::from_bits(3));
    assert_eq!(sum_of(&[-least; 3]).value(), -f64::from_bits(3));
    assert_eq!(sum_of(&[f64::MIN_POSITIVE, -least]).value(), f64::from_bits((1 << 52) - 1));
    // means between two numbers: ties to even
    let mean = |values: &[f64]| sum_of(values).mean(&MeanConfig::default()).unwrap().to_bits();
    assert_eq!(mean(&[least, 0.0]), 0);
    assert_eq!(mean(&[f64::from_bits(3), 0.0]), 2);
    assert_eq!(mean(&[least, least, 0.0]), 1);
    assert_eq!(mean(&[least, 0.0, 0.0]), 0);
}

#[test]
fn halves_are_rounded_to_even_and_anything_more_up() {
    let half = f64::EPSILON / 2.0;
    assert_eq!(sum_of(&[1.0, half]).value(), 1.0);
    assert_eq!(sum_of(&[1.0, half, 1e-300]).value(), 1.0 + f64::EPSILON);
    assert_eq!(sum_of(&[1.0, half, -1e-300]).value(), 1.0);
    assert_eq!(sum_of(&[1.0 + f64::EPSILON, half]).value(), 1.0 + 2.0 * f64::EPSILON);
    assert_eq!(sum_of(&[-1.0, -half, -1e-300]).value(), -1.0 - f64::EPSILON);
    // a mantissa of ones carries into the exponent
    assert_eq!(sum_of(&[2.0 - f64::EPSILON, half]).value(), 2.0);
}

#[test]
fn infinities_and_nan_pass_through() {
    let (inf, nan) = (f64::INFINITY, f64::NAN);
    assert_eq!(sum_of(&[1.0, inf, inf]).value(), inf);
    assert_eq!(sum_of(&[1.0, -inf]).value(), -inf);
    assert!(sum_of(&[inf, -inf]).value().is_nan());
    assert!(sum_of(&[nan, 1.0]).mean(&MeanConfig::default()).unwrap().is_nan());
    let keep = [true; 3];
    let mut moments = ExactMoments::default();
    moments.update(&batch_of(&keep), &[1.0, inf, 2.0]).unwrap();
    assert_eq!(moments.moments().mean, inf);
    assert!(moments.moments().m2.is_nan());
}

#[test]
fn dropped_slots_are_not_read() {
    let keep = [true, false, true, false];
    let mut moments = ExactMoments::default();
    moments.update(&batch_of(&keep), &[1.0_f32, f32::NAN, 3.0, f32::INFINITY]).unwrap();
    assert_eq!(moments.moments(), Moments { count: 2, mean: 2.0, m2: 2.0 });
    let mut joint = ExactCoMoments::default();
    let input = PairInput { x: &[1.0, f64::NAN, 3.0, 1e30], y: &[2.0, f64::INFINITY, 0.0, f64::NAN] };
    joint.update(&batch_of(&keep), input).unwrap();
    let expected = CoMoments { count: 2, mean_x: 2.0, mean_y: 1.0, m2_x: 2.0, m2_y: 2.0, co_moment: -2.0 };
    assert_eq!(joint.co_moments(), expected);
    let mut verl = ExactVerl::default();
    let values = [1.0, f64::NAN, 3.0, f64::NAN];
    let input = VerlInput {
        advantages: Some(&values),
        old_log_probs: Some(&values),
        rollout_log_probs: Some(&values),
        ..Default::default()
    };
    verl.update(&batch_of(&keep), &input, &VerlConfig::default()).unwrap();
    let metrics = verl.metrics(&VerlConfig::default()).unwrap();
    assert_eq!(metrics.advantages.map(|found| (found.mean, found.max, found.min)), Some((2.0, 3.0, 1.0)));
    assert!(metrics.entries().all(|(_, value)| !value.is_nan()), "{metrics:?}");
}

#[test]
fn subnormal_and_huge_blocks_are_exact() {
    let keep = [true; 40];
    let tiny: Vec<f32> = (0..40).map(|i| f32::from_bits(i + 1)).collect();
    let mut sum = ExactSum::default();
    sum.update(&batch_of(&keep), &tiny).unwrap();
    assert_eq!(sum.value(), 820.0 * f64::from(f32::from_bits(1)));
    let huge: Vec<f64> = (0..40).map(|i| if i % 2 == 0 { f64::MAX } else { -f64::MAX / 2.0 }).collect();
    let mut moments = ExactMoments::default();
    moments.update(&batch_of(&keep), &huge).unwrap();
    assert_eq!(moments.moments().mean, f64::MAX / 4.0);
    assert_eq!(moments.moments().m2, f64::INFINITY);
    let mut sum = ExactSum::default();
    let least: Vec<f64> = (0..40).map(|i| f64::from_bits(i + 1)).collect();
    sum.update(&batch_of(&keep), &least).unwrap();
    assert_eq!(sum.value(), f64::from_bits(820));
}

/// Every column of verl's metrics, from four.
fn verl_input<'a>([a, b, c, d]: [&'a [f32]; 4], lengths: &'a [u32]) -> VerlInput<'a, f32> {
    VerlInput {
        scores: Some(c),
        rewards: Some(d),
        advantages: Some(a),
        returns: Some(b),
        values: Some(c),
        entropies: Some(d),
        log_probs: Some(b),
        ref_log_probs: Some(c),
        old_log_probs: Some(b),
        rollout_log_probs: Some(d),
        response_lengths: Some(Lengths { tokens: lengths, limit: 700 }),
        ..Default::default()
    }
}

/// Miri needs seconds for the states of one sequence.
const SEQUENCES: usize = if cfg!(miri) { 3 } else { 24 };

/// One batch of sequences of several lengths, and every state of a part of it.
struct Data {
    offsets: Vec<u32>,
    keep: Vec<bool>,
    columns: [Vec<f32>; 4],
}

impl Data {
    fn new(random: &mut Random) -> Self {
        let mut offsets = vec![0_u32];
        let lengths = if cfg!(miri) { [0, 1, 7, 20, 25, 30] } else { [0, 1, 7, 64, 700, 1500] };
        for _ in 0..SEQUENCES {
            let length = lengths[random.below(lengths.len())];
            offsets.push(offsets[offsets.len() - 1] + length);
        }
        let len = offsets[offsets.len() - 1] as usize;
        let mut column = || (0..len).map(|_| random.number() as f32).collect::<Vec<f32>>();
        let columns = [column(), column(), column(), column()];
        let keep = (0..len).map(|_| random.below(7) > 0).collect();
        Self { offsets, keep, columns }
    }

    /// The bytes of all states over some consecutive sequences.
    fn states(&self, sequences: core::ops::Range<usize>) -> States {
        let base = self.offsets[sequences.start];
        let slots = base as usize..self.offsets[sequences.end] as usize;
        let offsets: Vec<u32> =
            self.offsets[sequences.start..=sequences.end].iter().map(|offset| offset - base).collect();
        let batch = Batch::new(Layout::packed(&offsets).unwrap(), Mask::new(&self.keep[slots.clone()])).unwrap();
        let [a, b, c, d] = self.columns.each_ref().map(|column| &column[slots.clone()]);
        let lengths: Vec<u32> = offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
        States::of(&batch, [a, b, c, d], &lengths)
    }
}

#[derive(Clone, Default)]
struct States(
    ExactMoments,
    ExactCoMoments,
    ExactAnalysis,
    ExactKl,
    ExactVerl,
    ExactTrl,
    ExactOpenRlhf,
    ExactRolloutWeights,
    ExactCriterion,
    ExactRejection,
    ExactVarianceProxy,
);

impl States {
    fn of(batch: &Batch<'_>, [a, b, c, d]: [&[f32]; 4], lengths: &[u32]) -> Self {
        let mut states = Self::default();
        states.0.update(batch, a).unwrap();
        states.1.update(batch, PairInput { x: a, y: b }).unwrap();
        states.2.update(batch, AnalysisInput { old_log_probs: b, advantages: a, rewards: c }).unwrap();
        states.3.update(batch, KlInput { log_probs: b, ref_log_probs: c }).unwrap();
        states.4.update(batch, &verl_input([a, b, c, d], lengths), &VerlConfig::default()).unwrap();
        // every sequence is a prompt of its own, since prompts are not split
        let ids: Vec<u32> = (0..lengths.len() as u32).collect();
        let scores: Vec<f32> = lengths.iter().map(|&length| length as f32 / 3.0).collect();
        let mut scratch = vec![Moments::default(); lengths.len()];
        let trl = sets::trl_input([a, b, c, d], &ids, &scores, lengths);
        states.5.update(batch, &trl, &TrlConfig::default(), &mut scratch).unwrap();
        let openrlhf = sets::openrlhf_input([a, b, c, d], &ids, &scores, lengths);
        states.6.update(batch, &openrlhf, &OpenRlhfConfig::default(), &mut scratch).unwrap();
        let sampled = RolloutInput { old_log_probs: b, rollout_log_probs: d };
        let level = RolloutLevel::Sequence;
        states.7.update(batch, sampled, &RolloutConfig { level, ..Default::default() }).unwrap();
        let criterion = Criterion { option: RejectionOption::TokenK3, ..Default::default() };
        states.8.update(batch, sampled, &criterion, Divisor::Count).unwrap();
        let config = RejectionConfig { criteria: &[criterion], ..Default::default() };
        states.9.update(batch, sampled, &config).unwrap();
        let proxies = VarianceProxyInput { weights: Some(d), ..VarianceProxyInput::new(b, c, a) };
        states.10.update(batch, proxies, Divisor::Count).unwrap();
        states
    }

    fn merge(&mut self, other: &Self) {
        self.0.merge(&other.0);
        self.1.merge(&other.1);
        self.2.merge(&other.2);
        self.3.merge(&other.3);
        self.4.merge(&other.4);
        self.5.merge(&other.5);
        self.6.merge(&other.6);
        self.7.merge(&other.7);
        self.8.merge(&other.8);
        self.9.merge(&other.9);
        self.10.merge(&other.10);
    }

    fn bytes(&self) -> Vec<u8> {
        let (first, second) = ([bytes(&self.0), bytes(&self.1), bytes(&self.2), bytes(&self.3)].concat(), &self.4);
        let rollout = [bytes(&self.7), bytes(&self.8), bytes(&self.9), bytes(&self.10)].concat();
        [first, bytes(second), bytes(&self.5), bytes(&self.6), rollout].concat()
    }
}

#[test]
fn a_thousand_splits_and_orders_have_the_same_bytes() {
    let mut random = Random(1);
    let (batches, splits, cuts) = if cfg!(miri) { (1, 1, 1) } else { (10, 100, 5) };
    for data in 0..batches {
        let all = Data::new(&mut random);
        let sequences = all.offsets.len() - 1;
        let whole = all.states(0..sequences).bytes();
        // every sequence by itself, so that parts are merged rather than computed again
        let single: Vec<States> = (0..sequences).map(|sequence| all.states(sequence..sequence + 1)).collect();
        for split in 0..splits {
            let mut parts = vec![States::default()];
            for one in &single {
                if random.below(4) == 0 {
                    parts.push(States::default());
                }
                let last = parts.len() - 1;
                parts[last].merge(one);
            }
            // any tree: two random parts at a time
            while parts.len() > 1 {
                let taken = parts.swap_remove(random.below(parts.len()));
                let into = random.below(parts.len());
                parts[into].merge(&taken);
            }
            assert!(parts[0].bytes() == whole, "data {data}, split {split}");
        }
        for _ in 0..cuts {
            let cut = random.below(sequences);
            let mut parts = all.states(cut..sequences);
            parts.merge(&all.states(0..cut));
            assert!(parts.bytes() == whole, "data {data}, cut at {cut}");
        }
    }
}

#[test]
fn a_sequence_may_be_cut_anywhere() {
    let mut random = Random(5);
    let len = if cfg!(miri) { 520 } else { 5000 };
    let values: Vec<f32> = (0..len).map(|_| random.number() as f32).collect();
    let keep: Vec<bool> = (0..len).map(|_| random.below(3) > 0).collect();
    let mut whole = ExactMoments::default();
    whole.update_by_number(&batch_of(&keep), &values).unwrap();
    let cuts: &[usize] = if cfg!(miri) { &[1, 512] } else { &[0, 1, 511, 512, 513, 2500, 4999, 5000] };
    for &cut in cuts {
        let (mut left, mut right) = (ExactMoments::default(), ExactMoments::default());
        left.update_by_number(&batch_of(&keep[..cut]), &values[..cut]).unwrap();
        right.update_by_number(&batch_of(&keep[cut..]), &values[cut..]).unwrap();
        right.merge(&left);
        assert!(right == whole, "cut at {cut}");
    }
}

#[cfg(feature = "rayon")]
#[test]
fn any_number_of_threads_has_the_same_bytes() {
    let (sequences, len) = (64, 5000);
    let mut random = Random(31);
    let mut column = || (0..sequences * len).map(|_| random.number() as f32).collect::<Vec<f32>>();
    let [mut a, b, c, d] = [column(), column(), column(), column()];
    // one sequence that is added number by number
    a[7 * len + 3] = f32::INFINITY;
    let keep: Vec<bool> = (0..sequences * len).map(|slot| slot % 7 != 3).collect();
    let batch = Batch::new(Layout::padded(sequences, len).unwrap(), Mask::new(&keep)).unwrap();
    let lengths = vec![len as u32; sequences];
    let states = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| States::of(&batch, [&a, &b, &c, &d], &lengths).bytes())
    };
    let one = states(1);
    for threads in [2, 3, 8] {
        assert!(states(threads) == one, "{threads}");
    }
}

#[test]
fn limbs_added_elsewhere_are_a_merge() {
    let mut random = Random(9);
    let all = Data::new(&mut random);
    let (left, right) = (all.states(0..SEQUENCES / 3).4, all.states(SEQUENCES / 3..SEQUENCES).4);
    let limbs: Vec<i64> = left.limbs().iter().zip(right.limbs()).map(|(a, b)| a + b).collect();
    let peaks: Vec<i64> = left.peaks().iter().zip(right.peaks()).map(|(a, b)| *a.max(b)).collect();
    let reduced = ExactVerl::from_limbs(&limbs, &peaks).unwrap();
    assert!(reduced == all.states(0..SEQUENCES).4);
    assert!(ExactVerl::from_bytes(&bytes(&reduced)).unwrap() == reduced);
}

#[test]
fn bytes_and_limbs_from_outside_are_checked() {
    let state = sum_of(&[1.5, -2.0]);
    let good = bytes(&state);
    assert_eq!(good.len(), 8 + 8 * ExactSum::LIMBS);
    assert!(ExactSum::from_bytes(&good).unwrap() == state);
    assert!(matches!(ExactSum::from_bytes(&good[1..]), Err(crate::Error::Length { what: "bytes", .. })));
    for index in 0..8 {
        let mut bad = good.clone();
        bad[index] ^= 1;
        assert!(matches!(ExactSum::from_bytes(&bad), Err(crate::Error::Entry { what: "bytes", .. })), "{index}");
    }
    assert!(ExactMoments::from_bytes(&good).is_err());
    let refused = |index: usize, limb: i64| {
        let mut limbs = state.limbs().to_vec();
        limbs[index] = limb;
        let found = ExactSum::from_limbs(&limbs, &[]);
        matches!(found, Err(crate::Error::Entry { what: "limbs", index: at, .. }) if at == index)
    };
    assert!(refused(0, -1) && refused(5, i64::MAX) && refused(5, i64::MIN) && refused(ExactSum::LIMBS - 1, -1));
    assert!(!refused(5, -7));
    assert_eq!(ExactSum::PIECES.len(), 2);
    assert!(ExactSum::PIECES[0] == Piece::Count);
}

#[test]
fn the_results_are_those_of_the_functions() {
    let mut random = Random(21);
    let all = Data::new(&mut random);
    let States(moments, joint, analysed, kl, verl, ..) = all.states(0..SEQUENCES);
    let batch = Batch::new(Layout::packed(&all.offsets).unwrap(), Mask::new(&all.keep)).unwrap();
    let [a, b, c, d] = all.columns.each_ref().map(|column| &column[..]);
    let near = |got: f64, expected: f64, what: &str| {
        let close = got == expected || approx::relative_eq!(got, expected, max_relative = 1e-9, epsilon = 1e-9);
        assert!(close || got.is_nan() && expected.is_nan(), "{what}: {got} {expected}");
    };
    let expected = Moments::of(&batch, a).unwrap();
    near(moments.moments().mean, expected.mean, "mean");
    near(moments.moments().m2, expected.m2, "m2");
    let expected = CoMoments::of(&batch, PairInput { x: a, y: b }).unwrap();
    near(joint.co_moments().correlation().unwrap(), expected.correlation().unwrap(), "correlation");
    let expected = analysis(&batch, AnalysisInput { old_log_probs: b, advantages: a, rewards: c }).unwrap();
    for (got, expected) in analysed.analysis().unwrap().entries().into_iter().zip(expected.entries()) {
        near(got.1, expected.1, expected.0);
    }
    let config = MeanConfig { divisor: Divisor::CountPlusEpsilon };
    let expected = crate::metric::kl_means(&batch, KlInput { log_probs: b, ref_log_probs: c }, &config).unwrap();
    near(kl.means(&config).unwrap().k1, expected.k1, "k1");
    near(kl.means(&config).unwrap().abs, expected.abs, "abs");
    let lengths: Vec<u32> = all.offsets.windows(2).map(|pair| pair[1] - pair[0]).collect();
    let input = verl_input([a, b, c, d], &lengths);
    let expected = verl_metrics(&batch, input, &VerlConfig::default(), &mut []).unwrap();
    let got = verl.metrics(&VerlConfig::default()).unwrap();
    assert!(got.entries().map(|(key, _)| key).eq(expected.entries().map(|(key, _)| key)));
    assert!(got.entries().count() > 40);
    for ((key, got), (_, expected)) in got.entries().zip(expected.entries()) {
        near(got, expected, key);
    }
}

#[test]
fn inputs_of_some_parts_only_are_refused() {
    let keep = [true; 2];
    let (mut with, mut without) = (ExactVerl::default(), ExactVerl::default());
    let input = VerlInput { advantages: Some(&[1.0, 2.0]), ..Default::default() };
    with.update(&batch_of(&keep), &input, &VerlConfig::default()).unwrap();
    without.update::<f64>(&batch_of(&keep), &VerlInput::default(), &VerlConfig::default()).unwrap();
    with.merge(&without);
    let refused = with.metrics(&VerlConfig::default());
    assert_eq!(refused.err(), Some(crate::Error::Length { what: "advantages", expected: 2, got: 1 }));
}
