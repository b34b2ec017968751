//! A batch of per-token values, and the formulas over it.

use std::hint::black_box;

use tokenwise::{
    advantage::{
        broadcast, discounted_returns, gae, group_relative, sequence_sums, whiten, whiten_in_place, GaeConfig,
        GaeInput, GaeOutput, GroupConfig, ReturnsConfig, ReturnsInput, WhitenConfig,
    },
    divergence::{kl_estimate, KlBounds, KlConfig, KlEstimator, KlInput},
    loss::{ppo_clip, DualClip, PolicyLossInput, PpoConfig},
    metric::{analysis, AnalysisInput},
    reward::{shape_rewards, ShapeConfig, ShapeInput},
    Batch, Groups, Layout, Mask, Moments, Result,
};

use crate::{hash, item::TokenItem, random::Random};

/// Samples per prompt.
pub const GROUP: usize = 8;
/// Discount of the advantages.
pub const GAMMA: f64 = 0.99;
/// λ of the advantages.
pub const LAMBDA: f64 = 0.95;
/// KL coefficient of the chain.
pub const BETA: f64 = 0.05;

/// Padded or packed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Every row has the same number of slots; about 60 % of them are kept.
    Padded,
    /// Only the kept tokens, back to back.
    Packed,
}

/// Inputs, outputs and results of one batch.
pub struct Tokens {
    batch: Batch<'static>,
    /// Action-aligned: the score on the last kept token, small values elsewhere.
    pub rewards: Vec<f32>,
    /// State-aligned.
    pub values: Vec<f32>,
    /// Log-probabilities of the trained policy.
    pub log_probs: Vec<f32>,
    /// Log-probabilities of the sampling policy.
    pub old_log_probs: Vec<f32>,
    /// Log-probabilities of the reference.
    pub ref_log_probs: Vec<f32>,
    /// Advantages, for the formulas that read them.
    pub advantages: Vec<f32>,
    /// What the formulas write; see [`TokenItem`].
    pub out: [Vec<f32>; 3],
    /// Losses and metrics.
    pub totals: [f64; 5],
    bootstrap: Vec<f32>,
    scores: Vec<f32>,
    relative: Vec<f32>,
    moments: Vec<Moments>,
    group_sizes: Vec<u32>,
}

impl Tokens {
    /// A filled batch of `sequences` sequences of at most `len` tokens; both layouts hold the same tokens.
    ///
    /// # Errors
    ///
    /// See [`Layout`].
    pub fn new(sequences: usize, len: usize, form: Form) -> Result<Self> {
        let mut random = Random::new(1);
        let lengths: Vec<usize> =
            (0..sequences).map(|_| ((len as f32 * (0.2 + 0.8 * random.unit())) as usize).clamp(1, len)).collect();
        let mut starts = vec![0_u32];
        for &length in &lengths {
            starts.push(starts[starts.len() - 1] + if form == Form::Packed { length } else { len } as u32);
        }
        let slots = starts[sequences] as usize;
        let mut keep = vec![false; slots];
        // written, not only allocated: a trainer never reads untouched pages
        let zeros = || {
            let mut zeros = black_box(vec![1.0_f32; slots]);
            zeros.fill(0.0);
            zeros
        };
        let [mut rewards, mut values, mut log_probs] = [zeros(), zeros(), zeros()];
        let [mut old_log_probs, mut ref_log_probs, mut advantages] = [zeros(), zeros(), zeros()];
        for (&start, &length) in starts.iter().zip(&lengths) {
            for slot in start as usize..start as usize + length {
                keep[slot] = true;
                rewards[slot] = 0.02 * random.bell();
                values[slot] = 0.5 * random.bell();
                old_log_probs[slot] = random.log_prob();
                log_probs[slot] = old_log_probs[slot] + 0.15 * random.bell();
                ref_log_probs[slot] = old_log_probs[slot] + 0.1 * random.bell();
                advantages[slot] = random.bell();
            }
            rewards[start as usize + length - 1] += random.unit();
        }
        // leaked, so that the batch can be stored beside the mask it borrows; a process creates few of them
        let keep: &'static [bool] = keep.leak();
        let layout = match form {
            Form::Padded => Layout::padded(sequences, len)?,
            Form::Packed => Layout::packed(starts.leak())?,
        };
        let groups = sequences.div_ceil(GROUP);
        let group_sizes = (0..groups).map(|group| (sequences - group * GROUP).min(GROUP) as u32).collect();
        let out = [zeros(), zeros(), zeros()];
        Ok(Self {
            batch: Batch::new(layout, Mask::new(keep))?,
            rewards,
            values,
            log_probs,
            old_log_probs,
            ref_log_probs,
            advantages,
            out,
            totals: [0.0; 5],
            bootstrap: vec![0.0; sequences],
            scores: vec![0.0; sequences],
            relative: vec![0.0; sequences],
            moments: vec![Moments::default(); groups],
            group_sizes,
        })
    }

    /// Number of slots, kept or not.
    pub fn slots(&self) -> usize {
        self.batch.tokens()
    }

    /// Number of kept tokens.
    pub fn kept(&self) -> usize {
        self.batch.kept()
    }

    /// Which slots are kept.
    pub fn keep(&self) -> &[bool] {
        self.batch.mask().as_slice()
    }

    /// Builds the batch again from its shape and mask.
    ///
    /// # Errors
    ///
    /// Never for a batch that was built before.
    pub fn check(&self) -> Result<()> {
        black_box(Batch::new(self.batch.layout(), self.batch.mask())?);
        Ok(())
    }

    /// Computes one item.
    ///
    /// # Errors
    ///
    /// See the formulas; valid inputs never fail.
    pub fn run(&mut self, item: TokenItem) -> Result<()> {
        let batch = self.batch;
        let [first, second, _] = &mut self.out;
        match item {
            TokenItem::Gae => {
                let input = GaeInput { rewards: &self.rewards, values: &self.values, bootstrap: &self.bootstrap };
                gae(&batch, input, &gae_config(), GaeOutput { advantages: first, returns: second })?;
                whiten_in_place(&batch, first, &WhitenConfig::default())
            }
            TokenItem::Grpo => {
                let groups = Groups::contiguous(&self.group_sizes)?;
                sequence_sums(&batch, &self.rewards, &mut self.scores)?;
                let config = GroupConfig::default();
                group_relative(&groups, &self.scores, &config, &mut self.moments, &mut self.relative)?;
                broadcast(&batch, &self.relative, first)
            }
            TokenItem::Ppo => {
                let input = PolicyLossInput {
                    log_probs: &self.log_probs,
                    old_log_probs: &self.old_log_probs,
                    advantages: &self.advantages,
                    weights: None,
                };
                let loss = ppo_clip(&batch, input, &ppo_config(), first)?;
                self.totals = [loss.loss, loss.clip_fraction, loss.clip_fraction_lower, loss.kl, 0.0];
                Ok(())
            }
            TokenItem::Analysis => {
                let input = AnalysisInput {
                    old_log_probs: &self.old_log_probs,
                    advantages: &self.advantages,
                    rewards: &self.rewards,
                };
                self.totals = analysis(&batch, input)?.entries().map(|(_, value)| value);
                Ok(())
            }
            TokenItem::Returns => {
                let input = ReturnsInput { rewards: &self.rewards, bootstrap: &self.bootstrap };
                discounted_returns(&batch, input, &ReturnsConfig { gamma: GAMMA, ..Default::default() }, first)
            }
            TokenItem::Kl => {
                let input = KlInput { log_probs: &self.log_probs, ref_log_probs: &self.ref_log_probs };
                kl_estimate(&batch, input, &kl_config(), first)
            }
            TokenItem::Whiten => whiten(&batch, &self.advantages, &WhitenConfig::default(), first),
            TokenItem::Step => self.step(),
        }
    }

    /// Like [`TokenItem::Gae`], but the whitened advantages have a buffer of their own (the third output), as they have
    /// in Python.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub fn gae_apart(&mut self) -> Result<()> {
        let batch = self.batch;
        let [first, second, third] = &mut self.out;
        let input = GaeInput { rewards: &self.rewards, values: &self.values, bootstrap: &self.bootstrap };
        gae(&batch, input, &gae_config(), GaeOutput { advantages: first, returns: second })?;
        whiten(&batch, first, &WhitenConfig::default(), third)
    }

    /// KL penalty, rewards, advantages, returns, whitening, loss and gradient; builds the batch as well, as a trainer
    /// would.
    fn step(&mut self) -> Result<()> {
        let batch = Batch::new(self.batch.layout(), self.batch.mask())?;
        let [first, second, third] = &mut self.out;
        let input = KlInput { log_probs: &self.old_log_probs, ref_log_probs: &self.ref_log_probs };
        kl_estimate(&batch, input, &kl_config(), first)?;
        shape_rewards(&batch, ShapeInput { scores: &self.rewards, kl: first }, &ShapeConfig { beta: BETA }, second)?;
        let input = GaeInput { rewards: second, values: &self.values, bootstrap: &self.bootstrap };
        gae(&batch, input, &gae_config(), GaeOutput { advantages: first, returns: third })?;
        whiten_in_place(&batch, first, &WhitenConfig::default())?;
        let input = PolicyLossInput {
            log_probs: &self.log_probs,
            old_log_probs: &self.old_log_probs,
            advantages: first,
            weights: None,
        };
        let loss = ppo_clip(&batch, input, &ppo_config(), second)?;
        self.totals = [loss.loss, loss.clip_fraction, loss.clip_fraction_lower, loss.kl, 0.0];
        Ok(())
    }

    /// Computes one item and returns a hash of the bits it wrote.
    ///
    /// # Errors
    ///
    /// As [`Self::run`].
    pub fn fingerprint(&mut self, item: TokenItem) -> Result<u64> {
        self.out.iter_mut().for_each(|out| out.fill(1.0));
        self.totals = [0.0; 5];
        self.run(item)?;
        let tokens = self.out.iter().flatten().flat_map(|value| value.to_bits().to_le_bytes());
        Ok(hash(tokens.chain(self.totals.iter().flat_map(|value| value.to_bits().to_le_bytes()))))
    }
}

fn gae_config() -> GaeConfig {
    GaeConfig { gamma: GAMMA, lambda: LAMBDA, ..Default::default() }
}

/// Config of verl's `vanilla`.
fn ppo_config() -> PpoConfig<'static> {
    PpoConfig { dual_clip: DualClip::NegativeOnly(3.0), ..Default::default() }
}

/// Config of verl's `low_var_kl`.
fn kl_config() -> KlConfig {
    KlConfig { estimator: KlEstimator::K3, bounds: KlBounds::K3Only, ..Default::default() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_forms_hold_the_same_tokens() {
        let mut padded = Tokens::new(9, 40, Form::Padded).unwrap();
        let mut packed = Tokens::new(9, 40, Form::Packed).unwrap();
        assert_eq!(padded.kept(), packed.kept());
        assert!(packed.keep().iter().all(|&keep| keep));
        for item in TokenItem::ALL {
            padded.run(item).unwrap();
            packed.run(item).unwrap();
            let kept = padded.out[0].iter().zip(padded.keep()).filter(|(_, &keep)| keep).map(|(&value, _)| value);
            assert_eq!(kept.collect::<Vec<_>>(), packed.out[0], "{item:?}");
            assert_eq!(padded.totals, packed.totals, "{item:?}");
        }
    }

    #[test]
    fn every_item_writes_something_finite() {
        for item in TokenItem::ALL {
            let mut tokens = Tokens::new(8, 64, Form::Packed).unwrap();
            let before = hash(tokens.out[0].iter().flat_map(|value| value.to_bits().to_le_bytes()));
            assert_ne!(tokens.fingerprint(item).unwrap(), before, "{item:?}");
            assert!(tokens.out.iter().flatten().all(|value| value.is_finite()), "{item:?}");
        }
    }
}
