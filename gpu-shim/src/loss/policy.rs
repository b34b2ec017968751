//! The policy losses that are functions of their own token, as one table.

use tokenwise::{
    loss::{
        CispoBounds, CispoConfig, ClipCovConfig, ClipCovInput, DppoConfig, DroConfig, DualClip, PolicyLoss,
        PolicyLossInput, PpoConfig, ReinforceConfig, ReportedKl, SapoConfig, SurrogateConfig, TisLossConfig,
    },
    Divisor,
};

use super::{answer, check_config, mean_over, LossResult, Weights};
use crate::{
    batch::GpuBatch,
    call::{batch, policy_input, runners, Answer, Request, Runner},
    column::Input,
    error::GpuError,
    recording::{Pending, Recording},
    token::{bits, sequence, token, weight, In, Setting, Term, TokenKernel},
};

/// What the policy losses read.
#[derive(Clone, Debug)]
pub struct PolicyLossColumns<'a> {
    /// Log-probabilities of the policy being trained.
    pub log_probs: Input<'a>,
    /// Log-probabilities of the policy that sampled.
    pub old_log_probs: Input<'a>,
    /// Advantages.
    pub advantages: Input<'a>,
    /// A weight for each token's loss; `None` gives weight 1.
    pub weights: Option<Input<'a>>,
}

impl PolicyLossColumns<'_> {
    pub(crate) fn check(&self, batch: &GpuBatch<'_>) -> Result<(), GpuError> {
        self.log_probs.check_len("log_probs", batch.tokens())?;
        self.old_log_probs.check_len("old_log_probs", batch.tokens())?;
        self.advantages.check_len("advantages", batch.tokens())?;
        match &self.weights {
            Some(weights) => weights.check_len("weights", batch.tokens()),
            None => Ok(()),
        }
    }
}

/// A policy loss on the device; the gradient is ∂loss/∂log_probs.
pub type PolicyLossResult = LossResult<PolicyLoss>;

/// What [`Recording::clip_cov`] reads.
#[derive(Clone, Debug)]
pub struct ClipCovColumns<'a> {
    /// The inputs common to all policy losses.
    pub policy: PolicyLossColumns<'a>,
    /// Not 0 for tokens without a gradient.
    pub selected: Input<'a>,
}

pub(super) const TERMS: &[Term] =
    &[Term::Number("loss"), Term::Count("held"), Term::Count("held_below"), Term::Number("kl")];

pub(super) const NEW: In = token("log_probs");
pub(super) const OLD: In = token("old_log_probs");
pub(super) const ADVANTAGES: In = token("advantages");
pub(super) const WEIGHTS: In = weight("weights");
pub(super) const ROWS: In = sequence("row_weights");

const CLIP: [Setting; 8] = [
    Setting::F32("clip_low"),
    Setting::F32("clip_high"),
    Setting::F32("clip_free"),
    Setting::F32("clip_cap"),
    Setting::F32("flat_negative"),
    Setting::F32("flat_positive"),
    Setting::F32("dual_negative"),
    Setting::F32("dual_positive"),
];

/// The settings of `shaders/loss/clip.wgsl`, in the order of [`CLIP`].
pub(crate) fn clip_settings(clip_low: f64, clip_high: f64, dual_clip: DualClip) -> [u32; 8] {
    let never = f64::INFINITY;
    // as f32, where the core compares them
    let (low, high) = (1.0 - clip_low, 1.0 + clip_high);
    let [free, cap, flat_negative, flat_positive, dual_negative, dual_positive] = match dual_clip {
        DualClip::NegativeOnly(dual) => [never, dual, dual, high, dual, never],
        // if the dual clip is inside the first one, the first one decides the slope between the two
        DualClip::BothSigns(dual) => [dual, never, dual.max(high), dual.min(high), dual, dual],
        _ => [never, never, never, high, never, never],
    };
    [low, high, free, cap, flat_negative, flat_positive, dual_negative, dual_positive].map(bits)
}

/// `share`, the settings of the clip, then those of the loss.
pub(super) const fn clipped<const N: usize>(more: &[Setting]) -> [Setting; N] {
    let mut all = [Setting::F32("share"); N];
    let mut at = 0;
    while at < N - 1 {
        all[at + 1] = if at < CLIP.len() { CLIP[at] } else { more[at - CLIP.len()] };
        at += 1;
    }
    all
}

/// The WGSL of a policy loss: the files beside `policy.wgsl`.
macro_rules! wgsl {
    ($($file:literal)*) => {
        concat!(
            include_str!("../../shaders/loss/policy.wgsl"),
            include_str!("../../shaders/loss/policy_formula.wgsl"),
            $(include_str!(concat!("../../shaders/", $file, ".wgsl")),)*
        )
    };
}

pub(super) use wgsl;

/// A kernel whose inputs are those of every policy loss and, after the advantages, `$more`.
macro_rules! kernel {
    ($label:expr, [$($file:literal)*], [$($more:expr),*], $settings:expr) => {
        TokenKernel {
            label: $label,
            formula: wgsl!($($file)*),
            inputs: &[NEW, OLD, ADVANTAGES, $($more,)* WEIGHTS, ROWS],
            outputs: &["grad"],
            terms: TERMS,
            settings: $settings,
            last_only: false,
        }
    };
}

pub(super) use kernel;

pub(super) const BOUND: Setting = Setting::F32("log_ratio_bound");

/// The bits of a bound that may be absent.
pub(super) fn bound(bound: Option<f64>) -> u32 {
    bits(bound.unwrap_or(f64::INFINITY))
}

/// The losses with the inputs of [`PolicyLossColumns`] and a config with an aggregation. A row names the core's
/// function, its config, the WGSL files and the settings after `share`; the closure gives the divisor of the means and
/// the words of the settings.
macro_rules! policy_losses {
    ($($name:ident $config:ident [$($file:literal)*] $settings:expr, |$given:ident| $words:expr;)*) => {
        impl Recording<'_> {$(
            #[doc = concat!("The core's [`", stringify!($name), "`](tokenwise::loss::", stringify!($name), ")")]
            /// and its gradient.
            ///
            /// # Errors
            ///
            /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
            pub fn $name(
                &mut self,
                batch: &GpuBatch<'_>,
                input: &PolicyLossColumns<'_>,
                config: &$config<'_>,
            ) -> Result<PolicyLossResult, GpuError> {
                const KERNEL: TokenKernel =
                    kernel!(concat!("loss/", stringify!($name)), [$($file)*], [], $settings);
                input.check(batch)?;
                check_config(|one, grad| {
                    let plain = $config { aggregate: Default::default(), ..*config };
                    tokenwise::loss::$name(one, PolicyLossInput::new(&[0.0], &[0.0], &[0.0]), &plain, grad)
                })?;
                let weights = Weights::new(batch.host(), &config.aggregate)?;
                let $given = config;
                let (divisor, settings) = $words;
                self.policy_loss(&KERNEL, batch, input, &[], weights, divisor, &settings)
            }
        )*}

        /// The calls by name.
        pub(crate) const RUNNERS: &[Runner] = runners![$($name,)* clip_cov];

        $(fn $name(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
            let config = call.loss_config::<$config<'_>>()?;
            let result = recording.$name(&batch(call)?, &policy_input(call)?, &config)?;
            Ok(answer(stringify!($name), result))
        })*
    };
}

policy_losses! {
    surrogate SurrogateConfig ["loss/surrogate"] &[Setting::F32("share"), BOUND],
        |config| (Divisor::Count, [bound(config.log_ratio_bound)]);
    ppo_clip PpoConfig ["loss/clip" "loss/ppo_clip"] &clipped::<11>(&[BOUND, Setting::F32("kl_bound")]), |config| {
        let [low, high, free, cap, a, b, c, d] = clip_settings(config.clip_low, config.clip_high, config.dual_clip);
        let kl_bound = config.log_ratio_bound.filter(|_| config.reported_kl == ReportedKl::Bounded);
        (config.divisor, [low, high, free, cap, a, b, c, d, bound(config.log_ratio_bound), bound(kl_bound)])
    };
    reinforce ReinforceConfig ["loss/reinforce"] &[Setting::F32("share")], |config| (config.divisor, []);
    cispo CispoConfig ["loss/cispo"] CISPO, |config| {
        let (low, high, positive_only) = match config.bounds {
            CispoBounds::Relative { low, high } => (1.0 - low, 1.0 + high, 0),
            CispoBounds::Absolute { high } => (0.0, high, 1),
            _ => return Err(GpuError::Unsupported("bounds that the shader does not have")),
        };
        (config.divisor, [bits(low), bits(high), positive_only, bound(config.log_ratio_bound)])
    };
    tis_loss TisLossConfig ["loss/cispo"] CISPO, |config| (config.divisor, [bits(0.0), bits(1.0), 0, bound(None)]);
    dppo_tv DppoConfig ["loss/dppo_tv" "loss/dppo"] DPPO, |config| dppo_settings(config);
    dppo_kl DppoConfig ["loss/dppo_kl" "loss/dppo"] DPPO, |config| dppo_settings(config);
    dro DroConfig ["loss/dro"] &[Setting::F32("share"), Setting::F32("beta")],
        |config| (config.divisor, [bits(config.beta)]);
    sapo SapoConfig ["loss/sapo"]
        &[Setting::F32("share"), Setting::F32("tau_positive"), Setting::F32("tau_negative"), BOUND],
        |config| {
            let taus = [config.tau_positive, config.tau_negative].map(bits);
            (config.divisor, [taus[0], taus[1], bound(config.log_ratio_bound)])
        };
}

const CISPO: &[Setting] =
    &[Setting::F32("share"), Setting::F32("low"), Setting::F32("high"), Setting::U32("positive_only"), BOUND];

const DPPO: &[Setting] =
    &[Setting::F32("share"), Setting::F32("clip_low"), Setting::F32("clip_high"), Setting::F32("ratio_cap"), BOUND];

fn dppo_settings(config: &DppoConfig<'_>) -> (Divisor, [u32; 4]) {
    let [low, high, cap] = [config.clip_low, config.clip_high, config.ratio_cap].map(bits);
    (config.divisor, [low, high, cap, bound(config.log_ratio_bound)])
}

const CLIP_COV: TokenKernel = kernel!(
    "loss/clip_cov",
    ["loss/clip" "loss/clip_cov"],
    [token("selected")],
    &clipped::<9>(&[])
);

impl Recording<'_> {
    /// The core's [`clip_cov`](tokenwise::loss::clip_cov) and its gradient.
    ///
    /// # Errors
    ///
    /// [`GpuError::Core`] with the core's error; [`GpuError::Limit`].
    pub fn clip_cov(
        &mut self,
        batch: &GpuBatch<'_>,
        input: &ClipCovColumns<'_>,
        config: &ClipCovConfig<'_>,
    ) -> Result<PolicyLossResult, GpuError> {
        input.policy.check(batch)?;
        input.selected.check_len("selected", batch.tokens())?;
        check_config(|one, grad| {
            let plain = ClipCovConfig { aggregate: Default::default(), ..*config };
            let input = ClipCovInput { policy: PolicyLossInput::new(&[0.0], &[0.0], &[0.0]), selected: &[false] };
            tokenwise::loss::clip_cov(one, input, &plain, grad)
        })?;
        let weights = Weights::new(batch.host(), &config.aggregate)?;
        let settings = clip_settings(config.clip_low, config.clip_high, DualClip::Off);
        self.policy_loss(&CLIP_COV, batch, &input.policy, &[Some(&input.selected)], weights, config.divisor, &settings)
    }

    /// A policy loss whose input and config were checked; `extra` are its inputs after the advantages, `settings` those
    /// after `share`.
    #[allow(clippy::too_many_arguments, reason = "one path for every policy loss")]
    pub(super) fn policy_loss(
        &mut self,
        kernel: &TokenKernel,
        batch: &GpuBatch<'_>,
        input: &PolicyLossColumns<'_>,
        extra: &[Option<&Input<'_>>],
        weights: Weights,
        divisor: Divisor,
        settings: &[u32],
    ) -> Result<PolicyLossResult, GpuError> {
        let mut inputs = vec![Some(&input.log_probs), Some(&input.old_log_probs), Some(&input.advantages)];
        inputs.extend(extra);
        let found = self.weighed(kernel, batch, &inputs, input.weights.as_ref(), weights, settings)?;
        let mean = mean_over(batch, divisor);
        let loss = Pending::new(move |done| {
            let [loss, held, held_below, kl] = done.sums(found.sums);
            let mut result = PolicyLoss::default();
            result.loss = loss * found.share;
            result.clip_fraction = mean(held);
            result.clip_fraction_lower = mean(held_below);
            result.kl = mean(kl);
            result
        });
        Ok(LossResult { grad: found.grad, loss })
    }
}

fn clip_cov(recording: &mut Recording<'_>, call: &Request<'_, '_>) -> Result<Answer, GpuError> {
    let config = call.loss_config::<ClipCovConfig<'_>>()?;
    let selected: Vec<f32> = call.inputs.flag("selected")?.iter().map(|&selected| f32::from(selected)).collect();
    let input = ClipCovColumns { policy: policy_input(call)?, selected: Input::Host(&selected) };
    Ok(answer("clip_cov", recording.clip_cov(&batch(call)?, &input, &config)?))
}
