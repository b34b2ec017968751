"""Stage 5, loss: distillation, the KL loss, and verl's bypass mode."""

from __future__ import annotations

from collections.abc import Iterator

import torch

from cases import BY_NAME, FEW, SINGLE, Grid, grid, log_probs, logits, near, normal, rng_for
from frameworks import distill_ops as ops
from golden import Case
from suites.loss import MODES, TOTALS

VERL, TRL = "verl-0.9.1", "trl-1.16"
ESTIMATORS = ("kl", "k1", "abs", "mse", "k2", "low_var_kl", "k3")
SHORT = {"kl": "k1", "mse": "k2", "low_var_kl": "k3"}
# estimates beyond the bounds of verl: 10, and those of k3
FAR = grid("far", 1, 8)
FAR_DISTANCES = (12.0, -12.0, 3.0, -2.0, 25.0, -25.0, 9.0, -9.5)
SMALL = (
    BY_NAME["one-row"],
    grid("padded", 2, 3, "right"),
    grid("holes", 2, 3, "holes"),
    grid("empty-rows", 4, 2, "empty"),
)


def _zeroed(item: Grid, dtype: str, out: dict) -> dict:
    """Replaces NaN in dropped slots, which are not compared."""
    for key in ("grad", "grad_logits"):
        if key in out:
            grad = out[key].reshape(item.rows, item.cols, -1)
            dropped = (item.mask_tensor(dtype) == 0).unsqueeze(-1)
            out[key] = torch.where(dropped & ~grad.isfinite(), torch.zeros_like(grad), grad)
    return out


def _case(
    op: str, name: str, item: Grid, inputs: dict, params: dict, out: dict, profile: str, dtype: str = "f64"
) -> Case:
    return Case(
        op,
        **item.base(),
        inputs=inputs,
        params=params,
        expect=_zeroed(item, dtype, out),
        name=f"{name}-{dtype}",
        profile=profile,
        dtype=dtype,
    )


def _policies(op: str, item: Grid, garbage: float = 30.0) -> tuple[list[float], ...]:
    """Log-probabilities of the student, of the student when it sampled, and of the teacher; negative where kept."""
    rng = rng_for(f"{op}/{item.name}")
    old = log_probs(rng, item, -garbage)
    below = lambda flat: [min(x, -0.0015) if keep else x for x, keep in zip(flat, item.mask)]
    return below(near(rng, item, old, 0.3, -garbage)), old, below(near(rng, item, old, 0.8, -garbage))


def _far() -> tuple[list[float], ...]:
    new = [-30.0] * len(FAR_DISTANCES)
    return new, [x - 0.1 for x in new], [n - x for n, x in zip(new, FAR_DISTANCES)]


def kl_loss() -> Iterator[Case]:
    def case(item: Grid, data: tuple[list[float], ...], number: int, dtype: str = "f64", more: dict = {}) -> Case:
        estimator = ("k1", "abs", "k2", "k3", "k3+")[number % 5]
        params = {
            "estimator": estimator,
            "coefficient": (0.001, 0.5)[number % 2],
            "aggregate": MODES[number % 5],
        } | more
        new, reference = (item.tensor(data[i], dtype) for i in (0, 2))
        out = ops.kl_loss(new, reference, item.mask_tensor(dtype), params)
        inputs = {"log_probs": data[0], "ref_log_probs": data[2]}
        return _case("kl_loss", f"{estimator}-{item.name}-{number}", item, inputs, params, out, VERL, dtype)

    for number in range(10):
        item = FEW[number % len(FEW)]
        yield case(item, _policies("kl_loss", item), number)
        yield case(FAR, _far(), number)
    for number, item in enumerate(SINGLE):
        yield case(item, _policies("kl_loss", item), number, "f32")
    for number in range(5):
        yield case(BY_NAME["rows-5"], _policies("kl_loss", BY_NAME["rows-5"]), number, more=TOTALS)


def opd_verl() -> Iterator[Case]:
    def case(item: Grid, data: tuple[list[float], ...], mode: str, route: str, number: int, dtype: str = "f64") -> Case:
        params = {"estimator": mode, "max_loss": (10.0, 0.31, None)[number % 3], "route": route}
        params |= {"aggregate": MODES[number % 5]}
        if route == "clipped":
            params |= {"clip_low": 0.2, "clip_high": 0.28}
        inputs = dict(zip(("log_probs", "old_log_probs", "teacher_log_probs"), data))
        mask = item.mask_tensor(dtype)
        out = ops.opd_loss(*(item.tensor(x, dtype) for x in data), mask, params)
        written = params | {"estimator": SHORT.get(mode, mode)}
        return _case("opd_loss", f"{route}-{mode}-{item.name}-{number}", item, inputs, written, out, VERL, dtype)

    for index, mode in enumerate(ESTIMATORS):
        for route in ("clipped", "supervised"):
            # verl accepts "kl", which is the same estimate: we reject both
            if route == "supervised" and mode in ("kl", "k1"):
                continue
            for step in range(3):
                item = FEW[(index + 2 * step) % len(FEW)]
                yield case(item, _policies(f"opd/{mode}", item), mode, route, index + step)
            yield case(FAR, _far(), mode, route, 3 * index)
    for number, item in enumerate(SINGLE):
        yield case(
            item, _policies("opd/f32", item), "k3", ("clipped", "supervised", "clipped")[number], 3 * number, "f32"
        )
    item = FEW[1]
    data = _policies("opd/refused", item)
    params = {"estimator": "k1", "max_loss": 10.0, "route": "supervised", "aggregate": "token-mean"}
    try:
        ops.opd_loss(*(item.tensor(x) for x in data), item.mask_tensor(), params)
    except ValueError as error:
        inputs = dict(zip(("log_probs", "old_log_probs", "teacher_log_probs"), data))
        yield Case(
            "opd_loss",
            **item.base(),
            inputs=inputs,
            params=params,
            error=str(error),
            name="supervised-k1",
            profile=VERL,
        )


def opd_trl() -> Iterator[Case]:
    """The loss of the sampled token."""
    for item in FEW:
        data = _policies("opd/trl", item, -1.0)
        out = ops.sampled_token(item.tensor(data[0]), item.tensor(data[2]), item.mask_tensor())
        inputs = {"log_probs": data[0], "old_log_probs": data[0], "teacher_log_probs": data[2]}
        params = {"estimator": "k1", "max_loss": None, "route": "reinforce", "aggregate": "token-mean"}
        yield _case("opd_loss", f"sampled-{item.name}", item, inputs, params, out, TRL)


def iw_opd() -> Iterator[Case]:
    for number, item in enumerate(FEW + SINGLE):
        dtype = "f32" if number >= len(FEW) else "f64"
        data = _policies("iw_opd", item, -1.0)
        params = {"gamma": (0.5, 0.0, 2.0)[number % 3], "epsilon": (1e-8, 3.0)[number % 2]}
        out = ops.iw_opd(*(item.tensor(x, dtype) for x in data), item.mask_tensor(dtype), params)
        inputs = dict(zip(("log_probs", "old_log_probs", "teacher_log_probs"), data))
        yield _case("iw_opd", item.name, item, inputs, params, out, TRL, dtype)


def forward_kl_topk() -> Iterator[Case]:
    number = 0
    for vocab, k in ((5, 2), (9, 3), (17, 8)):
        for item in SMALL:
            for dtype in ("f64", "f32") if vocab == 9 else ("f64",):
                number += 1
                rng = rng_for(f"forward_kl_topk/{vocab}/{item.name}")
                z, w = logits(rng, item, vocab, 3.0), logits(rng, item, vocab, 3.0)
                teacher = torch.log_softmax(item.tensor(w).reshape(item.rows, item.cols, vocab), -1)
                best, ids = teacher.topk(k, -1)
                best = torch.round(best, decimals=4)
                best = torch.where(item.mask_tensor().unsqueeze(-1) > 0, best, -1.0)
                params = {
                    "vocab": vocab,
                    "k": k,
                    "log_prob_floor": (-10.0, -1.7, None)[number % 3],
                    "max_loss": (10.0, 0.4, None)[number // 3 % 3],
                    "aggregate": MODES[number % 5],
                }
                z = [x if abs(x) < 1e3 else 0.0 for x in z]
                tensor = item.tensor(z, dtype).reshape(item.rows, item.cols, vocab)
                out = ops.forward_kl_topk(tensor, best.to(tensor.dtype), ids, item.mask_tensor(dtype), params)
                inputs = {"logits": z, "teacher_log_probs": best, "teacher_ids": ids}
                yield _case("forward_kl_topk", f"{vocab}-{k}-{item.name}", item, inputs, params, out, VERL, dtype)


def generalized_jsd() -> Iterator[Case]:
    number = 0
    for vocab in (1, 2, 7, 17):
        for beta in (0.0, 0.25, 0.5, 1.0):
            item = SMALL[number % 4]
            number += 1
            rng = rng_for(f"generalized_jsd/{vocab}/{beta}")
            z, w = logits(rng, item, vocab), logits(rng, item, vocab)
            params = {"vocab": vocab, "beta": beta, "temperature": (1.0, 0.5, 2.0)[number % 3]}
            for dtype in ("f64", "f32") if vocab == 7 else ("f64",):
                shape = (item.rows, item.cols, vocab)
                pair = (item.tensor(x, dtype).reshape(shape) for x in (z, w))
                out = ops.generalized_jsd(*pair, item.mask_tensor(dtype), params)
                inputs = {"logits": z, "teacher_logits": w}
                yield _case("generalized_jsd", f"{vocab}-{beta}-{item.name}", item, inputs, params, out, TRL, dtype)


def topk_jsd() -> Iterator[Case]:
    number = 0
    for vocab, k in ((5, 1), (9, 3), (17, 8)):
        for beta in (0.0, 0.25, 0.5, 1.0):
            for rest in ("tail", "renormalize"):
                item = SMALL[number % 4]
                number += 1
                rng = rng_for(f"topk_jsd/{vocab}/{beta}/{rest}")
                z, w = logits(rng, item, vocab), logits(rng, item, vocab)
                params = {"vocab": vocab, "k": k, "beta": beta, "rest": rest}
                inputs = {"logits": z, "teacher_logits": w}
                policies = None
                if number % 3 == 0:
                    new, old, _ = _policies(f"topk_jsd/{number}", item)
                    inputs |= {"log_probs": new, "old_log_probs": old}
                    params |= {"is_clip": 1.1}
                    policies = (item.tensor(new), item.tensor(old))
                shape = (item.rows, item.cols, vocab)
                pair = (item.tensor(x).reshape(shape) for x in (z, w))
                out = ops.topk_jsd(*pair, item.mask_tensor(), params, policies)
                yield _case("topk_jsd", f"{vocab}-{k}-{beta}-{rest}-{item.name}", item, inputs, params, out, TRL)


def bypass_mode() -> Iterator[Case]:
    rejections = (("", ""), ("token_k2", "0.06"), ("seq_mean_k1", "0.8_1.3"), ("token_k3,seq_max_k2", "0.3,0.2"))
    number = 0
    for form in ("ppo_clip", "reinforce"):
        for level in (None, "token", "sequence"):
            for options, thresholds in rejections:
                item = FEW[number % len(FEW)]
                number += 1
                new, old, _ = _policies(f"bypass/{number}", item)
                advantages = normal(rng_for(f"bypass/{number}"), item, 1.0, 30.0)
                params = {"form": form, "level": level, "upper": 1.3, "options": options, "thresholds": thresholds}
                params |= {"aggregate": MODES[number % 5]} | (TOTALS if number % 4 == 0 else {})
                inputs = {"log_probs": new, "old_log_probs": old, "advantages": advantages}
                tensors = [item.tensor(x) for x in (new, old, advantages)]
                out = ops.bypass_mode(*tensors, item.mask_tensor(), params)
                # everything was rejected: verl's mean of an empty set is NaN
                if not bool(torch.isfinite(out["loss"])):
                    continue
                name = f"{form}-{level}-{options or 'all'}-{item.name}"
                yield _case("bypass_mode", name, item, inputs, params, out, VERL)


FILES = {
    "loss/kl_loss.verl.json": ("verl", kl_loss),
    "loss/opd_loss.verl.json": ("verl", opd_verl),
    "loss/opd_loss.trl.json": ("trl", opd_trl),
    "loss/iw_opd.trl.json": ("trl", iw_opd),
    "loss/forward_kl_topk.verl.json": ("verl", forward_kl_topk),
    "loss/generalized_jsd.trl.json": ("trl", generalized_jsd),
    "loss/topk_jsd.trl.json": ("trl", topk_jsd),
    "loss/bypass_mode.verl.json": ("verl", bypass_mode),
}
