//! Operations on rows that candle would do in many passes.

use candle_core::{CpuStorage, CustomOp1, CustomOp2, Layout, Result, Shape, Tensor};

use super::slices::{contiguous, with_slice};

/// Keeps the root finite for a row of zeros.
const EPSILON: f32 = 1e-6;

/// `out = x / √(mean x² + ε) · w` for each row.
pub(super) struct RmsNorm;

impl CustomOp2 for RmsNorm {
    fn name(&self) -> &'static str {
        "rms-norm"
    }

    fn cpu_fwd(&self, x: &CpuStorage, lx: &Layout, w: &CpuStorage, lw: &Layout) -> Result<(CpuStorage, Shape)> {
        let (x, w) = (contiguous(x, lx)?, contiguous(w, lw)?);
        let mut out = Vec::with_capacity(x.len());
        for row in x.chunks_exact(w.len()) {
            let inverse = inverse_root(row);
            out.extend(row.iter().zip(w).map(|(x, w)| x * inverse * w));
        }
        Ok((CpuStorage::F32(out), lx.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, w: &Tensor, _: &Tensor, of_out: &Tensor) -> Result<(Option<Tensor>, Option<Tensor>)> {
        let (of_x, of_w) = with_slice(x, |x| with_slice(w, |w| with_slice(of_out, |g| Ok(rms_backward(x, w, g)))))?;
        Ok((Some(Tensor::from_vec(of_x, x.shape(), x.device())?), Some(Tensor::from_vec(of_w, w.shape(), w.device())?)))
    }
}

fn inverse_root(row: &[f32]) -> f32 {
    let mut lanes = [0.0_f32; 8];
    for block in row.chunks(8) {
        for (lane, x) in lanes.iter_mut().zip(block) {
            *lane += x * x;
        }
    }
    let [a, b, c, d, e, f, g, h] = lanes;
    let squares = ((a + e) + (b + f)) + ((c + g) + (d + h));
    1.0 / (squares / row.len() as f32 + EPSILON).sqrt()
}

fn rms_backward(x: &[f32], w: &[f32], of_out: &[f32]) -> (Vec<f32>, Vec<f32>) {
    let width = w.len();
    let mut of_x = Vec::with_capacity(x.len());
    let mut of_w = vec![0.0; width];
    for (x, g) in x.chunks_exact(width).zip(of_out.chunks_exact(width)) {
        let inverse = inverse_root(x);
        let mut along = 0.0;
        for (((x, g), w), of_w) in x.iter().zip(g).zip(w).zip(&mut of_w) {
            along += x * g * w;
            *of_w += x * inverse * g;
        }
        // the part of the gradient along x changes nothing but the length, which is divided out
        let pull = along * inverse * inverse * inverse / width as f32;
        of_x.extend(x.iter().zip(g).zip(w).map(|((x, g), w)| g * w * inverse - x * pull));
    }
    (of_x, of_w)
}

/// `out = max(x, 0)`.
pub(super) struct Relu;

impl CustomOp1 for Relu {
    fn name(&self) -> &'static str {
        "relu"
    }

    fn cpu_fwd(&self, x: &CpuStorage, layout: &Layout) -> Result<(CpuStorage, Shape)> {
        let out = contiguous(x, layout)?.iter().map(|&x| if x > 0.0 { x } else { 0.0 }).collect();
        Ok((CpuStorage::F32(out), layout.shape().clone()))
    }

    fn bwd(&self, x: &Tensor, _: &Tensor, of_out: &Tensor) -> Result<Option<Tensor>> {
        let grad: Vec<f32> = with_slice(x, |x| {
            with_slice(of_out, |g| Ok(x.iter().zip(g).map(|(&x, &g)| if x > 0.0 { g } else { 0.0 }).collect()))
        })?;
        Ok(Some(Tensor::from_vec(grad, x.shape(), x.device())?))
    }
}
