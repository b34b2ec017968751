//! Causal attention over rows of packed sequences that share their prompts.

use std::sync::Arc;

use candle_core::{CpuStorage, CustomOp1, Layout, Result, Shape, Tensor};

use super::slices::{contiguous, with_slice};

/// The rows that each row attends to, itself last.
#[derive(Clone, Debug, Default)]
pub struct Context {
    ends: Vec<usize>,
    rows: Vec<u32>,
}

impl Context {
    /// Adds the context of the next row.
    pub fn push(&mut self, rows: impl IntoIterator<Item = u32>) {
        self.rows.extend(rows);
        self.ends.push(self.rows.len());
    }

    fn of(&self, row: usize) -> &[u32] {
        let start = if row == 0 { 0 } else { self.ends[row - 1] };
        &self.rows[start..self.ends[row]]
    }

    /// Rows that have a context.
    pub fn len(&self) -> usize {
        self.ends.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.ends.is_empty()
    }
}

/// Sizes of the heads.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Heads {
    /// Number of heads.
    pub count: usize,
    /// Width of each.
    pub width: usize,
}

impl Heads {
    const fn total(self) -> usize {
        self.count * self.width
    }
}

/// `out[i] = Σ_j softmax_j(q_i · k_j / √width) v_j` for each head, j over the context of row i.
///
/// `qkv` has rows of three parts: queries, keys, values. Row i of the context is row `first + i` of `qkv`.
pub(super) fn attend(heads: Heads, context: &Context, first: usize, qkv: &[f32]) -> Vec<f32> {
    let total = heads.total();
    let mut out = vec![0.0; context.len() * total];
    let mut shares = Vec::new();
    for (row, out) in out.chunks_exact_mut(total).enumerate() {
        let others = context.of(row);
        for head in 0..heads.count {
            let at = head * heads.width;
            probabilities(heads, qkv, first + row, at, others, &mut shares);
            let out = &mut out[at..at + heads.width];
            for (&other, &share) in others.iter().zip(&shares) {
                add_scaled(out, share, part(qkv, other as usize, 2, at, heads));
            }
        }
    }
    out
}

/// The gradient to `qkv` from the gradient to the result of [`attend`] with `first = 0`.
fn attend_backward(heads: Heads, context: &Context, qkv: &[f32], of_out: &[f32]) -> Vec<f32> {
    let (total, width) = (heads.total(), heads.width);
    let scale = scale(heads);
    let mut grad = vec![0.0; qkv.len()];
    let (mut shares, mut slopes) = (Vec::new(), Vec::new());
    for row in 0..context.len() {
        let others = context.of(row);
        for head in 0..heads.count {
            let at = head * width;
            probabilities(heads, qkv, row, at, others, &mut shares);
            let of_out = &of_out[row * total + at..row * total + at + width];
            let mut mean = 0.0;
            slopes.clear();
            for (&other, &share) in others.iter().zip(&shares) {
                let slope = dot(of_out, part(qkv, other as usize, 2, at, heads));
                mean += share * slope;
                slopes.push(slope);
            }
            for ((&other, &share), &slope) in others.iter().zip(&shares).zip(&slopes) {
                let other = other as usize;
                let of_score = share * (slope - mean) * scale;
                add_scaled(part_mut(&mut grad, row, 0, at, heads), of_score, part(qkv, other, 1, at, heads));
                add_scaled(part_mut(&mut grad, other, 1, at, heads), of_score, part(qkv, row, 0, at, heads));
                add_scaled(part_mut(&mut grad, other, 2, at, heads), share, of_out);
            }
        }
    }
    grad
}

fn scale(heads: Heads) -> f32 {
    1.0 / (heads.width as f32).sqrt()
}

fn probabilities(heads: Heads, qkv: &[f32], row: usize, at: usize, others: &[u32], shares: &mut Vec<f32>) {
    let (query, scale) = (part(qkv, row, 0, at, heads), scale(heads));
    shares.clear();
    shares.extend(others.iter().map(|&other| dot(query, part(qkv, other as usize, 1, at, heads)) * scale));
    let largest = shares.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    let mut total = 0.0;
    for share in shares.iter_mut() {
        *share = (*share - largest).exp();
        total += *share;
    }
    let inverse = 1.0 / total;
    shares.iter_mut().for_each(|share| *share *= inverse);
}

/// Queries (0), keys (1) or values (2) of one head of a row.
#[inline(always)]
fn part(qkv: &[f32], row: usize, which: usize, at: usize, heads: Heads) -> &[f32] {
    let start = (row * 3 + which) * heads.total() + at;
    &qkv[start..start + heads.width]
}

#[inline(always)]
fn part_mut(qkv: &mut [f32], row: usize, which: usize, at: usize, heads: Heads) -> &mut [f32] {
    let start = (row * 3 + which) * heads.total() + at;
    &mut qkv[start..start + heads.width]
}

/// With eight partial sums, which the compiler keeps in vectors.
#[inline(always)]
fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0.0; 8];
    let (a_blocks, b_blocks) = (a.chunks_exact(8), b.chunks_exact(8));
    let mut rest = 0.0;
    for (x, y) in a_blocks.remainder().iter().zip(b_blocks.remainder()) {
        rest += x * y;
    }
    for (a, b) in a_blocks.zip(b_blocks) {
        for ((lane, x), y) in lanes.iter_mut().zip(a).zip(b) {
            *lane += x * y;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    ((a + e) + (b + f)) + ((c + g) + (d + h)) + rest
}

#[inline(always)]
fn add_scaled(sum: &mut [f32], factor: f32, values: &[f32]) {
    for (sum, value) in sum.iter_mut().zip(values) {
        *sum += factor * value;
    }
}

/// [`attend`] as an operation with a gradient.
pub(super) struct Attention {
    pub(super) heads: Heads,
    pub(super) context: Arc<Context>,
}

impl CustomOp1 for Attention {
    fn name(&self) -> &'static str {
        "attention"
    }

    fn cpu_fwd(&self, storage: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = attend(self.heads, &self.context, 0, contiguous(storage, layout)?);
        Ok((CpuStorage::F32(out), (self.context.len(), self.heads.total()).into()))
    }

    fn bwd(&self, qkv: &Tensor, _: &Tensor, of_out: &Tensor) -> Result<Option<Tensor>> {
        let grad = with_slice(qkv, |qkv| {
            with_slice(of_out, |of_out| Ok(attend_backward(self.heads, &self.context, qkv, of_out)))
        })?;
        Ok(Some(Tensor::from_vec(grad, qkv.shape(), qkv.device())?))
    }
}
