//! Every call that the golden cases make of a covered formula, against the core in `f64`. The comparison is in
//! `gpu-shim/golden`, which also runs in a browser.

use std::{collections::BTreeMap, path::Path};

use tokenwise_gpu::coverage;
use tokenwise_gpu_golden::{check, random, Answered};
use tokenwise_tests::golden;

use crate::adapter::gpu;

#[test]
fn golden_cases_agree_with_the_core() {
    let Some(gpu) = gpu() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let (mut on_device, mut ran, mut by_core) = (BTreeMap::<&str, usize>::new(), 0, 0);
    let mut differences = Vec::new();
    for call in golden::calls(&folder).unwrap() {
        match pollster::block_on(check(gpu, &call)) {
            Ok(Answered::Device) => {
                *on_device.entry(call.name).or_default() += 1;
                ran += 1;
            }
            Ok(Answered::Core) => by_core += 1,
            Ok(Answered::Refused | Answered::LeftOut) => {}
            Err(difference) => differences.push(difference),
        }
    }
    println!("golden calls on the device: {on_device:?}; with special values, by the core: {by_core}");
    assert!(differences.is_empty(), "{} calls differ:\n{}", differences.len(), differences.join("\n"));
    assert!(ran > 1500, "only {ran} golden calls ran on the device");
}

/// Also of the formulas without a golden case; the same calls run in a browser.
#[test]
fn random_calls_of_every_covered_formula_agree_with_the_core() {
    let Some(gpu) = gpu() else { return };
    let calls = random::calls().unwrap();
    assert_eq!(calls.len(), coverage::table().filter(|(_, why)| why.is_none()).count());
    for call in &calls {
        assert_eq!(pollster::block_on(check(gpu, call)), Ok(Answered::Device), "{}", call.name);
    }
}
