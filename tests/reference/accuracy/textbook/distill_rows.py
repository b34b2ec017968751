"""Distillation losses over several entries of the vocabulary, or all."""

from __future__ import annotations

from collections.abc import Callable

from mpmath import mp, mpf

from . import textbook
from .call import Call, Exact, Results, log_softmax, magnitude
from .distill import extremes
from .loss import ONE, ZERO, omegas

#: A loss and its derivative with respect to each entry of the student's row, with the magnitudes of their terms.
Token = tuple[mpf, Exact, mpf, mpf]


def of_rows(call: Call, student: str, grad: str, token: Callable[[int], Token], omega: Exact) -> Results:
    """Aggregates the losses of the tokens and weights their gradients."""
    made = {slot: token(slot) for slot in call.kept()}
    weights = call.weights()
    width = len(call.table(student)[0])
    terms = [(weights[slot] * omega[slot], made[slot]) for slot in call.kept()]
    call.scale["loss"] = mp.fsum(abs(weight) * token[2] for weight, token in terms)
    call.scale[grad] = max((abs(weight) * token[3] for weight, token in terms), default=ZERO)
    slopes = call.fill(lambda slot: [weights[slot] * omega[slot] * x for x in made[slot][1]], [ZERO] * width)
    return {
        "loss": [mp.fsum(weight * token[0] for weight, token in terms)],
        grad: [x for row in slopes for x in row],
    }


@textbook("forward_kl_topk", of="result")
def forward_kl_topk(call: Call) -> Results:
    floor, most = call.setting("log_prob_floor", mpf(-10)), call.setting("max_loss", mpf(10))
    floor, most = (-mp.inf if floor is None else floor), (mp.inf if most is None else most)
    students, teachers = call.table("log_probs"), call.table("teacher_log_probs")
    held = lambda x: max(x, floor)
    part = lambda s, q: weighed(held(q), held(q) - held(s)) if held(q) > -mp.inf else ZERO
    parts = call.fill(lambda slot: [part(s, q) for s, q in zip(students[slot], teachers[slot])], [])
    wholes, sizes = [mp.fsum(row) for row in parts], [magnitude(row) for row in parts]

    def token(slot: int) -> Token:
        outside = call.less(wholes[slot], 0, sizes[slot]) or call.less(most, wholes[slot], sizes[slot])
        slope = lambda s, q: ZERO if outside or s < floor else -mp.exp(held(q))
        slopes = [slope(s, q) for s, q in zip(students[slot], teachers[slot])]
        return max(ZERO, min(most, wholes[slot])), slopes, sizes[slot], max((abs(x) for x in slopes), default=ZERO)

    out = of_rows(call, "log_probs", "grad", token, [ONE] * len(call.mask))
    positive = call.fill(lambda slot: max(ZERO, wholes[slot]))
    out["losses"] = [min(most, x) for x in positive]
    smallest, largest = extremes(call, lambda slot: positive[slot])
    out |= {"loss_min": [smallest], "loss_max": [largest]}
    for name in ("losses", "loss_min", "loss_max"):
        call.scale[name] = max(sizes, default=ZERO)
    for name, table in (("student_mass", students), ("teacher_mass", teachers)):
        masses = call.fill(lambda slot: mp.fsum(mp.exp(x) for x in table[slot]))
        smallest, largest = extremes(call, lambda slot: masses[slot])
        mean = call.mean(f"{name}.mean", lambda slot: masses[slot], "count")
        out |= {f"{name}.mean": [mean], f"{name}.min": [smallest], f"{name}.max": [largest]}
    if call.has("teacher_ids"):
        out |= overlap(call, parts)
    return out


def overlap(call: Call, parts: list[Exact]) -> Results:
    """How many of the teacher's tokens are also the student's, and their mean advantage."""
    teacher, student, width = call.integers("teacher_ids"), call.integers("student_ids"), len(parts[call.kept()[0]])
    shared = {}
    for slot in call.kept():
        entries = slice(slot * width, (slot + 1) * width)
        both = [j for j, token in enumerate(teacher[entries]) if token in student[entries]]
        shared[slot] = [-parts[slot][j] for j in both]
    means = [row for row in shared.values() if row]
    terms = [x / len(row) / len(means) for row in means for x in row]
    return {
        "overlap.ratio": [call.mean("overlap.ratio", lambda slot: mpf(len(shared[slot])) / width, "count")],
        "overlap.token_advantage": [call.total("overlap.token_advantage", terms)],
    }


def weighed(log_prob: mpf, x: mpf) -> mpf:
    """p · x; 0 where p is 0."""
    return ZERO if log_prob == -mp.inf else mp.exp(log_prob) * x


def jsd(s: Exact, t: Exact, beta: mpf) -> Token:
    """The divergence of two distributions, and its derivative with respect to the student's log-probabilities. It is
    measured by Σ p |ln p| and what is subtracted from it."""
    both = lambda x, y: weighed(x, abs(x) + abs(y))
    if beta == 0:
        terms = [weighed(y, y - x) for x, y in zip(s, t)]
        slopes = [-mp.exp(y) for y in t]
        sizes, of_slopes = [both(y, x) for x, y in zip(s, t)], slopes
    elif beta == 1:
        terms = [weighed(x, x - y) for x, y in zip(s, t)]
        slopes = [term + mp.exp(x) for term, x in zip(terms, s)]
        sizes = [both(x, y) for x, y in zip(s, t)]
        of_slopes = [size + mp.exp(x) for size, x in zip(sizes, s)]
    else:
        mixed = [mp.log((1 - beta) * mp.exp(x) + beta * mp.exp(y)) for x, y in zip(s, t)]
        slopes = [(1 - beta) * weighed(x, x - m) for x, m in zip(s, mixed)]
        terms = slopes + [beta * weighed(y, y - m) for y, m in zip(t, mixed)]
        of_slopes = [(1 - beta) * both(x, m) for x, m in zip(s, mixed)]
        sizes = of_slopes + [beta * both(y, m) for y, m in zip(t, mixed)]
    return mp.fsum(terms), slopes, magnitude(sizes), max(abs(x) for x in of_slopes)


def through_softmax(s: Exact, token: Token) -> Token:
    """The same loss by the logits of a soft-max."""
    loss, slopes, size, largest = token
    whole = mp.fsum(slopes)
    return loss, [slope - mp.exp(x) * whole for x, slope in zip(s, slopes)], size, largest + max(size, abs(whole))


@textbook("topk_jsd", of="result")
def topk_jsd(call: Call) -> Results:
    beta, rest = call.setting("beta", mpf(0.5)), call.setting("rest", "tail")
    students, teachers = call.table("log_probs"), call.table("teacher_log_probs")

    def with_tail(row: Exact) -> tuple[bool, Exact]:
        most = mpf(-1e-7)
        log_sum = mp.log(mp.fsum(mp.exp(x) for x in row))
        return not call.less(most, log_sum, ONE), [*row, mp.log(-mp.expm1(min(log_sum, most)))]

    def token(slot: int) -> Token:
        s, t = students[slot], teachers[slot]
        if rest == "renormalize":
            s = log_softmax(s)
            return through_softmax(s, jsd(s, log_softmax(t), beta))
        (moves, s), (_, t) = with_tail(s), with_tail(t)
        loss, slopes, size, largest = jsd(s, t, beta)
        tail = mp.exp(s[-1])
        by_tail = slopes[-1] / tail if moves else ZERO
        slopes = [slope - mp.exp(x) * by_tail for x, slope in zip(s[:-1], slopes)]
        # the tail is 1 − Σ p, which is rounded like 1
        return loss, slopes, size + 1 + abs(s[-1]) + abs(t[-1]), largest + abs(by_tail) + 1 / tail

    return of_rows(call, "log_probs", "grad", token, omegas(call))


@textbook("mixed_kl_topk", of="result")
def mixed_kl_topk(call: Call) -> Results:
    w, outside = call.setting("forward", mpf(0.5)), call.setting("outside", None)
    r = 1 - w
    students, teachers, entropies = call.table("log_probs"), call.table("teacher_log_probs"), call.optional("entropies")

    def both(s: Exact, t: Exact) -> Token:
        ahead, back = jsd(s, t, ZERO), jsd(s, t, ONE)
        slopes = [w * a + r * b for a, b in zip(ahead[1], back[1])]
        return w * ahead[0] + r * back[0], slopes, w * ahead[2] + r * back[2], w * ahead[3] + r * back[3]

    def token(slot: int) -> Token:
        s, t = students[slot], log_softmax(teachers[slot])
        if outside is None:
            s = log_softmax(s)
            return through_softmax(s, both(s, t))
        loss, slopes, size, largest = both(s, t)
        if r != 0:
            # the entropy beyond these tokens, and their mass at the log-probability of the teacher
            inside, mass = mp.fsum(weighed(x, x) for x in s), mp.fsum(mp.exp(x) for x in s)
            loss += r * (-entropies[slot] - inside - outside * (1 - mass))
            size += r * (abs(entropies[slot]) + abs(inside) + abs(outside) * (1 + mass))
            slopes = [slope + r * (outside * mp.exp(x) - weighed(x, x) - mp.exp(x)) for x, slope in zip(s, slopes)]
            largest += r * max(mp.exp(x) * (abs(outside) + 1) + abs(weighed(x, x)) for x in s)
        return loss, slopes, size, largest

    out = of_rows(call, "log_probs", "grad", token, [ONE] * len(call.mask))
    by_entropy = ZERO if outside is None else -r
    return {**out, "grad_entropies": [by_entropy * weight for weight in call.weights()]}


@textbook("generalized_jsd", of="result")
def generalized_jsd(call: Call) -> Results:
    beta, temperature = call.setting("beta", mpf(0.5)), call.setting("temperature", ONE)
    students, teachers = call.table("logits"), call.table("teacher_logits")

    def token(slot: int) -> Token:
        s, t = log_softmax(students[slot], temperature), log_softmax(teachers[slot], temperature)
        loss, slopes, size, largest = through_softmax(s, jsd(s, t, beta))
        return loss, [slope / temperature for slope in slopes], size, largest / temperature

    return of_rows(call, "logits", "grad_logits", token, omegas(call))
