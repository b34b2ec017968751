//! Aggregations that cannot be right, through every function that takes one.

use tokenwise::{loss::*, Batch, Error, Groups, Layout, Mask};

use super::{Ended, Unwritten};

type Run = fn(&Batch<'_>, Aggregate<'_>, &mut [f64]) -> tokenwise::Result<f64>;

const INPUT: [f64; 4] = [0.25, 0.5, -1.0, 2.0];

const POLICY: PolicyLossInput<'static, f64> =
    PolicyLossInput { log_probs: &INPUT, old_log_probs: &INPUT, advantages: &INPUT, weights: None };

const LOSSES: &[(&str, Run)] = &[
    ("aggregate", |batch, config, out| aggregate(batch, &INPUT, &config, out)),
    ("surrogate", |batch, aggregate, out| {
        surrogate(batch, POLICY, &SurrogateConfig { aggregate, ..Default::default() }, out)
    }),
    ("ppo_clip", |batch, aggregate, out| {
        ppo_clip(batch, POLICY, &PpoConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("reinforce", |batch, aggregate, out| {
        reinforce(batch, POLICY, &ReinforceConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("cispo", |batch, aggregate, out| {
        cispo(batch, POLICY, &CispoConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("tis_loss", |batch, aggregate, out| {
        tis_loss(batch, POLICY, &TisLossConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("sapo", |batch, aggregate, out| {
        sapo(batch, POLICY, &SapoConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("dppo_tv", |batch, aggregate, out| {
        dppo_tv(batch, POLICY, &DppoConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("dppo_kl", |batch, aggregate, out| {
        dppo_kl(batch, POLICY, &DppoConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("gspo", |batch, aggregate, out| {
        gspo(batch, POLICY, &GspoConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("vespo", |batch, aggregate, out| {
        vespo(batch, POLICY, &VespoConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("kl_cov", |batch, aggregate, out| {
        kl_cov(batch, POLICY, &KlCovConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("dro", |batch, aggregate, out| {
        let config = DroConfig { beta: 1.0, aggregate, divisor: Default::default() };
        dro(batch, POLICY, &config, out).map(|result| result.loss)
    }),
    ("clip_cov", |batch, aggregate, out| {
        let config = ClipCovConfig { aggregate, ..Default::default() };
        clip_cov(batch, POLICY, &config, &[false, true, false, true], out).map(|result| result.loss)
    }),
    ("topr", |batch, aggregate, out| {
        topr(batch, POLICY, &[1.0, -1.0], &ToprConfig { aggregate, ..Default::default() }, out)
    }),
    ("value_loss", |batch, aggregate, out| {
        let input = ValueLossInput { predictions: &INPUT, values: &INPUT, returns: &INPUT };
        value_loss(batch, input, &ValueConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("kl_loss", |batch, aggregate, out| {
        let input = tokenwise::divergence::KlInput { log_probs: &INPUT, ref_log_probs: &INPUT };
        kl_loss(batch, input, &KlLossConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("opd_loss", |batch, aggregate, out| {
        let input = OpdLossInput { log_probs: &INPUT, old_log_probs: &INPUT, teacher_log_probs: &INPUT, weights: None };
        opd_loss(batch, input, &OpdLossConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("ref_kl", |batch, aggregate, out| {
        let input = RefKlInput { log_probs: &INPUT, old_log_probs: &INPUT, ref_log_probs: &INPUT, weights: None };
        ref_kl(batch, input, &RefKlConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("iw_opd", |batch, aggregate, out| {
        let input = IwOpdInput { log_probs: &INPUT, old_log_probs: &INPUT, teacher_log_probs: &INPUT };
        iw_opd(batch, input, &IwOpdConfig { aggregate, ..Default::default() }, out).map(|result| result.loss)
    }),
    ("topk_jsd", |batch, aggregate, out| {
        let input = TopKInput { log_probs: &INPUT, teacher_log_probs: &INPUT, k: 1, weights: None };
        topk_jsd(batch, input, &TopKJsdConfig { aggregate, ..Default::default() }, out)
    }),
    ("generalized_jsd", |batch, aggregate, out| {
        let input = JsdInput { logits: &INPUT, teacher_logits: &INPUT, vocab: 1, weights: None };
        generalized_jsd(batch, input, &JsdConfig { aggregate, ..Default::default() }, out)
    }),
    ("entropy_bonus", |batch, aggregate, out| {
        entropy_bonus(batch, &INPUT, &EntropyBonusConfig { aggregate, ..Default::default() }, out)
    }),
];

fn refused(mask: [bool; 4], config: Aggregate<'_>, error: Error) {
    let batch = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&mask)).unwrap();
    for (name, run) in LOSSES {
        let mut out = [f64::UNWRITTEN; 4];
        let result = run(&batch, config, &mut out);
        Ended::new(result).with(&out).refused(&format!("{name} with {config:?}"), error);
    }
}

const MASK: [bool; 4] = [true, false, true, true];

fn modes<'a>(groups: Groups<'a>, tokens: &'a [u64]) -> [AggregateMode<'a>; 6] {
    [
        AggregateMode::TokenMean,
        AggregateMode::TokenSum,
        AggregateMode::SequenceMeanTokenSum,
        AggregateMode::SequenceMeanTokenSumNorm { scale: 3.0 },
        AggregateMode::SequenceMeanTokenMean,
        AggregateMode::PromptMean { groups, tokens },
    ]
}

#[test]
fn global_counts() {
    let all = GlobalCounts { tokens: 9, sequences: 4, prompts: 2, ranks: 2 };
    let groups = Groups::from_ids(&[0, 1]).unwrap();
    let needed = ["tokens", "", "sequences", "sequences", "sequences", "prompts"];
    for (mode, needed) in modes(groups, &[9, 9]).into_iter().zip(needed) {
        for what in ["ranks", "tokens", "sequences", "prompts"] {
            let mut counts = all;
            match what {
                "ranks" => counts.ranks = 0,
                "tokens" => counts.tokens = 0,
                "sequences" => counts.sequences = 0,
                _ => counts.prompts = 0,
            }
            let config = Aggregate { mode, counts: Counts::Global(counts), ..Default::default() };
            if what == "ranks" || what == needed {
                refused(MASK, config, Error::Config { what, must_be: "at least 1", got: 0.0 });
            } else {
                // only the counts that the mode divides by are looked at
                let batch = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&MASK)).unwrap();
                for (name, run) in LOSSES {
                    let mut out = [f64::UNWRITTEN; 4];
                    let result = run(&batch, config, &mut out);
                    Ended::new(result).with(&out).accepted(name);
                }
            }
        }
    }
}

#[test]
fn nothing_kept() {
    let groups = Groups::from_ids(&[0, 1]).unwrap();
    for mode in modes(groups, &[9, 9]) {
        // a sum of nothing is 0, a mean of nothing is not defined
        if mode != AggregateMode::TokenSum {
            refused([false; 4], Aggregate { mode, ..Default::default() }, Error::EmptyMask);
        }
        // a micro-batch of a larger step may be empty: it adds nothing
        let counts = Counts::Global(GlobalCounts { tokens: 9, sequences: 4, prompts: 2, ranks: 1 });
        let batch = Batch::new(Layout::padded(2, 2).unwrap(), Mask::new(&[false; 4])).unwrap();
        for (name, run) in LOSSES {
            let mut out = [f64::UNWRITTEN; 4];
            let loss = run(&batch, Aggregate { mode, counts, ..Default::default() }, &mut out).unwrap();
            assert_eq!((loss, out), (0.0, [0.0; 4]), "{name}");
        }
    }
}

#[test]
fn scales() {
    for scale in [0.0, -1.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        let mode = AggregateMode::SequenceMeanTokenSumNorm { scale };
        let error = Error::Config { what: "scale", must_be: "finite and positive", got: scale };
        refused(MASK, Aggregate { mode, ..Default::default() }, error);
    }
}

#[test]
fn prompts() {
    let with = |groups, tokens| Aggregate { mode: AggregateMode::PromptMean { groups, tokens }, ..Default::default() };
    let three = Groups::from_ids(&[0, 1, 1]).unwrap();
    refused(MASK, with(three, &[9, 9]), Error::Length { what: "groups", expected: 2, got: 3 });
    let two = Groups::from_ids(&[0, 1]).unwrap();
    for tokens in [&[9][..], &[9, 9, 9], &[]] {
        refused(MASK, with(two, tokens), Error::Length { what: "tokens", expected: 2, got: tokens.len() });
    }
    let must_be = "at least the kept tokens of each sequence of the prompt";
    refused(MASK, with(two, &[1, 1]), Error::Entry { what: "tokens", index: 1, must_be, got: 1.0 });
}
