"""Tensors in and out, and gradients through autograd."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

import tokenwise_rl as tw  # noqa: E402
from tokenwise_rl import torch as twt  # noqa: E402

torch.manual_seed(0)
MASK = torch.tensor([[True, True, False, True], [True, True, True, False]])


def arguments(name: str) -> dict[str, object]:
    shape = (2, 4)
    k = 3
    draw = lambda *dims: -torch.rand(*dims, dtype=torch.float64) - 0.1  # noqa: E731
    if name in ("topk_jsd", "mixed_kl_topk", "forward_kl_topk"):
        return {"log_probs": draw(2, 4, k) - 1, "teacher_log_probs": draw(2, 4, k) - 1, "mask": MASK}
    if name == "generalized_jsd":
        return {"logits": draw(2, 4, 5), "teacher_logits": draw(2, 4, 5), "mask": MASK}
    if name == "value_loss":
        return {key: torch.randn(shape, dtype=torch.float64) for key in ("predictions", "values", "returns")} | {
            "mask": MASK
        }
    if name == "entropy_bonus":
        return {"entropy": -draw(*shape), "mask": MASK}
    if name == "aggregate":
        return {"losses": torch.randn(shape, dtype=torch.float64), "mask": MASK}
    given: dict[str, object] = {"log_probs": draw(*shape), "mask": MASK}
    old = given["log_probs"] + 0.05 * torch.randn(shape, dtype=torch.float64)
    accepted = getattr(tw, name).__annotations__
    for key, value in {
        "old_log_probs": old,
        "ref_log_probs": old - 0.1,
        "teacher_log_probs": old - 0.2,
        "advantages": torch.randn(shape, dtype=torch.float64),
        "scores": torch.tensor([1.0, 0.0], dtype=torch.float64),
        "selected": torch.zeros(shape, dtype=torch.bool),
        "groups": [0, 0],
    }.items():
        required = key not in (getattr(tw, name).__kwdefaults__ or {})
        if key in accepted and required:
            given[key] = value
    if name == "dro":
        given["beta"] = 0.1
    if name == "positive_nll":
        given["mu"] = 1.0
    return given


def test_there_are_as_many_losses_as_in_the_catalogue() -> None:
    assert len(twt.losses()) >= 31


#: The gradient is not the derivative of the loss, by definition: the formula calls a factor of it a constant. That of
#: dppo_kl is in the second line of its formula; those of bypass_loss are not there by default.
STOPPED = {name for name in twt.losses() if "a constant" in (getattr(tw, name).__doc__ or "")}
STOPPED = (STOPPED | {"dppo_kl"}) - {"bypass_loss"}


def test_most_gradients_are_derivatives() -> None:
    assert 0 < len(STOPPED) < len(twt.losses()) / 3


@pytest.mark.parametrize("name", twt.losses())
def test_gradient_is_that_of_the_formula(name: str) -> None:
    given = arguments(name)
    first = next(key for key, value in given.items() if isinstance(value, torch.Tensor) and key != "mask")
    x = given[first].clone().requires_grad_()  # type: ignore[attr-defined]
    result = twt.loss(name, **{**given, first: x})
    result.loss.backward()
    plain = getattr(tw, name)(**{key: value for key, value in given.items()})
    output = "weights" if name == "aggregate" else "grad_logits" if name == "generalized_jsd" else "grad"
    assert torch.equal(x.grad, getattr(plain, output))
    assert result.loss.item() == plain.loss
    if name not in STOPPED:
        assert torch.autograd.gradcheck(
            lambda z: twt.loss(name, **{**given, first: z}).loss, (x.detach().requires_grad_(),), atol=1e-6
        )


def test_upstream_factors_are_applied() -> None:
    given = arguments("ppo_clip")
    x = given["log_probs"].clone().requires_grad_()  # type: ignore[attr-defined]
    (3.0 * twt.ppo_clip(**{**given, "log_probs": x}).loss).backward()
    assert torch.allclose(x.grad, 3.0 * tw.ppo_clip(**given).grad)  # type: ignore[arg-type]


@pytest.mark.parametrize("factor", [1.0, 3.0])
def test_a_graph_can_be_used_again(factor: float) -> None:
    given = arguments("ppo_clip")
    want = factor * tw.ppo_clip(**given).grad  # type: ignore[arg-type]
    x = given["log_probs"].clone().requires_grad_()  # type: ignore[attr-defined]
    loss = factor * twt.ppo_clip(**{**given, "log_probs": x}).loss
    for times in (1, 2, 3):
        loss.backward(retain_graph=True)
        assert torch.allclose(x.grad, times * want)
        x.grad.mul_(1.0)  # an optimiser may write to it


def test_logits_gradcheck() -> None:
    logits = torch.randn(2, 3, 5, dtype=torch.float64, requires_grad=True)
    tokens = torch.randint(0, 5, (2, 3))
    assert torch.autograd.gradcheck(
        lambda z: tuple(twt.log_probs_and_entropy(logits=z, tokens=tokens, temperature=0.7)), (logits,)
    )
    assert torch.autograd.gradcheck(lambda z: twt.entropy(logits=z), (logits,))


def test_logits_equal_those_of_torch() -> None:
    logits, tokens = torch.randn(2, 3, 50), torch.randint(0, 50, (2, 3))
    want = torch.log_softmax(logits, -1).gather(-1, tokens.unsqueeze(-1)).squeeze(-1)
    found = tw.log_probs_and_entropy(logits=logits, tokens=tokens)
    assert isinstance(found.log_probs, torch.Tensor)
    torch.testing.assert_close(found.log_probs, want)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_logits(dtype: torch.dtype) -> None:
    logits, tokens = torch.randn(2, 3, 50).to(dtype), torch.randint(0, 50, (2, 3))
    found = tw.log_probs_and_entropy(logits=logits, tokens=tokens)
    want = tw.log_probs_and_entropy(logits=logits.float(), tokens=tokens)
    torch.testing.assert_close(found.log_probs, want.log_probs, rtol=2e-6, atol=2e-6)
    z = logits.clone().requires_grad_()
    twt.token_log_probs(logits=z, tokens=tokens).sum().backward()
    assert z.grad is not None and z.grad.dtype == dtype


def test_tensors_share_memory() -> None:
    values = torch.randn(4, 8)
    out = tw.whiten(values=values)
    assert isinstance(out, torch.Tensor) and out.dtype == torch.float32


def test_any_view_of_a_tensor_is_read_as_torch_reads_it() -> None:
    numbers = torch.randn(6, 8)
    mask = torch.rand(6, 8) < 0.7
    negated = torch.complex(numbers, numbers).conj().imag  # its memory holds the numbers with the other sign
    assert negated.is_neg()
    views = {
        "whole": (numbers, mask),
        "transposed": (numbers.T, mask.T),
        "rows": (numbers[2:5], mask[2:5]),
        "columns": (numbers[:, 2:5], mask[:, 2:5]),
        "steps": (numbers[::2, ::3], mask[::2, ::3]),
        "expanded": (numbers[:1].expand(6, 8), mask),
        "double": (numbers.double(), mask.long()),
        "negated": (negated.resolve_neg(), mask),
        "leaf": (numbers.clone().requires_grad_(), mask.int()),
        "parameter": (torch.nn.Parameter(numbers), mask.float()),
        "empty": (numbers[:0], mask[:0]),
    }
    for name, (values, keep) in views.items():
        if not keep.any():
            assert tw.kl_estimate(log_probs=values, ref_log_probs=values, mask=keep).shape == values.shape
            continue
        found = tw.whiten(values=values, mask=keep)
        expected = tw.whiten(values=values.detach().numpy().copy(), mask=keep.numpy().copy())
        assert isinstance(found, torch.Tensor) and not found.requires_grad, name
        torch.testing.assert_close(found, torch.from_numpy(expected), rtol=0, atol=0, msg=name)
    with pytest.raises(RuntimeError, match="negative bit"):
        tw.whiten(values=negated, mask=mask)


def test_a_second_derivative_is_refused() -> None:
    given = arguments("ppo_clip")
    leaf = given["log_probs"].requires_grad_()
    (grad,) = torch.autograd.grad(twt.ppo_clip(**given).loss, leaf, create_graph=True)
    torch.testing.assert_close(grad.detach(), tw.ppo_clip(**given).grad)
    with pytest.raises(RuntimeError, match="does not require grad"):
        grad.sum().backward()


def test_logits_on_another_device_are_refused() -> None:
    logits = torch.empty(1, 2, 4, device="meta")
    with pytest.raises(tw.TokenwiseError, match="logits on the CPU"):
        tw.entropy(logits=logits)


class Exported:
    """A tensor as an array of a library that has nothing but DLPack."""

    def __init__(self, tensor: torch.Tensor) -> None:
        self.tensor = tensor

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.tensor.__dlpack_device__()

    def __dlpack__(self, **arguments: object) -> object:
        return self.tensor.__dlpack__(**arguments)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_through_dlpack(dtype: torch.dtype) -> None:
    logits, tokens = torch.randn(2, 3, 50).to(dtype), torch.randint(0, 50, (2, 3))
    want = tw.log_probs_and_entropy(logits=logits, tokens=tokens)
    for given in (logits, logits.transpose(0, 1).contiguous().transpose(0, 1), logits[:, :, ::2].repeat(1, 1, 2)):
        other = tw.log_probs_and_entropy(logits=given, tokens=tokens)
        found = tw.log_probs_and_entropy(logits=Exported(given), tokens=tokens.numpy())
        assert (found.log_probs == other.log_probs.numpy()).all()
    values = torch.randn(2, 3).to(dtype)
    assert (tw.whiten(values=Exported(values)) == tw.whiten(values=values.float()).numpy()).all()
    assert want.log_probs.dtype == torch.float32
