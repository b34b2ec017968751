use crate::{
    error::{Error, Result},
    reduce::Sum,
    statistics::Extremes,
};

/// How the values of one metric, one per micro-batch, are combined into one.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[cfg_attr(feature = "serde", derive(serde::Serialize, serde::Deserialize), serde(rename_all = "kebab-case"))]
pub enum Reduction {
    /// Their mean, with equal weight per micro-batch.
    #[default]
    Mean,
    /// Their sum: for losses normalised by the counts of the whole step.
    Sum,
    /// The smallest.
    Min,
    /// The largest.
    Max,
}

impl Reduction {
    /// The rule of verl 0.9.1 for a key: the largest if it contains "max", else the smallest if it contains "min", else
    /// the mean; losses are summed if they were normalised by the counts of the whole step
    /// ([`Counts::Global`](crate::loss::Counts::Global)), and the totals `actor/loss` and `critic/loss` always.
    ///
    /// ```
    /// use tokenwise::metric::Reduction;
    ///
    /// assert_eq!(Reduction::of_key("critic/score/max", true), Reduction::Max);
    /// assert_eq!(Reduction::of_key("actor/pg_loss", true), Reduction::Sum);
    /// assert_eq!(Reduction::of_key("actor/pg_loss", false), Reduction::Mean);
    /// ```
    pub fn of_key(key: &str, global_counts: bool) -> Self {
        let contains = |word: &[u8; 3]| key.as_bytes().windows(3).any(|part| part == word);
        match key {
            "actor/loss" | "critic/loss" => Self::Sum,
            "actor/pg_loss" | "actor/entropy_loss" | "actor/kl_loss" | "critic/vf_loss" if global_counts => Self::Sum,
            _ if contains(b"max") => Self::Max,
            _ if contains(b"min") => Self::Min,
            _ => Self::Mean,
        }
    }

    /// The combined value; NaN if one of the values is NaN.
    ///
    /// # Errors
    ///
    /// [`Error::EmptyMask`] if there are none.
    pub fn of(self, values: &[f64]) -> Result<f64> {
        if values.is_empty() {
            return Err(Error::EmptyMask);
        }
        let (mut sum, mut extremes) = (Sum::default(), Extremes::NONE);
        for &value in values {
            sum.add(value);
            extremes.add(value);
        }
        Ok(match self {
            Self::Mean => sum.value() / values.len() as f64,
            Self::Sum => sum.value(),
            Self::Min => extremes.min,
            Self::Max => extremes.max,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_rule_and_its_edges() {
        let values = [1.0, 4.0, -2.0];
        let reduced = |key| Reduction::of_key(key, false).of(&values);
        assert_eq!(reduced("critic/score/max"), Ok(4.0));
        assert_eq!(reduced("critic/score/min"), Ok(-2.0));
        assert_eq!(reduced("critic/score/mean"), Ok(1.0));
        // "max" is looked for first, and anywhere in the key
        assert_eq!(reduced("global_seqlen/minmax_diff"), Ok(4.0));
        assert_eq!(Reduction::of_key("actor/loss", false), Reduction::Sum);
        assert_eq!(Reduction::Sum.of(&values), Ok(3.0));
        assert_eq!(Reduction::Mean.of(&[]), Err(Error::EmptyMask));
        assert!(Reduction::Max.of(&[1.0, f64::NAN, 2.0]).unwrap().is_nan());
    }
}
