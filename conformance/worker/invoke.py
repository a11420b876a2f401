"""Call a torch function, and its backward, as a :class:`Call` says: on a device, or on ``meta`` for torch's rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import torch

    from conformance.worker.protocol import Call

_OF_TORCH = "torch."
"""How the text of a parameter begins that stands for what torch has by that name, since a call is JSON: an element type
(``"torch.float16"``) or a member of an enumeration."""


def invoke(call: Call, tensors: Sequence[torch.Tensor], out: torch.Tensor | None = None) -> list[torch.Tensor]:
    """The results of the call's function on ``tensors`` and ``out``, which stand for the call's own.

    Raises
    ------
    TypeError
        If the function returns anything but tensors; besides, whatever the function raises.
    """
    import torch

    function: Any = reduce(getattr, call.function.split("."), torch)
    positional = len(tensors) - len(call.named)
    operands = [list(tensors)] if call.listed else tensors[:positional]
    keywords = {name: _parameter(value) for name, value in call.params.items()}
    keywords |= dict(zip(call.named, tensors[positional:], strict=True))
    result = function(*operands, **keywords, **({} if out is None else {"out": out}))
    results = list(result) if isinstance(result, (tuple, list)) else [result]
    for item in results:
        if not isinstance(item, torch.Tensor):
            raise TypeError(f"the op returned a {type(item).__name__} where a tensor was expected")
    return results


def _parameter(value: Any) -> Any:
    import torch

    if not (isinstance(value, str) and value.startswith(_OF_TORCH)):
        return value
    return reduce(getattr, value.removeprefix(_OF_TORCH).split("."), torch)


def differentiate(
    results: Sequence[torch.Tensor],
    leaves: Sequence[torch.Tensor],
    incoming: Sequence[torch.Tensor],
    *,
    retain: bool = False,
) -> tuple[torch.Tensor | None, ...]:
    """The gradient of each leaf, None where it has no part in any result.

    ``incoming`` has the gradient of each result; those of results that are not differentiable are left out. With
    ``retain`` the results can be differentiated again.

    Raises
    ------
    ValueError
        If there are not as many incoming gradients as results; besides, whatever the backward raises.
    """
    import torch

    if len(incoming) != len(results):
        raise ValueError(f"gradients: given {len(incoming)} for {len(results)} results; allowed: one for each")
    pairs = [(result, gradient) for result, gradient in zip(results, incoming, strict=True) if result.requires_grad]
    if not pairs:
        return (None,) * len(leaves)
    outputs, gradients = zip(*pairs, strict=True)
    return tuple(torch.autograd.grad(outputs, leaves, gradients, allow_unused=True, retain_graph=retain))
