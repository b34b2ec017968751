//! The config of the bypass loss: the name of the form, and the config of that loss as `policy`.

use serde::{Deserialize, Serialize};

use super::given;
use crate::{
    loss::{Aggregate, BypassConfig, BypassForm, DualClip, PpoConfig, ReinforceConfig, ReportedKl},
    rollout::{RejectionConfig, RolloutConfig},
    statistics::Divisor,
};

/// The names of the forms.
#[derive(Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Form {
    #[default]
    PpoClip,
    Reinforce,
}

/// The config of either loss. The form, which decides between them, may come after it.
#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct GivenPolicy<'a> {
    #[serde(deserialize_with = "given")]
    clip_low: Option<f64>,
    #[serde(deserialize_with = "given")]
    clip_high: Option<f64>,
    #[serde(deserialize_with = "given")]
    dual_clip: Option<DualClip>,
    #[serde(deserialize_with = "given")]
    log_ratio_bound: Option<Option<f64>>,
    #[serde(deserialize_with = "given")]
    aggregate: Option<Aggregate<'a>>,
    #[serde(deserialize_with = "given")]
    divisor: Option<Divisor>,
    #[serde(deserialize_with = "given")]
    reported_kl: Option<ReportedKl>,
}

impl<'a> GivenPolicy<'a> {
    fn of(self, form: Form) -> Result<BypassForm<'a>, &'static str> {
        match form {
            Form::PpoClip => {
                let usual = PpoConfig::default();
                Ok(BypassForm::PpoClip(PpoConfig {
                    clip_low: self.clip_low.unwrap_or(usual.clip_low),
                    clip_high: self.clip_high.unwrap_or(usual.clip_high),
                    dual_clip: self.dual_clip.unwrap_or(usual.dual_clip),
                    log_ratio_bound: self.log_ratio_bound.unwrap_or(usual.log_ratio_bound),
                    aggregate: self.aggregate.unwrap_or(usual.aggregate),
                    divisor: self.divisor.unwrap_or(usual.divisor),
                    reported_kl: self.reported_kl.unwrap_or(usual.reported_kl),
                }))
            }
            Form::Reinforce => {
                let usual = ReinforceConfig::default();
                let Self { clip_low, clip_high, dual_clip, log_ratio_bound, aggregate, divisor, reported_kl } = self;
                match (clip_low, clip_high, dual_clip, log_ratio_bound, reported_kl) {
                    (None, None, None, None, None) => Ok(BypassForm::Reinforce(ReinforceConfig {
                        aggregate: aggregate.unwrap_or(usual.aggregate),
                        divisor: divisor.unwrap_or(usual.divisor),
                    })),
                    _ => Err("`policy` of `reinforce` has `aggregate` and `divisor` only"),
                }
            }
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenForm<'a> {
    #[serde(default)]
    form: Form,
    #[serde(default)]
    policy: GivenPolicy<'a>,
}

impl<'a> TryFrom<GivenForm<'a>> for BypassForm<'a> {
    type Error = &'static str;
    fn try_from(given: GivenForm<'a>) -> Result<Self, Self::Error> {
        given.policy.of(given.form)
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct GivenConfig<'a> {
    #[serde(default)]
    weights: Option<RolloutConfig>,
    #[serde(default)]
    rejection: RejectionConfig<'a>,
    #[serde(default)]
    form: Form,
    #[serde(default)]
    policy: GivenPolicy<'a>,
    #[serde(default)]
    divisor: Divisor,
}

impl<'a> TryFrom<GivenConfig<'a>> for BypassConfig<'a> {
    type Error = &'static str;
    fn try_from(given: GivenConfig<'a>) -> Result<Self, Self::Error> {
        let GivenConfig { weights, rejection, form, policy, divisor } = given;
        Ok(Self { weights, rejection, form: policy.of(form)?, divisor })
    }
}

#[derive(Serialize)]
#[serde(untagged)]
enum WrittenPolicy<'a> {
    PpoClip(PpoConfig<'a>),
    Reinforce(ReinforceConfig<'a>),
}

#[derive(Serialize)]
pub(crate) struct WrittenForm<'a> {
    form: Form,
    policy: WrittenPolicy<'a>,
}

impl<'a> From<BypassForm<'a>> for WrittenForm<'a> {
    fn from(form: BypassForm<'a>) -> Self {
        match form {
            BypassForm::PpoClip(config) => Self { form: Form::PpoClip, policy: WrittenPolicy::PpoClip(config) },
            BypassForm::Reinforce(config) => Self { form: Form::Reinforce, policy: WrittenPolicy::Reinforce(config) },
        }
    }
}

#[derive(Serialize)]
pub(crate) struct WrittenConfig<'a> {
    weights: Option<RolloutConfig>,
    rejection: RejectionConfig<'a>,
    form: Form,
    policy: WrittenPolicy<'a>,
    divisor: Divisor,
}

impl<'a> From<BypassConfig<'a>> for WrittenConfig<'a> {
    fn from(config: BypassConfig<'a>) -> Self {
        let BypassConfig { weights, rejection, form, divisor } = config;
        let WrittenForm { form, policy } = form.into();
        Self { weights, rejection, form, policy, divisor }
    }
}
