//! The way of other devices, on the CPU.

use candle_core::{Device, Tensor, Var};
use tokenwise::{policy::PolicyConfig, Batch, Layout, Mask};

use super::{log_probs_and_entropy, on_device, LogProbInput, LogProbs};

#[test]
fn candles_own_operations_agree_with_the_core() {
    let keep = [true, false, true];
    let batch = Batch::new(Layout::padded(1, 3).unwrap(), Mask::new(&keep)).unwrap();
    let numbers = [[[0.5, -1.0, 2.0, f64::NEG_INFINITY], [f64::NAN; 4], [90.0, 90.5, -90.0, 0.0]]];
    let logits = Var::new(&numbers, &Device::Cpu).unwrap();
    let tokens = Tensor::new(&[[2_u32, 9, 0]], &Device::Cpu).unwrap();
    let config = PolicyConfig { temperature: 0.8 };
    let ours = log_probs_and_entropy(&batch, LogProbInput { logits: &logits, tokens: &tokens }, &config).unwrap();
    let theirs = on_device(&batch, &logits, vec![2, 9, 0], &config).unwrap();
    let numbers = |policy: &LogProbs| {
        let sum = (&policy.log_probs * 0.7).unwrap() + (&policy.entropy * -0.3).unwrap();
        let gradients = sum.unwrap().sum_all().unwrap().backward().unwrap();
        let all = [&policy.log_probs, &policy.entropy, gradients.get(&logits).unwrap()];
        all.map(|tensor| tensor.flatten_all().unwrap().to_vec1::<f64>().unwrap()).concat()
    };
    for (a, b) in numbers(&ours).into_iter().zip(numbers(&theirs)) {
        assert!((a - b).abs() <= 1e-12, "{a} {b}");
    }
    let dims = [ours.log_probs.dims(), theirs.log_probs.dims(), ours.entropy.dims(), theirs.entropy.dims()];
    assert_eq!(dims, [[1, 3]; 4]);
    assert!(on_device(&batch, &logits, vec![0; 3], &PolicyConfig { temperature: 0.0 }).is_err());
    let short = Batch::new(Layout::padded(1, 2).unwrap(), Mask::new(&keep[..2])).unwrap();
    assert!(on_device(&short, &logits, vec![0; 2], &config).is_err());
}
