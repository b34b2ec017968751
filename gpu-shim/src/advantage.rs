//! **Stage 4 of 7 — advantage.** Reads rewards and values, writes advantages and returns.

use tokenwise::{
    advantage::{check_gae, gae, GaeConfig, GaeInput, GaeOutput},
    Batch, Layout, Mask,
};

use crate::{
    context::Gpu,
    error::GpuError,
    pipeline::{Grid, THREADS},
    segments::Segments,
};

/// Numbers per slot that come back.
const RESULTS: u64 = 2;
/// Slots of one workgroup: 8 per thread.
const BLOCK: u64 = 8 * THREADS as u64;
/// Words of one composed map.
const MAP_WORDS: u64 = 5;
/// Numbers up to this can be added in any order, 2³² of them, without overflow.
const LARGE: f32 = (1_u128 << 90) as f32;

impl Gpu {
    /// Generalized advantage estimates: the core's [`gae`] on the GPU, as a segmented scan.
    ///
    /// ```text
    /// δ_t = r_t + γ V_{t+1} − V_t      V after the last kept token = bootstrap
    /// A_t = δ_t + γ λ A_{t+1}          G_t = A_t + V_t
    /// ```
    ///
    /// λ = 0 gives the TD error δ; λ = 1 gives the discounted return minus the value. Sequences with a kept number that is not
    /// finite or beyond 2⁹⁰ are computed by the core, since drivers do not agree about them. Numbers agree within
    /// [`tolerance`](crate::tolerance), not to the bit.
    ///
    /// **Alignment.** `rewards` and `advantages` are action-aligned, `values` and `returns` state-aligned; `bootstrap` has one
    /// entry per sequence.
    ///
    /// **Mask.** Dropped slots are never used and get 0 in both outputs; `t + 1` is the next *kept* token, or the next slot with
    /// reward and value 0 under [`Across::ZeroStep`](tokenwise::advantage::Across::ZeroStep). Dropped slots after the last kept token count under neither rule.
    ///
    /// **Errors.** [`GpuError::Core`] with the core's own error, before a byte moves; [`GpuError::Limit`] if one sequence is larger
    /// than [`Gpu::max_buffer_bytes`] (more sequences go in several steps); [`GpuError::OutOfMemory`], [`GpuError::Lost`],
    /// [`GpuError::Device`]. Nothing was written then.
    ///
    /// **Reference.** Schulman et al. 2016, arXiv:1506.02438, eq. 16; Blelloch 1990, "Prefix sums and their applications", for
    /// recurrences as scans. Conventions as the core's.
    ///
    /// # Example
    ///
    /// ```no_run
    /// use tokenwise::{advantage::*, Batch, Layout, Mask};
    ///
    /// # async fn example() -> Result<(), tokenwise_gpu::GpuError> {
    /// let gpu = tokenwise_gpu::Gpu::new().await?;
    /// // the third token came from a tool, not from the policy
    /// let batch = Batch::new(Layout::padded(1, 4)?, Mask::new(&[true, true, false, true]))?;
    /// let (mut advantages, mut returns) = ([9.0; 4], [9.0; 4]);
    /// gpu.gae(
    ///     &batch,
    ///     GaeInput { rewards: &[0.0, 0.0, f32::NAN, 1.0], values: &[0.5, 0.5, f32::NAN, 0.5], bootstrap: &[0.0] },
    ///     &GaeConfig { lambda: 0.5, ..Default::default() },
    ///     GaeOutput { advantages: &mut advantages, returns: &mut returns },
    /// )
    /// .await?;
    /// assert_eq!(advantages, [0.125, 0.25, 0.0, 0.5]);
    /// assert_eq!(returns, [0.625, 0.75, 0.0, 1.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn gae(
        &self,
        batch: &Batch<'_>,
        input: GaeInput<'_, f32>,
        config: &GaeConfig,
        output: GaeOutput<'_, f32>,
    ) -> Result<(), GpuError> {
        check_gae(batch, &input, config, &output)?;
        let segments = Segments::new(batch, config.across);
        let mut found = Vec::new();
        for sequences in segments.steps(self.most_entries(RESULTS))? {
            // false for NaN
            let fits = |x: f32| x.abs() <= LARGE;
            let by_core = segments.unfit(
                &sequences,
                |sequence| fits(input.bootstrap[sequence]),
                |slot| fits(input.rewards[slot]) && fits(input.values[slot]),
            );
            let words = segments.words(&sequences, &by_core);
            let slots = segments.slots(&sequences);
            let part = GaeInput {
                rewards: &input.rewards[slots.clone()],
                values: &input.values[slots.clone()],
                bootstrap: &input.bootstrap[sequences],
            };
            found.push((slots, self.scan(&words, part, config).await?, by_core));
        }
        let GaeOutput { advantages, returns } = output;
        for (slots, (found_advantages, found_returns), by_core) in found {
            advantages[slots.clone()].copy_from_slice(&found_advantages);
            returns[slots].copy_from_slice(&found_returns);
            for sequence in by_core {
                let slots = segments.slots(&(sequence..sequence + 1));
                let mask = Mask::new(&batch.mask().as_slice()[slots.clone()]);
                let part = GaeInput {
                    rewards: &input.rewards[slots.clone()],
                    values: &input.values[slots.clone()],
                    bootstrap: &input.bootstrap[sequence..=sequence],
                };
                let (advantages, returns) = (&mut advantages[slots.clone()], &mut returns[slots.clone()]);
                let batch = Batch::new(Layout::padded(1, slots.len())?, mask)?;
                gae(&batch, part, config, GaeOutput { advantages, returns })?;
            }
        }
        Ok(())
    }

    /// Advantages and returns of one step, whose slots are what `words` says.
    async fn scan(
        &self,
        words: &[u32],
        input: GaeInput<'_, f32>,
        config: &GaeConfig,
    ) -> Result<(Vec<f32>, Vec<f32>), GpuError> {
        let kernel = &self.kernels.gae;
        let tokens = words.len();
        let blocks = (tokens as u64).div_ceil(BLOCK);
        let grid = Grid::of(blocks, self.limits().max_compute_workgroups_per_dimension)?;
        // rounded to f32 where the core does
        let (gamma, decay) = (config.gamma as f32, (config.gamma * config.lambda) as f32);
        // both are at most the entries of a buffer, which are counted in u32
        let params = [tokens as u32, blocks as u32, gamma.to_bits(), decay.to_bits()];
        let staging = self
            .caught(|| {
                let params = self.params("params", params);
                let slots = self.upload("slots", words);
                let rewards = self.upload("rewards", input.rewards);
                let values = self.upload("values", input.values);
                let bootstrap = self.upload("bootstrap", input.bootstrap);
                let advantages = self.scratch("advantages", tokens as u64);
                let returns = self.scratch("returns", tokens as u64);
                let carries = self.scratch("carries", blocks * MAP_WORDS);
                let buffers = [&params, &slots, &rewards, &values, &bootstrap, &advantages, &returns, &carries];
                let bound = kernel.bind(&self.device, &buffers);
                let mut encoder = self.encoder(kernel.label);
                kernel.record(&mut encoder, &bound, &[grid, Grid::ONE, grid]);
                let staging = self.gather(&mut encoder, "gae staging", &[&advantages, &returns]);
                self.queue.submit([encoder.finish()]);
                staging
            })
            .await?;
        let mut advantages: Vec<f32> = self.read_back(&staging).await?.into_iter().map(f32::from_bits).collect();
        let returns = advantages.split_off(tokens.min(advantages.len()));
        Ok((advantages, returns))
    }
}
