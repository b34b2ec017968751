//! Columns are the buffers of tensors: no copy, the right order, and any place within a buffer.

use burn::tensor::Tensor;
use tokenwise::advantage::GaeConfig;
use tokenwise_burn::{wgpu::Ran, GaeInput, Inputs};
use tokenwise_catalogue::{find, Array, Call, Columns, Value};

use super::{batch, device, floats, host, mask, on_device, random};

const ROWS: usize = 8;
const TOKENS: usize = ROWS * 128;

/// What a formula sends and reads back for tensors on the device is what it does for slices, less the tensors.
#[test]
fn no_tensor_passes_through_the_host() {
    let keep = mask(TOKENS);
    let (batch, config) = (batch(ROWS, &keep), Value::of(&GaeConfig::default()).unwrap());
    let [rewards, values, bootstrap] = [random(1, TOKENS), random(2, TOKENS), random(3, ROWS)];
    let tensors = [&rewards, &values, &bootstrap].map(|numbers| floats(numbers));
    let inputs = GaeInput { rewards: &tensors[0], values: &tensors[1], bootstrap: &tensors[2] };
    let results = on_device().call("gae", &batch, &inputs.named(), &GaeConfig::default()).unwrap();
    let resident = results.report().unwrap();
    assert_eq!(resident.ran, Ran::Gpu);

    let entry = find("gae").unwrap();
    let mut columns = Columns::new();
    columns.set("rewards", Array::Real(rewards));
    columns.set("values", Array::Real(values));
    columns.set("bootstrap", Array::Real(bootstrap));
    let mut outputs = entry.outputs_for(Some(&batch), None, &columns);
    let mut call = Call::new(Some(batch), None, &columns, &config, &mut outputs);
    let sent = pollster::block_on(on_device().gpu().call(entry, &mut call)).unwrap();
    assert_eq!(sent.bytes_up - resident.bytes_up, 4 * (2 * TOKENS + ROWS) as u64);
    assert_eq!(sent.bytes_down - resident.bytes_down, 4 * 2 * TOKENS as u64);
    assert_eq!(sent.dispatches, resident.dispatches);
    assert_eq!(host(&results.tensor::<1>("advantages").unwrap()), outputs.real("advantages").unwrap());
}

/// What is written to the buffer of the column is what burn reads.
#[test]
fn a_column_is_the_memory_of_its_tensor() {
    let tensor = floats(&[1.0, 2.0, 3.0]);
    let column = on_device().column("x", &tensor).unwrap();
    let (buffer, offset) = column.buffer();
    let again = on_device().column("x", &tensor.clone().inner()).unwrap();
    assert!((buffer, offset) == again.buffer(), "{offset} {again:?}");
    on_device().gpu().queue().write_buffer(buffer, offset, &bytes(&[4.0, 5.0, 6.0]));
    on_device().gpu().queue().submit([]);
    assert_eq!(host(&tensor), [4.0, 5.0, 6.0]);
    // held by the column, so burn does not compute in place
    let next = tensor.inner() + 1.0;
    assert_eq!(host(&next), [5.0, 6.0, 7.0]);
    assert_eq!(downloaded(&column), [4.0, 5.0, 6.0]);
}

/// A column keeps its range: burn gives it to no other tensor.
#[test]
fn a_column_outlives_its_tensor() {
    let column = on_device().column("x", &(floats(&random(4, 1000)) * 2.0)).unwrap();
    let later: Vec<Tensor<1>> = (0..64).map(|_| floats(&[7.0; 1000]) + 1.0).collect();
    on_device().device().sync().unwrap();
    let expected: Vec<f32> = random(4, 1000).into_iter().map(|number| number * 2.0).collect();
    assert_eq!(downloaded(&column), expected);
    assert_eq!(host(&later[63])[0], 8.0);
}

/// Operations of burn that still wait, fused ones, and those of another thread.
#[test]
fn pending_operations_run_first() {
    let keep = vec![true; TOKENS];
    let batch = batch(ROWS, &keep);
    let (rewards, values) = (floats(&random(1, TOKENS)), floats(&random(2, TOKENS)));
    let bootstrap = Tensor::<1>::zeros([ROWS], &device());
    let steps = |tensor: Tensor<1>| (0..50).fold(tensor, |tensor, step| (tensor * 0.5).sin() + f64::from(step) / 64.0);
    let mut answers = Vec::new();
    for wait in [true, false, false, false] {
        let (rewards, values) = (steps(rewards.clone()), steps(values.clone()));
        if wait {
            device().sync().unwrap();
        }
        let input = GaeInput { rewards: &rewards, values: &values, bootstrap: &bootstrap };
        // and what burn computes from the result
        answers.push(host(&(on_device().gae(&batch, input, &GaeConfig::default()).unwrap().advantages * 2.0)));
    }
    // in place it would change tensors of this thread, which burn itself does not see here before that thread syncs
    let held = (rewards.clone(), values.clone());
    let far = std::thread::spawn(move || (steps(rewards), steps(values))).join().unwrap();
    let input = GaeInput { rewards: &far.0, values: &far.1, bootstrap: &bootstrap };
    answers.push(host(&(on_device().gae(&batch, input, &GaeConfig::default()).unwrap().advantages * 2.0)));
    for (which, answer) in answers.iter().enumerate() {
        let off = answer.iter().zip(&answers[0]).position(|(a, b)| a != b);
        assert!(off.is_none(), "{which}: {off:?}, {:?} {:?}", &answer[..4], &answers[0][..4]);
    }
    drop(held);
    assert!(answers[0].iter().all(|number| number.is_finite()) && answers[0][0] != 0.0);
}

/// Tensors that begin within a buffer, where the device can bind them and where it cannot, and turned ones.
#[test]
fn any_place_and_any_strides() {
    let keep = vec![true; TOKENS];
    let mean = |tensor: &Tensor<1>| {
        let inputs = Inputs::new().with("values", tensor);
        let results = on_device().call("mean", &batch(ROWS, &keep), &inputs, &()).unwrap();
        assert_eq!(results.report().unwrap().ran, Ran::Gpu);
        results.number("mean").unwrap()
    };
    // small tensors share a buffer
    let many: Vec<Tensor<1>> = (0..16).map(|place| floats(&[place as f32; TOKENS])).collect();
    let offsets: Vec<u64> = many.iter().map(|tensor| on_device().column("x", tensor).unwrap().buffer().1).collect();
    assert!(offsets.iter().any(|&offset| offset > 0), "{offsets:?}");
    for (place, tensor) in many.iter().enumerate() {
        assert_eq!(mean(tensor), place as f64);
    }

    let long = floats(&(0..TOKENS + 3).map(|number| number as f32).collect::<Vec<_>>());
    for first in 0..3 {
        let part = long.clone().slice([first..first + TOKENS]);
        assert_eq!(mean(&part), first as f64 + (TOKENS - 1) as f64 / 2.0);
        assert_eq!(downloaded(&on_device().column("x", &part).unwrap())[..2], [first as f32, first as f32 + 1.0]);
    }
    let grid = long.slice([0..TOKENS]).reshape([ROWS, TOKENS / ROWS]).transpose();
    let turned = on_device().column("x", &grid).unwrap();
    assert_eq!(downloaded(&turned)[..3], [0.0, 128.0, 256.0]);
    let every = grid.slice([0..TOKENS / ROWS, 1..2]);
    assert_eq!(downloaded(&on_device().column("x", &every).unwrap())[..3], [128.0, 129.0, 130.0]);
}

/// A chain of one's own: tensors in, tensors out, one submission.
#[test]
fn recordings_read_and_write_tensors() {
    let keep = [true, true, false, true];
    let batch = tokenwise_gpu::GpuBatch::new(batch(1, &keep));
    let values = floats(&[1.0, 2.0, f32::NAN, 6.0]);
    let mut recording = on_device().gpu().record();
    let column = on_device().column("values", &values).unwrap();
    let white = recording.whiten(&batch, &column.into(), &Default::default()).unwrap();
    let tensor: Tensor<2> = on_device().tensor(&mut recording, &white, [2, 2]).unwrap();
    assert!(on_device().tensor::<1>(&mut recording, &white, [3]).is_err());
    let download = recording.download(&white);
    let done = pollster::block_on(recording.submit()).unwrap();
    assert_eq!(host(&tensor), done.floats(download));
    assert_eq!(host(&tensor)[2], 0.0);
}

fn downloaded(column: &tokenwise_gpu::Column) -> Vec<f32> {
    let mut recording = on_device().gpu().record();
    let download = recording.download(column);
    pollster::block_on(recording.submit()).unwrap().floats(download).to_vec()
}

fn bytes(numbers: &[f32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}
