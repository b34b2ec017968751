//! Invalid calls give the core's errors and write nothing.

use tokenwise::{
    advantage::{gae, GaeConfig, GaeInput, GaeOutput},
    policy::{log_probs_and_entropy, LogProbInput, LogProbOutput, PolicyConfig},
    Batch, Layout, Mask,
};
use tokenwise_gpu::GpuError;

use crate::adapter::{gpu, small_gpu};

const KEEP: [bool; 4] = [true, true, false, true];

fn batch() -> Batch<'static> {
    Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&KEEP)).unwrap()
}

#[test]
fn logits_are_refused_as_by_the_core() {
    let Some(gpu) = gpu() else { return };
    let (logits, tokens) = ([0.5_f32; 12], [0, 1, 99, 2]);
    let good = LogProbInput { logits: &logits, vocab: 3, tokens: &tokens };
    let cases = [
        (LogProbInput { logits: &logits[1..], ..good }, 1.0, 4),
        (LogProbInput { vocab: 0, ..good }, 1.0, 4),
        (LogProbInput { vocab: usize::MAX, ..good }, 1.0, 4),
        (LogProbInput { tokens: &tokens[1..], ..good }, 1.0, 4),
        (LogProbInput { tokens: &[0, 3, 0, 0], ..good }, 1.0, 4),
        (good, 0.0, 4),
        (good, f64::NAN, 4),
        (good, 1.0, 3),
    ];
    for (input, temperature, len) in cases {
        let config = PolicyConfig { temperature };
        let (mut log_probs, mut entropy) = (vec![9.0; len], vec![9.0; 4]);
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        let refused = pollster::block_on(gpu.log_probs_and_entropy(&batch(), input, &config, output)).unwrap_err();
        assert!(log_probs.iter().chain(&entropy).all(|&x| x == 9.0));
        let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
        let by_core = log_probs_and_entropy(&batch(), input, &config, output).unwrap_err();
        assert_eq!(format!("{refused:?}"), format!("{:?}", GpuError::Core(by_core)));
    }
}

#[test]
fn gae_is_refused_as_by_the_core() {
    let Some(gpu) = gpu() else { return };
    let numbers = [0.5_f32; 5];
    let good = GaeInput { rewards: &numbers[..4], values: &numbers[..4], bootstrap: &numbers[..2] };
    let cases = [
        (GaeInput { rewards: &numbers, ..good }, (1.0, 1.0), 4),
        (GaeInput { values: &numbers[..3], ..good }, (1.0, 1.0), 4),
        (GaeInput { bootstrap: &numbers[..3], ..good }, (1.0, 1.0), 4),
        (good, (1.5, 1.0), 4),
        (good, (1.0, -0.5), 4),
        (good, (1.0, 1.0), 5),
    ];
    for (input, (gamma, lambda), len) in cases {
        let config = GaeConfig { gamma, lambda, ..Default::default() };
        let (mut advantages, mut returns) = (vec![9.0; 4], vec![9.0; len]);
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        let refused = pollster::block_on(gpu.gae(&batch(), input, &config, output)).unwrap_err();
        assert!(advantages.iter().chain(&returns).all(|&x| x == 9.0));
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        assert_eq!(refused, GpuError::Core(gae(&batch(), input, &config, output).unwrap_err()));
    }
}

#[test]
fn a_lost_device_is_an_error_for_ever() {
    let Some(gpu) = small_gpu(1 << 20) else { return };
    gpu.destroy();
    for _ in 0..2 {
        let (mut advantages, mut returns) = ([9.0; 4], [9.0; 4]);
        let output = GaeOutput { advantages: &mut advantages, returns: &mut returns };
        let input = GaeInput { rewards: &[1.0; 4], values: &[1.0; 4], bootstrap: &[0.0; 2] };
        let lost = pollster::block_on(gpu.gae(&batch(), input, &GaeConfig::default(), output));
        assert!(matches!(lost, Err(GpuError::Lost(_))), "{lost:?}");
        assert_eq!((advantages, returns), ([9.0; 4], [9.0; 4]));
    }
}
