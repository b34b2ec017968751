use crate::{
    error::{Error, Result},
    rollout::{Criterion, RejectionOption, WeightBound},
};

/// Parses verl's `rollout_rs` and `rollout_rs_threshold` strings into criteria; returns their number.
///
/// ```text
/// options     "token_k1,seq_mean_k3"      names separated by commas, repeated ones counted once
/// thresholds  "0.5_2.0,0.01"              one for all or one each; k1: "L_U", or "U" for 1/U … U; k2, k3: "U"
/// ```
///
/// **Alignment.** None: text, not tokens.
///
/// **Mask.** None.
///
/// **Errors.** [`Error::Entry`] with the index of the first invalid name or threshold (`got` is its number if there is
/// one, else NaN); [`Error::Length`] if there are no options, if the number of thresholds does not fit the options, or
/// if `out` is too short.
///
/// **Reference.** verl 0.9.1 `_parse_rollout_rs_thresholds`.
///
/// # Example
///
/// ```
/// use tokenwise::rollout::*;
///
/// let mut criteria = [Criterion::default(); 4];
/// let count = parse_rejection("seq_sum_k1, token_k3", "2.0, 0.01", &mut criteria)?;
/// assert_eq!(count, 2);
/// assert_eq!(criteria[0], Criterion { option: RejectionOption::SeqSumK1, lower: 0.5, upper: 2.0 });
/// assert_eq!((criteria[1].option, criteria[1].upper), (RejectionOption::TokenK3, 0.01));
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn parse_rejection(options: &str, thresholds: &str, out: &mut [Criterion]) -> Result<usize> {
    let mut count = 0;
    for (index, name) in Parts(options).enumerate() {
        if option(name).is_none() {
            let must_be = "the name of a rejection option, token_k1 … seq_max_k3";
            return Err(Error::Entry { what: "options", index, must_be, got: f64::NAN });
        }
        count += usize::from(is_first(options, index, name));
    }
    let given = Parts(thresholds).count();
    if count == 0 {
        return Err(Error::Length { what: "options", expected: 1, got: 0 });
    }
    if given != 1 && given != count {
        return Err(Error::Length { what: "thresholds", expected: count, got: given });
    }
    if out.len() < count {
        return Err(Error::Length { what: "out", expected: count, got: out.len() });
    }
    // two passes: the first finds errors, so that `out` is written only if there are none
    for write in [false, true] {
        let mut out = out.iter_mut();
        let names = Parts(options).enumerate().filter(|&(index, name)| is_first(options, index, name));
        for (place, option) in names.filter_map(|(_, name)| option(name)).enumerate() {
            let index = if given == 1 { 0 } else { place };
            let found = criterion(option, Parts(thresholds).nth(index).unwrap_or_default(), index)?;
            if let Some(out) = out.next().filter(|_| write) {
                *out = found;
            }
        }
    }
    Ok(count)
}

/// Parses verl's `rollout_is_threshold`: `"U"` truncates, `"L_U"` sets weights outside to 0.
///
/// ```text
/// "2.0"      Truncate { upper: 2 }        "0.5_5.0"      Zero { lower: 0.5, upper: 5 }
/// ```
///
/// **Alignment.** None: text, not tokens.
///
/// **Mask.** None.
///
/// **Errors.** [`Error::Entry`] if a number cannot be parsed, is not positive, or the two are not in order.
///
/// **Reference.** verl 0.9.1 `_parse_rollout_is_threshold`.
///
/// # Example
///
/// ```
/// use tokenwise::rollout::*;
///
/// assert_eq!(parse_weight_bound("2.0")?, WeightBound::Truncate { upper: 2.0 });
/// assert_eq!(parse_weight_bound("0.5_5.0")?, WeightBound::Zero { lower: 0.5, upper: 5.0 });
/// # Ok::<(), tokenwise::Error>(())
/// ```
pub fn parse_weight_bound(threshold: &str) -> Result<WeightBound> {
    match threshold.trim().split_once('_') {
        None => Ok(WeightBound::Truncate { upper: positive(threshold, 0)? }),
        Some((lower, upper)) => {
            let (lower, upper) = ordered(positive(lower, 0)?, positive(upper, 0)?, 0)?;
            Ok(WeightBound::Zero { lower, upper })
        }
    }
}

/// The non-blank parts between commas.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        while !self.0.is_empty() {
            let (part, rest) = self.0.split_once(',').unwrap_or((self.0, ""));
            self.0 = rest;
            let part = part.trim();
            if !part.is_empty() {
                return Some(part);
            }
        }
        None
    }
}

fn option(name: &str) -> Option<RejectionOption> {
    RejectionOption::ALL.into_iter().find(|option| option.name() == name)
}

/// Whether no earlier part is the same: duplicates count once, at their first occurrence.
fn is_first(options: &str, index: usize, name: &str) -> bool {
    !Parts(options).take(index).any(|other| other == name)
}

fn criterion(option: RejectionOption, threshold: &str, index: usize) -> Result<Criterion> {
    let (lower, upper) = match (option.takes_ratios(), threshold.split_once('_')) {
        (true, Some((lower, upper))) => ordered(positive(lower, index)?, positive(upper, index)?, index)?,
        (true, None) => {
            let upper = positive(threshold, index)?;
            ordered(1.0 / upper, upper, index)?
        }
        // a pair `L_U` fails to parse as a number and is rejected
        (false, _) => (0.0, positive(threshold, index)?),
    };
    Ok(Criterion { option, lower, upper })
}

fn positive(text: &str, index: usize) -> Result<f64> {
    let number = text.trim().parse().unwrap_or(f64::NAN);
    if number > 0.0 && number < f64::INFINITY {
        Ok(number)
    } else {
        Err(Error::Entry { what: "thresholds", index, must_be: "a positive number", got: number })
    }
}

fn ordered(lower: f64, upper: f64, index: usize) -> Result<(f64, f64)> {
    if lower <= upper {
        Ok((lower, upper))
    } else {
        Err(Error::Entry { what: "thresholds", index, must_be: "a lower bound not above the upper one", got: lower })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_options_count_once_and_one_threshold_serves_all() {
        let mut out = [Criterion::default(); 3];
        assert_eq!(parse_rejection("token_k2, token_k2,,seq_max_k3", "0.5", &mut out), Ok(2));
        assert_eq!((out[1].option, out[1].upper), (RejectionOption::SeqMaxK3, 0.5));
    }

    #[test]
    fn what_verl_refuses_is_refused_and_nothing_is_written() {
        let mut out = [Criterion::default(); 2];
        for (options, thresholds) in [
            ("", "1"),
            ("token_k4", "1"),
            ("seq_max_k1", "1"),
            ("token_k2", ""),
            ("token_k2", "0.5_2"),
            ("token_k2", "-1"),
            ("token_k2", "nan"),
            ("token_k1", "2_1"),
            ("token_k1", "0.5"),
            ("token_k1", "x_1"),
            ("token_k1,token_k2", "1,1,1"),
            ("token_k1,token_k2", "1,x"),
            ("token_k1,token_k2,token_k3", "1"),
        ] {
            assert!(parse_rejection(options, thresholds, &mut out).is_err(), "{options} {thresholds}");
        }
        assert_eq!(out, [Criterion::default(); 2]);
        for bad in ["", "0", "2_1", "1_", "x"] {
            assert!(parse_weight_bound(bad).is_err(), "{bad}");
        }
    }
}
