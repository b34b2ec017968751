"""rlax, DI-engine, TorchRL, AReaL and SkyRL: single files, because their packages import whole training stacks.

What those files import and never call for these formulas is stubbed by name.
"""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.util
import sys
from types import ModuleType, SimpleNamespace
from unittest import mock

import numpy as np
import torch

from frameworks.precision import double

Tensor = torch.Tensor
Out = dict[str, object]
_STUBS = (
    "areal.api",
    "areal.experimental",
    "areal.infra",
    "areal.trainer.ppo.stats",
    "areal.utils.functional",
    "areal.utils.logging",
    "areal.utils.perf_tracer",
    "areal.utils.seqpack",
    "areal.utils.stats_tracker",
    "ding.torch_utils",
    "ding.utils",
    "jaxtyping",
    "loguru",
    "skyrl.train",
)
# packages of which only the named files are loaded, without their __init__
_BARE = (
    "areal",
    "areal.trainer",
    "areal.trainer.ppo",
    "areal.utils",
    "ding",
    "ding.rl_utils",
    "rlax",
    "skyrl",
    "skyrl.backends",
    "skyrl.backends.skyrl_train",
    "skyrl.backends.skyrl_train.utils",
)


class _Stubs(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name: str, path: object = None, target: object = None) -> object:
        known = any(name == stub or name.startswith(f"{stub}.") for stub in _STUBS)
        return importlib.util.spec_from_loader(name, self) if known else None

    def create_module(self, spec: object) -> mock.MagicMock:
        return mock.MagicMock(__path__=[], __spec__=spec)

    def exec_module(self, module: object) -> None:
        pass


def _bare(name: str) -> None:
    parent, _, leaf = name.rpartition(".")
    module = ModuleType(name)
    module.__path__ = (
        [f"{path}/{leaf}" for path in sys.modules[parent].__path__]
        if parent
        else list(importlib.util.find_spec(name).submodule_search_locations)
    )
    sys.modules[name] = module


sys.meta_path.insert(0, _Stubs())
for _name in _BARE:
    _bare(_name)
# a decorator that uses a GPU kernel if available
sys.modules["ding.hpc_rl"] = SimpleNamespace(hpc_wrapper=lambda *_, **__: lambda function: function)

import jax

jax.config.update("jax_enable_x64", True)
multistep = importlib.import_module("rlax._src.multistep")
rlax_vtrace = importlib.import_module("rlax._src.vtrace")
upgo = importlib.import_module("ding.rl_utils.upgo")
areal_data = importlib.import_module("areal.utils.data")
areal_actor = importlib.import_module("areal.trainer.ppo.actor")
skyrl = importlib.import_module("skyrl.backends.skyrl_train.utils.ppo_utils")
skyrl_off_policy = importlib.import_module("skyrl.backends.skyrl_train.utils.off_policy_correction_utils")
torchrl = importlib.import_module("torchrl.objectives.value.functional")


def _array(values: list[float]) -> jax.Array:
    return jax.numpy.asarray(np.asarray(values, dtype=np.float64))


def _list(values: object) -> list[float]:
    return [float(x) for x in np.asarray(values).reshape(-1)]


def td_lambda(rewards: list[float], values: list[float], bootstrap: float, gamma: float, lam: float) -> list[float]:
    """rlax; one row, every token kept."""
    after = _array(values[1:] + [bootstrap])
    return _list(multistep.lambda_returns(_array(rewards), _array([gamma] * len(rewards)), after, lam))


def n_step_returns(
    rewards: list[float], values: list[float], bootstrap: float, n: int, gamma: float, lam: float
) -> list[float]:
    after = _array(values[1:] + [bootstrap])
    discounts = _array([gamma] * len(rewards))
    return _list(multistep.n_step_bootstrapped_returns(_array(rewards), discounts, after, n, lam))


def discounted_returns(rewards: list[float], bootstrap: float, gamma: float) -> list[float]:
    after = _array([0.0] * (len(rewards) - 1) + [bootstrap])
    return _list(multistep.discounted_returns(_array(rewards), _array([gamma] * len(rewards)), after))


def gae(rewards: list[float], values: list[float], bootstrap: float, gamma: float, lam: float) -> list[float]:
    discounts = _array([gamma] * len(rewards))
    return _list(
        multistep.truncated_generalized_advantage_estimation(
            _array(rewards), discounts, lam, _array(values + [bootstrap])
        )
    )


def retrace(
    rewards: list[float],
    values: list[float],
    action_values: list[float],
    bootstrap: float,
    gamma: float,
    c: list[float],
) -> list[float]:
    """`c[t]` is the coefficient of token t; the first is not used."""
    return _list(
        multistep.general_off_policy_returns_from_q_and_v(
            _array(action_values[1:]),
            _array(values[1:] + [bootstrap]),
            _array(rewards),
            _array([gamma] * len(rewards)),
            _array(c[1:]),
        )
    )


def vtrace(
    rewards: list[float], values: list[float], bootstrap: float, log_ratios: list[float], params: dict
) -> tuple[list[float], list[float]]:
    """rlax's c̄ is 1."""
    out = rlax_vtrace.vtrace_td_error_and_advantage(
        _array(values),
        _array(values[1:] + [bootstrap]),
        _array(rewards),
        _array([params["gamma"]] * len(rewards)),
        jax.numpy.exp(_array(log_ratios)),
        params["lambda"],
        params["rho_bar"],
        params["rho_bar"],
    )
    return _list(out.errors + _array(values)), _list(out.pg_advantage)


def vtrace_torchrl(
    rewards: list[float], values: list[float], bootstrap: float, new: list[float], old: list[float], params: dict
) -> tuple[list[float], list[float]]:
    """TorchRL: λ is 1, c̄ is free."""
    column = lambda x: torch.tensor(x, dtype=torch.float64)[:, None]
    done = torch.zeros(len(rewards), 1, dtype=torch.bool)
    done[-1] = True
    with double(torch.float64):  # its thresholds are float32 otherwise
        advantages, targets = torchrl.vtrace_advantage_estimate(
            params["gamma"],
            column(new),
            column(old),
            column(values),
            column(values[1:] + [bootstrap]),
            column(rewards),
            done,
            torch.zeros_like(done),
            params["rho_bar"],
            params["c_bar"],
        )
    return _list(targets), _list(advantages)


def upgo_returns(rewards: list[float], values: list[float], bootstrap: float) -> list[float]:
    """DI-engine; time first, one column."""
    column = lambda x: torch.tensor(x, dtype=torch.float64)[:, None]
    return _list(upgo.upgo_returns(column(rewards), column(values + [bootstrap])))


def normalize_scores(scores: list[float], group_size: int, params: dict) -> Out:
    """AReaL's `Normalization`; groups of one size, one after the other. Its last step is float32."""
    config = SimpleNamespace(
        mean_level=params["mean"],
        mean_leave1out=params["leave_one_out"],
        std_level=params["deviation"],
        std_unbiased=params["unbiased"],
        group_size=group_size,
        eps=params["epsilon"],
    )
    return {"scores": areal_data.Normalization(config)(torch.tensor(scores, dtype=torch.float32))}


def m2po_mask(old: Tensor, rollout: Tensor, mask: Tensor, threshold: float) -> Out:
    """AReaL's behaviour policy is our sampler, its proximal policy our old one."""
    return {"mask": areal_actor._apply_m2po_masking(rollout, old, mask.bool(), threshold).to(old.dtype)}


def sequence_veto(old: Tensor, rollout: Tensor, mask: Tensor, params: dict) -> Out:
    """SkyRL's outlier rule, which it multiplies with the mask."""
    config = SimpleNamespace(
        outlier_token_is_threshold_low=params["lower"], outlier_token_is_threshold_high=params["upper"]
    )
    keep, _ = skyrl_off_policy.compute_outlier_token_mask(old, rollout, mask, config)
    return {"mask": keep.to(old.dtype) * mask}


def max_rl(scores: list[float], groups: list[int]) -> Out:
    """SkyRL; its group mean is float32."""
    rewards = torch.tensor(scores, dtype=torch.float32)[:, None]
    advantages, _ = skyrl.compute_maxrl_advantage(rewards, torch.ones_like(rewards), np.array(groups))
    return {"scores": advantages[:, 0]}


def controller(params: dict) -> object:
    return skyrl.AdaptiveKLController(params["beta"], params["target"], params["horizon"])
