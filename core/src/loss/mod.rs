//! **Stage 5 of 7 — loss.** Reads log-probabilities, advantages and returns, writes one loss and its gradient.

mod aggregate;
mod bypass;
mod cispo;
mod clip_cov;
mod covariance;
mod distill;
mod dppo;
mod dro;
mod dual_game;
mod entropy_bonus;
mod gmpo;
mod gspo;
mod gvpo;
mod kl_cov;
mod kl_loss;
mod policy;
mod positive_nll;
mod ppo_clip;
mod reinforce;
mod sapo;
mod surrogate;
mod topr;
mod value;
mod vespo;

pub(crate) use aggregate::Plan;
pub use aggregate::{aggregate, group_tokens, Aggregate, AggregateMode, Counts, EmptyRows, GlobalCounts};
pub use bypass::{bypass_loss, BypassConfig, BypassForm, BypassLoss, BypassOutput};
pub use cispo::{cispo, tis_loss, CispoBounds, CispoConfig, TisLossConfig};
pub use clip_cov::{clip_cov, clip_cov_selection, ClipCovConfig, ClipCovInput, ClipCovSelectionConfig};
pub(crate) use clip_cov::{clip_of_selection, Candidates, Draw};
pub(crate) use covariance::{wanted, Center};
pub use distill::{
    forward_kl_topk, generalized_jsd, iw_opd, mixed_kl_topk, opd_loss, ref_kl, topk_jsd, ForwardKlTopK,
    ForwardKlTopKConfig, ForwardKlTopKInput, ForwardKlTopKOutput, IwOpdConfig, IwOpdInput, IwOpdLoss, JsdConfig,
    JsdInput, MixedKlConfig, MixedKlInput, MixedKlOutput, OpdLoss, OpdLossConfig, OpdLossInput, OpdRoute, OutsideTopK,
    RefKlConfig, RefKlInput, RefKlLoss, TopKIds, TopKInput, TopKJsdConfig, TopKOverlap, TopKRest,
};
pub use dppo::{dppo_kl, dppo_tv, DppoConfig};
pub use dro::{dro, DroConfig};
pub use dual_game::{dual_game, DualGameConfig, DualGameInput, DualGameLoss, DualGradient};
pub use entropy_bonus::{entropy_bonus, EntropyBonusConfig};
pub use gmpo::{gmpo, GmpoConfig};
pub use gspo::{gspo, luspo, GspoConfig, GspoForm, LuspoConfig};
pub use gvpo::{gvpo, GvpoConfig};
pub use kl_cov::{kl_cov, KlCovConfig};
pub(crate) use kl_cov::{kl_cov_of, Chosen};
pub use kl_loss::{kl_loss, KlLoss, KlLossConfig};
pub use policy::{PolicyLoss, PolicyLossInput};
pub use positive_nll::{positive_nll, PositiveNllConfig, PositiveNllInput};
#[doc(hidden)]
pub use ppo_clip::check_ppo_config;
pub(crate) use ppo_clip::Clip;
pub use ppo_clip::{ppo_clip, DualClip, PpoConfig, ReportedKl};
pub use reinforce::{reinforce, ReinforceConfig};
pub use sapo::{sapo, SapoConfig};
pub use surrogate::{surrogate, SurrogateConfig};
pub use topr::{topr, ToprConfig, ToprInput};
pub use value::{value_loss, ValueConfig, ValueFactor, ValueLoss, ValueLossInput};
pub use vespo::{vespo, VespoConfig, VespoLoss};
