//! Medians of wall time; competitors are measured in turns.

use std::time::{Duration, Instant};

/// Minimum duration of a sample: a call is repeated until this has passed, so that timer and call overhead are
/// negligible.
pub const SAMPLE: Duration = Duration::from_millis(2);

/// A candidate.
pub struct Contestant<'a, T> {
    /// Its name.
    pub name: &'a str,
    /// One call.
    pub call: fn(&mut T, usize),
    /// Passed to the call.
    pub argument: usize,
}

/// Milliseconds per call.
#[derive(Clone, Copy, Debug)]
pub struct Time {
    /// Median.
    pub median: f64,
    /// Minimum.
    pub least: f64,
    /// Number of samples.
    pub samples: usize,
}

/// Measures all candidates in turns for `budget`, but each at least three times.
pub fn measure<T>(data: &mut T, contestants: &[Contestant<'_, T>], budget: Duration) -> Vec<Time> {
    // warm-up: faults in pages and code
    let repeats: Vec<u32> = contestants
        .iter()
        .map(|contestant| {
            (contestant.call)(data, contestant.argument);
            let begin = Instant::now();
            (contestant.call)(data, contestant.argument);
            let once = begin.elapsed().max(Duration::from_nanos(10));
            SAMPLE.as_nanos().div_ceil(once.as_nanos()) as u32
        })
        .collect();
    let mut times = vec![Vec::new(); contestants.len()];
    let begin = Instant::now();
    while begin.elapsed() < budget || times[0].len() < 3 {
        for ((contestant, &repeats), times) in contestants.iter().zip(&repeats).zip(&mut times) {
            let begin = Instant::now();
            for _ in 0..repeats {
                (contestant.call)(data, contestant.argument);
            }
            times.push(begin.elapsed().as_secs_f64() * 1e3 / f64::from(repeats));
        }
    }
    times.into_iter().map(summary).collect()
}

fn summary(mut times: Vec<f64>) -> Time {
    times.sort_by(f64::total_cmp);
    Time { median: times[times.len() / 2], least: times[0], samples: times.len() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_are_called_in_turns() {
        let mut order = Vec::new();
        let call = |order: &mut Vec<usize>, argument| {
            order.push(argument);
            std::thread::sleep(Duration::from_millis(3));
        };
        let both = [0, 1].map(|argument| Contestant { name: "", call, argument });
        let times = measure(&mut order, &both, Duration::ZERO);
        assert_eq!(order, [0, 0, 1, 1, 0, 1, 0, 1, 0, 1]);
        assert!(times.iter().all(|time| time.samples == 3 && time.least >= 3.0 && time.median >= time.least));
    }
}
