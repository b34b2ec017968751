"""Returns and advantages with a critic, one token after the other from the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results


@dataclass
class Episode:
    """The steps of one sequence: a dropped step has reward and value 0."""

    slots: list[int]
    rewards: Exact
    #: One more than there are steps: the last is the bootstrap.
    values: Exact


def bootstrap(call: Call) -> Exact:
    return call.optional("bootstrap") or [mpf(0)] * call.rows


def steps(call: Call, row: int) -> list[int]:
    """The slots that a recursion walks through: the kept ones, or all up to the last kept one."""
    kept = call.kept_of(row)
    if call.setting("across", "step-over") == "zero-step" and kept:
        return list(range(call.row(row).start, kept[-1] + 1))
    return kept


def episodes(call: Call, rewards: str = "rewards", values: str | None = "values") -> list[Episode]:
    given = call.column(rewards)
    critic = call.column(values) if values else [mpf(0)] * len(given)

    def of(numbers: Exact, slot: int) -> mpf:
        return numbers[slot] if call.mask[slot] else mpf(0)

    out = []
    for row, after in enumerate(bootstrap(call)):
        slots = steps(call, row)
        kept_values = [*(of(critic, slot) for slot in slots), after]
        out.append(Episode(slots, [of(given, slot) for slot in slots], kept_values))
    return out


def by_step(call: Call, runs: list[Episode], step: Callable[[Episode, int, mpf], mpf], last: Callable) -> Exact:
    """A number for each kept step, from its episode, its position there and the number of the step after it."""
    out = [mpf(0)] * len(call.mask)
    for run in runs:
        ahead = last(run)
        for t in reversed(range(len(run.slots))):
            ahead = step(run, t, ahead)
            if call.mask[run.slots[t]]:
                out[run.slots[t]] = ahead
    return out


def after_last(run: Episode) -> mpf:
    return run.values[-1]


def nothing(run: Episode) -> mpf:
    return mpf(0)


def discounted(call: Call, gamma: mpf) -> Exact:
    runs = episodes(call, values=None)
    return by_step(call, runs, lambda run, t, ahead: run.rewards[t] + gamma * ahead, after_last)


@textbook("discounted_returns")
def discounted_returns(call: Call) -> Results:
    return {"returns": discounted(call, call.setting("gamma", 1.0))}


@textbook("monte_carlo_advantage")
def monte_carlo_advantage(call: Call) -> Results:
    returns, values = discounted(call, call.setting("gamma", 1.0)), call.column("values")
    return {"advantages": call.fill(lambda slot: returns[slot] - values[slot]), "returns": returns}


def advantages_of(call: Call, runs: list[Episode], lam: mpf) -> Exact:
    """δ_t + γ λ A_{t+1}."""
    gamma = call.setting("gamma", 1.0)

    def step(run: Episode, t: int, ahead: mpf) -> mpf:
        return run.rewards[t] + gamma * run.values[t + 1] - run.values[t] + gamma * lam * ahead

    return by_step(call, runs, step, nothing)


def targets_of(call: Call, advantages: Exact) -> Exact:
    values = call.column("values")
    return call.fill(lambda slot: advantages[slot] + values[slot])


@textbook("gae")
def gae(call: Call) -> Results:
    advantages = advantages_of(call, episodes(call), call.setting("lambda", 1.0))
    return {"advantages": advantages, "returns": targets_of(call, advantages)}


@textbook("gae_decoupled")
def gae_decoupled(call: Call) -> Results:
    """The critic's returns with one λ, the policy's advantages with another, which may depend on the length."""
    runs, rule = episodes(call), call.setting("lambda_policy", 0.95)
    returns = targets_of(call, advantages_of(call, runs, call.setting("lambda_value", 1.0)))
    advantages = [mpf(0)] * len(call.mask)
    for row, run in enumerate(runs):
        lam = rule
        if isinstance(rule, dict):
            lam = 1 - 1 / max(mpf(rule["alpha"]) * len(call.kept_of(row)), mpf(1))
        made = advantages_of(call, [run], lam)
        advantages[row * call.width : (row + 1) * call.width] = made[row * call.width : (row + 1) * call.width]
    return {"advantages": advantages, "returns": returns}


@textbook("td_lambda")
def td_lambda(call: Call) -> Results:
    """r + γ (λ G' + (1 − λ) V')."""
    gamma, lam = call.setting("gamma", 1.0), call.setting("lambda", 1.0)

    def step(run: Episode, t: int, ahead: mpf) -> mpf:
        return run.rewards[t] + gamma * (lam * ahead + (1 - lam) * run.values[t + 1])

    return {"returns": by_step(call, episodes(call), step, after_last)}


@textbook("n_step_returns")
def n_step_returns(call: Call) -> Results:
    """Of the n next steps, r + γ (λ G' + (1 − λ) V'); the last of them has G' = V'."""
    gamma, lam, n = call.setting("gamma", 1.0), call.setting("lambda", 1.0), int(call.setting("n", 1))
    out = [mpf(0)] * len(call.mask)
    for run in episodes(call):
        for t, slot in enumerate(run.slots):
            if not call.mask[slot]:
                continue
            end = min(len(run.slots), t + n)
            total = run.values[end]
            for later in reversed(range(t, end)):
                total = run.rewards[later] + gamma * (lam * total + (1 - lam) * run.values[later + 1])
            out[slot] = total
    return {"returns": out}


@textbook("upgo")
def upgo(call: Call) -> Results:
    """r + G' while the next token is at least as good as its value, else r + V'."""

    def step(run: Episode, t: int, ahead: mpf) -> mpf:
        if t + 1 < len(run.slots):
            got, value = run.rewards[t + 1] + run.values[t + 2], run.values[t + 1]
            if call.less(got, value, abs(run.rewards[t + 1]) + abs(run.values[t + 2])):
                return run.rewards[t] + value
        return run.rewards[t] + ahead

    return {"returns": by_step(call, episodes(call), step, after_last)}


def ratios(call: Call) -> Exact:
    new, old = call.column("log_probs"), call.column("old_log_probs")
    return call.fill(lambda slot: mp.exp(new[slot] - old[slot]))


@textbook("vtrace")
def vtrace(call: Call) -> Results:
    gamma, lam, alpha = call.setting("gamma", 1.0), call.setting("lambda", 1.0), call.setting("alpha", 1.0)
    given, runs = ratios(call), episodes(call)

    def capped(slot: int, key: str) -> mpf:
        return (1 - alpha) * given[slot] + alpha * min(given[slot], call.setting(key, 1.0))

    def error(run: Episode, t: int, ahead: mpf) -> mpf:
        delta = run.rewards[t] + gamma * run.values[t + 1] - run.values[t]
        return capped(run.slots[t], "rho_bar") * delta + gamma * lam * capped(run.slots[t], "c_bar") * ahead

    errors, values = by_step(call, runs, error, nothing), call.column("values")
    targets = call.fill(lambda slot: values[slot] + errors[slot])
    advantages = [mpf(0)] * len(call.mask)
    for run in runs:
        for t, slot in enumerate(run.slots):
            target = targets[run.slots[t + 1]] if t + 1 < len(run.slots) else run.values[-1]
            ahead = lam * target + (1 - lam) * run.values[t + 1]
            advantages[slot] = capped(slot, "rho_bar_pg") * (run.rewards[t] + gamma * ahead - run.values[t])
    return {"targets": targets, "advantages": advantages}


@textbook("puffer_advantage")
def puffer_advantage(call: Call) -> Results:
    gamma, lam, given = call.setting("gamma", 1.0), call.setting("lambda", 1.0), call.column("ratios")
    rho_bar, c_bar = call.setting("rho_bar", 1.0), call.setting("c_bar", 1.0)
    whole = call.setting("variant", "v3") == "v3"

    def step(run: Episode, t: int, ahead: mpf) -> mpf:
        slot, value = run.slots[t], gamma * run.values[t + 1] - run.values[t]
        rho = min(given[slot], rho_bar)
        delta = rho * (run.rewards[t] + value) if whole else rho * run.rewards[t] + value
        return delta + gamma * lam * min(given[slot], c_bar) * ahead

    return {"advantages": by_step(call, episodes(call), step, nothing)}


@textbook("retrace")
def retrace(call: Call) -> Results:
    """Q + (r + γ V' − Q) + γ c' (target' − Q')."""
    gamma, lam, kind = call.setting("gamma", 1.0), call.setting("lambda", 1.0), call.setting("coefficient", "retrace")
    given, new, q = ratios(call), call.column("log_probs"), call.column("action_values")

    def c(slot: int) -> mpf:
        if kind == "lambda":
            return lam
        if kind == "tree-backup":
            return lam * mp.exp(new[slot])
        return given[slot] if kind == "importance" else lam * min(given[slot], mpf(1))

    def step(run: Episode, t: int, ahead: mpf) -> mpf:
        total = run.rewards[t] + gamma * run.values[t + 1]
        if t + 1 < len(run.slots):
            after = run.slots[t + 1]
            total += gamma * c(after) * (ahead - q[after])
        return total

    return {"targets": by_step(call, episodes(call), step, nothing)}
