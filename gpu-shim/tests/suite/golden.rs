//! Every call that the golden cases make of a covered formula, against the core in `f64`.

use std::{collections::BTreeMap, path::Path};

use tokenwise_catalogue::{find, Array, Columns, Value};
use tokenwise_gpu::{
    coverage,
    tolerance::{self, Tolerance},
    Ran, Reason,
};
use tokenwise_tests::golden::{self, RecordedCall};

use crate::{
    adapter::gpu,
    call::{is_near, magnitude, on_core, on_gpu, wide, Tokens},
};

/// The inputs rounded to `f32`.
fn narrow(inputs: &Columns<f64>) -> Columns<f32> {
    let mut narrow = Columns::new();
    for (name, array) in inputs.iter() {
        match array {
            Array::Real(numbers) => narrow.set(name, Array::Real(numbers.iter().map(|&x| x as f32).collect())),
            Array::Double(numbers) => narrow.set(name, Array::Double(numbers.clone())),
            Array::Index(numbers) => narrow.set(name, numbers.clone()),
            Array::Count(numbers) => narrow.set(name, numbers.clone()),
            Array::Flag(flags) => narrow.set(name, flags.clone()),
            Array::Size(size) => narrow.set(name, *size),
            Array::Number(number) => narrow.set(name, Array::Number(*number)),
            Array::Text(text) => narrow.set(name, Array::Text(text.clone())),
            other => panic!("{name}: {other:?}"),
        }
    }
    narrow
}

fn tokens(call: &RecordedCall) -> Tokens {
    let width = call.keep.len().checked_div(call.rows).unwrap_or(0);
    let offsets = (0..=call.rows).map(|row| (row * width) as u32).collect();
    let groups = call.groups.clone().unwrap_or_else(|| vec![0; call.rows]);
    Tokens { offsets, width: Some(width), keep: call.keep.clone(), groups }
}

/// Fails unless the bits are the same; NaN is NaN.
fn same(case: &str, got: Option<&Array<f32>>, core: &Array<f32>) {
    match (got, core) {
        (Some(Array::Real(got)), Array::Real(core)) => {
            let same = |(got, core): (&f32, &f32)| got.to_bits() == core.to_bits() || (got.is_nan() && core.is_nan());
            assert!(got.len() == core.len() && got.iter().zip(core).all(same), "{case}: {got:?}, core {core:?}");
        }
        (got, core) => assert_eq!(got, Some(core), "{case}"),
    }
}

/// The config with `n` in place of `n + 1e-8`, which is `n` in `f32`.
fn in_single(config: &Value) -> Value {
    match config {
        Value::Map(pairs) => Value::Map(pairs.iter().map(|(key, value)| (key.clone(), in_single(value))).collect()),
        Value::Text(text) if text == "count-plus-epsilon" => Value::Text("count".into()),
        other => other.clone(),
    }
}

#[test]
fn golden_cases_agree_with_the_core() {
    let Some(gpu) = gpu() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let calls = golden::calls(&folder).unwrap();
    let (mut on_device, mut ran) = (BTreeMap::<&str, usize>::new(), 0);
    let (mut by_core, mut failures) = (0, Vec::new());
    for call in calls {
        let name = call.name;
        let Some(entry) = find(name) else { panic!("{name}") };
        let covered = coverage::table().any(|(known, reason)| known == name && reason.is_none());
        let (tokens, inputs) = (tokens(&call), narrow(&call.inputs));
        if !covered {
            continue;
        }
        let case = format!("{name} {:?} {:?}", call.config, call.inputs);
        let found = on_gpu(gpu, entry, &tokens, &inputs, &call.config);
        let (exact_outputs, exact_numbers) = match on_core(entry, &tokens, &wide(&inputs), &in_single(&call.config)) {
            Ok(exact) => exact,
            Err(refusal) => {
                assert_eq!(found.map(|(_, report)| report), Err(refusal.into()), "{case}");
                continue;
            }
        };
        let ((outputs, numbers), report) = found.unwrap();
        if let Ran::Core(reason) = &report.ran {
            assert_eq!(*reason, Reason::Special, "{case}");
            let (core_outputs, core_numbers) = on_core(entry, &tokens, &inputs, &call.config).unwrap();
            core_outputs.iter().for_each(|(output, core)| same(&case, outputs.get(output), core));
            assert_eq!(format!("{numbers:?}"), format!("{core_numbers:?}"), "{case}");
            by_core += 1;
            continue;
        }
        *on_device.entry(name).or_default() += 1;
        ran += 1;
        // the core in f32 rounds fewer steps: in an ill-conditioned case the device may err by a multiple of its error
        let (core_outputs, core_numbers) = on_core(entry, &tokens, &inputs, &call.config).unwrap();
        let allowed = tolerance::of(name);
        let recursion = allowed == tolerance::GAE || allowed == tolerance::SUM;
        let scale = if recursion { magnitude(&tokens, &inputs) } else { 0.0 };
        let mut check = |what: String, got: f64, exact: f64, core: f64| {
            let error = (core - exact).abs();
            let lost = if error.is_finite() { 16.0 * error } else { 0.0 };
            let allowed = Tolerance { absolute: allowed.absolute + lost, ..allowed };
            if !is_near(allowed, scale, got, exact) {
                failures.push(format!("{what}: got {got}, exact {exact}, core {core}, allowed {allowed:?}"));
            }
        };
        for (output, exact) in exact_outputs.iter() {
            match (exact, outputs.get(output), core_outputs.get(output)) {
                (Array::Real(exact), Some(Array::Real(got)), Some(Array::Real(core))) => {
                    for (slot, ((&got, &exact), &core)) in got.iter().zip(exact).zip(core).enumerate() {
                        check(format!("{output}[{slot}] of {case}"), got.into(), exact, core.into());
                    }
                }
                (Array::Flag(_), got, core) => assert_eq!(got, core, "{case}"),
                (exact, got, _) => panic!("{output} of {case}: {got:?}, {exact:?}"),
            }
        }
        assert_eq!(numbers.len(), exact_numbers.len(), "{case}");
        for (((number, got), (_, exact)), (_, core)) in numbers.iter().zip(&exact_numbers).zip(&core_numbers) {
            check(format!("{number} of {case}"), *got, *exact, *core);
        }
    }
    println!("golden calls on the device: {on_device:?}; with special values, by the core: {by_core}");
    assert!(failures.is_empty(), "{} numbers are wrong:\n{}", failures.len(), failures.join("\n"));
    assert!(ran > 1500, "only {ran} golden calls ran on the device");
}
