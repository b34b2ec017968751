"""Writes the golden files of the frameworks in requirements-others.txt: python tests/reference/generate_others.py"""

from __future__ import annotations

import logging
import sys
import warnings
from importlib.metadata import version

warnings.filterwarnings("ignore")
logging.disable(logging.WARNING)

import torch

import golden
from suites import others


def main() -> int:
    """Write all files and print the number of cases of each."""
    torch.set_num_threads(1)
    for path, (peer, build) in others.FILES.items():
        base = "jax" if peer == "rlax" else "torch"
        source = f"{peer} {version(peer)}, {base} {version(base)}"
        print(f"{path}: {golden.write(path, source, list(build()))}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
