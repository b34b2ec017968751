//! Sampling responses, with the keys and values of earlier tokens kept.

use candle_core::{Device, Result, Tensor};

use super::{
    attention::{attend, Context},
    slices::with_slice,
    Network, Pass,
};

/// Sampled responses.
#[derive(Clone, Debug, Default)]
pub struct Sampled {
    /// The responses, one after another: those of the first prompt first.
    pub tokens: Vec<u32>,
    /// Where each response starts, and the end of the last.
    pub starts: Vec<u32>,
    /// The logits that each token was drawn from.
    pub logits: Vec<f32>,
}

/// How responses end.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The token that ends a response.
    pub end: u32,
    /// The most tokens.
    pub length: usize,
}

/// Draws `samples` responses to each prompt.
///
/// `noise` has a uniform number in [0, 1) for each token of each response up to the limit: the same numbers give the
/// same response from the same policy, however long the others are.
///
/// # Errors
///
/// Those of candle.
pub fn sample(
    network: &Network,
    prompts: &[Vec<u32>],
    samples: usize,
    limits: Limits,
    noise: &[f64],
) -> Result<Sampled> {
    let vocabulary = network.shape.outputs;
    let length = prompts.first().map_or(0, Vec::len);
    let mut cache = Cache::new(network);
    let mut context = Context::default();
    for prompt in 0..prompts.len() {
        let first = (prompt * length) as u32;
        (first..first + length as u32).for_each(|row| context.push(first..=row));
    }
    let tokens: Vec<u32> = prompts.concat();
    let positions: Vec<u32> = prompts.iter().flat_map(|_| 0..length as u32).collect();
    let of_prompts = cache.logits(&tokens, &positions, &context)?;

    let count = prompts.len() * samples;
    let mut responses = vec![Vec::with_capacity(limits.length); count];
    let mut drawn_from = vec![Vec::with_capacity(limits.length * vocabulary); count];
    let mut own_rows = vec![Vec::with_capacity(limits.length); count];
    let mut open: Vec<usize> = (0..count).collect();
    for place in 0..limits.length {
        let logits = if place == 0 {
            None
        } else {
            let mut context = Context::default();
            for (new, &index) in open.iter().enumerate() {
                own_rows[index].push((cache.rows + new) as u32);
                let first = (index / samples * length) as u32;
                context.push((first..first + length as u32).chain(own_rows[index].iter().copied()));
            }
            let tokens: Vec<u32> = open.iter().filter_map(|&index| responses[index].last().copied()).collect();
            let positions = vec![(length + place - 1) as u32; open.len()];
            Some(cache.logits(&tokens, &positions, &context)?)
        };
        for (new, &index) in open.iter().enumerate() {
            let row = match &logits {
                None => &of_prompts[((index / samples + 1) * length - 1) * vocabulary..][..vocabulary],
                Some(logits) => &logits[new * vocabulary..(new + 1) * vocabulary],
            };
            responses[index].push(draw(row, noise[index * limits.length + place]));
            drawn_from[index].extend_from_slice(row);
        }
        open.retain(|&index| responses[index].last() != Some(&limits.end));
        if open.is_empty() {
            break;
        }
    }
    let mut starts = vec![0];
    for response in &responses {
        starts.push(starts[starts.len() - 1] + response.len() as u32);
    }
    Ok(Sampled { tokens: responses.concat(), starts, logits: drawn_from.concat() })
}

/// The token at which the cumulated probability exceeds the noise.
pub(super) fn draw(logits: &[f32], noise: f64) -> u32 {
    let largest = logits.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let weights = logits.iter().map(|&logit| f64::from(logit - largest).exp());
    let mut total = 0.0;
    weights.clone().for_each(|weight| total += weight);
    let (mut cumulated, mut last) = (0.0, 0);
    for (token, weight) in weights.enumerate() {
        cumulated += weight;
        if weight > 0.0 {
            last = token as u32;
        }
        if noise * total < cumulated {
            break;
        }
    }
    last
}

/// Queries, keys and values of all rows so far, for each layer.
struct Cache<'a> {
    network: &'a Network,
    rows: usize,
    layers: Vec<Vec<f32>>,
}

impl<'a> Cache<'a> {
    fn new(network: &'a Network) -> Self {
        Self { network, rows: 0, layers: vec![Vec::new(); network.shape.layers] }
    }

    /// The logits of new rows, which attend to old and new ones.
    fn logits(&mut self, tokens: &[u32], positions: &[u32], context: &Context) -> Result<Vec<f32>> {
        let (first, heads, layers) = (self.rows, self.network.shape.heads(), &mut self.layers);
        self.rows += tokens.len();
        let logits = self.network.run(tokens, positions, Pass::Forward, |layer, qkv| {
            let kept = &mut layers[layer];
            with_slice(qkv, |qkv| {
                kept.extend_from_slice(qkv);
                Ok(())
            })?;
            let out = attend(heads, context, first, kept);
            Tensor::from_vec(out, (tokens.len(), heads.count * heads.width), &Device::Cpu)
        })?;
        logits.flatten_all()?.to_vec1()
    }
}
