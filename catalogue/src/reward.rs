//! Scores and KL to token rewards.

use tokenwise::reward::{self, ShapeInput};
#[cfg(feature = "full")]
use tokenwise::reward::{
    ClippedRewardsInput, GroupLengthInput, KlInRewardInput, KlInScoresInput, MissingEosInput, OverlongInput,
    TruncatedInput,
};

use crate::entry::{formulas, sequence, token};
#[cfg(feature = "full")]
use crate::Element::{Flag, Index};

formulas! { "reward":
    place_scores(Batch; sequence("scores")) -> (token("rewards")) [] |call| {
        Ok(reward::place_scores(&call.batch()?, call.real("scores")?, call.outputs.real_mut("rewards")?)?)
    }
    shape_rewards(Batch; token("scores"), token("kl")) ShapeConfig -> (token("rewards")) [] |call| {
        let input = ShapeInput { scores: call.real("scores")?, kl: call.real("kl")? };
        Ok(reward::shape_rewards(&call.batch()?, input, &call.config()?, call.outputs.real_mut("rewards")?)?)
    }
    #[cfg(feature = "full")]
    kl_in_reward(Batch; token("scores"), token("old_log_probs"), token("ref_log_probs")) KlRewardConfig
        -> (token("rewards")) ["mean_kl"] |call|
    {
        let input = KlInRewardInput {
            scores: call.real("scores")?,
            old_log_probs: call.real("old_log_probs")?,
            ref_log_probs: call.real("ref_log_probs")?,
        };
        let kl = reward::kl_in_reward(&call.batch()?, input, &call.config()?, call.outputs.real_mut("rewards")?)?;
        call.give([("mean_kl", kl)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    kl_in_scores(Batch; sequence("scores"), token("old_log_probs"), token("ref_log_probs")) KlInScoresConfig
        -> (sequence("out")) [] |call|
    {
        let input = KlInScoresInput {
            scores: call.real("scores")?,
            old_log_probs: call.real("old_log_probs")?,
            ref_log_probs: call.real("ref_log_probs")?,
        };
        Ok(reward::kl_in_scores(&call.batch()?, input, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    clipped_rewards(Batch; sequence("scores"), token("kl")) ClippedRewardsConfig -> (token("rewards")) [] |call| {
        let input = ClippedRewardsInput { scores: call.real("scores")?, kl: call.real("kl")? };
        Ok(reward::clipped_rewards(&call.batch()?, input, &call.config()?, call.outputs.real_mut("rewards")?)?)
    }
    #[cfg(feature = "full")]
    overlong_penalty(Sequences; sequence("scores"), sequence("lengths").of(Index)) OverlongConfig
        -> (sequence("out")) [] |call|
    {
        let input = OverlongInput { scores: call.real("scores")?, lengths: call.inputs.index("lengths")? };
        Ok(reward::overlong_penalty(input, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    stop_properly_penalty(Sequences; sequence("scores"), sequence("truncated").of(Flag)) StopProperlyConfig
        -> (sequence("out")) [] |call|
    {
        let input = TruncatedInput { scores: call.real("scores")?, truncated: call.inputs.flag("truncated")? };
        Ok(reward::stop_properly_penalty(input, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    missing_eos_penalty(Sequences; sequence("scores"), sequence("ended").of(Flag)) MissingEosConfig
        -> (sequence("out")) [] |call|
    {
        let input = MissingEosInput { scores: call.real("scores")?, ended: call.inputs.flag("ended")? };
        Ok(reward::missing_eos_penalty(input, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    reward_scale_clip(Sequences; sequence("scores")) RewardScaleConfig
        -> (sequence("scores")) ["clip_fraction"] |call|
    {
        let share = reward::reward_scale_clip(call.real("scores")?, &call.config()?, call.outputs.real_mut("scores")?)?;
        call.give([("clip_fraction", share)]);
        Ok(())
    }
    #[cfg(feature = "full")]
    repetition_penalty(Batch; token("tokens").of(Index)) RepetitionConfig -> (sequence("out")) [] |call| {
        let tokens = call.inputs.index("tokens")?;
        Ok(reward::repetition_penalty(&call.batch()?, tokens, &call.config()?, call.outputs.real_mut("out")?)?)
    }
    #[cfg(feature = "full")]
    length_penalty_group(
        Groups;
        sequence("scores"), sequence("outputs").of(Index), sequence("inputs").of(Index), sequence("turns").of(Index)
    ) GroupLengthConfig -> (sequence("out")) [] |call| {
        let input = GroupLengthInput {
            scores: call.real("scores")?,
            outputs: call.inputs.index("outputs")?,
            inputs: call.inputs.index("inputs")?,
            turns: call.inputs.index("turns")?,
        };
        Ok(reward::length_penalty_group(&call.groups()?, input, &call.config()?, call.outputs.real_mut("out")?)?)
    }
}
