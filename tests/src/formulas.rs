//! Every public formula, and where the parts of it are that a test cannot find by its name alone.

/// Where a formula's golden cases come from.
#[derive(Clone, Copy, Debug)]
pub enum Golden {
    /// The `op` of the cases.
    Ops(&'static [&'static str]),
    /// There are none, because.
    None(&'static str),
}

/// Where a formula runs on the GPU.
#[derive(Clone, Copy, Debug)]
pub enum Shader {
    /// The file under `gpu-shim/shaders`.
    File(&'static str),
    /// It does not, because.
    None(&'static str),
}

const SAME_ROWS: Shader =
    Shader::None("the shader of log_probs_and_entropy reads the same rows; a second one waits for a need");
const SAME_WALK: Shader = Shader::None("the walk of gae with another step; a second shader waits for a need");
const CHEAP: Shader = Shader::None("a few operations a token: the way to the device costs more");
const REDUCTION: Shader = Shader::None("sums in f64, which WGSL has not");
const SEQUENCES: Shader = Shader::None("one number a sequence: too little work for a device");

/// One formula of the library.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// For tables.
    pub formula: Formula,
    /// As the library spells it.
    pub name: &'static str,
    /// The module it is exported from.
    pub stage: &'static str,
    /// Its golden cases.
    pub golden: Golden,
    /// Its shader.
    pub shader: Shader,
}

macro_rules! formulas {
    ($($stage:literal: { $($variant:ident $name:literal $golden:expr, $shader:expr;)* })*) => {
        /// A public formula.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Formula {
            $($(#[doc = concat!("`", $name, "`")] $variant,)*)*
        }

        /// All formulas, in the order of the stages.
        pub const FORMULAS: &[Entry] = &[
            $($(Entry { formula: Formula::$variant, name: $name, stage: $stage, golden: $golden, shader: $shader },)*)*
        ];
    };
}

formulas! {
    "policy": {
        LogProbsAndEntropy "log_probs_and_entropy" Golden::Ops(&["token_log_probs", "entropy"]), Shader::File("policy/log_probs.wgsl");
        TokenLogProbs "token_log_probs" Golden::Ops(&["token_log_probs"]), SAME_ROWS;
        Entropy "entropy" Golden::Ops(&["entropy"]), SAME_ROWS;
        SumSquaredProbs "sum_squared_probs" Golden::Ops(&["sum_pi_squared"]), SAME_ROWS;
        LogitsGradient "logits_gradient" Golden::Ops(&["logits_grad"]), SAME_ROWS;
    }
    "divergence": {
        KlEstimate "kl_estimate" Golden::Ops(&["kl"]), CHEAP;
        KlGradient "kl_gradient" Golden::Ops(&["kl"]), CHEAP;
        KlExact "kl_exact" Golden::Ops(&["kl_full"]), SAME_ROWS;
        KlExactGradient "kl_exact_gradient" Golden::None("no peer differentiates it; held to finite differences"), SAME_ROWS;
    }
    "reward": {
        PlaceScores "place_scores" Golden::Ops(&["place_scores"]), CHEAP;
        ShapeRewards "shape_rewards" Golden::Ops(&["shape_rewards"]), CHEAP;
        KlInReward "kl_in_reward" Golden::Ops(&["kl_in_reward"]), REDUCTION;
        OverlongPenalty "overlong_penalty" Golden::Ops(&["overlong_penalty"]), SEQUENCES;
    }
    "advantage": {
        DiscountedReturns "discounted_returns" Golden::Ops(&["discounted_returns"]), SAME_WALK;
        Gae "gae" Golden::Ops(&["gae"]), Shader::File("advantage/gae.wgsl");
        MonteCarloAdvantage "monte_carlo_advantage" Golden::Ops(&["monte_carlo_advantage"]), SAME_WALK;
        UniformCredit "uniform_credit" Golden::Ops(&["uniform_credit"]), CHEAP;
        LastKCredit "last_k_credit" Golden::Ops(&["last_k_credit"]), CHEAP;
        AttentionCredit "attention_credit" Golden::Ops(&["attention_credit"]), REDUCTION;
        GroupRelative "group_relative" Golden::Ops(&["grpo"]), SEQUENCES;
        LeaveOneOut "leave_one_out" Golden::Ops(&["rloo"]), SEQUENCES;
        Broadcast "broadcast" Golden::Ops(&["grpo", "rloo"]), CHEAP;
        SequenceSums "sequence_sums" Golden::Ops(&["grpo", "rloo"]), REDUCTION;
        Whiten "whiten" Golden::Ops(&["masked_whiten"]), REDUCTION;
    }
    "loss": {
        Aggregate "aggregate" Golden::Ops(&["aggregate"]), REDUCTION;
        GroupTokens "group_tokens" Golden::None("counts whole numbers; held to the textbook"), SEQUENCES;
        Surrogate "surrogate" Golden::Ops(&["surrogate"]), REDUCTION;
        PpoClip "ppo_clip" Golden::Ops(&["ppo_clip"]), REDUCTION;
        ValueLoss "value_loss" Golden::Ops(&["value_loss"]), REDUCTION;
        EntropyBonus "entropy_bonus" Golden::Ops(&["entropy_bonus"]), REDUCTION;
    }
    "metric": {
        Mean "mean" Golden::Ops(&["masked_mean"]), REDUCTION;
        Variance "variance" Golden::Ops(&["masked_var"]), REDUCTION;
        Correlation "correlation" Golden::Ops(&["correlation"]), REDUCTION;
        ExplainedVariance "explained_variance" Golden::Ops(&["explained_variance"]), REDUCTION;
        KlMeans "kl_means" Golden::Ops(&["kl_means"]), REDUCTION;
        ClipFractions "clip_fractions" Golden::Ops(&["clip_fractions"]), REDUCTION;
        Analysis "analysis" Golden::Ops(&["analysis"]), REDUCTION;
    }
    "layout": {
        Shift "shift" Golden::None("a copy; every golden case is aligned before it is stored"), CHEAP;
    }
}

impl Formula {
    /// Its line in [`FORMULAS`].
    pub fn entry(self) -> &'static Entry {
        &FORMULAS[self as usize]
    }
}
