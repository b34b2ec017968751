"""Stage 2, divergence: KL estimators of one token, and the exact KL over the vocabulary."""

from __future__ import annotations

from collections.abc import Iterator

from cases import BY_NAME, GRIDS, Grid, grid, log_probs, logits, near, rng_for
from frameworks import openrlhf_ops, trl_ops, verl_ops
from golden import Case

BASES = ("k1", "abs", "k2", "k3")
ESTIMATORS = BASES + tuple(f"{name}+" for name in BASES)
# x = log_prob − ref around and beyond the clamps of k3 (input ±20, output 10), never on a bound.
FAR = (2.6, -2.5, -2.6, -2.62, -2.7, 10.9, 11.1, 19.5, 20.5, 25.0, -19.5, -20.5, -25.0, -60.0, 60.0, 0.0)
EDGE = grid("far", 1, len(FAR))


def _far() -> tuple[list[float], list[float]]:
    """log_probs and ref_log_probs with exactly the differences of FAR (the sums are exact to 1e-14)."""
    ref = [-70.0] * len(FAR)
    return [r + x for r, x in zip(ref, FAR)], ref


def _pair(name: str, item: Grid, garbage: float) -> tuple[list[float], list[float]]:
    rng = rng_for(f"kl/{name}")
    lp = log_probs(rng, item, garbage)
    return lp, near(rng, item, lp, 0.6, -garbage)


def kl_verl() -> Iterator[Case]:
    def case(name: str, item: Grid, lp: list[float], ref: list[float], estimator: str, dtype: str) -> Case:
        out = verl_ops.kl(item.tensor(lp, dtype), item.tensor(ref, dtype), estimator)
        return Case(
            "kl",
            **item.base(),
            inputs={"log_probs": lp, "ref_log_probs": ref},
            params={"estimator": estimator},
            expect=out,
            name=name,
            profile=verl_ops.PROFILE,
            dtype=dtype,
        )

    for number, item in enumerate(GRIDS):
        for estimator in ESTIMATORS if item.name in ("padded", "cols-9") else (ESTIMATORS[number % 8],):
            yield case(f"{estimator}-{item.name}", item, *_pair(item.name, item, 1e6), estimator, "f64")
    for estimator in ESTIMATORS:
        yield case(f"{estimator}-far", EDGE, *_far(), estimator, "f64")
        if estimator in ("k1", "k2", "k3", "k3+"):
            yield case(f"{estimator}-f32", BY_NAME["holes"], *_pair("holes", BY_NAME["holes"], 1e4), estimator, "f32")


def kl_openrlhf() -> Iterator[Case]:
    """compute_approx_kl always works in float32."""
    names = ("k1", "k2", "k3", "k1+", "k2+", "k3+")
    for number, item in enumerate(GRIDS + (EDGE,)):
        picked = names if item.name in ("padded", "far") else (names[number % 6],)
        for estimator in picked:
            lp, ref = _far() if item is EDGE else _pair(item.name, item, 1e4)
            out = openrlhf_ops.kl(item.tensor(lp, "f32"), item.tensor(ref, "f32"), estimator)
            yield Case(
                "kl",
                **item.base(),
                inputs={"log_probs": lp, "ref_log_probs": ref},
                params={"estimator": estimator},
                expect=out,
                name=f"{estimator}-{item.name}",
                profile=openrlhf_ops.PROFILE,
                dtype="f32",
            )


def kl_trl() -> Iterator[Case]:
    """k3 without any clamp."""
    for name in ("one-token", "one-row", "padded", "holes", "empty-rows", "cols-9", "cols-17"):
        item = BY_NAME[name]
        lp, ref = _pair(name, item, 30.0)
        yield _trl_case(name, item, lp, ref)
    lp, ref = _far()
    keep = [k for k, x in enumerate(FAR) if abs(x) < 30]
    item = grid("far", 1, len(keep))
    yield _trl_case("far", item, [lp[k] for k in keep], [ref[k] for k in keep])


def _trl_case(name: str, item: Grid, lp: list[float], ref: list[float]) -> Case:
    out = trl_ops.kl(item.tensor(lp), item.tensor(ref), item.mask_tensor())
    return Case(
        "kl",
        **item.base(),
        inputs={"log_probs": lp, "ref_log_probs": ref},
        params={"estimator": "k3"},
        expect=out,
        name=f"k3-{name}",
        profile=trl_ops.PROFILE,
    )


def kl_full() -> Iterator[Case]:
    """No profile: all frameworks compute the same sum."""
    grids = (BY_NAME["one-token"], BY_NAME["one-row"], grid("padded", 2, 3, "right"), grid("holes", 2, 3, "holes"))
    for number, vocab in enumerate((1, 2, 5, 8, 9, 17, 50, 257)):
        for dtype in ("f64", "f32") if vocab in (5, 17) else ("f64",):
            item = grids[number % 4] if vocab < 50 else grids[number % 2]
            rng = rng_for(f"kl_full/{vocab}")
            z, z_ref = logits(rng, item, vocab), logits(rng, item, vocab)
            shape = (item.rows, item.cols, vocab)
            out = trl_ops.kl_full(item.tensor(z, dtype).reshape(shape), item.tensor(z_ref, dtype).reshape(shape))
            yield Case(
                "kl_full",
                **item.base(),
                inputs={"logits": z, "ref_logits": z_ref},
                params={"vocab": vocab},
                expect=out,
                name=f"vocab-{vocab}-{item.name}-{dtype}",
                dtype=dtype,
            )
    item = grids[1]
    z = logits(rng_for("kl_full/same"), item, 9)
    for name, z_ref in (("same", z), ("shifted", [x + 3.0 for x in z]), ("scaled", [2.0 * x for x in z])):
        out = trl_ops.kl_full(item.tensor(z), item.tensor(z_ref))
        yield Case(
            "kl_full",
            **item.base(),
            inputs={"logits": z, "ref_logits": z_ref},
            params={"vocab": 9},
            expect=out,
            name=name,
        )


FILES = {
    "divergence/kl.verl.json": ("verl", kl_verl),
    "divergence/kl.openrlhf.json": ("openrlhf", kl_openrlhf),
    "divergence/kl.trl.json": ("trl", kl_trl),
    "divergence/kl_full.trl.json": ("trl", kl_full),
}
