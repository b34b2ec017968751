//! Covered formulas where there is little to compute, where the data are refused, and on a device with small buffers.

use tokenwise_catalogue::{find, Array, Value};
use tokenwise_gpu::{tolerance, GpuError};

use crate::{
    adapter::{gpu, small_gpu},
    call::{covered, magnitude, near, on_core, on_gpu, wide, Tokens},
    configs,
    random::Random,
};

#[test]
fn batches_without_a_kept_token_are_the_cores() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(50);
    let dropped = |rows: u32, width: u32| Tokens {
        offsets: (0..=rows).map(|row| row * width).collect(),
        width: Some(width as usize),
        keep: vec![false; (rows * width) as usize],
        groups: vec![0; rows as usize],
    };
    let mut one = dropped(2, 3);
    one.keep[4] = true;
    for tokens in [dropped(2, 3), dropped(2, 0), dropped(0, 0), one] {
        for entry in covered() {
            let inputs = tokens.inputs(&mut random, entry);
            for text in configs::of(entry) {
                let case = format!("{} {text} {:?}", entry.name, tokens.keep);
                let config: Value = serde_json::from_str(&text).unwrap();
                let found = on_gpu(gpu, entry, &tokens, &inputs, &config);
                let core = on_core(entry, &tokens, &inputs, &config);
                let (Ok((found, _)), Ok(core)) = (&found, &core) else {
                    assert_eq!(found.map(drop), core.map(drop).map_err(GpuError::from), "{case}");
                    continue;
                };
                for (name, core) in core.0.iter() {
                    match (core, found.0.get(name)) {
                        (Array::Real(core), Some(Array::Real(found))) => {
                            for (&found, &core) in found.iter().zip(core) {
                                near(&case, tolerance::TOKEN, 0.0, found.into(), core.into());
                            }
                        }
                        (core, found) => assert_eq!(found, Some(core), "{case}"),
                    }
                }
                for ((name, found), (_, core)) in found.1.iter().zip(&core.1) {
                    near(&format!("{case}: {name}"), tolerance::TOKEN, 0.0, *found, *core);
                }
            }
        }
    }
}

#[test]
fn data_that_the_core_refuses_are_refused() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(51);
    let mut tokens = Tokens::packed(&mut random, &[4, 3]);
    tokens.keep.fill(true);
    let Some(entry) = find("attention_credit") else { panic!("no such formula") };
    let mut inputs = tokens.inputs(&mut random, entry);
    for (weights, index) in [([1.0, 1.0, 1.0, 1.0, 1.0, -0.5, 1.0], 5), ([1.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0], 4)] {
        inputs.set("weights", Array::Real(weights.to_vec()));
        let refused = on_gpu(gpu, entry, &tokens, &inputs, &Value::EMPTY).map(drop);
        let expected = on_core(entry, &tokens, &inputs, &Value::EMPTY).map(drop).unwrap_err();
        assert_eq!(refused, Err(expected.into()));
        assert!(matches!(refused, Err(GpuError::Core(tokenwise::Error::Entry { index: at, .. })) if at == index));
    }
}

#[test]
fn a_device_with_small_buffers_agrees_with_the_core() {
    let Some(gpu) = small_gpu(16 << 10) else { return };
    let mut random = Random::new(52);
    let tokens = Tokens::packed(&mut random, &[2500, 3, 0, 1900, 5000]);
    for entry in covered() {
        let inputs = tokens.inputs(&mut random, entry);
        let config: Value = serde_json::from_str(configs::first(entry.name)).unwrap();
        let found = on_gpu(&gpu, entry, &tokens, &inputs, &config);
        let (exact_outputs, exact_numbers) = match on_core(entry, &tokens, &wide(&inputs), &config) {
            Ok(exact) => exact,
            Err(refusal) => {
                assert_eq!(found.map(|(_, report)| report), Err(refusal.into()), "{}", entry.name);
                continue;
            }
        };
        let (outputs, numbers) = found.unwrap().0;
        // the core may have computed, in f32
        let scale = magnitude(&tokens, &inputs);
        for (name, exact) in exact_outputs.iter() {
            if let (Array::Real(exact), Some(Array::Real(got))) = (exact, outputs.get(name)) {
                for (&got, &exact) in got.iter().zip(exact) {
                    near(entry.name, tolerance::GAE, scale, got.into(), exact);
                }
            }
        }
        for ((name, got), (_, exact)) in numbers.iter().zip(&exact_numbers) {
            near(&format!("{}: {name}", entry.name), tolerance::TOKEN, 0.0, *got, *exact);
        }
    }
}
