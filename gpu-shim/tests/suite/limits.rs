//! Batches beyond the limits of a device, and devices below ours.

use tokenwise::{
    advantage::{gae, GaeConfig, GaeInput, GaeOutput},
    divergence::{kl_estimate, KlConfig, KlInput},
    policy::{logits_gradient, LogitsGradientInput, PolicyConfig},
    Batch, Layout, Mask,
};
use tokenwise_catalogue::{find, Array, Call, Columns, Value};
use tokenwise_gpu::{Backends, Engine, Gpu, GpuError, GpuOptions, Limits, Ran, Reason};

use crate::{
    adapter::{gpu, made},
    random::Random,
};

/// A device with these limits.
fn limited(limit: impl FnOnce(&mut Limits)) -> Option<Gpu> {
    let mut limits = gpu()?.limits().clone();
    limit(&mut limits);
    made(&GpuOptions { limits: Some(limits), ..Default::default() })
}

/// A device whose buffers, bindings and dispatches are small.
fn narrow() -> Option<Gpu> {
    limited(|limits| {
        limits.max_buffer_size = 16 << 10;
        limits.max_storage_buffer_binding_size = 4 << 10;
        limits.max_compute_workgroups_per_dimension = 7;
    })
}

#[track_caller]
fn near(got: &[f32], exact: &[f32]) {
    assert_eq!(got.len(), exact.len());
    for (index, (got, exact)) in got.iter().zip(exact).enumerate() {
        assert!((got - exact).abs() <= 1e-5 * (1.0 + exact.abs()), "{index}: {got}, {exact}");
    }
}

/// The formulas of a token, of logits and of a sequence: each in as many parts as the device needs.
#[test]
fn large_batches_are_split_unnoticed() {
    let Some(gpu) = narrow() else { return };
    let engine = Engine::gpu(gpu);
    let mut random = Random::new(60);
    let (rows, width, vocab) = (40, 300, 1500);
    let tokens = rows * width;
    let keep = random.mask(tokens, 70);
    let batch = Batch::new(Layout::padded(rows, width).unwrap(), Mask::new(&keep)).unwrap();
    let (first, second) = (random.normals(tokens, 1.0), random.normals(tokens, 1.0));
    let (mut got, mut exact) = (vec![9.0; tokens], vec![9.0; tokens]);
    let (input, config) = (KlInput { log_probs: &first, ref_log_probs: &second }, KlConfig::default());
    let report = pollster::block_on(engine.kl_estimate(&batch, input, &config, &mut got)).unwrap();
    kl_estimate(&batch, input, &config, &mut exact).unwrap();
    assert_eq!(report.ran, Ran::Gpu);
    near(&got, &exact);
    let bootstrap = random.normals(rows, 1.0);
    let (mut returns, mut exact_returns) = (got.clone(), got.clone());
    let (input, config) = (GaeInput { rewards: &first, values: &second, bootstrap: &bootstrap }, GaeConfig::default());
    let output = GaeOutput { advantages: &mut got, returns: &mut returns };
    let report = pollster::block_on(engine.gae(&batch, input, &config, output)).unwrap();
    gae(&batch, input, &config, GaeOutput { advantages: &mut exact, returns: &mut exact_returns }).unwrap();
    assert_eq!(report.ran, Ran::Gpu);
    near(&got, &exact);
    near(&returns, &exact_returns);
    // rows of logits larger than a binding
    let batch = Batch::new(Layout::padded(1, 9).unwrap(), Mask::new(&keep[..9])).unwrap();
    let (logits, ids) = (random.normals(9 * vocab, 3.0), [3; 9]);
    let (grad, zeros) = (&first[..9], [0.5; 9]);
    let input =
        LogitsGradientInput { logits: &logits, vocab, tokens: &ids, grad_log_probs: grad, grad_entropy: &zeros };
    let (mut got, mut exact) = (vec![9.0; 9 * vocab], vec![9.0; 9 * vocab]);
    let config = PolicyConfig { temperature: 0.8 };
    let report = pollster::block_on(engine.logits_gradient(&batch, input, &config, &mut got)).unwrap();
    logits_gradient(&batch, input, &config, &mut exact).unwrap();
    assert_eq!(report.ran, Ran::Gpu);
    near(&got, &exact);
}

/// By name, every formula that may be split.
#[test]
fn calls_by_name_are_split_unnoticed() {
    let Some(gpu) = narrow() else { return };
    let engine = Engine::gpu(gpu);
    let (mut random, config) = (Random::new(61), Value::EMPTY);
    let (rows, width) = (25, 400);
    let keep = random.mask(rows * width, 80);
    let batch = Batch::new(Layout::padded(rows, width).unwrap(), Mask::new(&keep)).unwrap();
    let mut inputs = Columns::<f32>::new();
    for name in ["log_probs", "ref_log_probs", "rewards", "values", "kl", "scores"] {
        inputs.set(name, Array::Real(random.normals(rows * width, 1.0)));
    }
    inputs.set("bootstrap", Array::Real(random.normals(rows, 1.0)));
    let per_sequence = Columns::<f32>::new()
        .with("scores", Array::Real(random.normals(rows, 1.0)))
        .with("values", Array::Real(random.normals(rows, 1.0)));
    for (name, inputs) in [
        ("kl_estimate", &inputs),
        ("kl_gradient", &inputs),
        ("shape_rewards", &inputs),
        ("place_scores", &per_sequence),
        ("discounted_returns", &inputs),
        ("gae", &inputs),
        ("td_lambda", &inputs),
        ("broadcast", &per_sequence),
        ("sequence_sums", &inputs),
    ] {
        let entry = find(name).unwrap();
        let (mut got, mut exact) =
            (entry.outputs_for(Some(&batch), None, inputs), entry.outputs_for(Some(&batch), None, inputs));
        let mut call = Call::new(Some(batch), None, inputs, &config, &mut got);
        let report = pollster::block_on(engine.call(entry, &mut call)).unwrap();
        assert_eq!(report.ran, Ran::Gpu, "{name}");
        entry.call(&mut Call::new(Some(batch), None, inputs, &config, &mut exact)).unwrap();
        for (column, exact) in exact.iter() {
            let (Array::Real(exact), Some(Array::Real(got))) = (exact, got.get(column)) else { panic!("{name}") };
            for (slot, (got, exact)) in got.iter().zip(exact).enumerate() {
                assert!((got - exact).abs() < 2e-4 * (1.0 + exact.abs()), "{name} {column}[{slot}]: {got}, {exact}");
            }
        }
    }
    // statistics of the whole batch are not split: the core answers
    let entry = find("whiten").unwrap();
    let mut outputs = entry.outputs_for(Some(&batch), None, &inputs);
    let mut call = Call::new(Some(batch), None, &inputs, &config, &mut outputs);
    let report = pollster::block_on(engine.call(entry, &mut call)).unwrap();
    let limit = GpuError::Limit { what: "one buffer, in bytes", needed: 40_000, limit: 16 << 10 };
    assert_eq!(report.ran, Ran::Core(Reason::Failed(limit)));
}

/// A row of tokens or logits that no buffer of the device holds is left to the core.
#[test]
fn what_cannot_be_split_the_core_computes() {
    let Some(gpu) = narrow() else { return };
    let engine = Engine::gpu(gpu);
    let keep = vec![true; 5000];
    let batch = Batch::new(Layout::padded(1, 5000).unwrap(), Mask::new(&keep)).unwrap();
    let ones = vec![1.0; 5000];
    let mut kl = vec![9.0; 5000];
    let input = KlInput { log_probs: &ones, ref_log_probs: &ones };
    let report = pollster::block_on(engine.kl_estimate(&batch, input, &KlConfig::default(), &mut kl)).unwrap();
    let limit = GpuError::Limit { what: "one buffer, in bytes", needed: 20_000, limit: 16 << 10 };
    assert_eq!(report.ran, Ran::Core(Reason::Failed(limit)));
    assert!(kl.iter().all(|&kl| kl == 0.0));
}

/// Sizes that a u32 cannot count are refused with both numbers, before anything is read or sent.
#[test]
fn sizes_near_two_to_the_32_are_refused() {
    let Some(gpu) = gpu() else { return };
    // untouched pages of zeros: nothing is allocated
    let zeros = vec![0.0_f32; 1 << 30];
    for len in [(1 << 30) - 1, 1 << 30] {
        let Err(GpuError::Limit { what, needed, limit }) = gpu.record().upload(&zeros[..len]) else {
            panic!("{len} words were taken")
        };
        assert_eq!((what, needed), ("one buffer, in bytes", 4 * len as u64));
        assert!(limit < needed);
        let text = GpuError::Limit { what, needed, limit }.to_string();
        assert!(text.contains(&needed.to_string()) && text.contains(&limit.to_string()), "{text}");
    }
}

#[test]
fn adapters_below_our_needs_are_refused_by_name() {
    let Some(gpu) = gpu() else { return };
    type Change = fn(&mut Limits);
    let changes: [(&str, Change); 4] = [
        ("threads per workgroup", |limits| limits.max_compute_invocations_per_workgroup = 128),
        ("threads along x", |limits| limits.max_compute_workgroup_size_x = 128),
        ("storage buffers", |limits| limits.max_storage_buffers_per_shader_stage = 4),
        ("workgroup memory", |limits| limits.max_compute_workgroup_storage_size = 1024),
    ];
    for (what, change) in changes {
        let mut limits = gpu.limits().clone();
        change(&mut limits);
        let options = GpuOptions { limits: Some(limits), ..Default::default() };
        let Err(refused) = pollster::block_on(Gpu::with(&options)) else { panic!("{what} was accepted") };
        assert_eq!(refused.code(), "adapter");
        let text = refused.to_string();
        assert!(text.contains(&gpu.info().name) && text.contains(what), "{text}");
    }
}

#[test]
fn without_an_adapter_the_error_says_so() {
    let options = GpuOptions { backends: Backends::empty(), ..Default::default() };
    let Err(error) = pollster::block_on(Gpu::with(&options)) else { panic!("an adapter of no backend") };
    assert_eq!(error.code(), "no_adapter");
}
