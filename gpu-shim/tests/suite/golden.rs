//! Every call that the golden cases make of a covered formula, against the core in `f64`. The comparison is in
//! `gpu-shim/golden`, which also runs in a browser.

use std::{collections::BTreeMap, path::Path};

use tokenwise_gpu_golden::{check, Answered};
use tokenwise_tests::golden;

use crate::adapter::gpu;

#[test]
fn golden_cases_agree_with_the_core() {
    let Some(gpu) = gpu() else { return };
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden");
    let (mut on_device, mut on_core) = (BTreeMap::<&str, usize>::new(), BTreeMap::<String, usize>::new());
    let mut ran = 0;
    for call in golden::calls(&folder).unwrap() {
        match pollster::block_on(check(gpu, &call)).unwrap() {
            Answered::Device => {
                *on_device.entry(call.name).or_default() += 1;
                ran += 1;
            }
            Answered::Core(reason) => *on_core.entry(reason).or_default() += 1,
            Answered::Refused | Answered::LeftOut => {}
        }
    }
    println!("golden calls on the device: {on_device:?}; on the core: {on_core:?}");
    assert!(ran > 1500, "only {ran} golden calls ran on the device");
}
