"""GAE of verl's driver by tokenwise: verl's own `compute_advantage`, before and after, and the five analysis numbers.

    pip install ./python torch verl==0.9.1
    python python/examples/gae_in_verl.py

In a training run nothing but `TOKENWISE_VERL_REPLACE=gae,grpo` in the environment of the driver is needed.
"""

from __future__ import annotations

import time

import torch
from verl import DataProto
from verl.trainer.config import AlgoConfig
from verl.trainer.ppo import ray_trainer

from tokenwise_rl.frameworks import verl as tokenwise


def batch(rows: int = 64, width: int = 1024) -> DataProto:
    torch.manual_seed(0)
    lengths = torch.randint(width // 4, width + 1, (rows,))
    mask = (torch.arange(width) < lengths[:, None]).long()
    rewards = torch.zeros(rows, width)
    rewards[torch.arange(rows), lengths - 1] = torch.randint(0, 2, (rows,)).float()
    return DataProto.from_dict(
        tensors={
            "token_level_rewards": rewards,
            "values": 0.1 * torch.randn(rows, width),
            "response_mask": mask,
            "old_log_probs": -torch.rand(rows, width),
        }
    )


def advantages() -> tuple[DataProto, float]:
    data = batch()
    start = time.perf_counter()
    found = ray_trainer.compute_advantage(data, "gae", gamma=1.0, lam=0.95, config=AlgoConfig())
    return found, time.perf_counter() - start


def main() -> None:
    theirs, before = advantages()
    tokenwise.replace("gae")
    ours, after = advantages()
    kept = theirs.batch["response_mask"].bool()
    difference = (theirs.batch["advantages"] - ours.batch["advantages"])[kept].abs().max().item()
    print(f"verl {before * 1e3:.1f} ms, tokenwise {after * 1e3:.2f} ms, largest difference {difference:.1e}")
    for key, value in tokenwise.analysis(ours).items():  # metrics.update(…) in fit
        print(f"{key}: {value:.6f}")


if __name__ == "__main__":
    main()
