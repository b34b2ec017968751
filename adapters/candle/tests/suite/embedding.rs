//! The candle part of docs/embedding.md: the page shows the code between the marks, which is compiled and run here.

const PAGE: &str = include_str!("../../../../docs/embedding.md");
const THIS: &str = include_str!("embedding.rs");

// the page starts here
use candle_core::{Device, Tensor, Var};
use tokenwise::{loss::PpoConfig, Batch, Layout, Mask};
use tokenwise_candle::{log_probs_and_entropy, ppo_clip, LogProbInput, PolicyInput};

fn update() -> tokenwise_candle::Result<()> {
    let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
    let logits = Var::zeros((1, 2, 2), candle_core::DType::F64, &Device::Cpu)?; // the model's output
    let tokens = Tensor::new(&[[1_u32, 0]], &Device::Cpu)?;
    let advantages = Tensor::new(&[[1.0, f64::NAN]], &Device::Cpu)?;

    let input = LogProbInput { logits: &logits, tokens: &tokens };
    let policy = log_probs_and_entropy(&batch, input, &Default::default())?;
    let old_log_probs = policy.log_probs.detach();
    let input = PolicyInput::new(&policy.log_probs, &old_log_probs, &advantages);
    let loss = ppo_clip(&batch, input, &PpoConfig { clip_high: 0.28, ..Default::default() })?;
    assert_eq!((loss.value()?, loss.number("clip_fraction")?), (-1.0, 0.0));

    let gradients = loss.tensor.backward()?; // or of a sum of losses
    let gradient = gradients.get(&logits).map(|gradient| gradient.flatten_all()?.to_vec1::<f64>());
    assert_eq!(gradient.transpose()?, Some(vec![0.5, -0.5, 0.0, 0.0]));
    Ok(())
}
// the page ends here

#[test]
fn the_page_shows_code_that_runs() {
    update().unwrap();
    let shown = THIS.split("// the page starts here\n").nth(1).unwrap().split("// the page ends here").next().unwrap();
    assert!(PAGE.contains(shown), "docs/embedding.md does not show:\n{shown}");
}
