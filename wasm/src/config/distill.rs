//! The configs of the losses that draw a student to a teacher.

use tokenwise::loss::{
    Aggregate, ForwardKlTopKConfig, IwOpdConfig, JsdConfig, KlLossConfig, MixedKlConfig, OpdLossConfig, OpdRoute,
    OutsideTopK, RefKlConfig, TopKJsdConfig, TopKRest,
};
use wasm_bindgen::JsValue;

use crate::{
    error::Result,
    object::{Choice, Fields},
};

choices! {
    OpdRoute { "clipped" => Clipped, "surrogate" => Surrogate, "reinforce" => Reinforce, "supervised" => Supervised }
    TopKRest { "tail" => Tail, "renormalize" => Renormalize }
}

loss_config! {
    kl_loss -> KlLossConfig { "kl" => kl by kl_or, "coefficient" => coefficient by number_or }
    opd_loss -> OpdLossConfig {
        "kl" => kl by kl_or,
        "maxLoss" => max_loss by nullable_or,
        "route" => route by choice_or,
        "coefficient" => coefficient by number_or,
        "clipLow" => clip_low by number_or,
        "clipHigh" => clip_high by number_or,
        "dualClip" => dual_clip by dual_clip_or,
        "logRatioBound" => log_ratio_bound by nullable_or,
        "divisor" => divisor by choice_or,
    }
    ref_kl -> RefKlConfig { "fall" => fall by number_or, "drift" => drift by number_or }
    iw_opd -> IwOpdConfig { "gamma" => gamma by number_or, "epsilon" => epsilon by number_or }
    forward_kl_topk -> ForwardKlTopKConfig {
        "logProbFloor" => log_prob_floor by nullable_or,
        "maxLoss" => max_loss by nullable_or,
    }
    topk_jsd -> TopKJsdConfig { "beta" => beta by number_or, "rest" => rest by choice_or }
    mixed_kl_topk -> MixedKlConfig { "forward" => forward by number_or, "outside" => outside by outside_or }
    jsd -> JsdConfig { "beta" => beta by number_or, "temperature" => temperature by number_or }
}

impl Fields<'_> {
    /// The teacher's log-probability outside its entries, or `null` for scaling the student's.
    fn outside_or(&self, key: &str, default: OutsideTopK) -> Result<OutsideTopK> {
        let default = match default {
            OutsideTopK::Renormalize => None,
            OutsideTopK::LogProb(log_prob) => Some(log_prob),
        };
        Ok(self.nullable_or(key, default)?.map_or(OutsideTopK::Renormalize, OutsideTopK::LogProb))
    }
}
