"""Times the library and its peers in turns, on the same buffers, and prints one JSON record per line."""

import argparse
import json
import os
import sys
import warnings

warnings.filterwarnings("ignore")
os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")

import numpy as np  # noqa: E402
import torch  # noqa: E402

import ours  # noqa: E402
from frameworks import THREADS  # noqa: E402

import advantage  # noqa: E402
import logits  # noqa: E402
import loss  # noqa: E402
from timing import Contestant, measure, summary  # noqa: E402

SHAPES = [(256, 4096), (64, 1024)]
ROWS, VOCAB = 512, 151936
TOKEN_ITEMS = [
    # name, contestants, reference, the library's item
    ("gae", advantage.gae, advantage.gae_reference, "gae"),
    ("grpo", advantage.grpo, advantage.grpo_reference, "grpo"),
    ("ppo-forward", loss.ppo_forward, loss.ppo_reference, "ppo"),
    ("ppo", loss.ppo, loss.ppo_reference, "ppo"),
    ("analysis", loss.analysis, loss.analysis_reference, "analysis"),
    ("returns", advantage.returns, advantage.returns_reference, "returns"),
    ("kl", loss.kl, loss.kl_reference, "kl"),
    ("whiten", advantage.whiten, advantage.whiten_reference, "whiten"),
    ("step", loss.step, loss.step_reference, "step"),
]
LOGITS_ITEMS = [
    ("logits", logits.forward, logits.forward_reference, 0),
    ("logits-gradient", logits.gradient, logits.gradient_reference, 4),
]


def errors(numbers, reference, mask):
    """The largest difference over kept tokens: absolute for logits (no mask), else relative to the largest value."""
    found = {}
    for name, expected in reference.items():
        if name in numbers:
            got, expected = np.asarray(numbers[name], dtype=np.float64), np.asarray(expected)
            if mask is not None and expected.shape == mask.shape:
                got, expected = got[mask], expected[mask]
            unit = 1.0 if mask is None and name != "gradient" else np.abs(expected).max()
            # metrics have different magnitudes
            unit = np.abs(expected) if name == "metrics" else unit
            found[name] = float((np.abs(got - expected) / unit).max())
    return found


def report(item, shape, tokens, contestants, reference, mask, options):
    if options.without_ours:
        contestants = [each for each in contestants if each.name not in ("ours", "copy", "read")]
    # rows of logits are slow: more time for enough samples
    measure(contestants, options.budget * (1 if mask is not None else 3))
    for each in contestants:
        record = {"item": item, "shape": shape, "tokens": tokens, **summary(each)}
        if each.numbers:
            each.made = each.call()  # the library's outputs are shared between its items
            record["errors"] = errors(each.numbers(each.made), reference, mask)
        print(json.dumps(record), flush=True)
        each.made = None
    torch._dynamo.reset()


def token_items(library, options):
    for sequences, length in SHAPES:
        batch = ours.Tokens(library, sequences, length)
        names = ["rewards", "values", "log_probs", "old_log_probs", "ref_log_probs", "advantages"]
        tensors = {name: torch.from_numpy(getattr(batch, name)) for name in names}
        # the dtype that every peer multiplies without conversion
        tensors["mask"] = torch.from_numpy(batch.mask).float()
        wide = {name: tensor.double() for name, tensor in tensors.items()}
        for name, contestants, reference, item in TOKEN_ITEMS:
            if options.only and name != options.only:
                continue
            limit = ours.Limit(library, sequences * length * sum(ours.TOKEN_BYTES[item]))
            limits = [Contestant("copy", limit.copy), Contestant("read", limit.read)]
            shape = f"{sequences}×{length}"
            report(
                name,
                shape,
                batch.kept,
                contestants(batch, tensors) + limits,
                reference(batch, wide),
                batch.mask,
                options,
            )
            limit.free()
        batch.free()


def logits_items(library, options):
    for name, contestants, reference, written in LOGITS_ITEMS:
        for bf16 in (False, True):
            full = f"{name}-{'bf16' if bf16 else 'f32'}"
            if options.only and full != options.only:
                continue
            batch = ours.Logits(library, ROWS, VOCAB, bf16)
            limit = ours.Limit(library, ROWS * VOCAB * ((2 if bf16 else 4) + written))
            limits = [Contestant("copy", limit.copy), Contestant("read", limit.read)]
            report(full, f"{ROWS}×{VOCAB}", ROWS, contestants(batch, THREADS) + limits, reference(batch), None, options)
            limit.free()
            batch.free()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("library")
    parser.add_argument("--only")
    parser.add_argument("--budget", type=float, default=5.0, help="seconds per item and shape")
    parser.add_argument("--without-ours", action="store_true", help="idle workers of the peers would spin against ours")
    options = parser.parse_args()
    library = ours.Library(options.library)
    token_items(library, options)
    logits_items(library, options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
