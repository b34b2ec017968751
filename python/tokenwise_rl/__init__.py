"""Token-level reinforcement-learning formulas for language models.

Every function takes arrays ``[batch, length]`` with a ``mask`` of the same shape, or packed tokens with ``cu_seqlens``,
and settings as keyword arguments::

    import numpy as np
    import tokenwise_rl as tw

    mask = np.array([[True, True, False, True]])  # the third token came from a tool
    result = tw.gae(rewards=rewards, values=values, mask=mask, gamma=1.0, lambda_=0.95)
    result.advantages, result.returns

Arrays of NumPy and tensors of torch on the CPU are read where they are. Results are of the kind of the inputs. A dropped
slot is never read. A refused call raises :class:`TokenwiseError`.
"""

from __future__ import annotations

from . import _formulas
from ._errors import TokenwiseError
from ._formulas import *  # noqa: F403
from ._native import VERSION as __version__
from ._native import (
    AdaptiveKl,
    ClipCov,
    DualGame,
    EntropyBudget,
    ExactAnalysis,
    ExactClip,
    ExactCoMoments,
    ExactCriterion,
    ExactKl,
    ExactMoments,
    ExactOpenRlhf,
    ExactRejection,
    ExactRolloutWeights,
    ExactTrl,
    ExactVarianceProxy,
    ExactVerl,
    FixedKl,
    KlCov,
    LinearKl,
    M2po,
    Recorder,
    Selection,
    conventions,
    get_num_threads,
    profiles,
    read_history,
    set_num_threads,
    settings,
)

__all__ = [
    *_formulas.__all__,
    "AdaptiveKl",
    "ClipCov",
    "DualGame",
    "EntropyBudget",
    "ExactAnalysis",
    "ExactClip",
    "ExactCoMoments",
    "ExactCriterion",
    "ExactKl",
    "ExactMoments",
    "ExactOpenRlhf",
    "ExactRejection",
    "ExactRolloutWeights",
    "ExactTrl",
    "ExactVarianceProxy",
    "ExactVerl",
    "FixedKl",
    "KlCov",
    "LinearKl",
    "M2po",
    "Recorder",
    "Selection",
    "TokenwiseError",
    "__version__",
    "conventions",
    "get_num_threads",
    "profiles",
    "read_history",
    "set_num_threads",
    "settings",
]
