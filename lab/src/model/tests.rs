use candle_core::{DType, D};

use super::{attention::Attention, *};
use crate::random::{stream, uniform, Purpose};

const SHAPE: Shape = Shape { vocabulary: 5, positions: 7, layers: 2, width: 16, heads: 2, outputs: 5 };

fn network() -> Network {
    let mut network = Network::random(SHAPE, &mut stream(1, Purpose::Policy, 0)).unwrap();
    // a head at its initial scale hides mistakes
    let last = network.weights.len() - 1;
    network.weights[last] = Var::from_tensor(&(network.weights[last].as_tensor() * 20.0).unwrap()).unwrap();
    network
}

fn batch() -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let prompts = vec![vec![0, 1, 2], vec![3, 1, 0]];
    let responses = vec![vec![1, 4], vec![2, 2, 0, 4], vec![4], vec![0, 3, 4]];
    (prompts, responses)
}

/// The network by candle's own operations, one sequence at a time.
fn plain(network: &Network, tokens: &[u32]) -> Result<Tensor> {
    let weights: Vec<&Tensor> = network.weights.iter().map(Var::as_tensor).collect();
    let norm = |x: &Tensor, w: &Tensor| {
        let mean = (x.sqr()?.mean_keepdim(D::Minus1)? + 1e-6)?;
        x.broadcast_div(&mean.sqrt()?)?.broadcast_mul(w)
    };
    let ids = Tensor::new(tokens, &Device::Cpu)?;
    let places = Tensor::arange(0_u32, tokens.len() as u32, &Device::Cpu)?;
    let mut x = (weights[0].index_select(&ids, 0)? + weights[1].index_select(&places, 0)?)?;
    let future: Vec<f32> = (0..tokens.len())
        .flat_map(|i| (0..tokens.len()).map(move |j| if j > i { f32::NEG_INFINITY } else { 0.0 }))
        .collect();
    let future = Tensor::from_vec(future, (tokens.len(), tokens.len()), &Device::Cpu)?;
    let width = SHAPE.width / SHAPE.heads;
    for layer in 0..SHAPE.layers {
        let w = &weights[2 + 6 * layer..8 + 6 * layer];
        let qkv = norm(&x, w[0])?.matmul(w[1])?;
        let mut heads = Vec::new();
        for head in 0..SHAPE.heads {
            let part = |which: usize| qkv.narrow(1, which * SHAPE.width + head * width, width)?.contiguous();
            let scores = (part(0)?.matmul(&part(1)?.t()?)? / (width as f64).sqrt())?.add(&future)?;
            let raised = scores.broadcast_sub(&scores.max_keepdim(D::Minus1)?)?.exp()?;
            heads.push(raised.broadcast_div(&raised.sum_keepdim(D::Minus1)?)?.matmul(&part(2)?)?);
        }
        x = (&x + Tensor::cat(&heads, 1)?.matmul(w[2])?)?;
        x = (&x + norm(&x, w[3])?.matmul(w[4])?.relu()?.matmul(w[5])?)?;
    }
    norm(&x, weights[weights.len() - 2])?.matmul(weights[weights.len() - 1])
}

/// Logits that predict the response tokens, in packed order.
fn plain_predictions(network: &Network) -> Tensor {
    let (prompts, responses) = batch();
    let rows = responses.iter().enumerate().map(|(index, response)| {
        let prompt = &prompts[index / 2];
        let sequence = [prompt.as_slice(), &response[..response.len() - 1]].concat();
        plain(network, &sequence).unwrap().narrow(0, prompt.len() - 1, response.len()).unwrap()
    });
    Tensor::cat(&rows.collect::<Vec<_>>(), 0).unwrap()
}

fn packed_predictions(network: &Network, pass: Pass) -> Tensor {
    let (prompts, responses) = batch();
    let rows = Rows::new(&prompts, responses.iter().map(Vec::as_slice));
    let predictors = Tensor::new(rows.predictors.as_slice(), &Device::Cpu).unwrap();
    network.forward(&rows, pass).unwrap().index_select(&predictors, 0).unwrap()
}

fn distance(a: &Tensor, b: &Tensor) -> f32 {
    let largest = |x: &Tensor| x.flatten_all().unwrap().max(0).unwrap().to_scalar::<f32>().unwrap();
    largest(&(a - b).unwrap().abs().unwrap()) / largest(&b.abs().unwrap()).max(1e-3)
}

#[test]
fn packed_rows_with_shared_prompts_give_the_results_of_single_sequences() {
    let network = network();
    let expected = plain_predictions(&network);
    assert!(expected.sqr().unwrap().mean_all().unwrap().to_scalar::<f32>().unwrap() > 0.1);
    for pass in [Pass::Forward, Pass::Differentiable] {
        assert!(distance(&packed_predictions(&network, pass), &expected) < 1e-5);
    }
}

#[test]
fn gradients_are_those_of_candles_own_operations() {
    let network = network();
    let count = 10 * SHAPE.outputs;
    let mut random = stream(2, Purpose::Policy, 0);
    let slopes: Vec<f32> = (0..count).map(|_| normal(&mut random) as f32).collect();
    let slopes = Tensor::from_vec(slopes, (10, SHAPE.outputs), &Device::Cpu).unwrap();
    let gradients = |predictions: Tensor| (predictions * &slopes).unwrap().sum_all().unwrap().backward().unwrap();
    let got = gradients(packed_predictions(&network, Pass::Differentiable));
    let expected = gradients(plain_predictions(&network));
    for (name, weights) in network.names.iter().zip(&network.weights) {
        let (got, expected) = (got.get(weights).unwrap(), expected.get(weights).unwrap());
        assert!(distance(got, expected) < 1e-4, "{name}: {}", distance(got, expected));
    }
}

#[test]
fn attention_is_differentiated_as_candle_does() {
    // two rows that attend to one another's past only: an operation of its own, without the network around it
    let mut context = Context::default();
    context.push([0]);
    context.push([0, 1]);
    let heads = Heads { count: 1, width: 3 };
    let mut random = stream(4, Purpose::Policy, 0);
    let numbers: Vec<f32> = (0..18).map(|_| normal(&mut random) as f32).collect();
    let qkv = Var::from_tensor(&Tensor::from_vec(numbers, (2, 9), &Device::Cpu).unwrap()).unwrap();
    let out = qkv.apply_op1(Attention { heads, context: Arc::new(context) }).unwrap();
    let gradients = out.sqr().unwrap().sum_all().unwrap().backward().unwrap();
    let part = |which: usize| qkv.narrow(1, 3 * which, 3).unwrap().contiguous().unwrap();
    let scores = (part(0).matmul(&part(1).t().unwrap()).unwrap() / 3_f64.sqrt()).unwrap();
    let mask = Tensor::new(&[[0_f32, f32::NEG_INFINITY], [0.0, 0.0]], &Device::Cpu).unwrap();
    let raised = (scores + mask).unwrap().exp().unwrap();
    let shares = raised.broadcast_div(&raised.sum_keepdim(1).unwrap()).unwrap();
    let expected = shares.matmul(&part(2)).unwrap().sqr().unwrap().sum_all().unwrap().backward().unwrap();
    assert!(distance(gradients.get(&qkv).unwrap(), expected.get(&qkv).unwrap()) < 1e-5);
}

#[test]
fn sampling_with_a_cache_draws_from_the_logits_of_the_network() {
    let network = network();
    let prompts = vec![vec![0, 1, 2], vec![3, 1, 0]];
    let mut random = stream(5, Purpose::Samples, 0);
    let limits = Limits { end: 4, length: 4 };
    let noise: Vec<f64> = (0..2 * 8 * limits.length).map(|_| uniform(&mut random)).collect();
    let sampled = sample(&network, &prompts, 8, limits, &noise).unwrap();
    let responses: Vec<&[u32]> =
        sampled.starts.windows(2).map(|ends| &sampled.tokens[ends[0] as usize..ends[1] as usize]).collect();
    assert_eq!(responses.len(), 16);
    assert!(responses.iter().any(|response| response.len() == limits.length));
    assert!(responses.iter().any(|response| response.len() < limits.length));
    for response in &responses {
        assert!(response.len() == limits.length || response.last() == Some(&limits.end));
        assert!(!response[..response.len() - 1].contains(&limits.end));
    }
    let rows = Rows::new(&prompts, responses.iter().copied());
    let predictors = Tensor::new(rows.predictors.as_slice(), &Device::Cpu).unwrap();
    let expected = network.forward(&rows, Pass::Forward).unwrap().index_select(&predictors, 0).unwrap();
    let got = Tensor::from_vec(sampled.logits.clone(), expected.shape(), &Device::Cpu).unwrap();
    assert_eq!(got.dtype(), DType::F32);
    assert!(distance(&got, &expected) < 1e-5);
}

#[test]
fn tokens_are_drawn_in_proportion_to_their_probabilities() {
    // logits of 0, −∞ and ln 3
    let logits = [0.0, f32::NEG_INFINITY, 3_f32.ln()];
    let drawn: Vec<u32> = (0..8).map(|i| sample::draw(&logits, f64::from(i) / 8.0)).collect();
    assert_eq!(drawn, [0, 0, 2, 2, 2, 2, 2, 2]);
    assert_eq!(sample::draw(&[0.0, f32::NEG_INFINITY], 0.999_999_999_999_999_9), 0);
}
