//! Text that describes how to correct for the sampler.

use tokenwise::rollout::{self, Criterion, WeightBound};

use crate::{
    cases::{Case, Out},
    hash::{Hash, Hashed, Value},
};

impl Hashed for WeightBound {
    fn add_to(&self, hash: &mut Hash) {
        let (kind, lower, upper) = match *self {
            Self::Unbounded => (0_u32, 0.0, 0.0),
            Self::Truncate { upper } => (1, 0.0, upper),
            Self::Zero { lower, upper } => (2, lower, upper),
            Self::Clamp { lower, upper } => (3, lower, upper),
            _ => (u32::MAX, 0.0, 0.0),
        };
        hash.add(&(kind, [lower, upper]));
    }
}

impl Hashed for Criterion {
    fn add_to(&self, hash: &mut Hash) {
        hash.bytes(self.option.name().as_bytes());
        hash.add(&[self.lower, self.upper]);
    }
}

pub(crate) fn parse_rejection<R: Value>(_: &Case<'_, R>, out: &mut Out<'_, R>) {
    for (options, thresholds) in [
        ("token_k1", "0.5_2.0"),
        ("token_k1, seq_mean_k3", "3.1 , 1e-3"),
        ("seq_sum_k1,seq_max_k2,token_k3", "0.1_7,0.3,12"),
        ("token_k4", "1"),
        ("token_k1", "2_1"),
        ("token_k2", "0.1_nan"),
        ("", ""),
    ] {
        let mut criteria = [Criterion::default(); 3];
        let result = rollout::parse_rejection(options, thresholds, &mut criteria);
        out.record((result, criteria));
    }
}

pub(crate) fn parse_weight_bound<R: Value>(_: &Case<'_, R>, out: &mut Out<'_, R>) {
    for text in ["2", " 2.7 ", "0.5_5", "1e-3_1e3", "0.1", "5_0.5", "-1", "a", "1_2_3", ""] {
        out.record(rollout::parse_weight_bound(text));
    }
}
