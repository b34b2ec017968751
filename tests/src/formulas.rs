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
const ORDER: Shader = Shader::None("an order of all tokens, which no thread knows alone");
const TEXT: Shader = Shader::None("text");
const CHOICE: Shader = Shader::None("one draw after another");
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
        TopkLogProbs "topk_log_probs" Golden::Ops(&["forward_kl_topk"]), SAME_ROWS;
        TopkLogitsGradient "topk_logits_gradient" Golden::Ops(&["forward_kl_topk"]), SAME_ROWS;
        LogitsGradient "logits_gradient" Golden::Ops(&["logits_grad"]), SAME_ROWS;
    }
    "divergence": {
        KlEstimate "kl_estimate" Golden::Ops(&["kl"]), CHEAP;
        KlGradient "kl_gradient" Golden::Ops(&["kl"]), CHEAP;
        KlExact "kl_exact" Golden::Ops(&["kl_full"]), SAME_ROWS;
        KlExactGradient "kl_exact_gradient" Golden::Ops(&["kl_full"]), SAME_ROWS;
        KlImportanceWeighted "kl_importance_weighted" Golden::Ops(&["kl_importance_weighted"]), CHEAP;
        KlImportanceWeightedGradient "kl_importance_weighted_gradient" Golden::Ops(&["kl_importance_weighted"]), CHEAP;
    }
    "reward": {
        PlaceScores "place_scores" Golden::Ops(&["place_scores"]), CHEAP;
        ShapeRewards "shape_rewards" Golden::Ops(&["shape_rewards"]), CHEAP;
        KlInReward "kl_in_reward" Golden::Ops(&["kl_in_reward"]), REDUCTION;
        OverlongPenalty "overlong_penalty" Golden::Ops(&["overlong_penalty"]), SEQUENCES;
        KlInScores "kl_in_scores" Golden::Ops(&["kl_in_scores"]), REDUCTION;
        ClippedRewards "clipped_rewards" Golden::Ops(&["clipped_rewards"]), CHEAP;
        StopProperlyPenalty "stop_properly_penalty" Golden::Ops(&["stop_properly_penalty"]), SEQUENCES;
        MissingEosPenalty "missing_eos_penalty" Golden::None("TRL subtracts it inside a training step, of online DPO; held to the textbook"), SEQUENCES;
        RewardScaleClip "reward_scale_clip" Golden::Ops(&["reward_scale_clip"]), SEQUENCES;
        RepetitionPenalty "repetition_penalty" Golden::Ops(&["repetition_penalty"]), SEQUENCES;
        LengthPenaltyGroup "length_penalty_group" Golden::None("prime-rl is not on PyPI; held to the textbook"), SEQUENCES;
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
        TdLambda "td_lambda" Golden::Ops(&["td_lambda"]), SAME_WALK;
        NStepReturns "n_step_returns" Golden::Ops(&["n_step_returns"]), SAME_WALK;
        Upgo "upgo" Golden::Ops(&["upgo"]), SAME_WALK;
        Vtrace "vtrace" Golden::Ops(&["vtrace"]), SAME_WALK;
        PufferAdvantage "puffer_advantage" Golden::None("PufferLib has no wheel, and its build downloads other software; held to the textbook and to gae"), SAME_WALK;
        Retrace "retrace" Golden::Ops(&["retrace"]), SAME_WALK;
        GaeDecoupled "gae_decoupled" Golden::None("NeMo-RL on PyPI is an empty placeholder; held to the textbook and to gae"), SAME_WALK;
        BestOfGroup "best_of_group" Golden::Ops(&["grpo_passk"]), SEQUENCES;
        LengthWeightedBaseline "length_weighted_baseline" Golden::Ops(&["opo"]), SEQUENCES;
        GpgAdvantage "gpg_advantage" Golden::Ops(&["gpg_advantage"]), SEQUENCES;
        LeaveOneOutScaled "leave_one_out_scaled" Golden::None("NeMo-RL on PyPI is an empty placeholder; held to the textbook"), SEQUENCES;
        MaxRl "max_rl" Golden::Ops(&["max_rl"]), SEQUENCES;
        NormalizeScores "normalize_scores" Golden::Ops(&["normalize_scores"]), SEQUENCES;
        DecoupledScores "decoupled_scores" Golden::Ops(&["gdpo"]), SEQUENCES;
        RoleBaseline "role_baseline" Golden::None("prime-rl is not on PyPI; held to the textbook"), SEQUENCES;
        ReinforcePlusPlus "reinforce_plus_plus" Golden::Ops(&["reinforce_plus_plus"]), REDUCTION;
        ReinforcePlusPlusBaseline "reinforce_plus_plus_baseline" Golden::Ops(&["reinforce_plus_plus_baseline"]), REDUCTION;
        Remax "remax" Golden::Ops(&["remax"]), SAME_WALK;
        Gdpo "gdpo" Golden::Ops(&["gdpo"]), REDUCTION;
        OptimalTokenBaseline "optimal_token_baseline" Golden::Ops(&["optimal_token_baseline"]), REDUCTION;
        TirOptimalTokenBaseline "tir_optimal_token_baseline" Golden::Ops(&["tir_optimal_token_baseline"]), REDUCTION;
        OpdAdvantage "opd_advantage" Golden::None("one subtraction; held to the textbook"), CHEAP;
        MinillmAdvantage "minillm_advantage" Golden::None("TRL 1.16 has no MiniLLM trainer any more; held to the textbook"), REDUCTION;
    }
    "rollout": {
        RolloutWeights "rollout_weights" Golden::Ops(&["rollout_is"]), REDUCTION;
        RolloutWeightMetrics "rollout_weight_metrics" Golden::Ops(&["rollout_is"]), REDUCTION;
        RolloutRejection "rollout_rejection" Golden::Ops(&["rollout_rejection"]), REDUCTION;
        RolloutRejectionMetrics "rollout_rejection_metrics" Golden::Ops(&["rollout_rejection"]), REDUCTION;
        RolloutMismatch "rollout_mismatch" Golden::Ops(&["rollout_metrics"]), REDUCTION;
        ParseRejection "parse_rejection" Golden::Ops(&["rollout_rejection"]), TEXT;
        ParseWeightBound "parse_weight_bound" Golden::Ops(&["rollout_is"]), TEXT;
        RolloutGate "rollout_gate" Golden::Ops(&["rollout_gate"]), REDUCTION;
        OffPolicySequenceMask "off_policy_sequence_mask" Golden::Ops(&["off_policy_sequence_mask"]), REDUCTION;
        KlMask "kl_mask" Golden::None("TorchRL masks inside its loss, which wants a language model; held to the textbook"), CHEAP;
        M2poMask "m2po_mask" Golden::Ops(&["m2po_mask"]), ORDER;
        SequenceVeto "sequence_veto" Golden::Ops(&["sequence_veto"]), REDUCTION;
        HighEntropyMask "high_entropy_mask" Golden::Ops(&["high_entropy_mask"]), ORDER;
        ProbabilityDifference "probability_difference" Golden::Ops(&["probability_difference"]), REDUCTION;
        ResponseMaskFromEos "response_mask_from_eos" Golden::Ops(&["response_mask_from_eos"]), CHEAP;
        DynamicSamplingFilter "dynamic_sampling_filter" Golden::Ops(&["dynamic_sampling_filter"]), SEQUENCES;
        PfPpoWeights "pf_ppo_weights" Golden::Ops(&["pf_ppo_weights"]), SEQUENCES;
        PfPpoIndices "pf_ppo_indices" Golden::None("drawn by a generator of its own; held to the textbook"), CHOICE;
    }
    "loss": {
        Aggregate "aggregate" Golden::Ops(&["aggregate"]), REDUCTION;
        GroupTokens "group_tokens" Golden::None("counts whole numbers; held to the textbook"), SEQUENCES;
        Surrogate "surrogate" Golden::Ops(&["surrogate"]), REDUCTION;
        PpoClip "ppo_clip" Golden::Ops(&["ppo_clip"]), REDUCTION;
        Reinforce "reinforce" Golden::Ops(&["reinforce"]), REDUCTION;
        Cispo "cispo" Golden::Ops(&["cispo"]), REDUCTION;
        TisLoss "tis_loss" Golden::Ops(&["tis_loss"]), REDUCTION;
        Sapo "sapo" Golden::Ops(&["sapo"]), REDUCTION;
        Dro "dro" Golden::Ops(&["dro"]), REDUCTION;
        DppoTv "dppo_tv" Golden::Ops(&["dppo_tv"]), REDUCTION;
        DppoKl "dppo_kl" Golden::Ops(&["dppo_kl"]), REDUCTION;
        Gspo "gspo" Golden::Ops(&["gspo"]), REDUCTION;
        Luspo "luspo" Golden::Ops(&["luspo"]), REDUCTION;
        Gmpo "gmpo" Golden::Ops(&["gmpo"]), REDUCTION;
        Vespo "vespo" Golden::Ops(&["vespo"]), REDUCTION;
        ClipCov "clip_cov" Golden::Ops(&["clip_cov"]), REDUCTION;
        ClipCovSelection "clip_cov_selection" Golden::None("drawn by a generator of its own; held to the textbook, and to be uniform"), CHOICE;
        KlCov "kl_cov" Golden::Ops(&["kl_cov"]), REDUCTION;
        Topr "topr" Golden::Ops(&["topr"]), REDUCTION;
        Gvpo "gvpo" Golden::None("verl-recipe is not on PyPI; held to the textbook and to finite differences"), REDUCTION;
        PositiveNll "positive_nll" Golden::None("NeMo-RL on PyPI is an empty placeholder; held to the textbook and to finite differences"), REDUCTION;
        KlLoss "kl_loss" Golden::Ops(&["kl_loss"]), REDUCTION;
        BypassLoss "bypass_loss" Golden::Ops(&["bypass_mode"]), REDUCTION;
        OpdLoss "opd_loss" Golden::Ops(&["opd_loss"]), REDUCTION;
        ForwardKlTopk "forward_kl_topk" Golden::Ops(&["forward_kl_topk"]), REDUCTION;
        GeneralizedJsd "generalized_jsd" Golden::Ops(&["generalized_jsd"]), REDUCTION;
        TopkJsd "topk_jsd" Golden::Ops(&["topk_jsd"]), REDUCTION;
        IwOpd "iw_opd" Golden::Ops(&["iw_opd"]), REDUCTION;
        RefKl "ref_kl" Golden::None("prime-rl is not installed with the peers; held to the textbook and to finite differences"), REDUCTION;
        MixedKlTopk "mixed_kl_topk" Golden::None("NeMo-RL is not installed with the peers; held to the textbook and to finite differences"), REDUCTION;
        TokenWeights "token_weights" Golden::Ops(&["dual_game"]), CHEAP;
        AdvantageJump "advantage_jump" Golden::Ops(&["dual_game"]), CHEAP;
        StructuralWeights "structural_weights" Golden::Ops(&["dual_game"]), REDUCTION;
        TrieComplexity "trie_complexity" Golden::Ops(&["dual_game"]), ORDER;
        DualGame "dual_game" Golden::Ops(&["dual_game"]), REDUCTION;
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
        RowSums "row_sums" Golden::Ops(&["row_sums"]), REDUCTION;
        RowMeans "row_means" Golden::Ops(&["row_means"]), REDUCTION;
        RowNormalize "row_normalize" Golden::Ops(&["row_normalize"]), REDUCTION;
        Quantile "quantile" Golden::Ops(&["quantile"]), ORDER;
        EffectiveSampleSize "effective_sample_size" Golden::None("verl divides it by the count and adds 1e-8; its key is in rollout_is; held to the textbook"), REDUCTION;
        VarianceProxy "variance_proxy" Golden::Ops(&["variance_proxy"]), REDUCTION;
        VerlMetrics "verl_metrics" Golden::Ops(&["verl_metrics"]), REDUCTION;
        TrlMetrics "trl_metrics" Golden::Ops(&["trl_metrics"]), REDUCTION;
        OpenRlhfMetrics "openrlhf_metrics" Golden::Ops(&["openrlhf_metrics"]), REDUCTION;
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
