//! Which of GPU and core computes, and that it is reported.

use tokenwise::{
    advantage::{gae, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    divergence::{KlConfig, KlInput},
    loss::{PolicyLossInput, PpoConfig},
    policy::{LogProbInput, LogProbOutput, LogitsGradientInput, PolicyConfig},
    reward::{ShapeConfig, ShapeInput},
    Batch, Layout, Mask,
};
use tokenwise_catalogue::{entries, find, Array, Call, Columns, Value};
use tokenwise_gpu::{Engine, Family, GpuError, Ran, Reason, Thresholds};

use crate::{adapter::small_gpu, random::Random};

/// Advantages of one sequence of ones, and who computed them.
fn advantages(engine: &Engine, len: usize) -> (Vec<f32>, Ran) {
    let (keep, ones) = (vec![true; len], vec![1.0; len]);
    let batch = Batch::new(Layout::padded(1, len).unwrap(), Mask::new(&keep)).unwrap();
    let input = GaeInput { rewards: &ones, values: &ones, bootstrap: &[0.5] };
    let (mut found, mut returns) = (vec![9.0; len], vec![9.0; len]);
    let output = GaeOutput { advantages: &mut found, returns: &mut returns };
    let ran = pollster::block_on(engine.gae(&batch, input, &GaeConfig::default(), output)).unwrap();
    let (mut expected, mut returns) = (vec![9.0; len], vec![9.0; len]);
    let output = GaeOutput { advantages: &mut expected, returns: &mut returns };
    gae(&batch, input, &GaeConfig::default(), output).unwrap();
    // small integers and halves: exact on both
    assert_eq!(found, expected);
    (found, ran.ran)
}

fn log_probs(engine: &Engine, tokens: &[u32]) -> tokenwise::Result<(Vec<f32>, Ran)> {
    let batch = Batch::new(Layout::padded(1, 2)?, Mask::new(&[true, false]))?;
    let logits = [0.0, f32::NEG_INFINITY, 0.0, f32::NAN, f32::NAN, f32::NAN];
    let (mut log_probs, mut entropy) = (vec![9.0; 2], vec![9.0; 2]);
    let output = LogProbOutput { log_probs: &mut log_probs, entropy: &mut entropy };
    let input = LogProbInput { logits: &logits, vocab: 3, tokens };
    let ran = pollster::block_on(engine.log_probs_and_entropy(&batch, input, &PolicyConfig::default(), output))?;
    Ok((log_probs, ran.ran))
}

#[test]
fn without_a_gpu_the_core_computes_and_says_why() {
    let engine = Engine::cpu().with_thresholds(Thresholds::ALWAYS);
    assert!(engine.device().is_err());
    let (_, ran) = advantages(&engine, 5);
    assert!(matches!(ran, Ran::Core(Reason::NoGpu(GpuError::NoAdapter(_)))));
    let (found, ran) = log_probs(&engine, &[1, 9]).unwrap();
    assert!(matches!(ran, Ran::Core(Reason::NoGpu(_))));
    assert_eq!(found, [f32::NEG_INFINITY, 0.0]);
}

#[test]
fn looking_for_a_gpu_never_fails() {
    let engine = pollster::block_on(Engine::new());
    advantages(&engine, 5);
}

#[test]
fn small_batches_stay_on_the_core() {
    let Some(gpu) = small_gpu(1 << 20) else { return };
    let engine = Engine::gpu(gpu).with_thresholds(Thresholds { logits: 4, tokens: 99, scans: 6 });
    assert_eq!(advantages(&engine, 5).1, Ran::Core(Reason::Small { work: 5, threshold: 6 }));
    assert_eq!(advantages(&engine, 6).1, Ran::Gpu);
    // one kept row of three
    assert_eq!(log_probs(&engine, &[0, 9]).unwrap().1, Ran::Core(Reason::Small { work: 3, threshold: 4 }));
    let engine = engine.with_thresholds(Thresholds::ALWAYS);
    let (found, ran) = log_probs(&engine, &[1, 9]).unwrap();
    assert_eq!((found, ran), (vec![f32::NEG_INFINITY, 0.0], Ran::Gpu));
}

#[test]
fn a_lost_device_leaves_everything_to_the_core() {
    let Some(gpu) = small_gpu(8) else { return };
    let engine = Engine::gpu(gpu);
    assert_eq!(advantages(&engine, 3).1, Ran::Gpu);
    assert_eq!(log_probs(&engine, &[0, 9]).unwrap().1, Ran::Gpu);
    engine.device().unwrap().destroy();
    assert!(matches!(advantages(&engine, 2).1, Ran::Core(Reason::Failed(GpuError::Lost(_)))));
    assert!(matches!(log_probs(&engine, &[0, 9]).unwrap().1, Ran::Core(Reason::Failed(GpuError::Lost(_)))));
}

#[test]
fn errors_are_the_cores_wherever_it_would_run() {
    let expected = tokenwise::Error::TokenId { index: 0, id: 3, vocab: 3 };
    let engines = [Some(Engine::cpu()), small_gpu(1 << 20).map(Engine::gpu)];
    for engine in engines.into_iter().flatten() {
        assert_eq!(log_probs(&engine, &[3, 0]).unwrap_err(), expected);
    }
}

/// Every typed call of the chain, on both sides; and a call that does not fit is refused as by the core.
#[test]
fn the_typed_calls_agree_with_the_core() {
    let Some(gpu) = small_gpu(1 << 20) else { return };
    let (core, device) = (Engine::cpu(), Engine::gpu(gpu));
    let mut random = Random::new(30);
    let (rows, width, vocab) = (6, 50, 30);
    let tokens = rows * width;
    let keep = random.mask(tokens, 75);
    let batch = Batch::new(Layout::padded(rows, width).unwrap(), Mask::new(&keep)).unwrap();
    let (logits, ids) = (random.normals(tokens * vocab, 2.0), vec![4; tokens]);
    let (a, b, c) = (random.normals(tokens, 1.0), random.normals(tokens, 1.0), random.normals(tokens, 1.0));
    let scores = random.normals(rows, 1.0);
    let run = |engine: &Engine, cut: usize| -> tokenwise::Result<Vec<(Vec<f32>, Ran)>> {
        let new = |len: usize| vec![9.0_f32; len - cut];
        let mut found = Vec::new();
        pollster::block_on(async {
            let (mut out, mut second) = (new(tokens), vec![9.0; tokens]);
            let output = LogProbOutput { log_probs: &mut out, entropy: &mut second };
            let input = LogProbInput { logits: &logits, vocab, tokens: &ids };
            let done = engine.log_probs_and_entropy(&batch, input, &PolicyConfig::default(), output).await;
            found.push(done.map(|report| ([out, second].concat(), report.ran)));
            let mut out = new(tokens * vocab);
            let input =
                LogitsGradientInput { logits: &logits, vocab, tokens: &ids, grad_log_probs: &a, grad_entropy: &b };
            let done = engine.logits_gradient(&batch, input, &PolicyConfig::default(), &mut out).await;
            found.push(done.map(|report| (out, report.ran)));
            let input = KlInput { log_probs: &a, ref_log_probs: &b };
            let mut out = new(tokens);
            let done = engine.kl_estimate(&batch, input, &KlConfig::default(), &mut out).await;
            found.push(done.map(|report| (out, report.ran)));
            let mut out = new(tokens);
            let done = engine.kl_gradient(&batch, input, &KlConfig::default(), &mut out).await;
            found.push(done.map(|report| (out, report.ran)));
            let mut out = new(tokens);
            let done = engine.place_scores(&batch, &scores, &mut out).await;
            found.push(done.map(|report| (out, report.ran)));
            let mut out = new(tokens);
            let input = ShapeInput { scores: &a, kl: &b };
            let done = engine.shape_rewards(&batch, input, &ShapeConfig::default(), &mut out).await;
            found.push(done.map(|report| (out, report.ran)));
            let (mut out, mut second) = (new(tokens), vec![9.0; tokens]);
            let input = GaeInput { rewards: &a, values: &b, bootstrap: &scores };
            let output = GaeOutput { advantages: &mut out, returns: &mut second };
            let done = engine.gae(&batch, input, &GaeConfig::default(), output).await;
            found.push(done.map(|report| ([out, second].concat(), report.ran)));
            let mut out = new(tokens);
            let done = engine.whiten(&batch, &a, &WhitenConfig::default(), &mut out).await;
            found.push(done.map(|report| (out, report.ran)));
            let mut out = new(tokens);
            let input = PolicyLossInput::new(&a, &b, &c);
            let done = engine.ppo_clip(&batch, input, &PpoConfig::default(), &mut out).await;
            found.push(done.map(|(loss, report)| {
                out.push(loss.loss as f32);
                (out, report.ran)
            }));
        });
        match cut {
            0 => found.into_iter().collect(),
            _ => {
                let refused: Vec<_> = found.into_iter().map(|done| done.unwrap_err()).collect();
                assert_eq!(refused.len(), 9);
                assert!(refused.iter().all(|error| matches!(error, tokenwise::Error::Length { .. })), "{refused:?}");
                Ok(Vec::new())
            }
        }
    };
    let (core_found, device_found) = (run(&core, 0).unwrap(), run(&device, 0).unwrap());
    for (call, ((got, ran), (exact, core_ran))) in device_found.iter().zip(&core_found).enumerate() {
        assert_eq!(*ran, Ran::Gpu, "call {call}");
        assert!(matches!(core_ran, Ran::Core(Reason::NoGpu(_))));
        for (index, (got, exact)) in got.iter().zip(exact).enumerate() {
            assert!((got - exact).abs() <= 2e-5 * (1.0 + exact.abs()), "call {call}[{index}]: {got}, {exact}");
        }
    }
    run(&core, 1).unwrap();
    run(&device, 1).unwrap();
}

#[test]
fn calls_by_name_are_chosen_by_their_family() {
    let families = |family: Family| entries().filter(move |entry| Family::of(entry) == family).map(|entry| entry.name);
    assert!(families(Family::Logits).any(|name| name == "logits_gradient"));
    assert!(families(Family::Scans).any(|name| name == "gae"));
    assert!(families(Family::Tokens).any(|name| name == "ppo_clip"));
    let Some(gpu) = small_gpu(1 << 20) else { return };
    let engine = Engine::gpu(gpu).with_thresholds(Thresholds { logits: 0, tokens: 7, scans: 9 });
    let (keep, config) = ([true; 8], Value::EMPTY);
    let batch = Batch::new(Layout::padded(2, 4).unwrap(), Mask::new(&keep)).unwrap();
    let ones = || Array::Real(vec![1.0_f32; 8]);
    let inputs = Columns::new()
        .with("rewards", ones())
        .with("values", ones())
        .with("entropies", ones())
        .with("bootstrap", Array::Real(vec![0.0; 2]));
    let ran = |name: &str| {
        let entry = find(name).unwrap();
        let mut outputs = entry.outputs_for(Some(&batch), None, &inputs);
        let mut call = Call::new(Some(batch), None, &inputs, &config, &mut outputs);
        let reason = pollster::block_on(engine.try_call(entry, &mut call)).err();
        let report = pollster::block_on(engine.call(entry, &mut call));
        (reason, report.map(|report| report.ran))
    };
    let small = Reason::Small { work: 8, threshold: 9 };
    assert_eq!(ran("gae"), (Some(small.clone()), Ok(Ran::Core(small))));
    assert_eq!(ran("whiten"), (None, Ok(Ran::Gpu)));
    // refused by the core, on whichever side
    assert!(matches!(ran("kl_estimate").1, Err(GpuError::Refused(_))));
}

#[test]
fn thresholds_are_measured_and_stored() {
    let without = pollster::block_on(Engine::cpu().calibrate());
    assert!(matches!(without, Err(GpuError::NoAdapter(_))));
    let Some(gpu) = small_gpu(64 << 20) else { return };
    let engine = Engine::gpu(gpu);
    let measured = pollster::block_on(engine.calibrate()).unwrap();
    println!("{measured:?}");
    let stored = serde_json::to_string(&measured).unwrap();
    assert_eq!(serde_json::from_str::<Thresholds>(&stored).unwrap(), measured);
    assert!(serde_json::from_str::<Thresholds>(r#"{"logits": 1, "tokens": 1, "scans": 1, "other": 1}"#).is_err());
    // whatever was measured: the times of a busy machine may favour either
    let mut thresholds = measured;
    thresholds.scans = thresholds.scans.max(1 << 20);
    let engine = engine.with_thresholds(thresholds);
    assert_eq!(engine.thresholds(), thresholds);
    assert!(matches!(advantages(&engine, 1).1, Ran::Core(Reason::Small { .. })));
}
