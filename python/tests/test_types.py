"""The annotations hold under mypy --strict, for the package and for a caller."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")

PACKAGE = Path(__file__).parent.parent / "tokenwise_rl"
CALLER = """
import numpy as np
import tokenwise_rl as tw

found = tw.gae(rewards=np.zeros((1, 2)), values=np.zeros((1, 2)), gamma=0.99, lambda_=0.95)
mean: float = tw.mean(values=np.zeros((1, 2)))
report: dict[str, float] = tw.analysis(old_log_probs=mean, advantages=mean, rewards=mean)
"""
WRONG = """
import numpy as np
import tokenwise_rl as tw

tw.gae(rewards=np.zeros((1, 2)), values=np.zeros((1, 2)), gama=0.99)
tw.gae(rewards=np.zeros((1, 2)))
"""


def mypy(*arguments: str) -> tuple[int, str]:
    command = [sys.executable, "-m", "mypy", "--strict", *arguments]
    found = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent)
    return found.returncode, found.stdout


def test_the_package() -> None:
    needing_others = {"torch.py", "distributed.py", "ray.py"}
    modules = [str(path) for path in PACKAGE.glob("*.py") if path.name not in needing_others]
    modules += [str(path) for path in PACKAGE.glob("conformance/**/*.py")]
    code, text = mypy(*modules)
    assert code == 0, text


def test_a_caller(tmp_path: Path) -> None:
    right, wrong = tmp_path / "right.py", tmp_path / "wrong.py"
    right.write_text(CALLER)
    wrong.write_text(WRONG)
    code, text = mypy(str(right))
    assert code == 0, text
    code, text = mypy(str(wrong))
    assert code == 1 and text.count("error:") >= 2, text
