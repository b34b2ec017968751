//! The chain from scores to returns, for one response.

use serde_json::{Map, Value};
use tokenwise::{
    advantage::{gae, whiten, GaeConfig, GaeInput, GaeOutput, WhitenConfig},
    math::sqrt,
    reward::{shape_rewards, ShapeConfig, ShapeInput},
    Batch, Divisor, Layout, Mask, Moments, Spread,
};

use crate::output::cell as shortened;

/// More tokens would not fit on a terminal.
pub(super) const MOST_TOKENS: usize = 200;

/// Inputs of a chain.
#[derive(Clone, Debug)]
pub(super) struct Chain {
    pub(super) tokens: Vec<String>,
    pub(super) mask: Vec<bool>,
    pub(super) scores: Vec<f64>,
    pub(super) kl: Vec<f64>,
    pub(super) values: Vec<f64>,
    pub(super) beta: f64,
    pub(super) gamma: f64,
    pub(super) lambda: f64,
}

/// Results of a chain.
#[derive(Debug)]
pub(super) struct Found {
    pub(super) rewards: Vec<f64>,
    pub(super) deltas: Vec<f64>,
    pub(super) advantages: Vec<f64>,
    pub(super) returns: Vec<f64>,
    pub(super) whitened: Vec<f64>,
    pub(super) mean: f64,
    pub(super) std: f64,
}

/// A row of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Quantity {
    Score,
    Kl,
    Reward,
    Value,
    Delta,
    Advantage,
    Return,
    Whitened,
}

impl Quantity {
    pub(super) const ALL: [Self; 8] =
        [Self::Score, Self::Kl, Self::Reward, Self::Value, Self::Delta, Self::Advantage, Self::Return, Self::Whitened];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Score => "score",
            Self::Kl => "kl",
            Self::Reward => "reward",
            Self::Value => "value",
            Self::Delta => "delta",
            Self::Advantage => "advantage",
            Self::Return => "return",
            Self::Whitened => "whitened",
        }
    }
}

/// The row and the token, counted from 0, that `row:token` names.
pub(super) fn cell(text: &str, tokens: usize) -> Result<(Quantity, usize), String> {
    let rows: Vec<&str> = Quantity::ALL.iter().map(|row| row.name()).collect();
    let (row, token) =
        text.split_once(':').ok_or_else(|| format!("--cell {text}: expected a row and a token, e.g. advantage:3"))?;
    let row = Quantity::ALL
        .into_iter()
        .find(|known| known.name() == row)
        .ok_or_else(|| format!("--cell {text}: there is no row {row:?}; there are {}", rows.join(", ")))?;
    match token.parse::<usize>() {
        Ok(token) if (1..=tokens).contains(&token) => Ok((row, token - 1)),
        _ => Err(format!("--cell {text}: expected a token from 1 to {tokens}, got {token:?}")),
    }
}

impl Chain {
    /// "1+1=2?" answered in six tokens.
    pub(super) fn one_plus_one() -> Self {
        Self {
            tokens: ["是", "的", "，", "等于", "2", "！"].map(String::from).to_vec(),
            mask: vec![true; 6],
            scores: vec![0.0, 0.0, 0.0, 0.0, 0.0, 1.0],
            kl: vec![0.1, 0.05, -0.05, 0.1, 0.2, 0.05],
            values: vec![0.20, 0.25, 0.30, 0.35, 0.45, 0.60],
            beta: 0.1,
            gamma: 1.0,
            lambda: 0.95,
        }
    }

    pub(super) fn from_json(object: &Map<String, Value>) -> Result<Self, String> {
        let list = |key: &str| {
            object.get(key).map(|value| value.as_array().ok_or(format!("field {key:?}: expected a list"))).transpose()
        };
        let numbers = |key: &str| -> Result<Option<Vec<f64>>, String> {
            let wrong =
                |value: &Value| format!("field {key:?}: expected numbers, got {}", shortened(&value.to_string(), 40));
            let read =
                |list: &Vec<Value>| list.iter().map(|value| value.as_f64().ok_or_else(|| wrong(value))).collect();
            list(key)?.map(read).transpose()
        };
        let one = |key: &str, usual: f64| match object.get(key) {
            None => Ok(usual),
            Some(value) => value
                .as_f64()
                .ok_or(format!("field {key:?}: expected a number, got {}", shortened(&value.to_string(), 40))),
        };
        let values = numbers("values")?.ok_or("field \"values\" is missing")?;
        let n = values.len();
        if n == 0 || n > MOST_TOKENS {
            return Err(format!("field \"values\": expected 1 to {MOST_TOKENS} tokens, got {n}"));
        }
        let tokens = match list("tokens")? {
            None => (1..=n).map(|token| format!("a{token}")).collect(),
            Some(list) => list.iter().map(|token| token.as_str().map_or(token.to_string(), String::from)).collect(),
        };
        let mask = match list("mask")? {
            None => vec![true; n],
            Some(list) => list.iter().map(|keep| keep.as_bool().unwrap_or(keep.as_f64() != Some(0.0))).collect(),
        };
        let chain = Self {
            tokens,
            mask,
            scores: numbers("scores")?.ok_or("field \"scores\" is missing")?,
            kl: numbers("kl")?.unwrap_or_else(|| vec![0.0; n]),
            values,
            beta: one("beta", 0.1)?,
            gamma: one("gamma", 1.0)?,
            lambda: one("lambda", 0.95)?,
        };
        let lengths = [
            ("tokens", chain.tokens.len()),
            ("mask", chain.mask.len()),
            ("scores", chain.scores.len()),
            ("kl", chain.kl.len()),
        ];
        match lengths.iter().find(|(_, length)| *length != n) {
            Some((name, length)) => Err(format!("field {name:?} has {length} entries, field \"values\" has {n}")),
            None => Ok(chain),
        }
    }

    pub(super) fn found(&self) -> tokenwise::Result<Found> {
        let n = self.tokens.len();
        let batch = Batch::new(Layout::padded(1, n)?, Mask::new(&self.mask))?;
        let zeros = || vec![0.0; n];
        let (mut rewards, mut deltas, mut advantages, mut returns) = (zeros(), zeros(), zeros(), zeros());
        shape_rewards(
            &batch,
            ShapeInput { scores: &self.scores, kl: &self.kl },
            &ShapeConfig { beta: self.beta },
            &mut rewards,
        )?;
        let input = GaeInput { rewards: &rewards, values: &self.values, bootstrap: &[0.0] };
        let config = GaeConfig { gamma: self.gamma, lambda: 0.0, ..Default::default() };
        gae(&batch, input, &config, GaeOutput { advantages: &mut deltas, returns: &mut returns })?;
        let config = GaeConfig { lambda: self.lambda, ..config };
        gae(&batch, input, &config, GaeOutput { advantages: &mut advantages, returns: &mut returns })?;
        let mut whitened = vec![f64::NAN; n];
        // a single token has no variance
        let _ = whiten(&batch, &advantages, &WhitenConfig::default(), &mut whitened);
        let moments = Moments::of(&batch, &advantages)?;
        let std = moments.variance(Spread::Sample, Divisor::Count).map_or(f64::NAN, sqrt);
        Ok(Found { rewards, deltas, advantages, returns, whitened, mean: moments.mean, std })
    }

    /// The next kept token.
    pub(super) fn next(&self, token: usize) -> Option<usize> {
        (token + 1..self.mask.len()).find(|next| self.mask[*next])
    }
}

impl Found {
    pub(super) fn row(&self, chain: &Chain, row: Quantity) -> Vec<f64> {
        match row {
            Quantity::Score => &chain.scores,
            Quantity::Kl => &chain.kl,
            Quantity::Reward => &self.rewards,
            Quantity::Value => &chain.values,
            Quantity::Delta => &self.deltas,
            Quantity::Advantage => &self.advantages,
            Quantity::Return => &self.returns,
            Quantity::Whitened => &self.whitened,
        }
        .clone()
    }
}
