use super::{
    aggregated::{self, Totals},
    limbs,
    moments::{co_moments, deviations},
    partial::{self, given, key, number, state, Partial as _},
    row::{add_products, add_squares, add_sums, add_twos, again, each_row, Due, One, Two},
    sum::{mean, mean_by},
};
use crate::{
    divergence::{kl_value, KlConfig},
    error::{Error, Result},
    layout::Batch,
    math::{exp, sqrt},
    metric::{
        check_verl, explained_by, ExplainedVarianceConfig, LengthSummary, Lengths, Summary, VerlConfig, VerlInput,
        VerlMetrics,
    },
    real::Real,
    reduce::{fold_row, row_total},
    rollout::{mismatch_of_row, ProbabilityDifference, RolloutInput, RolloutMismatch},
    simd::multiversion,
    statistics::{Divisor, MeanConfig, Moments, Spread},
};

state! {
    /// The sums and extremes behind the keys that verl logs for a batch, not rounded.
    ///
    /// Of the keys of [`verl_metrics`](crate::metric::verl_metrics) it has those that are about tokens and sequences:
    /// `critic/{score, rewards, advantages, returns, values}`, `critic/vf_explained_var`, `critic/vpred_mean`,
    /// `response_length`, `prompt_length`, `actor/{entropy, entropy_loss, kl_loss}` aggregated by any mode but that of
    /// prompts (by the counts of the state, whatever the config says),
    /// `training/rollout_probs_diff`, and those of [`rollout_mismatch`](crate::rollout::rollout_mismatch). What the
    /// losses returned, importance weights, rejection and variance proxies are not among them.
    ExactVerl, kind: 7,
    pieces: [
        Count TOKENS, Count SAMPLED, Count SEQUENCES, Count KEPT_SEQUENCES, Count SAMPLED_SEQUENCES,
        Count HAS_SCORES, Count HAS_REWARDS, Count HAS_ADVANTAGES, Count HAS_RETURNS, Count HAS_VALUES, Count HAS_BOTH,
        Count HAS_PREDICTIONS, Count HAS_ENTROPIES, Count HAS_OLD_ENTROPIES, Count HAS_KL, Count HAS_ROLLOUT,
        Count HAS_RESPONSES, Count HAS_PROMPTS,
        Count ANSWERED, Count RESPONSE_TOKENS, Count RESPONSES_CLIPPED, Count ANSWERED_CLIPPED,
        Count PROMPT_TOKENS, Count PROMPTS_CLIPPED,
        Sum SCORES, Sum REWARDS, Sum ADVANTAGES, Sum PREDICTIONS, Sum ENTROPIES, Sum OLD_ENTROPIES, Sum KL,
        Sum RETURNS, Sum VALUES, Products RETURNS_RETURNS, Products VALUES_VALUES, Products RETURNS_VALUES,
        Sum P, Sum Q, Products PP, Products QQ, Products PQ, Sum GAP, Products GAP_GAP,
        Sum DELTA, Sum K3, Sum SQUARE,
        Sum PPL, Sum LOG_PPL, Sum ROLLOUT_PPL, Sum ROLLOUT_LOG_PPL, Sum DIFFERENCE, Sum ABS_DIFFERENCE, Sum PPL_RATIO,
        Sum CHI2,
    ],
    peaks: 19
}

/// Where the largest and the negated smallest number of each summary are among the peaks.
mod peak {
    pub(super) const SCORES: usize = 0;
    pub(super) const REWARDS: usize = 2;
    pub(super) const ADVANTAGES: usize = 4;
    pub(super) const RETURNS: usize = 6;
    pub(super) const VALUES: usize = 8;
    pub(super) const RESPONSES: usize = 10;
    pub(super) const ANSWERED: usize = 12;
    pub(super) const PROMPTS: usize = 14;
    pub(super) const DIFFERENCE: usize = 16;
    pub(super) const GAP: usize = 18;
}

impl ExactVerl {
    /// Adds a batch. All batches of a state have the same inputs and the same config.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if a slice does not fit `batch`; [`Error::Config`] if a coefficient is not finite, or if
    /// entropies are aggregated by prompts. An empty mask is not an error.
    pub fn update<R: Real>(
        &mut self,
        batch: &Batch<'_>,
        input: &VerlInput<'_, R>,
        config: &VerlConfig<'_>,
    ) -> Result<()> {
        check_verl(batch, input, config)?;
        aggregated::check(&config.aggregate)?;
        let sampled = match input.mask_before_rejection {
            Some(mask) => Batch::new(batch.layout(), mask)?,
            None => *batch,
        };
        self.add_count(Self::TOKENS, batch.kept());
        self.add_count(Self::SAMPLED, sampled.kept());
        self.add_count(Self::SEQUENCES, batch.sequences());
        self.add_count(Self::KEPT_SEQUENCES, batch.kept_sequences());
        self.add_count(Self::SAMPLED_SEQUENCES, sampled.kept_sequences());
        self.add_lengths(batch, input);
        for (has, sum, first, slice) in [
            (Self::HAS_ADVANTAGES, Self::ADVANTAGES, Some(peak::ADVANTAGES), input.advantages),
            (Self::HAS_RETURNS, Self::RETURNS, Some(peak::RETURNS), input.returns),
            (Self::HAS_VALUES, Self::VALUES, Some(peak::VALUES), input.values),
            (Self::HAS_PREDICTIONS, Self::PREDICTIONS, None, input.predictions),
        ] {
            let Some(slice) = slice else { continue };
            self.add_count(has, batch.sequences());
            // returns and values are added with their products, if both are there
            let paired =
                sum == Self::RETURNS && input.values.is_some() || sum == Self::VALUES && input.returns.is_some();
            if !paired {
                add_sums(batch, slice, self.piece_mut(sum));
            }
            if let Some(first) = first {
                let kept = slice.iter().zip(batch.mask().as_slice()).filter(|(_, &keep)| keep);
                kept.for_each(|(x, _)| self.peak(first, x.widen()));
            }
        }
        if let (Some(returns), Some(values)) = (input.returns, input.values) {
            self.add_count(Self::HAS_BOTH, batch.sequences());
            add_twos(batch, returns, values, self.pieces_mut(Self::RETURNS));
        }
        if let Some(entropies) = input.entropies {
            self.add_count(Self::HAS_ENTROPIES, batch.sequences());
            aggregated::add(batch, entropies, &config.aggregate, self.piece_mut(Self::ENTROPIES));
        }
        if let Some(entropies) = input.old_entropies {
            self.add_count(Self::HAS_OLD_ENTROPIES, batch.sequences());
            aggregated::add(&sampled, entropies, &config.aggregate, self.piece_mut(Self::OLD_ENTROPIES));
        }
        if let (Some(policy), Some(reference)) = (input.log_probs, input.ref_log_probs) {
            self.add_count(Self::HAS_KL, batch.sequences());
            add_kl(batch, [policy, reference], config, self.piece_mut(Self::KL));
        }
        if let (Some(old_log_probs), Some(rollout_log_probs)) = (input.old_log_probs, input.rollout_log_probs) {
            self.add_count(Self::HAS_ROLLOUT, batch.sequences());
            self.add_rollout(&sampled, RolloutInput { old_log_probs, rollout_log_probs }, config.divisor);
        }
        self.canonical();
        Ok(())
    }

    fn add_lengths<R: Real>(&mut self, batch: &Batch<'_>, input: &VerlInput<'_, R>) {
        if let Some(Lengths { tokens, limit }) = input.response_lengths {
            self.add_count(Self::HAS_RESPONSES, batch.sequences());
            for &length in tokens {
                let (answered, clipped) = (length > 0, length == limit);
                self.add_count(Self::RESPONSE_TOKENS, length as usize);
                self.add_count(Self::ANSWERED, usize::from(answered));
                self.add_count(Self::RESPONSES_CLIPPED, usize::from(clipped));
                self.add_count(Self::ANSWERED_CLIPPED, usize::from(answered && clipped));
                self.peak(peak::RESPONSES, f64::from(length));
                if answered {
                    self.peak(peak::ANSWERED, f64::from(length));
                }
            }
            for (has, sum, first, slice) in [
                (Self::HAS_SCORES, Self::SCORES, peak::SCORES, input.scores),
                (Self::HAS_REWARDS, Self::REWARDS, peak::REWARDS, input.rewards),
            ] {
                let Some(slice) = slice else { continue };
                self.add_count(has, batch.sequences());
                // an aborted response has no score
                for (row, _) in batch.rows().zip(tokens).filter(|(_, &length)| length > 0) {
                    let total = row_total(&row, slice);
                    limbs::add(self.piece_mut(sum), 0, total, 1);
                    self.peak(first, total);
                }
            }
        }
        if let Some(Lengths { tokens, limit }) = input.prompt_lengths {
            self.add_count(Self::HAS_PROMPTS, batch.sequences());
            for &length in tokens {
                self.add_count(Self::PROMPT_TOKENS, length as usize);
                self.add_count(Self::PROMPTS_CLIPPED, usize::from(length == limit));
                self.peak(peak::PROMPTS, f64::from(length));
            }
        }
    }

    /// Like `rollout_mismatch` and `probability_difference`.
    fn add_rollout<R: Real>(&mut self, batch: &Batch<'_>, input: RolloutInput<'_, R>, divisor: Divisor) {
        let inputs = [input.old_log_probs, input.rollout_log_probs];
        let mut peaks = self.peaks;
        let mut pieces: [&mut [i64]; 18] = self.pieces_mut(Self::P);
        let mut due = Due::default();
        each_row::<R, _>(
            batch,
            |part, report| {
                let (old_log_probs, rollout_log_probs) = (part.of(inputs[0]), part.of(inputs[1]));
                sampled_rows(&part.batch, RolloutInput { old_log_probs, rollout_log_probs }, divisor, report);
            },
            |row, found: Sampled| {
                let [p, q, pp, qq, pq, gaps, gaps_squared, others @ ..] = again(&mut pieces);
                found.probabilities.add_to([p, q, pp, qq, pq], |limbs| {
                    add_products(row, inputs, |pair| pair.map(exp), limbs);
                });
                found.gap.add_to([gaps, gaps_squared], |sums| add_squares(row, inputs, gap, sums));
                let terms = found.tokens.iter().chain(&found.sequence);
                others.into_iter().zip(terms).for_each(|(sum, &term)| limbs::add(sum, 0, term, 1));
                due.carry(again(&mut pieces));
                peaks[peak::GAP] = peaks[peak::GAP].max(found.largest_gap);
                let difference = found.sequence[4];
                partial::peak(&mut peaks, peak::DIFFERENCE, difference);
            },
        );
        self.peaks = peaks;
    }

    fn peak(&mut self, first: usize, x: f64) {
        partial::peak(&mut self.peaks, first, x);
    }

    fn summary(&self, mean: f64, first: usize) -> Summary {
        Summary { mean, max: number(self.peaks[first]), min: -number(self.peaks[first + 1]) }
    }

    /// Whether every batch had an input.
    fn has(&self, what: &'static str, index: usize) -> Result<bool> {
        given(what, self.count(index), self.count(Self::SEQUENCES))
    }

    /// The metrics of all batches together, as [`verl_metrics`](crate::metric::verl_metrics) reports them for one.
    ///
    /// # Errors
    ///
    /// [`Error::Length`] if some batches had an input and others had not; [`Error::EmptyMask`] with the sampler's
    /// log-probabilities and no kept token.
    pub fn metrics(&self, config: &VerlConfig<'_>) -> Result<VerlMetrics<'static>> {
        let tokens = self.count(Self::TOKENS);
        let sequences = self.count(Self::SEQUENCES);
        let answered = self.count(Self::ANSWERED);
        let of = |sum: usize, count: u64| mean(self.piece(sum), count);
        let totals = Totals { tokens, sequences, kept_sequences: self.count(Self::KEPT_SEQUENCES) };
        let aggregate = |sum: usize| aggregated::value(self.piece(sum), &config.aggregate, totals);
        let by_divisor = |sum, count| mean_by(self.piece(sum), count, &MeanConfig { divisor: config.divisor });
        let share = |count: u64, all: u64| count as f64 / all as f64;
        let mut found = VerlMetrics::default();
        let responses = self.has("response_lengths", Self::HAS_RESPONSES)?;
        if responses {
            let length = |first, total: usize, all, clipped: usize| LengthSummary {
                tokens: self.summary(share(self.count(total), all), first),
                clip_ratio: share(self.count(clipped), all),
            };
            let total = Self::RESPONSE_TOKENS;
            found.response_length = Some(length(peak::RESPONSES, total, sequences, Self::RESPONSES_CLIPPED));
            found.response_length_non_aborted = Some(length(peak::ANSWERED, total, answered, Self::ANSWERED_CLIPPED));
            found.aborted_ratio = Some(share(sequences - answered, sequences));
        }
        if self.has("prompt_lengths", Self::HAS_PROMPTS)? {
            let total = self.count(Self::PROMPT_TOKENS);
            found.prompt_length = Some(LengthSummary {
                tokens: self.summary(share(total, sequences), peak::PROMPTS),
                clip_ratio: share(self.count(Self::PROMPTS_CLIPPED), sequences),
            });
            found.total_num_tokens = responses.then(|| (total + self.count(Self::RESPONSE_TOKENS)) as f64);
        }
        if self.has("scores", Self::HAS_SCORES)? {
            found.scores = Some(self.summary(of(Self::SCORES, answered), peak::SCORES));
        }
        if self.has("rewards", Self::HAS_REWARDS)? {
            found.rewards = Some(self.summary(of(Self::REWARDS, answered), peak::REWARDS));
        }
        if self.has("advantages", Self::HAS_ADVANTAGES)? {
            found.advantages = Some(self.summary(of(Self::ADVANTAGES, tokens), peak::ADVANTAGES));
        }
        if self.has("returns", Self::HAS_RETURNS)? {
            found.returns = Some(self.summary(of(Self::RETURNS, tokens), peak::RETURNS));
        }
        if self.has("values", Self::HAS_VALUES)? {
            found.values = Some(self.summary(of(Self::VALUES, tokens), peak::VALUES));
        }
        if self.has("values", Self::HAS_BOTH)? {
            let joint = self.joint(tokens, Self::RETURNS);
            found.explained_variance =
                Some(explained_by(&joint, &ExplainedVarianceConfig::default()).unwrap_or(f64::NAN));
        }
        if self.has("predictions", Self::HAS_PREDICTIONS)? {
            found.prediction_mean = Some(by_divisor(Self::PREDICTIONS, tokens));
        }
        if self.has("entropies", Self::HAS_ENTROPIES)? {
            found.entropy_loss = Some(aggregate(Self::ENTROPIES));
        }
        if self.has("old_entropies", Self::HAS_OLD_ENTROPIES)? {
            let (tokens, kept_sequences) = (self.count(Self::SAMPLED), self.count(Self::SAMPLED_SEQUENCES));
            let totals = Totals { tokens, sequences, kept_sequences };
            found.old_entropy = Some(aggregated::value(self.piece(Self::OLD_ENTROPIES), &config.aggregate, totals));
        }
        if self.has("ref_log_probs", Self::HAS_KL)? {
            found.kl_loss = Some(aggregate(Self::KL));
            found.kl_coefficient = Some(config.kl_coefficient);
        }
        if self.has("rollout_log_probs", Self::HAS_ROLLOUT)? {
            let sampled = self.count(Self::SAMPLED);
            if sampled == 0 {
                return Err(Error::EmptyMask);
            }
            found.probability_difference = Some(self.probability_difference(sampled));
            found.mismatch = Some(self.mismatch(sampled, sequences, config.divisor));
        }
        Ok(found)
    }

    /// Two sums and the three sums of products behind them.
    fn joint(&self, count: u64, first: usize) -> crate::CoMoments {
        let [x, y, xx, yy, xy] = [0, 1, 2, 3, 4].map(|index| self.piece(first + index));
        co_moments(count, [x, y], [xx, yy, xy])
    }

    fn probability_difference(&self, count: u64) -> ProbabilityDifference {
        let gap = self.piece(Self::GAP);
        let gaps =
            Moments { count, mean: mean(gap, count), m2: deviations(count, self.piece(Self::GAP_GAP), gap, gap) };
        ProbabilityDifference {
            max: number(self.peaks[peak::GAP]),
            mean: gaps.mean,
            std: gaps.variance(Spread::Sample, Divisor::Count).map_or(f64::NAN, sqrt),
            pearson: self.joint(count, Self::P).correlation().unwrap_or(f64::NAN),
        }
    }

    fn mismatch(&self, tokens: u64, sequences: u64, divisor: Divisor) -> RolloutMismatch {
        let [delta, k3, square] = [Self::DELTA, Self::K3, Self::SQUARE]
            .map(|index| mean_by(self.piece(index), tokens, &MeanConfig { divisor }));
        let of = |index| mean(self.piece(index), sequences);
        RolloutMismatch {
            training_ppl: of(Self::PPL),
            training_log_ppl: of(Self::LOG_PPL),
            kl: -delta,
            k3_kl: k3,
            rollout_ppl: of(Self::ROLLOUT_PPL),
            rollout_log_ppl: of(Self::ROLLOUT_LOG_PPL),
            log_ppl_diff: of(Self::DIFFERENCE),
            log_ppl_abs_diff: of(Self::ABS_DIFFERENCE),
            log_ppl_diff_max: number(self.peaks[peak::DIFFERENCE]),
            log_ppl_diff_min: -number(self.peaks[peak::DIFFERENCE + 1]),
            ppl_ratio: of(Self::PPL_RATIO),
            chi2_token: square - 1.0,
            chi2_seq: of(Self::CHI2) - 1.0,
        }
    }
}

fn add_kl<R: Real>(batch: &Batch<'_>, inputs: [&[R]; 2], config: &VerlConfig<'_>, sum: &mut [i64]) {
    let mut due = Due::default();
    each_row::<R, _>(
        batch,
        |part, report| kl_rows(&part.batch, inputs.map(|input| part.of(input)), &config.kl, report),
        |row, estimate: f64| {
            limbs::add(sum, 0, estimate / aggregated::share(&config.aggregate, row.kept()), 1);
            due.carry([&mut *sum]);
        },
    );
}

#[multiversion]
fn kl_rows<R: Real>(batch: &Batch<'_>, inputs: [&[R]; 2], config: &KlConfig, report: &mut dyn FnMut(f64)) {
    for row in batch.token_rows() {
        let [sum] = fold_row(&row, inputs, [], |[p, q]| ([], [kl_value(config, p - q).widen()]));
        report(sum);
    }
}

/// What trainer and sampler say about a sequence.
#[derive(Clone, Copy, Default)]
struct Sampled {
    probabilities: Two,
    gap: One,
    largest_gap: i64,
    tokens: [f64; 3],
    sequence: [f64; 8],
}

#[multiversion]
fn sampled_rows<R: Real>(
    batch: &Batch<'_>,
    input: RolloutInput<'_, R>,
    divisor: Divisor,
    report: &mut dyn FnMut(Sampled),
) {
    let inputs = [input.old_log_probs, input.rollout_log_probs];
    for row in batch.rows() {
        let (tokens, sequence) = mismatch_of_row(&row, input, divisor);
        let mut largest_gap = i64::MIN;
        let pairs = row.of(inputs[0]).iter().zip(row.of(inputs[1]));
        for ((&old, &rollout), _) in pairs.zip(row.keep).filter(|(_, &keep)| keep) {
            largest_gap = largest_gap.max(key(gap([old, rollout]).widen()));
        }
        report(Sampled {
            probabilities: Two::of(&row, inputs, |pair| pair.map(exp)),
            gap: One::of(&row, inputs, gap),
            largest_gap,
            tokens,
            sequence,
        });
    }
}

/// How far the two probabilities of a token are apart.
#[inline(always)]
fn gap<R: Real>([old, rollout]: [R; 2]) -> R {
    (exp(old) - exp(rollout)).abs()
}
