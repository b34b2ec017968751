//! What becomes of a batch under the conventions of two frameworks; the conventions themselves JavaScript knows from the build.

use tokenwise::{
    loss::AggregateMode,
    profile::{
        self as core, CompareConfig, CompareScratch, CompareSizes, Difference, Estimator, ProfileInput, QuantityShape,
    },
    Profile,
};
use wasm_bindgen::prelude::wasm_bindgen;

use crate::{
    call::{zeros, Call},
    error::Result,
    export::export,
    js,
    put::known,
    read::{size, Read},
};

#[wasm_bindgen(typescript_custom_section)]
const TYPES: &str = include_str!("profile.ts");

choices! {
    Estimator { "group-relative" => GroupRelative, "leave-one-out" => LeaveOneOut, "whitened" => Whitened }
}

declare!("choice CompareMode |token-mean|token-sum|seq-mean-token-sum|seq-mean-token-mean");
declare!(
    "config CompareConfig gamma?:number,lambda?:nullable,beta?:nullable,clip_low?:number,clip_high?:number,",
    "dual_clip?:nullable,value_clip?:nullable,estimator?:Estimator,mode?:CompareMode"
);

export! {
    #[cfg(feature = "full")]
    REST = 22;
    compare(
        batch:batch, groups:groups, input{
            rewards, log_probs, old_log_probs, scores?, values?, predictions?, ref_log_probs?, rollout_log_probs?
        }, profiles:profiles, config:CompareConfig)
        -> (+{result, shape, index, values:pair, refused:pair, difference, count, causes+:cause})
        => compareProfiles, compareProfilesF64;
}

fn config() -> CompareConfig<'static> {
    let usual = CompareConfig::default();
    CompareConfig {
        gamma: Read::read(usual.gamma),
        lambda: Read::read(None),
        beta: Read::read(None),
        clip_low: Read::read(usual.clip_low),
        clip_high: Read::read(usual.clip_high),
        dual_clip: Read::read(None),
        value_clip: Read::read(None),
        estimator: Read::read(usual.estimator),
        mode: match js::index(0) {
            0 => AggregateMode::TokenMean,
            1 => AggregateMode::TokenSum,
            2 => AggregateMode::SequenceMeanTokenSum,
            _ => AggregateMode::SequenceMeanTokenMean,
        },
    }
}

fn profile() -> Profile {
    Profile::ALL.get(size()).copied().unwrap_or_default()
}

fn compare(call: &mut Call<'_>) -> Result {
    let (config, profiles) = (config(), [profile(), profile()]);
    let (rewards, log_probs, old_log_probs) = (call.real(), call.real(), call.real());
    let input = ProfileInput {
        rewards,
        log_probs,
        old_log_probs,
        scores: call.optional_real(),
        values: call.optional_real(),
        predictions: call.optional_real(),
        ref_log_probs: call.optional_real(),
        rollout_log_probs: call.optional_real(),
    };
    let groups = call.groups()?;
    let sizes = CompareSizes::of(call.batch, &groups)?;
    let scratch = CompareScratch {
        tokens: &mut zeros(sizes.tokens),
        sequences: &mut zeros(sizes.sequences),
        moments: &mut zeros(sizes.groups),
        sums: &mut zeros(sizes.groups),
        keep: &mut zeros(sizes.keep),
    };
    core::compare(call.batch, &groups, input, profiles.map(Profile::conventions), &config, scratch, put)?;
    Ok(())
}

fn put(difference: &Difference<'_>) {
    js::put(1.0);
    js::text(difference.quantity.name());
    js::text(match difference.quantity.shape() {
        QuantityShape::Tokens => "tokens",
        QuantityShape::Sequences => "sequences",
        QuantityShape::Scalar => "scalar",
    });
    known(difference.index.map(|index| index as f64));
    for value in difference.values {
        known(value.ok());
    }
    for value in difference.values {
        match value {
            Ok(_) => js::null(),
            Err(error) => js::text(error.code()),
        }
    }
    js::put(difference.difference);
    js::put(difference.count as f64);
    for convention in difference.named() {
        js::put(1.0);
        js::put(convention as u32 as f64);
    }
    js::put(0.0);
}
