//! Who computes, and that it is said.

use tokenwise::{
    advantage::{gae, GaeConfig, GaeInput, GaeOutput},
    policy::{LogProbInput, LogProbOutput, PolicyConfig},
    Batch, Layout, Mask,
};
use tokenwise_gpu::{GpuError, Ran, Reason, Shim, Thresholds};

use crate::adapter::small_gpu;

const EVERYTHING: Thresholds = Thresholds { logits: 0, tokens: 0 };

/// Advantages of one sequence of ones, and who computed them.
fn advantages(shim: &Shim, len: usize) -> (Vec<f32>, Ran) {
    let (keep, ones) = (vec![true; len], vec![1.0; len]);
    let batch = Batch::new(Layout::padded(1, len).unwrap(), Mask::new(&keep)).unwrap();
    let input = GaeInput { rewards: &ones, values: &ones, bootstrap: &[0.5] };
    let (mut found, mut returns) = (vec![9.0; len], vec![9.0; len]);
    let output = GaeOutput { advantages: &mut found, returns: &mut returns };
    let ran = pollster::block_on(shim.gae(&batch, input, &GaeConfig::default(), output)).unwrap();
    let (mut expected, mut returns) = (vec![9.0; len], vec![9.0; len]);
    let output = GaeOutput { advantages: &mut expected, returns: &mut returns };
    gae(&batch, input, &GaeConfig::default(), output).unwrap();
    // small whole numbers and halves: exact on both
    assert_eq!(found, expected);
    (found, ran)
}

fn log_probs(shim: &Shim, tokens: &[u32]) -> tokenwise::Result<(Vec<f32>, Ran)> {
    let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
    let logits = [0.0, f32::NEG_INFINITY, 0.0, f32::NAN, f32::NAN, f32::NAN];
    let (mut log_probs, mut entropy) = (vec![9.0; 2], vec![9.0; 2]);
    let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
    let input = LogProbInput { logits: &logits, vocab: 3, tokens };
    let ran = pollster::block_on(shim.log_probs_and_entropy(&batch, input, &PolicyConfig::default(), output))?;
    Ok((log_probs, ran))
}

#[test]
fn without_a_gpu_the_core_computes_and_says_why() {
    let shim = Shim::without_gpu().with_thresholds(EVERYTHING);
    assert!(shim.gpu().is_err());
    let (_, ran) = advantages(&shim, 5);
    assert!(matches!(ran, Ran::Core(Reason::NoGpu(GpuError::NoAdapter(_)))));
    let (found, ran) = log_probs(&shim, &[1, 9]).unwrap();
    assert!(matches!(ran, Ran::Core(Reason::NoGpu(_))));
    assert_eq!(found, [f32::NEG_INFINITY, 0.0]);
}

#[test]
fn looking_for_a_gpu_never_fails() {
    let shim = pollster::block_on(Shim::new());
    advantages(&shim, 5);
}

#[test]
fn small_batches_stay_on_the_core() {
    let Some(gpu) = small_gpu(1 << 20) else { return };
    let shim = Shim::over(gpu).with_thresholds(Thresholds { logits: 4, tokens: 6 });
    assert_eq!(advantages(&shim, 5).1, Ran::Core(Reason::Small { work: 5, threshold: 6 }));
    assert_eq!(advantages(&shim, 6).1, Ran::Gpu);
    // one kept row of three
    assert_eq!(log_probs(&shim, &[0, 9]).unwrap().1, Ran::Core(Reason::Small { work: 3, threshold: 4 }));
    let shim = shim.with_thresholds(EVERYTHING);
    let (found, ran) = log_probs(&shim, &[1, 9]).unwrap();
    assert_eq!((found, ran), (vec![f32::NEG_INFINITY, 0.0], Ran::Gpu));
}

#[test]
fn what_the_device_cannot_do_the_core_does() {
    let Some(gpu) = small_gpu(8) else { return };
    let shim = Shim::over(gpu).with_thresholds(EVERYTHING);
    assert!(matches!(advantages(&shim, 3).1, Ran::Core(Reason::Failed(GpuError::Limit { needed: 3, limit: 2, .. }))));
    let (_, ran) = log_probs(&shim, &[0, 9]).unwrap();
    assert!(matches!(ran, Ran::Core(Reason::Failed(GpuError::Limit { needed: 12, limit: 8, .. }))));
    assert_eq!(advantages(&shim, 2).1, Ran::Gpu);
    shim.gpu().unwrap().destroy();
    assert!(matches!(advantages(&shim, 2).1, Ran::Core(Reason::Failed(GpuError::Lost(_)))));
}

#[test]
fn errors_are_the_cores_wherever_it_would_run() {
    let expected = tokenwise::Error::TokenId { index: 0, id: 3, vocab: 3 };
    let shims = [Some(Shim::without_gpu()), small_gpu(1 << 20).map(|gpu| Shim::over(gpu).with_thresholds(EVERYTHING))];
    for shim in shims.into_iter().flatten() {
        assert_eq!(log_probs(&shim, &[3, 0]).unwrap_err(), expected);
    }
}
