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
- *Left out*: calls with a comparison (a clip bound, a threshold, a rank) whose exact sides differ by at most {near}
  ulps, since rounded arithmetic may decide otherwise. There are {close}; {calls} were compared.
- *Other*: verl 0.9.1, TRL 1.16, OpenRLHF 0.11.2 or torch {torch} on the same inputs, in the same type, on the CPU, for
  the calls whose config is that library's convention. Empty: it has no such function, or no such call.

Configs are rounded to single precision, so that both types compute the same formula.

| formula | ulps of | f32 random | f32 hard | f64 random | f64 hard | other | f32 random | f32 hard | f64 random | f64 hard | calls | left out |
| --- | --- | --: | --: | --: | --: | --- | --: | --: | --: | --: | --: | --: |
{table}

What the large numbers are:

{notes}
"""

NOTES = """\
- The other libraries: a nearly certain token has log-probability 0 there, whatever its odds (`token_log_probs`,
  `entropy`, `logits_gradient`); e^{−d} − 1 + d, 1 − e^{−d} and Σ p (ln p − ln q) cancel near d = 0 (`kl_estimate` k3,
  `kl_gradient`, `kl_exact`, `kl_in_reward`, `kl_loss`); the sign of a log-ratio is lost where the ratio is rounded to
  1 (`kl_cov`). verl divides by n + 1e-8, a convention, which `Divisor::CountPlusEpsilon` follows.
- `token_weights`, and `analysis`, whose sums have it as a factor: p (1 − p) is computed from p = e^{ln p}, so a
  nearly certain token has as few digits as 1 − p, and none where p is rounded to 1. The weight itself is then below
  1e-7 |A| in f32 and 1e-16 |A| in f64.
- `optimal_token_baseline`, `tir_optimal_token_baseline`: 1 − 2p + Σ p² of nearly certain tokens cancels, and the
  baseline is divided by sums of it.
- `logits_gradient`: p (g + h (ln p + H)) cancels where the two gradients have opposite signs; and entries far below
  the maximum m have e^{z − m} with a rounded z − m.
- `kl_exact`, `kl_exact_gradient` are measured by ε where the result is smaller: the rows are equal but for rounding.
  The largest error of the gradient in f32 is a golden case whose rows differ by a constant.
- `generalized_jsd`, `topk_jsd`, `mixed_kl_topk` are summed as they are defined and cancel for close distributions; the
  table measures them by their terms. Measured by the result itself, rows at a distance of 1e-5 and less lose 1e8 ulps
  in both types (`generalized_jsd`; in f32 also the sign: −9.3e-9 for 1.0e-9), and nearly equal rows every digit in f64
  (`topk_jsd`, `mixed_kl_topk`). `correlation` loses 1.5e6 ulps of the result, `variance` 6e4, where numbers with a
  spread of 1 have a mean of 1e6 (f64).
- `gae`, `gae_decoupled`, `discounted_returns`, `upgo`, `remax`, `monte_carlo_advantage`, `minillm_advantage`,
  `td_lambda`: the rounding errors of 3,000 equal tokens have one sign and add up; see the documentation of
  `discounted_returns`. `gae`, `vtrace` at random: returns that cancel against values that are larger than they are.
- 7 or 8 ulps of many losses in f64: a sum of 3,000 equal terms. Sums are `f64` whatever the columns, hence the small
  numbers of f32.
- `rollout_weight_metrics`, `rollout_rejection_metrics`, `bypass_loss`: standard deviations of numbers that are nearly
  equal. `rollout_mismatch`, `rollout_weights`, `vespo`, `sapo`: e^x has the absolute error of x as its relative
  error; the tail of the gate of `sapo` is e^x with x down to −700."""
