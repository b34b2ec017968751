"""The tests of the plug-ins run where the frameworks are installed: `cargo xtask test --only python-frameworks`."""

from __future__ import annotations

import os

os.environ.setdefault("VERL_DISABLE_FLASH_ATTN_CE", "1")
os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
