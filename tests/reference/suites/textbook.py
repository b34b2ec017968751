"""Formulas that none of the three frameworks has, in plain torch from their papers."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import torch

from cases import BY_NAME, DTYPES, GRIDS, SINGLE, Grid, grid, normal, outcome, rng_for
from golden import Case
from suites.policy_losses import Data, check_margin, draw

SETTINGS = ((1.0, 1.0), (0.99, 0.95), (0.9, 0.8), (1.0, 0.5), (0.5, 0.0))
BARS = ((1.0, 1.0), (2.0, 1.0), (0.8, 1.5), (10.0, 10.0))
Row = tuple[torch.Tensor, ...]


def td_lambda(row: Row, bootstrap: torch.Tensor, gamma: float, lam: float) -> dict[str, torch.Tensor]:
    """rlax `lambda_returns`: G_t = r_t + γ((1 − λ) v_{t+1} + λ G_{t+1}), starting from the bootstrap."""
    rewards, values = row
    after, value, out = bootstrap, bootstrap, torch.zeros_like(rewards)
    for t in reversed(range(len(rewards))):
        after = rewards[t] + gamma * ((1 - lam) * value + lam * after)
        out[t], value = after, values[t]
    return {"returns": out}


def vtrace(
    row: Row, bootstrap: torch.Tensor, gamma: float, lam: float, rho: float, c: float
) -> dict[str, torch.Tensor]:
    """rlax `vtrace_td_error_and_advantage`; ρ̄ also bounds the advantage's ratio, c̄ is 1 in rlax."""
    rewards, values, new, old = row
    ratio = torch.exp(new - old)
    ahead = torch.cat([values[1:], bootstrap.reshape(1)])
    delta = ratio.clamp(max=rho) * (rewards + gamma * ahead - values)
    errors, error = torch.zeros_like(rewards), torch.zeros(())
    for t in reversed(range(len(rewards))):
        error = delta[t] + gamma * lam * ratio[t].clamp(max=c) * error
        errors[t] = error
    targets = values + errors
    behind = torch.cat([lam * targets[1:] + (1 - lam) * values[1:], bootstrap.reshape(1)])
    return {"targets": targets, "advantages": ratio.clamp(max=rho) * (rewards + gamma * behind - values)}


def upgo(row: Row, bootstrap: torch.Tensor) -> dict[str, torch.Tensor]:
    """DI-engine `upgo_returns`: follow the return while the next step is at least as good as its value."""
    rewards, values = row
    ahead = torch.cat([values[1:], bootstrap.reshape(1)])
    out = torch.zeros_like(rewards)
    for t in reversed(range(len(rewards))):
        last = t + 1 == len(rewards)
        follow = last or bool(rewards[t + 1] + ahead[t + 1] >= values[t + 1])
        out[t] = rewards[t] + ((bootstrap if last else out[t + 1]) if follow else ahead[t])
    return {"returns": out}


def _returns(op: str, run: Callable, names: tuple[str, ...], keys: tuple[str, ...]) -> Iterator[Case]:
    """Each row without its dropped slots; the bootstrap follows the last kept token."""
    for number, item in enumerate(GRIDS * 2):
        for dtype in ("f64", "f32") if item in SINGLE and number < len(GRIDS) else ("f64",):
            rng = rng_for(f"{op}/{item.name}/{number}")
            rewards = normal(rng, item) if number % 2 else outcome(rng, item)
            values = normal(rng, item)
            new, old, _ = draw(f"{op}/{number}", item, 1e6)
            inputs = {"rewards": rewards, "values": values, "log_probs": new, "old_log_probs": old}
            inputs = {key: inputs[key] for key in names}
            bootstrap = [round(float(x), 4) for x in rng.normal(0.0, 1.0, item.rows)]
            bootstrap = [0.0] * item.rows if number % 5 == 0 else bootstrap
            gamma, lam = SETTINGS[number % 5]
            rho, c = BARS[number % 4]
            params = dict(zip(("gamma", "lambda", "rho_bar", "c_bar"), (gamma, lam, rho, c)))
            params = {key: params[key] for key in keys}
            out: dict[str, torch.Tensor] = {}
            for r in range(item.rows):
                kept = item.mask_tensor()[r] > 0
                row = tuple(item.tensor(flat, dtype)[r, kept] for flat in inputs.values())
                for key, values_ in run(row, torch.tensor(bootstrap[r], dtype=DTYPES[dtype]), *params.values()).items():
                    full = out.setdefault(key, torch.zeros(item.rows, item.cols, dtype=DTYPES[dtype]))
                    full[r, kept] = values_
            yield Case(
                op,
                **item.base(),
                inputs=inputs | {"bootstrap": bootstrap},
                params=params,
                expect=out,
                name=f"{item.name}-{number}-{dtype}",
                dtype=dtype,
            )


def _aggregate(losses: torch.Tensor, mask: torch.Tensor, mode: str) -> torch.Tensor:
    """Over non-empty rows."""
    kept = torch.where(mask > 0, losses, 0.0)
    lengths = mask.sum(-1)
    rows = lengths[lengths > 0].numel()
    sums = {
        "token-mean": kept.sum() / mask.sum(),
        "token-sum": kept.sum(),
        "seq-mean-token-sum": kept.sum() / rows,
        "seq-mean-token-mean": (kept.sum(-1) / lengths.clamp(min=1)).sum() / rows,
    }
    return sums[mode]


def policy_loss(op: str, data: list[torch.Tensor], mask: torch.Tensor, mode: str) -> dict[str, torch.Tensor]:
    """−w A ℓ with a constant w: min(ratio, 1), in TOPR only where the advantage is not positive."""
    leaf, old, advantages = data[0].clone().requires_grad_(True), *data[1:]
    weight = torch.exp(leaf.detach() - old).clamp(0.0, 1.0)
    if op == "topr":
        weight = torch.where(advantages > 0, torch.ones_like(weight), weight)
    loss = _aggregate(-weight * advantages * leaf, mask, mode)
    return {"loss": loss, "grad": torch.autograd.grad(loss, leaf)[0]}


def losses(op: str) -> Iterator[Case]:
    modes = ("token-mean", "token-sum", "seq-mean-token-sum", "seq-mean-token-mean")

    def case(name: str, item: Grid, data: Data, mode: str, dtype: str = "f64") -> Case:
        run = lambda new, dtype="f64": policy_loss(
            op, [item.tensor(x, dtype) for x in (new, *data[1:])], item.mask_tensor(dtype), mode
        )
        check_margin(run, data[0], item.mask, run(data[0]), name)
        return Case(
            op,
            **item.base(),
            inputs=dict(zip(("log_probs", "old_log_probs", "advantages"), data)),
            params={"aggregate": mode},
            expect=run(data[0], dtype),
            name=f"{name}-{dtype}",
            dtype=dtype,
        )

    def drawn(item: Grid) -> Data:
        """The sign of TOPR's advantages is that of the row's reward: one sign in each row."""
        new, old, advantages = draw(op, item, 1e4)
        if op == "topr":
            signs = rng_for(f"topr/signs/{item.name}").choice([-1.0, 1.0], item.rows)
            advantages = [abs(x) * float(signs[i // item.cols]) for i, x in enumerate(advantages)]
        return new, old, advantages

    for number, item in enumerate(GRIDS):
        yield case(item.name, item, drawn(item), modes[number % 4])
    for mode in modes:
        yield case(f"rows-5-{mode}", BY_NAME["rows-5"], drawn(BY_NAME["rows-5"]), mode)
    for number, item in enumerate(SINGLE):
        yield case(item.name, item, drawn(item), modes[number], "f32")
    far = (3.0, -3.0, 12.0, -12.0, 0.2, -0.2)
    advantages = [1.0, 0.5, 1.0, 2.0, 0.1, 0.2, -1.0, -0.5, -1.0, -2.0, -0.1, -0.2, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    yield case("far", grid("far", 3, 6), ([x - 15.0 for x in far * 3], [-15.0] * 18, advantages), modes[0])


TD = ("rewards", "values")
FILES = {
    "advantage/td_lambda.textbook.json": (
        "textbook",
        lambda: _returns("td_lambda", td_lambda, TD, ("gamma", "lambda")),
    ),
    "advantage/vtrace.textbook.json": (
        "textbook",
        lambda: _returns(
            "vtrace", vtrace, (*TD, "log_probs", "old_log_probs"), ("gamma", "lambda", "rho_bar", "c_bar")
        ),
    ),
    "advantage/upgo.textbook.json": ("textbook", lambda: _returns("upgo", upgo, TD, ())),
    "loss/tis_loss.textbook.json": ("textbook", lambda: losses("tis_loss")),
    "loss/topr.textbook.json": ("textbook", lambda: losses("topr")),
}
