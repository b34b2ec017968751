//! Stage 5, continued: distillation losses.

mod rows;
mod tokens;

pub(crate) use rows::{ForwardKlTopk, GeneralizedJsd, MixedKlTopk, TopkJsd, TopkLogProbs, TopkLogitsGradient};
pub(crate) use tokens::{BypassLoss, IwOpd, KlLoss, OpdLoss, RefKl};

use tokenwise_tests::generate::{Column, Flat, Number};

/// At most this many entries a token.
const MOST: usize = 5;

pub(crate) fn entries_a_token<R: Number>(flat: &Flat<R>) -> usize {
    flat.vocab.min(MOST)
}

/// Log-probabilities of some entries, which add up to less than 1. They lie on a grid, so that both types hold them
/// exactly.
pub(crate) fn entries<R: Number>(flat: &Flat<R>, column: Column) -> Vec<R> {
    let k = entries_a_token(flat);
    let mut out = Vec::new();
    for row in flat.column(column).chunks_exact(flat.vocab) {
        let logits: Vec<f64> = row[..k].iter().map(|x| x.widen()).collect();
        let log_sum = logits.iter().map(|x| x.exp()).sum::<f64>().ln();
        out.extend(logits.iter().map(|x| R::narrow(((x - log_sum - 0.25) * 64.0).round() / 64.0)));
    }
    out
}

/// `k` ids for each token; those of dropped slots are arbitrary.
pub(crate) fn ids<R: Number>(flat: &Flat<R>, step: u32) -> Vec<u32> {
    let (k, vocab) = (entries_a_token(flat) as u32, flat.vocab as u32);
    let of = |(&id, &keep): (&u32, &bool)| {
        (0..k).map(move |j| if keep { (id + step + j) % vocab } else { id.wrapping_add(j) })
    };
    flat.ids.iter().zip(&flat.keep).flat_map(of).collect()
}

crate::case::tests! {
    topk_log_probs: TopkLogProbs,
    topk_logits_gradient: TopkLogitsGradient,
    kl_loss: KlLoss,
    bypass_loss: BypassLoss,
    opd_loss: OpdLoss,
    forward_kl_topk: ForwardKlTopk,
    generalized_jsd: GeneralizedJsd,
    topk_jsd: TopkJsd,
    iw_opd: IwOpd,
    ref_kl: RefKl,
    mixed_kl_topk: MixedKlTopk,
}
