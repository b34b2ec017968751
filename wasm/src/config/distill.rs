//! The configs of the losses that draw a student to a teacher.

use tokenwise::loss::{
    ForwardKlTopKConfig, IwOpdConfig, JsdConfig, KlLossConfig, MixedKlConfig, OpdLossConfig, OpdRoute, OutsideTopK,
    RefKlConfig, TopKJsdConfig, TopKRest,
};

use crate::read::Read;

choices! {
    OpdRoute { "clipped" => Clipped, "surrogate" => Surrogate, "reinforce" => Reinforce, "supervised" => Supervised }
    TopKRest { "tail" => Tail, "renormalize" => Renormalize }
}

loss_configs! {
    KlLossConfig { kl: KlConfig, coefficient: number }
    OpdLossConfig {
        kl: KlConfig,
        max_loss: nullable,
        route: OpdRoute,
        coefficient: number,
        clip_low: number,
        clip_high: number,
        dual_clip: dual_clip,
        log_ratio_bound: nullable,
        divisor: Divisor,
    }
    RefKlConfig { fall: number, drift: number }
    IwOpdConfig { gamma: number, epsilon: number }
    ForwardKlTopKConfig { log_prob_floor: nullable, max_loss: nullable }
    TopKJsdConfig { beta: number, rest: TopKRest }
    MixedKlConfig { forward: number, outside: nullable }
    JsdConfig { beta: number, temperature: number }
}

/// The teacher's log-probability outside its entries, or none for scaling the student's.
impl Read for OutsideTopK {
    fn read(usual: Self) -> Self {
        let usual = match usual {
            Self::Renormalize => None,
            Self::LogProb(log_prob) => Some(log_prob),
        };
        Option::read(usual).map_or(Self::Renormalize, Self::LogProb)
    }
}
