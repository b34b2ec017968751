//! A step split into micro-batches and ranks: with global counts every gradient keeps its bits, and the losses add up.

use tokenwise::{divergence::KlInput, loss::*, Divisor, Result};
use tokenwise_tests::{
    generate::{Column, Flat, Number, Random, Spec, World},
    tolerance::assert_bits,
};

use super::check;
use crate::{
    loss::{policy_input, value_input, weighed_input, MODES},
    policy_loss::ClipCov,
};

const RANKS: u64 = 3;

type Loss<R> = fn(&Flat<R>, Aggregate<'_>, &mut [R]) -> Result<f64>;

fn losses<R: Number>() -> Vec<(&'static str, Loss<R>)> {
    vec![
        ("aggregate", |flat, config, out| aggregate(&flat.batch(), flat.column(Column::Kl), &config, out)),
        ("surrogate", |flat, aggregate, out| {
            let config = SurrogateConfig { aggregate, ..Default::default() };
            surrogate(&flat.batch(), policy_input(flat), &config, out)
        }),
        ("ppo_clip", |flat, aggregate, out| {
            let config = PpoConfig { aggregate, ..Default::default() };
            Ok(ppo_clip(&flat.batch(), policy_input(flat), &config, out)?.loss)
        }),
        ("reinforce", |flat, aggregate, out| {
            let config = ReinforceConfig { aggregate, ..Default::default() };
            Ok(reinforce(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("kl_loss", |flat, aggregate, out| {
            let input =
                KlInput { log_probs: flat.column(Column::LogProbs), ref_log_probs: flat.column(Column::RefLogProbs) };
            Ok(kl_loss(&flat.batch(), input, &KlLossConfig { aggregate, ..Default::default() }, out)?.loss)
        }),
        ("opd_loss", |flat, aggregate, out| {
            let PolicyLossInput { log_probs, old_log_probs, weights, .. } = weighed_input(flat, true);
            let teacher_log_probs = flat.column(Column::RefLogProbs);
            let input = OpdLossInput { log_probs, old_log_probs, teacher_log_probs, weights };
            Ok(opd_loss(&flat.batch(), input, &OpdLossConfig { aggregate, ..Default::default() }, out)?.loss)
        }),
        ("cispo", |flat, aggregate, out| {
            let config = CispoConfig { aggregate, ..Default::default() };
            Ok(cispo(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("tis_loss", |flat, aggregate, out| {
            let config = TisLossConfig { aggregate, ..Default::default() };
            Ok(tis_loss(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("sapo", |flat, aggregate, out| {
            let config = SapoConfig { aggregate, ..Default::default() };
            Ok(sapo(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("dppo_tv", |flat, aggregate, out| {
            let config = DppoConfig { aggregate, ..Default::default() };
            Ok(dppo_tv(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("dppo_kl", |flat, aggregate, out| {
            let config = DppoConfig { aggregate, ..Default::default() };
            Ok(dppo_kl(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("gspo", |flat, aggregate, out| {
            let config = GspoConfig { aggregate, ..Default::default() };
            Ok(gspo(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("vespo", |flat, aggregate, out| {
            let config = VespoConfig { aggregate, ..Default::default() };
            Ok(vespo(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("dro", |flat, aggregate, out| {
            let config = DroConfig { beta: 0.5, aggregate, divisor: Divisor::Count };
            Ok(dro(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("gspo by token", |flat, aggregate, out| {
            let config = GspoConfig { form: GspoForm::Token, aggregate, ..Default::default() };
            Ok(gspo(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        // its only aggregation is a mean over sequences
        ("gmpo", |flat, aggregate, out| {
            let config = GmpoConfig { counts: aggregate.counts, ..Default::default() };
            Ok(gmpo(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("topr", |flat, aggregate, out| {
            let config = ToprConfig { aggregate, ..Default::default() };
            topr(&flat.batch(), weighed_input(flat, true), &flat.scores, &config, out)
        }),
        ("clip_cov", |flat, aggregate, out| {
            let config = ClipCovConfig { aggregate, ..Default::default() };
            Ok(clip_cov(&flat.batch(), weighed_input(flat, true), &config, &ClipCov::selected(flat), out)?.loss)
        }),
        // its choice is of the batch at hand; all of it is all of each part
        ("kl_cov", |flat, aggregate, out| {
            let config = KlCovConfig { ratio: 1.0, aggregate, ..Default::default() };
            Ok(kl_cov(&flat.batch(), weighed_input(flat, true), &config, out)?.loss)
        }),
        ("value_loss", |flat, aggregate, out| {
            let config = ValueConfig { aggregate, ..Default::default() };
            Ok(value_loss(&flat.batch(), value_input(flat), &config, out)?.loss)
        }),
        ("entropy_bonus", |flat, aggregate, out| {
            let config = EntropyBonusConfig { aggregate, ..Default::default() };
            entropy_bonus(&flat.batch(), flat.column(Column::Weights), &config, out)
        }),
    ]
}

/// Some sequences of a step, with the counts of all of it.
struct Part<R> {
    flat: Flat<R>,
    prompt_tokens: Vec<u64>,
    counts: GlobalCounts,
}

impl<R: Number> Part<R> {
    fn new(world: &World<R>, range: std::ops::Range<usize>) -> Self {
        let whole = world.packed();
        let mut tokens = vec![0; whole.groups().count()];
        group_tokens(&whole.batch(), &whole.groups(), &mut tokens).unwrap();
        let counts = GlobalCounts {
            tokens: whole.batch().kept() as u64,
            sequences: world.len() as u64,
            prompts: tokens.len() as u64,
            ranks: RANKS,
        };
        // a part names its prompts anew, by first appearance
        let mut seen: Vec<usize> = Vec::new();
        for sequence in range.clone() {
            if !seen.contains(&world.group_of(sequence)) {
                seen.push(world.group_of(sequence));
            }
        }
        let prompt_tokens = seen.iter().map(|&group| tokens[group]).collect();
        Self { flat: world.part(range).packed(), prompt_tokens, counts }
    }

    fn run(&self, loss: Loss<R>, mode: usize) -> (f64, Vec<R>) {
        let mode = [
            AggregateMode::TokenMean,
            AggregateMode::TokenSum,
            AggregateMode::SequenceMeanTokenSum,
            AggregateMode::SequenceMeanTokenSumNorm { scale: 40.0 },
            AggregateMode::SequenceMeanTokenMean,
            AggregateMode::PromptMean { groups: self.flat.groups(), tokens: &self.prompt_tokens },
        ][mode];
        let divisor = Divisor::Count;
        let config = Aggregate { mode, counts: Counts::Global(self.counts), divisor, ..Default::default() };
        let mut grad = vec![R::nan(); self.flat.tokens()];
        (loss(&self.flat, config, &mut grad).unwrap(), grad)
    }
}

fn any_split_is_the_whole<R: Number>(spec: Spec) {
    let world = World::<R>::new(spec);
    if world.packed().batch().kept() == 0 {
        return;
    }
    let mut random = Random::new(spec.seed ^ 0x5911);
    let mut cuts = vec![0, world.len()];
    cuts.extend((0..random.below(4)).map(|_| random.below(world.len() + 1)));
    cuts.sort_unstable();
    let whole = Part::new(&world, 0..world.len());
    let parts: Vec<Part<R>> = cuts.windows(2).map(|cut| Part::new(&world, cut[0]..cut[1])).collect();
    let single: Vec<Part<R>> = (0..world.len()).map(|i| Part::new(&world, i..i + 1)).collect();
    for (name, loss) in losses::<R>() {
        for mode in 0..MODES {
            let what = format!("{name}, mode {mode}, cuts {cuts:?}");
            let (want, want_grad) = whole.run(loss, mode);
            let (results, grads): (Vec<f64>, Vec<Vec<R>>) = parts.iter().map(|part| part.run(loss, mode)).unzip();
            assert_bits(&what, &grads.concat(), &want_grad);
            // both add the same numbers, one per sequence; only the order differs
            let size: f64 = single.iter().map(|part| part.run(loss, mode).0.abs()).sum();
            let got: f64 = results.iter().sum();
            let bound = parts.len() as f64 * f64::EPSILON * size;
            assert!((got - want).abs() <= bound, "{what}: {got:e}, whole {want:e}, {bound:e} apart allowed");
        }
    }
}

#[test]
fn add_up_to_the_step() {
    check(any_split_is_the_whole::<f32>);
    check(any_split_is_the_whole::<f64>);
}

/// One rank that holds the whole step gives `ranks` times the loss of local counts, which the later average undoes.
#[test]
fn ranks_undo_the_average() {
    check(|spec| {
        let world = World::<f64>::new(spec);
        let flat = world.packed();
        // an empty row counts in the step's sequences, and by default not in a batch's
        if flat.batch().kept() == 0 || flat.batch().kept_sequences() != world.len() {
            return;
        }
        let whole = Part::new(&world, 0..world.len());
        let single: Vec<Part<f64>> = (0..world.len()).map(|i| Part::new(&world, i..i + 1)).collect();
        for (name, loss) in losses::<f64>() {
            let (global, _) = whole.run(loss, 0);
            let mut grad = vec![f64::NAN; flat.tokens()];
            let local = loss(&flat, Aggregate::default(), &mut grad).unwrap();
            let size: f64 = single.iter().map(|part| part.run(loss, 0).0.abs()).sum();
            let error = (global / RANKS as f64 - local).abs();
            assert!(error <= 4.0 * f64::EPSILON * size, "{name}: {global:e} over {RANKS} ranks, {local:e} alone");
        }
    });
}

#[test]
fn prompt_counts_add_up() {
    check(|spec| {
        let world = World::<f64>::new(spec);
        let whole = world.packed();
        let mut tokens = vec![0; whole.groups().count()];
        group_tokens(&whole.batch(), &whole.groups(), &mut tokens).unwrap();
        let mut added = vec![0; tokens.len()];
        for sequence in 0..world.len() {
            let part = world.part(sequence..sequence + 1).packed();
            let mut own = [0];
            group_tokens(&part.batch(), &part.groups(), &mut own).unwrap();
            added[world.group_of(sequence)] += own[0];
        }
        assert_eq!(added, tokens);
    });
}
