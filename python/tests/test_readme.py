"""The examples of the README run as they are shown."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

README = Path(__file__).parent.parent / "README.md"


def blocks(path: Path) -> list[str]:
    return re.findall(r"```python\n(.*?)```", path.read_text(), re.S)


EXAMPLES = [*blocks(README)[:2], *blocks(README.parent.parent / "README.md")]


@pytest.mark.parametrize("code", EXAMPLES, ids=["numpy", "torch", "front"])
def test_example(code: str) -> None:
    if "torch" in code:
        pytest.importorskip("torch")
    exec(compile(code, str(README), "exec"), {})
