//! Those of several entries of the vocabulary, or all.

use tokenwise::{loss::*, policy::*, Result};
use tokenwise_tests::{
    formulas::Formula,
    generate::{Column, Flat, Number, Random},
    naive::{
        distill_rows::{self as naive, Rows},
        policy as naive_policy,
    },
};

use super::{entries, entries_a_token, ids};
use crate::{
    case::{tokens, unwritten, Case, Outcome},
    loss::Weighing,
    policy::temperature,
};

pub(crate) const BETAS: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

pub(crate) struct TopkLogProbs;
impl Case for TopkLogProbs {
    const FORMULA: Formula = Formula::TopkLogProbs;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let (k, ids) = (entries_a_token(flat), ids(flat, 0));
        let mut out = unwritten(ids.len());
        let input = TopKLogitsInput { logits: flat.column(Column::Logits), vocab: flat.vocab, tokens: &ids, k };
        topk_log_probs(&flat.batch(), input, &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let (k, ids, logits) = (entries_a_token(flat), ids(flat, 0), flat.column(Column::Logits));
        Outcome::tokens([naive_policy::topk_log_probs(tokens(flat), logits, flat.vocab, (&ids, k), temperature)])
    }
}

pub(crate) struct TopkLogitsGradient;
impl Case for TopkLogitsGradient {
    const FORMULA: Formula = Formula::TopkLogitsGradient;
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        let (k, ids, g) = (entries_a_token(flat), ids(flat, 0), entries(flat, Column::RefLogits));
        let logits = flat.column(Column::Logits);
        let mut out = unwritten(logits.len());
        let input = TopKGradientInput { logits, vocab: flat.vocab, tokens: &ids, k, grad_log_probs: &g };
        topk_logits_gradient(&flat.batch(), input, &PolicyConfig { temperature }, &mut out)?;
        Ok(Outcome::tokens([out]))
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let (k, ids, g) = (entries_a_token(flat), ids(flat, 0), entries(flat, Column::RefLogits));
        let logits = flat.column(Column::Logits);
        let grad = naive_policy::topk_logits_gradient(tokens(flat), logits, flat.vocab, (&ids, k), &g, temperature);
        Outcome::tokens([grad])
    }
}

pub(crate) struct ForwardKlTopk;
impl ForwardKlTopk {
    fn outcome<R: Number>(result: ForwardKlTopK, losses: Vec<R>, grad: Vec<R>) -> Outcome<R> {
        let overlap = result.overlap.map_or([-1.0; 2], |overlap| [overlap.ratio, overlap.token_advantage]);
        let numbers = [result.loss, result.loss_min, result.loss_max];
        Outcome::tokens([losses, grad])
            .and([numbers.as_slice(), &result.student_mass, &result.teacher_mass, &overlap].concat())
    }
}
impl Case for ForwardKlTopk {
    const FORMULA: Formula = Formula::ForwardKlTopk;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, ForwardKlTopKConfig<'static>, Option<u32>);
    fn config(random: &mut Random) -> Self::Config {
        let config = ForwardKlTopKConfig {
            // off the grid of the entries, where there is no slope
            log_prob_floor: random.pick(&[Some(-10.005), None, Some(-2.005)]),
            max_loss: random.pick(&[Some(10.0), None, Some(0.5)]),
            aggregate: Aggregate::default(),
        };
        (Weighing::new(random), config, random.pick(&[None, Some(0), Some(2), Some(40)]))
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config, step): Self::Config) -> Result<Outcome<R>> {
        let (s, t) = (entries(flat, Column::Logits), entries(flat, Column::RefLogits));
        let (teacher, student) = (ids(flat, 0), ids(flat, step.unwrap_or(0)));
        let (mut losses, mut grad) = (unwritten(flat.tokens()), unwritten(s.len()));
        let input = ForwardKlTopKInput {
            log_probs: &s,
            teacher_log_probs: &t,
            k: entries_a_token(flat),
            ids: step.map(|_| TopKIds { teacher: &teacher, student: &student }),
        };
        let result = weighing.with(flat, |aggregate| {
            let output = ForwardKlTopKOutput { losses: &mut losses, grad: &mut grad };
            forward_kl_topk(&flat.batch(), input, &ForwardKlTopKConfig { aggregate, ..config }, output)
        })?;
        Ok(Self::outcome(result, losses, grad))
    }
    fn naive(flat: &Flat<f64>, (weighing, config, step): Self::Config) -> Outcome<f64> {
        let (s, t) = (entries(flat, Column::Logits), entries(flat, Column::RefLogits));
        let (teacher, student) = (ids(flat, 0), ids(flat, step.unwrap_or(0)));
        let rows = Rows { student: &s, teacher: &t, k: entries_a_token(flat) };
        let (result, losses, grad) = weighing.with(flat, |aggregate| {
            let config = ForwardKlTopKConfig { aggregate, ..config };
            naive::forward_kl_topk(tokens(flat), rows, step.map(|_| [&teacher[..], &student]), &config)
        });
        Self::outcome(result, losses, grad)
    }
}

pub(crate) struct TopkJsd;
impl Case for TopkJsd {
    const FORMULA: Formula = Formula::TopkJsd;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, TopKJsdConfig<'static>, bool);
    fn config(random: &mut Random) -> Self::Config {
        let (beta, rest) = (random.pick(&BETAS), random.pick(&[TopKRest::Tail, TopKRest::Renormalize]));
        let config = TopKJsdConfig { beta, rest, aggregate: Aggregate::default() };
        (Weighing::new(random), config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config, weighed): Self::Config) -> Result<Outcome<R>> {
        let (s, t) = (entries(flat, Column::Logits), entries(flat, Column::RefLogits));
        let mut grad = unwritten(s.len());
        let weights = weighed.then(|| flat.column(Column::Weights));
        let input = TopKInput { log_probs: &s, teacher_log_probs: &t, k: entries_a_token(flat), weights };
        let loss = weighing.with(flat, |aggregate| {
            topk_jsd(&flat.batch(), input, &TopKJsdConfig { aggregate, ..config }, &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, (weighing, config, weighed): Self::Config) -> Outcome<f64> {
        let (s, t) = (entries(flat, Column::Logits), entries(flat, Column::RefLogits));
        let rows = Rows { student: &s, teacher: &t, k: entries_a_token(flat) };
        let (loss, grad) = weighing.with(flat, |aggregate| {
            let weights = weighed.then(|| flat.column(Column::Weights));
            naive::topk_jsd(tokens(flat), rows, weights, &TopKJsdConfig { aggregate, ..config })
        });
        Outcome::tokens([grad]).and([loss])
    }
}

pub(crate) struct MixedKlTopk;
impl Case for MixedKlTopk {
    const FORMULA: Formula = Formula::MixedKlTopk;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, MixedKlConfig<'static>);
    fn config(random: &mut Random) -> Self::Config {
        let outside =
            random.pick(&[OutsideTopK::Renormalize, OutsideTopK::LogProb(-100.0), OutsideTopK::LogProb(-2.0)]);
        let config = MixedKlConfig { forward: random.pick(&BETAS), outside, aggregate: Aggregate::default() };
        (Weighing::new(random), config)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config): Self::Config) -> Result<Outcome<R>> {
        let (s, t) = (entries(flat, Column::Logits), entries(flat, Column::RefLogits));
        let (mut grad, mut grad_entropies) = (unwritten(s.len()), unwritten(flat.tokens()));
        let entropies = flat.column(Column::Weights);
        let input = MixedKlInput { log_probs: &s, teacher_log_probs: &t, k: entries_a_token(flat), entropies };
        let loss = weighing.with(flat, |aggregate| {
            let output = MixedKlOutput { grad: &mut grad, grad_entropies: &mut grad_entropies };
            mixed_kl_topk(&flat.batch(), input, &MixedKlConfig { aggregate, ..config }, output)
        })?;
        Ok(Outcome::tokens([grad, grad_entropies]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, (weighing, config): Self::Config) -> Outcome<f64> {
        let (s, t) = (entries(flat, Column::Logits), entries(flat, Column::RefLogits));
        let rows = Rows { student: &s, teacher: &t, k: entries_a_token(flat) };
        let (loss, grad, grad_entropies) = weighing.with(flat, |aggregate| {
            let config = MixedKlConfig { aggregate, ..config };
            naive::mixed_kl_topk(tokens(flat), rows, flat.column(Column::Weights), &config)
        });
        Outcome::tokens([grad, grad_entropies]).and([loss])
    }
}

pub(crate) struct GeneralizedJsd;
impl Case for GeneralizedJsd {
    const FORMULA: Formula = Formula::GeneralizedJsd;
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, JsdConfig<'static>, bool);
    fn config(random: &mut Random) -> Self::Config {
        let (beta, temperature) = (random.pick(&BETAS), temperature(random));
        let config = JsdConfig { beta, temperature, aggregate: Aggregate::default() };
        (Weighing::new(random), config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config, weighed): Self::Config) -> Result<Outcome<R>> {
        let (logits, teacher_logits) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        let mut grad = unwritten(logits.len());
        let weights = weighed.then(|| flat.column(Column::Weights));
        let input = JsdInput { logits, teacher_logits, vocab: flat.vocab, weights };
        let loss = weighing.with(flat, |aggregate| {
            generalized_jsd(&flat.batch(), input, &JsdConfig { aggregate, ..config }, &mut grad)
        })?;
        Ok(Outcome::tokens([grad]).and([loss]))
    }
    fn naive(flat: &Flat<f64>, (weighing, config, weighed): Self::Config) -> Outcome<f64> {
        let (student, teacher) = (flat.column(Column::Logits), flat.column(Column::RefLogits));
        let (loss, grad) = weighing.with(flat, |aggregate| {
            let weights = weighed.then(|| flat.column(Column::Weights));
            let rows = Rows { student, teacher, k: flat.vocab };
            naive::generalized_jsd(tokens(flat), rows, weights, &JsdConfig { aggregate, ..config })
        });
        Outcome::tokens([grad]).and([loss])
    }
}
