//! Distillation losses over several entries of the vocabulary, or all.

use tokenwise::{loss::*, policy::*, Result};
use tokenwise_catalogue::Array;
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use super::{entries, entries_a_token, ids};
use crate::{
    case::{call, tokens, Case, Outcome},
    errors::domains::*,
    loss::{call_loss, Weighing},
    naive::{
        distill_rows::{self as naive, Rows},
        policy as naive_policy,
    },
    policy::temperature,
};

/// Entries of both policies, for formulas of several entries a token.
fn of_entries<R: Number>(flat: &Flat<R>, column: &str) -> Option<Array<R>> {
    match column {
        "log_probs" => Some(Array::Real(entries(flat, Column::Logits))),
        "teacher_log_probs" => Some(Array::Real(entries(flat, Column::RefLogits))),
        "k" => Some(Array::Size(entries_a_token(flat))),
        _ => None,
    }
}

pub(crate) const BETAS: [f64; 4] = [0.0, 0.25, 0.5, 1.0];

pub(crate) struct TopkLogProbs;
impl Case for TopkLogProbs {
    const NAME: &'static str = "topk_log_probs";
    const UNITS: [f64; 2] = [8.0, 6.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        call(Self::NAME, flat, PolicyConfig { temperature }, |column| match column {
            "tokens" => Some(Array::Index(ids(flat, 0))),
            "k" => Some(Array::Size(entries_a_token(flat))),
            _ => None,
        })
    }
    fn naive(flat: &Flat<f64>, temperature: f64) -> Outcome<f64> {
        let (k, ids, logits) = (entries_a_token(flat), ids(flat, 0), flat.column(Column::Logits));
        Outcome::tokens([naive_policy::topk_log_probs(tokens(flat), logits, flat.vocab, (&ids, k), temperature)])
    }
}

pub(crate) struct TopkLogitsGradient;
impl Case for TopkLogitsGradient {
    const NAME: &'static str = "topk_logits_gradient";
    const UNITS: [f64; 2] = [300.0, 120.0];
    const DOMAINS: &'static [Row] = &[any().numbers(TEMPERATURE)];
    const SEQUENCES_ALONE: bool = true;
    type Config = f64;
    fn config(random: &mut Random) -> f64 {
        temperature(random)
    }
    fn run<R: Number>(flat: &Flat<R>, temperature: f64) -> Result<Outcome<R>> {
        call(Self::NAME, flat, PolicyConfig { temperature }, |column| match column {
            "tokens" => Some(Array::Index(ids(flat, 0))),
            "k" => Some(Array::Size(entries_a_token(flat))),
            "grad_log_probs" => Some(Array::Real(entries(flat, Column::RefLogits))),
            _ => None,
        })
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
    fn outcome(result: ForwardKlTopK, losses: Vec<f64>, grad: Vec<f64>) -> Outcome<f64> {
        let overlap = result.overlap.map_or(vec![], |overlap| vec![overlap.ratio, overlap.token_advantage]);
        let numbers = [result.loss, result.loss_min, result.loss_max];
        Outcome::tokens([losses, grad])
            .and([numbers.as_slice(), &result.student_mass, &result.teacher_mass, &overlap].concat())
    }
}
impl Case for ForwardKlTopk {
    const NAME: &'static str = "forward_kl_topk";
    const UNITS: [f64; 2] = [200.0, 1.5];
    const DOMAINS: &'static [Row] =
        &[needs_one().numbers(&[key("log_prob_floor", NEGATIVE), key("max_loss", POSITIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, ForwardKlTopKConfig<'static>, Option<u32>);
    fn config(random: &mut Random) -> Self::Config {
        let config = ForwardKlTopKConfig {
            // not on the grid of the entries, where the slope is undefined
            log_prob_floor: random.pick(&[Some(-10.005), None, Some(-2.005)]),
            max_loss: random.pick(&[Some(10.0), None, Some(0.5)]),
            aggregate: Aggregate::default(),
        };
        (Weighing::new(random), config, random.pick(&[None, Some(0), Some(2), Some(40)]))
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config, step): Self::Config) -> Result<Outcome<R>> {
        weighing.with(flat, |aggregate| {
            call_loss(Self::NAME, flat, config, aggregate, |column| match column {
                "teacher_ids" => step.map(|_| Array::Index(ids(flat, 0))),
                "student_ids" => step.map(|step| Array::Index(ids(flat, step))),
                _ => of_entries(flat, column),
            })
        })
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
    const NAME: &'static str = "topk_jsd";
    const UNITS: [f64; 2] = [16.0, 1.5];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("beta", UNIT)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, TopKJsdConfig<'static>, bool);
    fn config(random: &mut Random) -> Self::Config {
        let (beta, rest) = (random.pick(&BETAS), random.pick(&[TopKRest::Tail, TopKRest::Renormalize]));
        let config = TopKJsdConfig { beta, rest, aggregate: Aggregate::default() };
        (Weighing::new(random), config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config, weighed): Self::Config) -> Result<Outcome<R>> {
        weighing.with(flat, |aggregate| {
            call_loss(Self::NAME, flat, config, aggregate, |column| match column {
                "weights" => weighed.then(|| Array::Real(flat.column(Column::Weights).to_vec())),
                _ => of_entries(flat, column),
            })
        })
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
    const NAME: &'static str = "mixed_kl_topk";
    const UNITS: [f64; 2] = [30.0, 1.5];
    const DOMAINS: &'static [Row] =
        &[needs_one().numbers(&[key("forward", UNIT), inside("outside", "log_prob", FINITE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, MixedKlConfig<'static>);
    fn config(random: &mut Random) -> Self::Config {
        let outside =
            random.pick(&[OutsideTopK::Renormalize, OutsideTopK::LogProb(-100.0), OutsideTopK::LogProb(-2.0)]);
        let config = MixedKlConfig { forward: random.pick(&BETAS), outside, aggregate: Aggregate::default() };
        (Weighing::new(random), config)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config): Self::Config) -> Result<Outcome<R>> {
        weighing.with(flat, |aggregate| {
            call_loss(Self::NAME, flat, config, aggregate, |column| match column {
                "entropies" => Some(Array::Real(flat.column(Column::Weights).to_vec())),
                _ => of_entries(flat, column),
            })
        })
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
    const NAME: &'static str = "generalized_jsd";
    const UNITS: [f64; 2] = [80.0, 40.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("beta", UNIT), key("temperature", POSITIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, JsdConfig<'static>, bool);
    fn config(random: &mut Random) -> Self::Config {
        let (beta, temperature) = (random.pick(&BETAS), temperature(random));
        let config = JsdConfig { beta, temperature, aggregate: Aggregate::default() };
        (Weighing::new(random), config, random.below(2) == 0)
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config, weighed): Self::Config) -> Result<Outcome<R>> {
        weighing.with(flat, |aggregate| {
            call_loss(Self::NAME, flat, config, aggregate, |column| {
                (weighed && column == "weights").then(|| Array::Real(flat.column(Column::Weights).to_vec()))
            })
        })
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
