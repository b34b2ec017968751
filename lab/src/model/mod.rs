//! The network: a decoder-only transformer over packed rows, on the CPU by candle.
//!
//! All tokens of a batch are the rows of one matrix, so that every layer is a few large products. The samples of a
//! prompt share the rows of the prompt, and no row is padding.

mod attention;
mod rows;
mod rows_ops;
mod sample;
pub(crate) mod slices;

use std::sync::Arc;

use candle_core::{Device, Result, Tensor, Var};
use rand_chacha::ChaCha8Rng;
use serde::{Deserialize, Serialize};

pub use attention::{Context, Heads};
pub use rows::Rows;
pub use sample::{sample, Limits, Sampled};

use crate::random::normal;
use attention::Attention;
use rows_ops::{Relu, RmsNorm};

/// Sizes of a network.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Shape {
    /// Size of the vocabulary.
    pub vocabulary: usize,
    /// Most tokens of prompt and response.
    pub positions: usize,
    /// Layers.
    pub layers: usize,
    /// Width of the residual stream.
    pub width: usize,
    /// Heads of the attention.
    pub heads: usize,
    /// Numbers per row of the result: logits, or one value.
    pub outputs: usize,
}

impl Shape {
    /// Name, rows and columns of each matrix; a vector has one row.
    fn parameters(&self) -> Vec<(String, usize, usize)> {
        let width = self.width;
        let mut all = vec![("tokens".into(), self.vocabulary, width), ("positions".into(), self.positions, width)];
        for layer in 0..self.layers {
            for (name, rows, columns) in [
                ("attention.norm", 1, width),
                ("attention.qkv", width, 3 * width),
                ("attention.out", width, width),
                ("feed.norm", 1, width),
                ("feed.up", width, 4 * width),
                ("feed.down", 4 * width, width),
            ] {
                all.push((format!("layer{layer}.{name}"), rows, columns));
            }
        }
        all.push(("norm".into(), 1, width));
        all.push(("head".into(), width, self.outputs));
        all
    }

    /// Number of parameters.
    pub fn parameter_count(&self) -> usize {
        self.parameters().iter().fold(0, |sum, (_, rows, columns)| sum + rows * columns)
    }

    /// The name of each matrix.
    pub fn names(&self) -> Vec<String> {
        self.parameters().into_iter().map(|(name, ..)| name).collect()
    }

    fn heads(&self) -> Heads {
        Heads { count: self.heads, width: self.width / self.heads }
    }
}

const EMBEDDINGS: usize = 2;
const PER_LAYER: usize = 6;

/// A network and its weights.
#[derive(Debug)]
pub struct Network {
    shape: Shape,
    names: Vec<String>,
    weights: Vec<Var>,
}

/// Whether a pass is remembered for a backward pass.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pass {
    /// Only the result is wanted.
    Forward,
    /// The result will be differentiated.
    Differentiable,
}

impl Network {
    /// A network with random weights.
    ///
    /// # Errors
    ///
    /// Those of candle.
    pub fn random(shape: Shape, random: &mut ChaCha8Rng) -> Result<Self> {
        // what a layer adds to the residual stream starts small, so that depth does not change its scale
        let residual = 1.0 / (2.0 * shape.layers as f64).sqrt();
        let mut weights = Vec::new();
        for (name, rows, columns) in shape.parameters() {
            let deviation = match name.rsplit('.').next() {
                Some("norm") => 0.0,
                Some("tokens" | "positions") => 0.5,
                Some("out" | "down") => residual / (rows as f64).sqrt(),
                // logits and values start near 0
                Some("head") => 0.1 / (rows as f64).sqrt(),
                _ => 1.0 / (rows as f64).sqrt(),
            };
            let numbers = (0..rows * columns).map(|_| match deviation {
                0.0 => 1.0,
                _ => (normal(random) * deviation) as f32,
            });
            weights.push((rows, columns, numbers.collect::<Vec<f32>>()));
        }
        let weights = weights.into_iter().map(|(rows, columns, numbers)| variable(rows, columns, numbers));
        Ok(Self { shape, names: shape.names(), weights: weights.collect::<Result<_>>()? })
    }

    /// A network with these weights, in the order of [`Self::names`].
    ///
    /// # Errors
    ///
    /// Those of candle, if a matrix has another size.
    pub fn with_weights(shape: Shape, weights: Vec<Vec<f32>>) -> Result<Self> {
        let sizes = shape.parameters();
        if sizes.len() != weights.len() {
            candle_core::bail!("{} matrices of weights, expected {}", weights.len(), sizes.len());
        }
        let weights = sizes.iter().zip(weights).map(|(&(_, rows, columns), numbers)| variable(rows, columns, numbers));
        Ok(Self { shape, names: shape.names(), weights: weights.collect::<Result<_>>()? })
    }

    /// Its sizes.
    pub fn shape(&self) -> &Shape {
        &self.shape
    }

    /// The name of each matrix.
    pub fn names(&self) -> &[String] {
        &self.names
    }

    /// The matrices.
    pub fn weights(&self) -> &[Var] {
        &self.weights
    }

    /// The numbers of all matrices.
    ///
    /// # Errors
    ///
    /// Those of candle.
    pub fn to_vecs(&self) -> Result<Vec<Vec<f32>>> {
        self.weights.iter().map(|weights| weights.flatten_all()?.to_vec1()).collect()
    }

    /// The results of all rows, `[rows, outputs]`.
    ///
    /// # Errors
    ///
    /// Those of candle.
    pub fn forward(&self, rows: &Rows, pass: Pass) -> Result<Tensor> {
        let heads = self.shape.heads();
        let attend = |_, qkv: &Tensor| qkv.apply_op1(Attention { heads, context: Arc::clone(&rows.context) });
        let attend_once =
            |_, qkv: &Tensor| qkv.apply_op1_no_bwd(&Attention { heads, context: Arc::clone(&rows.context) });
        match pass {
            Pass::Forward => self.run(&rows.tokens, &rows.positions, pass, attend_once),
            Pass::Differentiable => self.run(&rows.tokens, &rows.positions, pass, attend),
        }
    }

    /// The layers, around an attention that may come from a cache.
    fn run(
        &self,
        tokens: &[u32],
        positions: &[u32],
        pass: Pass,
        mut attend: impl FnMut(usize, &Tensor) -> Result<Tensor>,
    ) -> Result<Tensor> {
        let weights: Vec<Tensor> = self
            .weights
            .iter()
            .map(|weights| match pass {
                Pass::Forward => weights.as_detached_tensor(),
                Pass::Differentiable => weights.as_tensor().clone(),
            })
            .collect();
        let ids = |ids: &[u32]| Tensor::new(ids, &Device::Cpu);
        let norm = |x: &Tensor, weight: &Tensor| x.apply_op2(weight, RmsNorm);
        let mut stream =
            (weights[0].index_select(&ids(tokens)?, 0)? + weights[1].index_select(&ids(positions)?, 0)?)?;
        for layer in 0..self.shape.layers {
            let [norm_a, qkv, out, norm_f, up, down] =
                [0, 1, 2, 3, 4, 5].map(|i| &weights[EMBEDDINGS + PER_LAYER * layer + i]);
            let attended = attend(layer, &norm(&stream, norm_a)?.matmul(qkv)?)?;
            stream = (stream + attended.matmul(out)?)?;
            let fed = norm(&stream, norm_f)?.matmul(up)?.apply_op1(Relu)?;
            stream = (stream + fed.matmul(down)?)?;
        }
        let last = weights.len() - 2;
        norm(&stream, &weights[last])?.matmul(&weights[last + 1])
    }
}

fn variable(rows: usize, columns: usize, numbers: Vec<f32>) -> Result<Var> {
    let tensor = match rows {
        1 => Tensor::from_vec(numbers, columns, &Device::Cpu)?,
        _ => Tensor::from_vec(numbers, (rows, columns), &Device::Cpu)?,
    };
    Var::from_tensor(&tensor)
}

#[cfg(test)]
mod tests;
