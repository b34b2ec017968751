//! The results of the chain, by name.

/// What one entry of a result refers to.
#[non_exhaustive]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QuantityShape {
    /// A token slot.
    Tokens,
    /// A sequence.
    Sequences,
    /// The whole batch: there is one number.
    Scalar,
}

macro_rules! quantities {
    ($($(#[$doc:meta])* $variant:ident $name:literal $shape:ident,)*) => {
        /// One result of the chain that [`compare`](super::compare()) runs.
        #[non_exhaustive]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Quantity {
            $($(#[$doc])* $variant,)*
        }

        impl Quantity {
            /// All of them, in the order of the chain.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The human-readable name.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$variant => $name,)*
                }
            }

            /// What one entry of it refers to.
            pub const fn shape(self) -> QuantityShape {
                match self {
                    $(Self::$variant => QuantityShape::$shape,)*
                }
            }
        }
    };
}

quantities! {
    /// Token rewards minus the KL penalty.
    Rewards "rewards" Tokens,
    /// The mean KL that goes with them.
    RewardKl "rewards.kl" Scalar,
    /// The score of each sequence.
    Scores "scores" Sequences,
    /// Discounted returns of the rewards.
    Returns "returns" Tokens,
    /// Generalized advantage estimates.
    Gae "gae.advantages" Tokens,
    /// The returns that go with them.
    GaeReturns "gae.returns" Tokens,
    /// Those estimates whitened; without a critic, the returns whitened (REINFORCE++).
    Whitened "whiten" Tokens,
    /// Scores compared within their prompt (GRPO).
    GroupRelative "group_relative" Sequences,
    /// Scores against the others of their prompt (RLOO).
    LeaveOneOut "leave_one_out" Sequences,
    /// Scores against the mean score per token (OPO).
    LengthWeighted "length_weighted_baseline" Sequences,
    /// Scores against their prompt's mean, scaled up (GPG).
    Gpg "gpg_advantage" Sequences,
    /// The advantages that the losses use.
    Advantages "advantages" Tokens,
    /// Weights that correct for the sampler.
    RolloutWeights "rollout_weights" Tokens,
    /// The KL estimate used as a loss.
    Kl "kl" Tokens,
    /// Its mean.
    KlMean "kl.mean" Scalar,
    /// The same, aggregated.
    KlLoss "kl_loss" Scalar,
    /// ∂/∂log_probs of it.
    KlLossGrad "kl_loss.grad" Tokens,
    /// The clipped surrogate.
    Ppo "ppo_clip" Scalar,
    /// ∂/∂log_probs of it.
    PpoGrad "ppo_clip.grad" Tokens,
    /// The share of tokens it clips.
    PpoClipFraction "ppo_clip.clip_fraction" Scalar,
    /// The share of tokens held by its second clip.
    PpoClipFractionLower "ppo_clip.clip_fraction_lower" Scalar,
    /// The KL reported beside it.
    PpoKl "ppo_clip.kl" Scalar,
    /// GSPO.
    Gspo "gspo" Scalar,
    /// ∂/∂log_probs of it.
    GspoGrad "gspo.grad" Tokens,
    /// The share of tokens it clips.
    GspoClipFraction "gspo.clip_fraction" Scalar,
    /// GMPO.
    Gmpo "gmpo" Scalar,
    /// ∂/∂log_probs of it.
    GmpoGrad "gmpo.grad" Tokens,
    /// The share of tokens it clips above.
    GmpoClipFraction "gmpo.clip_fraction" Scalar,
    /// CISPO.
    Cispo "cispo" Scalar,
    /// ∂/∂log_probs of it.
    CispoGrad "cispo.grad" Tokens,
    /// The share of tokens whose ratio it bounds.
    CispoClipFraction "cispo.clip_fraction" Scalar,
    /// SAPO.
    Sapo "sapo" Scalar,
    /// ∂/∂log_probs of it.
    SapoGrad "sapo.grad" Tokens,
    /// The critic's loss.
    Value "value_loss" Scalar,
    /// ∂/∂predictions of it.
    ValueGrad "value_loss.grad" Tokens,
    /// The share of tokens whose clipped error is the larger one.
    ValueClipFraction "value_loss.clip_fraction" Scalar,
}

impl Quantity {
    /// How many results there are.
    pub(super) const COUNT: usize = Self::ALL.len();

    /// The number of earlier results of the same shape, which is its position in the scratch.
    pub(super) fn place(self) -> usize {
        Self::ALL.iter().take_while(|&&other| other != self).filter(|other| other.shape() == self.shape()).count()
    }

    /// The number of results of a shape.
    pub(super) fn with_shape(shape: QuantityShape) -> usize {
        Self::ALL.iter().filter(|quantity| quantity.shape() == shape).count()
    }
}
