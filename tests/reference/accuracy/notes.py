"""The words of docs/accuracy.md."""

TEXT = """# Accuracy

Written by `tests/reference/accuracy_table.py`, which is run by hand; it takes several minutes. A number is the largest
error found, in ulps: units of the last place of the type. 0.5 is correct rounding. "∞" is a result that is not finite
where the exact one is.

All {formulas} formulas of the catalogue are compared with exact arithmetic: mpmath with 240 bits, and more where logits
are far apart. Each has a version in `tests/reference/accuracy/textbook` that is written from its definition and takes
nothing from the core.

- *Ulps of*: `result`, each result itself; `largest`, the largest number of the same output; `terms`, the sum of the
  magnitudes of the terms, or the largest term, where that is larger than the result: what is left of terms that cancel
  has no more digits than they have. A score minus a mean is measured by the score in this way, and a deviation from a
  mean by the number. A version records its terms with `measure` or `total`.
- `exact`: copies, flags, counts, indices. They were equal in all calls.
- *Random*: calls of the golden cases, the same with 10 % of noise, and random numbers over many scales in their shapes
  and configs; formulas without a golden case have configs in `tests/reference/accuracy/calls.py`.
- *Hard*: log-ratios from 1e-15 to 20, nearly certain tokens, close distributions, values with a spread that is small
  beside a mean of up to 10⁶, the same number everywhere, numbers that cancel, magnitudes from 1e-9 to 1e6 in one call,
  and rows of up to 3,000 tokens.
- *Left out*: calls with a comparison (a clip bound, a threshold, a rank) whose exact sides differ by at most {near} ulps,
  since rounded arithmetic may decide otherwise. There are {close}; {calls} were compared.
- *Other*: verl 0.9.1, TRL 1.16, OpenRLHF 0.11.2 or torch {torch} on the same inputs, in the same type, on the CPU, for
  the calls whose config is that library's convention. Empty: it has no such function, or none that takes these inputs.

Configs are rounded to single precision, so that both types compute the same formula.

| formula | ulps of | f32 random | f32 hard | f64 random | f64 hard | other | f32 random | f32 hard | f64 random | f64 hard | calls | left out |
| --- | --- | --: | --: | --: | --: | --- | --: | --: | --: | --: | --: | --: |
{table}

What the large numbers are:

{notes}
"""

NOTES = """\
- The other libraries, `token_log_probs`, `entropy`, `logits_gradient`: a nearly certain token has log-probability 0
  there, whatever its odds. `kl_estimate` k3, `kl_gradient`, `kl_exact`: e^{−d} − 1 + d, 1 − e^{−d} and
  Σ p (ln p − ln q) cancel near d = 0. `kl_cov`: the sign of a log-ratio that is rounded."""
