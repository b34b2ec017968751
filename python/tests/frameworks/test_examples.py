"""The examples run as scripts."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("script", "needs"), [("gae_in_verl.py", "verl"), ("trl_custom_loss.py", "trl"), ("ray_over_parquet.py", "ray")]
)
def test_example(script: str, needs: str) -> None:
    pytest.importorskip(needs)
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(PACKAGE / "examples" / script)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(PACKAGE)},
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.strip()
