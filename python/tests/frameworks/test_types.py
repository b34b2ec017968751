"""The annotations of what needs torch hold under mypy --strict."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
pytest.importorskip("torch")

PACKAGE = Path(__file__).parents[2] / "tokenwise_rl"


def test_what_needs_other_packages() -> None:
    parts = ["torch.py", "distributed.py", "ray.py", "frameworks"]
    command = [sys.executable, "-m", "mypy", "--strict", *(str(PACKAGE / part) for part in parts)]
    found = subprocess.run(command, capture_output=True, text=True, cwd=PACKAGE.parent)
    assert found.returncode == 0, found.stdout + found.stderr
