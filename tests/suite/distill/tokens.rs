//! Distillation losses of the sampled token.

use tokenwise::{loss::*, rollout::*, Divisor, Result};
use tokenwise_tests::generate::{Column, Flat, Number, Random};

use crate::{
    case::{tokens, unwritten, Case, Outcome},
    divergence::{kl_config, ESTIMATORS},
    errors::domains::*,
    loss::{call_loss, dual_clip, weighed_input, Choice, Numbers as _, Weighing},
    naive::distill as naive,
    reward::DIVISORS,
    rollout::{bits, criteria, weights_config},
};

/// The policy's input with the teacher's log-probabilities for advantages, as the textbook takes them.
fn taught(flat: &Flat<f64>, weighed: bool) -> PolicyLossInput<'_, f64> {
    PolicyLossInput { advantages: flat.column(Column::RefLogProbs), ..weighed_input(flat, weighed) }
}

pub(crate) struct KlLoss;
impl Case for KlLoss {
    const NAME: &'static str = "kl_loss";
    const UNITS: [f64; 2] = [8.0, 4.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("coefficient", FINITE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, KlLossConfig<'static>);
    fn config(random: &mut Random) -> Self::Config {
        let coefficient = random.pick(&[0.001, 1.0, -0.5, 0.0]);
        (Weighing::new(random), KlLossConfig { kl: kl_config(random), coefficient, ..Default::default() })
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config): Self::Config) -> Result<Outcome<R>> {
        weighing.with(flat, |aggregate| call_loss(Self::NAME, flat, config, aggregate, |_| None))
    }
    fn naive(flat: &Flat<f64>, (weighing, config): Self::Config) -> Outcome<f64> {
        let (new, reference) = (flat.column(Column::LogProbs), flat.column(Column::RefLogProbs));
        let (result, grad) = weighing.with(flat, |aggregate| {
            naive::kl_loss(tokens(flat), new, reference, &KlLossConfig { aggregate, ..config })
        });
        Outcome::tokens([grad]).and([result.loss, result.aggregated, result.mean])
    }
}

pub(crate) struct OpdLoss;
impl OpdLoss {
    fn outcome(result: tokenwise::loss::OpdLoss, grad: Vec<f64>) -> Outcome<f64> {
        Outcome::tokens([grad]).and([
            result.loss,
            result.clip_fraction,
            result.clip_fraction_lower,
            result.kl,
            result.abs_loss,
            result.loss_min,
            result.loss_max,
        ])
    }
}
impl Case for OpdLoss {
    const NAME: &'static str = "opd_loss";
    const UNITS: [f64; 2] = [30.0, 4.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[
        key("max_loss", POSITIVE),
        key("coefficient", FINITE),
        key("clip_low", NOT_NEGATIVE),
        key("clip_high", NOT_NEGATIVE),
        inside("dual_clip.negative_only", "dual_clip", ABOVE_1),
        LOG_RATIO_BOUND,
    ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = Choice<OpdLossConfig<'static>>;
    fn config(random: &mut Random) -> Self::Config {
        let route = random.pick(&[OpdRoute::Clipped, OpdRoute::Surrogate, OpdRoute::Reinforce, OpdRoute::Supervised]);
        let kl = kl_config(random);
        // supervised K1 is rejected
        let estimator = if route == OpdRoute::Supervised { random.pick(&ESTIMATORS[1..]) } else { kl.estimator };
        let config = OpdLossConfig {
            kl: tokenwise::divergence::KlConfig { estimator, ..kl },
            max_loss: random.pick(&[None, Some(10.0), Some(0.25)]),
            route,
            coefficient: random.pick(&[1.0, 0.005, 2.0]),
            clip_low: random.pick(&[0.25, 0.0625]),
            clip_high: random.pick(&[0.25, 0.3125]),
            dual_clip: dual_clip(random),
            log_ratio_bound: random.pick(&[None, Some(1.0), Some(20.0)]),
            aggregate: Aggregate::default(),
            divisor: random.pick(&DIVISORS),
        };
        Choice::new(random, config)
    }
    fn run<R: Number>(flat: &Flat<R>, choice: Self::Config) -> Result<Outcome<R>> {
        choice.call(Self::NAME, flat, |_| None)
    }
    fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
        let (result, grad) = weighing.with(flat, |aggregate| {
            naive::opd_loss(tokens(flat), taught(flat, weighed), &OpdLossConfig { aggregate, ..config })
        });
        Self::outcome(result, grad)
    }
}

pub(crate) struct RefKl;
impl RefKl {
    fn outcome(result: RefKlLoss, grad: Vec<f64>) -> Outcome<f64> {
        let RefKlLoss { loss, ref_kl, fallen, mismatch_fallen, mismatch_kept, .. } = result;
        Outcome::tokens([grad]).and([loss, ref_kl, fallen, mismatch_fallen, mismatch_kept])
    }
}
impl Case for RefKl {
    const NAME: &'static str = "ref_kl";
    const UNITS: [f64; 2] = [24.0, 6.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("fall", NOT_NEGATIVE), key("drift", NOT_NEGATIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = Choice<RefKlConfig<'static>>;
    fn config(random: &mut Random) -> Self::Config {
        let config = RefKlConfig {
            fall: random.pick(&[0.2, 0.03125]),
            drift: random.pick(&[1e-3, 0.5, 0.0]),
            aggregate: Aggregate::default(),
        };
        Choice::new(random, config)
    }
    fn run<R: Number>(flat: &Flat<R>, choice: Self::Config) -> Result<Outcome<R>> {
        choice.call(Self::NAME, flat, |_| None)
    }
    fn naive(flat: &Flat<f64>, Choice { config, weighing, weighed }: Self::Config) -> Outcome<f64> {
        let (result, grad) = weighing.with(flat, |aggregate| {
            naive::ref_kl(tokens(flat), taught(flat, weighed), &RefKlConfig { aggregate, ..config })
        });
        Self::outcome(result, grad)
    }
}

pub(crate) struct IwOpd;
impl IwOpd {
    fn columns(flat: &Flat<f64>) -> [&[f64]; 3] {
        [Column::LogProbs, Column::OldLogProbs, Column::RefLogProbs].map(|column| flat.column(column))
    }

    fn outcome(result: IwOpdLoss, grad: Vec<f64>) -> Outcome<f64> {
        let IwOpdLoss { loss, mean_advantage, mean_abs_advantage, mean_weight, min_weight, max_weight, .. } = result;
        Outcome::tokens([grad]).and([loss, mean_advantage, mean_abs_advantage, mean_weight, min_weight, max_weight])
    }
}
impl Case for IwOpd {
    const NAME: &'static str = "iw_opd";
    const UNITS: [f64; 2] = [16.0, 2.0];
    const DOMAINS: &'static [Row] = &[needs_one().numbers(&[key("gamma", NOT_NEGATIVE), key("epsilon", POSITIVE)])];
    const SEQUENCES_ALONE: bool = false;
    type Config = (Weighing, IwOpdConfig<'static>);
    fn config(random: &mut Random) -> Self::Config {
        let (gamma, epsilon) = (random.pick(&[0.5, 0.0, 2.0]), random.pick(&[1e-8, 4.0]));
        (Weighing::new(random), IwOpdConfig { gamma, epsilon, aggregate: Aggregate::default() })
    }
    fn run<R: Number>(flat: &Flat<R>, (weighing, config): Self::Config) -> Result<Outcome<R>> {
        weighing.with(flat, |aggregate| call_loss(Self::NAME, flat, config, aggregate, |_| None))
    }
    fn naive(flat: &Flat<f64>, (weighing, config): Self::Config) -> Outcome<f64> {
        let (result, grad) = weighing.with(flat, |aggregate| {
            naive::iw_opd(tokens(flat), Self::columns(flat), &IwOpdConfig { aggregate, ..config })
        });
        Self::outcome(result, grad)
    }
}

/// Weights, criteria, whether REINFORCE, and how it aggregates.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bypass {
    weights: Option<RolloutConfig>,
    criteria: [Criterion; 2],
    divisor: Divisor,
    reinforce: bool,
    weighing: Weighing,
}

impl Bypass {
    fn form<'a>(&self, aggregate: Aggregate<'a>) -> BypassForm<'a> {
        if self.reinforce {
            BypassForm::Reinforce(ReinforceConfig { aggregate, divisor: self.divisor })
        } else {
            let dual_clip = DualClip::NegativeOnly(3.0);
            BypassForm::PpoClip(PpoConfig { dual_clip, aggregate, divisor: self.divisor, ..Default::default() })
        }
    }
}

pub(crate) struct BypassLoss;
impl Case for BypassLoss {
    const NAME: &'static str = "bypass_loss";
    const UNITS: [f64; 2] = [30.0, 6.0];
    const DOMAINS: &'static [Row] = &[needs_one()
        .with(r#"{ "weights": { "bound": { "kind": "truncate" } }, "rejection": { "criteria": [{}] } }"#)
        .numbers(&[
            inside("weights.bound.upper", "upper", POSITIVE),
            inside("policy.clip_low", "clip_low", NOT_NEGATIVE),
        ])];
    const SEQUENCES_ALONE: bool = false;
    type Config = Bypass;
    fn config(random: &mut Random) -> Bypass {
        let (criteria, divisor) = criteria(random);
        Bypass {
            weights: (random.below(3) > 0).then(|| weights_config(random)),
            criteria,
            divisor,
            reinforce: random.below(2) == 0,
            weighing: Weighing::new(random),
        }
    }
    fn run<R: Number>(flat: &Flat<R>, config: Bypass) -> Result<Outcome<R>> {
        let (mut weights, mut grad) = (unwritten(flat.tokens()), unwritten(flat.tokens()));
        let (mut keep, mut per_criterion) = (vec![true; flat.tokens()], [CriterionMetrics::default(); 2]);
        let rejection = RejectionConfig { criteria: &config.criteria, divisor: config.divisor };
        let result = config.weighing.with(flat, |aggregate| {
            let config = BypassConfig {
                weights: config.weights,
                rejection,
                form: config.form(aggregate),
                divisor: config.divisor,
            };
            let output = BypassOutput {
                weights: &mut weights,
                keep: &mut keep,
                per_criterion: &mut per_criterion,
                grad: &mut grad,
            };
            bypass_loss(&flat.batch(), weighed_input(flat, false), &config, output)
        })?;
        Ok(Outcome::tokens([weights, bits(&keep), grad]).and(result.policy.numbers()))
    }
    fn naive(flat: &Flat<f64>, config: Bypass) -> Outcome<f64> {
        let (result, slices) = config.weighing.with(flat, |aggregate| {
            let rejection = (&config.criteria[..], config.divisor);
            let form = config.form(aggregate);
            naive::bypass_loss(tokens(flat), weighed_input(flat, false), config.weights.as_ref(), rejection, &form)
        });
        Outcome::tokens(slices).and(result.numbers())
    }
}
