//! What keeps a state between calls, and what reads text.

use tokenwise::{
    advantage::{role_baseline, RoleBaseline, RoleInput},
    metric::{Histogram, Reduction, RunningMoments},
    rollout::{parse_rejection, parse_weight_bound, Criterion},
    Batch,
};

use crate::reader::Reader;

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (roles, scores) = (reader.ids(batch.sequences(), 3), reader.numbers(batch.sequences()));
    if let Ok(baseline) = RoleBaseline::new(reader.share()) {
        let mut baselines = vec![baseline; 2];
        let (before, mut out) = (baselines.clone(), vec![9.0; reader.len(scores.len())]);
        let input = RoleInput { roles: &roles, scores: &scores };
        if role_baseline(input, &mut baselines, &mut out).is_err() {
            assert!(baselines == before && out.iter().all(|&x| x == 9.0), "an error wrote something");
        }
    }

    let values = reader.numbers(batch.tokens());
    let mut histogram = Histogram::default();
    if histogram.add(batch, &values).is_err() {
        assert_eq!(histogram.count(), 0, "an error counted something");
    }
    let _ = histogram.quantile(reader.number());
    let mut moments = RunningMoments::default();
    let _ = moments.update(&values);
    let _ = Reduction::of_key("actor/loss/max", reader.byte() % 2 == 0).of(&values);

    let text: String = reader.0.iter().take(40).map(|&byte| char::from(byte)).collect();
    let (options, thresholds) = text.split_at(text.char_indices().nth(20).map_or(text.len(), |(at, _)| at));
    let mut criteria = [Criterion::default(); 4];
    if parse_rejection(options, thresholds, &mut criteria).is_err() {
        assert_eq!(criteria, [Criterion::default(); 4], "an error wrote something");
    }
    let known = reader.pick(&["token_k1", "seq_sum_k1, token_k3", "seq_mean_k3,token_k2"]);
    let _ = parse_rejection(known, &text, &mut criteria);
    let _ = parse_weight_bound(&text);
}
