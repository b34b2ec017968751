"""The training steps of OpenRLHF, with mock models and optimisers."""

from __future__ import annotations

import sys
from functools import partial
from types import SimpleNamespace
from unittest import mock

import torch

from frameworks import openrlhf_ops
from frameworks.precision import double

_STUBS = openrlhf_ops._STUBS + (
    "deepspeed.ops",
    "deepspeed.ops.adam",
    "deepspeed.runtime.zero.offload_config",
    "deepspeed.runtime.utils",
    "deepspeed.utils",
    "ray",
    "ray.util",
    "ray.util.placement_group",
    "ray.util.scheduling_strategies",
    "openrlhf.utils.deepspeed",
    "openrlhf.utils.deepspeed.deepspeed_utils",
    "openrlhf.trainer.ray",
    "openrlhf.trainer.ray.launcher",
    "openrlhf.trainer.ray.utils",
)
_before = set(sys.modules)
_absent = [name for name in _STUBS if name not in _before]
sys.modules.update({name: mock.MagicMock() for name in _absent})
from pathlib import Path

import openrlhf
from openrlhf.models import loss as rlhf_loss
from openrlhf.models import utils as rlhf_utils
from openrlhf.trainer.ppo_utils import experience_maker
from openrlhf.trainer.ppo_utils.experience import Experience

# the __init__ of this package imports the sampler
sys.modules["openrlhf.trainer.ray"].__path__ = [str(Path(openrlhf.__file__).parent / "trainer" / "ray")]
from openrlhf.trainer.ray import ppo_actor, ppo_critic

for _name in _absent:
    del sys.modules[_name]

Tensor = torch.Tensor
Out = dict[str, object]


def _strategy(params: dict) -> SimpleNamespace:
    step = lambda *_, **__: None
    args = SimpleNamespace(
        train=SimpleNamespace(dynamic_batch_enable=False),
        actor=SimpleNamespace(entropy_coef=0.0, aux_loss_coef=0.0),
        algo=SimpleNamespace(
            kl=SimpleNamespace(
                use_loss=params["kl_use"] == "loss", init_coef=0.1, estimator="k1", unbiased_gradient=False
            ),
            advantage=SimpleNamespace(estimator="reinforce", gamma=1.0, lambd=1.0, no_std_norm=False),
        ),
        rollout=SimpleNamespace(n_samples_per_prompt=params["samples"]),
        reward=SimpleNamespace(clip_range=None),
    )
    norm = lambda _: 0.0
    return SimpleNamespace(args=args, backward=step, optimizer_step=step, get_grad_norm=norm, ring_attn_group=None)


def openrlhf_metrics(data: dict[str, Tensor], mask: Tensor, item: SimpleNamespace, params: dict) -> Out:
    """The status that compute_advantages_and_returns and the training steps of actor and critic report."""
    rows = mask.shape[0]
    strategy = _strategy(params)
    scheduler = SimpleNamespace(get_last_lr=lambda: [0.0])
    whole = {"dp_size": 1, "batch_num_tokens": None, "global_batch_size": None}
    to_rows = partial(rlhf_utils.masked_mean, dim=-1)
    with double(mask.dtype, rlhf_utils, experience_maker):
        kl = rlhf_utils.compute_approx_kl(data["old_log_probs"], data["ref_log_probs"], kl_estimator="k1")
        info = {
            "kl": to_rows(kl, mask),
            "logprobs_diff": to_rows(data["old_log_probs"] - data["ref_log_probs"], mask),
            "reward": torch.tensor(item.scores, dtype=mask.dtype),
            "response_clip_ratio": torch.tensor([n >= params["limit"] for n in item.total_lengths]),
        }
        experience = Experience(
            sequences=mask,
            attention_mask=mask,
            action_mask=mask,
            action_log_probs=data["old_log_probs"],
            base_action_log_probs=data["ref_log_probs"],
            rollout_log_probs=data["rollout_log_probs"],
            values=data["values"],
            kl=-data["rewards"],
            rewards=torch.zeros(rows, dtype=mask.dtype),
            response_length=torch.tensor(item.response_lengths),
            truncated=torch.tensor(item.truncated),
            total_length=torch.tensor(item.total_lengths),
            index=list(range(rows)),
            info=info,
        )
        maker = SimpleNamespace(strategy=strategy, advantage_estimator="reinforce", kl_ctl=SimpleNamespace(value=1.0))
        maker_class = experience_maker.RemoteExperienceMaker
        maker.get_cumulative_returns = partial(maker_class.get_cumulative_returns, maker)
        with mock.patch.object(experience_maker, "apply_length_penalties", lambda *_: None):
            # the standard deviation of the scores; then the return of the token rewards, which are passed as a KL
            scored = Experience(**{**experience.__dict__, "rewards": info["reward"].clone(), "info": {}})
            maker_class.compute_advantages_and_returns(maker, [scored])
            maker_class.compute_advantages_and_returns(maker, [experience])
        info |= {key: value for key, value in scored.info.items() if key == "group_reward_std"}
        experience.advantages, experience.returns = data["advantages"], data["returns"]
        model = mock.MagicMock()
        model.return_value = (data["log_probs"], SimpleNamespace(entropy=data["entropies"]))
        actor = SimpleNamespace(
            strategy=strategy,
            args=strategy.args,
            actor=model,
            actor_optim=None,
            actor_scheduler=scheduler,
            actor_loss_fn=rlhf_loss.PolicyLoss(0.2, 0.2, is_correction_level=params["gate"]),
            aux_loss=False,
            ema_model=None,
        )
        status = ppo_actor.ActorPPOTrainer.training_step(actor, experience, 0.1, 0, whole)["metrics"]
        critic_model = mock.MagicMock()
        critic_model.return_value = (data["predictions"], SimpleNamespace())
        critic = SimpleNamespace(
            strategy=strategy,
            args=strategy.args,
            critic=critic_model,
            critic_optim=None,
            critic_scheduler=scheduler,
            critic_loss_fn=rlhf_loss.ValueLoss(0.5),
            aux_loss=False,
        )
        status |= ppo_critic.CriticPPOTrainer.training_step(critic, experience, 0, whole)
    skipped = ("lr", "grad_norm")
    # as ppo_train averages them, and as the loggers name them
    mean = lambda value: value.to(mask.dtype).mean() if isinstance(value, Tensor) else value
    return {f"train/{key}": float(mean(value)) for key, value in status.items() if not key.endswith(skipped)}
