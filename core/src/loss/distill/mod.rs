//! Distillation losses, which train a student towards a teacher token by token.

mod forward_kl_topk;
mod generalized_jsd;
mod iw_opd;
mod mixed_kl_topk;
mod opd;
mod ref_kl;
mod topk;
mod topk_jsd;

pub use forward_kl_topk::{
    forward_kl_topk, ForwardKlTopK, ForwardKlTopKConfig, ForwardKlTopKInput, ForwardKlTopKOutput, TopKIds, TopKOverlap,
};
pub use generalized_jsd::{generalized_jsd, JsdConfig, JsdInput};
pub use iw_opd::{iw_opd, IwOpdConfig, IwOpdInput, IwOpdLoss};
pub use mixed_kl_topk::{mixed_kl_topk, MixedKlConfig, MixedKlInput, MixedKlOutput, OutsideTopK};
pub use opd::{opd_loss, OpdLoss, OpdLossConfig, OpdLossInput, OpdRoute};
pub use ref_kl::{ref_kl, RefKlConfig, RefKlInput, RefKlLoss};
pub use topk_jsd::{topk_jsd, TopKInput, TopKJsdConfig, TopKRest};
