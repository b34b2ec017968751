use crate::{
    error::{refused, Error, Result},
    rollout::{Criterion, RejectionOption, WeightBound},
};

/// Reads verl's `rollout_rs` and `rollout_rs_threshold` strings into criteria, and gives their number.
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
/// **Errors.** [`Error::Entry`] with the index of the first name or threshold that cannot be right (`got` is its number where there is
/// one, else NaN); [`Error::Length`] if there are no options, if the number of thresholds does not fit them, or if `out` is too short.
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
    parse_rejection_by(&decimal, options, thresholds, out)
}

/// As [`parse_rejection`], for a host that reads numbers itself.
#[doc(hidden)]
#[cfg_attr(not(feature = "small"), allow(unreachable_pub, reason = "only small modules have such a host"))]
pub fn parse_rejection_by(number: Number<'_>, options: &str, thresholds: &str, out: &mut [Criterion]) -> Result<usize> {
    let mut count = 0;
    for (index, name) in Parts(options).enumerate() {
        if option(name).is_none() {
            let must_be = "the name of a rejection option, token_k1 … seq_max_k3";
            return refused(Error::Entry { what: "options", index, must_be, got: f64::NAN });
        }
        count += usize::from(is_first(options, index, name));
    }
    let given = Parts(thresholds).count();
    if count == 0 {
        return refused(Error::Length { what: "options", expected: 1, got: 0 });
    }
    if given != 1 && given != count {
        return refused(Error::Length { what: "thresholds", expected: count, got: given });
    }
    if out.len() < count {
        return refused(Error::Length { what: "out", expected: count, got: out.len() });
    }
    // twice through the text: once to refuse, once to write
    for write in [false, true] {
        let mut out = out.iter_mut();
        let names = Parts(options).enumerate().filter(|&(index, name)| is_first(options, index, name));
        for (place, option) in names.filter_map(|(_, name)| option(name)).enumerate() {
            let index = if given == 1 { 0 } else { place };
            let found = criterion(number, option, Parts(thresholds).nth(index).unwrap_or_default(), index)?;
            if let Some(out) = out.next().filter(|_| write) {
                *out = found;
            }
        }
    }
    Ok(count)
}

/// Reads verl's `rollout_is_threshold`: `"U"` truncates, `"L_U"` puts 0 outside.
///
/// ```text
/// "2.0"      Truncate { upper: 2 }        "0.5_5.0"      Zero { lower: 0.5, upper: 5 }
/// ```
///
/// **Alignment.** None: text, not tokens.
///
/// **Mask.** None.
///
/// **Errors.** [`Error::Entry`] if a number cannot be read, is not positive, or the two are not in order.
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
    parse_weight_bound_by(&decimal, threshold)
}

/// As [`parse_weight_bound`], for a host that reads numbers itself.
#[doc(hidden)]
#[cfg_attr(not(feature = "small"), allow(unreachable_pub, reason = "only small modules have such a host"))]
pub fn parse_weight_bound_by(number: Number<'_>, threshold: &str) -> Result<WeightBound> {
    match cut(trim(threshold), b'_') {
        None => Ok(WeightBound::Truncate { upper: positive(number, threshold, 0)? }),
        Some((lower, upper)) => {
            let (lower, upper) = ordered(positive(number, lower, 0)?, positive(number, upper, 0)?, 0)?;
            Ok(WeightBound::Zero { lower, upper })
        }
    }
}

/// How a number is read; NaN for what is none.
pub(crate) type Number<'a> = &'a dyn Fn(&str) -> f64;

fn decimal(text: &str) -> f64 {
    text.parse().unwrap_or(f64::NAN)
}

/// What is before and after the first `mark`.
#[cfg_attr(compact, inline(never))]
fn cut(text: &str, mark: u8) -> Option<(&str, &str)> {
    let at = text.bytes().position(|byte| byte == mark)?;
    Some((text.get(..at)?, text.get(at + 1..)?))
}

#[cfg_attr(compact, inline(never))]
fn trim(text: &str) -> &str {
    text.trim()
}

/// The parts between commas that are not blank.
struct Parts<'a>(&'a str);

impl<'a> Iterator for Parts<'a> {
    type Item = &'a str;

    #[cfg_attr(compact, inline(never))]
    fn next(&mut self) -> Option<&'a str> {
        while !self.0.is_empty() {
            let (part, rest) = cut(self.0, b',').unwrap_or((self.0, ""));
            self.0 = rest;
            let part = trim(part);
            if !part.is_empty() {
                return Some(part);
            }
        }
        None
    }
}

#[cfg_attr(compact, inline(never))]
fn option(name: &str) -> Option<RejectionOption> {
    RejectionOption::ALL.into_iter().find(|option| option.name() == name)
}

/// Whether no part before this one is the same: each counts once, at its first place.
#[cfg_attr(compact, inline(never))]
fn is_first(options: &str, index: usize, name: &str) -> bool {
    !Parts(options).take(index).any(|other| other == name)
}

#[cfg_attr(compact, inline(never))]
fn criterion(number: Number<'_>, option: RejectionOption, threshold: &str, index: usize) -> Result<Criterion> {
    let (lower, upper) = match (option.takes_ratios(), cut(threshold, b'_')) {
        (true, Some((lower, upper))) => {
            ordered(positive(number, lower, index)?, positive(number, upper, index)?, index)?
        }
        (true, None) => {
            let upper = positive(number, threshold, index)?;
            ordered(1.0 / upper, upper, index)?
        }
        // a pair is no number, and refused as such
        (false, _) => (0.0, positive(number, threshold, index)?),
    };
    Ok(Criterion { option, lower, upper })
}

#[cfg_attr(compact, inline(never))]
fn positive(number: Number<'_>, text: &str, index: usize) -> Result<f64> {
    let number = number(trim(text));
    if number > 0.0 && number < f64::INFINITY {
        Ok(number)
    } else {
        refused(Error::Entry { what: "thresholds", index, must_be: "a positive number", got: number })
    }
}

#[cfg_attr(compact, inline(never))]
fn ordered(lower: f64, upper: f64, index: usize) -> Result<(f64, f64)> {
    if lower <= upper {
        Ok((lower, upper))
    } else {
        refused(Error::Entry {
            what: "thresholds",
            index,
            must_be: "a lower bound not above the upper one",
            got: lower,
        })
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
