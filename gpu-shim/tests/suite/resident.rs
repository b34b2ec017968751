//! Every covered formula by its name over columns that are on the device already.

use std::sync::Arc;

use tokenwise_catalogue::{find, Array, Call, Columns, Value};
use tokenwise_gpu::{wgpu, Column, GpuError, Ran};
use tokenwise_gpu_golden::random::Random;

use crate::{
    adapter::gpu,
    call::{covered, on_gpu, Tokens},
    configs,
};

/// The same results as for host inputs, whose bytes are not sent.
#[test]
fn columns_on_the_device_give_the_same_results() {
    let Some(gpu) = gpu() else { return };
    let mut random = Random::new(45);
    let tokens = Tokens::packed(&mut random, &[40, 3, 1, 90]);
    for entry in covered() {
        let inputs = tokens.inputs(&mut random, entry);
        let config: Value = serde_json::from_str(configs::first(entry.name)).unwrap();
        let ((outputs, numbers), report) = on_gpu(gpu, entry, &tokens, &inputs, &config).unwrap();
        assert_eq!(report.ran, Ran::Gpu, "{}", entry.name);

        let (mut resident, mut left) = (Vec::new(), Columns::new());
        let mut sending = gpu.record();
        for (name, array) in inputs.iter() {
            let column = match array {
                Array::Real(numbers) => sending.upload(numbers).unwrap(),
                Array::Index(ids) if name == "tokens" => sending.upload_words(ids).unwrap(),
                other => {
                    left.set(name, other.clone());
                    continue;
                }
            };
            resident.push((name, column));
        }
        pollster::block_on(sending.submit()).unwrap();

        let mut none = Columns::new();
        let call = Call::new(Some(tokens.batch()), Some(tokens.groups()), &left, &config, &mut none);
        let mut recording = gpu.record();
        let answer = match recording.call(entry, &call, &resident) {
            Ok(answer) => answer,
            Err(error) => {
                assert!(entry.name == "gdpo" && matches!(error, GpuError::Unsupported(_)), "{}: {error}", entry.name);
                continue;
            }
        };
        let columns: Vec<_> = answer.columns.iter().map(|(name, column)| (*name, recording.download(column))).collect();
        let done = pollster::block_on(recording.submit()).unwrap();
        for (name, download) in columns {
            match outputs.get(name) {
                Some(Array::Real(expected)) => assert!(done.floats(download) == expected, "{}: {name}", entry.name),
                Some(Array::Flag(expected)) => {
                    let flags: Vec<bool> = done.words(download).iter().map(|&word| word != 0).collect();
                    assert!(flags == *expected, "{}: {name}", entry.name);
                }
                other => panic!("{}: {name} {other:?}", entry.name),
            }
        }
        let found = answer.numbers.map_or_else(Vec::new, |numbers| done.get(&numbers));
        let found: Vec<_> = found.into_iter().map(|(name, number)| (name.to_owned(), number)).collect();
        assert!(found == numbers, "{}: {found:?}, {numbers:?}", entry.name);
        assert!(done.report().bytes_up < report.bytes_up, "{}", entry.name);
    }
}

#[test]
fn formulas_without_a_kernel_are_refused_with_the_reason() {
    let Some(gpu) = gpu() else { return };
    let (columns, mut none, config) = (Columns::new(), Columns::new(), Value::EMPTY);
    let call = Call::new(None, None, &columns, &config, &mut none);
    let refused = gpu.record().call(find("quantile").unwrap(), &call, &[]).unwrap_err();
    assert!(matches!(refused, GpuError::Unsupported(reason) if reason.contains("sorted")), "{refused}");
}

/// A column of a caller's buffer keeps its owner, and so do recorded kernels that read it.
#[test]
fn columns_hold_their_owner() {
    let Some(gpu) = gpu() else { return };
    let usage = wgpu::BufferUsages::STORAGE | wgpu::BufferUsages::COPY_SRC | wgpu::BufferUsages::COPY_DST;
    let descriptor = wgpu::BufferDescriptor { label: None, size: 16, usage, mapped_at_creation: false };
    let buffer = gpu.device().create_buffer(&descriptor);
    let owner = Arc::new(());
    let column = Column::from_buffer(buffer, 0, 4).unwrap().owned_by(owner.clone());
    let mut recording = gpu.record();
    recording.download(&column);
    drop(column);
    assert_eq!(Arc::strong_count(&owner), 2);
    pollster::block_on(recording.submit()).unwrap();
    assert_eq!(Arc::strong_count(&owner), 1);
}
