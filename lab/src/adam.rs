//! Adam, with a state that can be saved. candle's own optimisers keep theirs to themselves.

use candle_core::{backprop::GradStore, Result, Tensor};

use crate::model::{slices::with_slice, Network};

const FIRST_DECAY: f64 = 0.9;
const SECOND_DECAY: f64 = 0.999;
const EPSILON: f32 = 1e-8;

/// The settings of [`Adam`].
#[derive(Clone, Copy, Debug)]
pub struct AdamConfig {
    /// The learning rate.
    pub learning_rate: f64,
    /// Gradients with a larger norm are scaled down to it.
    pub norm_limit: f64,
}

/// The moments of the gradients of a network.
#[derive(Clone, Debug, PartialEq)]
pub struct Adam {
    /// Updates so far.
    pub updates: u64,
    /// Running mean of the gradient of each matrix.
    pub first: Vec<Vec<f32>>,
    /// Running mean of its square.
    pub second: Vec<Vec<f32>>,
}

impl Adam {
    /// Before the first update.
    pub fn new(network: &Network) -> Self {
        let zeros = || network.weights().iter().map(|weights| vec![0.0; weights.elem_count()]).collect();
        Self { updates: 0, first: zeros(), second: zeros() }
    }

    /// Updates the weights, returns the norm of the gradient before it was limited.
    ///
    /// # Errors
    ///
    /// Those of candle.
    pub fn update(&mut self, network: &Network, gradients: &GradStore, config: &AdamConfig) -> Result<f64> {
        let mut squares = 0.0;
        for weights in network.weights() {
            let Some(gradient) = gradients.get(weights) else { continue };
            squares += with_slice(gradient, |gradient| Ok(sum_of_squares(gradient)))?;
        }
        let norm = squares.sqrt();
        let scale = if norm > config.norm_limit { config.norm_limit / norm } else { 1.0 };
        self.updates += 1;
        // the moments start at 0: both are divided by the share of the true mean that they have reached
        let reached = |decay: f64| 1.0 - power(decay, self.updates);
        let step = config.learning_rate / reached(FIRST_DECAY);
        let root = 1.0 / reached(SECOND_DECAY);
        for ((weights, first), second) in network.weights().iter().zip(&mut self.first).zip(&mut self.second) {
            let Some(gradient) = gradients.get(weights) else { continue };
            let mut numbers = weights.flatten_all()?.to_vec1::<f32>()?;
            with_slice(gradient, |gradient| {
                apply(&mut numbers, gradient, first, second, [scale as f32, step as f32, root as f32]);
                Ok(())
            })?;
            weights.set(&Tensor::from_vec(numbers, weights.shape(), weights.device())?)?;
        }
        Ok(norm)
    }
}

fn apply(weights: &mut [f32], gradient: &[f32], first: &mut [f32], second: &mut [f32], [scale, step, root]: [f32; 3]) {
    let (keep_first, keep_second) = (FIRST_DECAY as f32, SECOND_DECAY as f32);
    for (((weight, gradient), first), second) in weights.iter_mut().zip(gradient).zip(first).zip(second) {
        let gradient = gradient * scale;
        *first = keep_first * *first + (1.0 - keep_first) * gradient;
        *second = keep_second * *second + (1.0 - keep_second) * gradient * gradient;
        *weight -= step * *first / ((*second * root).sqrt() + EPSILON);
    }
}

fn sum_of_squares(numbers: &[f32]) -> f64 {
    let mut lanes = [0.0_f64; 8];
    for block in numbers.chunks(8) {
        for (lane, &x) in lanes.iter_mut().zip(block) {
            *lane += f64::from(x) * f64::from(x);
        }
    }
    lanes.iter().fold(0.0, |sum, lane| sum + lane)
}

fn power(base: f64, exponent: u64) -> f64 {
    (base.ln() * exponent as f64).exp()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        model::{Pass, Rows, Shape},
        random::{stream, Purpose},
    };

    #[test]
    fn the_first_update_moves_every_weight_by_the_learning_rate() {
        let shape = Shape { vocabulary: 3, positions: 4, layers: 1, width: 8, heads: 1, outputs: 3 };
        let network = Network::random(shape, &mut stream(0, Purpose::Policy, 0)).unwrap();
        let before = network.to_vecs().unwrap();
        let rows = Rows::new(&[vec![0, 1]], [&[2_u32, 1][..]].into_iter());
        let loss = network.forward(&rows, Pass::Differentiable).unwrap().sqr().unwrap().sum_all().unwrap();
        let gradients = loss.backward().unwrap();
        let mut adam = Adam::new(&network);
        let config = AdamConfig { learning_rate: 0.01, norm_limit: 1.0 };
        assert!(adam.update(&network, &gradients, &config).unwrap() > 0.0);
        let after = network.to_vecs().unwrap();
        for ((name, weights), (before, after)) in
            network.names().iter().zip(network.weights()).zip(before.iter().zip(&after))
        {
            let gradient = gradients.get(weights).unwrap().flatten_all().unwrap().to_vec1::<f32>().unwrap();
            for ((before, after), gradient) in before.iter().zip(after).zip(gradient) {
                // below that, ε counts
                if gradient.abs() > 1e-4 {
                    assert!(
                        (before - after - 0.01 * gradient.signum()).abs() < 1e-4,
                        "{name}: {before} {after} {gradient}"
                    );
                }
            }
        }
    }
}
