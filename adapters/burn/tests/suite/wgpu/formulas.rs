//! Formulas by name and by function, against the core in f64.

use burn::tensor::DType;
use tokenwise::{
    advantage::{GaeConfig, GroupConfig, WhitenConfig},
    loss::PpoConfig,
    Groups,
};
use tokenwise_burn::{
    gae, group_relative, kept,
    wgpu::{Ran, Reason},
    whiten, GaeInput, Inputs, PolicyInput,
};
use tokenwise_gpu::{
    coverage,
    tolerance::{self, Tolerance, SHARED},
};

use super::{assert_within, batch, device, floats, host, mask, on_device, poisoned, random};
use crate::{
    plain::{cases, Case},
    tape::{adapted, adapted_on, tensor, Dropped, Tape},
};

/// Every loss of the catalogue by its name, with its gradient: those with a kernel on the device, the others by the
/// host, which the report says.
#[test]
fn losses_and_gradients_are_those_of_the_host() {
    let on_gpu = |name: &str| coverage::table().any(|(known, none)| known == name && none.is_none());
    let mut computed = 0;
    for case in cases::<Tape>() {
        let title = case.title();
        let (exact, expected) = adapted(&case, DType::F64, Dropped::Nan).unwrap();
        let (loss, got) = adapted_on(&device(), &case, DType::F32, Dropped::Nan, |domain, inputs| {
            on_device().loss(case.name, domain, inputs, &case.config)
        })
        .unwrap_or_else(|error| panic!("{title}: {error}"));
        let ran = &loss.results.report().unwrap().ran;
        if on_gpu(case.name) {
            assert_eq!(*ran, Ran::Gpu, "{title}");
            computed += 1;
        } else {
            assert!(matches!(ran, Ran::Core(Reason::NoKernel(_))), "{title}: {ran:?}");
        }
        close(&case, &[exact.value().unwrap()], &[loss.value().unwrap()]);
        close(&case, &[exact.value().unwrap()], &[f64::from(host(&loss.tensor)[0])]);
        for (expected, got) in expected.iter().zip(&got) {
            close(&case, expected, got);
        }
    }
    assert!(computed > 20, "{computed} calls ran on the device");
}

fn close(case: &Case<Tape>, expected: &[f64], got: &[f64]) {
    let Tolerance { absolute, relative } = tolerance::of(case.name);
    let shared = Tolerance { absolute, relative: relative + SHARED };
    let got: Vec<f32> = got.iter().map(|&number| number as f32).collect();
    assert_within(&case.title(), shared, expected, &got, 0.0);
}

#[test]
fn advantages_are_those_of_the_host() {
    let (rows, keep) = (8, mask(8 * 96));
    let batch = batch(rows, &keep);
    let numbers = [1, 2].map(|seed| poisoned(&keep, random(seed, keep.len())));
    let bootstrap = random(3, rows);
    let config = GaeConfig { gamma: 0.99, lambda: 0.95, ..Default::default() };

    let [rewards, values] = numbers.clone().map(|numbers| floats(&numbers).reshape([rows, 96]));
    let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &floats(&bootstrap) };
    let got = on_device().gae(&batch, input, &config).unwrap();
    let wide = |numbers: &[f32]| {
        let numbers: Vec<f64> = numbers.iter().map(|&number| f64::from(number)).collect();
        tensor(&numbers, DType::F64)
    };
    let [rewards, values] = numbers.map(|numbers| wide(&numbers));
    let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &wide(&bootstrap) };
    let exact = gae(&batch, input, &config).unwrap();
    let [advantages, returns] = [&exact.advantages, &exact.returns].map(crate::tape::host);
    // the magnitudes of a recursion add up over 1/(1 − γλ) tokens
    let scale = 3.0 / (1.0 - 0.99 * 0.95);
    assert_within("advantages", tolerance::GAE, &advantages, &host(&got.advantages), scale);
    assert_within("returns", tolerance::GAE, &returns, &host(&got.returns), scale);
    assert_eq!(got.advantages.dims(), [rows, 96]);
    assert_eq!(got.advantages.device(), device());

    let white = on_device().whiten(&batch, &got.advantages, &WhitenConfig::default()).unwrap();
    let exact = whiten(&batch, &exact.advantages, &WhitenConfig::default()).unwrap();
    assert_within("whiten", tolerance::WHITENED, &crate::tape::host(&exact), &host(&white), 0.0);

    let groups = Groups::from_ids(&[0, 0, 1, 1, 2, 2, 3, 3]).unwrap();
    let got = on_device().group_relative(&groups, &floats(&bootstrap), &GroupConfig::default()).unwrap();
    let exact = group_relative(&groups, &wide(&bootstrap), &GroupConfig::default()).unwrap();
    assert_within("group_relative", tolerance::TOKEN, &crate::tape::host(&exact), &host(&got), 0.0);
    let spread = on_device().broadcast(&batch, &got).unwrap();
    assert_eq!(host(&spread)[96], host(&got)[1]);
}

/// Flags come back as flags, numbers as numbers.
#[test]
fn other_kinds_of_outputs_arrive() {
    let keep = [true, true, true, false];
    let (old, sampler) = (floats(&[-1.0, -1.0, -1.0, f32::NAN]), floats(&[-1.0, -3.0, -1.0, f32::NAN]));
    let inputs = Inputs::new().with("old_log_probs", &old).with("rollout_log_probs", &sampler);
    let criteria = serde_json::json!({ "criteria": [{ "option": "token-k2", "upper": 0.5 }] });
    let results = on_device().call("rollout_rejection", &batch(1, &keep), &inputs, &criteria).unwrap();
    assert_eq!(results.report().unwrap().ran, Ran::Gpu);
    assert_eq!(kept(&results.bools::<1>("keep").unwrap()).unwrap(), [true, false, true, false]);

    let inputs = Inputs::new().with("values", &old);
    let mean = on_device().call("mean", &batch(1, &keep), &inputs, &()).unwrap();
    assert_eq!((mean.number("mean").unwrap(), &mean.report().unwrap().ran), (-1.0, &Ran::Gpu));
}

/// Inputs in half precision are computed in f32, and their gradient has their type.
#[test]
fn half_precision_is_widened_on_the_device() {
    let log_probs = floats(&[-1.0, -0.5]).cast(DType::F16).require_grad();
    let (old, advantages) = (floats(&[-1.25, -0.5]).cast(DType::F16), floats(&[2.0, -1.0]).cast(DType::F16));
    let input = PolicyInput::new(&log_probs, &old, &advantages);
    let loss = on_device().ppo_clip(&batch(1, &[true, true]), input, &PpoConfig::default()).unwrap();
    assert_eq!(loss.results.report().unwrap().ran, Ran::Gpu);
    let gradient = log_probs.grad(&loss.backward().unwrap()).unwrap();
    // the first ratio is clipped
    assert_eq!((host(&gradient), gradient.dtype()), (vec![0.0, 0.5], DType::F16));
}
