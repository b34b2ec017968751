use core::{
    cell::Cell,
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};
use std::{
    collections::HashSet,
    sync::{mpsc, Mutex},
    thread,
    time::Duration,
};

use super::{
    in_order,
    threads::{limit_threads, REPORTS},
    Work,
};
use crate::{advantage::*, divergence::*, loss::*, metric::*, policy::*, Batch, Groups, Layout, Mask, Moments};

// Miri is some thousand times slower, but parts are as much smaller there: batches a few tokens long are split too.
const LONGEST: u32 = if cfg!(miri) { 20 } else { 4096 };
const PACKED: u32 = if cfg!(miri) { 8 } else { 120 };
const PADDED: usize = if cfg!(miri) { 4 } else { 48 };

/// Other numbers and lengths for every `TOKENWISE_SEED`.
fn seed() -> u32 {
    std::env::var("TOKENWISE_SEED").map_or(0, |seed| seed.parse().unwrap())
}

/// Every kernel that is split, over a batch large enough to be; all results as bits.
fn everything(batch: &Batch<'_>) -> Vec<u64> {
    let (tokens, rows) = (batch.tokens(), batch.sequences());
    let mut bits = Vec::new();
    let numbers = |salt: u32| -> Vec<f32> {
        let salt = salt ^ seed();
        let noise = |i: usize| (i as u32).wrapping_mul(2_654_435_761).wrapping_add(salt).rotate_left(13);
        (0..tokens).map(|i| noise(i) as f32 / 4e9 - 1.05).collect()
    };
    let (a, b, c) = (numbers(1), numbers(2), numbers(3));
    let (mut x, mut y) = (vec![9.0; tokens], vec![9.0; tokens]);
    let mut push = |out: &[f32]| bits.extend(out.iter().map(|x| u64::from(x.to_bits())));

    let bootstrap: Vec<f32> = (0..rows).map(|i| i as f32).collect();
    let input = GaeInput { rewards: &a, values: &b, bootstrap: &bootstrap };
    gae(batch, input, &GaeConfig::default(), GaeOutput { advantages: &mut x, returns: &mut y }).unwrap();
    push(&x);
    push(&y);
    discounted_returns(batch, ReturnsInput { rewards: &a, bootstrap: &bootstrap }, &ReturnsConfig::default(), &mut x)
        .unwrap();
    push(&x);
    whiten(batch, &a, &WhitenConfig::default(), &mut x).unwrap();
    push(&x);
    x.copy_from_slice(&a);
    whiten_in_place(batch, &mut x, &WhitenConfig::default()).unwrap();
    push(&x);
    kl_estimate(batch, KlInput { log_probs: &a, ref_log_probs: &b }, &KlConfig::default(), &mut x).unwrap();
    push(&x);
    kl_gradient(batch, KlInput { log_probs: &a, ref_log_probs: &b }, &KlConfig::default(), &mut x).unwrap();
    push(&x);
    let mut sums = vec![9.0; rows];
    sequence_sums(batch, &a, &mut sums).unwrap();
    push(&sums);
    broadcast(batch, &sums, &mut x).unwrap();
    push(&x);

    let ids: Vec<u32> = (0..rows as u32).map(|row| row / 2).collect();
    let groups = Groups::from_ids(&ids).unwrap();
    let mut of_prompt = vec![0; groups.count()];
    group_tokens(batch, &groups, &mut of_prompt).unwrap();
    let aggregate = Aggregate { mode: AggregateMode::PromptMean { groups, tokens: &of_prompt }, ..Default::default() };
    let input = PolicyLossInput { log_probs: &a, old_log_probs: &b, advantages: &c, weights: Some(&b) };
    let loss = ppo_clip(batch, input, &PpoConfig { aggregate, ..Default::default() }, &mut x).unwrap();
    push(&x);
    let result = analysis(batch, AnalysisInput { old_log_probs: &a, advantages: &b, rewards: &c }).unwrap();
    let moments = Moments::of(batch, &a).unwrap();
    bits.extend([loss.loss, loss.kl, result.wh_sum, result.covariance_mean(), moments.m2].map(f64::to_bits));
    bits
}

fn logits(batch: &Batch<'_>) -> Vec<u32> {
    const VOCAB: usize = if cfg!(miri) { 10 } else { 1000 };
    let logits: Vec<f32> = (0..batch.tokens() * VOCAB).map(|i| (i * 7919 % 1013) as f32 * 0.01).collect();
    let ids: Vec<u32> = (0..batch.tokens() as u32).map(|i| i % VOCAB as u32).collect();
    let (mut x, mut y) = (vec![9.0; batch.tokens()], vec![9.0; batch.tokens()]);
    let output = LogProbOutput { log_probs: &mut x, entropy: &mut y };
    let input = LogProbInput { logits: &logits, vocab: VOCAB, tokens: &ids };
    log_probs_and_entropy(batch, input, &PolicyConfig::default(), output).unwrap();
    let mut grad = vec![9.0; logits.len()];
    let input =
        LogitsGradientInput { logits: &logits, vocab: VOCAB, tokens: &ids, grad_log_probs: &x, grad_entropy: &y };
    logits_gradient(batch, input, &PolicyConfig::default(), &mut grad).unwrap();
    x.iter().chain(&y).chain(&grad).map(|x| x.to_bits()).collect()
}

#[test]
fn the_number_of_threads_changes_no_bit() {
    let width = LONGEST as usize;
    let lengths: Vec<u32> = (0..PACKED).map(|row| (row * row * 37).wrapping_add(seed() * row) % LONGEST).collect();
    let mut offsets = vec![0];
    lengths.iter().for_each(|length| offsets.push(offsets[offsets.len() - 1] + length));
    let total = offsets[offsets.len() - 1] as usize;
    let keep: Vec<bool> = (0..total.max(PADDED * width)).map(|i| i % 37 != 5).collect();
    let packed = Batch::new(Layout::packed(&offsets).unwrap(), Mask::new(&keep[..total])).unwrap();
    let padded = Batch::new(Layout::padded(PADDED, width).unwrap(), Mask::new(&keep[..PADDED * width])).unwrap();
    let cols = if cfg!(miri) { 3 } else { 100 };
    let short = Batch::new(Layout::padded(3, cols).unwrap(), Mask::new(&keep[..3 * cols])).unwrap();
    let with = |threads| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| (everything(&packed), everything(&padded), logits(&short)))
    };
    // one thread splits nothing
    let alone = with(1);
    let counts: &[usize] = if cfg!(miri) { &[2] } else { &[2, 3, 7] };
    for &threads in counts {
        assert!(alone == with(threads), "{threads} threads");
    }
}

#[test]
fn a_small_batch_starts_no_pool() {
    let batch = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[true; 4])).unwrap();
    let mut out = [0.0; 4];
    whiten(&batch, &[1.0, 2.0, 3.0, 4.0], &WhitenConfig::default(), &mut out).unwrap();
    // nor does a large one on one thread
    let keep = vec![true; 1 << 18];
    let large = Batch::new(Layout::padded(2, 1 << 17).unwrap(), Mask::new(&keep)).unwrap();
    limited(1, || whiten_in_place(&large, &mut vec![0.5_f32; 1 << 18], &WhitenConfig::default())).unwrap();
    // fails if there is a global pool; no other test uses one
    rayon::ThreadPoolBuilder::new().num_threads(1).build_global().unwrap();
}

thread_local! {
    static ALLOWED: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// Runs a call on at most so many threads; other tests have no limit.
fn limited<T>(threads: usize, call: impl FnOnce() -> T) -> T {
    limit_threads(|| ALLOWED.get());
    ALLOWED.set(threads);
    let result = call();
    ALLOWED.set(usize::MAX);
    result
}

#[test]
fn a_limit_is_kept_and_changes_no_bit() {
    let keep = vec![true; 48 * 4096];
    let batch = Batch::new(Layout::padded(48, 4096).unwrap(), Mask::new(&keep)).unwrap();
    let threads = || {
        let seen = Mutex::new(HashSet::new());
        in_order(
            &batch,
            Work { width: 1, per_token: 8 },
            [] as [&mut [f32]; 0],
            |part, [], report| {
                seen.lock().unwrap().insert(thread::current().id());
                thread::sleep(Duration::from_millis(2));
                part.sequences.clone().for_each(|_| report(()));
            },
            |()| (),
        );
        seen.into_inner().unwrap().len()
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(4).build().unwrap();
    pool.install(|| {
        assert_eq!(limited(0, threads), 1);
        assert_eq!(limited(1, threads), 1);
        assert!(limited(2, threads) <= 2);
        assert!((0..50).any(|_| threads() > 1), "nothing is split");
        let alone = limited(1, || everything(&batch));
        assert!(alone == limited(2, || everything(&batch)));
        assert!(alone == everything(&batch));
    });
}

/// Every thread of the pool calls formulas under one lock: a thread that waited by running another job would ask for
/// the lock that it holds, and one that waited for a helper that cannot start would wait for ever.
#[test]
fn a_host_may_hold_a_lock_while_it_calls() {
    const TOKENS: usize = if cfg!(miri) { 1 << 6 } else { 1 << 17 };
    const CALLS: usize = if cfg!(miri) { 9 } else { 60 };
    let (done, finished) = mpsc::channel();
    thread::spawn(move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(3).build().unwrap();
        let (lock, keep) = (Mutex::new(()), vec![true; 2 * TOKENS]);
        let batch = Batch::new(Layout::padded(2, TOKENS).unwrap(), Mask::new(&keep)).unwrap();
        let call = || {
            let _guard = lock.lock().unwrap();
            whiten_in_place(&batch, &mut vec![0.5_f32; 2 * TOKENS], &WhitenConfig::default()).unwrap();
        };
        pool.scope(|scope| (0..CALLS).for_each(|_| scope.spawn(|_| call())));
        done.send(()).unwrap();
    });
    assert_eq!(finished.recv_timeout(Duration::from_secs(120)), Ok(()), "deadlock");
}

#[test]
fn reports_of_many_sequences_need_little_memory() {
    const SEQUENCES: usize = if cfg!(miri) { 1 << 8 } else { 1 << 20 };
    let keep = vec![true; SEQUENCES];
    let batch = Batch::new(Layout::padded(SEQUENCES, 1).unwrap(), Mask::new(&keep)).unwrap();
    let reported = AtomicUsize::new(0);
    let (mut combined, mut most) = (0, 0);
    let pool = rayon::ThreadPoolBuilder::new().num_threads(2).build().unwrap();
    pool.install(|| {
        in_order(
            &batch,
            Work::ONE,
            [] as [&mut [f32]; 0],
            |part, [], report| {
                reported.fetch_add(part.sequences.len(), Relaxed);
                part.sequences.clone().for_each(|sequence| report([sequence; 8]));
            },
            |numbers: [usize; 8]| {
                assert_eq!(numbers, [combined; 8]);
                most = most.max(reported.load(Relaxed) - combined);
                combined += 1;
            },
        );
    });
    assert_eq!(combined, SEQUENCES);
    assert!(most * size_of::<[usize; 8]>() <= REPORTS, "{most} reports at once");
}

#[test]
fn a_part_begins_where_its_first_sequence_does() {
    let keep = [true; 12];
    let padded = Batch::new(Layout::padded(3, 4).unwrap(), Mask::new(&keep)).unwrap();
    assert_eq!([0, 1, 2, 3].map(|sequence| padded.first_token(sequence)), [0, 4, 8, 12]);
    let packed = Batch::new(Layout::packed(&[0, 2, 5, 9]).unwrap(), Mask::new(&keep[..9])).unwrap();
    // offsets of a part are those of the whole
    assert_eq!([0, 1, 2].map(|sequence| packed.part(1..3).first_token(sequence)), [0, 3, 7]);
}
