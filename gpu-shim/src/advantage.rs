//! **Stage 4 of 7 — advantage.** Reads rewards and values, writes advantages and returns.

use tokenwise::{
    advantage::{
        check_gae, check_gae_config, check_returns_config, check_td_config, check_whiten, gae, Center, EpsilonPlace,
        GaeConfig, GaeInput, GaeOutput, LeaveOneOutConfig, ReturnsConfig, Scale, Singleton, TdLambdaConfig,
        WhitenConfig,
    },
    Batch, Layout, Mask, Moments, Spread,
};

use crate::{
    batch::{GpuBatch, GpuGroups, Segmented},
    column::{Column, Input},
    context::Gpu,
    error::GpuError,
    fold::Fold,
    recording::{Pending, Record, Recording},
    report::{Clock, Report},
    scan::{Factors, ScanKernel},
    segments::Segments,
    token::{bits, sequence, token, whole, Setting, Term, TokenKernel},
};

mod by_name;

pub(crate) use by_name::RUNNERS;

/// Words read back per slot.
const RESULTS: u64 = 2;
/// Magnitudes up to this can be summed in any order, 2³² of them, without overflow.
const LARGE: f32 = (1_u128 << 90) as f32;

impl Gpu {
    /// Generalized advantage estimates: the core's [`gae`] on the GPU, as a segmented scan.
    ///
    /// ```text
    /// δ_t = r_t + γ V_{t+1} − V_t      V after the last kept token = bootstrap
    /// A_t = δ_t + γ λ A_{t+1}          G_t = A_t + V_t
    /// ```
    ///
    /// λ = 0 gives the TD error δ; λ = 1 gives the discounted return minus the value. Sequences with a kept value that
    /// is not finite or beyond 2⁹⁰ are computed by the core, because drivers disagree on them. Results agree within
    /// [`tolerance`](crate::tolerance), not to the bit.
    ///
    /// **Alignment.** `rewards` and `advantages` are action-aligned, `values` and `returns` state-aligned; `bootstrap` has one
    /// entry per sequence.
    ///
    /// **Mask.** Dropped slots are never used and get 0 in both outputs; `t + 1` is the next *kept* token, or the next slot with
    /// reward and value 0 under [`Across::ZeroStep`](tokenwise::advantage::Across::ZeroStep). Dropped slots after the last kept token count under neither rule.
    ///
    /// **Errors.** [`GpuError::Core`] with the core's error, before any transfer; [`GpuError::Limit`] if one sequence
    /// is larger than a buffer of the device (batches of several sequences are split); [`GpuError::OutOfMemory`],
    /// [`GpuError::Lost`], [`GpuError::Device`]. Nothing is written on an error.
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
    ) -> Result<Report, GpuError> {
        let clock = Clock::start();
        check_gae(batch, &input, config, &output)?;
        let segments = Segments::new(batch);
        let mut found = Vec::new();
        let mut report = Report::gpu();
        for sequences in segments.steps(self.most_entries(RESULTS)) {
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
            let done = self.scan(&words, part, config).await?;
            report.add(&done.2);
            found.push((slots, (done.0, done.1), by_core));
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
        report.host = clock.elapsed();
        Ok(report)
    }

    /// Advantages and returns of one step; `words` describes its slots.
    async fn scan(
        &self,
        words: &[u32],
        input: GaeInput<'_, f32>,
        config: &GaeConfig,
    ) -> Result<(Vec<f32>, Vec<f32>, Report), GpuError> {
        let mut recording = self.record();
        let slots = recording.upload_words(words)?;
        let rewards = recording.upload(input.rewards)?;
        let values = recording.upload(input.values)?;
        let bootstrap = recording.upload(input.bootstrap)?;
        let ([advantages, returns], _) =
            recording.scan(&GAE, &slots, &[&rewards, &values, &bootstrap], gae_factors(config))?;
        let (advantages, returns) = (recording.download(&advantages), recording.download(&returns));
        let done = recording.submit().await?;
        Ok((done.floats(advantages).to_vec(), done.floats(returns).to_vec(), done.report().clone()))
    }
}

pub(crate) const GAE: ScanKernel = ScanKernel {
    label: "advantage/gae",
    steps: include_str!("../shaders/advantage/gae.wgsl"),
    inputs: 3,
    per_sequence: 1,
    outputs: 2,
};

const RETURNS: ScanKernel = ScanKernel {
    label: "advantage/discounted_returns",
    steps: include_str!("../shaders/advantage/discounted_returns.wgsl"),
    inputs: 2,
    per_sequence: 1,
    outputs: 1,
};

const TD_LAMBDA: ScanKernel = ScanKernel {
    label: "advantage/td_lambda",
    steps: include_str!("../shaders/advantage/td_lambda.wgsl"),
    inputs: 3,
    per_sequence: 1,
    outputs: 1,
};

pub(crate) fn gae_factors(config: &GaeConfig) -> Factors {
    // rounded to f32 where the core does
    Factors { gamma: config.gamma as f32, decay: (config.gamma * config.lambda) as f32, across: config.across }
}

/// What [`Recording::gae`] reads.
#[derive(Clone, Debug)]
pub struct GaeColumns<'a> {
    /// Token rewards.
    pub rewards: Input<'a>,
    /// Values.
    pub values: Input<'a>,
    /// One per sequence.
    pub bootstrap: Input<'a>,
}

impl GaeColumns<'_> {
    pub(crate) fn check(&self, batch: &GpuBatch<'_>) -> Result<(), GpuError> {
        self.rewards.check_len("rewards", batch.tokens())?;
        self.values.check_len("values", batch.tokens())?;
        self.bootstrap.check_len("bootstrap", batch.host().sequences())
    }
}

/// Scores of sequences without the means of their groups; see [`Recording::centred`].
pub(crate) struct Centred {
    /// Per sequence.
    pub(crate) scores: Column,
    /// Per group.
    pub(crate) rests: Column,
    /// Sequences per group.
    pub(crate) sizes: Column,
}

const BROADCAST: TokenKernel = TokenKernel {
    label: "advantage/broadcast",
    formula: include_str!("../shaders/advantage/broadcast.wgsl"),
    inputs: &[sequence("values")],
    outputs: &["out"],
    terms: &[],
    settings: &[],
    last_only: false,
};

pub(crate) const CENTRED: TokenKernel = TokenKernel {
    label: "advantage/centred",
    formula: include_str!("../shaders/advantage/centred.wgsl"),
    inputs: &[token("scores"), sequence("sums"), sequence("sizes")],
    outputs: &["centred"],
    terms: &[],
    settings: &[],
    last_only: false,
};

const LEAVE_ONE_OUT: TokenKernel = TokenKernel {
    label: "advantage/leave_one_out",
    formula: include_str!("../shaders/advantage/leave_one_out.wgsl"),
    inputs: &[token("scores"), token("centred"), sequence("rests"), sequence("sizes")],
    outputs: &["out"],
    terms: &[],
    settings: &[Setting::U32("singleton")],
    last_only: false,
};

const SUM: TokenKernel = TokenKernel {
    label: "advantage/sum",
    formula: include_str!("../shaders/advantage/sum.wgsl"),
    inputs: &[token("values")],
    outputs: &[],
    terms: &[Term::Number("sum")],
    settings: &[],
    last_only: false,
};

const SQUARES: TokenKernel = TokenKernel {
    label: "advantage/squares",
    formula: concat!(
        include_str!("../shaders/advantage/moments.wgsl"),
        include_str!("../shaders/advantage/squares.wgsl"),
    ),
    inputs: &[token("values"), whole("sums")],
    outputs: &[],
    terms: &[Term::Number("rest"), Term::Number("square")],
    settings: &[Setting::F32("count")],
    last_only: false,
};

const WHITEN: TokenKernel = TokenKernel {
    label: "advantage/whiten",
    formula: concat!(
        include_str!("../shaders/advantage/moments.wgsl"),
        include_str!("../shaders/advantage/whiten.wgsl"),
    ),
    inputs: &[token("values"), whole("sums"), whole("squares")],
    outputs: &["out"],
    terms: &[],
    settings: &[
        Setting::F32("count"),
        Setting::F32("spread"),
        Setting::F32("epsilon"),
        Setting::U32("place"),
        Setting::U32("keep_mean"),
        Setting::U32("unit"),
    ],
    last_only: false,
};

impl Recording<'_> {
    /// Generalized advantage estimates of resident columns: the core's [`gae`]. Returns advantages and returns. A kept
    /// number that is not finite or beyond 2⁹⁰ makes its token and those before it NaN and sets
    /// [`Report::special`](crate::Report::special).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn gae(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &GaeColumns<'_>,
        config: &GaeConfig,
    ) -> Result<(Column, Column), GpuError> {
        input.check(batch)?;
        check_gae_config(config)?;
        let slots = batch.slots(self)?;
        let inputs = [&input.rewards, &input.values, &input.bootstrap];
        let [rewards, values, bootstrap] = self.columns(inputs)?;
        let ([advantages, returns], _) =
            self.scan(&GAE, &slots, &[&rewards, &values, &bootstrap], gae_factors(config))?;
        Ok((advantages, returns))
    }

    /// Discounted returns of resident columns: the core's
    /// [`discounted_returns`](tokenwise::advantage::discounted_returns). Special numbers as in [`Self::gae`].
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn discounted_returns(
        &mut self,
        batch: &GpuBatch<'_>,
        rewards: &Input<'_>,
        bootstrap: &Input<'_>,
        config: &ReturnsConfig,
    ) -> Result<Column, GpuError> {
        rewards.check_len("rewards", batch.tokens())?;
        bootstrap.check_len("bootstrap", batch.host().sequences())?;
        check_returns_config(config)?;
        let slots = batch.slots(self)?;
        let [rewards, bootstrap] = self.columns([rewards, bootstrap])?;
        let factors = Factors { gamma: 0.0, decay: config.gamma as f32, across: config.across };
        let ([returns], _) = self.scan(&RETURNS, &slots, &[&rewards, &bootstrap], factors)?;
        Ok(returns)
    }

    /// TD(λ) returns of resident columns: the core's [`td_lambda`](tokenwise::advantage::td_lambda). Special numbers as
    /// in [`Self::gae`].
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn td_lambda(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &GaeColumns<'_>,
        config: &TdLambdaConfig,
    ) -> Result<Column, GpuError> {
        input.check(batch)?;
        check_td_config(config)?;
        let slots = batch.slots(self)?;
        let inputs = [&input.rewards, &input.values, &input.bootstrap];
        let [rewards, values, bootstrap] = self.columns(inputs)?;
        let factors = Factors {
            gamma: (config.gamma * (1.0 - config.lambda)) as f32,
            decay: (config.gamma * config.lambda) as f32,
            across: config.across,
        };
        let ([returns], _) = self.scan(&TD_LAMBDA, &slots, &[&rewards, &values, &bootstrap], factors)?;
        Ok(returns)
    }

    /// The number of each sequence at all of its kept tokens: the core's
    /// [`broadcast`](tokenwise::advantage::broadcast).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if the column does not fit the batch; [`GpuError::Limit`].
    pub fn broadcast(&mut self, batch: &GpuBatch<'_>, values: &Input<'_>) -> Result<Column, GpuError> {
        values.check_len("values", batch.host().sequences())?;
        let values = self.column(values)?;
        let ([out], _) = self.tokens(&BROADCAST, batch, &[Some(&values)], &[])?;
        Ok(out)
    }

    /// Scores minus the mean of the others of their group: the core's
    /// [`leave_one_out`](tokenwise::advantage::leave_one_out).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if the column does not fit the groups; [`GpuError::Limit`].
    pub fn leave_one_out(
        &mut self,
        groups: &GpuGroups<'_>,
        scores: &Input<'_>,
        config: &LeaveOneOutConfig,
    ) -> Result<Column, GpuError> {
        scores.check_len("scores", groups.host().sequences())?;
        let scores = self.column(scores)?;
        let centred = self.centred(groups, &scores)?;
        let given = [Some(&scores), Some(&centred.scores), Some(&centred.rests), Some(&centred.sizes)];
        // must match the shader
        let singleton = match config.singleton {
            Singleton::Zero => 0,
            Singleton::Raw => 1,
            _ => 2,
        };
        let ([out], _) = self.tokens(&LEAVE_ONE_OUT, groups, &given, &[singleton])?;
        Ok(out)
    }

    /// Scores minus the means of their groups. The mean is rounded to `f32`, so the sums of these differences, which
    /// are near 0, still have to be subtracted: exact `score − mean` is `scores − rests / sizes`.
    pub(crate) fn centred(&mut self, groups: &GpuGroups<'_>, scores: &Column) -> Result<Centred, GpuError> {
        let sizes = groups.sizes(self)?;
        let sums = self.fold(Fold::Sum, groups, scores)?;
        let ([centred], _) = self.tokens(&CENTRED, groups, &[Some(scores), Some(&sums), Some(&sizes)], &[])?;
        let rests = self.fold(Fold::Sum, groups, &centred)?;
        Ok(Centred { scores: centred, rests, sizes })
    }

    /// Count, mean and squared distances of the kept tokens: the core's [`Moments::of`].
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] if the column does not fit the batch; [`GpuError::Limit`].
    pub fn moments(&mut self, batch: &GpuBatch<'_>, values: &Input<'_>) -> Result<Pending<Moments>, GpuError> {
        values.check_len("values", batch.tokens())?;
        let values = self.column(values)?;
        let (sums, squares) = self.two_sums(batch, batch.host().kept(), &values)?;
        let (count, sums, squares) = (batch.host().kept() as u64, sums.header, squares.header);
        Ok(Pending::new(move |done| {
            let ([sum], [rest, square]) = (done.sums(sums), done.sums(squares));
            let n = count.max(1) as f64;
            Moments { count, mean: sum / n, m2: (square - rest * rest / n).max(0.0) + sum * 0.0 }
        }))
    }

    /// The records of the sum, and of the distances from the mean of `count` kept entries.
    pub(crate) fn two_sums(
        &mut self,
        over: &dyn Segmented,
        count: usize,
        values: &Column,
    ) -> Result<(Record, Record), GpuError> {
        let sums = self.sum(over, values)?;
        let given = [Some(values), Some(&sums.column)];
        let ([], squares) = self.tokens(&SQUARES, over, &given, &[bits(count as f64)])?;
        Ok((sums, squares))
    }

    /// The record of the sum of the kept entries.
    pub(crate) fn sum(&mut self, over: &dyn Segmented, values: &Column) -> Result<Record, GpuError> {
        let ([], sums) = self.tokens(&SUM, over, &[Some(values)], &[])?;
        Ok(sums)
    }

    /// Shifts and scales to mean 0 and deviation 1 over the kept tokens: the core's
    /// [`whiten`](tokenwise::advantage::whiten).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn whiten(
        &mut self,
        batch: &GpuBatch<'_>,
        values: &Input<'_>,
        config: &WhitenConfig,
    ) -> Result<Column, GpuError> {
        values.check_len("values", batch.tokens())?;
        check_whiten(batch.host(), config)?;
        let values = self.column(values)?;
        let (sums, squares) = self.two_sums(batch, batch.host().kept(), &values)?;
        let count = batch.host().kept() as f64;
        let settings = [
            bits(count),
            bits(if config.spread == Spread::Sample { count - 1.0 } else { count }),
            bits(config.epsilon),
            match config.place {
                EpsilonPlace::InsideRoot => 0,
                EpsilonPlace::Outside => 1,
                _ => 2,
            },
            u32::from(config.center == Center::KeepMean),
            u32::from(config.scale == Scale::Unit),
        ];
        let given = [Some(&values), Some(&sums.column), Some(&squares.column)];
        let ([out], _) = self.tokens(&WHITEN, batch, &given, &settings)?;
        Ok(out)
    }
}
