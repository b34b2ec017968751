//! Stage 4: returns, credit, whitening.

use tokenwise::{advantage::*, Batch, Divisor, Groups, Moments, Spread};

use crate::reader::{others, tokens, Reader, UNTOUCHED};

pub fn run(reader: &mut Reader<'_>, batch: &Batch<'_>) {
    let (n, sequences) = (batch.tokens(), batch.sequences());
    let (a, b, per_row, len) = (reader.numbers(n), reader.numbers(n), reader.numbers(sequences), reader.len(n));
    let across = across(reader);
    let config = GaeConfig { gamma: reader.share(), lambda: reader.share(), across };
    tokens(batch, len, 1, |advantages| {
        let mut returns = vec![UNTOUCHED; n];
        let input = GaeInput { rewards: &a, values: &b, bootstrap: &per_row };
        gae(batch, input, &config, GaeOutput { advantages, returns: &mut returns })
    });
    let config = ReturnsConfig { gamma: config.gamma, across };
    let input = ReturnsInput { rewards: &a, bootstrap: &per_row };
    tokens(batch, len, 1, |out| discounted_returns(batch, input, &config, out));
    tokens(batch, len, 1, |advantages| {
        let mut returns = vec![UNTOUCHED; n];
        let input = MonteCarloInput { rewards: &a, values: &b, bootstrap: &per_row };
        monte_carlo_advantage(batch, input, &config, MonteCarloOutput { advantages, returns: &mut returns })
    });
    let whitening = whitening(reader);
    tokens(batch, len, 1, |out| whiten(batch, &a, &whitening, out));
    let config = ReinforcePlusPlusConfig { gamma: config.gamma, across, whiten: whitening };
    tokens(batch, len, 1, |advantages| {
        let mut returns = vec![UNTOUCHED; n];
        reinforce_plus_plus(batch, input, &config, ReinforcePlusPlusOutput { advantages, returns: &mut returns })
    });
    tokens(batch, len, 1, |out| uniform_credit(batch, &per_row, out));
    let k = reader.byte().into();
    tokens(batch, len, 1, |out| last_k_credit(batch, &per_row, k, out));
    let input = AttentionInput { scores: &per_row, weights: &a };
    tokens(batch, len, 1, |out| attention_credit(batch, input, out));
    tokens(batch, len, 1, |out| broadcast(batch, &per_row, out));
    others(reader.len(sequences), UNTOUCHED, |out| sequence_sums(batch, &a, out));
    let group_ids = reader.ids(sequences, 4);
    let groups = if reader.byte() < 128 { Groups::from_ids(&group_ids) } else { Groups::contiguous(&group_ids) };
    if let Ok(groups) = groups {
        let singleton = singleton(reader);
        let (mut scratch, len) = (vec![Moments::default(); groups.count()], reader.len(groups.sequences()));
        let config = GroupConfig { epsilon: reader.share(), singleton, ..Default::default() };
        others(len, UNTOUCHED, |out| group_relative(&groups, &per_row, &config, &mut scratch, out));
        let config = LeaveOneOutConfig { singleton };
        others(len, UNTOUCHED, |out| leave_one_out(&groups, &per_row, &config, &mut scratch, out));
    }
}

pub fn across(reader: &mut Reader<'_>) -> Across {
    reader.pick(&[Across::StepOver, Across::ZeroStep])
}

pub fn singleton(reader: &mut Reader<'_>) -> Singleton {
    reader.pick(&[Singleton::Zero, Singleton::Raw, Singleton::Undefined])
}

pub fn whitening(reader: &mut Reader<'_>) -> WhitenConfig {
    WhitenConfig {
        spread: reader.pick(&[Spread::Sample, Spread::Population]),
        epsilon: reader.share(),
        place: reader.pick(&[EpsilonPlace::InsideRoot, EpsilonPlace::Outside, EpsilonPlace::FloorVariance]),
        center: reader.pick(&[Center::Shift, Center::KeepMean]),
        scale: reader.pick(&[Scale::StandardDeviation, Scale::Unit]),
        divisor: reader.pick(&[Divisor::Count, Divisor::CountPlusEpsilon]),
    }
}
