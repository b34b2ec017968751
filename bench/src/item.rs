//! Names of the measured formulas.

/// A formula, or a few of them in a row, over the tokens of a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TokenItem {
    /// Whitened advantages (first output), returns (second).
    Gae,
    /// Group-relative advantages of summed rewards, on every token.
    Grpo,
    /// Dual-clip loss with its metrics, and the gradient.
    Ppo,
    /// The five `analysis/…` metrics.
    Analysis,
    /// Discounted returns.
    Returns,
    /// The K3 estimate.
    Kl,
    /// Whitened advantages.
    Whiten,
    /// The chain: whitened advantages (first output), gradient (second), returns (third).
    Step,
}

impl TokenItem {
    /// All items; other languages refer to an item by its index here.
    pub const ALL: [Self; 8] =
        [Self::Gae, Self::Grpo, Self::Ppo, Self::Analysis, Self::Returns, Self::Kl, Self::Whiten, Self::Step];

    /// Name for `--only`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Gae => "gae",
            Self::Grpo => "grpo",
            Self::Ppo => "ppo",
            Self::Analysis => "analysis",
            Self::Returns => "returns",
            Self::Kl => "kl",
            Self::Whiten => "whiten",
            Self::Step => "step",
        }
    }

    /// Bytes that any algorithm has to read and write per slot: inputs with the mask, and results.
    pub const fn bytes(self) -> (usize, usize) {
        match self {
            Self::Gae => (9, 8),
            Self::Grpo | Self::Returns | Self::Whiten => (5, 4),
            Self::Ppo => (13, 4),
            Self::Analysis => (13, 0),
            Self::Kl => (9, 4),
            Self::Step => (21, 12),
        }
    }
}

/// A formula over rows of logits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogitsItem {
    /// Log-probability of the chosen token, and entropy.
    Forward,
    /// The same, then the gradient of a loss of both.
    Gradient,
}

impl LogitsItem {
    /// All items, as [`TokenItem::ALL`].
    pub const ALL: [Self; 2] = [Self::Forward, Self::Gradient];

    /// Name for `--only`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Forward => "logits",
            Self::Gradient => "logits-gradient",
        }
    }
}
