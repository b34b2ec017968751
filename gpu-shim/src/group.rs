//! **Stage 4 of 7 — advantage.** Scores compared within the samples of their prompt.

use tokenwise::{
    advantage::{
        self, check_whiten, GdpoConfig, GdpoInput, GpgConfig, GroupConfig, GroupScale, LengthWeightedConfig,
        MaxRlConfig, MeanDivisor, ReinforcePlusPlusBaselineConfig, Singleton,
    },
    Error, Groups, Moments, Spread,
};

use crate::{
    advantage::CENTRED,
    batch::{GpuBatch, GpuGroups},
    call::{batch, column, real, runners, Answer, Request, Runner},
    column::{Column, Input},
    credit::{MINUS_BASELINE, MULTIPLY},
    error::GpuError,
    fold::Fold,
    metric::SPREAD,
    recording::Recording,
    token::{bits, kernel, sequence, token, whole, Setting, Term, TokenKernel},
    trace::ADD,
};

const RELATIVE: TokenKernel = kernel(
    "group/relative",
    include_str!("../shaders/group/relative.wgsl"),
    &[token("scores"), token("centred"), sequence("squares"), sequence("sizes"), whole("all")],
    &["out"],
    &[],
    &[
        Setting::U32("scale"),
        Setting::U32("singleton"),
        Setting::F32("degrees"),
        Setting::F32("epsilon"),
        Setting::F32("count"),
    ],
);

const CENTRED_OR_ALONE: TokenKernel = kernel(
    "group/centred_or_alone",
    include_str!("../shaders/group/centred_or_alone.wgsl"),
    &[token("scores"), token("centred"), sequence("sizes")],
    &["out"],
    &[],
    &[Setting::U32("singleton")],
);

const SCORED: TokenKernel = kernel(
    "group/scored",
    include_str!("../shaders/group/scored.wgsl"),
    &[token("scores")],
    &[],
    &[Term::Count("scored")],
    &[],
);

const GPG: TokenKernel = kernel(
    "group/gpg",
    include_str!("../shaders/group/gpg.wgsl"),
    &[token("centred"), whole("counts")],
    &["out"],
    &[],
    &[Setting::F32("count"), Setting::F32("norm")],
);

const MAX_RL: TokenKernel = kernel(
    "group/max_rl",
    include_str!("../shaders/group/max_rl.wgsl"),
    &[token("scores"), token("centred"), sequence("sums"), sequence("sizes")],
    &["out"],
    &[],
    &[Setting::U32("singleton"), Setting::U32("if_positive"), Setting::F32("epsilon")],
);

const LENGTH_WEIGHTED: TokenKernel = kernel(
    "group/length_weighted",
    include_str!("../shaders/group/length_weighted.wgsl"),
    &[token("scores"), sequence("sums"), sequence("lengths"), sequence("sizes")],
    &["out"],
    &[],
    &[Setting::U32("singleton")],
);

/// Must match the shaders.
fn singleton_word(singleton: Singleton) -> u32 {
    match singleton {
        Singleton::Zero => 0,
        Singleton::Raw => 1,
        _ => 2,
    }
}

/// One group of two sequences, on which the core checks a config.
fn two_sequences() -> Result<Groups<'static>, GpuError> {
    Ok(Groups::contiguous(&[2])?)
}

/// Scores without the means of their groups.
#[derive(Debug)]
struct Scores {
    /// Per sequence; 0 where all scores of the group are equal.
    centred: Column,
    /// The sum of the squares, per group.
    squares: Column,
    /// Sequences per group.
    sizes: Column,
}

impl Recording<'_> {
    /// The smallest score of the group is subtracted first, so that equal scores are exactly equal to their mean.
    fn scores(&mut self, groups: &GpuGroups<'_>, scores: &Column) -> Result<Scores, GpuError> {
        let sizes = groups.sizes(self)?;
        let least = self.fold(Fold::Min, groups, scores)?;
        let ([shifted], _) = self.tokens(&MINUS_BASELINE, groups, &[Some(scores), Some(&least)], &[])?;
        let sums = self.fold(Fold::Sum, groups, &shifted)?;
        let ([near], _) = self.tokens(&CENTRED, groups, &[Some(&shifted), Some(&sums), Some(&sizes)], &[])?;
        let rests = self.fold(Fold::Sum, groups, &near)?;
        let given = [Some(&near), Some(&rests), Some(&sizes)];
        let ([centred, square], _) = self.tokens(&SPREAD, groups, &given, &[])?;
        let squares = self.fold(Fold::Sum, groups, &square)?;
        Ok(Scores { centred, squares, sizes })
    }

    /// Scores in units of the deviation of their group: the core's [`group_relative`](advantage::group_relative).
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn group_relative(
        &mut self,
        groups: &GpuGroups<'_>,
        scores: &Input<'_>,
        config: &GroupConfig,
    ) -> Result<Column, GpuError> {
        scores.check_len("scores", groups.host().sequences())?;
        check_group(config)?;
        let scores = self.column(scores)?;
        self.relative(groups, &scores, config)
    }

    fn relative(&mut self, groups: &GpuGroups<'_>, scores: &Column, config: &GroupConfig) -> Result<Column, GpuError> {
        let of = self.scores(groups, scores)?;
        let count = groups.host().sequences();
        // must match the shader
        let scale = match config.scale {
            GroupScale::StandardDeviation => 0,
            GroupScale::Unit => 1,
            _ => 2,
        };
        let all = match scale {
            2 => self.two_sums(groups, count, scores)?.1.column,
            _ => self.scratch(1)?,
        };
        let degrees = if config.spread == Spread::Sample { 1.0 } else { 0.0 };
        let settings =
            [scale, singleton_word(config.singleton), bits(degrees), bits(config.epsilon), bits(count as f64)];
        let given = [Some(scores), Some(&of.centred), Some(&of.squares), Some(&of.sizes), Some(&all)];
        let ([out], _) = self.tokens(&RELATIVE, groups, &given, &settings)?;
        Ok(out)
    }

    /// Scores minus the mean of their group.
    fn centred_or_alone(
        &mut self,
        groups: &GpuGroups<'_>,
        scores: &Column,
        singleton: Singleton,
    ) -> Result<Column, GpuError> {
        let of = self.scores(groups, scores)?;
        let given = [Some(scores), Some(&of.centred), Some(&of.sizes)];
        let ([out], _) = self.tokens(&CENTRED_OR_ALONE, groups, &given, &[singleton_word(singleton)])?;
        Ok(out)
    }

    /// Scores minus the mean of their group, scaled by the share of scores that are not 0: the core's
    /// [`gpg_advantage`](advantage::gpg_advantage).
    ///
    /// # Errors
    ///
    /// As [`Self::group_relative`].
    pub fn gpg_advantage(
        &mut self,
        groups: &GpuGroups<'_>,
        scores: &Input<'_>,
        config: &GpgConfig,
    ) -> Result<Column, GpuError> {
        scores.check_len("scores", groups.host().sequences())?;
        let mut scratch = [Moments::default()];
        advantage::gpg_advantage(&two_sequences()?, &[0.0_f32; 2], config, &mut scratch, &mut [0.0; 2])?;
        let scores = self.column(scores)?;
        let centred = self.centred_or_alone(groups, &scores, config.singleton)?;
        let ([], scored) = self.tokens(&SCORED, groups, &[Some(&scores)], &[])?;
        let settings = [bits(groups.host().sequences() as f64), bits(config.norm)];
        let ([out], _) = self.tokens(&GPG, groups, &[Some(&centred), Some(&scored.column)], &settings)?;
        Ok(out)
    }

    /// Scores minus the mean of their group, divided by that mean: the core's [`max_rl`](advantage::max_rl).
    ///
    /// # Errors
    ///
    /// As [`Self::group_relative`].
    pub fn max_rl(
        &mut self,
        groups: &GpuGroups<'_>,
        scores: &Input<'_>,
        config: &MaxRlConfig,
    ) -> Result<Column, GpuError> {
        scores.check_len("scores", groups.host().sequences())?;
        let mut scratch = [Moments::default()];
        advantage::max_rl(&two_sequences()?, &[0.0_f32; 2], config, &mut scratch, &mut [0.0; 2])?;
        let scores = self.column(scores)?;
        let of = self.scores(groups, &scores)?;
        let sums = self.fold(Fold::Sum, groups, &scores)?;
        let if_positive = config.divisor == MeanDivisor::IfPositive;
        let epsilon = if if_positive { 0.0 } else { config.epsilon };
        let settings = [singleton_word(config.singleton), u32::from(if_positive), bits(epsilon)];
        let given = [Some(&scores), Some(&of.centred), Some(&sums), Some(&of.sizes)];
        let ([out], _) = self.tokens(&MAX_RL, groups, &given, &settings)?;
        Ok(out)
    }

    /// Scores minus the mean of their group, weighted by length: the core's
    /// [`length_weighted_baseline`](advantage::length_weighted_baseline).
    ///
    /// # Errors
    ///
    /// As [`Self::group_relative`].
    pub fn length_weighted_baseline(
        &mut self,
        batch: &GpuBatch<'_>,
        groups: &GpuGroups<'_>,
        scores: &Input<'_>,
        config: &LengthWeightedConfig,
    ) -> Result<Column, GpuError> {
        check_sequences(batch, groups)?;
        scores.check_len("scores", groups.host().sequences())?;
        let scores = self.column(scores)?;
        let (sizes, lengths) = (groups.sizes(self)?, batch.counts(self)?);
        let ([weighted], _) = self.tokens(&MULTIPLY, groups, &[Some(&scores), Some(&lengths)], &[])?;
        let sums = self.fold(Fold::Sum, groups, &weighted)?;
        let lengths = self.fold(Fold::Sum, groups, &lengths)?;
        let given = [Some(&scores), Some(&sums), Some(&lengths), Some(&sizes)];
        let ([out], _) = self.tokens(&LENGTH_WEIGHTED, groups, &given, &[singleton_word(config.singleton)])?;
        Ok(out)
    }

    /// Several rewards, each relative to its group, weighted, broadcast and whitened: the core's
    /// [`gdpo`](advantage::gdpo). `sources` are one column of scores per weight.
    ///
    /// # Errors
    ///
    /// As [`Self::group_relative`].
    pub fn gdpo(
        &mut self,
        batch: &GpuBatch<'_>,
        groups: &GpuGroups<'_>,
        sources: &[Input<'_>],
        weights: &[f64],
        config: &GdpoConfig,
    ) -> Result<Column, GpuError> {
        check_sequences(batch, groups)?;
        check_whiten(batch.host(), &config.whiten)?;
        if sources.len() != weights.len() {
            return Err(Error::Length { what: "sources", expected: weights.len(), got: sources.len() }.into());
        }
        for source in sources {
            source.check_len("sources", groups.host().sequences())?;
        }
        let two = GdpoInput { sources: &vec![0.0_f32; 2 * weights.len()], weights };
        let mut scratch = [Moments::default()];
        advantage::decoupled_scores(&two_sequences()?, two, &config.group, &mut scratch, &mut [0.0; 2])?;
        let mut scores = None;
        for (source, &weight) in sources.iter().zip(weights) {
            let source = self.column(source)?;
            let relative = self.relative(groups, &source, &config.group)?;
            let ([sum], _) = self.tokens(&ADD, groups, &[scores.as_ref(), Some(&relative)], &[bits(weight)])?;
            scores = Some(sum);
        }
        let scores = match scores {
            Some(scores) => scores,
            None => self.upload(&vec![0.0; groups.host().sequences()])?,
        };
        let advantages = self.broadcast(batch, &scores.into())?;
        self.whiten(batch, &advantages.into(), &config.whiten)
    }

    /// Scores minus the mean of their group, broadcast and whitened: the core's
    /// [`reinforce_plus_plus_baseline`](advantage::reinforce_plus_plus_baseline).
    ///
    /// # Errors
    ///
    /// As [`Self::group_relative`].
    pub fn reinforce_plus_plus_baseline(
        &mut self,
        batch: &GpuBatch<'_>,
        groups: &GpuGroups<'_>,
        scores: &Input<'_>,
        config: &ReinforcePlusPlusBaselineConfig,
    ) -> Result<Column, GpuError> {
        check_sequences(batch, groups)?;
        scores.check_len("scores", batch.host().sequences())?;
        check_whiten(batch.host(), &config.whiten)?;
        let scores = self.column(scores)?;
        let centred = self.centred_or_alone(groups, &scores, config.singleton)?;
        let advantages = self.broadcast(batch, &centred.into())?;
        self.whiten(batch, &advantages.into(), &config.whiten)
    }
}

fn check_group(config: &GroupConfig) -> Result<(), GpuError> {
    let mut scratch = [Moments::default()];
    Ok(advantage::group_relative(&two_sequences()?, &[0.0_f32; 2], config, &mut scratch, &mut [0.0; 2])?)
}

/// The core's error unless the groups are those of the batch.
fn check_sequences(batch: &GpuBatch<'_>, groups: &GpuGroups<'_>) -> Result<(), GpuError> {
    let (expected, got) = (batch.host().sequences(), groups.host().sequences());
    match expected == got {
        true => Ok(()),
        false => Err(Error::Length { what: "groups", expected, got }.into()),
    }
}

/// The calls by name.
pub(crate) const RUNNERS: &[Runner] =
    runners![group_relative, gpg_advantage, max_rl, length_weighted_baseline, gdpo, reinforce_plus_plus_baseline];

fn groups<'a>(call: &Request<'_, 'a>) -> Result<GpuGroups<'a>, GpuError> {
    Ok(GpuGroups::new(call.groups()?))
}

fn group_relative(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.group_relative(&groups(call)?, &real(call, "scores")?, &call.config()?)?))
}

fn gpg_advantage(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.gpg_advantage(&groups(call)?, &real(call, "scores")?, &call.config()?)?))
}

fn max_rl(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    Ok(column("out", recording.max_rl(&groups(call)?, &real(call, "scores")?, &call.config()?)?))
}

fn length_weighted_baseline(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, groups, scores) = (batch(call)?, groups(call)?, real(call, "scores")?);
    Ok(column("out", recording.length_weighted_baseline(&batch, &groups, &scores, &call.config()?)?))
}

fn gdpo(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, groups, weights) = (batch(call)?, groups(call)?, call.inputs.double("weights")?);
    if call.resident("sources").is_some() {
        return Err(GpuError::Unsupported("the sources of gdpo are read from the host"));
    }
    let sources = call.real("sources")?.chunks(groups.host().sequences().max(1));
    let sources: Vec<_> = sources.map(Input::Host).collect();
    Ok(column("advantages", recording.gdpo(&batch, &groups, &sources, weights, &call.config()?)?))
}

fn reinforce_plus_plus_baseline(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let (batch, groups, scores) = (batch(call)?, groups(call)?, real(call, "scores")?);
    let out = recording.reinforce_plus_plus_baseline(&batch, &groups, &scores, &call.config()?)?;
    Ok(column("advantages", out))
}
